//! Attention with AMX: queries, keys, weights and values as bf16, sums as fp32.
#![expect(unsafe_code, reason = "what is compiled for AVX-512 may be called only where it is known to be there")]

use std::arch::x86_64::{
    __m512, __m512i, _mm512_add_ps, _mm512_castps_si512, _mm512_castsi512_ps, _mm512_div_ps, _mm512_fmadd_ps,
    _mm512_mask_mov_ps, _mm512_maskz_mov_ps, _mm512_max_ps, _mm512_mul_ps, _mm512_permutexvar_epi16, _mm512_range_ps,
    _mm512_reduce_max_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512,
};

use crate::attention::{AttentionBuffers, Heads};
use crate::kernels::{KernelKind, Kernels};
use crate::lanes::{
    LANES, first_lanes, halves, load_line, load_some, power_of_two, store, store_line, store_some, transpose,
};
use crate::lines::{CacheLine, EMPTY, resize};
use crate::tiles::{TILE, Tiles};

/// The number of bf16 values in a line: one tile product reads that many keys, or that many numbers of a query.
const HALVES: usize = 32;
/// The score of a key with weight zero: scaled and shifted, it is far below every real power, or minus infinity.
const NEVER: f32 = f32::MIN;
/// Powers of two whose exponent has at most this size can be summed and multiplied without overflow or underflow.
const MODERATE: f32 = 80.0;

#[derive(Clone, Copy)]
struct AttentionShape {
    length: usize,
    width: usize,
    size: usize,
    depth: usize,
    /// The number of pairs of key tiles, which is also the number of lines of weights.
    pairs: usize,
    value_pairs: usize,
}

