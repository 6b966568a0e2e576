//! `apply-close`: applies a reviewed plan row by row, and continues after the point at which an earlier run ended.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_config::{ParsedSettings, RepoConfig};
use canonry_domain::{ItemNumber, ItemType, Maintainers, PlanAge, clock_trouble, is_too_old, plan_age};
use canonry_github::GitHub;
use canonry_github::outbox::{Outbox, OutboxError};
use canonry_store::{
    Brake, BrakeKind, CloseMode, CloseOutcome, CloseRun, CloseRunId, CloseRunRow, Repo, Store, StoreError,
    StoredCloseResult,
};
use jiff::Timestamp;

use crate::close::back_links::{StandingCloses, relink};
use crate::close::close_lease::CloseLeaseGuard;
use crate::close::close_report::{CloseReport, ReportedRow, RowResult};
use crate::close::close_row::{PlanRows, RowOutcome};
use crate::close::close_writes::{CloseContext, ClosingError, RowItem, WriteEnd, close_key, left_out, present_repo};
use crate::grace::grace_recheck::GraceWatch;

#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions<'a> {
    pub plan: CloseRunId,
    /// Apply only rows that a person approved.
    pub approved_only: bool,
    /// The repository's settings as parsed. If a section is unreadable, nothing is closed by the defaults that
    /// replace it.
    pub config: &'a ParsedSettings,
    /// The id of this run, stored with everything it does. Each process must use its own.
    pub run_id: &'a str,
    /// Stop after this many rows and leave the rest to the next run; `None` means no limit.
    pub most_rows: Option<usize>,
    /// When the apply was requested. A request to stop it that comes later takes effect before the next row.
    pub ordered_at: Timestamp,
}

/// Why a plan is not applied, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The repository has no plan with this id.
    #[error("{0}")]
    NotAPlan(String),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Ended(#[from] ClosingError),
}

impl From<StoreError> for ApplyError {
    fn from(error: StoreError) -> Self {
        Self::Ended(error.into())
    }
}

impl From<OutboxError> for ApplyError {
    fn from(error: OutboxError) -> Self {
        Self::Ended(error.into())
    }
}

/// Applies the close rows of a plan that nobody excluded.
///
/// Each item is commented on, closed, labelled and recorded, in this order and each exactly once, even if the process
/// is killed at any point. Live state is read again before each write. A row whose items have changed is skipped; the
/// others continue.
#[boxed]
pub async fn apply_close(
    store: &Store,
    github: &GitHub,
    outbox: &Outbox,
    repo: &Repo,
    options: ApplyOptions<'_>,
    on_row: &mut (dyn FnMut(&ReportedRow) + Send),
) -> Result<CloseReport, ApplyError> {
    // The service's sweep checks how people respond to the announcement; this command does not.
    let graces = store.close().waiting_graces(Some(repo.id)).await?;
    if let Some(grace) = graces.iter().find(|grace| grace.plan == Some(options.plan)) {
        let (plan, number) = (options.plan, grace.number);
        return Err(ApplyError::Refused(format!(
            "plan {plan} belongs to the announced close of #{number}; the service applies it"
        )));
    }
    apply_watched(store, github, outbox, repo, options, None, on_row).await
}

/// Like `apply_close`, for the plan of a grace period. People may still end the grace period, so this is checked
/// before each write too.
pub(crate) async fn apply_watched(
    store: &Store,
    github: &GitHub,
    outbox: &Outbox,
    repo: &Repo,
    options: ApplyOptions<'_>,
    watch: Option<&GraceWatch<'_>>,
    on_row: &mut (dyn FnMut(&ReportedRow) + Send),
) -> Result<CloseReport, ApplyError> {
    let plan = known_plan(store, repo, options.plan).await?;
    // In a paused repository nothing is written, not even the correction of a comment.
    if let Some(pause) = store.close().brake_in_force(repo.id, BrakeKind::Pause).await? {
        return Err(ApplyError::Refused(paused(repo, &pause)));
    }
    let owner =
        format!("apply-close of plan {}, run {}, process {}", plan.id.get(), options.run_id, std::process::id());
    let lease = CloseLeaseGuard::take(store, github, repo.id, owner).await.map_err(ClosingError::from)?;
    let closing = CloseContext { store, github, outbox, lease: &lease, repo };
    let applied = apply(closing, &plan, options, watch, on_row).await;
    lease.release().await;
    applied
}

