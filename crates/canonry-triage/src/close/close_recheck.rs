//! The checks right before a write: whether a close, or the undo of a close, is still valid.

use std::collections::BTreeSet;

use canonry_domain::{
    DriftKind, ItemNumber, Maintainers, Override, OverrideKind, RepoName, RowRefusal, RowSnapshot, Rulings, SkipReason,
    WriteArea, WriteKind, drift,
};
use canonry_github::api::RestIssue;
use canonry_github::outbox::{Act, Close, CloseAs, Recheck, RecheckError, Ruling, Write};
use canonry_github::{FactError, GitHubError};
use canonry_store::{BrakeKind, CloseRun, OutboxEntry, StoreError};
use futures_util::future::{BoxFuture, ready};
use jiff::SignedDuration;

use crate::close::close_refusal::withdrawn;
use crate::close::close_writes::{CloseContext, RowItem, left_out};
use crate::close::live_item::{LiveSource, live_source, live_target};
use crate::grace::grace_recheck::GraceWatch;
use crate::online::triage_recheck::TriageRecheck;

/// The reason why a close waits in a paused repository.
pub(crate) const PAUSED: &str = "paused";
/// How long a close that has begun waits before it checks again whether the pause is over.
const PAUSED_FOR: SignedDuration = SignedDuration::from_mins(30);

/// The check for writes that are not closes. A close that comes before them on the same item has its own check, and
/// they wait for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoClose<'a>(pub(crate) CloseContext<'a>);

impl Recheck for NoClose<'_> {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(let_pass(self.0, entry, act))
    }
}

/// Writes that come before on the same item are sent first, each with its own checks.
async fn let_pass(closing: CloseContext<'_>, entry: &OutboxEntry, act: Act) -> Result<Ruling, RecheckError> {
    let CloseContext { store, github, .. } = closing;
    if entry.kind == WriteKind::Close {
        return Err(format!("another close of this item ({}) comes first", entry.key).into());
    }
    match entry.source.origin.area() {
        WriteArea::Triage => {}
        // The review code has the check for its own writes.
        WriteArea::Review => {
            let reason = format!("{} comes first", entry.key);
            return Ok(Ruling::Wait { until: github.now() + SignedDuration::from_mins(1), reason });
        }
        _ => return Ok(Ruling::Proceed),
    }
    let ruling = TriageRecheck::new(store.clone(), github.clone()).recheck(entry, act).await?;
    if ruling == Ruling::Proceed && store.close().brake_in_force(entry.repo.id, BrakeKind::Pause).await?.is_some() {
        return Ok(Ruling::Wait { until: github.now() + PAUSED_FOR, reason: PAUSED.to_owned() });
    }
    Ok(ruling)
}

/// The check for a close that must not continue: writes that were not sent stay unsent, and posted comments are
/// corrected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WithdrawnClose<'a> {
    pub(crate) closing: CloseContext<'a>,
    pub(crate) key: &'a str,
    pub(crate) reason: &'a str,
}

impl Recheck for WithdrawnClose<'_> {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        if entry.key == self.key {
            return Box::pin(ready(Ok(Ruling::Refuse { reason: self.reason.to_owned() })));
        }
        Box::pin(let_pass(self.closing, entry, act))
    }
}

/// A close row and what its checks need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedClose<'a> {
    pub(crate) closing: CloseContext<'a>,
    pub(crate) item: RowItem,
    pub(crate) target: ItemNumber,
    pub(crate) key: &'a str,
    pub(crate) plan: &'a CloseRun,
    /// Close only if a person approved the row.
    pub(crate) approved_only: bool,
    /// The two items as they were when the plan was made.
    pub(crate) snapshot: &'a RowSnapshot,
    pub(crate) maintainers: &'a Maintainers,
    pub(crate) protected_labels: &'a [String],
    /// The grace period that the close comes from, if any.
    pub(crate) watch: Option<&'a GraceWatch<'a>>,
}

/// The result of checking a row on GitHub.
#[derive(Debug)]
pub(crate) enum RowCheck {
    /// Nothing prevents the close. Contains the target as it is now.
    Fit(Box<RestIssue>),
    Unfit(RowRefusal),
}

/// Why the check failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    // Not transparent: the outbox looks for GitHub's error among the sources.
    #[error("{0}")]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// GitHub's answer does not have the documented form.
    #[error("drift:{0}")]
    Unreadable(DriftKind),
    #[error("{0}")]
    Unclear(String),
}

impl From<FactError> for LookError {
    fn from(error: FactError) -> Self {
        match error {
            FactError::GitHub(error) => Self::GitHub(error),
            FactError::Unreadable(fact) => Self::Unreadable(fact),
        }
    }
}

