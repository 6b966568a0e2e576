//! Commands that people give in comments: the table of commands, the parser, the answers and the help.

mod answers;
mod commands;
mod page;
mod parse;
mod why_text;

pub use answers::{
    NothingToUndo, close_cancelled, could_not, dismissed, duplicate_ruled, duplicate_ruled_and_closing,
    needs_another_number, not_apart, not_here, not_paused, nothing_to_undo, only_a_maintainer_silences, overtaken,
    paused, refused, resumed, review_of_closed, reviews_are_off, ruled_apart, ruled_by_a_maintainer, unknown_item,
    unknown_mention, while_paused,
};
pub use commands::{
    ANSWERED_A_DAY, ANSWERED_AN_HOUR, ANSWERED_AN_HOUR_IN_ALL, DEFAULT_HANDLE, MENTIONS, MayAsk, MentionArgument,
    MentionCommand, MentionRole, MentionScope, MentionSpec, MentionVerb, is_mention_answered,
};
pub use page::{mention_help, mentions_page};
pub use parse::{MentionRequest, may_contain_mention, parse_mention};
pub use why_text::{WhyActions, WhyComment, WhyItem, WhyVerdict, gate_in_words, why_text};
