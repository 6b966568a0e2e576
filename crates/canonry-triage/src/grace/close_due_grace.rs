//! Closes an item after its grace period: judges the pair, makes a plan with one row, and applies it with every
//! check.

use canonry_boxed::boxed;
use canonry_config::{ParsedSettings, RepoConfig};
use canonry_domain::{DAILY_LIMIT_WINDOW, GraceEnd, OverrideKind, Probability, clock_trouble};
use canonry_github::outbox::{Outbox, OutboxError};
use canonry_github::{GitHub, GitHubError};
use canonry_models::chat::TokenBudget;
use canonry_store::{
    BrakeKind, CloseOutcome, CloseRunId, Grace, GraceState, MaintainerList, MaintainerSource, Repo, Representation,
    Store, StoreError, StoredCloseResult, StoredTriageRecord,
};
use jiff::SignedDuration;
use sha2::{Digest, Sha256};

use crate::close::apply_close::{ApplyError, ApplyOptions, apply_watched};
use crate::close::close_recheck::{LookError, PAUSED};
use crate::close::close_refusal::CloseRefusal;
use crate::close::close_writes::{ClosingError, present_repo};
use crate::close::plan_close::{OnePlan, OneRow, PlanError, plan_one, plan_rules};
use crate::corpus::refresh_maintainers::refresh_maintainers;
use crate::corpus::sync::SyncError;
use crate::grace::begin_grace::GraceError;
use crate::grace::cancel_grace::{has_begun, is_closing, post_end};
use crate::grace::grace_recheck::GraceWatch;
use crate::grace::judge_grace::{GraceVerdict, PairJudge};
use crate::judge::judge_case::Judge;
use crate::judge::judge_items::representation_of;
use crate::online::detect_new::Detectors;
use crate::retrieval::embed::EmbedSource;

/// How long the list of a repository's maintainers is reused for every grace period that is due.
const ASKED_AGAIN: SignedDuration = SignedDuration::from_mins(5);

/// The reason why a grace period waits while our clock and GitHub's differ.
pub(crate) const CLOCK_SKEW: &str = "clock_skew";

#[derive(Clone, Copy)]
pub struct GraceParts<'a> {
    pub store: &'a Store,
    pub github: &'a GitHub,
    pub outbox: &'a Outbox,
    pub judge: Judge<'a>,
    pub budget: &'a TokenBudget,
    pub source: EmbedSource,
    pub config: &'a ParsedSettings,
    /// The id of this run, stored with everything it does. Each process must use its own.
    pub run_id: &'a str,
}

/// The result of a grace period whose time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraceOutcome {
    Closed,
    /// The item stays open because a person objected or something changed.
    Cancelled(GraceEnd),
    /// The item stays open because of a rule.
    Refused(String),
    /// Nothing is decided yet: it is checked again later.
    Waiting(String),
}

/// Closes the item of a grace period whose time is over, unless something prevents it. Everything is read again
/// first, and once more before each write. If the process is killed at any point, the next call continues from what
/// is stored.
#[boxed]
pub async fn close_due_grace(with: GraceParts<'_>, grace: &Grace) -> Result<GraceOutcome, GraceError> {
    close_due(with, None, grace).await
}

/// Like [`close_due_grace`], for a caller that has the index in memory. Without it all texts of the repository are read
/// for the evidence of each pair, again at each retry.
#[boxed]
pub async fn close_due_grace_by_index(
    with: GraceParts<'_>,
    detectors: Detectors<'_>,
    grace: &Grace,
) -> Result<GraceOutcome, GraceError> {
    close_due(with, Some(detectors), grace).await
}

