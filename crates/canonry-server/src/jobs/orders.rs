//! Orders from the console, stored as jobs, so that no request waits for GitHub and a kill loses no order.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, ItemType, Login, RepoName, may_row_approval_change};
use canonry_store::{CloseRunId, Job, JobId, JobKind, Repo, RepoAccess, Store, StoreError};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::jobs::closing_job::{ApplyOrder, UndoOrder};
use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::job_keys::{KeyedRepo, closing_key, reopening_key, webhook_repo};
use crate::jobs::planning_job::{CancelGraceOrder, CanonicalizeOrder, PlanOrder};
use crate::jobs::service_job::{PreparedJob, ServiceJob, payload_of, queue_once};
use crate::jobs::sync_job::SyncJob;
use crate::service::Service;

/// How many of the repository's latest applies and undos are searched for those of a plan.
const LATEST: u32 = 50;
const SHOWN: usize = 10;

/// An order of a person, and how it is carried out.
pub(crate) trait Order: Serialize + DeserializeOwned + Send + Sync {
    const KIND: JobKind;

    fn key(&self, repo: KeyedRepo<'_>) -> String;

    fn carry_out(&self, context: OrderContext<'_>) -> impl Future<Output = Result<(), JobError>> + Send;
}

#[derive(Clone, Copy)]
pub(crate) struct OrderContext<'a> {
    pub(crate) service: &'a Service,
    pub(crate) repo: &'a Repo,
    pub(crate) job: &'a Job,
    /// Fixed when the order was queued, so that another try of the job is the same run.
    pub(crate) run_id: &'a str,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderJob<T> {
    /// GitHub's id of the repository: its name may belong to another repository when the job runs.
    github_id: Option<GithubId>,
    run_id: String,
    pub(crate) order: T,
}

impl<T: Order> OrderJob<T> {
    fn new(repo: &Repo, order: T) -> Self {
        Self { github_id: repo.github_id, run_id: format!("console-{:016x}", rand::random::<u64>()), order }
    }

    /// The repository of the order, by GitHub's id if it has one.
    async fn repo(&self, service: &Service, name: Option<&RepoName>) -> Result<Repo, JobError> {
        let store = service.store();
        let repo = match (self.github_id, name) {
            (Some(id), _) => store.repos().by_github_id(id).await?,
            (None, Some(name)) => store.repos().find(name).await?,
            (None, None) => None,
        };
        let Some(repo) = repo else { return Err(JobError::ignored("the repository is no longer in the database")) };
        let access = store.repos().access(repo.id).await?;
        if access != RepoAccess::Active {
            return Err(JobError::Ignored(format!("{} is {}; nothing is done there", repo.name, access.as_str())));
        }
        Ok(repo)
    }
}

impl<T: Order> ServiceJob for OrderJob<T> {
    const KIND: JobKind = T::KIND;

    fn key(&self, repo: Option<&RepoName>) -> String {
        self.order.key(KeyedRepo::new(self.github_id, repo))
    }

    async fn run(&self, service: &Service, leased: &LeasedJob) -> Result<(), JobError> {
        let job = &leased.job;
        let repo = self.repo(service, job.repo.as_ref()).await?;
        self.order.carry_out(OrderContext { service, repo: &repo, job, run_id: &self.run_id }).await
    }
}

/// An order that a page or a command reads back from its job.
#[derive(Debug, Clone, PartialEq)]
pub enum ConsoleOrder {
    Apply(ApplyOrder),
    Undo(UndoOrder),
    Plan(PlanOrder),
    Canonicalize(CanonicalizeOrder),
    CancelGrace(CancelGraceOrder),
}

impl ConsoleOrder {
    /// The order of a job; `None` for other jobs, and for a payload of another version that cannot be read.
    pub fn of(job: &Job) -> Option<Self> {
        Some(match job.kind.known()? {
            JobKind::ApplyClose => Self::Apply(order_of(job)?),
            JobKind::UndoClose => Self::Undo(order_of(job)?),
            JobKind::Plan => Self::Plan(order_of(job)?),
            JobKind::Canonicalize => Self::Canonicalize(order_of(job)?),
            JobKind::CancelGrace => Self::CancelGrace(order_of(job)?),
            _ => return None,
        })
    }

