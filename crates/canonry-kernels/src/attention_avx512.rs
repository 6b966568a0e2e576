//! Attention with AVX-512 in fp32.
#![expect(unsafe_code, reason = "what is compiled for AVX-512 may be called only where it is known to be there")]

use std::arch::x86_64::{
    __m512, _mm512_add_ps, _mm512_fmadd_ps, _mm512_max_ps, _mm512_mul_ps, _mm512_reduce_add_ps, _mm512_reduce_max_ps,
    _mm512_set1_ps, _mm512_setzero_ps, _mm512_sub_ps,
};

use crate::attention::{AttentionBuffers, Heads};
use crate::kernels::{KernelKind, Kernels};
use crate::lanes::{LANES, load, load_some, power_of_two, store, store_some};

/// Queries processed together: with four vectors of keys, or two of values, their sums stay in registers.
const TOGETHER: usize = 4;
/// Keys processed together.
const KEYS: usize = 4 * LANES;
/// The score of a key with weight zero: shifted, it is far below every real power, or minus infinity.
const NEVER: f32 = f32::MIN;

pub(crate) fn attend(kernels: Kernels, heads: Heads, parts: &[f32], buffers: &mut AttentionBuffers, out: &mut [f32]) {
    assert!(kernels.kind() != KernelKind::Portable);
    // SAFETY: kernels other than the portable ones exist only where these features were found.
    unsafe { attend_heads(heads, parts, buffers, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn attend_heads(heads: Heads, parts: &[f32], buffers: &mut AttentionBuffers, out: &mut [f32]) {
    let (width, size) = (heads.width(), heads.size);
    let length = out.len() / width;
    let (padded, value_width) = (length.next_multiple_of(KEYS), size.next_multiple_of(2 * LANES));
    let AttentionBuffers { plain, plain_scores, .. } = buffers;
    plain.clear();
    plain.resize(padded * (size + value_width), 0.0);
    plain_scores.resize(TOGETHER * padded, 0.0);
    let (keys, values) = plain.split_at_mut(padded * size);
    let scale = std::f32::consts::LOG2_E * (size as f32).powf(-0.5);
    for start in (0..width).step_by(size) {
        for (token, row) in parts.chunks_exact(3 * width).enumerate() {
            let (key, value) = (&row[width + start..][..size], &row[2 * width + start..][..size]);
            keys.chunks_exact_mut(padded).zip(key).for_each(|(column, key)| column[token] = key * scale);
            values[token * value_width..][..size].copy_from_slice(value);
        }
        for first in (0..length).step_by(TOGETHER) {
            // The last query is repeated for missing queries; its extra results are not written.
            let queries: [&[f32]; TOGETHER] =
                std::array::from_fn(|at| &parts[(first + at).min(length - 1) * 3 * width + start..][..size]);
            score(queries, keys, padded, plain_scores);
            let mut inverse_sums = [0.0; TOGETHER];
            for (scores, inverse) in plain_scores.chunks_exact_mut(padded).zip(&mut inverse_sums) {
                scores[length..].fill(NEVER);
                *inverse = soften(scores);
            }
            for at in (0..size).step_by(2 * LANES) {
                let sums = weigh(plain_scores, padded, &values[at..], value_width, length);
                let rows = out[first * width..].chunks_exact_mut(width);
                for ((row, sums), inverse) in rows.zip(sums).zip(inverse_sums) {
                    let row = &mut row[start + at..start + size.min(at + 2 * LANES)];
                    for (part, sum) in row.chunks_mut(LANES).zip(sums) {
                        store_some(part, _mm512_mul_ps(sum, _mm512_set1_ps(inverse)));
                    }
                }
            }
        }
    }
}

/// Computes the scores of four queries with all keys. Keys are stored in columns of length `padded`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn score(queries: [&[f32]; TOGETHER], keys: &[f32], padded: usize, scores: &mut [f32]) {
    for first in (0..padded).step_by(KEYS) {
        let mut sums = [[_mm512_setzero_ps(); KEYS / LANES]; TOGETHER];
        for (at, column) in keys.chunks_exact(padded).enumerate() {
            let (column, _) = column[first..first + KEYS].as_chunks::<LANES>();
            let column = [load(&column[0]), load(&column[1]), load(&column[2]), load(&column[3])];
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = _mm512_set1_ps(query[at]);
                for (sum, key) in sums.iter_mut().zip(column) {
                    *sum = _mm512_fmadd_ps(query, key, *sum);
                }
            }
        }
        for (row, sums) in scores.chunks_exact_mut(padded).zip(sums) {
            let (row, _) = row[first..first + KEYS].as_chunks_mut::<LANES>();
            row.iter_mut().zip(sums).for_each(|(to, sum)| store(to, sum));
        }
    }
}

/// Turns a row of scores, powers of two, into weights that are not yet divided by their sum. Returns the reciprocal
/// of the sum.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn soften(scores: &mut [f32]) -> f32 {
    let (scores, _) = scores.as_chunks_mut::<LANES>();
    let mut most = _mm512_set1_ps(NEVER);
    for scores in scores.iter() {
        most = _mm512_max_ps(most, load(scores));
    }
    let most = _mm512_set1_ps(_mm512_reduce_max_ps(most));
    let mut sum = _mm512_setzero_ps();
    for scores in scores {
        let weight = power_of_two(_mm512_sub_ps(load(scores), most));
        sum = _mm512_add_ps(sum, weight);
        store(scores, weight);
    }
    1.0 / _mm512_reduce_add_ps(sum)
}

/// Sums 32 numbers of the values, weighted by four rows of weights.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn weigh(weights: &[f32], padded: usize, values: &[f32], stride: usize, length: usize) -> [[__m512; 2]; TOGETHER] {
    let mut sums = [[_mm512_setzero_ps(); 2]; TOGETHER];
    let weights: [&[f32]; TOGETHER] = std::array::from_fn(|at| &weights[at * padded..][..length]);
    for (token, value) in values.chunks(stride).take(length).enumerate() {
        let value = [load_some(value), load_some(&value[LANES..])];
        for (sums, weights) in sums.iter_mut().zip(weights) {
            let weight = _mm512_set1_ps(weights[token]);
            sums[0] = _mm512_fmadd_ps(weight, value[0], sums[0]);
            sums[1] = _mm512_fmadd_ps(weight, value[1], sums[1]);
        }
    }
    sums
}
