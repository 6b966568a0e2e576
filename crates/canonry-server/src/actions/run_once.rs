//! One run: leases the state, handles the events, does what is due, and stores the state again.

use canonry_boxed::boxed;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use canonry_clock::Clock;
use canonry_domain::RepoName;
use canonry_store::{DatabaseUrl, OpenError, Store, StoreError};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use tokio::sync::Mutex;

use crate::actions::drain::{Drain, DrainSummary};
use crate::actions::held_state::{HeldState, LOOK, RENEWAL, StateKeeper};
use crate::actions::lost_items::{queue_lost_suggestions, queue_missed_items};
use crate::actions::run_event::{RunEvent, RunEventError, queue_first_sync, store_run_event};
use crate::actions::run_report::{RunEventReport, report_events};
use crate::actions::state_file::{
    StateFileError, pack_state, place_database, remove_if_there, replace_by_vectors, size_of,
};
use crate::actions::state_ref::{StateEntry, StateError};
use crate::github_writes::publisher::Publish;
use crate::jobs::scheduler::Schedules;
use crate::service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Makes the service once the database is open.
pub type ServiceMaker<'a> = Box<dyn FnOnce(Store) -> BoxFuture<'a, Result<Service, BoxError>> + Send + 'a>;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    File(#[from] StateFileError),
    #[error("the database cannot be moved: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Event(#[from] RunEventError),
    #[error("this run lost its lease on the state and stopped; the next run handles the event")]
    LeaseLost,
    #[error("the run was stopped while another run had the state; start this run again, or its event is lost")]
    Stopped,
    #[error(transparent)]
    Service(BoxError),
}

/// The settings of a run.
#[derive(Clone)]
pub struct RunOnce {
    pub repo: RepoName,
    /// The SQLite file. Files beside it with the same name and other extensions belong to the run.
    pub database: PathBuf,
    /// Keeps the database between two runs; `None` if the file itself is kept.
    pub keeper: Option<StateKeeper>,
    pub clock: Arc<dyn Clock>,
    pub schedules: Schedules,
    /// How many tries a job gets before it fails.
    pub tries: u32,
    /// How long the run may work before it leaves the rest to the next one.
    pub time_limit: SignedDuration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// This run's event, and the events of runs that were killed.
    pub events: Vec<RunEventReport>,
    /// `None` if the run was interrupted.
    pub done: Option<DrainSummary>,
    /// The bytes of the stored database; 0 if the run has no state.
    pub state_size: u64,
}

#[boxed]
impl RunOnce {
    /// Handles an event and everything that is due. When `stop` ends, the state is stored as it is then.
    pub async fn handle(
        &self,
        event: RunEvent,
        make_service: ServiceMaker<'_>,
        mut stop: BoxFuture<'_, ()>,
    ) -> Result<RunReport, RunError> {
        let began_at = self.clock.now();
        let held = match &self.keeper {
            Some(keeper) => tokio::select! {
                held = keeper.lease(&event) => Some(held?),
                () = &mut stop => return Err(RunError::Stopped),
            },
            None => None,
        };
        let events = match &held {
            Some(held) => held.events.iter().map(|waiting| waiting.event.clone()).collect(),
            None => vec![event],
        };
        let store = self.open(held.as_ref()).await?;
        let (held, accepted) = (Mutex::new(held), AtomicUsize::new(0));
        let done = tokio::select! {
            done = self.work(&store, &held, &events, &accepted, make_service) => Some(done?),
            lost = self.keep_lease(&held) => return Err(lost),
            () = stop => None,
        };
        // A run that is stopped during its first sync has accepted none; the next one works on what is stored.
        for event in events.iter().skip(accepted.into_inner()) {
            self.accept(&store, event, events.len()).await?;
        }
        let reports = report_events(&store, &self.repo, &events, began_at).await?;
        store.maintenance().blank_gone_items().await?;
        let mut state_size = 0;
        if let Some(keeper) = &self.keeper {
            let pieces = tokio::select! {
                pieces = self.pack(&store) => pieces?,
                lost = self.keep_lease(&held) => return Err(lost),
            };
            state_size = size_of(&pieces);
            if let Some(mut held) = held.into_inner() {
                // Pushing the database may take as long as the lease is valid.
                match keeper.renew(&mut held).await {
                    Ok(true) => {}
                    Ok(false) => return Err(RunError::LeaseLost),
                    Err(error) => {
                        tracing::warn!(%error, "the lease of the state could not be renewed before the last push");
                    }
                }
                keeper.release(&held, pieces).await?.map(drop).ok_or(RunError::LeaseLost)?;
            }
        }
        self.close(store).await?;
        Ok(RunReport { events: reports, done, state_size })
    }

    /// Closes the database. If the state has it, only its vectors are left.
    async fn close(&self, store: Store) -> Result<(), RunError> {
        let vectors = self.database.with_extension("vectors-new");
        if self.keeper.is_some() {
            store.maintenance().write_vectors(&vectors).await?;
        }
        store.disconnect().await;
        if self.keeper.is_some() {
            replace_by_vectors(&self.database, &vectors)?;
        }
        Ok(())
    }

