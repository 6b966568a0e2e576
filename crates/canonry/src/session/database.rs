//! The database of a command, and how it is opened.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use canonry_store::{DatabaseUrl, InvalidDatabaseUrl, OpenError, OpenOptions, Store};
use etcetera::BaseStrategy as _;

use crate::output::exit::WrongUsage;
use crate::session::context::Context;

/// The option that names the database.
#[derive(Debug, clap::Args)]
pub(crate) struct DatabaseOption {
    /// The database: sqlite:PATH or postgres://USER@HOST/NAME [default: sqlite:canonry.db in the data folder]
    #[arg(long = "db", value_name = "URL", env = "CANONRY_DATABASE_URL", hide_env_values = true)]
    url: Option<String>,
}

/// A database, and whether anybody named it.
#[derive(Debug)]
pub(crate) struct ChosenDatabase {
    pub(crate) url: DatabaseUrl,
    /// The folder of the default database; `None` when the database was named.
    pub(crate) data_folder: Option<PathBuf>,
}

impl DatabaseOption {
    /// Returns the named database, or the default one. Opens and creates nothing.
    pub(crate) fn choose(&self) -> Result<ChosenDatabase> {
        if let Some(url) = self.url.as_deref().filter(|url| !url.is_empty()) {
            let url = url.parse().map_err(|error: InvalidDatabaseUrl| WrongUsage(error.to_string()))?;
            return Ok(ChosenDatabase { url, data_folder: None });
        }
        let folder = data_folder().context("there is no home folder for the database; name a database with --db")?;
        Ok(ChosenDatabase { url: DatabaseUrl::Sqlite(folder.join("canonry.db")), data_folder: Some(folder) })
    }

    /// Returns the folder for files that the service keeps on this machine: the folder of a SQLite database, otherwise
    /// the data folder, which is created if it is missing.
    pub(crate) fn local_folder(&self) -> Result<PathBuf> {
        if let DatabaseUrl::Sqlite(file) = self.choose()?.url {
            return Ok(std::path::absolute(file)?.with_file_name(""));
        }
        let folder = data_folder()?;
        create_private_folder(&folder)
            .with_context(|| format!("the data folder {} cannot be created", folder.display()))?;
        Ok(folder)
    }

    /// Opens the database for writing, creates it if it is missing, and migrates its schema.
    pub(crate) async fn open(&self, context: &Context) -> Result<Store> {
        self.open_with(OpenOptions::default(), context).await
    }

    /// Opens the database like `open`, with other options than most commands need.
    pub(crate) async fn open_with(&self, options: OpenOptions, context: &Context) -> Result<Store> {
        let chosen = self.choose()?;
        chosen.create_data_folder()?;
        Ok(Store::open_with(&chosen.url, options, context.now).await?)
    }

    /// Opens an existing database for writing and migrates its schema. For commands that change stored data and must
    /// not create a database if there is none.
    pub(crate) async fn open_known(&self, context: &Context) -> Result<Store> {
        let url = self.choose()?.url;
        if Store::schema_version(&url).await?.0 == 0 {
            return Err(OpenError::Absent { url: url.to_string() }.into());
        }
        Ok(Store::open(&url, context.now).await?)
    }

    /// Opens the database for reading, without changing anything.
    pub(crate) async fn open_existing(&self) -> Result<Store> {
        Ok(Store::open_existing(&self.choose()?.url).await?)
    }
}

impl ChosenDatabase {
    /// Creates the folder of the default database. The folder of a named database is not created: a mistyped path must
    /// not create a tree of folders.
    pub(crate) fn create_data_folder(&self) -> Result<()> {
        let Some(folder) = &self.data_folder else {
            return Ok(());
        };
        create_private_folder(folder).with_context(|| {
            format!("the data folder {} cannot be created; name a database with --db", folder.display())
        })
    }
}

fn data_folder() -> Result<PathBuf, etcetera::HomeDirError> {
    Ok(etcetera::choose_base_strategy()?.data_dir().join("canonry"))
}

/// Creates a folder that only its user can read, and its missing parent folders.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
