//! A request body with a time limit, whichever route reads it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::time::Sleep;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body took too long to arrive")]
    TooSlow,
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

/// A body that ends in an error if it is not complete in time. The time begins with the first read: a route may have
/// to ask GitHub first, while the body waits in the socket. A body that no route reads does not keep the connection
/// open.
pub(crate) struct TimedBody {
    arriving: Incoming,
    patience: Duration,
    end: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub(crate) fn new(arriving: Incoming, patience: Duration) -> Self {
        Self { arriving, patience, end: None }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.arriving).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Broken)));
        }
        let patience = self.patience;
        let end = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        end.as_mut().poll(context).map(|()| Some(Err(BodyError::TooSlow)))
    }

    fn is_end_stream(&self) -> bool {
        self.arriving.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.arriving.size_hint()
    }
}
