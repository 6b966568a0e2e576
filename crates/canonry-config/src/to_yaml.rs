//! Writes settings as a settings file.

use crate::RepoConfig;

/// Returns the settings as a file that [`parse`](crate::parse) reads back to the same settings.
pub fn to_yaml(config: &RepoConfig) -> String {
    let options = serde_saphyr::ser_options! {
        compact_list_indent: false,
        // Folded lines would be read back with different spaces.
        prefer_block_scalars: false,
    };
    serde_saphyr::to_string_with_options(config, options).expect("invariant: settings are plain data")
}
