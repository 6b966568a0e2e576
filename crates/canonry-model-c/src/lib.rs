#![doc = include_str!("../README.md")]

/// A constant and not a static: a program that only joins the parts while it is compiled does not contain this one.
pub const PART: &[u8] = include_bytes!("../part-of-encoder.safetensors");
