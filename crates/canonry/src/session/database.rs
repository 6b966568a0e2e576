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
    /// The named database, or the default one. Touches nothing.
    pub(crate) fn choose(&self) -> Result<ChosenDatabase> {
        if let Some(url) = self.url.as_deref().filter(|url| !url.is_empty()) {
            let url = url.parse().map_err(|error: InvalidDatabaseUrl| WrongUsage(error.to_string()))?;
            return Ok(ChosenDatabase { url, data_folder: None });
        }
        let folder = data_folder().context("there is no home folder for the database; name a database with --db")?;
        Ok(ChosenDatabase { url: DatabaseUrl::Sqlite(folder.join("canonry.db")), data_folder: Some(folder) })
    }

    /// The folder for what a database's service leaves on this machine: beside a SQLite database, else the data folder,
    /// which is made.
    pub(crate) fn local_folder(&self) -> Result<PathBuf> {
        if let DatabaseUrl::Sqlite(file) = self.choose()?.url {
            return Ok(std::path::absolute(file)?.with_file_name(""));
        }
        let folder = data_folder()?;
        create_private_folder(&folder)
            .with_context(|| format!("the data folder {} cannot be created", folder.display()))?;
        Ok(folder)
    }

    /// Opens the database to write: creates what is not there, and brings the schema up to date.
    pub(crate) async fn open(&self, context: &Context) -> Result<Store> {
        self.open_with(OpenOptions::default(), context).await
    }

    /// The same, with other options than most commands need.
    pub(crate) async fn open_with(&self, options: OpenOptions, context: &Context) -> Result<Store> {
        let chosen = self.choose()?;
        chosen.create_data_folder()?;
        Ok(Store::open_with(&chosen.url, options, context.now).await?)
    }

    /// Opens a database that is there to write, and brings its schema up to date: for commands that
    /// change what is known, and must not leave a new database behind when nothing is.
    pub(crate) async fn open_known(&self, context: &Context) -> Result<Store> {
        let url = self.choose()?.url;
        if Store::schema_version(&url).await?.0 == 0 {
            return Err(OpenError::Absent { url: url.to_string() }.into());
        }
        Ok(Store::open(&url, context.now).await?)
    }

    /// Opens the database to read, without changing anything.
    pub(crate) async fn open_existing(&self) -> Result<Store> {
        Ok(Store::open_existing(&self.choose()?.url).await?)
    }
}

impl ChosenDatabase {
    /// Makes the folder of the default database. A folder that somebody named is theirs to make: a
    /// mistyped path must not grow into a tree of folders.
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

/// Makes a folder that nobody but its user can look into, and those above it that are missing.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
