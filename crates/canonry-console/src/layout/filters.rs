//! Template filters for texts of strangers; they run before escaping.

#![expect(unreachable_pub, reason = "askama's attribute makes a public type of each filter")]

use canonry_domain::printable::{block, one_line};

/// A text with its line breaks; characters that hide or reverse text are made visible.
#[askama::filter_fn]
pub(crate) fn printable(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(block(text))
}

/// A text on one line, with the same characters made visible.
#[askama::filter_fn]
pub(crate) fn line(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(one_line(text))
}
