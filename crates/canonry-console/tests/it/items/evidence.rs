//! The evidence that pages mark: what proves nothing is left out, as in comments.

use std::sync::Arc;

use canonry_domain::{ItemRecord, Verdict};
use canonry_models::{Calibration, EmbedError, Embedder, InputType};
use canonry_retrieval::RetrievalMode;
use canonry_triage::{DetectorSource, Detectors, FixIndexes, IndexCache, Judge, Lookup};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::world::items::record;
use crate::world::{ConsoleWorld, ISSUE, Who, number};

/// Detectors whose index has no vectors.
struct Wordless {
    calibration: Calibration,
    indexes: IndexCache,
}

impl DetectorSource for Wordless {
    fn detectors(&self) -> Detectors<'_> {
        let indexes = Some(&self.indexes);
        Detectors { github: None, embedder: self, extractor: None, judge: Judge::Local, snapshots: None, indexes }
    }

    fn is_hosted(&self) -> bool {
        false
    }
}

impl Embedder for Wordless {
    fn model_id(&self) -> &'static str {
        "wordless"
    }

    fn dimension(&self) -> Option<usize> {
        Some(2)
    }

    fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    fn embed<'a>(&'a self, texts: &'a [String], _: InputType) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move { Ok(vec![vec![1.0, 0.0]; texts.len()]) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_many_items_contain_is_not_marked() {
    let world = ConsoleWorld::with(|parts| {
        let wordless = Wordless { calibration: Calibration::identity(), indexes: IndexCache::with_default_room() };
        parts.lookup = Some(Arc::new(Lookup {
            store: parts.store.clone(),
            detectors: Arc::new(wordless),
            clock: Arc::clone(&parts.clock),
            mode: RetrievalMode::Hybrid,
            fixes: FixIndexes::default(),
            places: Semaphore::new(1),
        }));
    })
    .await;
    let items = (1..=12).map(|of| ItemRecord {
        body: Some(match of {
            1 | 2 => "`tide_pump` waits for `noon_lock`".to_owned(),
            _ => format!("`tide_pump` stands still ({of})"),
        }),
        ..ItemRecord::new(ISSUE, number(of), format!("The pump stops {of}"))
    });
    world.store.corpus().upsert_items(&world.repo, items.collect(), world.now).await.expect("taken in");
    let found = record(2, Verdict::Duplicate, "duplicate", Some(1));
    world.store.duplicates().write_triage_record(world.repo.id, &found, world.now).await.expect("written");
    let page = world.page(Who::Rita, "/issues/2").await;
    assert!(page.contains(">noon_lock</mark>") && !page.contains(">tide_pump</mark>"), "{page}");
}
