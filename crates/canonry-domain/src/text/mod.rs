//! Rules about text alone: Markdown, secrets, boilerplate, language, text enums, counts.

pub(crate) mod answer_fence;
pub(crate) mod answer_fields;
pub(crate) mod boilerplate;
pub(crate) mod code_span;
pub(crate) mod counted;
pub(crate) mod english;
pub(crate) mod fences;
pub(crate) mod hex;
pub(crate) mod loopback_host;
pub mod markdown;
pub mod printable;
pub(crate) mod secrets;
pub(crate) mod template_text;
pub(crate) mod text_enum;
pub(crate) mod text_newtype;
pub(crate) mod untrusted_text;

pub use boilerplate::{Boilerplate, BoilerplateLearner, has_content};
pub use code_span::code_span;
pub use counted::{counted, thousands};
pub use english::likely_english;
pub use hex::hex_digits;
pub use loopback_host::is_loopback_host;
pub use secrets::{
    FoundSecret, SecretKind, has_valid_checksum, redact, redact_shown, scan_secrets, scan_shown_secrets,
};
pub use text_enum::UnknownText;
pub use untrusted_text::{Fence, is_hidden, visible, visible_text};
