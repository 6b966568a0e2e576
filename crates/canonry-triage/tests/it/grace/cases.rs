//! Suggestions that announce a close, and the sweeps that apply it.

use canonry_config::parse_bytes;
use canonry_domain::{Extractor, ItemNumber, ItemType, Probability, TriageMode};
use canonry_github::GitHub;
use canonry_github::outbox::Outbox;
use canonry_models::chat::TokenBudget;
use canonry_store::{Grace, GraceState, MaintainerSource};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{EventKind, State, World};
use canonry_triage::{
    Detectors, EmbedSource, GraceError, GraceOutcome, GraceParts, GraceRules, IndexCache, Judge,
    begin_announced_graces, close_due_grace, close_due_grace_by_index, post_ended_graces,
};

use jiff::Timestamp;

use crate::triage::setting::{ALPHA, OWN, REPO, Setting, plain};

pub(crate) const FILE: &str = ".canonry.yml";
pub(crate) const GRACE: &str = "triage: {mode: grace, excludeLabels: [question]}\n";
/// The text with which a suggestion announces a close.
pub(crate) const ANNOUNCED: &str = "so it will be **closed on ";

/// A repository whose settings say `grace`.
pub(crate) async fn in_grace(database: TestDatabase) -> Setting {
    let mut setting = Setting::new(database).await;
    setting.rules.mode = TriageMode::Grace;
    setting.rules.grace = Some(GraceRules {
        hours: 72,
        min_close: Probability::new(0.9).expect("a probability"),
        protected_labels: vec!["security".to_owned()],
    });
    setting.emulator.world().get_mut(REPO).file(FILE, GRACE);
    let maintainers = ["maint".parse().expect("a login")];
    let now = setting.now();
    setting
        .store
        .repos()
        .set_maintainers(setting.repo.id, MaintainerSource::Set, &maintainers, now)
        .await
        .expect("stored");
    setting
}

/// A person reports the first original again, and the suggestion announces a close.
pub(crate) async fn announced(setting: &Setting) -> ItemNumber {
    let item = setting.report(ALPHA, 0.95);
    setting.triage(item).await;
    begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
    let grace = grace(setting, item).await;
    assert_eq!((grace.state, grace.target.get()), (GraceState::Waiting, 1));
    assert!(said(setting, item).contains(ANNOUNCED), "{}", said(setting, item));
    item
}

/// Lets people act, two hours later.
pub(crate) fn meanwhile<T>(setting: &Setting, act: impl FnOnce(&mut World) -> T) -> T {
    setting.later(2);
    act(&mut setting.emulator.world())
}

/// The last grace period of an item.
pub(crate) async fn grace(setting: &Setting, item: ItemNumber) -> Grace {
    let mut graces = setting.store.close().graces_of_item(setting.repo.id, ItemType::Issue, item).await.expect("reads");
    assert!(!graces.is_empty(), "#{item} has no grace");
    graces.remove(0)
}

/// Closes everything that is due, and publishes the comments about it.
pub(crate) async fn sweep(setting: &Setting) -> Vec<(ItemNumber, GraceOutcome)> {
    let github = setting.github();
    let outbox = setting.outbox().await;
    let swept = try_sweep(setting, &github, &outbox).await.expect("swept");
    setting.publish().await;
    swept
}

/// Like `sweep`, with a hosted model as the judge.
pub(crate) async fn sweep_with_hosted_model(setting: &Setting) -> Vec<(ItemNumber, GraceOutcome)> {
    let (github, outbox) = (setting.github(), setting.outbox().await);
    let now = setting.now();
    let swept = try_sweep_judged(setting, &github, &outbox, now, Extractor::OpenAi, None).await.expect("swept");
    setting.publish().await;
    swept
}

