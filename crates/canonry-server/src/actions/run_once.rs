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
use crate::actions::held_state::{HeldState, LOOK, StateKeeper};
use crate::actions::lost_items::{queue_lost_suggestions, queue_missed_items};
use crate::actions::run_event::{RunEvent, RunEventError, queue_first_sync, store_run_event};
use crate::actions::run_report::{RunEventReport, report_events};
use crate::actions::state_file::{
    StateFileError, check_place, keep_database, pack_state, place_database, remove_if_there, replace_by_vectors,
    size_of,
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
        if self.keeper.is_some() {
            // A run that is refused must not keep others waiting for its lease.
            check_place(&self.database)?;
        }
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
        let state_size = match &self.keeper {
            Some(keeper) => self.give_back(keeper, store, held).await?,
            None => {
                store.disconnect().await;
                0
            }
        };
        Ok(RunReport { events: reports, done, state_size })
    }

    /// Stores the database in the state and ends the lease. Returns the bytes of the stored database.
    async fn give_back(
        &self,
        keeper: &StateKeeper,
        store: Store,
        held: Mutex<Option<HeldState>>,
    ) -> Result<u64, RunError> {
        // Without the lease nothing is done to the files: the next run may have the same ones.
        let pieces = tokio::select! {
            pieces = self.pack(store) => pieces?,
            lost = self.keep_lease(&held) => return Err(lost),
        };
        let size = size_of(&pieces);
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
        Ok(size)
    }

    /// Opens the database of the state, with the vectors of an earlier run.
    async fn open(&self, held: Option<&HeldState>) -> Result<Store, RunError> {
        let vectors = match held {
            Some(held) => place_database(&held.files, &self.database)?,
            None => {
                keep_database(&self.database)?;
                None
            }
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
        let begun = keeper.begin_event(held, id).await;
        // Nothing else watched the lease meanwhile, and git may have taken longer than it is valid.
        if keeper.is_over(held.until()) {
            return Err(RunError::LeaseLost);
        }
        match begun {
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
        let until = held.lock().await.as_ref().map(HeldState::until);
        let Some(until) = until else { return std::future::pending().await };
        let mut pause = keeper.pause_to_renewal(until);
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
                Ok(true) => keeper.pause_to_renewal(held.until()),
                Ok(false) => return RunError::LeaseLost,
                Err(error) => {
                    tracing::warn!(%error, "the lease of the state could not be renewed");
                    if keeper.is_over(until) {
                        return RunError::LeaseLost;
                    }
                    LOOK
                }
            };
        }
    }

    /// Closes the database, of which only the vectors are left here. Returns it as files for the state.
    async fn pack(&self, store: Store) -> Result<Vec<StateEntry>, RunError> {
        let copy = self.database.with_extension("portable");
        remove_if_there(&copy)?;
        store.maintenance().write_portable_copy(&copy).await?;
        let pieces = pack_state(&copy)?;
        remove_if_there(&copy)?;
        let vectors = self.database.with_extension("vectors-new");
        store.maintenance().write_vectors(&vectors).await?;
        store.disconnect().await;
        replace_by_vectors(&self.database, &vectors)?;
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use canonry_clock::{Clock, ManualClock};
    use canonry_review::Remote;
    use futures_util::future::BoxFuture;
    use jiff::{SignedDuration, Timestamp};
    use tokio::sync::Mutex;

    use super::{RunError, RunOnce};
    use crate::actions::held_state::StateKeeper;
    use crate::actions::run_event::RunEvent;
    use crate::actions::state_ref::StateRef;
    use crate::jobs::scheduler::Schedules;

    /// Between two readings of it a lease ends, as while git hangs.
    struct RacingClock(ManualClock);

    impl Clock for RacingClock {
        fn now(&self) -> Timestamp {
            self.0.advance(SignedDuration::from_mins(3));
            self.0.now()
        }

        fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
            self.0.sleep_until(until)
        }
    }

    #[tokio::test]
    async fn a_run_whose_lease_ends_while_it_begins_an_event_stops() {
        let folder = tempfile::tempdir().expect("a folder");
        let origin = folder.path().join("origin.git");
        let made = Command::new("git").args(["init", "--bare", "--quiet"]).arg(&origin).status();
        assert!(made.expect("git runs").success());
        let remote = Remote::new(&format!("file://{}", origin.display()), None).expect("an address");
        let state = StateRef::open(&folder.path().join("state"), &remote, "refs/canonry/state").await.expect("opens");
        let start = "2026-03-01T00:00:00Z".parse().expect("valid");
        let clock: Arc<dyn Clock> = Arc::new(RacingClock(ManualClock::new(start)));
        let patience = SignedDuration::ZERO;
        let keeper = StateKeeper { state, clock: Arc::clone(&clock), run: "one".to_owned(), patience };
        let event = RunEvent { id: "e".to_owned(), name: "issues".to_owned(), payload: "{}".to_owned() };
        let held = Mutex::new(Some(keeper.lease(&event).await.expect("free")));
        let run = RunOnce {
            repo: "octo/cat".parse().expect("a name"),
            database: folder.path().join("canonry.db"),
            keeper: Some(keeper),
            clock,
            schedules: Schedules::Off,
            tries: 1,
            time_limit: SignedDuration::from_mins(1),
        };
        let late = run.begin_event(&held, None).await;
        assert!(matches!(late, Err(RunError::LeaseLost)), "the push arrived too late: {late:?}");
        std::fs::rename(&origin, folder.path().join("away.git")).expect("it is ours");
        let failed = run.begin_event(&held, None).await;
        assert!(matches!(failed, Err(RunError::LeaseLost)), "the push failed too late: {failed:?}");
    }
}
