//! Finds credentials in text: vendors' formats, private keys, and what is assigned to a telling name.

mod assigned_values;
pub(crate) mod scan;
pub(crate) mod shown_secrets;
mod token_checksums;
mod vendor_tokens;

pub use scan::{FoundSecret, SecretKind, redact, scan_secrets};
pub use shown_secrets::{redact_shown, scan_shown_secrets};
pub use token_checksums::has_valid_checksum;
