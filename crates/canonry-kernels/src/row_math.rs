//! Loops over rows of activations, compiled for the widest vectors of the processor.
//!
//! Each operation is a plain loop inside a [`SimdOp`]: dispatching it selects a copy that was compiled for AVX-512,
//! AVX2 or NEON, which the compiler vectorises by itself.

use rten_simd::{Isa, SimdOp};

/// Independent sums or extremes per loop: one AVX-512 register of floats.
const LANES: usize = 16;
/// Adding this to a small float leaves its rounded integer in the lowest bits: 1.5 · 2²³.
const ROUNDING: f32 = 12_582_912.0;

/// Codes each row with its own scale and zero point: value ≈ (code − zero) · scale.
pub(crate) struct QuantiseRows<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) width: usize,
    pub(crate) largest_code: u8,
    pub(crate) codes: &'a mut [u8],
    pub(crate) scales: &'a mut [f32],
    pub(crate) zeros: &'a mut [i32],
}

impl SimdOp for QuantiseRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) {
        // One code stays unused: zero point and value are rounded separately, and both may be rounded up.
        let steps = f32::from(self.largest_code - 1);
        let rows = self.values.chunks_exact(self.width).zip(self.codes.chunks_exact_mut(self.width));
        for (((values, codes), scale), zero) in rows.zip(self.scales).zip(self.zeros) {
            let (least, most) = extremes(values);
            let range = most - least;
            let inverse = if range > 0.0 { steps / range } else { 0.0 };
            // This sum is rounded to an integer, because a float of this size has no fraction bits.
            let shift = ROUNDING - least * inverse;
            *scale = range / steps;
            *zero = (shift - ROUNDING) as i32;
            for (code, value) in codes.iter_mut().zip(values) {
                *code = (value * inverse + shift).to_bits() as u8;
            }
        }
    }
}

/// What is needed to convert the sums of a quantised product to floats.
pub(crate) struct Columns<'a> {
    pub(crate) scales: &'a [f32],
    pub(crate) biases: &'a [f32],
    /// The sum of the weight codes of each column, which is used to remove the zero points.
    pub(crate) code_sums: &'a [i32],
}

/// What happens to a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epilogue {
    Write,
    /// Write it after the activation function.
    Activate,
    Add,
}

/// Converts integer sums to the product, including its bias.
pub(crate) struct Dequantise<'a> {
    pub(crate) sums: &'a [i32],
    pub(crate) scales: &'a [f32],
    pub(crate) zeros: &'a [i32],
    pub(crate) columns: Columns<'a>,
    pub(crate) then: Epilogue,
    pub(crate) out: &'a mut [f32],
}

impl SimdOp for Dequantise<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) {
        match self.then {
            Epilogue::Write => self.each(|_, value| value),
            Epilogue::Activate => self.each(|_, value| gelu(value)),
            Epilogue::Add => self.each(|old, value| old + value),
        }
    }
}

impl Dequantise<'_> {
    #[inline(always)]
    fn each(self, new: impl Fn(f32, f32) -> f32) {
        let width = self.columns.scales.len();
        let rows = self.sums.chunks_exact(width).zip(self.out.chunks_exact_mut(width));
        for (((sums, out), &scale), &zero) in rows.zip(self.scales).zip(self.zeros) {
            let columns = self.columns.scales.iter().zip(self.columns.biases).zip(self.columns.code_sums);
            for ((out, &sum), ((&column, &bias), &code_sum)) in out.iter_mut().zip(sums).zip(columns) {
                // Wrapping only removes overflow checks from the loop: |sum| stays below 255 · 127 · 65,536.
                let sum = sum.wrapping_sub(zero.wrapping_mul(code_sum));
                *out = new(*out, sum as f32 * (scale * column) + bias);
            }
        }
    }
}

/// Beyond this value, the tail of the normal distribution is treated as constant.
const GELU_END: f32 = 4.4;
/// (Φ(x) − ½) / x as a polynomial in x², fitted for the smallest maximum error of x · Φ(x): 4.2e-5 up to |x| = 16,
/// and |x| · 2.6e-6 beyond. A row with a range of 2 is coded in steps of 7.9e-3. It costs half as much as the error
/// function.
const GELU: [f32; 9] = [
    0.398_761_87,
    -0.066_076_905,
    0.009_643_332,
    -0.001_055_085_9,
    8.430_877e-5,
    -4.726_402e-6,
    1.741_707_5e-7,
    -3.756_627_5e-9,
    3.572_626_2e-11,
];

/// x · Φ(x), the activation of BERT.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    let near = if x > GELU_END { GELU_END } else { x };
    let near = if near < -GELU_END { -GELU_END } else { near };
    let square = near * near;
    let mut sum = GELU[8];
    for factor in GELU[..8].iter().rev() {
        sum = sum * square + factor;
    }
    x * (0.5 + near * sum)
}

