//! Rows of activations as bytes, in the layout the products read.

use rten_simd::SimdOp;

use crate::kernels::{KernelKind, Kernels};
use crate::linear::largest_code;
use crate::lines::{CacheLine, LINE, resize};
use crate::row_math::QuantiseRows;

/// Rows of a tile. Memory for codes is allocated in whole tiles.
pub(crate) const TILE_ROWS: usize = 16;

/// Rows whose values are coded as bytes. Each row has its own scale and zero point: value ≈ (code − zero) · scale.
/// This is a buffer: it keeps its memory when other rows are coded.
#[derive(Default)]
pub struct CodedRows {
    pub(crate) kernels: Kernels,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// The codes for the portable kernels, row after row.
    pub(crate) codes: Vec<u8>,
    /// The codes for all other kernels, `stride` lines per row.
    pub(crate) lines: Vec<CacheLine>,
    pub(crate) stride: usize,
    pub(crate) scales: Vec<f32>,
    pub(crate) zeros: Vec<i32>,
    /// The sums of the portable kernels' products, a buffer kept together with the rows.
    pub(crate) sums: Vec<i32>,
}

impl CodedRows {
    /// Codes the rows of `values`, each `width` long, for products by `kernels`. They replace the previous rows.
    ///
    /// # Panics
    ///
    /// If `values` does not consist of whole rows.
    pub fn code(&mut self, kernels: Kernels, values: &[f32], width: usize) {
        assert!(width > 0 && values.len().is_multiple_of(width), "whole rows of {width}, not {}", values.len());
        self.kernels = kernels;
        self.rows = values.len() / width;
        self.width = width;
        self.scales.resize(self.rows, 0.0);
        self.zeros.resize(self.rows, 0);
        match kernels.kind() {
            KernelKind::Portable => self.code_portably(values, largest_code()),
            #[cfg(target_arch = "x86_64")]
            KernelKind::Amx | KernelKind::Avx512 => {
                self.stride = stride(width);
                resize(&mut self.lines, self.rows.next_multiple_of(TILE_ROWS) * self.stride);
                crate::coding_avx512::code(self, values);
            }
        }
    }

    pub(crate) fn code_portably(&mut self, values: &[f32], largest_code: u8) {
        self.codes.resize(values.len(), 0);
        QuantiseRows {
            values,
            width: self.width,
            largest_code,
            codes: &mut self.codes,
            scales: &mut self.scales,
            zeros: &mut self.zeros,
        }
        .dispatch();
    }
}

/// Lines from one row to the next. The number is odd: with an even one, the rows of a tile would share half of the L1
/// cache's sets or fewer.
fn stride(width: usize) -> usize {
    width.div_ceil(LINE) | 1
}
