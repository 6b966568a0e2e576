//! The last look before the service writes something: whether a person paused it, and whether what is to be said still holds.

use canonry_github::GitHub;
use canonry_github::outbox::{Act, Recheck, RecheckError, Ruling};
use canonry_review::PublicationRecheck;
use canonry_store::{BrakeKind, OutboxEntry, Store};
use canonry_triage::TriageRecheck;
use futures_util::future::BoxFuture;
use jiff::SignedDuration;

/// How often is looked whether a pause is over.
pub(crate) const PAUSED_FOR: SignedDuration = SignedDuration::from_mins(5);

/// How often is looked whether a close or its undoing, which somebody else sees through, is over.
const CLOSED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Rules on whatever the service has to say, by what it is about.
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
        let about = WriteSubject::of(entry);
        // Who pauses Canonry, or asks why it is silent, gets an answer.
        if about != WriteSubject::Mention
            && self.store.close().brake_in_force(entry.repo.id, BrakeKind::Pause).await?.is_some()
        {
            return Ok(Ruling::Wait { until: self.github.now() + PAUSED_FOR, reason: "paused".to_owned() });
        }
        let (store, github) = (self.store.clone(), self.github.clone());
        match about {
            WriteSubject::Triage => TriageRecheck::new(store, github).recheck(entry, act).await,
            WriteSubject::Review => PublicationRecheck { store, github }.recheck(entry, act).await,
            WriteSubject::Mention | WriteSubject::Other => Ok(Ruling::Proceed),
            // Whoever closes or reopens has a check of their own for it, and does so soon: no try is used up for them.
            WriteSubject::Close => {
                let reason = format!("{} of this item comes first", entry.key);
                Ok(Ruling::Wait { until: self.github.now() + CLOSED_WITHIN, reason })
            }
        }
    }
}

impl Recheck for ServiceRecheck {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(self.rule(entry, act))
    }
}

/// What an entry is about, by its kind and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteSubject {
    Triage,
    Review,
    Mention,
    Close,
    Other,
}

impl WriteSubject {
    fn of(entry: &OutboxEntry) -> Self {
        Self::named(&entry.kind, &entry.key)
    }

    fn named(kind: &str, key: &str) -> Self {
        match key {
            _ if matches!(kind, "close" | "reopen") => Self::Close,
            key if key.starts_with("triage") => Self::Triage,
            key if key.starts_with("review/") => Self::Review,
            key if key.starts_with("mention/") => Self::Mention,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WriteSubject;

    #[test]
    fn a_key_says_who_rules_and_a_close_is_nobodys_but_its_own() {
        for (kind, key, about) in [
            ("comment", "triage:1:issue:7:comment:3", WriteSubject::Triage),
            ("review", "review/9#7/post/4", WriteSubject::Review),
            ("check_run", "review/9#7/check/4-1", WriteSubject::Review),
            ("react", "mention/9#7/issue/5", WriteSubject::Mention),
            ("comment", "brake/9#7/3", WriteSubject::Other),
            ("comment", "close/1/7", WriteSubject::Other),
            ("close", "close/1/7", WriteSubject::Close),
            ("reopen", "mention/9#7/issue/5", WriteSubject::Close),
        ] {
            assert_eq!(WriteSubject::named(kind, key), about, "{kind} {key}");
        }
    }
}
