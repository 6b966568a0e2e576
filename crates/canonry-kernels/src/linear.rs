//! A linear layer with int8 weights, packed once for the current processor.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;

use crate::coded_rows::CodedRows;
use crate::kernels::{KernelKind, Kernels};
#[cfg(target_arch = "x86_64")]
use crate::panels::Panels;
use crate::row_math::{Columns, Dequantise, Epilogue};

/// Multiplies bytes by signed bytes: AVX-512, AVX2, NEON, or plain code.
type ByteProduct = GemmExecutor<u8, i8, i32>;

/// The largest code of an activation. Without VNNI, two products are added in 16 bits: 127 · −128 · 2 just fits, 255
/// · −128 · 2 does not.
pub(crate) fn largest_code() -> u8 {
    if ByteProduct::new().may_saturate() { 127 } else { 255 }
}

/// Packed weights, with the scales and biases of their outputs.
pub struct Linear {
    kernels: Kernels,
    inputs: usize,
    outputs: usize,
    weights: Weights,
}

enum Weights {
    #[cfg(target_arch = "x86_64")]
    Panels(Panels),
    Portable {
        packed: PackedBMatrix<i8>,
        scales: Vec<f32>,
        biases: Vec<f32>,
        code_sums: Vec<i32>,
    },
}

impl Linear {
    /// Sums of products have 32 bits: 255 · 128 · 65,536 fits.
    pub const MOST_INPUTS: usize = 65_536;

    /// Packs the weights: a row of `inputs` codes, a scale and a bias for each output.
    ///
    /// # Panics
    ///
    /// If the lengths do not match, there are no inputs or outputs, or there are more inputs than
    /// [`Self::MOST_INPUTS`].
    pub fn pack(kernels: Kernels, codes: &[i8], inputs: usize, scales: Vec<f32>, biases: Vec<f32>) -> Self {
        let outputs = scales.len();
        assert!(inputs > 0 && outputs > 0, "a layer has inputs and outputs");
        assert!(inputs <= Self::MOST_INPUTS, "{inputs} inputs are too many for sums of 32 bits");
        let size = inputs.checked_mul(outputs).expect("invariant: a layer's codes fit in memory");
        assert!(codes.len() == size && biases.len() == outputs, "codes, scales and biases of one layer");
        let weights = match kernels.kind() {
            #[cfg(target_arch = "x86_64")]
            KernelKind::Amx | KernelKind::Avx512 => Weights::Panels(Panels::pack(codes, inputs, scales, biases)),
            KernelKind::Portable => {
                let sum = |row: &[i8]| row.iter().map(|code| i32::from(*code)).sum();
                let matrix = NdTensorView::from_data([outputs, inputs], codes);
                Weights::Portable {
                    packed: ByteProduct::new().prepack_b(matrix.transposed()),
                    scales,
                    biases,
                    code_sums: codes.chunks_exact(inputs).map(sum).collect(),
                }
            }
        };
        Self { kernels, inputs, outputs, weights }
    }

    /// The length of the resulting rows.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Computes `rows · weights + bias`, row by row, and applies `then`. The rows do not change, but one of their
    /// buffers is used.
    ///
    /// # Panics
    ///
    /// If the rows have another length or were coded for other kernels, or the length of `out` is not that of the
    /// product.
    pub fn apply(&self, rows: &mut CodedRows, then: Epilogue, out: &mut [f32]) {
        assert!(rows.kernels == self.kernels && rows.width == self.inputs, "rows for this layer");
        assert_eq!(Some(out.len()), rows.rows.checked_mul(self.outputs), "room for the product");
        match &self.weights {
            #[cfg(target_arch = "x86_64")]
            Weights::Panels(panels) => panels.apply(rows, then, out),
            Weights::Portable { packed, scales, biases, code_sums } => {
                let CodedRows { codes, sums, .. } = rows;
                sums.resize(out.len(), 0);
                let codes = NdTensorView::from_data([rows.rows, self.inputs], codes.as_slice());
                ByteProduct::new()
                    .gemm(sums, GemmInputA::Unpacked(codes), GemmInputB::Packed(packed), GemmOptions::default())
                    .expect("invariant: the shapes were checked above");
                let columns = Columns { scales, biases, code_sums };
                Dequantise { sums, scales: &rows.scales, zeros: &rows.zeros, columns, then, out }.dispatch();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Linear, largest_code};
    use crate::coded_rows::CodedRows;
    use crate::kernels::Kernels;
    use crate::row_math::Epilogue;

    /// Simulates a processor without VNNI, whose product would saturate with larger codes.
    #[test]
    fn codes_of_seven_bits_give_the_product_too() {
        let (rows, inputs, outputs) = (37, 1536, 33);
        let number = |at: usize| (at * 7919 % 1009) as f32 / 500.0 - 1.0;
        let values: Vec<f32> = (0..rows * inputs).map(number).collect();
        let weights: Vec<i8> = (0..inputs * outputs).map(|at| (at * 31 % 256) as u8 as i8).collect();
        let kernels = Kernels::default();
        let linear = Linear::pack(kernels, &weights, inputs, vec![0.01; outputs], vec![0.5; outputs]);
        let mut coded = CodedRows::default();
        coded.code(kernels, &values, inputs);
        assert!(coded.codes.iter().all(|code| *code <= largest_code()));
        coded.code_portably(&values, 127);
        assert!(coded.codes.contains(&126) && coded.codes.iter().all(|code| *code <= 127));
        // Two products, added in 16 bits as the processor does, do not saturate.
        for (pair, weights) in coded.codes.as_chunks::<2>().0.iter().zip(weights.as_chunks::<2>().0.iter().cycle()) {
            let [first, second] = [0, 1].map(|at| i16::from(pair[at]) * i16::from(weights[at]));
            assert_eq!(i32::from(first.saturating_add(second)), i32::from(first) + i32::from(second));
        }
        let mut out = vec![0.0; rows * outputs];
        linear.apply(&mut coded, Epilogue::Write, &mut out);
        for (at, number) in out.iter().enumerate() {
            let (row, column) = (at / outputs, at % outputs);
            let codes = &coded.codes[row * inputs..][..inputs];
            let terms = codes.iter().zip(&weights[column * inputs..]);
            let sum: i32 = terms.map(|(code, weight)| (i32::from(*code) - coded.zeros[row]) * i32::from(*weight)).sum();
            let wanted = f64::from(sum) * f64::from(coded.scales[row]) * 0.01 + 0.5;
            assert!((f64::from(*number) - wanted).abs() <= wanted.abs() * 1e-5 + 1e-5, "{at}: {number}, not {wanted}");
        }
    }
}
