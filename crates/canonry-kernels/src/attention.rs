//! Attention of the tokens of one text to each other.

use crate::kernels::{KernelKind, Kernels};
use crate::lines::CacheLine;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    pub count: usize,
    /// The number of values in a query, a key or a value of one head.
    pub size: usize,
}

impl Heads {
    pub(crate) fn width(self) -> usize {
        self.count.checked_mul(self.size).expect("invariant: rows of all heads fit in memory")
    }
}

#[derive(Default)]
pub struct AttentionBuffers {
    pub(crate) queries: Vec<CacheLine>,
    pub(crate) keys: Vec<CacheLine>,
    pub(crate) values: Vec<CacheLine>,
    pub(crate) scores: Vec<CacheLine>,
    pub(crate) weights: Vec<CacheLine>,
    pub(crate) plain: Vec<f32>,
    pub(crate) plain_scores: Vec<f32>,
    pub(crate) inverse_sums: Vec<f32>,
}

/// Computes attention. Each row of `parts` contains query, key and value of one token, each as wide as all heads
/// together. Each row of `out` becomes the values of all rows, weighted by the softmax of query · key / √size, head
/// by head.
///
/// # Panics
///
/// If `parts` is not three times as long as `out`, or `out` does not consist of whole rows.
pub fn attend(kernels: Kernels, heads: Heads, parts: &[f32], buffers: &mut AttentionBuffers, out: &mut [f32]) {
    let width = heads.width();
    assert!(width > 0 && out.len().is_multiple_of(width) && parts.len() == 3 * out.len(), "rows of one text");
    if out.is_empty() {
        return;
    }
    match kernels.kind() {
        #[cfg(target_arch = "x86_64")]
        KernelKind::Amx => crate::attention_amx::attend(kernels, heads, parts, buffers, out),
        #[cfg(target_arch = "x86_64")]
        KernelKind::Avx512 => crate::attention_avx512::attend(kernels, heads, parts, buffers, out),
        KernelKind::Portable => crate::attention_portable::attend(heads, parts, buffers, out),
    }
}