async fn close_due(
    with: GraceParts<'_>,
    detectors: Option<Detectors<'_>>,
    grace: &Grace,
) -> Result<GraceOutcome, GraceError> {
    let outcome = match settle(with, detectors, grace).await {
        // A person may have applied another plan that contains the item.
        Ok(GraceOutcome::Cancelled(GraceEnd::Closed) | GraceOutcome::Refused(_))
            if is_closed_by_us(with, grace).await? =>
        {
            GraceOutcome::Closed
        }
        Ok(outcome) => outcome,
        Err(GraceDelay::Wait(words)) => GraceOutcome::Waiting(words),
        Err(GraceDelay::Failed(error)) => return Err(error),
    };
    let GraceParts { store, github, outbox, .. } = with;
    let (state, reason) = match &outcome {
        GraceOutcome::Closed => (GraceState::Closed, None),
        GraceOutcome::Cancelled(end) => (GraceState::Cancelled, Some(end.as_str())),
        GraceOutcome::Refused(reason) => (GraceState::Refused, Some(reason.as_str())),
        GraceOutcome::Waiting(reason) => {
            store.close().note_grace(grace.id, Some(reason)).await?;
            return Ok(outcome);
        }
    };
    store.close().end_grace(grace.id, state, reason, github.now()).await?;
    if let Some(ended) = store.close().grace(grace.id).await? {
        post_end(store, outbox, &ended).await?;
    }
    Ok(outcome)
}

/// Whether another plan of ours closed the item since the grace period began.
async fn is_closed_by_us(with: GraceParts<'_>, grace: &Grace) -> Result<bool, StoreError> {
    let closes = with.store.plans().applied_closes(grace.repo.id, grace.item_type).await?;
    let last = closes.iter().rfind(|close| close.number == grace.number);
    Ok(last.is_some_and(|close| close.reversed_at().is_none() && close.applied_at >= grace.began_at))
}

/// Why there is no result yet.
enum GraceDelay {
    /// Something could not be read, or another process is working on it.
    Wait(String),
    Failed(GraceError),
}

