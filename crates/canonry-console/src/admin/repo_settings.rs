//! A repository's settings as they were last read.

use canonry_config::{ParsedSettings, parse};
use canonry_store::{RepoId, StoreError};

use crate::console::Console;

/// The settings; the defaults if there are none.
pub(crate) async fn settings_of(console: &Console, repo: RepoId) -> Result<ParsedSettings, StoreError> {
    let stored = console.store.repos().settings(repo).await?;
    Ok(parse(stored.and_then(|stored| stored.text).as_deref().unwrap_or_default()))
}