pub(crate) fn attend(kernels: Kernels, heads: Heads, parts: &[f32], buffers: &mut AttentionBuffers, out: &mut [f32]) {
    assert!(kernels.kind() == KernelKind::Amx);
    // SAFETY: kernels of this kind exist only where these features were found and the system has permitted AMX.
    unsafe { attend_heads(heads, parts, buffers, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn attend_heads(heads: Heads, parts: &[f32], buffers: &mut AttentionBuffers, out: &mut [f32]) {
    let (width, size) = (heads.width(), heads.size);
    let length = out.len() / width;
    let (depth, pairs) = (size.div_ceil(HALVES), length.div_ceil(HALVES));
    let shape = AttentionShape { length, width, size, depth, pairs, value_pairs: size.div_ceil(2 * LANES) };
    resize(&mut buffers.queries, pairs * HALVES * depth);
    resize(&mut buffers.keys, pairs * 2 * depth * TILE);
    resize(&mut buffers.values, shape.value_pairs * 2 * pairs * TILE);
    resize(&mut buffers.scores, TILE * 2 * pairs);
    // The exact length, because the buffer is divided into halves.
    buffers.weights.resize(2 * TILE * pairs, EMPTY);
    // SAFETY: `attend` has made sure that AMX is permitted. No other `Tiles` lives in this thread: they are made here
    // and in the products of layers, and neither calls the other.
    let tiles = unsafe { Tiles::configure() };
    for start in (0..width).step_by(size) {
        pack_queries(shape, &parts[start..], &mut buffers.queries);
        pack_keys(shape, &parts[width + start..], &mut buffers.keys);
        pack_values(shape, &parts[2 * width + start..], &mut buffers.values);
        // Weights are read as tiles only after the next rows' weights were computed: reading them at once would
        // stall.
        let count = length.div_ceil(TILE);
        let mut inverse_sums = [[0.0; TILE]; 2];
        for at in 0..=count {
            if at < count {
                score(&tiles, shape, at, buffers);
                inverse_sums[at % 2] = soften(shape, at, buffers);
            }
            if let Some(before) = at.checked_sub(1) {
                weigh(&tiles, shape, before, buffers, &inverse_sums[before % 2], &mut out[start..]);
            }
        }
    }
}

/// The weights of the tile of rows `at`. Two buffers alternate.
fn turn(at: usize, lines: &mut [CacheLine]) -> &mut [CacheLine] {
    let half = lines.len() / 2;
    &mut lines[at % 2 * half..][..half]
}

/// Computes the scores of sixteen rows with all keys.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn score(tiles: &Tiles, shape: AttentionShape, at: usize, buffers: &mut AttentionBuffers) {
    let AttentionShape { depth, pairs, .. } = shape;
    let queries = &buffers.queries[at * TILE * depth..];
    let scores = &mut buffers.scores;
    for (pair, keys) in buffers.keys.chunks_exact(2 * depth * TILE).take(pairs).enumerate() {
        let (left, right) = keys.split_at(depth * TILE);
        tiles.multiply_halves(queries, depth, [left, right]);
        tiles.store_wide(&mut scores[2 * pair..], 2 * pairs);
    }
}

/// Turns sixteen rows of scores into weights that are not yet divided by their sum. Returns the reciprocal of each
/// sum.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn soften(shape: AttentionShape, at: usize, buffers: &mut AttentionBuffers) -> [f32; TILE] {
    let AttentionShape { length, size, pairs, .. } = shape;
    let scores = &mut buffers.scores;
    let weights = turn(at, &mut buffers.weights);
    let numbers = |line: &CacheLine| _mm512_castsi512_ps(load_line(line));
    let (whole, rows) = (length / LANES, TILE.min(length - at * TILE));
    let never = _mm512_set1_ps(NEVER);
    let mut far = [_mm512_setzero_ps(); 2];
    for row in scores.chunks_exact_mut(2 * pairs).take(rows) {
        let (there, rest) = row.split_at_mut(whole);
        let (there, last) = there.as_chunks::<2>();
        for pair in there {
            far = [larger(far[0], numbers(&pair[0])), larger(far[1], numbers(&pair[1]))];
        }
        for line in last {
            far[0] = larger(far[0], numbers(line));
        }
        for (at, line) in rest.iter_mut().enumerate() {
            let real = first_lanes((length % LANES).saturating_sub(at * LANES));
            far[1] = larger(far[1], _mm512_maskz_mov_ps(real, numbers(line)));
            store_line(line, _mm512_castps_si512(_mm512_mask_mov_ps(never, real, numbers(line))));
        }
    }
    let scale = std::f32::consts::LOG2_E * (size as f32).powf(-0.5);
    let moderate = _mm512_reduce_max_ps(larger(far[0], far[1])) * scale <= MODERATE;
    let scales = _mm512_set1_ps(scale);
    let mut sums = [_mm512_setzero_ps(); TILE];
    let rows = scores.chunks_exact(2 * pairs).zip(weights.chunks_exact_mut(pairs)).take(rows);
    for ((scores, weights), total) in rows.zip(&mut sums) {
        // The shift only matters if powers would be too large or too small for a float.
        let shift = if moderate { _mm512_setzero_ps() } else { _mm512_set1_ps(-scale * largest(scores)) };
        let mut sums = [_mm512_setzero_ps(); 2];
        for (pair, weights) in scores.as_chunks::<2>().0.iter().zip(weights) {
            let low = power_of_two(_mm512_fmadd_ps(numbers(&pair[0]), scales, shift));
            let high = power_of_two(_mm512_fmadd_ps(numbers(&pair[1]), scales, shift));
            sums = [_mm512_add_ps(sums[0], low), _mm512_add_ps(sums[1], high)];
            store_line(weights, halves(low, high));
        }
        *total = _mm512_add_ps(sums[0], sums[1]);
    }
    let mut sum = _mm512_setzero_ps();
    for column in transpose(sums.map(|sum| _mm512_castps_si512(sum))) {
        sum = _mm512_add_ps(sum, _mm512_castsi512_ps(column));
    }
    let mut inverse_sums = [0.0; TILE];
    store(&mut inverse_sums, _mm512_div_ps(_mm512_set1_ps(1.0), sum));
    inverse_sums
}

#[inline]
#[target_feature(enable = "avx512f")]
fn largest(scores: &[CacheLine]) -> f32 {
    let mut most = _mm512_set1_ps(NEVER);
    for line in scores {
        most = _mm512_max_ps(most, _mm512_castsi512_ps(load_line(line)));
    }
    _mm512_reduce_max_ps(most)
}

/// The larger of two absolute values.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn larger(one: __m512, other: __m512) -> __m512 {
    const LARGEST_WITHOUT_SIGN: i32 = 0b1011;
    _mm512_range_ps::<LARGEST_WITHOUT_SIGN>(one, other)
}

