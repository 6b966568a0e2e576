//! Notifies workers of jobs that another process queued.

use canonry_boxed::boxed;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};

use crate::engine::facets::JobStore;
use crate::engine::transaction::{JOBS_CHANNEL, Pool, StoreError};

/// The pause between two attempts to reach an unreachable server.
const RECONNECT: Duration = Duration::from_secs(1);

/// Signals that any process may have queued jobs. A signal may be spurious, so it is only a reason to check the
/// queue.
#[derive(Debug)]
pub struct JobSignal {
    listening: Option<Listening>,
}

#[derive(Debug)]
struct Listening {
    /// A pool of one connection: this connection listens permanently, so it must not be taken from another pool.
    pool: PgPool,
    listener: Option<PgListener>,
}

#[boxed]
impl JobStore<'_> {
    /// Starts to listen. On SQLite no signals come: one process queues and works.
    pub async fn signal(self) -> Result<JobSignal, StoreError> {
        let Pool::Postgres(pool) = self.pool else { return Ok(JobSignal { listening: None }) };
        let options = (*pool.connect_options()).clone();
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let mut listening = Listening { pool: pool.connect_lazy_with(options), listener: None };
        listening.listen().await?;
        Ok(JobSignal { listening: Some(listening) })
    }
}

#[boxed]
impl JobStore<'_> {
    /// Notifies every process that jobs were queued. The notification is optional: a process that misses it finds the
    /// jobs a little later.
    pub async fn notify_workers(self) -> Result<(), StoreError> {
        if let Pool::Postgres(pool) = self.pool {
            // Nothing is written that must reach the disk.
            let tell = "SELECT set_config('synchronous_commit', 'off', TRUE), pg_notify($1, '')";
            sqlx::query(tell).bind(JOBS_CHANNEL).execute(pool).await?;
        }
        Ok(())
    }
}

#[boxed]
impl JobSignal {
    /// Waits for the next signal; on SQLite forever. A lost connection is reopened, which counts as a signal, because
    /// a notification may have been missed.
    pub async fn next(&mut self) {
        match &mut self.listening {
            None => std::future::pending().await,
            Some(listening) => listening.next().await,
        }
    }
}

impl Listening {
    async fn listen(&mut self) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(JOBS_CHANNEL).await?;
        self.listener = Some(listener);
        Ok(())
    }

    async fn next(&mut self) {
        // After an error that the listener cannot recover from it is unusable, so a new one is made.
        if let Some(listener) = &mut self.listener {
            match listener.try_recv().await {
                Ok(_) => {
                    while listener.next_buffered().is_some() {}
                    return;
                }
                Err(error) => tracing::debug!(%error, "lost the connection that listens for jobs"),
            }
        }
        self.listener = None;
        while let Err(error) = self.listen().await {
            tracing::debug!(%error, "cannot listen for jobs");
            tokio::time::sleep(RECONNECT).await;
        }
    }
}