/// Replaces each row by exp(value − the row's largest) and returns the reciprocal of each row's sum. That is the
/// softmax without its factor, which is cheaper to apply later to the weighted results.
pub(crate) struct SoftmaxRows<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) width: usize,
    pub(crate) inverse_sums: &'a mut [f32],
}

impl SimdOp for SoftmaxRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) {
        for (row, inverse) in self.values.chunks_exact_mut(self.width).zip(self.inverse_sums) {
            let most = largest(row);
            for value in row.iter_mut() {
                *value = exp(*value - most);
            }
            *inverse = 1.0 / sum(row, |value| value);
        }
    }
}

/// 2 to a power between −½ and ½ as a polynomial; its error is below 4e-6.
const POWERS_OF_TWO: [f32; 6] = [1.0, std::f32::consts::LN_2, 0.240_226_5, 0.055_504_1, 0.009_618_1, 0.001_339_9];

/// e to a power that is not positive: 2 to the whole part by its bits, 2 to the rest by a polynomial.
#[inline(always)]
fn exp(power: f32) -> f32 {
    let twos = power * std::f32::consts::LOG2_E;
    let twos = if twos < -126.0 { -126.0 } else { twos };
    let shifted = twos + ROUNDING;
    let rest = twos - (shifted - ROUNDING);
    let whole = shifted.to_bits().wrapping_sub(ROUNDING.to_bits());
    let factor = f32::from_bits(whole.wrapping_add(127) << 23);
    let mut sum = POWERS_OF_TWO[5];
    for term in POWERS_OF_TWO[..5].iter().rev() {
        sum = sum * rest + term;
    }
    factor * sum
}

/// Normalises each row to mean 0 and variance 1, then applies the learned gain and bias.
pub(crate) struct NormaliseRows<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) gains: &'a [f32],
    pub(crate) biases: &'a [f32],
    pub(crate) epsilon: f32,
}

impl SimdOp for NormaliseRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) {
        let width = self.gains.len();
        for row in self.values.chunks_exact_mut(width) {
            let mean = sum(row, |value| value) / width as f32;
            let variance = sum(row, |value| (value - mean) * (value - mean)) / width as f32;
            let scale = 1.0 / (variance + self.epsilon).sqrt();
            for ((value, gain), bias) in row.iter_mut().zip(self.gains).zip(self.biases) {
                *value = (*value - mean) * scale * gain + bias;
            }
        }
    }
}

/// The mean of all rows, normalised to length 1.
pub(crate) struct MeanDirection<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) width: usize,
}

impl SimdOp for MeanDirection<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) -> Vec<f32> {
        let mut total = vec![0.0; self.width];
        for row in self.values.chunks_exact(self.width) {
            total.iter_mut().zip(row).for_each(|(total, value)| *total += value);
        }
        let length = sum(&total, |value| value * value).sqrt();
        if length > 0.0 {
            total.iter_mut().for_each(|value| *value /= length);
        }
        total
    }
}

#[inline(always)]
fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += term(chunk[lane]);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|value| term(*value)).sum::<f32>()
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut most = [f32::MIN; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] = if chunk[lane] > most[lane] { chunk[lane] } else { most[lane] };
        }
    }
    most.iter().chain(rest).copied().fold(f32::MIN, f32::max)
}

