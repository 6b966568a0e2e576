//! Stores waiting webhooks in batches: one transaction, and one wait for the disk, for all of them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use canonry_github::Clock;
use canonry_store::{DeliveryReceipt, NewDelivery, PackedText, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::http::body_budget::BodyPermit;
use crate::intake::classify_webhook::ClassifiedWebhook;

/// Webhooks per batch. More would delay the first of them: 256 of the usual size take some 15 ms.
const MOST: usize = 256;
/// Bytes per batch, except for a single larger body. The drivers copy a batch several times.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Batches under way at once, if the database allows several: one is built and sent while another waits for the disk.
const MOST_LANES: usize = 2;
/// How long storing a batch may take, whatever the database does. GitHub waits ten seconds. A refused delivery can be
/// sent again, even if it was stored after all: a delivery is recognized by its id.
const PATIENCE: Duration = Duration::from_secs(8);
/// A database that takes longer to answer a ping counts as unreachable.
const PING: Duration = Duration::from_secs(3);

/// A webhook is not stored; the log has the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotStored;

/// Accepts checked webhooks for storing.
#[derive(Debug, Clone)]
pub(crate) struct WebhookBatches {
    /// One queue for each batch that may be under way.
    lanes: Vec<mpsc::Sender<UnstoredWebhook>>,
}

/// A checked webhook, and the channel for its answer.
#[derive(Debug)]
struct UnstoredWebhook {
    webhook: ClassifiedWebhook,
    body: PackedText,
    /// Released with the answer.
    _held: BodyPermit,
    answer: oneshot::Sender<Result<DeliveryReceipt, NotStored>>,
}

impl WebhookBatches {
    /// Starts to store webhooks, until the last clone is dropped and everything is answered.
    ///
    /// No batch waits to fill: while one batch is stored, the next one collects. A single webhook is stored at once,
    /// and a burst in few transactions. Webhooks about one item use the same lane and keep their order.
    pub(crate) fn start(store: &Store, clock: &Arc<dyn Clock>) -> Self {
        let queued = tell_workers(store.clone());
        let lane = |_| lane(store.clone(), Arc::clone(clock), queued.clone());
        Self { lanes: (0..store.writers().min(MOST_LANES)).map(lane).collect() }
    }

    /// Stores a webhook. It is on the disk when this returns.
    pub(crate) async fn store(
        &self,
        webhook: ClassifiedWebhook,
        body: PackedText,
        held: BodyPermit,
    ) -> Result<DeliveryReceipt, NotStored> {
        let (answer, stored) = oneshot::channel();
        self.lane_of(&webhook)
            .send(UnstoredWebhook { webhook, body, _held: held, answer })
            .await
            .map_err(|_| NotStored)?;
        stored.await.unwrap_or(Err(NotStored))
    }

    fn lane_of(&self, webhook: &ClassifiedWebhook) -> &mpsc::Sender<UnstoredWebhook> {
        let mut hasher = DefaultHasher::new();
        webhook.key().hash(&mut hasher);
        &self.lanes[usize::try_from(hasher.finish() % self.lanes.len() as u64).unwrap_or_default()]
    }
}

/// Stores what is sent, one batch after the other, in the order in which it arrived.
fn lane(store: Store, clock: Arc<dyn Clock>, queued: mpsc::Sender<()>) -> mpsc::Sender<UnstoredWebhook> {
    let (waiting, mut next) = mpsc::channel(MOST);
    tokio::spawn(async move {
        while let Some(first) = next.recv().await {
            let batch = gather(first, &mut next);
            store_batch(&store, clock.as_ref(), batch, Instant::now() + PATIENCE).await;
            // A full channel already has a signal.
            let _ = queued.try_send(());
        }
    });
    waiting
}

/// Signals new jobs to other processes, once for all jobs that are queued during a signal.
fn tell_workers(store: Store) -> mpsc::Sender<()> {
    let (queued, mut next) = mpsc::channel(1);
    tokio::spawn(async move {
        while next.recv().await.is_some() {
            if let Err(error) = store.jobs().notify_workers().await {
                tracing::debug!(%error, "other processes were not notified of new jobs; they find them a little later");
            }
        }
    });
    queued
}

/// The first webhook, and those that wait behind it.
fn gather(first: UnstoredWebhook, next: &mut mpsc::Receiver<UnstoredWebhook>) -> Vec<UnstoredWebhook> {
    let mut bytes = first.body.bytes();
    let mut batch = vec![first];
    while batch.len() < MOST && bytes < MOST_BYTES {
        let Ok(waiting) = next.try_recv() else { break };
        bytes += waiting.body.bytes();
        batch.push(waiting);
    }
    batch
}

async fn store_batch(store: &Store, clock: &dyn Clock, batch: Vec<UnstoredWebhook>, deadline: Instant) {
    let new: Vec<NewDelivery<'_>> = batch.iter().map(|waiting| waiting.webhook.delivery(&waiting.body)).collect();
    let results = match timeout_at(deadline, store.deliveries().accept_all(&new, clock.now())).await {
        Ok(Ok(accepted)) => accepted.into_iter().map(Ok).collect(),
        Ok(Err(error)) => after_failure(store, clock, &new, &error, deadline).await,
        Err(_) => {
            tracing::error!(
                deliveries = new.len(),
                first = new[0].id,
                "the database takes too long to store webhooks; GitHub got 503 and can send them again"
            );
            vec![Err(NotStored); new.len()]
        }
    };
    drop(new);
    // A sender that no longer waits has disconnected. GitHub shows the delivery as failed, and it is stored.
    for (waiting, result) in batch.into_iter().zip(results) {
        let _ = waiting.answer.send(result);
    }
}

/// One delivery that the database refuses must not make the others fail: they are stored one by one, as many as time
/// allows.
async fn after_failure(
    store: &Store,
    clock: &dyn Clock,
    new: &[NewDelivery<'_>],
    error: &StoreError,
    deadline: Instant,
) -> Vec<Result<DeliveryReceipt, NotStored>> {
    let ping = timeout_at(deadline, timeout(PING, store.ping()));
    let answers = matches!(ping.await, Ok(Ok(Ok(()))));
    if new.len() == 1 || !answers {
        tracing::error!(deliveries = new.len(), first = new[0].id, %error, "webhooks could not be stored; GitHub got 503 and can send them again");
        return vec![Err(NotStored); new.len()];
    }
    tracing::warn!(deliveries = new.len(), %error, "webhooks could not be stored together; they are stored one by one");
    let mut results = Vec::with_capacity(new.len());
    for delivery in new {
        let Ok(stored) = timeout_at(deadline, store.deliveries().accept(delivery, clock.now())).await else {
            tracing::error!(
                deliveries = new.len() - results.len(),
                first = delivery.id,
                "the database takes too long to store webhooks; GitHub got 503 and can send them again"
            );
            break;
        };
        results.push(stored.map_err(|error| {
            tracing::error!(delivery = delivery.id, %error, "a webhook could not be stored; GitHub got 503 and can send them again");
            NotStored
        }));
    }
    results.resize(new.len(), Err(NotStored));
    results
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use canonry_github::SystemClock;
    use canonry_store::{DeliveryFilter, DeliveryReceipt, PackedText, Store};
    use canonry_testkit::database::TestDatabase;
    use jiff::Timestamp;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::{NotStored, UnstoredWebhook, store_batch};
    use crate::http::body_budget::BodyBudget;
    use crate::intake::classify_webhook::classify_webhook;

    /// Takes a minute for the delivery `slow`, and refuses `bad`.
    const MOODY: &str = "CREATE FUNCTION moody() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.id = 'bad' THEN RAISE EXCEPTION 'no'; END IF;
            IF NEW.id = 'slow' THEN PERFORM pg_sleep(60); END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER moody BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION moody()";

    const SECOND: Duration = Duration::from_secs(1);
    /// Shorter than the slow delivery, and more than a loaded machine needs.
    const HALF_A_MINUTE: Duration = Duration::from_secs(30);

    /// The answers to these deliveries, stored within a limit.
    async fn answers(store: &Store, ids: &[&str], limit: Duration) -> Vec<Result<DeliveryReceipt, NotStored>> {
        let (mut batch, mut heard) = (Vec::new(), Vec::new());
        for id in ids {
            let webhook = classify_webhook(id, "ping", "{}").expect("JSON");
            let (answer, hears) = oneshot::channel();
            let held = BodyBudget::new().begin().expect("room");
            batch.push(UnstoredWebhook { webhook, body: PackedText::pack("{}"), _held: held, answer });
            heard.push(hears);
        }
        let begun = Instant::now();
        store_batch(store, &SystemClock, batch, begun + limit).await;
        assert!(begun.elapsed() < limit + HALF_A_MINUTE, "{:?}", begun.elapsed());
        let mut answers = Vec::new();
        for hears in heard {
            answers.push(hears.await.expect("everybody hears"));
        }
        answers
    }

    #[tokio::test]
    async fn a_slow_database_is_not_waited_for() {
        let database = TestDatabase::postgres().await;
        let store = Store::open(&database.url().parse().expect("a URL"), Timestamp::now()).await.expect("opens");
        database.execute(MOODY).await;
        assert_eq!(answers(&store, &["slow", "a"], SECOND).await, [Err(NotStored); 2]);
        // One by one, the time is over with the second.
        assert_eq!(answers(&store, &["bad", "slow", "b"], SECOND).await, [Err(NotStored); 3]);
        let [bad, good] = answers(&store, &["bad", "c"], HALF_A_MINUTE).await[..] else { panic!("two answers") };
        assert!(bad == Err(NotStored) && good.is_ok(), "{good:?}");
        let stored = store.deliveries().list(&DeliveryFilter::default(), 100).await.expect("reads");
        assert_eq!(stored.iter().map(|delivery| delivery.id.as_str()).collect::<Vec<_>>(), ["c"]);
    }
}
