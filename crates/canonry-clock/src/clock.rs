//! The clock that every wait uses.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns at `until`, or at once if `until` is in the past.
    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()>;

    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()> {
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        self.sleep_until(self.now().saturating_add(pause).unwrap_or(Timestamp::MAX))
    }

    /// Pauses a polling loop until its next check.
    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        self.sleep_until(self.now().saturating_add(length).unwrap_or(Timestamp::MAX))
    }
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        let left = until.duration_since(Timestamp::now());
        Box::pin(async move {
            if let Ok(left) = Duration::try_from(left) {
                tokio::time::sleep(left).await;
            }
        })
    }
}

/// A clock that stands still until a test moves it. A sleep moves it to the end of that sleep, so that an hour's wait
/// takes no time and is still recorded.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<ManualState>,
}

#[derive(Debug)]
struct ManualState {
    now: Timestamp,
    slept_until: Vec<Timestamp>,
}

impl ManualClock {
    pub fn new(now: Timestamp) -> Self {
        Self { state: Mutex::new(ManualState { now, slept_until: Vec::new() }) }
    }

    pub fn advance(&self, by: SignedDuration) {
        let mut state = self.lock();
        state.now = state.now.saturating_add(by).unwrap_or(Timestamp::MAX);
    }

    /// Returns the end of every sleep, in order.
    pub fn slept_until(&self) -> Vec<Timestamp> {
        self.lock().slept_until.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ManualState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut state = self.lock();
            if until > state.now {
                state.now = until;
                state.slept_until.push(until);
            }
        })
    }

    /// Sleeps in real time: a polling loop would otherwise make this clock run away.
    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        Box::pin(async move { tokio::time::sleep(length.unsigned_abs()).await })
    }
}

/// A clock that runs many times as fast as the machine's clock, so that an hour of a service passes in minutes. All
/// processes with the same anchor and factor agree on the time.
#[derive(Debug, Clone, Copy)]
pub struct ScaledClock {
    anchor: Timestamp,
    factor: u32,
}

impl ScaledClock {
    /// A clock that equals the machine's clock at `anchor` and runs faster from there on.
    pub fn new(anchor: Timestamp, factor: u32) -> Self {
        Self { anchor, factor: factor.max(1) }
    }
}

impl Clock for ScaledClock {
    fn now(&self) -> Timestamp {
        let passed = Timestamp::now().duration_since(self.anchor);
        let factor = i32::try_from(self.factor).unwrap_or(i32::MAX);
        self.anchor.saturating_add(passed.saturating_mul(factor)).unwrap_or(Timestamp::MAX)
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        let left = until.duration_since(self.now());
        Box::pin(async move {
            if let Ok(left) = Duration::try_from(left) {
                tokio::time::sleep(left / self.factor).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, ManualClock, ScaledClock};
    use jiff::{SignedDuration, Timestamp};

    #[tokio::test]
    async fn sleeping_moves_the_manual_clock_forward_only() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("valid");
        let clock = ManualClock::new(start);
        let later = start + SignedDuration::from_hours(1);
        clock.sleep_until(later).await;
        clock.sleep_until(start).await;
        assert_eq!((clock.now(), clock.slept_until()), (later, vec![later]));
    }

    #[tokio::test]
    async fn a_scaled_clock_gains_from_its_anchor_on() {
        let before = Timestamp::now();
        let anchor = before - SignedDuration::from_hours(1);
        let clock = ScaledClock::new(anchor, 60);
        let shown = clock.now().duration_since(anchor);
        let after = Timestamp::now();
        assert!(shown >= before.duration_since(anchor) * 60 && shown <= after.duration_since(anchor) * 60, "{shown}");
        let until = clock.now() + SignedDuration::from_secs(3);
        clock.sleep_until(until).await;
        assert!(clock.now() >= until);
    }
}
