//! The clock of the emulated world.

use std::sync::Arc;

use canonry_clock::Clock;
use canonry_testkit::github::Emulator;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// Waiting moves the emulated world's time.
pub struct WorldClock(pub Arc<Emulator>);

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.0.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut world = self.0.world();
            world.now = world.now.max(until);
        })
    }
}