/// Sums the values of all keys, weighted for sixteen rows. `out` begins at this head in the text's first row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn weigh(
    tiles: &Tiles,
    shape: AttentionShape,
    at: usize,
    buffers: &mut AttentionBuffers,
    inverse_sums: &[f32; TILE],
    out: &mut [f32],
) {
    let AttentionShape { width, size, pairs, .. } = shape;
    let weights = turn(at, &mut buffers.weights);
    for (pair, values) in buffers.values.chunks_exact(2 * pairs * TILE).take(shape.value_pairs).enumerate() {
        let (left, right) = values.split_at(pairs * TILE);
        tiles.multiply_halves(weights, pairs, [left, right]);
        let mut sums = [EMPTY; 2 * TILE];
        tiles.store_wide(&mut sums, 2);
        let (sums, _) = sums.as_chunks::<2>();
        for ((row, sums), inverse) in out.chunks_mut(width).skip(at * TILE).zip(sums).zip(inverse_sums) {
            let row = &mut row[pair * 2 * LANES..size];
            let inverse = _mm512_set1_ps(*inverse);
            for (part, sums) in row.chunks_mut(LANES).zip(sums) {
                store_some(part, _mm512_mul_ps(_mm512_castsi512_ps(load_line(sums)), inverse));
            }
        }
    }
}

/// The 32 numbers of a row from `at` on as bf16, filled up with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn half_line(row: &[f32], at: usize) -> __m512i {
    let row = &row[at..];
    halves(load_some(row), load_some(row.get(LANES..).unwrap_or_default()))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn pack_queries(shape: AttentionShape, parts: &[f32], queries: &mut [CacheLine]) {
    let rows = parts.chunks(3 * shape.width).zip(queries.chunks_exact_mut(shape.depth));
    for (row, lines) in rows.take(shape.length) {
        for (at, line) in lines.iter_mut().enumerate() {
            store_line(line, half_line(&row[..shape.size], at * HALVES));
        }
    }
}

/// Packs keys by columns: a line contains two numbers of each of sixteen keys.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn pack_keys(shape: AttentionShape, parts: &[f32], keys: &mut [CacheLine]) {
    let stride = 3 * shape.width;
    let (tiles, _) = keys.as_chunks_mut::<TILE>();
    for (tile, lines) in tiles.iter_mut().take(2 * shape.pairs * shape.depth).enumerate() {
        let (first, at) = (tile / shape.depth * TILE, tile % shape.depth * HALVES);
        let mut rows = [_mm512_setzero_si512(); TILE];
        for (row, key) in rows.iter_mut().zip(first..shape.length) {
            *row = half_line(&parts[key * stride..][..shape.size], at);
        }
        for (line, column) in lines.iter_mut().zip(transpose(rows)) {
            store_line(line, column);
        }
    }
}

/// Packs values by pairs of rows: a line contains sixteen numbers of each of two values, alternating.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn pack_values(shape: AttentionShape, parts: &[f32], values: &mut [CacheLine]) {
    const ALTERNATING: [i16; HALVES] = {
        let mut order = [0; HALVES];
        let mut at = 0;
        while at < HALVES {
            order[at] = (at / 2 + at % 2 * LANES) as i16;
            at += 1;
        }
        order
    };
    // SAFETY: both are 64 bytes in which any pattern is valid.
    let order = unsafe { std::mem::transmute::<[i16; HALVES], __m512i>(ALTERNATING) };
    let stride = 3 * shape.width;
    let number = |row: usize, at: usize| {
        let row = if row < shape.length { &parts[row * stride..][..shape.size] } else { &[] };
        load_some(row.get(at..).unwrap_or_default())
    };
    let columns = values.chunks_exact_mut(shape.pairs * TILE).take(2 * shape.value_pairs);
    for (column, lines) in columns.enumerate() {
        for (pair, line) in lines.iter_mut().enumerate() {
            let both = halves(number(2 * pair, column * LANES), number(2 * pair + 1, column * LANES));
            store_line(line, _mm512_permutexvar_epi16(order, both));
        }
    }
}
