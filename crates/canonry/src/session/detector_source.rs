//! The models of a service, which it keeps for as long as it runs.

use std::path::PathBuf;
use std::sync::OnceLock;

use canonry_models::{Embedder, LocalEmbedder};
use canonry_triage::{DetectorSource, Detectors, IndexCache};

use crate::options::chat::Models;

/// The models that embed, extract and judge for the service.
pub(crate) struct ServiceModels {
    /// The judge and, if cards are compared, the model that makes them.
    pub(crate) models: Models,
    /// A remote embedder; `None` for the local one.
    pub(crate) remote_embedder: Option<Box<dyn Embedder>>,
    /// The local embedder, loaded for the first text: a process that only receives webhooks stays small.
    pub(crate) local_embedder: OnceLock<LocalEmbedder>,
    pub(crate) snapshots: Option<PathBuf>,
    pub(crate) indexes: IndexCache,
}

impl DetectorSource for ServiceModels {
    fn detectors(&self) -> Detectors<'_> {
        let embedder: &dyn Embedder = match &self.remote_embedder {
            Some(remote) => &**remote,
            None => self
                .local_embedder
                .get_or_init(|| LocalEmbedder::load().expect("invariant: the model that is compiled in can be read")),
        };
        Detectors {
            // The service uses its own client.
            github: None,
            embedder,
            extractor: self.models.extractor(),
            judge: self.models.judge(),
            snapshots: self.snapshots.as_deref(),
            indexes: Some(&self.indexes),
        }
    }

    fn is_hosted(&self) -> bool {
        self.models.are_hosted()
    }

    fn counts_tokens(&self) -> bool {
        !self.models.ask_a_program()
    }
}
