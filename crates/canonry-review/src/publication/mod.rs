//! Publishes a review on GitHub: one review with inline comments and a summary as its body, a check run, and threads
//! that are resolved when their finding is settled.
//!
//! Everything goes through the outbox under keys that contain the run, so that a process that continues after a crash
//! finds what was posted and posts the rest. Text by reviewers and people is quoted before it is used anywhere.

mod check_run;
mod commentable;
mod keys;
mod publish;
mod pull_writes;
mod quoted;
mod recheck;
mod referee_text;
mod said_findings;
mod status_comment;
mod texts;
mod threads;

pub use check_run::{WrittenCheck, written_check};
pub use publish::{Publication, PublicationError, PublicationResult};
pub use recheck::{CLOSED, PublicationRecheck, SUPERSEDED};
