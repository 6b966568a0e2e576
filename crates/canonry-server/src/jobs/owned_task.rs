//! A task that is stopped when its owner is dropped, and whose panic is returned as an error.

use tokio::task::JoinHandle;

/// A separate task, so that a panic in it ends nothing else. Dropping it stops it: work without a lease must end.
#[derive(Debug)]
pub(crate) struct OwnedTask<T>(JoinHandle<T>);

impl<T: Send + 'static> OwnedTask<T> {
    pub(crate) fn begin(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }

    /// The task's result, or why there is none. It is safe to drop this future and wait again.
    pub(crate) async fn answer(&mut self) -> Result<T, &'static str> {
        (&mut self.0).await.map_err(|error| if error.is_panic() { "it panicked" } else { "it was stopped" })
    }
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
