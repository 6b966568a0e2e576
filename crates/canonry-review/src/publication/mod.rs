//! A review on GitHub: comments at lines, one summary, a check run, and threads that end when there is nothing more to say.
//!
//! Everything goes through the outbox under keys that name the run, so that whoever goes on after a crash finds what was
//! said and says the rest. What reviewers and people wrote is quoted before it is put into any text.

mod check_run;
mod commentable;
mod keys;
mod publish;
mod pull_writes;
mod quoted;
mod recheck;
mod summary;
mod texts;
mod threads;

pub use check_run::{WrittenCheck, written_check};
pub use publish::{Publication, PublicationError, PublicationResult};
pub use recheck::{CLOSED, PublicationRecheck, SUPERSEDED};
