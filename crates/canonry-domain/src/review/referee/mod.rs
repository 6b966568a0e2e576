//! Comments of other reviewers on a change: which of them name the same problem, how they rank, and how often each bot
//! is right.

pub(crate) mod bot_record;
pub(crate) mod remark;
pub(crate) mod remark_groups;
pub(crate) mod remark_rank;
pub(crate) mod remark_text;

pub use bot_record::BotRecord;
pub use remark::{RemarkAuthor, RemarkOutcome, RemarkThread, ReviewRemark, is_named_bot, remark_outcome};
pub use remark_groups::{AT_LEAST_ALIKE, GroupedRemark, group_remarks, likeness, remark_words};
pub use remark_rank::{ProblemTraits, RANK_WEIGHTS, RankWeights, problem_traits, record_log_odds};
pub use remark_text::remark_essence;
