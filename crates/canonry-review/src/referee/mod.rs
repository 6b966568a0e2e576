//! Weighs the comments of other bots and people on a change: reads them, finds those that name one problem, ranks the
//! problems, and keeps each bot's record.
//!
//! A comment of another reviewer is a witness and never a finding of Canonry: it changes no severity, no check and no
//! exit status.

pub(crate) mod referee_report;
pub(crate) mod remark_sources;
pub(crate) mod weigh_remarks;

pub use referee_report::{RefereeReport, RefereedProblem, RemarkWitness, bot_documents};
pub use remark_sources::{HeardRemarks, RemarkFileError, remarks_of_file, remarks_of_pull};
pub use weigh_remarks::weigh_remarks;
