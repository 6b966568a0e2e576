//! The invariants that are checked after the chaos.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{ItemNumber, ItemState, ItemType};
use canonry_store::{DeliveryFilter, DeliveryState, JobFilter, OutboxState, Repo, TriageActionKind};
use canonry_testkit::github::{EventKind, State};

use crate::chaos::kills::Aftermath;
use crate::chaos::life::{CANARY, OWN, REPOS};

/// More rows than any list has.
const ALL: u32 = 1_000_000;

pub(crate) async fn check(after: &Aftermath) {
    every_delivery_has_ended(after).await;
    let (mut spoken, mut learned) = (0, 0);
    for name in REPOS {
        let repo = after.store.repos().find(&name.parse().expect("a name")).await.expect("reads").expect("known");
        nothing_is_said_twice(after, name);
        spoken += what_was_said_is_there(after, &repo).await;
        the_store_knows_what_github_knows(after, &repo).await;
        let stored = after.store.learning().thresholds(repo.id).await.expect("reads");
        assert_eq!(stored, after.store.learning().recomputed_thresholds(repo.id).await.expect("reads"), "{name}");
        learned += stored.repository.counts.total;
    }
    assert!(learned >= after.expected.len() as u64, "{learned} of {}", after.expected.len());
    assert!(spoken >= after.expected.len(), "{spoken} of {}", after.expected.len());
    nothing_has_leaked(after);
}

async fn every_delivery_has_ended(after: &Aftermath) {
    let stored = after.store.deliveries().list(&DeliveryFilter::default(), ALL).await.expect("reads");
    let ids: BTreeSet<&str> = stored.iter().map(|delivery| delivery.id.as_str()).collect();
    let world = after.emulator.world();
    let made: BTreeSet<&str> = world.deliveries.iter().map(|delivery| delivery.guid.as_str()).collect();
    assert_eq!(ids, made);
    let mut dead = Vec::new();
    for delivery in &stored {
        let reason = delivery.reason.as_deref().unwrap_or_default();
        match delivery.state {
            DeliveryState::Done => {}
            DeliveryState::Ignored => assert!(!reason.is_empty(), "{delivery:?}"),
            DeliveryState::Dead => dead.push((&delivery.event, &delivery.action, reason)),
            DeliveryState::Queued => panic!("{delivery:?}"),
        }
    }
    let jobs = after.store.jobs().list(&JobFilter::default(), ALL).await.expect("reads");
    assert!(jobs.iter().any(|job| job.attempts > 1), "a kill has hit a job");
    assert!(dead.iter().all(|(.., reason)| !reason.is_empty()), "{dead:?}");
    // Ten tries take most of an hour, and the faults of this GitHub are not that frequent.
    assert!(dead.len() * 50 <= stored.len(), "{dead:?}");
}

/// At most one comment and one label on each issue, from all processes together.
fn nothing_is_said_twice(after: &Aftermath, repo: &str) {
    let world = after.emulator.world();
    for (&number, issue) in &world.get(repo).issues {
        let comments = world.comments_by(repo, number, OWN);
        assert!(comments.len() <= 1, "{repo}#{number}: {comments:?}");
        let count = |wanted: fn(&EventKind) -> bool| {
            issue.events.iter().filter(|event| event.actor == OWN && wanted(&event.kind)).count()
        };
        let labels = count(|kind| matches!(kind, EventKind::Labeled(_)));
        let unlabels = count(|kind| matches!(kind, EventKind::Unlabeled(_)));
        assert!(labels <= 1 && unlabels <= labels, "{repo}#{number}: {:?}", issue.events);
        let others = count(|kind| {
            !matches!(kind, EventKind::Labeled(_) | EventKind::Unlabeled(_) | EventKind::CrossReferenced { .. })
        });
        assert_eq!(others, 0, "{repo}#{number}: {:?}", issue.events);
    }
}

/// Each action recorded as commented has its comment, each comment has its record, and every expected report has a
/// comment. Returns the number of comments.
async fn what_was_said_is_there(after: &Aftermath, repo: &Repo) -> usize {
    let name = repo.name.to_string();
    let on_github: BTreeMap<u64, (usize, bool)> = {
        let world = after.emulator.world();
        let issues = world.get(&name).issues.values();
        let seen = |number: u64| world.comments_by(&name, number, OWN).len();
        issues.map(|issue| (issue.number, (seen(issue.number), is_labelled(&issue.labels)))).collect()
    };
    let mut spoken = 0;
    for (&number, &(comments, labelled)) in &on_github {
        let item = ItemNumber::new(i64::try_from(number).expect("small")).expect("positive");
        let actions = after.store.duplicates().triage_actions_of(repo.id, ItemType::Issue, item).await.expect("reads");
        let first = actions.iter().find(|stored| stored.action.action == TriageActionKind::Commented);
        let mut sent = 0;
        if let Some(key) = first.and_then(|first| first.action.comment_key.as_deref()) {
            let entry = after.store.outbox().of_key(key).await.expect("reads").expect("enqueued");
            match entry.state {
                OutboxState::Sent => sent = 1,
                // The issue was closed before the comment could be posted.
                OutboxState::Refused => assert!(entry.reason.is_some_and(|reason| !reason.is_empty()), "{key}"),
                state => panic!("{key} is {state:?}: {:?}", entry.reason),
            }
        }
        assert_eq!(comments, sent, "{name}#{number}: {actions:?}");
        spoken += sent;
        if after.expected.contains(&(name.clone(), number)) {
            assert_eq!((comments, labelled), (1, true), "{name}#{number} was planted: {actions:?}");
        }
    }
    spoken
}

fn is_labelled(labels: &[String]) -> bool {
    labels.iter().any(|label| label == "possible-duplicate")
}

/// In whatever order deliveries came, the store ends up with GitHub's state.
async fn the_store_knows_what_github_knows(after: &Aftermath, repo: &Repo) {
    let name = repo.name.to_string();
    let issues = after.emulator.world().get(&name).issues.clone();
    for (number, issue) in issues {
        let item = ItemNumber::new(i64::try_from(number).expect("small")).expect("positive");
        let stored = after.store.corpus().item(repo.id, ItemType::Issue, item).await.expect("reads").expect("taken in");
        let is_open = issue.state == State::Open;
        assert_eq!(
            (stored.title.as_str(), stored.state == ItemState::Open),
            (issue.title.as_str(), is_open),
            "{name}#{number}"
        );
        assert_eq!(Some(stored.body), issue.body, "{name}#{number}");
    }
}

/// Neither logs nor metrics contain a title, a body, a comment, a reason of the judge, a token or a secret.
fn nothing_has_leaked(after: &Aftermath) {
    let world = after.emulator.world();
    let tokens = world.tokens.keys().map(String::as_str);
    let key = canonry_testkit::github::TEST_APP_PRIVATE_KEY.lines().nth(1).expect("a key has lines");
    let hidden: Vec<&str> = [CANARY, "Bearer ", "eyJ", key].into_iter().chain(tokens).collect();
    for (what, text) in &after.told {
        for hidden in &hidden {
            if let Some(at) = text.find(hidden) {
                let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
                let end = text[at..].find('\n').map_or(text.len(), |line| at + line);
                panic!("{what} holds {hidden:?}: {}", &text[start..end]);
            }
        }
    }
    assert!(after.now > world.get(REPOS[0]).created_at, "the clock has run");
}
