//! Codes rows of numbers as bytes with AVX-512.
#![expect(unsafe_code, reason = "what is compiled for AVX-512 may be called only where it is known to be there")]

use std::arch::x86_64::{
    __m512, _mm512_cvtps_epi32, _mm512_fmadd_ps, _mm512_max_ps, _mm512_min_ps, _mm512_packus_epi16,
    _mm512_packus_epi32, _mm512_permutexvar_epi32, _mm512_reduce_max_ps, _mm512_reduce_min_ps, _mm512_set1_ps,
    _mm512_setr_epi32, _mm512_setzero_ps,
};

use crate::coded_rows::CodedRows;
use crate::kernels::KernelKind;
use crate::lanes::{LANES, load, load_some, store_line};
use crate::lines::{CacheLine, LINE};

/// Writes the codes, scales and zero points of `rows`, whose buffers are long enough.
pub(crate) fn code(rows: &mut CodedRows, values: &[f32]) {
    assert!(rows.kernels.kind() != KernelKind::Portable);
    // SAFETY: kernels other than the portable ones exist only where these features were found.
    unsafe { code_rows(rows, values) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn code_rows(rows: &mut CodedRows, values: &[f32]) {
    let CodedRows { lines, stride, scales, zeros, width, .. } = rows;
    let targets = lines.chunks_exact_mut(*stride).zip(scales).zip(zeros);
    for (values, ((lines, scale), zero)) in values.chunks_exact(*width).zip(targets) {
        (*scale, *zero) = code_row(values, lines);
    }
}

/// Codes one row and returns its scale and zero point.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn code_row(values: &[f32], lines: &mut [CacheLine]) -> (f32, i32) {
    // One code stays unused: zero point and value are rounded separately, and both may be rounded up.
    const STEPS: f32 = 254.0;
    let (least, most) = extremes(values);
    let range = most - least;
    let inverse = if range > 0.0 { STEPS / range } else { 0.0 };
    let zero = (-least * inverse).round_ties_even();
    let (inverses, zeros) = (_mm512_set1_ps(inverse), _mm512_set1_ps(zero));
    let code = |value: __m512| _mm512_cvtps_epi32(_mm512_fmadd_ps(value, inverses, zeros));
    // Packing works within each quarter of the vectors; this order restores the sequence of the pieces.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let put = |line: &mut CacheLine, parts: [__m512; 4]| {
        let [a, b, c, d] = parts.map(code);
        let packed = _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
        store_line(line, _mm512_permutexvar_epi32(order, packed));
    };
    let (whole, rest) = values.as_chunks::<LINE>();
    let (whole_lines, rest_lines) = lines.split_at_mut(whole.len());
    for (line, values) in whole_lines.iter_mut().zip(whole) {
        let (parts, _) = values.as_chunks::<LANES>();
        put(line, [load(&parts[0]), load(&parts[1]), load(&parts[2]), load(&parts[3])]);
    }
    if !rest.is_empty() {
        // Codes beyond the end of the row are multiplied by weights of zero.
        let part = |at: usize| load_some(rest.get(at * LANES..).unwrap_or_default());
        put(&mut rest_lines[0], [part(0), part(1), part(2), part(3)]);
    }
    (range / STEPS, zero as i32)
}

/// The smallest and the largest value, including zero, so that zero always has an exact code. If one of two operands
/// is NaN, the processor returns the second: that is the extreme found so far, so nothing is lost.
#[inline]
#[target_feature(enable = "avx512f")]
fn extremes(values: &[f32]) -> (f32, f32) {
    let (whole, rest) = values.as_chunks::<{ 2 * LANES }>();
    let zero = _mm512_setzero_ps();
    let (mut least, mut most) = ([zero; 2], [zero; 2]);
    for values in whole {
        let (parts, _) = values.as_chunks::<LANES>();
        for at in 0..2 {
            let values = load(&parts[at]);
            least[at] = _mm512_min_ps(values, least[at]);
            most[at] = _mm512_max_ps(values, most[at]);
        }
    }
    for values in rest.chunks(LANES) {
        let values = load_some(values);
        least[0] = _mm512_min_ps(values, least[0]);
        most[0] = _mm512_max_ps(values, most[0]);
    }
    (_mm512_reduce_min_ps(_mm512_min_ps(least[0], least[1])), _mm512_reduce_max_ps(_mm512_max_ps(most[0], most[1])))
}

#[cfg(test)]
mod tests {
    use crate::coded_rows::CodedRows;
    use crate::kernels::{KernelKind, Kernels};
    use crate::lines::LINE;
    use proptest::prelude::{Just, Strategy, prop, prop_assert, proptest};

    fn kernels() -> impl Iterator<Item = Kernels> {
        Kernels::available().into_iter().filter(|kernels| kernels.kind() != KernelKind::Portable)
    }

    fn code(rows: &CodedRows, row: usize, at: usize) -> i32 {
        i32::from(rows.lines[row * rows.stride + at / LINE].0[at % LINE])
    }

    fn rows() -> impl Strategy<Value = (usize, Vec<f32>)> {
        let width = prop::sample::select(vec![1usize, 15, 16, 19, 33, 63, 64, 65, 100, 128, 200]);
        width.prop_flat_map(|width| (Just(width), prop::collection::vec(-50.0f32..50.0, width * 3)))
    }

    proptest! {
        #[test]
        fn codes_stand_for_their_values((width, values) in rows()) {
            for kernels in kernels() {
                let mut rows = CodedRows::default();
                rows.code(kernels, &values, width);
                for (at, value) in values.iter().enumerate() {
                    let (row, at) = (at / width, at % width);
                    let (scale, code) = (rows.scales[row], code(&rows, row, at));
                    let back = (code - rows.zeros[row]) as f32 * scale;
                    prop_assert!((back - value).abs() <= scale * 1.01, "{value} came back as {back}, step {scale}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_leaves_the_others_as_they_are() {
        for kernels in kernels() {
            for (width, nan) in [(40, 3), (40, 20), (40, 39), (7, 0)] {
                // The smallest and the largest value come before and after the NaN, also in the lanes that it is
                // compared with.
                for far in 0..width {
                    let mut values: Vec<f32> = (0..width).map(|at| at as f32 / 100.0).collect();
                    (values[far], values[width - 1 - far]) = (9.0, -5.0);
                    values[nan] = 0.0;
                    let [mut expected, mut rows] = [CodedRows::default(), CodedRows::default()];
                    expected.code(kernels, &values, width);
                    values[nan] = f32::NAN;
                    rows.code(kernels, &values, width);
                    assert_eq!((&rows.scales, &rows.zeros), (&expected.scales, &expected.zeros), "{width} {nan} {far}");
                    for at in (0..width).filter(|at| *at != nan) {
                        assert_eq!(code(&rows, 0, at), code(&expected, 0, at), "{width} {nan} {far} {at}");
                    }
                }
            }
        }
    }
}
