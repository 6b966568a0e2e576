//! One run at a time: the state is leased before anything is done, and given back with the new database.
//!
//! The lease contains the run's event. If the run is killed, the lease ends within minutes, and the next run finds the
//! event and works on it. What the killed run already posted is found on GitHub by its markers.

use std::sync::Arc;

use canonry_clock::Clock;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::actions::run_event::RunEvent;
use crate::actions::state_ref::{StateEntry, StateError, StateRef, StateVersion};

/// How long a killed run makes the others wait.
const LEASE: SignedDuration = SignedDuration::from_secs(150);
/// Two renewals may fail before the lease ends.
pub(crate) const RENEWAL: SignedDuration = SignedDuration::from_secs(45);
/// How often a run checks whether another one has ended.
const LOOK: SignedDuration = SignedDuration::from_secs(4);

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
            let own = format!("{EVENT_PREFIX}{}.json", file_name(&event.id));
            let kept: Vec<String> =
                names.into_iter().filter(|name| ![LEASE_FILE, README_FILE, &own].contains(&name.as_str())).collect();
            let fresh = [self.lease_entry(now), (own.clone(), json(event))];
            let Some(version) = self.state.replace(tip.as_ref(), &kept, &fresh).await? else { continue };
            let (mut files, mut events) = (Vec::new(), Vec::new());
            for name in &kept {
                let bytes = self.state.read(&version, name).await?;
                match name.starts_with(EVENT_PREFIX) {
                    true => events.extend(serde_json::from_slice::<RunEvent>(&bytes).ok()),
                    false => files.push((name.clone(), bytes)),
                }
            }
            events.push(event.clone());
            return Ok(HeldState { version, kept: kept.into_iter().chain([own]).collect(), files, events });
        }
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

/// An event's id as part of a file name.
fn file_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("invariant: plain data")
}
