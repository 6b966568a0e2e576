//! What a review writes: comments, summary, check.

pub(crate) mod posted_text;
pub(crate) mod summary_text;

pub use posted_text::{
    CheckConclusion, EarlierFinding, FindingComment, ListedFinding, PostedSummary, REVIEW_BODY, check_conclusion,
    check_output, fenced, finding_comment, fixed_comment, incomplete_comment, repeated_finding_comment,
    summary_comment,
};
pub use summary_text::{
    CountedFinding, ReviewCounts, ReviewGaps, coverage_in_words, earlier_findings_text, gaps_in_words, hidden_in_words,
    history_in_words, review_headline, scope_in_words, suppressed_patterns_in_words,
};
