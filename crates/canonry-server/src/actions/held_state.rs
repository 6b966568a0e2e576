//! One run at a time: the state is leased before anything is done, and given back with the new database.
//!
//! The lease contains the run's event. If the run is killed, the lease ends within minutes, and the next run finds the
//! event and works on it. What the killed run already posted is found on GitHub by its markers. Of the events that runs
//! left, one at a time is in work, and only that one is blamed if the next run ends without a result too.

use std::sync::Arc;

use canonry_clock::{BackOff, Clock};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::actions::run_event::RunEvent;
use crate::actions::state_file::DATABASE_PREFIX;
use crate::actions::state_ref::{StateEntry, StateError, StateRef, StateVersion};

/// How long a killed run makes the others wait.
const LEASE: SignedDuration = SignedDuration::from_secs(150);
/// Two renewals may fail before the lease ends.
const RENEWAL: SignedDuration = SignedDuration::from_secs(45);
/// How often a run checks whether another one has ended, and retries a renewal that failed.
pub(crate) const LOOK: SignedDuration = SignedDuration::from_secs(4);
/// A run stops this long before its lease ends: clocks of two machines differ a little.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// How many requests of git may fail in a row before a run gives up.
const MOST_FAILURES: u32 = 5;
/// The pauses after them: about a minute in all.
const AFTER_FAILURE: BackOff = BackOff { first: LOOK, longest: SignedDuration::from_mins(1) };
/// How many runs may end without a result while they work on an event that another one left, before the next one leaves
/// it alone: an event that kills its run must not kill all later ones. The nightly sync still finds the item.
const MOST_RUNS: u32 = 3;
/// How many events may wait, so that the state does not grow for ever while every run fails.
const MOST_WAITING: usize = 500;

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
pub(crate) struct WaitingEvent {
    #[serde(flatten)]
    pub(crate) event: RunEvent,
    /// The runs that found it and ended while they worked on it.
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
    until: Timestamp,
    kept: Vec<String>,
    /// The database's pieces and nothing else.
    pub(crate) files: Vec<StateEntry>,
    /// The events that other runs left, then this run's own.
    pub(crate) events: Vec<WaitingEvent>,
    /// The left event that is in work.
    in_work: Option<String>,
}

impl HeldState {
    pub(crate) const fn until(&self) -> Timestamp {
        self.until
    }
}

impl StateKeeper {
    /// Waits until no other run has the state, and leases it together with this run's event.
    pub(crate) async fn lease(&self, event: &RunEvent) -> Result<HeldState, StateError> {
        let give_up = self.clock.now() + self.patience;
        let mut failures = 0;
        loop {
            let error = match self.try_lease(event).await {
                Ok(Some(held)) => return Ok(held),
                // Another run was faster.
                Ok(None) => {
                    failures = 0;
                    continue;
                }
                Err(error) => error,
            };
            let now = self.clock.now();
            let pause = if let StateError::Busy { run, until } = &error {
                tracing::info!(run, %until, "another run has the state");
                failures = 0;
                LOOK
            } else if error.is_refusal() {
                return Err(error);
            } else {
                // Without the state the run's event is lost, so that one failure must not end it.
                tracing::warn!(%error, "the state cannot be leased; retrying");
                failures += 1;
                AFTER_FAILURE.pause(failures, 0.0)
            };
            if failures >= MOST_FAILURES || now >= give_up {
                return Err(error);
            }
            self.clock.sleep_until(now + pause).await;
        }
    }

    /// `None` if another run was faster.
    async fn try_lease(&self, event: &RunEvent) -> Result<Option<HeldState>, StateError> {
        let tip = self.state.fetch().await?;
        let names = match &tip {
            Some(tip) => self.state.names(tip).await?,
            None => Vec::new(),
        };
        let now = self.clock.now();
        let mut waiting = Vec::new();
        if let Some(tip) = &tip {
            let lease = self.lease_in(tip, &names).await?;
            if let Some(lease) = lease.filter(|lease| lease.until > now && lease.run != self.run) {
                return Err(StateError::Busy { run: lease.run, until: lease.until });
            }
            waiting = self.waiting_events(tip, &names).await?;
        }
        waiting.retain(|earlier| earlier.event.id != event.id);
        waiting.push(WaitingEvent { event: event.clone(), runs: 0 });
        let pieces = |name: &String| name.starts_with(DATABASE_PREFIX);
        let kept: Vec<String> = names.into_iter().filter(pieces).collect();
        let mut fresh = vec![self.lease_entry(now)];
        // Other events are only the occasion of a run.
        let stored = waiting.iter().filter(|waiting| waiting.event.is_webhook());
        fresh.extend(stored.map(|waiting| (event_file(&waiting.event), json(waiting))));
        let Some(version) = self.state.replace(tip.as_ref(), &kept, &fresh).await? else { return Ok(None) };
        let mut files = Vec::new();
        for name in &kept {
            files.push((name.clone(), self.state.read(&version, name).await?));
        }
        let kept = kept.into_iter().chain(fresh.into_iter().skip(1).map(|(name, _)| name)).collect();
        Ok(Some(HeldState { version, until: now + LEASE, kept, files, events: waiting, in_work: None }))
    }