    pub fn plan(&self) -> Option<CloseRunId> {
        match self {
            Self::Apply(order) => Some(order.plan),
            Self::Undo(order) => Some(order.plan),
            Self::Plan(_) | Self::Canonicalize(_) | Self::CancelGrace(_) => None,
        }
    }
}

pub(crate) fn order_of<T: Order>(job: &Job) -> Option<T> {
    payload_of::<OrderJob<T>>(job).map(|stored| stored.order)
}

/// Queues an apply of a plan, which runs in parts until nothing is left or a rule forbids it. `None` if an apply of
/// the plan is already queued or running, however many people order it at once.
#[boxed]
pub async fn queue_apply(
    store: &Store,
    repo: &Repo,
    order: &ApplyOrder,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    queue_unless_active(store, repo, order, |other| other.plan == order.plan, now).await
}

/// Queues an undo of a plan. It does not wait for an apply to end; an undo of the whole plan ends its apply. `None`
/// if the same undo is already queued or running.
#[boxed]
pub async fn queue_undo(
    store: &Store,
    repo: &Repo,
    order: &UndoOrder,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    let is_same = |other: &UndoOrder| (other.plan, other.item) == (order.plan, order.item);
    queue_unless_active(store, repo, order, is_same, now).await
}

#[boxed]
pub async fn queue_plan(store: &Store, repo: &Repo, order: &PlanOrder, now: Timestamp) -> Result<JobId, StoreError> {
    queue(store, repo, order, now).await
}

#[boxed]
pub async fn queue_canonicalize(
    store: &Store,
    repo: &Repo,
    item_type: Option<ItemType>,
    by: Option<&Login>,
    now: Timestamp,
) -> Result<JobId, StoreError> {
    queue(store, repo, &CanonicalizeOrder { item_type, by: by.cloned() }, now).await
}

/// Queues the cancellation of an announced close. It runs in order with the item's webhooks and waits for nothing
/// else.
#[boxed]
pub async fn queue_cancel_grace(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    by: Option<&Login>,
    now: Timestamp,
) -> Result<JobId, StoreError> {
    queue(store, repo, &CancelGraceOrder { item_type, number, by: by.cloned() }, now).await
}

/// Queues a sync of a repository; `None` if one is already queued.
#[boxed]
pub async fn queue_sync(store: &Store, repo: &Repo, now: Timestamp) -> Result<Option<JobId>, StoreError> {
    queue_once(store, &SyncJob::of(repo), Some(&repo.name), now, now).await
}

async fn queue<T: Order + Clone>(store: &Store, repo: &Repo, order: &T, now: Timestamp) -> Result<JobId, StoreError> {
    let job = PreparedJob::new(&OrderJob::new(repo, order.clone()), Some(&repo.name));
    store.jobs().enqueue(&job.row(), now, now).await
}

async fn queue_unless_active<T: Order + Clone>(
    store: &Store,
    repo: &Repo,
    order: &T,
    is_same: impl Fn(&T) -> bool + Send + Sync,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    let job = PreparedJob::new(&OrderJob::new(repo, order.clone()), Some(&repo.name));
    let is_same =
        |payload: &Value| OrderJob::<T>::deserialize(payload).is_ok_and(|other: OrderJob<T>| is_same(&other.order));
    store.jobs().enqueue_unless_active(&job.row(), is_same, now, now).await
}

/// The latest apply, undo, plan or canonicalize job that was ordered in a repository.
#[boxed]
pub async fn last_closing_job(store: &Store, repo: &Repo) -> Result<Option<Job>, StoreError> {
    let (closing, reopening) = (closing_key(repo.into()), reopening_key(repo.into()));
    let mut last: Option<Job> = None;
    for (key, kind) in [
        (&closing, JobKind::ApplyClose),
        (&reopening, JobKind::UndoClose),
        (&closing, JobKind::Plan),
        (&closing, JobKind::Canonicalize),
    ] {
        let job = store.jobs().last_of(key, kind).await?;
        last = [last, job].into_iter().flatten().max_by_key(|job| job.id);
    }
    Ok(last)
}

/// The latest applies and undos of a plan, the latest first.
#[boxed]
pub async fn closing_jobs_of(store: &Store, repo: &Repo, plan: CloseRunId) -> Result<Vec<Job>, StoreError> {
    let mut jobs = Vec::new();
    for (key, kind) in
        [(closing_key(repo.into()), JobKind::ApplyClose), (reopening_key(repo.into()), JobKind::UndoClose)]
    {
        // Unfinished jobs are shown, however many orders came after them.
        jobs.extend(store.jobs().unfinished_of_key(&key, kind).await?);
        jobs.extend(store.jobs().of_key(&key, kind, LATEST).await?);
    }
    jobs.retain(|job| ConsoleOrder::of(job).and_then(|order| order.plan()) == Some(plan));
    jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
    jobs.dedup_by_key(|job| job.id);
    let mut shown = 0;
    jobs.retain(|job| {
        shown += 1;
        shown <= SHOWN || job.state.is_active()
    });
    Ok(jobs)
}

#[boxed]
pub async fn is_being_applied(store: &Store, repo: &Repo, plan: CloseRunId) -> Result<bool, StoreError> {
    let jobs = store.jobs().unfinished_of_key(&closing_key(repo.into()), JobKind::ApplyClose).await?;
    Ok(jobs.iter().filter_map(order_of::<ApplyOrder>).any(|order| order.plan == plan))
}

/// Whether a person's approval of plan rows can be recorded now, in the console or elsewhere. An apply may have been
/// ordered in the console, or a command that has the close lease may be running it.
#[boxed]
pub async fn may_row_approval_change_now(
    store: &Store,
    repo: &Repo,
    plan: CloseRunId,
    approved: Option<bool>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let is_under_way = is_being_applied(store, repo, plan).await?
        || (store.plans().apply_of(plan).await?.is_some_and(|apply| apply.finished_at.is_none())
            && store.close().lease(repo.id).await?.is_some_and(|lease| lease.until > now));
    Ok(may_row_approval_change(approved, is_under_way))
}

/// GitHub's id of the repository of a job. Every job about a repository has it in its payload.
pub fn repo_id_of(job: &Job) -> Option<GithubId> {
    let stored_by_earlier_versions = || webhook_repo(&job.key);
    job.payload["github_id"].as_i64().map(GithubId).or_else(stored_by_earlier_versions)
}

/// (De)serializes the number of a run.
pub(crate) mod run_number {
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
