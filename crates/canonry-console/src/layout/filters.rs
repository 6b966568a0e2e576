//! Filters of templates for texts of strangers; escaping comes after them.

#![expect(unreachable_pub, reason = "askama's attribute makes a public type of each filter")]

use canonry_domain::printable::{block, one_line};

/// A text with its own lines; marks that hide or turn text around are shown as what they are.
#[askama::filter_fn]
pub(crate) fn printable(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(block(text))
}

/// A text on one line, the same way.
#[askama::filter_fn]
pub(crate) fn line(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(one_line(text))
}
