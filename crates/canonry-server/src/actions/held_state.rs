//! One run at a time: the state is leased before anything is done, and given back with the new database.
//!
//! The lease contains the run's event. If the run is killed, the lease ends within minutes, and the next run finds the
//! event and works on it. What the killed run already posted is found on GitHub by its markers.

use std::sync::Arc;

use canonry_clock::Clock;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::actions::run_event::RunEvent;
use crate::actions::state_file::DATABASE_PREFIX;
use crate::actions::state_ref::{StateEntry, StateError, StateRef, StateVersion};

/// How long a killed run makes the others wait.
const LEASE: SignedDuration = SignedDuration::from_secs(150);
/// Two renewals may fail before the lease ends.
pub(crate) const RENEWAL: SignedDuration = SignedDuration::from_secs(45);
/// How often a run checks whether another one has ended.
const LOOK: SignedDuration = SignedDuration::from_secs(4);
/// How many runs may end without a result before the next one leaves an event alone: an event that kills its run must not
/// kill all later ones, and the state must not grow with every run that fails. The nightly sync still finds the item.
const MOST_RUNS: u32 = 3;

const LEASE_FILE: &str = "lease.json";
const EVENT_PREFIX: &str = "event-";
const README_FILE: &str = "README.md";
const README: &[u8] = b"# State of Canonry\n\n\
    Canonry keeps its database here between two runs of GitHub Actions. It contains no secrets. If this ref is deleted,\n\
    Canonry fetches the issues again and finds its own comments by their markers; what it learned is lost.\n";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunLease {
    run: String,
    until: Timestamp,
}

/// An event in the state, until the run that handles it gives the state back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WaitingEvent {
    #[serde(flatten)]
    event: RunEvent,
    /// The runs that have leased the state with it.
    #[serde(default)]
    runs: u32,
}

/// Leases the state for one run.
#[derive(Clone)]
pub struct StateKeeper {
    pub state: StateRef,
    pub clock: Arc<dyn Clock>,
    /// Identifies the run.
    pub run: String,
    /// How long to wait for other runs.
    pub patience: SignedDuration,
}

/// The leased state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldState {
    version: StateVersion,
    kept: Vec<String>,
    /// The database's pieces and nothing else.
    pub(crate) files: Vec<StateEntry>,
    /// This run's event, and the events of runs that were killed.
    pub(crate) events: Vec<RunEvent>,
}

impl StateKeeper {
    /// Waits until no other run has the state, and leases it together with this run's event.
    pub(crate) async fn lease(&self, event: &RunEvent) -> Result<HeldState, StateError> {
        let give_up = self.clock.now() + self.patience;
        loop {
            let tip = self.state.fetch().await?;
            let names = match &tip {
                Some(tip) => self.state.names(tip).await?,
                None => Vec::new(),
            };
            let now = self.clock.now();
            let lease = match (&tip, names.iter().any(|name| name == LEASE_FILE)) {
                (Some(tip), true) => serde_json::from_slice::<RunLease>(&self.state.read(tip, LEASE_FILE).await?).ok(),
                _ => None,
            };
            if let Some(lease) = lease.filter(|lease| lease.until > now && lease.run != self.run) {
                if now >= give_up {
                    return Err(StateError::Busy { run: lease.run, until: lease.until });
                }
                tracing::info!(run = lease.run, until = %lease.until, "another run has the state");
                self.clock.sleep_until(now + LOOK).await;
                continue;
            }
            let own = WaitingEvent { event: event.clone(), runs: 1 };
            let mut waiting = match &tip {
                Some(tip) => self.waiting_events(tip, &names).await?,
                None => Vec::new(),
            };
            waiting.retain(|earlier| earlier.event.id != event.id);
            waiting.push(own);
            let pieces = |name: &String| name.starts_with(DATABASE_PREFIX);
            let kept: Vec<String> = names.into_iter().filter(pieces).collect();
            let mut fresh = vec![self.lease_entry(now)];
            fresh.extend(waiting.iter().map(|waiting| (event_file(&waiting.event), json(waiting))));
            let Some(version) = self.state.replace(tip.as_ref(), &kept, &fresh).await? else { continue };
            let mut files = Vec::new();
            for name in &kept {
                files.push((name.clone(), self.state.read(&version, name).await?));
            }
            let kept = kept.into_iter().chain(fresh.into_iter().skip(1).map(|(name, _)| name)).collect();
            let events = waiting.into_iter().map(|waiting| waiting.event).collect();
            return Ok(HeldState { version, kept, files, events });
        }
    }

    /// The events of runs that were killed, each counted once more.
    async fn waiting_events(&self, tip: &StateVersion, names: &[String]) -> Result<Vec<WaitingEvent>, StateError> {
        let mut events = Vec::new();
        for name in names.iter().filter(|name| name.starts_with(EVENT_PREFIX)) {
            let Ok(waiting) = serde_json::from_slice::<WaitingEvent>(&self.state.read(tip, name).await?) else {
                tracing::warn!(name, "an event in the state cannot be read and is dropped");
                continue;
            };
            if waiting.runs >= MOST_RUNS {
                tracing::warn!(
                    event = waiting.event.id,
                    runs = waiting.runs,
                    "no run survived this event; it is dropped"
                );
                continue;
            }
            events.push(WaitingEvent { runs: waiting.runs + 1, ..waiting });
        }
        Ok(events)
    }

    /// Extends the lease. `false` if it was lost.
    pub(crate) async fn renew(&self, held: &mut HeldState) -> Result<bool, StateError> {
        let fresh = [self.lease_entry(self.clock.now())];
        let renewed = self.state.replace(Some(&held.version), &held.kept, &fresh).await?;
        Ok(renewed.map(|version| held.version = version).is_some())
    }

    /// Replaces the database and ends the lease. `None` if the lease was lost: another run works on the event.
    pub(crate) async fn release(
        &self,
        held: &HeldState,
        database: Vec<StateEntry>,
    ) -> Result<Option<StateVersion>, StateError> {
        let mut files = database;
        files.push((README_FILE.to_owned(), README.to_vec()));
        self.state.replace(Some(&held.version), &[], &files).await
    }

    fn lease_entry(&self, now: Timestamp) -> StateEntry {
        (LEASE_FILE.to_owned(), json(&RunLease { run: self.run.clone(), until: now + LEASE }))
    }
}

fn event_file(event: &RunEvent) -> String {
    let id: String = event.id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    format!("{EVENT_PREFIX}{id}.json")
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("invariant: plain data")
}