/// The smallest and the largest value, including zero, so that zero always has an exact code.
#[inline(always)]
fn extremes(values: &[f32]) -> (f32, f32) {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (mut least, mut most) = ([0.0f32; LANES], [0.0f32; LANES]);
    for chunk in chunks {
        for lane in 0..LANES {
            let value = chunk[lane];
            least[lane] = if value < least[lane] { value } else { least[lane] };
            most[lane] = if value > most[lane] { value } else { most[lane] };
        }
    }
    let least = least.iter().chain(rest).copied().fold(0.0, f32::min);
    (least, most.iter().chain(rest).copied().fold(0.0, f32::max))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Columns, Dequantise, Epilogue, MeanDirection, NormaliseRows, QuantiseRows, SoftmaxRows, exp, gelu};
    use proptest::prelude::{Strategy, prop, prop_assert, proptest};
    use rten_simd::SimdOp;

    fn rows() -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-50.0f32..50.0, 19 * 3)
    }

    /// x and x · Φ(x) from −`end` to `end`. All terms of the series of Φ are positive, so nothing cancels out.
    pub(crate) fn exact_gelu(end: i16) -> impl Iterator<Item = (f32, f64)> {
        (-1000 * i32::from(end)..=1000 * i32::from(end)).map(|thousandths| {
            let x = thousandths as f32 / 1000.0;
            let far = f64::from(x).abs();
            let (mut sum, mut term, mut odd) = (0.0, far, 1.0);
            while term > sum * 1e-17 {
                sum += term;
                odd += 2.0;
                term *= far * far / odd;
            }
            let above_half = sum * (-far * far / 2.0).exp() / std::f64::consts::TAU.sqrt();
            (x, f64::from(x) * (0.5 + above_half.copysign(f64::from(x))))
        })
    }

    #[test]
    fn the_exact_activation_is_that_of_the_tables() {
        let exact: Vec<f64> = exact_gelu(3).step_by(1000).map(|(_, value)| value).collect();
        let tables = [-0.004_049_7, -0.045_500_3, -0.158_655_3, 0.0, 0.841_344_7, 1.954_499_7, 2.995_950_3];
        assert!(exact.iter().zip(tables).all(|(exact, table)| (exact - table).abs() < 1e-7), "{exact:?}");
    }

    proptest! {
        #[test]
        fn codes_stand_for_their_values(values in rows(), largest in prop::sample::select(vec![127u8, 255])) {
            let mut codes = vec![0; values.len()];
            let (mut scales, mut zeros) = ([0.0; 3], [0; 3]);
            QuantiseRows { values: &values, width: 19, largest_code: largest, codes: &mut codes, scales: &mut scales,
                zeros: &mut zeros }.dispatch();
            for (at, value) in values.iter().enumerate() {
                let (scale, zero) = (scales[at / 19], zeros[at / 19]);
                prop_assert!(codes[at] <= largest);
                let back = (i32::from(codes[at]) - zero) as f32 * scale;
                prop_assert!((back - value).abs() <= scale * 1.01, "{value} came back as {back}, step {scale}");
            }
        }

        #[test]
        fn normalised_rows_have_mean_zero_and_variance_one(mut values in rows()) {
            NormaliseRows { values: &mut values, gains: &[1.0; 19], biases: &[0.0; 19], epsilon: 1e-12 }.dispatch();
            for row in values.chunks(19) {
                let mean = row.iter().sum::<f32>() / 19.0;
                let variance = row.iter().map(|value| value * value).sum::<f32>() / 19.0;
                prop_assert!(mean.abs() < 1e-3 && (variance - 1.0).abs() < 1e-2);
            }
        }
    }

    #[test]
    fn equal_values_are_coded_exactly() {
        let mut codes = [9; 4];
        let (mut scales, mut zeros) = ([9.0; 2], [9; 2]);
        let values = [0.0, 0.0, 3.0, 3.0];
        QuantiseRows {
            values: &values,
            width: 2,
            largest_code: 255,
            codes: &mut codes,
            scales: &mut scales,
            zeros: &mut zeros,
        }
        .dispatch();
        let back: Vec<f32> = (0..4).map(|at| (i32::from(codes[at]) - zeros[at / 2]) as f32 * scales[at / 2]).collect();
        assert_eq!(back, values);
    }

    #[test]
    fn sums_become_numbers_again() {
        let columns = || Columns { scales: &[0.5, 2.0], biases: &[1.0, -1.0], code_sums: &[3, 4] };
        let mut out = [10.0, 10.0];
        Dequantise {
            sums: &[8, 9],
            scales: &[2.0],
            zeros: &[2],
            columns: columns(),
            then: Epilogue::Write,
            out: &mut out,
        }
        .dispatch();
        assert_eq!(out, [3.0, 3.0]);
        Dequantise {
            sums: &[8, 9],
            scales: &[2.0],
            zeros: &[2],
            columns: columns(),
            then: Epilogue::Add,
            out: &mut out,
        }
        .dispatch();
        assert_eq!(out, [6.0, 6.0]);
    }

    #[test]
    fn the_activation_is_the_one_of_the_model() {
        for (x, wanted) in exact_gelu(16) {
            assert!((f64::from(gelu(x)) - wanted).abs() < 4.2e-5, "{x}: {}, not {wanted}", gelu(x));
        }
    }

    proptest! {
        #[test]
        fn powers_are_those_of_e(power in -80.0f32..=0.0) {
            prop_assert!((exp(power) / power.exp() - 1.0).abs() < 1e-5);
        }

        #[test]
        fn softmax_rows_sum_to_one(mut values in rows()) {
            let mut inverse_sums = [0.0; 3];
            let before = values.clone();
            SoftmaxRows { values: &mut values, width: 19, inverse_sums: &mut inverse_sums }.dispatch();
            for ((row, old), inverse) in values.chunks(19).zip(before.chunks(19)).zip(inverse_sums) {
                let total: f64 = old.iter().map(|value| f64::from(*value).exp()).sum();
                for (value, old) in row.iter().zip(old) {
                    prop_assert!((f64::from(value * inverse) - f64::from(*old).exp() / total).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn the_mean_direction_has_length_one_or_none() {
        assert_eq!(MeanDirection { values: &[6.0, 0.0, 0.0, 8.0], width: 2 }.dispatch(), [0.6, 0.8]);
        assert_eq!(MeanDirection { values: &[1.0, 1.0, -1.0, -1.0], width: 2 }.dispatch(), [0.0, 0.0]);
    }
}
