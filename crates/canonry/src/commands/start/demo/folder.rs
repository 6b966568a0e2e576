//! The demo's folder; unless it should be kept, it is removed, even if the demo fails.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::session::context::Context;

pub(super) struct DemoFolder {
    path: PathBuf,
    is_kept: bool,
}

impl DemoFolder {
    pub(super) fn create(keep: Option<PathBuf>, context: &Context) -> Result<Self> {
        let is_kept = keep.is_some();
        let path = keep.unwrap_or_else(|| std::env::temp_dir().join(format!("canonry-demo-{}", context.run_id)));
        // The folder must be new and its parent must exist: an existing folder would be overwritten.
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).with_context(|| {
            format!("the folder {} cannot be created; name a new folder with --keep", path.display())
        })?;
        Ok(Self { path, is_kept })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the database, if the folder is kept.
    pub(super) fn kept_database(&self) -> Option<PathBuf> {
        self.is_kept.then(|| self.path.join("canonry.db"))
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // A leftover in the temporary folder is no reason to fail.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
