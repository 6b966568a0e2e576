//! The jobs that close and reopen because a person ordered it: in parts, with every check that the commands make.

use canonry_config::{ParsedSettings, parse};
use canonry_domain::Login;
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Job, JobState, MaintainerSource, Repo, RepoAccess, Store};
use canonry_triage::{
    ApplyError, ApplyOptions, CloseReport, ReportedRow, RowResult, SettingsError, SyncError, UndoError, UndoOptions,
    apply_close, live_settings, refresh_maintainers, undo_close,
};
use jiff::{SignedDuration, Timestamp};

use crate::jobs::console_jobs::{ApplyOrder, UndoOrder, github_id_of, order_of, reopening_key, run_of};
use crate::jobs::job_errors::in_words;
use crate::jobs::job_handler::{Handled, JobError};
use crate::jobs::kinds::UNDO_CLOSE;
use crate::service::Service;

/// Rows of one try. Each takes about four writes, and when the hour's allowance is used up GitHub gets one in seven
/// seconds: five minutes, of the fifteen that a try may take.
const PART: usize = 10;
/// What waits for its turn to be written is looked at again so often.
const GOES_ON: SignedDuration = SignedDuration::from_mins(1);
/// Items that are named with what kept them closed.
const MOST_NAMED: usize = 10;
/// An apply that lets an undo go first looks so often whether it is done.
const LETS_FIRST: SignedDuration = SignedDuration::from_secs(5);

/// Why an order is not carried out, or not now.
pub(crate) enum Stopped {
    /// A rule forbids it. The words are for who ordered it.
    Refused(String),
    Job(JobError),
}

impl<E: Into<JobError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Job(error.into())
    }
}

/// How a job ends: whoever ordered what a rule forbids reads why, and nothing is tried again.
pub(crate) fn ended(result: Result<Handled, Stopped>) -> Result<Handled, JobError> {
    match result {
        Ok(handled) => Ok(handled),
        Err(Stopped::Refused(words)) => Ok(Handled::Ignored(words)),
        Err(Stopped::Job(error)) => Err(error),
    }
}

/// Carries out the next part of a plan.
pub(crate) async fn apply(service: &Service, job: &Job) -> Result<Handled, JobError> {
    ended(apply_part(service, job).await)
}

/// Opens the next part of what a plan closed.
pub(crate) async fn undo(service: &Service, job: &Job) -> Result<Handled, JobError> {
    ended(undo_part(service, job).await)
}

async fn apply_part(service: &Service, job: &Job) -> Result<Handled, Stopped> {
    let order: ApplyOrder = order_of(job).ok_or_else(unreadable)?;
    let (store, github, repo) = (service.store(), asked(service)?, ordered_repo(service, job).await?);
    give_way(service, job, &repo, &order).await?;
    still_maintains(service, &repo, order.by.as_ref()).await?;
    let config = settings_now(store, github, &repo).await?;
    know_maintainers(store, github, &repo).await?;
    let (outbox, run_id) = (service.outbox().await?, run_of_try(job));
    let options = ApplyOptions {
        plan: order.plan,
        approved_only: order.approved_only,
        config: &config,
        run_id: &run_id,
        most_rows: Some(PART),
        ordered_at: job.created_at,
    };
    let report = match apply_close(store, github, outbox, &repo, options, &mut |_| {}).await {
        Ok(report) => report,
        Err(ApplyError::NotAPlan(words) | ApplyError::Refused(words)) => return Err(Stopped::Refused(words)),
        Err(ApplyError::Ended(error)) => return Err(error.into()),
    };
    tracing::info!(
        repo = %repo.name, plan = order.plan.get(), applied = report.applied, skipped = report.skipped,
        failed = report.failed, left = report.unreached, "a part of a plan is carried out"
    );
    go_on(&report, service.now())?;
    if report.over_daily_limit > 0 {
        let (left, most) = (report.over_daily_limit, config.config.close.max_per_day);
        return Err(Stopped::Refused(format!(
            "{left} rows wait: no more than {most} items a day are closed that no person has approved; approve them, or \
             apply the plan again tomorrow"
        )));
    }
    Ok(Handled::Done)
}

