//! `undo-close`: reopens what a plan closed, and stores the person's ruling about it.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_config::RepoConfig;
use canonry_domain::{
    ItemNumber, ItemType, Login, Maintainers, POSSIBLE_DUPLICATE, UndoReason, WriteKey, WriteOrigin, undo_comment,
};
use canonry_github::outbox::{Act, Outbox, OutboxError, Receipt, Recheck, RecheckError, Ruling, Write};
use canonry_github::{GitHub, quote_block};
use canonry_store::{
    AppliedClose, CloseMode, CloseOutcome, CloseResult, CloseRun, CloseRunId, NotDuplicate, OutboxEntry, OutboxState,
    Repo, Store, StoreError,
};
use futures_util::future::BoxFuture;

use crate::close::back_links::StandingCloses;
use crate::close::close_lease::CloseLeaseGuard;
use crate::close::close_recheck::NoClose;
use crate::close::close_report::{CloseReport, ReportedRow, RowResult};
use crate::close::close_row::PlanRows;
use crate::close::close_writes::{CloseContext, ClosingError, RowItem, WriteEnd, close_key, present_repo, row_key};
use crate::close::live_item::last_close_is_ours;

/// The reason why a row is skipped if another account closed the item after us.
const NOT_OUR_CLOSE: &str = "not_our_close";
/// The reason why nothing is written to an item that another account has already reopened.
pub(crate) const ALREADY_OPEN: &str = "already_open";
/// The maximum number of characters of a person's note in a comment.
const NOTE: usize = 2_000;
/// A reopening that GitHub refused is tried again on each request, at most this often.
const MOST_TRIES: usize = 50;

#[derive(Debug, Clone, Copy)]
pub struct UndoOptions<'a> {
    pub run: CloseRunId,
    /// Undo only this item.
    pub item: Option<ItemNumber>,
    pub reason: UndoReason,
    /// The person's own note. It is posted in the comment and stored with the ruling.
    pub note: Option<&'a str>,
    /// Who requested the undo, if known; stored with the ruling.
    pub by: Option<&'a Login>,
    pub config: &'a RepoConfig,
    /// The id of this run, stored with everything it does. Each process must use its own.
    pub run_id: &'a str,
    /// Stop after this many items and leave the rest to the next run; `None` means no limit. A run that continues
    /// counts items that could not be reopened as done.
    pub most_rows: Option<usize>,
}

/// Why nothing, or not everything, is undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The run does not exist, or it has nothing to undo.
    #[error("{0}")]
    NothingToUndo(String),
    #[error(transparent)]
    Ended(#[from] ClosingError),
}

impl From<StoreError> for UndoError {
    fn from(error: StoreError) -> Self {
        Self::Ended(error.into())
    }
}

impl From<OutboxError> for UndoError {
    fn from(error: OutboxError) -> Self {
        Self::Ended(error.into())
    }
}

/// Reopens what a plan closed, if the last close of the item is ours.
///
/// Each item is reopened, gets a comment that says why, loses our label, and is recorded, in this order and each
/// once. Only [`UndoReason::NotDuplicate`] stores a ruling that the two items are not duplicates.
#[boxed]
pub async fn undo_close(
    store: &Store,
    github: &GitHub,
    outbox: &Outbox,
    repo: &Repo,
    options: UndoOptions<'_>,
    on_row: &mut (dyn FnMut(&ReportedRow) + Send),
) -> Result<CloseReport, UndoError> {
    let plan = plan_behind(store, repo, options.run).await?;
    let owner = format!("undo-close of plan {}, run {}, process {}", plan.id, options.run_id, std::process::id());
    let lease = CloseLeaseGuard::take(store, github, repo.id, owner).await.map_err(ClosingError::from)?;
    let closing = CloseContext { store, github, outbox, lease: &lease, repo };
    let undone = undo(closing, &plan, options, on_row).await;
    lease.release().await;
    undone
}

async fn plan_behind(store: &Store, repo: &Repo, id: CloseRunId) -> Result<CloseRun, UndoError> {
    let nothing = |words: String| Err(UndoError::NothingToUndo(words));
    let Some(run) = store.plans().run(id).await? else { return nothing(format!("there is no run {id}")) };
    if run.repo.id != repo.id {
        return nothing(format!("run {id} belongs to {} and not to {}", run.repo.name, repo.name));
    }
    let plan = match (run.mode, run.plan_id) {
        (CloseMode::Plan, _) => Some(run),
        (CloseMode::Apply, Some(plan)) => store.plans().run(plan).await?,
        (CloseMode::Undo, Some(plan)) => {
            return nothing(format!("run {id} is the undo of plan {plan}; name the plan"));
        }
        (_, None) => None,
    };
    plan.map_or_else(|| nothing(format!("the plan of run {id} no longer exists")), Ok)
}

