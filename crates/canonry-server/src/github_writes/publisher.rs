//! Sends what handlers put into the outbox, and retries while GitHub is down.

use std::sync::Arc;

use canonry_github::Clock;
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use tokio::sync::{Notify, watch};

use crate::jobs::job_handler::JobError;
use crate::jobs::outage::Outage;
use crate::jobs::owned_task::OwnedTask;
use crate::service::Service;

/// Writes under way at once. GitHub accepts 80 a minute from one account; a single writer would spend that minute
/// waiting for answers.
pub(crate) const PUBLISHERS: usize = 4;
/// How often the outbox is polled without a wake: for waits that have ended, and for entries of other processes.
const POLL: SignedDuration = SignedDuration::from_secs(1);
/// The longest pause after failures in a row.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);

pub trait Publish: Send + Sync {
    /// Sends one entry that is due, until it ends or has to wait; `false` if none is due.
    fn publish_one(&self) -> BoxFuture<'_, Result<bool, JobError>>;
}

impl Publish for Service {
    fn publish_one(&self) -> BoxFuture<'_, Result<bool, JobError>> {
        Box::pin(async move {
            let Some(github) = self.github() else { return Ok(false) };
            Ok(self.outbox().await?.publish_unattended(&self.recheck(github)).await?)
        })
    }
}

/// One of several publishing loops. Only the `first` polls; the others run when there is more to do. A write under
/// way is finished after `stop`.
pub(crate) async fn keep_publishing(
    publisher: Arc<dyn Publish>,
    clock: Arc<dyn Clock>,
    wake: Arc<Notify>,
    first: bool,
    mut stop: watch::Receiver<bool>,
) {
    let mut outage = Outage::new("sending to GitHub");
    let mut failures = 0;
    while !*stop.borrow() {
        let publishing = Arc::clone(&publisher);
        let published = OwnedTask::begin(async move { publishing.publish_one().await }).answer().await;
        let published =
            published.unwrap_or_else(|why| Err(JobError::Retry(format!("a write ended without an answer ({why})"))));
        match published {
            Ok(true) => {
                outage.over();
                failures = 0;
                wake.notify_one();
                continue;
            }
            Ok(false) => {
                outage.over();
                failures = 0;
                tokio::select! {
                    () = wake.notified() => {}
                    () = clock.beat(POLL), if first => {}
                    _ = stop.changed() => {}
                }
            }
            Err(error) => {
                outage.failed(&error);
                failures += 1;
                tokio::select! {
                    () = clock.beat(pause(failures)) => {}
                    _ = stop.changed() => {}
                }
            }
        }
    }
}

/// Doubles, beginning with one second.
fn pause(failures: u32) -> SignedDuration {
    POLL.saturating_mul(1 << failures.clamp(1, 7).saturating_sub(1)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::pause;

    #[test]
    fn a_publisher_that_fails_looks_ever_more_seldom() {
        let pauses: Vec<_> = [1, 2, 3, 6, 7, 50].map(|failures| pause(failures).as_secs()).into();
        assert_eq!(pauses, [1, 2, 4, 32, 60, 60]);
    }
}
