//! Helpers to cancel work in the middle.

use std::pin::pin;
use std::task::Poll;

/// Cancels the work at its `polls`-th wait; the result is `None` if it was cancelled. Also returns how often it
/// waited.
pub(crate) async fn until<T>(work: impl Future<Output = T>, polls: usize) -> (Option<T>, usize) {
    let mut work = pin!(work);
    let mut polled = 0;
    let ended = std::future::poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        work.as_mut().poll(context).map(Some)
    })
    .await;
    (ended, polled)
}

pub(crate) fn soaking() -> bool {
    std::env::var_os("CANONRY_SOAK").is_some()
}

/// How many kills a soak makes, limited by `CANONRY_SOAK_KILLS`.
pub(crate) fn soak_kills(usual: usize) -> usize {
    let most = std::env::var("CANONRY_SOAK_KILLS").ok().and_then(|most| most.parse().ok());
    usual.min(most.unwrap_or(usual))
}
