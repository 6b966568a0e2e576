//! Attention as general matrix products.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;

use crate::attention::{AttentionBuffers, Heads};
use crate::row_math::SoftmaxRows;

pub(crate) fn attend(heads: Heads, parts: &[f32], buffers: &mut AttentionBuffers, out: &mut [f32]) {
    let product = GemmExecutor::<f32, f32, f32>::new();
    let (width, size) = (heads.width(), heads.size);
    let length = out.len() / width;
    let stride = 3 * width;
    let part = |start: usize| {
        NdTensorView::from_slice_with_strides([length, size], &parts[start..], [stride, 1])
            .expect("invariant: a head's part lies within the text's rows")
    };
    let scale = GemmOptions { alpha: (size as f32).powf(-0.5), ..GemmOptions::default() };
    let AttentionBuffers { plain_scores: scores, inverse_sums, plain: head, .. } = buffers;
    scores.resize(length * length, 0.0);
    inverse_sums.resize(length, 0.0);
    head.resize(length * size, 0.0);
    for start in (0..width).step_by(size) {
        let (query, key, value) = (part(start), part(width + start), part(2 * width + start));
        product
            .gemm(scores, GemmInputA::Unpacked(query), GemmInputB::Unpacked(key.transposed()), scale.clone())
            .expect("invariant: query and key have one shape");
        SoftmaxRows { values: scores, width: length, inverse_sums }.dispatch();
        let weights = NdTensorView::from_data([length, length], scores.as_slice());
        product
            .gemm(head, GemmInputA::Unpacked(weights), GemmInputB::Unpacked(value), GemmOptions::default())
            .expect("invariant: there is a weight for each value");
        let rows = out.chunks_exact_mut(width).zip(head.chunks_exact(size));
        for ((row, from), inverse) in rows.zip(inverse_sums.iter()) {
            row[start..start + size].iter_mut().zip(from).for_each(|(to, from)| *to = from * inverse);
        }
    }
}
