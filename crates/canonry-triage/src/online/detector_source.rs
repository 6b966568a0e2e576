//! Where a service gets its models from.

use crate::online::detect_new::Detectors;

/// Provides the embedder, judge and extractor from the operator's settings.
pub trait DetectorSource: Send + Sync {
    fn detectors(&self) -> Detectors<'_>;

    /// Whether one of them is a hosted model, which costs money.
    fn is_hosted(&self) -> bool;

    /// Whether all of them report how many tokens they used. A program does not, so its cost cannot be limited.
    fn counts_tokens(&self) -> bool {
        true
    }
}