async fn undo(
    closing: CloseContext<'_>,
    plan: &CloseRun,
    options: UndoOptions<'_>,
    on_row: &mut (dyn FnMut(&ReportedRow) + Send),
) -> Result<CloseReport, UndoError> {
    let store = closing.store;
    let wanted = |number: ItemNumber| options.item.is_none_or(|item| item == number);
    end_what_was_begun(closing, plan, options).await?;
    let mut report = CloseReport::default();
    let mut closed = Vec::new();
    for &item_type in ItemType::ALL {
        let applied = store.plans().applied_closes(closing.repo.id, item_type).await?;
        closed.extend(applied.into_iter().filter(|close| close.plan_id == plan.id).map(|close| (item_type, close)));
    }
    closed.retain(|(_, close)| wanted(close.number));
    if closed.is_empty() {
        let what = options.item.map_or_else(|| "nothing".to_owned(), |item| format!("no #{item}"));
        return Err(UndoError::NothingToUndo(format!("plan {} has closed {what}", plan.id)));
    }
    closed.sort_by_key(|(item_type, close)| (close.number, *item_type));
    let present = match closed.iter().any(|(_, close)| close.undone_at.is_none()) {
        true => present_repo(store, closing.github, closing.repo).await?,
        false => closing.repo.clone(),
    };
    let closing = CloseContext { repo: &present, ..closing };
    let ended = match options.most_rows {
        Some(_) => ended_before(store, plan).await?,
        None => BTreeMap::new(),
    };
    let mut work = UndoRun { closing, plan, options, run: None };
    let mut touched: BTreeMap<RowItem, BTreeSet<ItemNumber>> = BTreeMap::new();
    let mut attempted: BTreeSet<RowItem> = BTreeSet::new();
    for (item_type, close) in &closed {
        let item = RowItem { item_type: *item_type, number: close.number };
        touched.entry(RowItem { number: close.target, ..item }).or_default().insert(close.number);
        let reported = |result, reason| ReportedRow { item_type: *item_type, number: close.number, result, reason };
        if close.undone_at.is_some() {
            let row = reported(RowResult::AlreadyUndone, None);
            on_row(&row);
            report.add_earlier(row);
            continue;
        }
        if let Some((result, reason)) = ended.get(&item) {
            let row = reported(*result, reason.clone());
            on_row(&row);
            report.add_earlier(row);
            continue;
        }
        if options.most_rows.is_some_and(|most| report.attempted >= most as u64) {
            report.unreached += 1;
            continue;
        }
        attempted.insert(RowItem { number: close.target, ..item });
        closing.lease.hold().await.map_err(ClosingError::from)?;
        let (result, reason) = work.open_again(item, close).await?;
        report.pending += u64::from(result == RowResult::Pending);
        let row = reported(result, reason);
        on_row(&row);
        report.add(row);
    }
    // The last part of an undo in many parts also finishes what a killed part left undone.
    if report.unreached > 0 {
        touched.retain(|target, _| attempted.contains(target));
    }
    // Without a run of its own this undo changed nothing, but an earlier one may have been killed before this point.
    let run = work.run.unwrap_or(plan.id);
    for &item_type in ItemType::ALL {
        let mut of_type = touched.clone();
        of_type.retain(|target, _| target.item_type == item_type);
        if of_type.is_empty() {
            continue;
        }
        let standing = StandingCloses::read(closing, item_type).await?;
        for (target, moved) in of_type {
            let moved: Vec<ItemNumber> = moved.into_iter().collect();
            for (what, ended) in standing.relink(closing, run, target, &moved).await? {
                report.note(&what, ended);
            }
        }
    }
    // The next run undoes the rest: the keys of the writes do not name the run. An undo in parts continues the same
    // run, whose results show what was tried.
    let under_way = match options.most_rows {
        Some(_) => store.plans().running_undo(plan.id).await?.map(|run| run.id),
        None => None,
    };
    if let Some(run) = work.run.or(under_way)
        && report.unreached == 0
        && (options.most_rows.is_none() || report.pending == 0)
    {
        store.plans().finish_run(run, closing.github.now()).await?;
    }
    Ok(report)
}