fn paused(repo: &Repo, pause: &Brake) -> String {
    let by = pause.set_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    format!("{0} is paused{by} since {1}; resume it with `canonry resume --repo {0}`", repo.name, pause.set_at)
}

/// The result of a plan that has been applied completely, without a request to GitHub; `None` while some of it is
/// left to do.
#[boxed]
pub async fn applied_before(
    store: &Store,
    repo: &Repo,
    plan: CloseRunId,
    approved_only: bool,
) -> Result<Option<CloseReport>, ApplyError> {
    let plan = known_plan(store, repo, plan).await?;
    let Some(run) = store.plans().apply_of(plan.id).await?.filter(|run| run.finished_at.is_some()) else {
        return Ok(None);
    };
    let done = results(store, run.id).await?;
    let mut report = CloseReport::default();
    for row in store.plans().rows(plan.id).await?.iter().filter(|row| row.skip.is_none()) {
        if left_out(row.approved, approved_only).is_some() {
            continue;
        }
        let Some(result) = done.get(&item_of(row)) else { return Ok(None) };
        report.add_earlier(earlier(row, result));
    }
    Ok(Some(report))
}

fn earlier(row: &CloseRunRow, done: &StoredCloseResult) -> ReportedRow {
    let result = match done.outcome {
        CloseOutcome::Applied { .. } => RowResult::AlreadyApplied,
        outcome => outcome.into(),
    };
    let reason = match (result, done.reason.clone()) {
        (RowResult::Failed, reason) => {
            let words = reason.unwrap_or_else(|| "it failed before".to_owned());
            Some(format!("{words}; make a new plan to try it again"))
        }
        (_, reason) => reason,
    };
    ReportedRow { item_type: row.item_type, number: row.number, result, reason }
}

/// Loads a plan by its id and checks that it belongs to this repository.
pub(crate) async fn known_plan(store: &Store, repo: &Repo, id: CloseRunId) -> Result<CloseRun, ApplyError> {
    let words = match store.plans().run(id).await? {
        None => format!("there is no plan {id}; make one with `canonry plan-close`"),
        Some(run) if run.repo.id != repo.id => {
            format!("run {id} belongs to {} and not to {}", run.repo.name, repo.name)
        }
        Some(run) => match (run.mode, run.plan_id) {
            (CloseMode::Plan, _) => return Ok(run),
            (mode, Some(plan)) => format!("run {id} is not a plan: it is the {} of plan {plan}", mode.as_str()),
            (mode, None) => format!("run {id} is not a plan: it is an {}", mode.as_str()),
        },
    };
    Err(ApplyError::NotAPlan(words))
}

