//! The result of the week, from GitHub and the store.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use canonry_domain::review::{FindingStatus, HiddenBy, ShownAs};
use canonry_domain::{AuditTally, ItemType, LessonKind};
use canonry_store::{FindingId, GraceState, TriageActionKind};
use canonry_testkit::samples::ALL;
use canonry_triage::PlanReport;
use serde::Serialize;

use crate::demo::{Demo, item};
use crate::week::{BRINDLE_REPO, TIDEPOOL_REPO, Week};
use crate::world::OWN;

#[derive(Debug, Default, Serialize)]
pub struct DemoOutcome {
    pub repositories: usize,
    pub issues: usize,
    pub pull_requests: usize,
    pub webhooks: u64,
    /// Issues of the week by what Canonry did about them.
    pub triage: TriageCounts,
    pub lessons: BTreeMap<&'static str, u64>,
    /// tidepool's threshold before and after the week; `None` is silent.
    pub threshold: [Option<u8>; 2],
    pub review: DemoReviewCounts,
    pub plan: PlanCounts,
    pub audit: AuditCounts,
    pub adjudicated: usize,
}

#[derive(Debug, Default, Serialize)]
pub struct TriageCounts {
    pub looked_at: usize,
    pub suggested: usize,
    pub closed_after_grace: usize,
    pub closed_by_ruling: usize,
    pub called_off: usize,
    pub waiting: usize,
    pub objections: usize,
}

#[derive(Debug, Default, Serialize)]
pub struct DemoReviewCounts {
    pub reviews: usize,
    pub remarks: usize,
    pub findings: usize,
    pub fixed: usize,
    pub moved: usize,
    pub dismissed: usize,
    pub hidden_by_feedback: usize,
}

#[derive(Debug, Default, Serialize)]
pub struct PlanCounts {
    pub id: Option<i64>,
    pub clusters: u64,
    pub close: usize,
    pub skip: usize,
}

#[derive(Debug, Default, Serialize)]
pub struct AuditCounts {
    pub sample_size: u64,
    pub tp: u64,
    pub fp: u64,
    #[serde(rename = "fn")]
    pub missed: u64,
    pub tn: u64,
}

impl From<AuditTally> for AuditCounts {
    fn from(tally: AuditTally) -> Self {
        Self { sample_size: tally.sample_size, tp: tally.tp, fp: tally.fp, missed: tally.missed, tn: tally.tn }
    }
}

impl PlanCounts {
    pub(crate) fn of(report: &PlanReport) -> Self {
        let close = report.rows.iter().filter(|row| row.skip.is_none()).count();
        Self {
            id: report.plan.map(|plan| plan.get()),
            clusters: report.clusters,
            close,
            skip: report.rows.len() - close,
        }
    }
}

pub(crate) async fn count(demo: &Demo, week: &Week) -> Result<DemoOutcome> {
    let mut outcome = DemoOutcome { repositories: ALL.len(), ..DemoOutcome::default() };
    for sample in &ALL {
        let world = demo.emulator.world();
        let (pulls, issues): (Vec<_>, Vec<_>) =
            world.get(sample.repo).issues.values().partition(|one| one.pull.is_some());
        outcome.issues += issues.len();
        outcome.pull_requests += pulls.len();
    }
    outcome.webhooks = demo.store.deliveries().counts().await?.iter().map(|(_, count)| count).sum();
    outcome.triage = triage(demo, week).await?;
    for (_, kind, count) in demo.store.learning().outcome_counts().await? {
        if kind != LessonKind::Unknown {
            *outcome.lessons.entry(kind.as_str()).or_default() += count;
        }
    }
    let thresholds = demo.store.learning().thresholds(demo.repo(TIDEPOOL_REPO).await?.id).await?;
    let configured = demo.store.learning().threshold_settings(demo.repo(TIDEPOOL_REPO).await?.id).await?.configured;
    let current = thresholds.repository.current.threshold();
    outcome.threshold = [Some(configured.get()), current.map(canonry_domain::Threshold::get)];
    outcome.review = review(demo).await?;
    Ok(outcome)
}

async fn triage(demo: &Demo, week: &Week) -> Result<TriageCounts> {
    let mut counted = TriageCounts { looked_at: week.arrived.len(), ..TriageCounts::default() };
    for (name, number, _) in week.arrived.values() {
        let repo = demo.repo(name).await?;
        let actions = demo.store.duplicates().triage_actions_of(repo.id, ItemType::Issue, item(*number)).await?;
        let said = actions.iter().any(|stored| stored.action.action == TriageActionKind::Commented);
        counted.suggested += usize::from(said);
        for grace in demo.store.close().graces_of_item(repo.id, ItemType::Issue, item(*number)).await? {
            match grace.state {
                GraceState::Waiting => counted.waiting += 1,
                GraceState::Closed if grace.approved_by.is_some() => counted.closed_by_ruling += 1,
                GraceState::Closed => counted.closed_after_grace += 1,
                GraceState::Cancelled | GraceState::Refused => counted.called_off += 1,
            }
        }
    }
    counted.objections = demo.store.close().objections(demo.repo(BRINDLE_REPO).await?.id).await?.len();
    Ok(counted)
}

async fn review(demo: &Demo) -> Result<DemoReviewCounts> {
    let repo = demo.repo(BRINDLE_REPO).await?;
    let mut reviews = demo.store.review().list(repo.id, None, 100).await?;
    reviews.reverse();
    let mut counted = DemoReviewCounts { reviews: reviews.len(), ..DemoReviewCounts::default() };
    let mut seen: BTreeSet<FindingId> = BTreeSet::new();
    let mut became: BTreeSet<(FindingId, &'static str)> = BTreeSet::new();
    for review in &reviews {
        for sighting in demo.store.review().sightings(review.id).await? {
            seen.insert(sighting.id);
            let word = match (sighting.status, sighting.shown, sighting.hidden_by) {
                (FindingStatus::Fixed, ..) => "fixed",
                (FindingStatus::Moved, ..) => "moved",
                (FindingStatus::Dismissed, ..) | (_, _, Some(HiddenBy::Dismissal)) => "dismissed",
                (_, ShownAs::Suppressed, Some(HiddenBy::Feedback)) => "hidden",
                _ => continue,
            };
            became.insert((sighting.id, word));
        }
    }
    let of = |word| became.iter().filter(|(_, became)| *became == word).count();
    counted.findings = seen.len();
    (counted.fixed, counted.moved) = (of("fixed"), of("moved"));
    (counted.dismissed, counted.hidden_by_feedback) = (of("dismissed"), of("hidden"));
    let world = demo.emulator.world();
    let pulls = world.get(BRINDLE_REPO).issues.values().filter(|issue| issue.pull.is_some());
    counted.remarks = pulls.map(|issue| world.review_comments_by(BRINDLE_REPO, issue.number, OWN).len()).sum();
    Ok(counted)
}