async fn undo_part(service: &Service, job: &Job) -> Result<Handled, Stopped> {
    let order: UndoOrder = order_of(job).ok_or_else(unreadable)?;
    let (store, github, repo) = (service.store(), asked(service)?, ordered_repo(service, job).await?);
    still_maintains(service, &repo, order.by.as_ref()).await?;
    let config = settings_now(store, github, &repo).await?;
    let (outbox, run_id) = (service.outbox().await?, run_of_try(job));
    let note = said(&order);
    let options = UndoOptions {
        run: order.plan,
        item: order.item.map(|(_, number)| number),
        reason: order.reason,
        note: note.as_deref(),
        by: order.by.as_ref(),
        config: &config.config,
        run_id: &run_id,
        most_rows: Some(PART),
    };
    let report = match undo_close(store, github, outbox, &repo, options, &mut |_| {}).await {
        Ok(report) => report,
        Err(UndoError::NothingToUndo(words)) => return Err(Stopped::Refused(words)),
        Err(UndoError::Ended(error)) => return Err(error.into()),
    };
    tracing::info!(
        repo = %repo.name, plan = order.plan.get(), opened = report.applied, skipped = report.skipped,
        failed = report.failed, left = report.unreached, "a part of a plan is undone"
    );
    go_on(&report, service.now())?;
    match not_opened(&report) {
        Some(words) => Err(Stopped::Refused(words)),
        None => Ok(Handled::Done),
    }
}

/// Which items an undo could not open, and why; `None` when there are none. No page but that of the order tells it.
fn not_opened(report: &CloseReport) -> Option<String> {
    let rows: Vec<&ReportedRow> = report.not_opened().collect();
    let why = |row: &&ReportedRow| format!("#{} ({})", row.number, row.reason.as_deref().unwrap_or("failed"));
    let named: Vec<String> = rows.iter().take(MOST_NAMED).map(why).collect();
    let more = match rows.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!rows.is_empty()).then(|| format!("not opened again: {}{more}", named.join(", ")))
}

/// What is said under the item beside the reason.
fn said(order: &UndoOrder) -> Option<String> {
    let asked = order.by.as_ref().map(|by| format!("Asked for by {by}."));
    let note = order.note.as_deref().map(str::trim).filter(|note| !note.is_empty()).map(str::to_owned);
    match (note, asked) {
        (Some(note), Some(asked)) => Some(format!("{note}\n\n{asked}")),
        (note, asked) => note.or(asked),
    }
}

/// Whether there is more to do, and when.
fn go_on(report: &CloseReport, now: Timestamp) -> Result<(), JobError> {
    let settled = report.attempted.saturating_sub(report.pending + report.failing + report.over_daily_limit);
    if report.unreached > 0 && settled > 0 {
        return Err(JobError::Postpone { reason: format!("{} rows are left", report.unreached), until: now });
    }
    if report.pending > 0 {
        let reason = format!("{} writes wait for their turn", report.pending);
        return Err(JobError::Postpone { reason, until: now + GOES_ON });
    }
    if report.failing > 0 {
        let is_failed = |row: &&ReportedRow| row.result == RowResult::Failed;
        let why = report.rows.iter().rev().find(is_failed).and_then(|row| row.reason.clone());
        return Err(JobError::Retry(why.unwrap_or_else(|| "GitHub did not tell how the items are".to_owned())));
    }
    Ok(())
}

/// Lets undos go first; one of the whole plan that was ordered later ends its apply, unless a rule forbade that one.
async fn give_way(service: &Service, job: &Job, repo: &Repo, order: &ApplyOrder) -> Result<(), Stopped> {
    let (store, key, plan) = (service.store(), reopening_key(repo), order.plan);
    let waiting = store.jobs().unfinished_of_key(&key, UNDO_CLOSE).await?;
    if let Some(next) = waiting.iter().map(|undo| undo.run_after).min() {
        let until = next.max(service.now() + LETS_FIRST);
        return Err(JobError::Postpone { reason: "an undo goes first".to_owned(), until }.into());
    }
    let later = store.jobs().of_key_after(&key, UNDO_CLOSE, job.id).await?;
    let is_whole =
        |undo: &&Job| order_of::<UndoOrder>(undo).is_some_and(|undone| undone.plan == plan && undone.item.is_none());
    for undo in later.iter().filter(is_whole) {
        match (undo.state, &undo.error) {
            (JobState::Done, None) => {
                return Err(Stopped::Refused(format!("plan {plan} was undone, so that nothing more of it is closed")));
            }
            (JobState::Dead, _) => {
                let undo = undo.id;
                return Err(Stopped::Refused(format!(
                    "plan {plan} was to be undone (job {undo}, which was given up), so that nothing more of it is closed"
                )));
            }
            // It was refused, could not open everything, or is queued again and comes first next time.
            _ => {}
        }
    }
    // Also by a command, which leaves no job, and long ago: jobs are thrown away some day.
    if store.plans().was_undone_since(plan, job.created_at).await? {
        return Err(Stopped::Refused(format!(
            "everything that plan {plan} closed was to be opened again, so that nothing more of it is closed"
        )));
    }
    Ok(())
}

