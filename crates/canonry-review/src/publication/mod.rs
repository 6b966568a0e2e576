//! A review on GitHub: one review with its remarks at lines and a summary as its body, a check run, and threads that are
//! resolved when there is nothing more to say.
//!
//! Everything goes through the outbox under keys that name the run, so that whoever goes on after a crash finds what was
//! posted and posts the rest. What reviewers and people wrote is quoted before it is put into any text.

mod check_run;
mod commentable;
mod keys;
mod publish;
mod pull_writes;
mod quoted;
mod recheck;
mod said_findings;
mod status_comment;
mod texts;
mod threads;

pub use check_run::{WrittenCheck, written_check};
pub use publish::{Publication, PublicationError, PublicationResult};
pub use recheck::{CLOSED, PublicationRecheck, SUPERSEDED};