    /// Opens the database of the state, with the vectors of an earlier run.
    async fn open(&self, held: Option<&HeldState>) -> Result<Store, RunError> {
        let vectors = match held {
            Some(held) => place_database(&held.files, &self.database)?,
            None => None,
        };
        let store = Store::open(&DatabaseUrl::Sqlite(self.database.clone()), self.clock.now()).await?;
        if let Some(file) = vectors {
            match store.maintenance().adopt_vectors(&file).await {
                Ok(vectors) => tracing::info!(vectors, "the vectors of an earlier run are used"),
                Err(error) => {
                    tracing::warn!(%error, "the vectors of an earlier run are not used; they are computed again");
                }
            }
            remove_if_there(&file)?;
        }
        Ok(store)
    }

    async fn work(
        &self,
        store: &Store,
        held: &Mutex<Option<HeldState>>,
        events: &[RunEvent],
        accepted: &AtomicUsize,
        make_service: ServiceMaker<'_>,
    ) -> Result<DrainSummary, RunError> {
        let until = self.clock.now() + self.time_limit;
        let service = Arc::new(make_service(store.clone()).await.map_err(RunError::Service)?);
        let drain = Drain {
            store: store.clone(),
            handler: Arc::clone(&service) as _,
            publisher: Some(service as Arc<dyn Publish>),
            clock: Arc::clone(&self.clock),
            schedules: self.schedules,
            tries: self.tries,
        };
        let mut done = DrainSummary::default();
        // The workflow has no event for a change of the settings.
        if let Some(repo) = store.repos().find(&self.repo).await? {
            store.repos().expire_settings(repo.id).await?;
        }
        if queue_first_sync(store, &self.repo, self.clock.now()).await? {
            // The items are there before anything is compared with them.
            done = drain.run(until).await?;
        }
        queue_lost_suggestions(store, &self.repo, self.clock.now()).await?;
        for (at, event) in events.iter().enumerate() {
            let is_left = at + 1 < events.len();
            if events.len() > 1 {
                self.begin_event(held, is_left.then_some(event.id.as_str())).await?;
            }
            self.accept(store, event, events.len()).await?;
            accepted.fetch_add(1, Ordering::Relaxed);
            if is_left {
                done = done + drain.work_off(until).await?;
            }
        }
        done = done + drain.run(until).await?;
        // A sync of this run may have found them.
        let lost = queue_lost_suggestions(store, &self.repo, self.clock.now()).await?;
        let missed = queue_missed_items(store, &self.repo, self.clock.now()).await?;
        if lost + missed > 0 {
            tracing::info!(lost, missed, "items of an earlier database and items whose events were lost are triaged");
            done = done + drain.run(until).await?;
        }
        Ok(done)
    }

    async fn accept(&self, store: &Store, event: &RunEvent, events: usize) -> Result<(), RunEventError> {
        match store_run_event(store, event, self.clock.now()).await {
            Ok(accepted) => tracing::info!(event = event.name, ?accepted, "an event is accepted"),
            // An event of a killed run that cannot be read must not stop this run.
            Err(RunEventError::NotJson(error)) if events > 1 => {
                tracing::warn!(event = event.name, %error, "an event cannot be read");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn begin_event(&self, held: &Mutex<Option<HeldState>>, id: Option<&str>) -> Result<(), RunError> {
        let mut held = held.lock().await;
        let (Some(keeper), Some(held)) = (&self.keeper, held.as_mut()) else { return Ok(()) };
        match keeper.begin_event(held, id).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(RunError::LeaseLost),
            Err(error) => {
                tracing::warn!(%error, "the state does not say which event is in work");
                Ok(())
            }
        }
    }

    /// Renews the lease; returns when it is lost, or over because it could not be renewed.
    async fn keep_lease(&self, held: &Mutex<Option<HeldState>>) -> RunError {
        let Some(keeper) = &self.keeper else { return std::future::pending().await };
        let mut pause = RENEWAL;
        loop {
            keeper.clock.beat(pause).await;
            let mut held = held.lock().await;
            let Some(held) = held.as_mut() else { return std::future::pending().await };
            let until = held.until();
            let over = async {
                while !keeper.is_over(until) {
                    keeper.clock.beat(LOOK).await;
                }
                // A lease that is over can still be renewed if no other run took it.
                keeper.clock.beat(LOOK).await;
            };
            let renewed = tokio::select! {
                biased;
                renewed = keeper.renew(held) => renewed,
                () = over => return RunError::LeaseLost,
            };
            pause = match renewed {
                Ok(true) => RENEWAL,
                Ok(false) => return RunError::LeaseLost,
                Err(error) => {
                    tracing::warn!(%error, "the lease of the state could not be renewed; retrying");
                    LOOK
                }
            };
            if pause == LOOK && keeper.is_over(until) {
                return RunError::LeaseLost;
            }
        }
    }

    /// The database as files for the state.
    async fn pack(&self, store: &Store) -> Result<Vec<StateEntry>, RunError> {
        let copy = self.database.with_extension("portable");
        remove_if_there(&copy)?;
        store.maintenance().write_portable_copy(&copy).await?;
        let pieces = pack_state(&copy)?;
        remove_if_there(&copy)?;
        Ok(pieces)
    }
}
