//! A repository's settings, as commands that plan and close need them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use canonry_config::{MAX_FILE_BYTES, ParsedSettings, RepoConfig, SETTINGS_FILE, config_hash, parse_bytes};
use canonry_domain::Probability;
use canonry_store::Repo;

use crate::output::exit::Refused;
use crate::session::github::{GithubOption, has_credentials};

/// The option that names a settings file.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SettingsOption {
    /// The repository's settings file [default: .canonry.yml of its default branch, where GitHub can be asked]
    #[arg(long = "config", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

impl SettingsOption {
    /// Returns the settings for a plan: from the named file, or from the repository. If GitHub cannot be asked, returns
    /// the defaults; `apply` asks again, and refuses without an answer.
    pub(crate) async fn for_plan(&self, github: &GithubOption, repo: &Repo) -> Result<RepoConfig> {
        if let Some(file) = &self.file {
            return read(file);
        }
        if !has_credentials() {
            return Ok(RepoConfig::default());
        }
        let answer = github.impatient_client()?.default_branch_file(&repo.name, SETTINGS_FILE, MAX_FILE_BYTES).await;
        match answer {
            Ok(Some(file)) => {
                let parsed = parse_bytes(file.text.as_bytes());
                refuse_what_fell_back(&parsed, SETTINGS_FILE)?;
                Ok(parsed.config)
            }
            Ok(None) => Ok(RepoConfig::default()),
            Err(error) => {
                tracing::warn!(%error, "the repository's {SETTINGS_FILE} cannot be read; planning with the default settings");
                Ok(RepoConfig::default())
            }
        }
    }
}

fn read(file: &Path) -> Result<RepoConfig> {
    let bytes = std::fs::read(file)
        .with_context(|| format!("the settings file {} cannot be read; check the name", file.display()))?;
    let parsed = parse_bytes(&bytes);
    refuse_what_fell_back(&parsed, &file.display().to_string())?;
    Ok(parsed.config)
}

/// Refuses to close if a mistake in the file reset a section to its defaults: the unreadable section may contain a
/// protected label.
pub(crate) fn refuse_what_fell_back(parsed: &ParsedSettings, file: &str) -> Result<()> {
    let Some(section) = parsed.unsafe_to_close_by() else { return Ok(()) };
    bail!(Refused(format!(
        "the section `{section}` of {file} has a mistake, so nothing is closed; find it with `canonry config check`"
    )))
}

/// Returns the hash of the settings that affect judging.
pub(crate) fn edge_settings(min_edge: Probability) -> String {
    let mut config = RepoConfig::default();
    config.close.min_edge = min_edge.get();
    config_hash(&config).to_string()
}