    /// The events that other runs left, without those that no run survives.
    async fn waiting_events(&self, tip: &StateVersion, names: &[String]) -> Result<Vec<WaitingEvent>, StateError> {
        let mut events = Vec::new();
        for name in names.iter().filter(|name| name.starts_with(EVENT_PREFIX)) {
            let Ok(waiting) = serde_json::from_slice::<WaitingEvent>(&self.state.read(tip, name).await?) else {
                tracing::warn!(name, "dropped a waiting event of the stored state: its file is unreadable");
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
            events.push(waiting);
        }
        if events.len() >= MOST_WAITING {
            let dropped = events.len() + 1 - MOST_WAITING;
            tracing::warn!(dropped, "too many events wait, because every run fails; the oldest are dropped");
            events.drain(..dropped);
        }
        Ok(events)
    }

    /// Extends the lease. `false` if it was lost.
    pub(crate) async fn renew(&self, held: &mut HeldState) -> Result<bool, StateError> {
        self.replace_files(held, Vec::new()).await
    }

    /// Extends the lease and counts this run for the left event that it begins to work on, and for no other. `false` if the
    /// lease was lost.
    pub(crate) async fn begin_event(&self, held: &mut HeldState, id: Option<&str>) -> Result<bool, StateError> {
        let is_changed = |waiting: &&WaitingEvent| {
            let event = Some(waiting.event.id.as_str());
            event == id || event == held.in_work.as_deref()
        };
        let counted = |waiting: &WaitingEvent| {
            let runs = waiting.runs + u32::from(Some(waiting.event.id.as_str()) == id);
            (event_file(&waiting.event), json(&WaitingEvent { runs, ..waiting.clone() }))
        };
        let files = held.events.iter().filter(is_changed).map(counted).collect();
        let is_held = self.replace_files(held, files).await?;
        if is_held {
            held.in_work = id.map(str::to_owned);
        }
        Ok(is_held)
    }

    async fn replace_files(&self, held: &mut HeldState, mut files: Vec<StateEntry>) -> Result<bool, StateError> {
        let now = self.clock.now();
        files.push(self.lease_entry(now));
        let stays = |name: &&String| files.iter().all(|(fresh, _)| fresh != *name);
        let kept: Vec<String> = held.kept.iter().filter(stays).cloned().collect();
        let Some(version) = self.replace_held(held, &kept, &files).await? else { return Ok(false) };
        (held.version, held.until) = (version, now + LEASE);
        Ok(true)
    }

    /// How long the next renewal of the lease can wait: nothing, if what came since the last one took too long.
    pub(crate) fn pause_to_renewal(&self, until: Timestamp) -> SignedDuration {
        (until - LEASE + RENEWAL).duration_since(self.clock.now()).max(SignedDuration::ZERO)
    }

    /// Whether the lease is so near its end that another run may have the state.
    pub(crate) fn is_over(&self, until: Timestamp) -> bool {
        self.clock.now() >= until - MARGIN
    }

    /// Replaces the database and ends the lease. `None` if the lease was lost: another run works on the event.
    pub(crate) async fn release(
        &self,
        held: &HeldState,
        database: Vec<StateEntry>,
    ) -> Result<Option<StateVersion>, StateError> {
        let mut files = database;
        files.push((README_FILE.to_owned(), README.to_vec()));
        self.replace_held(held, &[], &files).await
    }

    /// Replaces the version that this run has. `None` if the lease was lost.
    async fn replace_held(
        &self,
        held: &HeldState,
        kept: &[String],
        files: &[StateEntry],
    ) -> Result<Option<StateVersion>, StateError> {
        if let Some(version) = self.state.replace(Some(&held.version), kept, files).await? {
            return Ok(Some(version));
        }
        // A renewal that was cut off may have arrived.
        match self.state.fetch().await? {
            Some(tip) if self.is_own(&tip).await? => self.state.replace(Some(&tip), kept, files).await,
            _ => Ok(None),
        }
    }

    async fn is_own(&self, tip: &StateVersion) -> Result<bool, StateError> {
        Ok(self.lease_in(tip, &self.state.names(tip).await?).await?.is_some_and(|lease| lease.run == self.run))
    }

    async fn lease_in(&self, tip: &StateVersion, names: &[String]) -> Result<Option<RunLease>, StateError> {
        if !names.iter().any(|name| name == LEASE_FILE) {
            return Ok(None);
        }
        Ok(serde_json::from_slice(&self.state.read(tip, LEASE_FILE).await?).ok())
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::sync::Arc;

    use canonry_clock::{Clock as _, ManualClock};
    use canonry_review::Remote;
    use jiff::SignedDuration;

    use super::{LEASE, RENEWAL, StateKeeper};
    use crate::actions::run_event::RunEvent;
    use crate::actions::state_ref::StateRef;

    async fn keeper(folder: &Path, run: &str, clock: &Arc<ManualClock>) -> StateKeeper {
        let origin = folder.join("origin.git");
        let made = Command::new("git").args(["init", "--bare", "--quiet"]).arg(&origin).status();
        assert!(made.expect("git runs").success());
        let remote = Remote::new(&format!("file://{}", origin.display()), None).expect("an address");
        let state = StateRef::open(&folder.join(run), &remote, "refs/canonry/state").await.expect("opens");
        let clock = Arc::clone(clock) as _;
        StateKeeper { state, clock, run: run.to_owned(), patience: SignedDuration::ZERO }
    }

    #[tokio::test]
    async fn a_renewal_whose_answer_was_lost_does_not_lose_the_lease() {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::new("2026-03-01T00:00:00Z".parse().expect("valid")));
        let event = RunEvent { id: "e".to_owned(), name: "schedule".to_owned(), payload: "{}".to_owned() };
        let one = keeper(folder.path(), "one", &clock).await;
        let mut held = one.lease(&event).await.expect("free");
        let mut cut_off = held.clone();
        clock.advance(SignedDuration::from_secs(10));
        assert!(one.renew(&mut held).await.expect("reachable"));
        clock.advance(SignedDuration::from_secs(10));
        assert!(one.renew(&mut cut_off).await.expect("reachable"), "it is its own renewal that was in between");
        // Another run has it.
        clock.advance(LEASE + SignedDuration::from_secs(1));
        let other = keeper(folder.path(), "other", &clock).await;
        let taken = other.lease(&event).await.expect("the lease is over");
        assert_eq!(taken.until(), clock.now() + LEASE);
        assert!(!one.renew(&mut cut_off).await.expect("reachable"));
        assert_eq!(one.release(&cut_off, Vec::new()).await.expect("reachable"), None);
    }

    #[tokio::test]
    async fn the_first_renewal_comes_soon_if_opening_the_state_took_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::new("2026-03-01T00:00:00Z".parse().expect("valid")));
        let keeper = keeper(folder.path(), "one", &clock).await;
        let until = clock.now() + LEASE;
        let pauses = [0, 30, 15, 300].map(|seconds| {
            clock.advance(SignedDuration::from_secs(seconds));
            keeper.pause_to_renewal(until)
        });
        let rest = RENEWAL - SignedDuration::from_secs(30);
        assert_eq!(pauses, [RENEWAL, rest, SignedDuration::ZERO, SignedDuration::ZERO]);
    }

    #[tokio::test]
    async fn a_push_that_fails_leaves_no_finished_event_blamed() {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::new("2026-03-01T00:00:00Z".parse().expect("valid")));
        let event =
            |id: &str, name: &str| RunEvent { id: id.to_owned(), name: name.to_owned(), payload: "{}".to_owned() };
        for killed in ["a", "b"] {
            let run = keeper(folder.path(), killed, &clock).await;
            run.lease(&event(killed, "issues")).await.expect("free");
            clock.advance(LEASE);
        }
        let run = keeper(folder.path(), "run", &clock).await;
        let mut held = run.lease(&event("c", "schedule")).await.expect("free");
        assert!(run.begin_event(&mut held, Some("a")).await.expect("reachable"));
        let [origin, away] = ["origin.git", "away.git"].map(|name| folder.path().join(name));
        std::fs::rename(&origin, &away).expect("it is ours");
        run.begin_event(&mut held, Some("b")).await.expect_err("unreachable");
        std::fs::rename(&away, &origin).expect("it is ours");
        assert!(run.begin_event(&mut held, None).await.expect("reachable"));
        clock.advance(LEASE);
        let next = keeper(folder.path(), "next", &clock).await;
        let found = next.lease(&event("d", "schedule")).await.expect("free");
        let runs: Vec<_> = found.events.iter().map(|waiting| (waiting.event.id.as_str(), waiting.runs)).collect();
        assert_eq!(runs, [("a", 0), ("b", 0), ("d", 0)]);
    }
}
