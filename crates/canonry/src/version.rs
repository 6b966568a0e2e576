//! `canonry --version`: what a bug report needs to know about the program.

use canonry_models::{CompiledInModel, LocalEmbedder};

/// The version that clap prints after the program's name, and below it one line each for commit, model, features and
/// target. `-V` prints the version alone.
pub(crate) fn long_version() -> String {
    let model = match LocalEmbedder::compiled_in() {
        Ok(CompiledInModel { model_id, dimension, kernels }) => {
            format!("{model_id}, {dimension} dimensions, {kernels} kernels on this processor")
        }
        Err(error) => format!("unusable: {error}"),
    };
    let commit = option_env!("CANONRY_BUILT_COMMIT")
        .unwrap_or("not recorded; a release build in a clone records it, or CANONRY_COMMIT at build time");
    let version = env!("CARGO_PKG_VERSION");
    let target = env!("CANONRY_TARGET");
    let features = FEATURES.join(", ");
    format!("{version}\ncommit: {commit}\nmodel: {model}\nfeatures: {features}\ntarget: {target}")
}

/// What is compiled in. Only confining the programs that read strangers' text depends on the system.
const FEATURES: &[&str] = &[
    "sqlite",
    "postgresql",
    "local embeddings",
    "service",
    "console",
    "mcp",
    "demo",
    #[cfg(target_os = "linux")]
    "confined programs",
];
