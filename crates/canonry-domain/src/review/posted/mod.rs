//! The texts that a review posts: comments at lines, the body of the review, the check run.

pub(crate) mod posted_text;
pub(crate) mod summary_text;

pub use posted_text::{
    CheckConclusion, EarlierFinding, FindingComment, ListedFinding, PostedSummary, RETIRED_SUMMARY,
    applicable_suggestion, check_conclusion, check_output, fenced, finding_comment, fixed_comment, how_to_retry,
    not_reviewed_comment, repeated_finding_comment, review_body, status_comment,
};
pub use summary_text::{
    CountedFinding, ReviewCounts, ReviewGaps, coverage_in_words, gaps_in_words, hidden_in_words, history_in_words,
    review_headline, scope_in_words, since_last_review, suppressed_patterns_in_words,
};
