//! A connection that times out if the client does not accept the answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// The bytes that the client must accept before the time limit ends and restarts, unless less is left. Per minute
/// that is less than any line transfers, and an attacker who wants to occupy 512 connections this way must accept 140
/// KB/s.
const LEAST: usize = 16 * 1024;

/// A stream that fails if the client does not accept what is written. The time counts only while bytes wait to be
/// accepted: an answer may come in parts, with any time between them.
pub(crate) struct TakingStream<S> {
    stream: S,
    patience: Duration,
    waiting: Option<PendingWrite>,
}

/// Bytes that could not be written at once.
struct PendingWrite {
    end: Pin<Box<Sleep>>,
    taken: usize,
}

impl<S: AsyncWrite + Unpin> TakingStream<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn counted(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match (written, &mut self.waiting) {
            (Poll::Ready(Ok(length)), Some(waiting)) => {
                waiting.taken += length;
                if waiting.taken >= LEAST {
                    waiting.taken = 0;
                    waiting.end.as_mut().reset(Instant::now() + self.patience);
                }
                Poll::Ready(Ok(length))
            }
            (Poll::Pending, waiting) => {
                let patience = self.patience;
                let waiting = waiting
                    .get_or_insert_with(|| PendingWrite { end: Box::pin(tokio::time::sleep(patience)), taken: 0 });
                ready!(waiting.end.as_mut().poll(context));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the answer was not taken")))
            }
            (written, _) => written,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TakingStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.counted(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.counted(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Ready when nothing is left to be written.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_ready() {
            this.waiting = None;
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TakingStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::sleep;

    use super::TakingStream;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// Reads this many bytes every 20 seconds, until nothing comes.
    async fn takes(mut other: DuplexStream, at_once: usize) -> usize {
        let (mut taken, mut some) = (0, vec![0; at_once]);
        loop {
            sleep(Duration::from_secs(20)).await;
            match other.read(&mut some).await {
                Ok(0) | Err(_) => return taken,
                Ok(length) => taken += length,
            }
        }
    }

    async fn writes(at_once: usize, length: usize) -> Result<(), ErrorKind> {
        let (own, other) = duplex(8 * 1024);
        let taking = tokio::spawn(takes(other, at_once));
        let mut stream = TakingStream::new(own, PATIENCE);
        let bytes = vec![b'a'; length];
        let written = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
        written.await.map_err(|error| error.kind())?;
        drop(stream);
        assert_eq!(taking.await.expect("it ends"), length);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_little_is_waited_for_and_who_takes_next_to_nothing_is_not() {
        assert_eq!(writes(8 * 1024, 256 * 1024).await, Ok(()));
        assert_eq!(writes(100, 256 * 1024).await, Err(ErrorKind::TimedOut));
        // The rest may be small.
        assert_eq!(writes(1_500, 10 * 1024).await, Ok(()));
        assert_eq!(writes(1, 8 * 1024).await, Ok(()), "nobody waits for it");
    }

    #[tokio::test(start_paused = true)]
    async fn between_two_writes_any_time_may_pass() {
        let (own, mut other) = duplex(1024);
        let mut stream = TakingStream::new(own, PATIENCE);
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            sleep(PATIENCE / 2).await;
            other.read_to_end(&mut all).await.map(|_| all.len())
        });
        for _ in 0..3 {
            stream.write_all(&[b'a'; 2_000]).await.expect("taken");
            stream.flush().await.expect("taken");
            sleep(PATIENCE * 10).await;
        }
        drop(stream);
        assert_eq!(reading.await.expect("it ends").expect("read"), 6_000);
    }
}
