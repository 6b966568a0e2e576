//! Vectors of sixteen floats: loads and stores that cannot leave their slice, and math functions.
#![expect(unsafe_code, reason = "loads and stores of whole vectors take pointers")]

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, __mmask16, _MM_FROUND_TO_NEG_INF, _mm512_cvtne2ps_pbh, _mm512_fmadd_ps,
    _mm512_load_si512, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_max_ps, _mm512_min_ps,
    _mm512_mul_ps, _mm512_reduce_ps, _mm512_scalef_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_shuffle_i32x4,
    _mm512_store_si512, _mm512_storeu_ps, _mm512_sub_ps, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use crate::lines::CacheLine;

pub(crate) const LANES: usize = 16;

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load(from: &[f32; LANES]) -> __m512 {
    // SAFETY: the array is as long as the vector, and the load needs no alignment.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store(to: &mut [f32; LANES], value: __m512) {
    // SAFETY: the array is as long as the vector, and the store needs no alignment.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
}

/// Loads the first sixteen numbers, filled up with zeros.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_some(from: &[f32]) -> __m512 {
    match from.first_chunk() {
        Some(all) => load(all),
        // SAFETY: only the lanes of the mask are read, and those lie within the slice.
        None => unsafe { _mm512_maskz_loadu_ps(first_lanes(from.len()), from.as_ptr()) },
    }
}

/// Stores as many numbers as the slice has room for.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_some(to: &mut [f32], value: __m512) {
    match to.first_chunk_mut() {
        Some(all) => store(all, value),
        // SAFETY: only the lanes of the mask are written, and those lie within the slice.
        None => unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first_lanes(to.len()), value) },
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_line(from: &CacheLine) -> __m512i {
    // SAFETY: a line is as long as the vector, and aligned to its own length.
    unsafe { _mm512_load_si512(std::ptr::from_ref(from).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_line(to: &mut CacheLine, value: __m512i) {
    // SAFETY: a line is as long as the vector, and aligned to its own length.
    unsafe { _mm512_store_si512(std::ptr::from_mut(to).cast(), value) }
}

/// The mask of the first `count` lanes.
#[inline]
pub(crate) fn first_lanes(count: usize) -> __mmask16 {
    if count >= LANES { __mmask16::MAX } else { (1 << count) - 1 }
}

/// Converts two vectors to bf16, the numbers of `low` first.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
pub(crate) fn halves(low: __m512, high: __m512) -> __m512i {
    let halves = _mm512_cvtne2ps_pbh(high, low);
    // SAFETY: both types are 512 bits in which any pattern is valid.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(halves) }
}

/// Beyond this value, the tail of the normal distribution is treated as constant.
const GELU_END: f32 = 3.9;
/// (Φ(x) − ½) / x as a polynomial in x², fitted for the smallest maximum error of x · Φ(x): 1.5e-4 up to |x| = 12,
/// and |x| · 1.3e-5 beyond. A row with a range of 2 is coded in steps of 7.9e-3.
const GELU: [f32; 7] =
    [0.398_085_53, -0.064_869_39, 0.008_913_743, -0.000_844_502_5, 5.123_624e-5, -1.770_440_2e-6, 2.627_035_3e-8];

/// x · Φ(x), the activation of BERT.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn gelu(x: __m512) -> __m512 {
    let end = _mm512_set1_ps(GELU_END);
    let near = _mm512_max_ps(_mm512_min_ps(x, end), _mm512_sub_ps(_mm512_setzero_ps(), end));
    let square = _mm512_mul_ps(near, near);
    let mut sum = _mm512_set1_ps(GELU[GELU.len() - 1]);
    for factor in GELU[..GELU.len() - 1].iter().rev() {
        sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(*factor));
    }
    _mm512_mul_ps(x, _mm512_fmadd_ps(near, sum, _mm512_set1_ps(0.5)))
}

/// 2 to a power between 0 and 1 as a polynomial. Its relative error is below 8e-5, a twentieth of the error of bf16.
const POWERS_OF_TWO: [f32; 4] = [0.999_925_26, 0.695_833_4, 0.226_067_29, 0.078_024_54];

/// 2 to a power, however low. Minus infinity gives zero.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn power_of_two(power: __m512) -> __m512 {
    let rest = _mm512_reduce_ps::<{ _MM_FROUND_TO_NEG_INF }>(power);
    let mut sum = _mm512_set1_ps(POWERS_OF_TWO[POWERS_OF_TWO.len() - 1]);
    for factor in POWERS_OF_TWO[..POWERS_OF_TWO.len() - 1].iter().rev() {
        sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(*factor));
    }
    // This instruction uses only the whole part of the power, and gives zero if it is too low.
    _mm512_scalef_ps(sum, power)
}

