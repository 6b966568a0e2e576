//! A detector for tests in which no text is compared.

use canonry_models::{Calibration, EmbedError, Embedder, InputType};
use canonry_triage::{DetectorSource, Detectors, Judge};
use futures_util::future::BoxFuture;

/// Finds all texts alike; nothing here is compared.
pub(crate) struct Plain {
    calibration: Calibration,
}

impl Plain {
    pub(crate) fn new() -> Self {
        Self { calibration: Calibration::identity() }
    }
}

impl DetectorSource for Plain {
    fn detectors(&self) -> Detectors<'_> {
        Detectors { github: None, embedder: self, extractor: None, judge: Judge::Local, snapshots: None, indexes: None }
    }

    fn is_hosted(&self) -> bool {
        false
    }
}

impl Embedder for Plain {
    fn model_id(&self) -> &'static str {
        "plain"
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
