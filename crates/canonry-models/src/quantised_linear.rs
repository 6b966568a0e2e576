//! A linear layer with int8 weights, packed once for the processor at hand.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;

use crate::model_file::{ModelFile, ModelFileError};
use crate::row_math::{Columns, Dequantise, QuantiseRows, Then};

/// Multiplies bytes by signed bytes: AVX-512 VNNI, AVX2, NEON dot products, or plain code.
pub(crate) type ByteProduct = GemmExecutor<u8, i8, i32>;

/// Weights, and what is needed to read their products.
pub(crate) struct QuantisedLinear {
    weights: PackedBMatrix<i8>,
    inputs: usize,
    scales: Vec<f32>,
    biases: Vec<f32>,
    code_sums: Vec<i32>,
}

/// Buffers of one worker, kept between calls: allocating them anew costs more than the smallest products.
#[derive(Default)]
pub(crate) struct LinearBuffers {
    codes: Vec<u8>,
    scales: Vec<f32>,
    zeros: Vec<i32>,
    sums: Vec<i32>,
}

impl QuantisedLinear {
    pub(crate) fn read(
        product: &ByteProduct,
        file: &ModelFile,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, ModelFileError> {
        let codes = file.codes(&format!("{name}.weight"), &[outputs, inputs])?;
        let code_sums = codes.chunks_exact(inputs).map(|row| row.iter().map(|code| i32::from(*code)).sum()).collect();
        let matrix = NdTensorView::from_data([outputs, inputs], codes.as_slice());
        Ok(Self {
            weights: product.prepack_b(matrix.transposed()),
            inputs,
            scales: file.floats(&format!("{name}.scale"), &[outputs])?,
            biases: file.floats(&format!("{name}.bias"), &[outputs])?,
            code_sums,
        })
    }

    pub(crate) fn outputs(&self) -> usize {
        self.scales.len()
    }

    /// `x · weights + bias`, row by row, and what `then` makes of it.
    pub(crate) fn apply(
        &self,
        product: &ByteProduct,
        x: &[f32],
        buffers: &mut LinearBuffers,
        then: Then,
        out: &mut [f32],
    ) {
        let rows = x.len() / self.inputs;
        buffers.codes.resize(x.len(), 0);
        buffers.scales.resize(rows, 0.0);
        buffers.zeros.resize(rows, 0);
        buffers.sums.resize(out.len(), 0);
        // Without VNNI two products are added in 16 bits: 127 · 127 · 2 just fits, 255 · 127 · 2 does not.
        let largest_code = if product.may_saturate() { 127 } else { 255 };
        QuantiseRows {
            values: x,
            width: self.inputs,
            largest_code,
            codes: &mut buffers.codes,
            scales: &mut buffers.scales,
            zeros: &mut buffers.zeros,
        }
        .dispatch();
        let codes = NdTensorView::from_data([rows, self.inputs], buffers.codes.as_slice());
        product
            .gemm(
                &mut buffers.sums,
                GemmInputA::Unpacked(codes),
                GemmInputB::Packed(&self.weights),
                GemmOptions::default(),
            )
            .expect("invariant: the shapes were checked when the model was read");
        Dequantise {
            sums: &buffers.sums,
            scales: &buffers.scales,
            zeros: &buffers.zeros,
            columns: Columns { scales: &self.scales, biases: &self.biases, code_sums: &self.code_sums },
            then,
            out,
        }
        .dispatch();
    }
}
