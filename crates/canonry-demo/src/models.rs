//! The models of the demo: the compiled-in ones.

use std::path::PathBuf;
use std::sync::OnceLock;

use canonry_models::LocalEmbedder;
use canonry_triage::{DetectorSource, Detectors, IndexCache, Judge};

pub(crate) struct LocalModels {
    embedder: OnceLock<LocalEmbedder>,
    snapshots: PathBuf,
    indexes: IndexCache,
}

impl LocalModels {
    pub(crate) fn with_snapshots(snapshots: PathBuf) -> Self {
        Self { embedder: OnceLock::new(), snapshots, indexes: IndexCache::with_default_room() }
    }
}

impl DetectorSource for LocalModels {
    fn detectors(&self) -> Detectors<'_> {
        let embedder = self
            .embedder
            .get_or_init(|| LocalEmbedder::load().expect("invariant: the model that is compiled in can be read"));
        Detectors {
            github: None,
            embedder,
            extractor: None,
            judge: Judge::Local,
            snapshots: Some(&self.snapshots),
            indexes: Some(&self.indexes),
        }
    }

    fn is_hosted(&self) -> bool {
        false
    }

    fn counts_tokens(&self) -> bool {
        true
    }
}
