//! The outbox: the one door through which every write to GitHub goes.
//!
//! A write is stored under a key before it is sent, and it ends in one of three states: sent, refused,
//! failed. A crash at any point neither loses nor repeats it, as far as GitHub allows.

mod checkpoint;
mod look;
mod progress;
mod publisher;
mod recheck;
mod rename;
mod send;
mod work;
mod write;

pub use checkpoint::{Checkpoint, Point};
pub use look::COMMENT_GONE;
pub use progress::{Act, OutOfPlace, Receipt, WrittenComment};
pub use publisher::{Outbox, OutboxError};
pub use recheck::{Recheck, RecheckError, Ruling, Unconditional};
pub use write::{Close, CloseAs, Write};
