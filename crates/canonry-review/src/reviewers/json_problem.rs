//! Why a text is not the JSON that it should be.

use serde_json::error::Category;

/// The reason, without the values that were met: a file's content may be anybody's.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        Category::Eof => "it ends early",
        Category::Syntax => "it is not JSON",
        Category::Data => "it has another shape",
        Category::Io => "it could not be read",
    };
    format!("{kind}, line {}, column {}", error.line(), error.column())
}