/// Like `sweep`, for a service that keeps its indexes in memory.
pub(crate) async fn sweep_by_index(setting: &Setting, indexes: &IndexCache) -> Vec<(ItemNumber, GraceOutcome)> {
    let (github, outbox, now) = (setting.github(), setting.outbox().await, setting.now());
    let swept = try_sweep_judged(setting, &github, &outbox, now, Extractor::Local, Some(indexes)).await;
    setting.publish().await;
    swept.expect("swept")
}

pub(crate) async fn try_sweep(
    setting: &Setting,
    github: &GitHub,
    outbox: &Outbox,
) -> Result<Vec<(ItemNumber, GraceOutcome)>, GraceError> {
    try_sweep_at(setting, github, outbox, setting.now()).await
}

/// Like `try_sweep`, for a service whose clock shows `now`.
pub(crate) async fn try_sweep_at(
    setting: &Setting,
    github: &GitHub,
    outbox: &Outbox,
    now: Timestamp,
) -> Result<Vec<(ItemNumber, GraceOutcome)>, GraceError> {
    try_sweep_judged(setting, github, outbox, now, Extractor::Local, None).await
}

async fn try_sweep_judged(
    setting: &Setting,
    github: &GitHub,
    outbox: &Outbox,
    now: Timestamp,
    provider: Extractor,
    indexes: Option<&IndexCache>,
) -> Result<Vec<(ItemNumber, GraceOutcome)>, GraceError> {
    let store = &setting.store;
    begin_announced_graces(store, Some(outbox), now).await?;
    post_ended_graces(store, outbox, now).await?;
    let (chat, embedder) = (setting.chat(), setting.embedder());
    let judge = Judge::Model { provider, model: &chat };
    let detectors = Detectors { github: None, embedder: &embedder, extractor: None, judge, snapshots: None, indexes };
    let key = ("main".to_owned(), FILE.to_owned());
    let text = setting.emulator.world().get(REPO).files.get(&key).cloned().unwrap_or_default();
    let config = parse_bytes(text.as_ref());
    let mut outcomes = Vec::new();
    for grace in store.close().waiting_graces(Some(setting.repo.id)).await? {
        if grace.due_at > now {
            continue;
        }
        let (budget, run_id) = (TokenBudget::default(), setting.run_id());
        let parts = GraceParts {
            store,
            github,
            outbox,
            judge,
            budget: &budget,
            source: EmbedSource::Raw,
            config: &config,
            run_id: &run_id,
        };
        let outcome = match indexes {
            Some(_) => close_due_grace_by_index(parts, detectors, &grace).await?,
            None => close_due_grace(parts, &grace).await?,
        };
        outcomes.push((grace.number, outcome));
    }
    Ok(outcomes)
}

/// The text of the suggestion on an item.
pub(crate) fn said(setting: &Setting, item: ItemNumber) -> String {
    setting.comments(item).first().cloned().unwrap_or_default()
}

pub(crate) fn is_open(setting: &Setting, item: ItemNumber) -> bool {
    setting.emulator.world().issue(REPO, plain(item)).state == State::Open
}

pub(crate) fn closes(setting: &Setting, item: ItemNumber) -> usize {
    let world = setting.emulator.world();
    let ours =
        |event: &&canonry_testkit::github::Event| event.actor == OWN && matches!(event.kind, EventKind::Closed { .. });
    world.issue(REPO, plain(item)).events.iter().filter(ours).count()
}

/// Asserts that the item is closed once as a duplicate of the first original, with one comment.
pub(crate) fn assert_closed(setting: &Setting, item: ItemNumber, context: &str) {
    let comments = setting.comments(item);
    let told = comments.iter().filter(|comment| comment.starts_with("Closed as a duplicate; please follow #1")).count();
    assert_eq!((is_open(setting, item), closes(setting, item), told), (false, 1, 1), "{context}: {comments:?}");
    assert_eq!(comments.len(), 2, "{context}: {comments:?}");
    let world = setting.emulator.world();
    let issue = world.issue(REPO, plain(item));
    assert_eq!(issue.duplicate_of, Some(world.issue(REPO, 1).id), "{context}");
}
