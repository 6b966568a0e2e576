//! Work that is dropped in the middle, as when its process is killed.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

/// Drops the future at its `polls`-th poll; returns how often it was polled.
pub(crate) async fn until<T>(work: impl Future<Output = T>, polls: usize) -> usize {
    let mut work = pin!(work);
    let mut polled = 0;
    std::future::poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(());
        }
        polled += 1;
        work.as_mut().poll(context).map(drop)
    })
    .await;
    polled
}
