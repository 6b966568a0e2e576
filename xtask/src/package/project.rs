//! What every package says about Canonry, read from the manifest and the texts of the repository.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process::{cargo, quietly};

pub(crate) struct Project {
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) licence: String,
    pub(crate) repository: String,
    /// The page of a package in its registry.
    pub(crate) about: String,
    /// Names and texts.
    pub(crate) licences: Vec<(&'static str, String)>,
    /// All crates, for the bill of materials.
    pub(crate) metadata: Value,
}

impl Project {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let metadata = quietly(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
        let metadata: Value = serde_json::from_slice(&metadata.stdout).context("cargo metadata is not JSON")?;
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let canonry = packages.iter().find(|package| package["name"] == "canonry" && package["source"].is_null());
        let canonry = canonry.context("the workspace has no crate canonry")?;
        let word = |key: &str| -> Result<String> {
            Ok(canonry[key].as_str().with_context(|| format!("Cargo.toml of canonry has no {key}"))?.to_owned())
        };
        let text = |file: &str| fs::read_to_string(root.join(file)).with_context(|| file.to_owned());
        Ok(Self {
            version: word("version")?,
            description: word("description")?,
            licence: word("license")?,
            repository: word("repository")?,
            about: text("packages/about.md")?,
            licences: vec![
                ("LICENSE-APACHE", text("LICENSE-APACHE")?),
                ("LICENSE-MIT", text("LICENSE-MIT")?),
                ("NOTICE", text("crates/canonry-models/NOTICE")?),
            ],
            metadata,
        })
    }
}
