//! Defines the caller's last check of live state before something is sent.

use canonry_store::OutboxEntry;
use futures_util::future::{BoxFuture, ready};
use jiff::Timestamp;

use super::progress::Act;

/// Whether a write still makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    Proceed,
    /// It does not; nothing more is sent, and a comment that was sent already is corrected.
    Refuse {
        /// One word or sentence, such as `drift:source_edited`.
        reason: String,
    },
    /// It will, but not yet. Waiting does not count as a try, however long it takes.
    Wait {
        /// When to ask again.
        until: Timestamp,
        reason: String,
    },
}

/// Why a check failed. Nothing is sent until it succeeds. If GitHub's limit or an outage is the reason, the error or
/// one of its sources must be the [`GitHubError`](crate::GitHubError): such a wait does not count as a try.
pub type RecheckError = Box<dyn std::error::Error + Send + Sync>;

/// Reads live state again right before each send.
pub trait Recheck: Send + Sync {
    /// Rules on the next act of an entry: its comment ([`Act::Comment`]), the draft of its review ([`Act::Draft`]) or
    /// the change itself ([`Act::Set`]). Our own corrections are sent without a check.
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>>;
}

/// For writes that are valid whatever has changed meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unconditional;

impl Recheck for Unconditional {
    fn recheck<'a>(&'a self, _: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(ready(Ok(Ruling::Proceed)))
    }
}
