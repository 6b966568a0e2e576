#![doc = include_str!("../README.md")]

#[cfg(feature = "browser")]
pub mod browser;
#[cfg(any(feature = "github", feature = "models"))]
mod connection;
#[cfg(feature = "database")]
pub mod database;
#[cfg(feature = "github")]
pub mod github;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "database")]
pub mod proxy;
pub mod public_text;
#[cfg(feature = "samples")]
pub mod samples;
pub mod secrets;
