//! Packed weights of a linear layer and their product with coded rows, for AMX and AVX-512 VNNI.
//!
//! Both read the weights in one layout: tiles of sixteen columns, in which a line contains four inputs of each
//! column. A block of 32 rows and 32 columns is multiplied as a whole, and its sums are converted while they are in
//! the L1 cache. 32 rows go through all columns before the next 32: the product of few rows stays in a near cache,
//! and weights come from the L2 cache.
#![expect(unsafe_code, reason = "what is compiled for AVX-512 may be called only where it is known to be there")]

use std::arch::x86_64::{
    __m512, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_mul_ps,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512,
};

use crate::coded_rows::{CodedRows, TILE_ROWS};
use crate::kernels::KernelKind;
use crate::lanes::{LANES, gelu, load, load_line, load_some, store, store_line, store_some};
use crate::lines::{CacheLine, EMPTY, LINE};
use crate::row_math::Epilogue;
use crate::tiles::{TILE, Tiles};

/// Rows and columns of a block.
pub(crate) const BLOCK: usize = 32;
/// Rows whose sums VNNI keeps in registers: with two vectors of columns that is half of the registers, and enough to
/// hide the latency of a product.
const VNNI_ROWS: usize = 8;

/// Packed weights, with the scales and biases of their columns. Columns are filled up to whole blocks with zeros.
pub(crate) struct Panels {
    lines: Vec<CacheLine>,
    panel: usize,
    outputs: usize,
    scales: Vec<f32>,
    biases: Vec<f32>,
    /// The sum of the weight codes of each column, which is used to remove the zero points.
    code_sums: Vec<f32>,
}

struct PanelSums([CacheLine; 2 * BLOCK]);

impl Panels {
    pub(crate) fn pack(codes: &[i8], inputs: usize, mut scales: Vec<f32>, mut biases: Vec<f32>) -> Self {
        let outputs = scales.len();
        let columns = outputs.next_multiple_of(BLOCK);
        let panel = inputs.div_ceil(LINE) * TILE;
        let mut lines = vec![EMPTY; columns / TILE * panel];
        let mut code_sums = vec![0.0; columns];
        for (column, codes) in codes.chunks_exact(inputs).enumerate() {
            let place = column % LANES * 4;
            let panel = &mut lines[column / LANES * panel..][..panel];
            for (line, codes) in panel.iter_mut().zip(codes.chunks(4)) {
                line.0[place..place + 4].iter_mut().zip(codes).for_each(|(to, code)| *to = code.cast_unsigned());
            }
            code_sums[column] = codes.iter().map(|code| i32::from(*code)).sum::<i32>() as f32;
        }
        scales.resize(columns, 0.0);
        biases.resize(columns, 0.0);
        Self { lines, panel, outputs, scales, biases, code_sums }
    }

