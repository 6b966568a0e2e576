//! A task that does not outlive whoever waits for it, and whose panic is an answer.

use tokio::task::JoinHandle;

/// A task on its own, so that a panic in it ends nothing else. Dropped, it is stopped: work without a
/// lease must end.
#[derive(Debug)]
pub(crate) struct OwnedTask<T>(JoinHandle<T>);

impl<T: Send + 'static> OwnedTask<T> {
    pub(crate) fn begin(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }

    /// Its answer, or in words why there is none. May be waited for again after it was not waited for to the end.
    pub(crate) async fn answer(&mut self) -> Result<T, &'static str> {
        (&mut self.0).await.map_err(|error| if error.is_panic() { "it panicked" } else { "it was stopped" })
    }
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