/// Transposes a matrix of sixteen times sixteen numbers.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose(rows: [__m512i; LANES]) -> [__m512i; LANES] {
    let mut pairs = rows;
    for at in (0..LANES).step_by(2) {
        pairs[at] = _mm512_unpacklo_epi32(rows[at], rows[at + 1]);
        pairs[at + 1] = _mm512_unpackhi_epi32(rows[at], rows[at + 1]);
    }
    let mut fours = pairs;
    for at in (0..LANES).step_by(4) {
        fours[at] = _mm512_unpacklo_epi64(pairs[at], pairs[at + 2]);
        fours[at + 1] = _mm512_unpackhi_epi64(pairs[at], pairs[at + 2]);
        fours[at + 2] = _mm512_unpacklo_epi64(pairs[at + 1], pairs[at + 3]);
        fours[at + 3] = _mm512_unpackhi_epi64(pairs[at + 1], pairs[at + 3]);
    }
    let mut columns = fours;
    for at in 0..4 {
        let low = _mm512_shuffle_i32x4::<0x88>(fours[at], fours[at + 4]);
        let high = _mm512_shuffle_i32x4::<0xdd>(fours[at], fours[at + 4]);
        let low_after = _mm512_shuffle_i32x4::<0x88>(fours[at + 8], fours[at + 12]);
        let high_after = _mm512_shuffle_i32x4::<0xdd>(fours[at + 8], fours[at + 12]);
        columns[at] = _mm512_shuffle_i32x4::<0x88>(low, low_after);
        columns[at + 8] = _mm512_shuffle_i32x4::<0xdd>(low, low_after);
        columns[at + 4] = _mm512_shuffle_i32x4::<0x88>(high, high_after);
        columns[at + 12] = _mm512_shuffle_i32x4::<0xdd>(high, high_after);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::{LANES, gelu, load, power_of_two, store};
    use crate::kernels::{KernelKind, Kernels};
    use crate::row_math::tests::exact_gelu;

    #[target_feature(enable = "avx512f,avx512dq")]
    fn sixteen(numbers: &mut [f32; LANES], power: bool) {
        let vector = load(numbers);
        store(numbers, if power { power_of_two(vector) } else { gelu(vector) });
    }

    /// Applies a vector function to the numbers; `None` if the processor has no AVX-512.
    fn each(numbers: &[f32], power: bool) -> Option<Vec<f32>> {
        if Kernels::best().kind() == KernelKind::Portable {
            return None;
        }
        let made = numbers.chunks(LANES).flat_map(|chunk| {
            let mut vector = [0.0; LANES];
            vector[..chunk.len()].copy_from_slice(chunk);
            // SAFETY: kernels other than the portable ones exist only where these features were found.
            unsafe { sixteen(&mut vector, power) };
            vector.into_iter().take(chunk.len())
        });
        Some(made.collect())
    }

    #[test]
    fn the_activation_is_the_one_of_the_model() {
        let (numbers, wanted): (Vec<f32>, Vec<f64>) = exact_gelu(12).unzip();
        let Some(made) = each(&numbers, false) else { return };
        assert_eq!(made.len(), wanted.len());
        for ((x, made), wanted) in numbers.iter().zip(made).zip(wanted) {
            assert!((f64::from(made) - wanted).abs() < 1.5e-4, "{x}: {made}, not {wanted}");
        }
    }

    #[test]
    fn powers_are_those_of_two() {
        let numbers: Vec<f32> =
            (-125_999..=127_999).step_by(7).map(|thousandths| thousandths as f32 / 1000.0).collect();
        let Some(made) = each(&numbers, true) else { return };
        assert_eq!(made.len(), numbers.len());
        for (power, made) in numbers.iter().zip(made) {
            let wanted = f64::from(*power).exp2();
            assert!((f64::from(made) / wanted - 1.0).abs() < 8e-5, "{power}: {made}, not {wanted}");
        }
        let lowest = [-160.0, -1e30, f32::MIN, f32::NEG_INFINITY];
        assert_eq!(each(&lowest, true), Some(vec![0.0; lowest.len()]));
    }
}
