//! The models of the demo: those that are compiled in.

use std::path::PathBuf;
use std::sync::OnceLock;

use canonry_models::LocalEmbedder;
use canonry_server::DetectorSource;
use canonry_triage::{Detectors, Judge};

#[derive(Default)]
pub(crate) struct LocalModels {
    embedder: OnceLock<LocalEmbedder>,
    snapshots: PathBuf,
}

impl LocalModels {
    pub(crate) fn with_snapshots(snapshots: PathBuf) -> Self {
        Self { embedder: OnceLock::new(), snapshots }
    }
}

impl DetectorSource for LocalModels {
    fn detectors(&self) -> Detectors<'_> {
        let embedder = self
            .embedder
            .get_or_init(|| LocalEmbedder::load().expect("invariant: the model that is compiled in can be read"));
        Detectors { github: None, embedder, extractor: None, judge: Judge::Local, snapshots: Some(&self.snapshots) }
    }

    fn is_hosted(&self) -> bool {
        false
    }

    fn counts_tokens(&self) -> bool {
        true
    }
}
