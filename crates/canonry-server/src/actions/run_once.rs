//! One run: leases the state, handles the events, does what is due, and stores the state again.

use canonry_boxed::boxed;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use canonry_clock::Clock;
use canonry_domain::RepoName;
use canonry_store::{DatabaseUrl, OpenError, Store, StoreError};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use tokio::sync::Mutex;

use crate::actions::drain::{Drain, DrainSummary};
use crate::actions::held_state::{HeldState, RENEWAL, StateKeeper};
use crate::actions::lost_items::{queue_lost_suggestions, queue_missed_items};
use crate::actions::run_event::{RunEvent, RunEventError, queue_first_sync, store_run_event};
use crate::actions::run_report::{RunEventReport, report_events};
use crate::actions::state_file::{StateFileError, pack_state, place_database, remove_if_there};
use crate::actions::state_ref::StateError;
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
    #[error("another run has taken over the state; it also handles this run's event")]
    LeaseLost,
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
}

#[boxed]
impl RunOnce {
    /// Handles an event and everything that is due. When `stop` ends, the state is stored as it is then.
    pub async fn handle(
        &self,
        event: RunEvent,
        make_service: ServiceMaker<'_>,
        stop: BoxFuture<'_, ()>,
    ) -> Result<RunReport, RunError> {
        let began_at = self.clock.now();
        let held = match &self.keeper {
            Some(keeper) => Some(keeper.lease(&event).await?),
            None => None,
        };
        let events = held.as_ref().map_or_else(|| vec![event], |held| held.events.clone());
        let store = self.open(held.as_ref()).await?;
        let held = Mutex::new(held);
        let done = tokio::select! {
            done = self.work(&store, &events, make_service) => Some(done?),
            lost = self.keep_lease(&held) => return Err(lost),
            () = stop => None,
        };
        let reports = report_events(&store, &self.repo, &events, began_at).await?;
        if let Some(held) = held.into_inner() {
            self.save(&held, &store).await?;
        }
        store.disconnect().await;
        Ok(RunReport { events: reports, done })
    }

    /// Opens the database of the state, with the vectors of the database that was in its place.
    async fn open(&self, held: Option<&HeldState>) -> Result<Store, RunError> {
        let earlier = match held {
            Some(held) => place_database(&held.files, &self.database)?,
            None => None,
        };
        let store = Store::open(&DatabaseUrl::Sqlite(self.database.clone()), self.clock.now()).await?;
        if let Some(earlier) = earlier {
            match store.maintenance().adopt_vectors(&earlier).await {
                Ok(vectors) => tracing::info!(vectors, "the vectors of an earlier run are used"),
                Err(error) => {
                    tracing::warn!(%error, "the vectors of an earlier run are not used; they are computed again");
                }
            }
            remove_if_there(&earlier)?;
        }
        Ok(store)
    }

    async fn work(
        &self,
        store: &Store,
        events: &[RunEvent],
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
        if queue_first_sync(store, &self.repo, self.clock.now()).await? {
            // The items are there before anything is compared with them.
            done = drain.run(until).await?;
            let lost = queue_lost_suggestions(store, &self.repo, self.clock.now()).await?;
            if lost > 0 {
                tracing::info!(items = lost, "items of an earlier database are triaged again");
            }
        }
        for event in events {
            self.accept(store, event, events.len()).await?;
        }
        done = done + drain.run(until).await?;
        // A sync of this run may have found them.
        let missed = queue_missed_items(store, &self.repo, self.clock.now()).await?;
        if missed > 0 {
            tracing::info!(items = missed, "items whose events were lost are triaged");
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

    /// Renews the lease; returns when it is lost.
    async fn keep_lease(&self, held: &Mutex<Option<HeldState>>) -> RunError {
        let Some(keeper) = &self.keeper else { return std::future::pending().await };
        loop {
            keeper.clock.beat(RENEWAL).await;
            let mut held = held.lock().await;
            let Some(held) = held.as_mut() else { return std::future::pending().await };
            match keeper.renew(held).await {
                Ok(true) => {}
                Ok(false) => return RunError::LeaseLost,
                Err(error) => tracing::warn!(%error, "the lease of the state could not be renewed; retrying"),
            }
        }
    }

    /// Stores the database in the state, and ends the lease.
    async fn save(&self, held: &HeldState, store: &Store) -> Result<(), RunError> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let copy = self.database.with_extension("portable");
        remove_if_there(&copy)?;
        store.maintenance().write_portable_copy(&copy).await?;
        let pieces = pack_state(&copy)?;
        remove_if_there(&copy)?;
        keeper.release(held, pieces).await?.map(drop).ok_or(RunError::LeaseLost)
    }
}