/// The recorded results of an undo that has not finished.
async fn ended_before(
    store: &Store,
    plan: &CloseRun,
) -> Result<BTreeMap<RowItem, (RowResult, Option<String>)>, StoreError> {
    let Some(run) = store.plans().running_undo(plan.id).await? else { return Ok(BTreeMap::new()) };
    let rows = store.plans().rows(run.id).await?;
    let ended = rows.into_iter().filter_map(|row| {
        let result = row.result?;
        let item = RowItem { item_type: row.item_type, number: row.number };
        Some((item, (result.outcome.into(), result.reason)))
    });
    Ok(ended.collect())
}

/// A killed apply of the plan may have closed items without recording it. They are undone too, and what it has not
/// closed yet stays open.
async fn end_what_was_begun(
    closing: CloseContext<'_>,
    plan: &CloseRun,
    options: UndoOptions<'_>,
) -> Result<(), ClosingError> {
    let CloseContext { store, github, .. } = closing;
    let mut begun = Vec::new();
    for row in store.plans().rows(plan.id).await?.iter().filter(|row| row.skip.is_none()) {
        let item = RowItem { item_type: row.item_type, number: row.number };
        if store.outbox().of_key(&close_key(plan.id, item).text).await?.is_some() {
            begun.push(item);
        }
    }
    if begun.is_empty() {
        return Ok(());
    }
    let Some(run) = store.plans().begin_apply(plan.id, options.run_id, github.now()).await? else { return Ok(()) };
    let recorded = store.plans().rows(run.id).await?;
    let is_open = |item: &RowItem| {
        recorded.iter().any(|row| (row.item_type, row.number) == (item.item_type, item.number) && row.result.is_none())
    };
    let maintainers = Maintainers::default();
    let rows = PlanRows { closing, plan, run: run.id, maintainers: &maintainers, config: options.config, watch: None };
    for item in begun.into_iter().filter(is_open) {
        rows.withdraw(item, "the plan is undone").await?;
    }
    Ok(())
}

/// An undo in progress.
struct UndoRun<'a> {
    closing: CloseContext<'a>,
    plan: &'a CloseRun,
    options: UndoOptions<'a>,
    /// The run that undoes the plan, if there is something to undo.
    run: Option<CloseRunId>,
}