impl PlannedClose<'_> {
    /// Reads source and target on GitHub and people's rulings, and compares them with the plan.
    pub(crate) async fn look(&self, repo: &RepoName) -> Result<RowCheck, LookError> {
        if let Some(watch) = self.watch
            && let Some(end) = watch.look(repo).await?
        {
            return Ok(RowCheck::Unfit(RowRefusal::Grace(end)));
        }
        let overrides =
            self.closing.store.duplicates().overrides(self.closing.repo.id, Some(self.item.item_type)).await?;
        let is_ruling = |ruled: &&Override| ruled.kind == OverrideKind::Duplicate && ruled.item == self.item.number;
        let ruled_at = overrides.iter().filter(is_ruling).map(|ruled| ruled.created_at).max();
        let (snapshot, planned_at) = (&self.snapshot.source, self.plan.created_at);
        let LiveSource { item: source, reopened_by_person_at } =
            live_source(self.closing, repo, self.item, snapshot, planned_at, ruled_at).await?;
        if source.milestone || source.locked {
            // The next plan should know this.
            let (store, repo, item) = (self.closing.store, self.closing.repo.id, self.item);
            let conditions = (source.milestone, source.locked);
            store.corpus().set_item_conditions(repo, item.item_type, item.number, conditions).await?;
        }
        let target = live_target(self.closing, repo, self.item.item_type, self.target).await?;
        let (target, target_issue) = target.map_or((None, None), |(live, issue)| (Some(live), Some(issue)));
        let drifted = drift(self.snapshot, &source, target.as_ref(), self.maintainers, self.protected_labels);
        if let Some(refusal) = drifted {
            return Ok(RowCheck::Unfit(refusal));
        }
        let rulings = Rulings::of(self.item.item_type, &overrides);
        if rulings.are_apart(self.item.number, self.target) {
            return Ok(RowCheck::Unfit(RowRefusal::Skip(SkipReason::ConflictingOverride)));
        }
        // The exclusion of the row itself is checked last of all. This one checks an exclusion that was made
        // elsewhere.
        if self.word().await? != Some(false)
            && rulings.is_excluded_from(self.item.number, &BTreeSet::from([self.target]))
        {
            return Ok(RowCheck::Unfit(RowRefusal::Skip(SkipReason::Excluded)));
        }
        let ruled_since = self.closing.store.plans().targets_ruled_since(self.plan.id).await?;
        if ruled_since.contains_key(&(self.item.item_type, self.target)) {
            return Ok(RowCheck::Unfit(RowRefusal::Skip(SkipReason::RuledSince)));
        }
        if reopened_by_person_at.is_some_and(|at| ruled_at.is_none_or(|ruled| ruled <= at)) {
            return Ok(RowCheck::Unfit(RowRefusal::Skip(SkipReason::HumanReopened)));
        }
        Ok(match target_issue {
            Some(issue) => RowCheck::Fit(Box::new(issue)),
            None => RowCheck::Unfit(RowRefusal::Drift(DriftKind::TargetGone)),
        })
    }

    /// Whether a person has approved or excluded the row by now.
    async fn word(&self) -> Result<Option<bool>, StoreError> {
        self.closing.store.plans().approval_of_row(self.plan.id, self.item.item_type, self.item.number).await
    }

    async fn rule(&self, entry: &OutboxEntry, act: Act) -> Result<Ruling, RecheckError> {
        let CloseContext { store, github, .. } = self.closing;
        if entry.key != self.key {
            return let_pass(self.closing, entry, act).await;
        }
        if store.close().brake_in_force(entry.repo.id, BrakeKind::Pause).await?.is_some() {
            return Ok(Ruling::Wait { until: github.now() + PAUSED_FOR, reason: PAUSED.to_owned() });
        }
        let refuse = |refusal: RowRefusal| Ruling::Refuse { reason: refusal.to_string() };
        let seen = match self.look(&entry.repo.name).await {
            Err(LookError::Unreadable(fact)) => RowCheck::Unfit(RowRefusal::Drift(fact)),
            seen => seen?,
        };
        if !self.closing.lease.is_held().await? {
            return Err("another process has taken over closing in this repository".into());
        }
        match seen {
            RowCheck::Unfit(refusal) => Ok(refuse(refusal)),
            // The target's number belongs to another issue now.
            RowCheck::Fit(target) if closes_onto(entry).is_some_and(|id| id != target.id) => {
                Ok(refuse(RowRefusal::Drift(DriftKind::TargetGone)))
            }
            // Last, because the check on GitHub takes long: a person may have excluded the row meanwhile.
            RowCheck::Fit(_) => Ok(match left_out(self.word().await?, self.approved_only) {
                Some(why) => Ruling::Refuse { reason: withdrawn(why) },
                None => Ruling::Proceed,
            }),
        }
    }
}

impl Recheck for PlannedClose<'_> {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(self.rule(entry, act))
    }
}

/// The id of the issue that a stored close names as the canonical one.
fn closes_onto(entry: &OutboxEntry) -> Option<i64> {
    match Write::of_entry(entry)? {
        Write::Close(Close { close_as: CloseAs::DuplicateOf(id), .. }) => Some(id.0),
        _ => None,
    }
}
