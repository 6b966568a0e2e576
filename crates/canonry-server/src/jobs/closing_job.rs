//! The jobs that close and reopen items on a person's order: in parts, with every check that the commands make.

use canonry_config::{ParsedSettings, parse};
use canonry_domain::{ItemNumber, ItemType, Login, UndoReason};
use canonry_github::GitHub;
use canonry_store::{CloseRunId, Job, JobKind, JobState, Repo, Store};
use canonry_triage::{
    ApplyError, ApplyOptions, CloseReport, ReportedRow, RowResult, SettingsError, UndoError, UndoOptions, apply_close,
    live_settings, undo_close,
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::jobs::job_errors::in_words;
use crate::jobs::job_handler::JobError;
use crate::jobs::job_keys::{KeyedRepo, closing_key, reopening_key};
use crate::jobs::orders::{Order, OrderContext, order_of, run_number};
use crate::jobs::sync_job::refresh_unless_set;
use crate::service::Service;

/// Rows per try. Each takes about four writes. When the hourly write limit is used up, GitHub gets one write in seven
/// seconds, so a part takes five of the fifteen minutes that a try may take.
const PART: usize = 10;
/// How soon the job rechecks writes that are queued.
const GOES_ON: SignedDuration = SignedDuration::from_mins(1);
/// The most items that the message about items that were not reopened names.
const MOST_NAMED: usize = 10;
/// How often an apply that waits for an undo rechecks it.
const LETS_FIRST: SignedDuration = SignedDuration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyOrder {
    #[serde(with = "run_number")]
    pub plan: CloseRunId,
    pub approved_only: bool,
    /// The order only cancels unfinished closes of a plan that closes nothing any more.
    #[serde(default)]
    pub only_takes_back: bool,
    /// The account that ordered it; `None` is the operator.
    pub by: Option<Login>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOrder {
    #[serde(with = "run_number")]
    pub plan: CloseRunId,
    pub item: Option<(ItemType, ItemNumber)>,
    pub reason: UndoReason,
    pub note: Option<String>,
    /// The account that ordered it; `None` is the operator.
    pub by: Option<Login>,
}

impl Order for ApplyOrder {
    const KIND: JobKind = JobKind::ApplyClose;

    fn key(&self, repo: KeyedRepo<'_>) -> String {
        closing_key(repo)
    }

    async fn carry_out(&self, context: OrderContext<'_>) -> Result<(), JobError> {
        let OrderContext { service, repo, job, run_id } = context;
        let (store, github) = (service.store(), asked(service)?);
        give_way(service, job, repo, self).await?;
        still_maintains(service, repo, self.by.as_ref()).await?;
        let config = settings_now(store, github, repo).await?;
        know_maintainers(store, github, repo).await?;
        let (outbox, run_id) = (service.outbox().await?, run_of_try(run_id));
        let options = ApplyOptions {
            plan: self.plan,
            approved_only: self.approved_only,
            config: &config,
            run_id: &run_id,
            most_rows: Some(PART),
            ordered_at: job.created_at,
        };
        let report = match apply_close(store, github, outbox, repo, options, &mut |_| {}).await {
            Ok(report) => report,
            Err(ApplyError::NotAPlan(words) | ApplyError::Refused(words)) => return Err(JobError::Ignored(words)),
            Err(ApplyError::Ended(error)) => return Err(error.into()),
        };
        tracing::info!(
            repo = %repo.name, plan = self.plan.get(), applied = report.applied, skipped = report.skipped,
            failed = report.failed, left = report.unreached, "a part of a plan is carried out"
        );
        go_on(&report, service.now())?;
        if report.over_daily_limit > 0 {
            let (left, most) = (report.over_daily_limit, config.config.close.max_per_day);
            return Err(JobError::Ignored(format!(
                "{left} rows wait: at most {most} items a day are closed without approval; approve them, or \
                 apply the plan again tomorrow"
            )));
        }
        Ok(())
    }
}

impl Order for UndoOrder {
    const KIND: JobKind = JobKind::UndoClose;

    fn key(&self, repo: KeyedRepo<'_>) -> String {
        reopening_key(repo)
    }

    async fn carry_out(&self, context: OrderContext<'_>) -> Result<(), JobError> {
        let OrderContext { service, repo, run_id, .. } = context;
        let (store, github) = (service.store(), asked(service)?);
        still_maintains(service, repo, self.by.as_ref()).await?;
        let config = settings_now(store, github, repo).await?;
        let (outbox, run_id) = (service.outbox().await?, run_of_try(run_id));
        let note = undo_note(self);
        let options = UndoOptions {
            run: self.plan,
            item: self.item.map(|(_, number)| number),
            reason: self.reason,
            note: note.as_deref(),
            by: self.by.as_ref(),
            config: &config.config,
            run_id: &run_id,
            most_rows: Some(PART),
        };
        let report = match undo_close(store, github, outbox, repo, options, &mut |_| {}).await {
            Ok(report) => report,
            Err(UndoError::NothingToUndo(words)) => return Err(JobError::Ignored(words)),
            Err(UndoError::Ended(error)) => return Err(error.into()),
        };
        tracing::info!(
            repo = %repo.name, plan = self.plan.get(), opened = report.applied, skipped = report.skipped,
            failed = report.failed, left = report.unreached, "undid part of a plan"
        );
        go_on(&report, service.now())?;
        match not_opened(&report) {
            Some(words) => Err(JobError::Ignored(words)),
            None => Ok(()),
        }
    }
}

/// The items that an undo could not reopen, with reasons; `None` if there are none. Only the order's page shows this.
fn not_opened(report: &CloseReport) -> Option<String> {
    let rows: Vec<&ReportedRow> = report.not_opened().collect();
    let why = |row: &&ReportedRow| format!("#{} ({})", row.number, row.reason.as_deref().unwrap_or("failed"));
    let named: Vec<String> = rows.iter().take(MOST_NAMED).map(why).collect();
    let more = match rows.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!rows.is_empty()).then(|| format!("not reopened: {}{more}", named.join(", ")))
}

/// The note that is posted under the item beside the reason.
fn undo_note(order: &UndoOrder) -> Option<String> {
    let asked = order.by.as_ref().map(|by| format!("Requested by {by}."));
    let note = order.note.as_deref().map(str::trim).filter(|note| !note.is_empty()).map(str::to_owned);
    match (note, asked) {
        (Some(note), Some(asked)) => Some(format!("{note}\n\n{asked}")),
        (note, asked) => note.or(asked),
    }
}

fn go_on(report: &CloseReport, now: Timestamp) -> Result<(), JobError> {
    let settled = report.attempted.saturating_sub(report.pending + report.failing + report.over_daily_limit);
    if report.unreached > 0 && settled > 0 {
        return Err(JobError::Postpone { reason: format!("{} rows left", report.unreached), until: now });
    }
    if report.pending > 0 {
        let reason = format!("{} writes are queued", report.pending);
        return Err(JobError::Postpone { reason, until: now + GOES_ON });
    }
    if report.failing > 0 {
        let is_failed = |row: &&ReportedRow| row.result == RowResult::Failed;
        let why = report.rows.iter().rev().find(is_failed).and_then(|row| row.reason.clone());
        return Err(JobError::Retry(why.unwrap_or_else(|| "GitHub did not report the state of the items".to_owned())));
    }
    Ok(())
}

/// Lets undos go first. An undo of the whole plan that was ordered later ends its apply, unless a rule refused the
/// undo.
async fn give_way(service: &Service, job: &Job, repo: &Repo, order: &ApplyOrder) -> Result<(), JobError> {
    let (store, key, plan) = (service.store(), reopening_key(repo.into()), order.plan);
    let waiting = store.jobs().unfinished_of_key(&key, JobKind::UndoClose).await?;
    if let Some(next) = waiting.iter().map(|undo| undo.run_after).min() {
        let until = next.max(service.now() + LETS_FIRST);
        return Err(JobError::Postpone { reason: "an undo goes first".to_owned(), until });
    }
    let later = store.jobs().of_key_after(&key, JobKind::UndoClose, job.id).await?;
    let is_whole =
        |undo: &&Job| order_of::<UndoOrder>(undo).is_some_and(|undone| undone.plan == plan && undone.item.is_none());
    for undo in later.iter().filter(is_whole) {
        match (undo.state, &undo.error) {
            (JobState::Done, None) => {
                return Err(JobError::Ignored(format!("plan {plan} was undone; nothing more of it is closed")));
            }
            (JobState::Dead, _) => {
                let undo = undo.id;
                return Err(JobError::Ignored(format!(
                    "plan {plan} is being undone (job {undo} failed); nothing more of it is closed"
                )));
            }
            // The undo was refused, could not reopen everything, or is queued again and goes first next time.
            _ => {}
        }
    }
    // Finds undos by a command, which leaves no job, and old undos, whose jobs have been deleted.
    if store.plans().was_undone_since(plan, job.created_at).await? {
        return Err(JobError::Ignored(format!("plan {plan} is being undone; nothing more of it is closed")));
    }
    Ok(())
}

/// The GitHub client, without which nothing can be closed or reopened.
fn asked(service: &Service) -> Result<&GitHub, JobError> {
    let why = "closing and reopening need credentials for GitHub; set GITHUB_TOKEN or an App";
    service.github().ok_or_else(|| JobError::ignored(why))
}

/// Asks GitHub again whether the account that gave the order is still a maintainer: access can be revoked between the
/// click and the job.
pub(crate) async fn still_maintains(service: &Service, repo: &Repo, by: Option<&Login>) -> Result<(), JobError> {
    let Some(by) = by else { return Ok(()) };
    let may = match service.github() {
        Some(github) => github.permission(&repo.name, by).await?.is_maintainer(),
        None => false,
    };
    if may {
        return Ok(());
    }
    Err(JobError::Ignored(format!("{by} may no longer push to {}; nothing was done", repo.name)))
}

/// The settings as they are on GitHub now. Older settings are never used to close, because a protected label may be
/// new.
async fn settings_now(store: &Store, github: &GitHub, repo: &Repo) -> Result<ParsedSettings, JobError> {
    match live_settings(store, github, repo).await {
        Ok(text) => Ok(parse(&text.unwrap_or_default())),
        Err(SettingsError::Store(error)) => Err(error.into()),
        Err(SettingsError::GitHub(error)) => Err(error.into()),
    }
}

/// Why a plan must not be made with these settings; `None` if it may.
pub(crate) fn mistaken(config: &ParsedSettings) -> Option<String> {
    let section = config.unsafe_to_close_by()?;
    Some(format!(
        "the section `{section}` of the repository's settings has a mistake, so no plan is made; find it \
         with `canonry config check`"
    ))
}

/// Refreshes the list of maintainers from GitHub. A list that a person has set stays.
pub(crate) async fn know_maintainers(store: &Store, github: &GitHub, repo: &Repo) -> Result<(), JobError> {
    match refresh_unless_set(store, github, repo).await? {
        None => Ok(()),
        Some(error) => Err(JobError::Ignored(format!(
            "GitHub does not say who maintains {0} ({1}), and maintainers' items are never closed; name them with \
             `canonry maintainers set --repo {0} LOGIN…`",
            repo.name,
            in_words(&error)
        ))),
    }
}

/// The run with an id for this try: a worker that lost the job's lease and does not know it yet must not look like
/// the worker that has the lease now.
fn run_of_try(run_id: &str) -> String {
    format!("{run_id}/{:08x}", rand::random::<u32>())
}