impl UndoRun<'_> {
    async fn open_again(
        &mut self,
        item: RowItem,
        close: &AppliedClose,
    ) -> Result<(RowResult, Option<String>), UndoError> {
        let closing = self.closing;
        self.run = Some(self.begin(item).await?);
        let closed_by = close_key(self.plan.id, item).text;
        let key = self.reopen_key(item).await?;
        let ours = StillOurs { closing, key: &key.text, closed_by: &closed_by };
        let reason = match closing.write_checked(item.number, &key, Write::Reopen, &ours).await? {
            WriteEnd::Pending(words) => return Ok((RowResult::Pending, Some(words))),
            WriteEnd::Refused(words) if words == NOT_OUR_CLOSE => {
                self.record(item, CloseOutcome::Skipped, Some(NOT_OUR_CLOSE), &key.text).await?;
                return Ok((RowResult::Skipped, Some(words)));
            }
            WriteEnd::Refused(words) | WriteEnd::Failed(words) => {
                self.record(item, CloseOutcome::Failed, Some(&words), &key.text).await?;
                return Ok((RowResult::Failed, Some(words)));
            }
            WriteEnd::Sent(Receipt { already: true, .. }) => {
                let opened = CloseOutcome::Applied { objected: false };
                self.record(item, opened, Some(ALREADY_OPEN), &key.text).await?;
                return Ok((RowResult::Skipped, Some(ALREADY_OPEN.to_owned())));
            }
            WriteEnd::Sent(_) => match self.explain(item, close).await? {
                ReopenNotice::Told(reason) => reason,
                ReopenNotice::NotYet(words) => return Ok((RowResult::Pending, Some(words))),
            },
        };
        let opened = CloseOutcome::Applied { objected: false };
        self.record(item, opened, reason.as_deref(), &key.text).await?;
        Ok((RowResult::Applied, reason))
    }

    /// Posts the comment that says why, and removes our label.
    async fn explain(&self, item: RowItem, close: &AppliedClose) -> Result<ReopenNotice, UndoError> {
        let mut body = undo_comment(item.item_type, close.target, self.options.reason);
        if let Some(note) = self.options.note.filter(|note| !note.trim().is_empty()) {
            body = format!("{body}\n\n{}", quote_block(note, NOTE));
        }
        let label = POSSIBLE_DUPLICATE.to_owned();
        let writes = [
            (WriteOrigin::UndoComment, "the comment", Write::Comment { body }),
            (WriteOrigin::UndoUnlabel, "the end of its label", Write::Unlabel { name: label }),
        ];
        let mut troubles = Vec::new();
        for (origin, what, write) in writes {
            match self.closing.correct(item.number, &row_key(origin, self.plan.id, item), write).await? {
                WriteEnd::Sent(_) => {}
                WriteEnd::Pending(words) => return Ok(ReopenNotice::NotYet(words)),
                WriteEnd::Refused(words) | WriteEnd::Failed(words) => {
                    troubles.push(format!("reopened, but {what} could not be written: {words}"));
                }
            }
        }
        Ok(ReopenNotice::Told((!troubles.is_empty()).then(|| troubles.join("; "))))
    }

    /// The key of the reopening. It does not name the undo run: the next run must continue what a killed one has
    /// begun, or our own reopening would look like another account's.
    async fn reopen_key(&self, item: RowItem) -> Result<WriteKey, UndoError> {
        let base = row_key(WriteOrigin::Reopen, self.plan.id, item);
        let mut key = base.clone();
        for again in 2..=MOST_TRIES {
            let entry = self.closing.store.outbox().of_key(&key.text).await?;
            let ended = entry.is_some_and(|entry| matches!(entry.state, OutboxState::Refused | OutboxState::Failed));
            if !ended {
                break;
            }
            key = base.clone().and(again);
        }
        Ok(key)
    }

    async fn begin(&self, item: RowItem) -> Result<CloseRunId, UndoError> {
        let CloseContext { store, github, .. } = self.closing;
        let only = self.options.item.map(|_| [(item.item_type, item.number)]);
        let only = only.as_ref().map(<[_; 1]>::as_slice);
        let run = store.plans().begin_undo(self.plan.id, only, self.options.run_id, github.now()).await?;
        run.map(|run| run.id).ok_or_else(|| UndoError::NothingToUndo(format!("plan {} no longer exists", self.plan.id)))
    }

    async fn record(
        &mut self,
        item: RowItem,
        outcome: CloseOutcome,
        reason: Option<&str>,
        key: &str,
    ) -> Result<(), UndoError> {
        let undone = matches!(outcome, CloseOutcome::Applied { .. });
        let ruled = undone && self.options.reason == UndoReason::NotDuplicate;
        let ruling = ruled.then_some(NotDuplicate { note: self.options.note, by: self.options.by });
        let result = CloseResult { outcome, reason, outbox_key: Some(key) };
        let CloseContext { store, github, .. } = self.closing;
        let RowItem { item_type, number } = item;
        let Some(run) = self.run else { return Ok(()) };
        if !store.plans().record_undo_result(run, item_type, number, result, ruling, github.now()).await? {
            // A killed run has already recorded a failure for this item; the new result needs a new run.
            store.plans().finish_run(run, github.now()).await?;
            let run = self.begin(item).await?;
            self.run = Some(run);
            store.plans().record_undo_result(run, item_type, number, result, ruling, github.now()).await?;
        }
        Ok(())
    }
}

/// Whether the reopening was explained on the item.
enum ReopenNotice {
    Told(Option<String>),
    /// The write waits for longer than this run does.
    NotYet(String),
}

/// The check before a reopening: whether the last close of the item is still ours.
struct StillOurs<'a> {
    closing: CloseContext<'a>,
    key: &'a str,
    closed_by: &'a str,
}

impl StillOurs<'_> {
    async fn rule(&self, entry: &OutboxEntry, act: Act) -> Result<Ruling, RecheckError> {
        if entry.key != self.key {
            return NoClose(self.closing).recheck(entry, act).await;
        }
        let CloseContext { store, github, outbox, lease, .. } = self.closing;
        if !lease.is_held().await? {
            return Err("another process has taken over closing in this repository".into());
        }
        let closed = store.outbox().of_key(self.closed_by).await?;
        let commented_at = closed.as_ref().map(WriteEnd::of).and_then(|ended| match ended {
            WriteEnd::Sent(receipt) => receipt.comment?.created_at,
            _ => None,
        });
        let issue = github.issue(&entry.repo.name, entry.number).await?;
        let timeline = github.timeline(&entry.repo.name, entry.number).all().await?;
        Ok(match last_close_is_ours(outbox.own_login(), &issue, &timeline, commented_at) {
            true => Ruling::Proceed,
            false => Ruling::Refuse { reason: NOT_OUR_CLOSE.to_owned() },
        })
    }
}

impl Recheck for StillOurs<'_> {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(self.rule(entry, act))
    }
}
