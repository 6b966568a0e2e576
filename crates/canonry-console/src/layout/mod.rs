//! What all pages share: frame, forms, paging, errors, wording.

pub(crate) mod assets;
pub(crate) mod badge;
pub(crate) mod errors;
pub(crate) mod filters;
pub(crate) mod form;
pub(crate) mod formatting;
pub(crate) mod headers;
pub(crate) mod htmx;
pub(crate) mod markdown;
pub(crate) mod marked_text;
pub(crate) mod page;
pub(crate) mod paging;
pub(crate) mod text_lines;
pub(crate) mod theme;