/// GitHub, without which nothing can be closed or opened.
fn asked(service: &Service) -> Result<&GitHub, Stopped> {
    service.github().ok_or_else(|| {
        Stopped::Refused(
            "nothing can be closed or opened without credentials for GitHub; set GITHUB_TOKEN or an App".to_owned(),
        )
    })
}

pub(crate) fn unreadable() -> Stopped {
    JobError::Hopeless("another version of the program stored it, and it cannot be read".to_owned()).into()
}

/// The repository that an order is about, by GitHub's id where it has one: its name may be another's by now.
pub(crate) async fn ordered_repo(service: &Service, job: &Job) -> Result<Repo, Stopped> {
    let store = service.store();
    let repo = match (github_id_of(job), &job.repo) {
        (Some(id), _) => store.repos().by_github_id(id).await?,
        (None, Some(name)) => store.repos().find(name).await?,
        (None, None) => None,
    };
    let Some(repo) = repo else { return Err(Stopped::Refused("the repository is not known any more".to_owned())) };
    let access = store.repos().access(repo.id).await?;
    if access != RepoAccess::Active {
        return Err(Stopped::Refused(format!("{} is {}, so that nothing is done in it", repo.name, access.as_str())));
    }
    Ok(repo)
}

/// Asks GitHub again whether who ordered it still may: between a click and its deed access can be taken away.
pub(crate) async fn still_maintains(service: &Service, repo: &Repo, by: Option<&Login>) -> Result<(), Stopped> {
    let Some(by) = by else { return Ok(()) };
    let may = match service.github() {
        Some(github) => github.permission(&repo.name, by).await?.is_maintainer(),
        None => false,
    };
    if may {
        return Ok(());
    }
    Err(Stopped::Refused(format!("{by} may not push to {} any more, so that nothing was done", repo.name)))
}

/// The settings as they are on GitHub. Nothing is closed by older ones: a protected label may be new in them.
async fn settings_now(store: &Store, github: &GitHub, repo: &Repo) -> Result<ParsedSettings, Stopped> {
    match live_settings(store, github, repo).await {
        Ok(text) => Ok(parse(&text.unwrap_or_default())),
        Err(SettingsError::Store(error)) => Err(error.into()),
        Err(SettingsError::GitHub(error)) => Err(error.into()),
    }
}

/// Why settings may not be planned by, if so.
pub(crate) fn mistaken(config: &ParsedSettings) -> Option<String> {
    let section = config.unsafe_to_close_by()?;
    Some(format!(
        "the section `{section}` of the repository's settings has a mistake, and nothing is planned by guesses; find it \
         with `canonry config check`"
    ))
}

/// Has GitHub say who maintains the repository now. A list that a person has set stands.
pub(crate) async fn know_maintainers(store: &Store, github: &GitHub, repo: &Repo) -> Result<(), Stopped> {
    let list = store.repos().maintainers(repo.id).await?;
    if list.is_some_and(|list| list.source == MaintainerSource::Set) {
        return Ok(());
    }
    match refresh_maintainers(store, github, &repo.name).await {
        Ok(_) => Ok(()),
        Err(SyncError::GitHub(error @ (GitHubError::CollaboratorsHidden { .. } | GitHubError::Forbidden { .. }))) => {
            Err(Stopped::Refused(format!(
                "GitHub does not say who maintains {0} ({1}), and maintainers' items are never closed; name them with \
                 `canonry maintainers set --repo {0} LOGIN…`",
                repo.name,
                in_words(&error)
            )))
        }
        Err(error) => Err(error.into()),
    }
}

/// The run, and which try of it this is: whoever lost the job's lease and does not know it yet must not look like whoever
/// has it now.
fn run_of_try(job: &Job) -> String {
    format!("{}/{:08x}", run_of(job), rand::random::<u32>())
}
