//! A console whose repository has a plan.

use std::ops::Deref;

use canonry_domain::{ItemRecord, ItemState, Probability, RowSnapshot, SkipReason, TargetPolicy};
use canonry_store::{
    CloseOutcome, CloseResult, CloseRunId, CloseRunRow, Job, JobFilter, MaintainerSource, NewPlan, NewPlanRow,
    Representation,
};
use jiff::SignedDuration;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::world::{ConsoleWorld, HOSTILE, ISSUE, REPO, Who, number};

/// An error that the texts of duplicates share.
pub(crate) const SHARED: &str = "error: lock_file <could> not be \"opened here\" at";

pub(crate) struct PlanWorld {
    world: ConsoleWorld,
    pub(crate) plan: CloseRunId,
}

impl Deref for PlanWorld {
    type Target = ConsoleWorld;

    fn deref(&self) -> &ConsoleWorld {
        &self.world
    }
}

impl PlanWorld {
    /// Issues 2, 3 and 5 would be closed as duplicates of 1 and 4, and 6 is pinned.
    pub(crate) async fn new() -> Self {
        let planned = Self::without_maintainers().await;
        let maintainers = ["mona".parse().expect("a login")];
        let (repo, now) = (planned.repo.id, planned.now);
        planned.store.repos().set_maintainers(repo, MaintainerSource::Set, &maintainers, now).await.expect("set");
        planned
    }

    /// The same without known maintainers.
    pub(crate) async fn without_maintainers() -> Self {
        let world = ConsoleWorld::new().await;
        let (store, repo) = (&world.store, &world.repo);
        store
            .corpus()
            .upsert_items(repo, (1..=6).map(|of| issue(of, &body(of))).collect(), world.now)
            .await
            .expect("taken in");
        let mut planned = Self { world, plan: CloseRunId::new(0) };
        planned.plan = planned.planned(SignedDuration::ZERO).await;
        planned
    }

    /// A plan that was made this long ago.
    pub(crate) async fn planned(&self, ago: SignedDuration) -> CloseRunId {
        let mut rows = Vec::new();
        for (of, target, skip) in [(2, 1, None), (3, 1, None), (5, 4, None), (6, 4, Some(SkipReason::Pinned))] {
            let items = self
                .store
                .corpus()
                .items_by_number(self.repo.id, ISSUE, &[number(of), number(target)])
                .await
                .expect("reads");
            let item = |of| items.iter().find(|item| item.number == number(of)).expect("stored");
            rows.push(NewPlanRow {
                skip,
                evidence: evidence(skip.is_none()),
                snapshot: serde_json::to_value(RowSnapshot::of(item(of), item(target))).expect("plain data"),
                ..plan_row(of, target)
            });
        }
        self.store.plans().create(self.repo.id, &plan_header("planning"), &rows, self.now - ago).await.expect("planned")
    }

    /// The plan as if it had been applied: 2 closed, 3 skipped, 5 not reached.
    pub(crate) async fn applied(&self) {
        let run =
            self.store.plans().begin_apply(self.plan, "applying", self.now).await.expect("begun").expect("a plan").id;
        for (of, outcome, reason) in [
            (2, CloseOutcome::Applied { objected: false }, None),
            (3, CloseOutcome::Skipped, Some("drift:source_edited")),
        ] {
            let result = CloseResult { outcome, reason, outbox_key: None };
            let is_recorded = self.store.plans().record_close_result(run, ISSUE, number(of), result, self.now).await;
            assert!(is_recorded.expect("recorded"));
        }
    }

    pub(crate) fn path(&self, tail: &str) -> String {
        format!("/plans/{}{tail}", self.plan)
    }

    /// A request as htmx sends it from the review of the plan.
    fn by_htmx(&self, request: RequestBuilder) -> RequestBuilder {
        let here = format!("{}/r/{REPO}{}?show=undecided", self.address, self.path(""));
        request.header("hx-request", "true").header("hx-current-url", here)
    }

    /// Requests the replacement of an element, as htmx does.
    pub(crate) async fn swap(&self, who: Who, path: &str, target: &str) -> String {
        let request = self.get(who, &format!("/r/{REPO}{path}")).header("hx-target", target);
        self.by_htmx(request).send().await.expect("answered").text().await.expect("a part")
    }

    pub(crate) async fn ask(&self, who: Who, path: &str, is_htmx: bool) -> Response {
        let request = self.get(who, &format!("/r/{REPO}{path}"));
        let request = if is_htmx { self.by_htmx(request) } else { request };
        request.send().await.expect("answered")
    }

    /// Sends a form as a browser does, with the token of a page.
    pub(crate) async fn send(&self, who: Who, path: &str, fields: &[(&str, &str)], is_htmx: bool) -> Response {
        let token = self.csrf(who).await;
        self.send_with(who, path, &token, fields, is_htmx).await
    }

    pub(crate) async fn send_with(
        &self,
        who: Who,
        path: &str,
        csrf: &str,
        fields: &[(&str, &str)],
        is_htmx: bool,
    ) -> Response {
        let request = self.form(who, &format!("/r/{REPO}{path}"), Some(csrf), &self.address, fields);
        let request = if is_htmx { self.by_htmx(request) } else { request };
        request.send().await.expect("answered")
    }

    pub(crate) async fn rows(&self) -> Vec<CloseRunRow> {
        self.store.plans().rows(self.plan).await.expect("reads")
    }

    /// Each close row with its decision and the person who decided.
    pub(crate) async fn words(&self) -> Vec<(i64, Option<bool>, Option<String>)> {
        let rows = self.rows().await.into_iter().filter(|row| row.skip.is_none());
        rows.map(|row| (row.number.get(), row.approved, row.approved_by.map(|by| by.to_string()))).collect()
    }

    pub(crate) async fn jobs(&self) -> Vec<Job> {
        self.store.jobs().list(&JobFilter::default(), 10).await.expect("reads")
    }
}

pub(crate) fn plan_header(run_id: &str) -> NewPlan<'_> {
    NewPlan {
        representation: Representation::Raw,
        target_policy: TargetPolicy::CanonicalOnly,
        min_close: Probability::new(0.9).expect("valid"),
        config_hash: "c",
        run_id,
    }
}

/// A row that closes an issue as a duplicate of another.
pub(crate) fn plan_row(of: i64, target: i64) -> NewPlanRow {
    NewPlanRow {
        item_type: ISSUE,
        number: number(of),
        target: Some(number(target)),
        skip: None,
        confidence: Probability::new(0.97).ok(),
        evidence: json!({}),
        snapshot: json!({}),
    }
}

pub(crate) fn issue(of: i64, body: &str) -> ItemRecord {
    ItemRecord {
        body: Some(body.to_owned()),
        state: Some(ItemState::Open),
        author: Some("someone".parse().expect("a login")),
        assignees: Some(Vec::new()),
        ..ItemRecord::new(ISSUE, number(of), format!("=HYPERLINK({of}) {HOSTILE}"))
    }
}

/// The same error in each, with other numbers.
pub(crate) fn body(of: i64) -> String {
    format!("What I did in {of}: {HOSTILE}\n\n{SHARED} 0x{of}{of}{of}{of}\n")
}

fn evidence(closes: bool) -> Value {
    match closes {
        true => {
            json!({ "facts": ["both show it"], "reasoning": format!("They fail alike. {HOSTILE}"), "path": { "through": 4 }, "repoint": [] })
        }
        false => json!({}),
    }
}
