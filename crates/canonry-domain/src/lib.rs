#![doc = include_str!("../README.md")]

// `text_enum!` names this crate by its path, even inside the crate itself.
extern crate self as canonry_domain;

#[doc(hidden)]
pub use serde;

mod close;
mod duplicates;
mod intent;
mod items;
mod judge;
mod learning;
mod text;
mod writes;

pub use close::*;
pub use duplicates::*;
pub use intent::*;
pub use items::*;
pub use judge::*;
pub use learning::*;
pub use text::*;
pub use writes::{WriteArea, WriteKey, WriteKind, WriteOrigin, WriteSource};

pub mod mention;
pub mod review;
