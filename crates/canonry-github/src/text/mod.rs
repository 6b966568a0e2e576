//! Handles text in comments: signed markers and quotations.

pub(crate) mod marker;
pub(crate) mod quote;

pub use marker::{InvalidMarker, Marker, MarkerSigner};
pub use quote::{quote_block, quote_line};
