//! The outbox: the one door through which every write to GitHub goes.
//!
//! A write is stored under a key before it is sent, and it ends in one of three states: sent, refused,
//! failed. A crash at any point neither loses nor repeats it, as far as GitHub allows.

mod checkpoint;
mod draft_review;
mod look;
mod look_at_review;
mod look_at_thread;
mod progress;
mod publisher;
mod receipt;
mod recheck;
mod rename;
mod send;
mod work;
mod write;

pub use checkpoint::{Checkpoint, Point};
pub use look::COMMENT_GONE;
pub use look_at_thread::{THREAD_FORBIDDEN, THREAD_GONE, THREAD_NOT_OURS};
pub use progress::{Act, OutOfPlace};
pub use publisher::{Outbox, OutboxError};
pub use receipt::{Receipt, WrittenComment, WrittenInline, WrittenReview};
pub use recheck::{Recheck, RecheckError, Ruling, Unconditional};
pub use write::{Close, CloseAs, InlineComment, ReactTo, ReviewWrite, Write};

pub use crate::api::{CHECK_NAME, CheckRunWrite, CheckState, ReactionContent};
