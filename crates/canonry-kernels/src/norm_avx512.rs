//! Normalises rows to mean 0 and variance 1 with AVX-512.
#![expect(unsafe_code, reason = "what is compiled for AVX-512 may be called only where it is known to be there")]

use std::arch::x86_64::{
    __m512, __mmask16, _mm512_add_ps, _mm512_fmadd_ps, _mm512_maskz_sub_ps, _mm512_mul_ps, _mm512_reduce_add_ps,
    _mm512_set1_ps, _mm512_setzero_ps, _mm512_sub_ps,
};

use crate::kernels::{KernelKind, Kernels};
use crate::lanes::{LANES, first_lanes, load, load_some, store, store_some};

/// Independent partial sums: as many as the cycles of one addition.
const BESIDE: usize = 4;

pub(crate) fn normalise(kernels: Kernels, values: &mut [f32], gains: &[f32], biases: &[f32], epsilon: f32) {
    assert!(kernels.kind() != KernelKind::Portable);
    // SAFETY: kernels other than the portable ones exist only where these features were found.
    unsafe { normalise_rows(values, gains, biases, epsilon) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn normalise_rows(values: &mut [f32], gains: &[f32], biases: &[f32], epsilon: f32) {
    let width = gains.len();
    let count = width as f32;
    for row in values.chunks_exact_mut(width) {
        let mean = sum(row, |values, _| values) / count;
        let means = _mm512_set1_ps(mean);
        let variance = sum(row, |values, there| {
            let apart = _mm512_maskz_sub_ps(there, values, means);
            _mm512_mul_ps(apart, apart)
        }) / count;
        let scale = _mm512_set1_ps(1.0 / (variance + epsilon).sqrt());
        let new = |old: __m512, gain: __m512, bias: __m512| {
            _mm512_fmadd_ps(_mm512_mul_ps(_mm512_sub_ps(old, means), scale), gain, bias)
        };
        let ((row, row_rest), (gains, gains_rest), (biases, biases_rest)) =
            (row.as_chunks_mut::<LANES>(), gains.as_chunks::<LANES>(), biases.as_chunks::<LANES>());
        for ((values, gains), biases) in row.iter_mut().zip(gains).zip(biases) {
            let value = new(load(values), load(gains), load(biases));
            store(values, value);
        }
        let rest = new(load_some(row_rest), load_some(gains_rest), load_some(biases_rest));
        store_some(row_rest, rest);
    }
}

/// Sums `term` over the numbers of a row. Its second parameter is the mask of lanes that belong to the row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn sum(row: &[f32], term: impl Fn(__m512, __mmask16) -> __m512) -> f32 {
    let mut sums = [_mm512_setzero_ps(); BESIDE];
    let (whole, rest) = row.as_chunks::<{ BESIDE * LANES }>();
    for values in whole {
        for (sum, values) in sums.iter_mut().zip(values.as_chunks::<LANES>().0) {
            *sum = _mm512_add_ps(*sum, term(load(values), __mmask16::MAX));
        }
    }
    for values in rest.chunks(LANES) {
        sums[0] = _mm512_add_ps(sums[0], term(load_some(values), first_lanes(values.len())));
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)))
}