impl From<StoreError> for GraceDelay {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<GitHubError> for GraceDelay {
    fn from(error: GitHubError) -> Self {
        Self::Failed(OutboxError::from(error).into())
    }
}

impl From<LookError> for GraceDelay {
    fn from(error: LookError) -> Self {
        match error {
            LookError::GitHub(error) => error.into(),
            LookError::Store(error) => error.into(),
            LookError::Unreadable(fact) => Self::Wait(format!("drift:{fact}")),
            LookError::Unclear(words) => Self::Wait(words),
        }
    }
}

impl From<ClosingError> for GraceDelay {
    fn from(error: ClosingError) -> Self {
        match error {
            ClosingError::Store(error) => error.into(),
            ClosingError::Outbox(error) => Self::Failed(error.into()),
            ClosingError::Identify(error) => Self::Wait(error.to_string()),
            ClosingError::Busy(words) => Self::Wait(words),
        }
    }
}

async fn settle(
    with: GraceParts<'_>,
    detectors: Option<Detectors<'_>>,
    grace: &Grace,
) -> Result<GraceOutcome, GraceDelay> {
    let GraceParts { store, github, outbox, .. } = with;
    if store.close().brake_in_force(grace.repo.id, BrakeKind::Pause).await?.is_some() {
        return Err(GraceDelay::Wait(PAUSED.to_owned()));
    }
    let repo = present_repo(store, github, &grace.repo).await?;
    let watch = GraceWatch { store, github, outbox, grace };
    // A close that has begun is ended by its own checks, so that comments it has posted are corrected.
    if let Some(plan) = grace.plan
        && is_closing(store, grace).await?
    {
        return carry_out(with, &repo, grace, plan, &watch).await;
    }
    is_due_by_github(&watch).await?;
    // First, because it needs no request to GitHub, and hundreds of grace periods may wait for it.
    if grace.approved_by.is_none() {
        let closed = store.plans().closes_since(repo.id, github.now() - DAILY_LIMIT_WINDOW).await?;
        if closed >= u64::from(with.config.config.close.max_per_day) {
            return Err(GraceDelay::Wait("daily_limit".to_owned()));
        }
        let rulings = store.duplicates().overrides_naming(repo.id, grace.item_type, &[grace.number]).await?;
        if rulings.iter().any(|ruled| ruled.kind == OverrideKind::Excluded && ruled.item == grace.number) {
            return Ok(GraceOutcome::Cancelled(GraceEnd::Superseded));
        }
    }
    if let Some(end) = watch.look(&repo.name).await? {
        return Ok(GraceOutcome::Cancelled(end));
    }
    know_maintainers(store, github, &repo).await?;
    let plan = match grace.plan {
        Some(plan) => plan,
        None => match planned(with, detectors, &repo, grace).await? {
            GracePlan::Stored(plan) => plan,
            GracePlan::Ended(outcome) => return Ok(outcome),
        },
    };
    if let Some(by) = &grace.approved_by {
        store.plans().set_approved(plan, grace.item_type, &[grace.number], Some(true), Some(by), github.now()).await?;
    }
    carry_out(with, &repo, grace, plan, &watch).await
}

/// Waits unless the grace period is over by GitHub's clock. Ours may be days ahead, or may have been when the close
/// was announced.
async fn is_due_by_github(watch: &GraceWatch<'_>) -> Result<(), GraceDelay> {
    let Some(time) = watch.github.github_time() else { return Err(GraceDelay::Wait("no_github_time".to_owned())) };
    if let Some(trouble) = clock_trouble(time.skew) {
        tracing::warn!(skew_seconds = time.skew.as_secs(), "{trouble}; nothing is closed until they agree");
        return Err(GraceDelay::Wait(CLOCK_SKEW.to_owned()));
    }
    let grace = watch.grace;
    if grace.approved_by.is_some() {
        return Ok(());
    }
    let Some(announced_at) = watch.announced_at().await? else {
        return Err(GraceDelay::Wait("the time of the announcement is unknown".to_owned()));
    };
    let length = grace.due_at.duration_since(grace.began_at);
    match announced_at.checked_add(length) {
        Ok(due) if due <= time.date => Ok(()),
        _ => Err(GraceDelay::Wait("not_due_on_github".to_owned())),
    }
}

/// A list that a person set is used as it is; any other list is fetched again, because maintainers' items are never
/// closed.
async fn know_maintainers(store: &Store, github: &GitHub, repo: &Repo) -> Result<(), GraceDelay> {
    let list = store.repos().maintainers(repo.id).await?;
    let is_fresh = |list: &MaintainerList| {
        list.source == MaintainerSource::Set || github.now().duration_since(list.written_at).abs() < ASKED_AGAIN
    };
    if list.as_ref().is_some_and(is_fresh) {
        return Ok(());
    }
    match refresh_maintainers(store, github, &repo.name).await {
        Ok(_) => Ok(()),
        Err(SyncError::Store(error)) => Err(error.into()),
        Err(SyncError::GitHub(error @ (GitHubError::RateLimited { .. } | GitHubError::Unauthorized { .. }))) => {
            Err(error.into())
        }
        Err(error) => Err(GraceDelay::Wait(format!("the maintainers of the repository are unknown: {error}"))),
    }
}

/// The plan with one row, or the result of the grace period without one.
enum GracePlan {
    Stored(CloseRunId),
    Ended(GraceOutcome),
}

async fn planned(
    with: GraceParts<'_>,
    detectors: Option<Detectors<'_>>,
    repo: &Repo,
    grace: &Grace,
) -> Result<GracePlan, GraceDelay> {
    let GraceParts { store, github, judge, budget, config, run_id, .. } = with;
    let config = &config.config;
    let config_hash = hash_of(config);
    let records = store.duplicates().triage_records_of(repo.id, grace.item_type, grace.number).await?;
    let record = records.iter().find(|record| Some(record.id) == grace.triage_id);
    let source = match record {
        Some(record) => compared(record, with.source)?,
        None => with.source,
    };
    match (record, &grace.approved_by) {
        (Some(record), _) => {
            let min_edge = probability(config.close.min_edge)?;
            let config_hash = &config_hash;
            let judge = PairJudge { store, repo, judge, detectors, budget, source, min_edge, config_hash, run_id };
            match judge.decide(grace, record, github.now()).await? {
                GraceVerdict::Edge => {}
                GraceVerdict::NoEdge(reason) => return Ok(GracePlan::Ended(GraceOutcome::Refused(reason))),
                GraceVerdict::Later(reason) => return Err(GraceDelay::Wait(reason)),
            }
        }
        // The ruling is the edge.
        (None, Some(_)) => {}
        (None, None) => {
            return Ok(GracePlan::Ended(GraceOutcome::Refused("its triage record is missing".to_owned())));
        }
    }
    let row = OneRow {
        grace: grace.id,
        item_type: grace.item_type,
        number: grace.number,
        target: grace.target,
        representation: representation_of(source),
        rules: &plan_rules(config, None).map_err(|error| GraceDelay::Wait(error.to_string()))?,
        config_hash: &config_hash,
        run_id,
    };
    match plan_one(store, repo, &row, github.now()).await {
        Ok(OnePlan::Stored(plan)) => Ok(GracePlan::Stored(plan)),
        Ok(OnePlan::Skipped(reason)) => Ok(GracePlan::Ended(GraceOutcome::Refused(reason))),
        Ok(OnePlan::Taken) => Err(GraceDelay::Wait("another process is working on it".to_owned())),
        Err(PlanError::Store(error)) => Err(error.into()),
        Err(error) => Err(GraceDelay::Wait(error.to_string())),
    }
}

/// The representation that was compared when the item was triaged; its edge is about that.
fn compared(record: &StoredTriageRecord, source: EmbedSource) -> Result<EmbedSource, GraceDelay> {
    match (record.record.effective_source, source) {
        (Representation::Raw, _) => Ok(EmbedSource::Raw),
        (Representation::Intent, source @ EmbedSource::Intent(_)) => Ok(source),
        (Representation::Intent, EmbedSource::Raw) => {
            Err(GraceDelay::Wait("it was compared by intent cards, which the service no longer makes".to_owned()))
        }
    }
}

/// Applies the plan, and reads the stored result of its row.
async fn carry_out(
    with: GraceParts<'_>,
    repo: &Repo,
    grace: &Grace,
    plan: CloseRunId,
    watch: &GraceWatch<'_>,
) -> Result<GraceOutcome, GraceDelay> {
    let GraceParts { store, github, outbox, config, run_id, .. } = with;
    let ordered_at = github.now();
    let options = ApplyOptions { plan, approved_only: false, config, run_id, most_rows: None, ordered_at };
    let applied = apply_watched(store, github, outbox, repo, options, Some(watch), &mut |_| {}).await;
    if let Some(result) = result_of(store, plan).await? {
        return Ok(outcome_of(&result));
    }
    match applied {
        Ok(report) => {
            let reason = report.rows.first().and_then(|row| row.reason.clone());
            Err(GraceDelay::Wait(reason.unwrap_or_else(|| "not finished yet".to_owned())))
        }
        // A close that has begun continues once it may: a pause in between does not end it. Otherwise a new plan is
        // made.
        Err(ApplyError::Refused(words) | ApplyError::NotAPlan(words)) => {
            if !has_begun(store, grace, plan).await? {
                store.close().drop_grace_plan(grace.id, plan).await?;
            }
            Err(GraceDelay::Wait(words))
        }
        Err(ApplyError::Ended(error)) => Err(error.into()),
    }
}

async fn result_of(store: &Store, plan: CloseRunId) -> Result<Option<StoredCloseResult>, StoreError> {
    let Some(apply) = store.plans().apply_of(plan).await? else { return Ok(None) };
    let rows = store.plans().rows(apply.id).await?;
    Ok(rows.into_iter().find_map(|row| row.result))
}

fn outcome_of(result: &StoredCloseResult) -> GraceOutcome {
    if matches!(result.outcome, CloseOutcome::Applied { .. }) {
        return GraceOutcome::Closed;
    }
    let reason = result.reason.clone().unwrap_or_else(|| result.outcome.as_str().to_owned());
    match CloseRefusal::of(&reason).ended_by() {
        Some(end) => GraceOutcome::Cancelled(end),
        None => GraceOutcome::Refused(reason),
    }
}

fn probability(value: f64) -> Result<Probability, GraceDelay> {
    Probability::new(value).map_err(|error| GraceDelay::Wait(error.to_string()))
}

fn hash_of(config: &RepoConfig) -> String {
    let text = serde_json::to_string(config).expect("invariant: plain data");
    canonry_domain::hex_digits(Sha256::digest(text))
}
