//! A console whose repository, jobs and deliveries are full of strangers' texts.

use std::collections::BTreeMap;
use std::ops::Deref;

use canonry_console::ConsoleParts;
use canonry_domain::{ItemRecord, ItemState, ItemType, Login, OverrideKind, Verdict};
use canonry_github::Clock as _;
use canonry_store::{
    DeliveryAction, JobCaps, JobEnd, JobId, JobKind, JobLease, JobScope, MaintainerSource, NewConsoleAction,
    NewDelivery, NewGrace, NewJob, NewOverride, NewTriageRecord, PackedText, Repo, Representation, Store,
};
use jiff::{SignedDuration, Timestamp};
use reqwest::Response;
use serde_json::json;

use crate::world::items::{grace, plain_record, ruling};
use crate::world::{ConsoleWorld, HOSTILE, ISSUE, REPO, Who, number, text};

pub(crate) const DELIVERY: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";

pub(crate) const EVERYBODY: [Who; 5] = [Who::Operator, Who::Mona, Who::Rita, Who::Stranger, Who::Nobody];

/// Its paths begin at the root.
pub(crate) struct ServiceWorld {
    world: ConsoleWorld,
    pub(crate) dead: JobId,
}

impl Deref for ServiceWorld {
    type Target = ConsoleWorld;

    fn deref(&self) -> &ConsoleWorld {
        &self.world
    }
}

impl ServiceWorld {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut ConsoleParts)) -> Self {
        let world = ConsoleWorld::with(adjust).await;
        let dead = fill(&world.store, &world.repo, world.now).await;
        Self { world, dead }
    }

    pub(crate) async fn ask(&self, who: Who, path: &str) -> Response {
        self.get(who, path).send().await.expect("answered")
    }

    pub(crate) async fn page(&self, who: Who, path: &str) -> String {
        text(self.ask(who, path).await).await
    }

    /// Sends a form with this token, from a page at `origin`.
    pub(crate) async fn send(
        &self,
        who: Who,
        path: &str,
        csrf: Option<&str>,
        origin: &str,
        fields: &[(&str, &str)],
    ) -> Response {
        self.form(who, path, csrf, origin, fields).send().await.expect("answered")
    }

    /// Makes a job fail that was just queued.
    pub(crate) async fn give_up(&self, job: JobId) {
        let (now, caps) = (self.clock.now(), JobCaps { per_repo: 9, in_all: 9 });
        let lease = self.store.jobs().lease("w", caps, JobScope::All, now, now + SignedDuration::from_secs(60)).await;
        assert_eq!(lease.expect("leases").expect("due").id, job);
        let ended = self.store.jobs().end(JobLease { id: job, owner: "w" }, JobEnd::Dead("no"), now).await;
        assert!(ended.expect("ends"));
    }

    /// Stores a webhook about a repository with this id under the usual name.
    pub(crate) async fn deliver(&self, delivery: &str, repo_id: i64, is_ignored: bool) {
        let repository = json!({ "id": repo_id, "full_name": REPO });
        let body = PackedText::pack(&json!({ "action": "opened", "repository": repository }).to_string());
        let (key, payload) = (format!("repo/{repo_id}#7"), json!({ "event": "issues" }));
        let job = NewJob { key: &key, repo: Some(&self.repo.name), kind: JobKind::Webhook, payload: &payload };
        let delivery = NewDelivery {
            id: delivery,
            event: "issues",
            action: Some("opened"),
            repo: Some(&self.repo.name),
            number: Some(number(7)),
            payload: &body,
            fate: if is_ignored { DeliveryAction::Ignored("of no use") } else { DeliveryAction::Job(job) },
        };
        self.store.deliveries().accept(&delivery, self.clock.now()).await.expect("accepted");
    }

    pub(crate) async fn press(&self, who: Who, path: &str, fields: &[(&str, &str)]) -> Response {
        let csrf = self.csrf(who).await;
        self.send(who, path, Some(&csrf), &self.address, fields).await
    }
}