async fn apply(
    closing: CloseContext<'_>,
    plan: &CloseRun,
    options: ApplyOptions<'_>,
    watch: Option<&GraceWatch<'_>>,
    on_row: &mut (dyn FnMut(&ReportedRow) + Send),
) -> Result<CloseReport, ApplyError> {
    let store = closing.store;
    let planned = store.plans().rows(plan.id).await?;
    let groups = by_target(&planned);
    let config = &options.config.config;
    let maintainers = match required_maintainers(closing, plan, options.config).await {
        Err(ApplyError::Refused(words)) => {
            withdraw_all(closing, plan, &groups, config, &words).await?;
            return Err(ApplyError::Refused(words));
        }
        maintainers => maintainers?,
    };
    let Some(run) = store.plans().begin_apply(plan.id, options.run_id, closing.github.now()).await? else {
        return Err(ApplyError::NotAPlan(format!("plan {} no longer exists", plan.id)));
    };
    let done = results(store, run.id).await?;
    let is_left = |row: &CloseRunRow| {
        row.skip.is_none()
            && left_out(row.approved, options.approved_only).is_none()
            && !done.contains_key(&item_of(row))
    };
    let left = planned.iter().filter(|row| is_left(row)).count();
    let present = match left {
        0 => closing.repo.clone(),
        _ => {
            let present = present_repo(store, closing.github, closing.repo).await?;
            // The age of plans and the daily limit on closes depend on our clock.
            if let Some(trouble) = closing.github.github_time().and_then(|time| clock_trouble(time.skew)) {
                return Err(ApplyError::Refused(format!("{trouble}; nothing is closed until the clock is right")));
            }
            present
        }
    };
    let closing = CloseContext { repo: &present, ..closing };
    let rows = PlanRows { closing, plan, run: run.id, maintainers: &maintainers, config, watch };
    let ordered_at = options.ordered_at;
    let mut work = Work {
        rows,
        done,
        touched: BTreeSet::new(),
        report: CloseReport::default(),
        owed: false,
        held: None,
        ordered_at,
    };
    let mut untouched = Vec::new();
    for (target, group) in &groups {
        let attempted = work.report.attempted;
        for row in group {
            match left_out(row.approved, options.approved_only) {
                Some(why) => work.leave_out(row, why).await?,
                None if options.most_rows.is_some_and(|most| work.is_enough(row, most)) => work.leave_to_next(),
                None => work.carry_out(row, target.number, options.approved_only, on_row).await?,
            }
        }
        // When a plan is applied in many parts, closes of earlier runs are linked again only in the last part, and
        // all at once: reading all closes once for each of thousands of targets takes longer than the closes of a
        // part.
        match options.most_rows {
            Some(_) if work.report.attempted == attempted => untouched.push((*target, group)),
            _ => work.relink(*target, &numbers(group)).await?,
        }
    }
    for target in std::mem::take(&mut work.touched) {
        work.relink(target, &[]).await?;
    }
    if work.report.unreached == 0 {
        work.relink_all(&untouched).await?;
    }
    if !work.owed {
        store.plans().finish_run(run.id, closing.github.now()).await?;
    }
    match work.held {
        Some(words) if work.report.attempted == 0 => Err(ApplyError::Refused(words)),
        // The report contains what was done, and the reason why the rest was not.
        words => {
            work.report.remarks.extend(words);
            Ok(work.report)
        }
    }
}

/// Whether a plan may still be applied; used to apply it and to show it.
#[boxed]
pub async fn age_of_plan(store: &Store, plan: &CloseRun, now: Timestamp) -> Result<PlanAge<CloseRunId>, StoreError> {
    // Lists call this for many plans, and most of them are too old whatever came after them.
    if is_too_old(plan.created_at, now) {
        return Ok(PlanAge::TooOld);
    }
    let newer_plan = store.plans().newer_of_items(plan.id).await?;
    let left = store.plans().rows_left(plan.id).await?;
    let others = left.approved + left.unapproved;
    let of_all = left.newest_ruling.filter(|_| left.ruled_since > 0 && others == 0);
    Ok(plan_age(plan.created_at, newer_plan, of_all, now))
}

/// The maintainers, without whom nothing is closed, or why the plan may not be applied.
async fn required_maintainers(
    closing: CloseContext<'_>,
    plan: &CloseRun,
    config: &ParsedSettings,
) -> Result<Maintainers, ApplyError> {
    let CloseContext { store, github, repo, .. } = closing;
    if let Some(section) = config.unsafe_to_close_by() {
        return Err(ApplyError::Refused(format!(
            "the section `{section}` of the repository's settings has a mistake, so nothing is closed; \
             find it with `canonry config check`"
        )));
    }
    if let Some(words) = age_of_plan(store, plan, github.now()).await?.refusal(plan.id) {
        return Err(ApplyError::Refused(words));
    }
    let Some(list) = store.repos().maintainers(repo.id).await? else {
        return Err(ApplyError::Refused(format!(
            "the maintainers of {0} are unknown; run `canonry maintainers refresh --repo {0}`, or name them with \
             `canonry maintainers set --repo {0} LOGIN…`",
            repo.name
        )));
    };
    Ok(list.logins.iter().collect())
}

