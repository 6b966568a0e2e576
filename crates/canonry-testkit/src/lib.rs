#![doc = include_str!("../README.md")]

#[cfg(feature = "database")]
pub mod database;
#[cfg(feature = "github")]
pub mod github;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "samples")]
pub mod samples;
