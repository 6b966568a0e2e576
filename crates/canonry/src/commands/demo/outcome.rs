//! What the week came to, as GitHub and the store tell it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use canonry_domain::review::{FindingStatus, HiddenBy, ShownAs};
use canonry_domain::{AuditTally, ItemType, LessonKind};
use canonry_store::{FindingId, GraceState, TriageActionKind};
use canonry_testkit::samples::ALL;
use canonry_triage::PlanReport;
use serde::Serialize;

use super::running::{Running, item};
use super::story::{B, T, Week};
use super::world::OWN;

/// The counters of the demo.
#[derive(Debug, Default, Serialize)]
pub(super) struct Outcome {
    pub(super) repositories: usize,
    pub(super) issues: usize,
    pub(super) pull_requests: usize,
    pub(super) webhooks: u64,
    /// Issues of the week by what Canonry did about them.
    pub(super) triage: Triage,
    pub(super) lessons: BTreeMap<&'static str, u64>,
    /// tidepool's threshold before and after the week; `None` is silence.
    pub(super) threshold: [Option<u8>; 2],
    pub(super) review: Review,
    pub(super) plan: Plan,
    pub(super) audit: Audit,
    pub(super) adjudicated: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Triage {
    pub(super) looked_at: usize,
    pub(super) suggested: usize,
    pub(super) closed_after_grace: usize,
    pub(super) closed_by_ruling: usize,
    pub(super) called_off: usize,
    pub(super) waiting: usize,
    pub(super) objections: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Review {
    pub(super) reviews: usize,
    pub(super) remarks: usize,
    pub(super) findings: usize,
    pub(super) fixed: usize,
    pub(super) moved: usize,
    pub(super) dismissed: usize,
    pub(super) hidden_by_feedback: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Plan {
    pub(super) id: Option<i64>,
    pub(super) clusters: u64,
    pub(super) close: usize,
    pub(super) skip: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Audit {
    pub(super) sample_size: u64,
    pub(super) tp: u64,
    pub(super) fp: u64,
    #[serde(rename = "fn")]
    pub(super) missed: u64,
    pub(super) tn: u64,
}

impl From<AuditTally> for Audit {
    fn from(tally: AuditTally) -> Self {
        Self { sample_size: tally.sample_size, tp: tally.tp, fp: tally.fp, missed: tally.missed, tn: tally.tn }
    }
}

impl Plan {
    pub(super) fn of(report: &PlanReport) -> Self {
        let close = report.rows.iter().filter(|row| row.skip.is_none()).count();
        Self {
            id: report.plan.map(|plan| plan.get()),
            clusters: report.clusters,
            close,
            skip: report.rows.len() - close,
        }
    }
}

pub(super) async fn count(demo: &Running, week: &Week) -> Result<Outcome> {
    let mut outcome = Outcome { repositories: ALL.len(), ..Outcome::default() };
    for sample in &ALL {
        let world = demo.emulator.world();
        let (pulls, issues): (Vec<_>, Vec<_>) =
            world.get(sample.repo).issues.values().partition(|one| one.pull.is_some());
        outcome.issues += issues.len();
        outcome.pull_requests += pulls.len();
    }
    outcome.webhooks = demo.store.delivery_counts().await?.iter().map(|(_, count)| count).sum();
    outcome.triage = triage(demo, week).await?;
    for (_, kind, count) in demo.store.outcome_counts().await? {
        if kind != LessonKind::Unknown {
            *outcome.lessons.entry(kind.as_str()).or_default() += count;
        }
    }
    let thresholds = demo.store.thresholds(demo.repo(T).await?.id).await?;
    let configured = demo.store.threshold_settings(demo.repo(T).await?.id).await?.configured;
    let current = thresholds.repository.current.threshold();
    outcome.threshold = [Some(configured.get()), current.map(canonry_domain::Threshold::get)];
    outcome.review = review(demo).await?;
    Ok(outcome)
}

async fn triage(demo: &Running, week: &Week) -> Result<Triage> {
    let mut counted = Triage { looked_at: week.arrived.len(), ..Triage::default() };
    for (name, number, _) in week.arrived.values() {
        let repo = demo.repo(name).await?;
        let actions = demo.store.triage_actions_of(repo.id, ItemType::Issue, item(*number)).await?;
        let said = actions.iter().any(|stored| stored.action.action == TriageActionKind::Commented);
        counted.suggested += usize::from(said);
        for grace in demo.store.graces_of(repo.id, ItemType::Issue, item(*number)).await? {
            match grace.state {
                GraceState::Waiting => counted.waiting += 1,
                GraceState::Closed if grace.approved_by.is_some() => counted.closed_by_ruling += 1,
                GraceState::Closed => counted.closed_after_grace += 1,
                GraceState::Cancelled | GraceState::Refused => counted.called_off += 1,
            }
        }
    }
    counted.objections = demo.store.objections(demo.repo(B).await?.id).await?.len();
    Ok(counted)
}

async fn review(demo: &Running) -> Result<Review> {
    let repo = demo.repo(B).await?;
    let mut reviews = demo.store.reviews(repo.id, None, 100).await?;
    reviews.reverse();
    let mut counted = Review { reviews: reviews.len(), ..Review::default() };
    let mut seen: BTreeSet<FindingId> = BTreeSet::new();
    let mut became: BTreeSet<(FindingId, &'static str)> = BTreeSet::new();
    for review in &reviews {
        for sighting in demo.store.review_sightings(review.id).await? {
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
    let pulls = world.get(B).issues.values().filter(|issue| issue.pull.is_some());
    counted.remarks = pulls.map(|issue| world.review_comments_by(B, issue.number, OWN).len()).sum();
    Ok(counted)
}