/// Withdraws what an apply has begun if the plan is refused now: it may have announced closes that will never happen.
async fn withdraw_all(
    closing: CloseContext<'_>,
    plan: &CloseRun,
    groups: &[(RowItem, Vec<&CloseRunRow>)],
    config: &RepoConfig,
    words: &str,
) -> Result<(), ClosingError> {
    let mut run = None;
    for (target, group) in groups {
        for row in group {
            let item = item_of(row);
            if closing.store.outbox().of_key(&close_key(plan.id, item).text).await?.is_none() {
                continue;
            }
            let Some(begun) = closing.store.plans().begin_apply(plan.id, &plan.run_id, closing.github.now()).await?
            else {
                return Ok(());
            };
            let maintainers = Maintainers::default();
            let rows = PlanRows { closing, plan, run: begun.id, maintainers: &maintainers, config, watch: None };
            closing.lease.hold().await?;
            rows.withdraw(item, words).await?;
            run = Some(begun.id);
        }
        if let Some(run) = run {
            relink(closing, run, *target, &numbers(group)).await?;
        }
    }
    Ok(())
}

/// The rows that close something, grouped by the item that they are closed as a duplicate of.
fn by_target(rows: &[CloseRunRow]) -> Vec<(RowItem, Vec<&CloseRunRow>)> {
    let mut groups: Vec<(RowItem, Vec<&CloseRunRow>)> = Vec::new();
    let mut places: BTreeMap<RowItem, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.skip.is_none()) {
        let Some(number) = row.target else { continue };
        let target = RowItem { item_type: row.item_type, number };
        let place = *places.entry(target).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(row),
            None => groups.push((target, vec![row])),
        }
    }
    groups
}

fn numbers(group: &[&CloseRunRow]) -> Vec<ItemNumber> {
    group.iter().map(|row| row.number).collect()
}

fn item_of(row: &CloseRunRow) -> RowItem {
    RowItem { item_type: row.item_type, number: row.number }
}

async fn results(store: &Store, run: CloseRunId) -> Result<BTreeMap<RowItem, StoredCloseResult>, StoreError> {
    let rows = store.plans().rows(run).await?;
    Ok(rows.into_iter().filter_map(|row| Some((item_of(&row), row.result?))).collect())
}

/// An apply in progress.
struct Work<'a> {
    rows: PlanRows<'a>,
    done: BTreeMap<RowItem, StoredCloseResult>,
    /// Targets of other plans whose back-links changed because of closes that were settled here.
    touched: BTreeSet<RowItem>,
    report: CloseReport,
    owed: bool,
    /// Why the apply stops: the repository was paused, or the apply was stopped, while it ran.
    held: Option<String>,
    ordered_at: Timestamp,
}

