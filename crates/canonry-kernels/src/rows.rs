//! Operations on whole rows of numbers.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;

use crate::kernels::{KernelKind, Kernels};
use crate::row_math::{MeanDirection, NormaliseRows};

/// Normalises each row to mean 0 and variance 1, then applies the learned gain and bias of each position.
///
/// # Panics
///
/// If the lengths do not match.
pub fn normalise(kernels: Kernels, values: &mut [f32], gains: &[f32], biases: &[f32], epsilon: f32) {
    assert!(!gains.is_empty() && gains.len() == biases.len() && values.len().is_multiple_of(gains.len()));
    match kernels.kind() {
        #[cfg(target_arch = "x86_64")]
        KernelKind::Amx | KernelKind::Avx512 => crate::norm_avx512::normalise(kernels, values, gains, biases, epsilon),
        KernelKind::Portable => NormaliseRows { values, gains, biases, epsilon }.dispatch(),
    }
}

/// The mean of all rows, normalised to length 1; zeros stay zeros.
///
/// # Panics
///
/// If `values` does not consist of whole rows.
pub fn mean_direction(values: &[f32], width: usize) -> Vec<f32> {
    assert!(width > 0 && values.len().is_multiple_of(width));
    MeanDirection { values, width }.dispatch()
}

/// The product of each row with each row of `weights`, in full precision.
///
/// # Panics
///
/// If `values` or `weights` do not consist of whole rows.
pub fn project(values: &[f32], weights: &[f32], width: usize) -> Vec<f32> {
    assert!(width > 0 && values.len().is_multiple_of(width) && weights.len().is_multiple_of(width));
    let (rows, outputs) = (values.len() / width, weights.len() / width);
    let mut out = vec![0.0; rows * outputs];
    let (values, weights) =
        (NdTensorView::from_data([rows, width], values), NdTensorView::from_data([outputs, width], weights));
    GemmExecutor::<f32, f32, f32>::new()
        .gemm(
            &mut out,
            GemmInputA::Unpacked(values),
            GemmInputB::Unpacked(weights.transposed()),
            GemmOptions::default(),
        )
        .expect("invariant: the shapes were checked above");
    out
}
