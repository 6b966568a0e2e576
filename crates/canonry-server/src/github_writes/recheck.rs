//! The last check before a write: whether a maintainer paused Canonry, and whether the text is still right.

use canonry_domain::{WriteArea, WriteKind};
use canonry_github::GitHub;
use canonry_github::outbox::{Act, Recheck, RecheckError, Ruling};
use canonry_review::PublicationRecheck;
use canonry_store::{BrakeKind, OutboxEntry, Store};
use canonry_triage::TriageRecheck;
use futures_util::future::BoxFuture;
use jiff::SignedDuration;

/// How often a paused write is rechecked.
pub(crate) const PAUSED_FOR: SignedDuration = SignedDuration::from_mins(5);

/// How soon a write is rechecked if it waits for a close or reopen that another task performs.
const CLOSED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Rechecks every write of the service, according to its area.
#[derive(Clone)]
pub(crate) struct ServiceRecheck {
    store: Store,
    github: GitHub,
}

impl ServiceRecheck {
    pub(crate) fn new(store: Store, github: GitHub) -> Self {
        Self { store, github }
    }

    async fn rule(&self, entry: &OutboxEntry, act: Act) -> Result<Ruling, RecheckError> {
        let is_close = matches!(entry.kind, WriteKind::Close | WriteKind::Reopen);
        let area = entry.source.origin.area();
        // A person who pauses Canonry or asks why it is silent gets an answer.
        if (is_close || area != WriteArea::Mention)
            && self.store.close().brake_in_force(entry.repo.id, BrakeKind::Pause).await?.is_some()
        {
            return Ok(Ruling::Wait { until: self.github.now() + PAUSED_FOR, reason: "paused".to_owned() });
        }
        let (store, github) = (self.store.clone(), self.github.clone());
        match area {
            // The task that closes or reopens has its own check and acts soon, so the publisher uses up no try.
            _ if is_close => {
                let reason = format!("another write to this item ({}) comes first", entry.key);
                Ok(Ruling::Wait { until: self.github.now() + CLOSED_WITHIN, reason })
            }
            WriteArea::Triage => TriageRecheck::new(store, github).recheck(entry, act).await,
            WriteArea::Review => PublicationRecheck { store, github }.recheck(entry, act).await,
            WriteArea::Mention | WriteArea::Breaker | WriteArea::Closing | WriteArea::Other => Ok(Ruling::Proceed),
        }
    }
}

impl Recheck for ServiceRecheck {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(self.rule(entry, act))
    }
}