impl Work<'_> {
    async fn carry_out(
        &mut self,
        row: &CloseRunRow,
        target: ItemNumber,
        approved_only: bool,
        on_row: &mut (dyn FnMut(&ReportedRow) + Send),
    ) -> Result<(), ApplyError> {
        let item @ RowItem { item_type, number } = item_of(row);
        if let Some(done) = self.done.get(&item) {
            let row = earlier(row, done);
            on_row(&row);
            self.report.add_earlier(row);
            return Ok(());
        }
        self.rows.closing.lease.hold().await.map_err(ClosingError::from)?;
        // The rows before this one may have taken long, and people can change approvals meanwhile.
        let approved = self.rows.closing.store.plans().approval_of_row(self.rows.plan.id, item_type, number).await?;
        if let Some(why) = left_out(approved, approved_only) {
            return self.leave_out(row, why).await;
        }
        if let Some(words) = self.held_back(item).await? {
            self.held = Some(words);
            self.leave_to_next();
            return Ok(());
        }
        let row = &CloseRunRow { approved, ..row.clone() };
        self.touched.extend(self.rows.withdraw_other_plans(item).await?);
        let RowOutcome { result, reason, is_final } = self.rows.close(row, target, approved_only).await?;
        self.owed |= !is_final;
        let row = ReportedRow { item_type, number, result, reason };
        on_row(&row);
        match result {
            _ if is_final => {}
            // Only another day or a person's approval lets this row continue.
            RowResult::Skipped => self.report.over_daily_limit += 1,
            RowResult::Pending => self.report.pending += 1,
            _ => self.report.failing += 1,
        }
        self.report.add(row);
        Ok(())
    }

    /// Why the close of an item is not begun now: the apply was stopped, or the repository is paused. A close that
    /// began now would wait with no process to send it, and would block other writes to its item. A close that has
    /// already begun continues as far as it may.
    async fn held_back(&self, item: RowItem) -> Result<Option<String>, ApplyError> {
        let (CloseContext { store, repo, .. }, plan) = (self.rows.closing, self.rows.plan.id);
        let pause = store.close().brake_in_force(repo.id, BrakeKind::Pause).await?;
        let stop = store.plans().stop_of_apply(plan).await?.filter(|(at, _)| *at >= self.ordered_at);
        let words = match (pause, stop) {
            (Some(pause), _) => paused(repo, &pause),
            (None, Some((at, by))) => {
                let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
                format!("the apply of plan {plan} was stopped{by} at {at}; apply the plan again to go on")
            }
            (None, None) => return Ok(None),
        };
        let begun = store.outbox().of_key(&close_key(plan, item).text).await?;
        Ok(begun.is_none().then_some(words))
    }

    /// Whether this run has reached its row limit and the row would be new work. Rows that wait for another day do
    /// not count as work.
    fn is_enough(&self, row: &CloseRunRow, most: usize) -> bool {
        let worked_on = self.report.attempted - self.report.over_daily_limit;
        worked_on >= most as u64 && !self.done.contains_key(&item_of(row))
    }

    fn leave_to_next(&mut self) {
        self.report.unreached += 1;
        self.owed = true;
    }

    /// Skips a row that is not to be closed. An earlier run may have begun its close, so that is withdrawn.
    async fn leave_out(&mut self, row: &CloseRunRow, why: &str) -> Result<(), ApplyError> {
        let item = item_of(row);
        if !self.done.contains_key(&item)
            && let Some(outcome) = self.rows.withdraw(item, why).await?
        {
            self.owed |= !outcome.is_final;
        }
        Ok(())
    }

    async fn relink(&mut self, target: RowItem, closed: &[ItemNumber]) -> Result<(), ApplyError> {
        let PlanRows { closing, run, .. } = self.rows;
        let sent = relink(closing, run, target, closed).await?;
        self.note(sent);
        Ok(())
    }

    /// Like `relink`, for many targets after the last close.
    async fn relink_all(&mut self, groups: &[(RowItem, &Vec<&CloseRunRow>)]) -> Result<(), ApplyError> {
        let PlanRows { closing, run, .. } = self.rows;
        for &item_type in ItemType::ALL {
            let of_type: Vec<_> = groups.iter().filter(|(target, _)| target.item_type == item_type).collect();
            if of_type.is_empty() {
                continue;
            }
            let standing = StandingCloses::read(closing, item_type).await?;
            for (target, group) in of_type {
                closing.lease.hold().await.map_err(ClosingError::from)?;
                let sent = standing.relink(closing, run, *target, &numbers(group)).await?;
                self.note(sent);
            }
        }
        Ok(())
    }

    fn note(&mut self, sent: Vec<(String, WriteEnd)>) {
        for (what, ended) in sent {
            self.owed |= self.report.note(&what, ended);
        }
    }
}
