//! Sends every write to GitHub: nothing is written except through the outbox.
//!
//! A write is stored under a key before it is sent, and it ends in one of three states: sent, refused, failed. A crash
//! at any point neither loses nor repeats it, as far as GitHub allows.

mod checkpoint;
mod draft_review;
mod end_reason;
mod find_review;
mod find_thread;
mod find_write;
mod follow_rename;
pub(crate) mod pacing;
pub(crate) mod process_mark;
mod progress;
mod publisher;
mod receipt;
mod recheck;
mod send;
mod write;
mod write_job;

pub use checkpoint::{Checkpoint, Point};
pub use end_reason::EndReason;
pub use find_thread::{THREAD_FORBIDDEN, THREAD_GONE, THREAD_NOT_OURS};
pub use find_write::COMMENT_GONE;
pub use pacing::{
    ORDINARY_WRITES_PER_HOUR, ORDINARY_WRITES_PER_MINUTE, WRITES_PER_HOUR, WRITES_PER_MINUTE, next_write_at,
};
pub use process_mark::{is_process_gone, process_mark};
pub use progress::{Act, OutOfPlace};
pub use publisher::{Outbox, OutboxError};
pub use receipt::{Receipt, WrittenComment, WrittenInline, WrittenReview};
pub use recheck::{Recheck, RecheckError, Ruling, Unconditional};
pub use write::{Close, CloseAs, InlineComment, ReactTo, ReviewWrite, Write};

pub use crate::api::{CHECK_NAME, CheckRunWrite, CheckState, ReactionContent};
