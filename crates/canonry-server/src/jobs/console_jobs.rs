//! What people order in the console: stored as jobs, so that no request waits for GitHub and no kill loses a deed.

use canonry_domain::{
    GithubId, ItemNumber, ItemType, Login, Probability, TargetPolicy, UndoReason, may_row_approval_change,
};
use canonry_store::{CloseRunId, Job, JobId, Repo, Store, StoreError};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jobs::kinds::{APPLY_CLOSE, CANCEL_GRACE, CANONICALIZE, PLAN, UNDO_CLOSE};
use crate::jobs::planned_job::PlannedJob;
use crate::jobs::sync_job::planned_sync;

/// How many applies and undos of a plan are looked for among the latest of its repository.
const LATEST: u32 = 50;
/// How many of them are told.
const TOLD: usize = 10;

/// Carry out a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyOrder {
    #[serde(with = "run_number")]
    pub plan: CloseRunId,
    /// Only rows that a person approved.
    pub approved_only: bool,
    /// It was ordered to take back what was begun, of a plan that closes nothing any more.
    #[serde(default)]
    pub only_takes_back: bool,
    /// Who ordered it; `None` is the operator.
    pub by: Option<Login>,
}

/// Open again what a plan closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOrder {
    #[serde(with = "run_number")]
    pub plan: CloseRunId,
    /// Only this item.
    pub item: Option<(ItemType, ItemNumber)>,
    pub reason: UndoReason,
    /// What else is said about it under the item.
    pub note: Option<String>,
    /// Who ordered it; `None` is the operator.
    pub by: Option<Login>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanOrder {
    /// Only items of this type.
    pub item_type: Option<ItemType>,
    /// The least confidence with which an item is closed; `None` is as the settings say.
    pub min_close: Option<Probability>,
    /// What must have been judged; `None` is as the settings say.
    pub policy: Option<TargetPolicy>,
    /// Who ordered it; `None` is the operator.
    pub by: Option<Login>,
}

/// Bring the clusters and their canonicals up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanonicalizeOrder {
    /// Only items of this type.
    pub item_type: Option<ItemType>,
    /// Who ordered it; `None` is the operator.
    pub by: Option<Login>,
}

/// Call an announced close off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelGraceOrder {
    pub item_type: ItemType,
    pub number: ItemNumber,
    /// Who ordered it; `None` is the operator.
    pub by: Option<Login>,
}

/// What a job of the console is about.
#[derive(Debug, Clone, PartialEq)]
pub enum ClosingDeed {
    Apply(ApplyOrder),
    Undo(UndoOrder),
    Plan(PlanOrder),
    Canonicalize(CanonicalizeOrder),
    CancelGrace(CancelGraceOrder),
}

/// Has a plan carried out, in parts, until nothing of it is left or a rule forbids it. `None` when an apply of it waits or
/// runs already, however many order it at once.
pub async fn queue_apply(
    store: &Store,
    repo: &Repo,
    order: &ApplyOrder,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    let planned = planned(repo, APPLY_CLOSE, closing_key(repo), order);
    let is_same = |payload: &Value| read_order::<ApplyOrder>(payload).is_some_and(|other| other.plan == order.plan);
    store.jobs().enqueue_unless_active(&planned.job(), is_same, now, now).await
}

/// Has opened again what a plan closed. It does not wait for an apply to end, and one of the whole plan ends its apply.
/// `None` when an undo of the same waits or runs already.
pub async fn queue_undo(
    store: &Store,
    repo: &Repo,
    order: &UndoOrder,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    let planned = planned(repo, UNDO_CLOSE, reopening_key(repo), order);
    let is_same = |payload: &Value| {
        let other = read_order::<UndoOrder>(payload);
        other.is_some_and(|other| (other.plan, other.item) == (order.plan, order.item))
    };
    store.jobs().enqueue_unless_active(&planned.job(), is_same, now, now).await
}

pub async fn queue_plan(store: &Store, repo: &Repo, order: &PlanOrder, now: Timestamp) -> Result<JobId, StoreError> {
    queue(store, repo, PLAN, closing_key(repo), order, now).await
}

/// Has clusters and their canonicals brought up to date.
pub async fn queue_canonicalize(
    store: &Store,
    repo: &Repo,
    item_type: Option<ItemType>,
    by: Option<&Login>,
    now: Timestamp,
) -> Result<JobId, StoreError> {
    let order = CanonicalizeOrder { item_type, by: by.cloned() };
    queue(store, repo, CANONICALIZE, closing_key(repo), &order, now).await
}

/// Has an announced close called off. It goes in order with what webhooks tell of the item, and waits for nothing else.
pub async fn queue_cancel_grace(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    by: Option<&Login>,
    now: Timestamp,
) -> Result<JobId, StoreError> {
    let order = CancelGraceOrder { item_type, number, by: by.cloned() };
    let key = format!("{}#{number}", repo_key(repo));
    queue(store, repo, CANCEL_GRACE, key, &order, now).await
}

/// Has a repository synced; `None` when that waits to be done already.
pub async fn queue_sync(store: &Store, repo: &Repo, now: Timestamp) -> Result<Option<JobId>, StoreError> {
    store.jobs().enqueue_once(&planned_sync(repo).job(), now, now).await
}

/// The latest apply, undo, plan or look at the clusters that was ordered in a repository.
pub async fn last_closing_job(store: &Store, repo: &Repo) -> Result<Option<Job>, StoreError> {
    let (closing, reopening) = (closing_key(repo), reopening_key(repo));
    let mut last: Option<Job> = None;
    for (key, kind) in [(&closing, APPLY_CLOSE), (&reopening, UNDO_CLOSE), (&closing, PLAN), (&closing, CANONICALIZE)] {
        let job = store.jobs().last_of(key, kind).await?;
        last = [last, job].into_iter().flatten().max_by_key(|job| job.id);
    }
    Ok(last)
}