/// Items with hostile titles, verdicts, a cluster, a ruling, an announced close, jobs, a delivery, a file with an
/// error.
async fn fill(store: &Store, repo: &Repo, now: Timestamp) -> JobId {
    let issue = ISSUE;
    let mut records: Vec<_> =
        (1..=60).map(|of| ItemRecord::new(issue, number(of), format!("Issue {of} {HOSTILE}"))).collect();
    records.push(ItemRecord::new(ItemType::Pr, number(61), "A fix"));
    for record in &mut records {
        record.labels = Some(vec![HOSTILE.to_owned()]);
        record.state = Some(if record.number.get() == 2 { ItemState::Closed } else { ItemState::Open });
    }
    store.corpus().upsert_items(repo, records, now).await.expect("taken in");
    let record =
        NewTriageRecord { reasoning: HOSTILE.to_owned(), ..plain_record(7, Verdict::Duplicate, Some(3), 0.93) };
    let triage = store.duplicates().write_triage_record(repo.id, &record, now).await.expect("written");
    let canonicals = BTreeMap::from([(number(3), number(3)), (number(7), number(3))]);
    store.duplicates().set_canonicals(repo.id, issue, Representation::Raw, &canonicals, now).await.expect("written");
    let grace = NewGrace { triage_id: Some(triage), ..grace(7, 3, now, 72) };
    store.close().begin_grace(repo.id, &grace).await.expect("begun");
    let mona: Login = "mona".parse().expect("a login");
    let ruling = NewOverride { note: Some(HOSTILE), by: Some(&mona), ..ruling(OverrideKind::NotDuplicate, 8, Some(9)) };
    store.duplicates().add_override(repo.id, ruling, now).await.expect("ruled");
    store.repos().set_maintainers(repo.id, MaintainerSource::Github, &[mona], now).await.expect("written");
    // One error, in another section than the mode.
    let file = format!("# {HOSTILE}\ntriage:\n  mode: grace\nmentions:\n  handle: '{}'\n", HOSTILE.replace('\'', "''"));
    store.repos().write_settings(repo.id, Some(&file), now).await.expect("written");
    let action =
        NewConsoleAction { by: None, is_operator: true, repo: Some(repo.id), action: "pause", subject: HOSTILE };
    store.console().record_action(&action, now).await.expect("written");
    jobs(store, repo, now).await
}

/// A delivery whose job failed, and a job about no repository.
async fn jobs(store: &Store, repo: &Repo, now: Timestamp) -> JobId {
    let id = repo.github_id.expect("identified").0;
    let (issue, repository) = (json!({ "number": 7, "title": HOSTILE }), json!({ "id": id, "full_name": REPO }));
    let body = PackedText::pack(&json!({ "action": "opened", "issue": issue, "repository": repository }).to_string());
    let (key, repo) = (format!("repo/{id}#7"), &repo.name);
    let payload = json!(null);
    let job = NewJob { key: &key, repo: Some(repo), kind: JobKind::Webhook, payload: &payload };
    let delivery = NewDelivery {
        id: DELIVERY,
        event: "issues",
        action: Some("opened"),
        repo: Some(repo),
        number: Some(number(7)),
        payload: &body,
        fate: DeliveryAction::Job(job),
    };
    store.deliveries().accept(&delivery, now).await.expect("accepted");
    let caps = JobCaps { per_repo: 9, in_all: 9 };
    let lease = store.jobs().lease("w", caps, JobScope::All, now, now + SignedDuration::from_secs(60)).await;
    let job = lease.expect("leases").expect("due");
    let ended = store.jobs().end(JobLease { id: job.id, owner: "w" }, JobEnd::Dead(HOSTILE), now).await;
    assert!(ended.expect("ends"));
    let recover = NewJob { key: "recover", repo: None, kind: JobKind::Recover, payload: &payload };
    store.jobs().enqueue(&recover, now + SignedDuration::from_hours(1), now).await.expect("queued");
    job.id
}
