#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, unused_imports, reason = "buffers and layouts that only the kernels of that processor use")
)]

mod attention;
mod coded_rows;
mod kernels;
mod linear;
mod row_math;
mod rows;

#[cfg(target_arch = "x86_64")]
mod attention_amx;
#[cfg(target_arch = "x86_64")]
mod attention_avx512;
mod attention_portable;
#[cfg(target_arch = "x86_64")]
mod coding_avx512;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod lines;
#[cfg(target_arch = "x86_64")]
mod norm_avx512;
#[cfg(target_arch = "x86_64")]
mod panels;
#[cfg(target_arch = "x86_64")]
mod tiles;

pub use attention::{AttentionBuffers, Heads, attend};
pub use coded_rows::CodedRows;
pub use kernels::Kernels;
pub use linear::Linear;
pub use row_math::Epilogue;
pub use rows::{mean_direction, normalise, project};