/// The latest applies and undos of a plan that were ordered, the latest first.
pub async fn closing_jobs_of(store: &Store, repo: &Repo, plan: CloseRunId) -> Result<Vec<Job>, StoreError> {
    let mut jobs = Vec::new();
    for (key, kind) in [(closing_key(repo), APPLY_CLOSE), (reopening_key(repo), UNDO_CLOSE)] {
        // What goes on is told, however much was ordered after it.
        jobs.extend(store.jobs().unfinished_of_key(&key, kind).await?);
        jobs.extend(store.jobs().of_key(&key, kind, LATEST).await?);
    }
    jobs.retain(|job| match closing_deed(job) {
        Some(ClosingDeed::Apply(order)) => order.plan == plan,
        Some(ClosingDeed::Undo(order)) => order.plan == plan,
        _ => false,
    });
    jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
    jobs.dedup_by_key(|job| job.id);
    let mut told = 0;
    jobs.retain(|job| {
        told += 1;
        told <= TOLD || job.state.is_active()
    });
    Ok(jobs)
}

/// Whether an apply of a plan waits or runs.
pub async fn is_being_applied(store: &Store, repo: &Repo, plan: CloseRunId) -> Result<bool, StoreError> {
    let jobs = store.jobs().unfinished_of_key(&closing_key(repo), APPLY_CLOSE).await?;
    Ok(jobs.iter().filter_map(order_of::<ApplyOrder>).any(|order| order.plan == plan))
}

/// Whether a person's word on rows of a plan can be taken now, wherever they say it: an apply may have been ordered in the
/// console, or be carried out by a command that has the close lease.
pub async fn may_row_approval_change_now(
    store: &Store,
    repo: &Repo,
    plan: CloseRunId,
    word: Option<bool>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let is_under_way = is_being_applied(store, repo, plan).await?
        || (store.plans().apply_of(plan).await?.is_some_and(|apply| apply.finished_at.is_none())
            && store.close().lease(repo.id).await?.is_some_and(|lease| lease.until > now));
    Ok(may_row_approval_change(word, is_under_way))
}

/// What a job is about, if it is one of those that people order in the console.
pub fn closing_deed(job: &Job) -> Option<ClosingDeed> {
    Some(match job.kind.as_str() {
        APPLY_CLOSE => ClosingDeed::Apply(order_of(job)?),
        UNDO_CLOSE => ClosingDeed::Undo(order_of(job)?),
        PLAN => ClosingDeed::Plan(order_of(job)?),
        CANONICALIZE => ClosingDeed::Canonicalize(order_of(job)?),
        CANCEL_GRACE => ClosingDeed::CancelGrace(order_of(job)?),
        _ => return None,
    })
}

/// What was ordered; `None` when the job was stored by another version and cannot be read.
pub(crate) fn order_of<T: DeserializeOwned>(job: &Job) -> Option<T> {
    read_order(&job.payload)
}

fn read_order<T: DeserializeOwned>(payload: &Value) -> Option<T> {
    serde_json::from_value(payload["order"].clone()).ok()
}

/// The run that an order is: fixed when it was queued, so that another try of the job is the same run.
pub(crate) fn run_of(job: &Job) -> &str {
    job.payload["run_id"].as_str().unwrap_or("console")
}

/// GitHub's id of the repository: its name may be another's by the time the job is done.
pub(crate) fn github_id_of(job: &Job) -> Option<GithubId> {
    job.payload["github_id"].as_i64().map(GithubId)
}

/// GitHub's id of the repository that a job acts on: it says so, or goes in order with what webhooks tell of that id.
pub fn repo_id_of(job: &Job) -> Option<GithubId> {
    let of_key = || job.key.strip_prefix("repo/")?.split('#').next()?.parse().ok().map(GithubId);
    github_id_of(job).or_else(of_key)
}

/// One of these at a time: a plan that is made while another is carried out would end that one.
pub(crate) fn closing_key(repo: &Repo) -> String {
    format!("{}/closing", repo_key(repo))
}

/// Not the same: an apply may take hours, and what it did wrong must not wait for that. The close lease keeps the two
/// apart.
pub(crate) fn reopening_key(repo: &Repo) -> String {
    format!("{}/reopening", repo_key(repo))
}

/// As webhooks name a repository, where it has an id.
fn repo_key(repo: &Repo) -> String {
    match repo.github_id {
        Some(id) => format!("repo/{}", id.0),
        None => format!("repo/{}", repo.name.key()),
    }
}

async fn queue<T: Serialize>(
    store: &Store,
    repo: &Repo,
    kind: &'static str,
    key: String,
    order: &T,
    now: Timestamp,
) -> Result<JobId, StoreError> {
    store.jobs().enqueue(&planned(repo, kind, key, order).job(), now, now).await
}

fn planned<T: Serialize>(repo: &Repo, kind: &'static str, key: String, order: &T) -> PlannedJob {
    let payload = json!({
        "github_id": repo.github_id.map(|id| id.0),
        "run_id": format!("console-{:016x}", rand::random::<u64>()),
        "order": order,
    });
    PlannedJob { key, repo: Some(repo.name.clone()), kind, payload }
}

/// A run's number as it is stored in a job.
mod run_number {
    use canonry_store::CloseRunId;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(crate) fn serialize<S: Serializer>(run: &CloseRunId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(run.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CloseRunId, D::Error> {
        i64::deserialize(deserializer).map(CloseRunId::new)
    }
}
