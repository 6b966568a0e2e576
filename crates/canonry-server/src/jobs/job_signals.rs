//! Wakes workers when another process has queued a job.

use std::sync::Arc;

use canonry_github::Clock;
use canonry_store::Store;
use jiff::SignedDuration;
use tokio::sync::Notify;

use crate::jobs::outage::Outage;

/// The pause before listening is tried again. Workers poll every second anyway, so a lost signal costs at most that.
const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// Wakes a worker for each signal until the task is dropped.
pub(crate) async fn wake_on_signals(store: Store, clock: Arc<dyn Clock>, wake: Arc<Notify>) {
    let mut outage = Outage::new("listening for other processes' jobs");
    loop {
        match store.jobs().signal().await {
            Ok(mut signal) => {
                outage.over();
                loop {
                    signal.next().await;
                    wake.notify_one();
                }
            }
            Err(error) => outage.failed(&error),
        }
        clock.beat(PAUSE).await;
    }
}