    /// Computes the product and applies `then`. The caller has checked the lengths.
    pub(crate) fn apply(&self, rows: &CodedRows, then: Epilogue, out: &mut [f32]) {
        assert!(rows.kernels.kind() != KernelKind::Portable);
        // SAFETY: kernels other than the portable ones exist only where these features were found.
        unsafe { self.apply_avx512(rows, then, out) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn apply_avx512(&self, rows: &CodedRows, then: Epilogue, out: &mut [f32]) {
        match then {
            Epilogue::Write => self.each_block(rows, out, |_, value| value),
            Epilogue::Activate => self.each_block(rows, out, |_, value| gelu(value)),
            Epilogue::Add => self.each_block(rows, out, |old, value| _mm512_add_ps(old, value)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn each_block(&self, rows: &CodedRows, out: &mut [f32], new: impl Fn(__m512, __m512) -> __m512) {
        let mut sums = PanelSums([EMPTY; 2 * BLOCK]);
        if rows.kernels.kind() == KernelKind::Amx {
            // SAFETY: kernels of this kind exist only where the system has permitted AMX. No other `Tiles` lives in
            // this thread: they are made here and in attention, and neither calls the other.
            let tiles = unsafe { Tiles::configure() };
            // The processor runs ahead from one block's products into the conversion of the previous block's sums, so
            // the tiles are stored after that. It was slower to spread the conversion over the steps of the product.
            let mut before = None;
            for (first_row, first_column) in self.blocks(rows.rows) {
                let tall = rows.rows - first_row > TILE_ROWS;
                let lines = &rows.lines[first_row * rows.stride..];
                let columns = self.columns(first_column);
                if tall {
                    tiles.multiply_square(lines, rows.stride, columns);
                } else {
                    tiles.multiply_wide(lines, rows.stride, columns);
                }
                if let Some(place) = before {
                    self.finish(&sums, rows, place, out, &new);
                }
                if tall {
                    tiles.store_square(&mut sums.0);
                } else {
                    tiles.store_wide(&mut sums.0, 2);
                }
                before = Some((first_row, first_column));
            }
            if let Some(place) = before {
                self.finish(&sums, rows, place, out, &new);
            }
        } else {
            for place in self.blocks(rows.rows) {
                self.multiply_vnni(rows, place, &mut sums);
                self.finish(&sums, rows, place, out, &new);
            }
        }
    }

    /// The first row and the first column of each block.
    fn blocks(&self, rows: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let columns = self.scales.len();
        (0..rows).step_by(BLOCK).flat_map(move |row| (0..columns).step_by(BLOCK).map(move |column| (row, column)))
    }

    fn columns(&self, first_column: usize) -> [&[CacheLine]; 2] {
        let (left, right) = self.lines[first_column / LANES * self.panel..][..2 * self.panel].split_at(self.panel);
        [left, right]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn multiply_vnni(&self, rows: &CodedRows, (first_row, first_column): (usize, usize), sums: &mut PanelSums) {
        let columns = self.columns(first_column);
        let stride = rows.stride;
        for row in (0..BLOCK.min(rows.rows - first_row)).step_by(VNNI_ROWS) {
            // Memory is allocated for whole tiles of rows, so the last group of rows may go beyond the existing rows.
            let lines = &rows.lines[(first_row + row) * stride..][..VNNI_ROWS * stride];
            let mut totals = [[_mm512_setzero_si512(); 2]; VNNI_ROWS];
            let steps = columns.map(|panel| panel.as_chunks::<TILE>().0);
            for (step, (left, right)) in steps[0].iter().zip(steps[1]).enumerate() {
                let lines: [&[[u8; 4]; TILE]; VNNI_ROWS] =
                    std::array::from_fn(|row| fours(&lines[row * stride + step]));
                for four in 0..TILE {
                    let columns = [load_line(&left[four]), load_line(&right[four])];
                    for (totals, line) in totals.iter_mut().zip(lines) {
                        let codes = _mm512_set1_epi32(i32::from_ne_bytes(line[four]));
                        totals[0] = _mm512_dpbusd_epi32(totals[0], codes, columns[0]);
                        totals[1] = _mm512_dpbusd_epi32(totals[1], codes, columns[1]);
                    }
                }
            }
            let (sums, _) = sums.0[2 * row..].as_chunks_mut::<2>();
            for (sums, totals) in sums.iter_mut().zip(totals) {
                store_line(&mut sums[0], totals[0]);
                store_line(&mut sums[1], totals[1]);
            }
        }
    }

    /// Converts the integer sums of a block to floats.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn finish(
        &self,
        sums: &PanelSums,
        rows: &CodedRows,
        (first_row, first_column): (usize, usize),
        out: &mut [f32],
        new: &impl Fn(__m512, __m512) -> __m512,
    ) {
        let (sums, _) = sums.0.as_chunks::<2>();
        let last_row = rows.rows.min(first_row + BLOCK);
        let out = &mut out[first_row * self.outputs..last_row * self.outputs];
        let of_columns = |values: &[f32]| {
            let (parts, _) = values[first_column..].as_chunks::<LANES>();
            [load(&parts[0]), load(&parts[1])]
        };
        let (scales, biases, code_sums) =
            (of_columns(&self.scales), of_columns(&self.biases), of_columns(&self.code_sums));
        let count = BLOCK.min(self.outputs - first_column);
        let of_rows = rows.scales[first_row..last_row].iter().zip(&rows.zeros[first_row..last_row]);
        for ((out, sums), (&scale, &zero)) in out.chunks_exact_mut(self.outputs).zip(sums).zip(of_rows) {
            let (scale, zero) = (_mm512_set1_ps(scale), _mm512_set1_ps(zero as f32));
            let number = |at: usize| {
                let sum = _mm512_fnmadd_ps(zero, code_sums[at], _mm512_cvtepi32_ps(load_line(&sums[at])));
                _mm512_fmadd_ps(_mm512_mul_ps(sum, scale), scales[at], biases[at])
            };
            let out = &mut out[first_column..first_column + count];
            if let Ok(out) = <&mut [f32; BLOCK]>::try_from(&mut *out) {
                let (parts, _) = out.as_chunks_mut::<LANES>();
                for (at, part) in parts.iter_mut().enumerate() {
                    let value = new(load(part), number(at));
                    store(part, value);
                }
            } else {
                for (at, part) in out.chunks_mut(LANES).enumerate() {
                    let value = new(load_some(part), number(at));
                    store_some(part, value);
                }
            }
        }
    }
}

/// A line as groups of four codes.
#[inline]
fn fours(line: &CacheLine) -> &[[u8; 4]; TILE] {
    line.0.as_chunks().0.first_chunk().expect("invariant: a line has sixteen groups")
}
