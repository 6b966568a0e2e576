//! A repository's settings, as commands that plan and close need them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use canonry_config::{Parsed, RepoConfig, Section, config_hash, parse_bytes};
use canonry_domain::Probability;

use crate::exit::Refused;

/// The option that names a settings file.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SettingsOption {
    /// The repository's settings file, .canonry.yml [default: the defaults]
    #[arg(long = "config", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

impl SettingsOption {
    /// The settings of the file; without one, the defaults.
    pub(crate) fn read(&self) -> Result<RepoConfig> {
        self.file.as_deref().map_or_else(|| Ok(RepoConfig::default()), read)
    }
}

fn read(file: &Path) -> Result<RepoConfig> {
    let bytes = std::fs::read(file)
        .with_context(|| format!("the settings file {} cannot be read; check its name", file.display()))?;
    let parsed = parse_bytes(&bytes);
    refuse_what_fell_back(&parsed, &file.display().to_string())?;
    Ok(parsed.config)
}

/// Nothing may be closed by defaults that took the place of something unreadable: a protected label may be among it.
pub(crate) fn refuse_what_fell_back(parsed: &Parsed, file: &str) -> Result<()> {
    for section in [Section::Close, Section::Triage] {
        if parsed.fell_back(section) {
            let words = format!(
                "the section `{section}` of {file} has a mistake, and nothing is closed by guesses; \
                 find it with `canonry config check`",
                section = section.as_str()
            );
            bail!(Refused(words));
        }
    }
    Ok(())
}

/// The hash of the settings that judging goes by.
pub(crate) fn edge_settings(min_edge: Probability) -> String {
    let mut config = RepoConfig::default();
    config.close.min_edge = min_edge.get();
    config_hash(&config).to_string()
}
