//! Describes why a text is not the expected JSON.

use serde_json::error::Category;

/// The reason, without any value from the text: a file's content may be private.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        Category::Eof => "it ends early",
        Category::Syntax => "it is not JSON",
        Category::Data => "it has another format",
        Category::Io => "it could not be read",
    };
    format!("{kind}, line {}, column {}", error.line(), error.column())
}
