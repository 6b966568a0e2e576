//! Hashes the settings in force.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::RepoConfig;

/// SHA-256 of the settings, as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct ConfigHash(String);

impl ConfigHash {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConfigHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Hashes the settings in force, with defaults: two files with the same meaning have the same hash.
///
/// The hash covers JSON with sorted keys and no spaces, so the order of fields in the code may change.
pub fn config_hash(config: &RepoConfig) -> ConfigHash {
    let value = serde_json::to_value(config).expect("invariant: settings are plain data");
    let digest = Sha256::digest(sorted(value).to_string().as_bytes());
    ConfigHash(canonry_domain::hex_digits(digest))
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        scalar => scalar,
    }
}
