//! The servers under load: started, measured while they run, and stopped.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::folder;
use super::service_load::{Door, SECRET};
use super::watched::{Used, peak_memory, processor_time, resident_memory};
use crate::process::{quietly, root};

/// A cold start on a loaded machine takes seconds.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Canonry gives running work 30 seconds to end.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// The token with which its API may be asked about every repository.
pub(crate) const ADMIN_TOKEN: &str = "the-token-of-the-benchmarks";

/// A running server; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    log: PathBuf,
    pub(crate) door: Door,
}

/// The app that Canonry is compared with, with its packages installed.
#[derive(Debug)]
pub(crate) struct Probot {
    folder: PathBuf,
    pub(crate) versions: String,
}

impl Probot {
    /// Installs what is not installed yet: the packages of the lock file, and nothing else.
    pub(crate) fn install() -> Result<Self> {
        let (source, folder) = (root().join("xtask/bench/probot"), folder()?.join("probot"));
        fs::create_dir_all(&folder)?;
        let lock = fs::read(source.join("package-lock.json"))?;
        let is_installed = fs::read(folder.join("installed")).is_ok_and(|installed| installed == lock);
        for file in ["package.json", "package-lock.json", "app.js", "count.js"] {
            fs::copy(source.join(file), folder.join(file)).with_context(|| file.to_owned())?;
        }
        if !is_installed {
            eprintln!("==> npm packages, into {}", folder.display());
            quietly(Command::new("npm").args(["ci", "--loglevel=error"]).current_dir(&folder))?;
            fs::write(folder.join("installed"), lock)?;
        }
        let node = quietly(Command::new("node").arg("--version"))?;
        let package: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("package.json"))?)?;
        let version = |name: &str| package["dependencies"][name].as_str().unwrap_or("?").to_owned();
        let versions = format!(
            "Probot {}, better-sqlite3 {}, pg {}, Node.js {}",
            version("probot"),
            version("better-sqlite3"),
            version("pg"),
            String::from_utf8_lossy(&node.stdout).trim()
        );
        Ok(Self { folder, versions })
    }

    /// Starts the app on a database; `one_statement` selects its fastest form on PostgreSQL.
    pub(crate) fn start(&self, database: &str, one_statement: bool, log: &Path) -> Result<Server> {
        let address = free_address()?;
        let mut command = Command::new("node");
        command.arg("app.js").current_dir(&self.folder).env("DATABASE", database).env("NODE_ENV", "production");
        command.env("HOST", "127.0.0.1").env("PORT", address.port().to_string());
        if one_statement {
            command.env("ONE_STATEMENT", "1");
        }
        command.env("APP_ID", "1").env("WEBHOOK_SECRET", SECRET);
        command.env("PRIVATE_KEY_PATH", root().join("crates/canonry-testkit/keys/test-app.pem"));
        Server::start(command, Door { address, path: "/api/github/webhooks", accepted: 200 }, log)
    }

    /// The number of deliveries and jobs in a database, whichever server wrote them.
    pub(crate) fn count(&self, database: &str) -> Result<(u64, u64)> {
        let output = quietly(Command::new("node").args(["count.js", database]).current_dir(&self.folder))?;
        let counted: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        Ok((counted["deliveries"].as_u64().context("deliveries")?, counted["jobs"].as_u64().context("jobs")?))
    }
}

/// Starts `canonry serve` with this many workers, without credentials for GitHub, so that it sends nothing.
pub(crate) fn canonry(binary: &Path, database: &str, workers: usize, log: &Path) -> Result<Server> {
    canonry_at(binary, database, workers, free_address()?, log)
}

/// The same at a given address.
pub(crate) fn canonry_at(
    binary: &Path,
    database: &str,
    workers: usize,
    address: SocketAddr,
    log: &Path,
) -> Result<Server> {
    let mut command = Command::new(binary);
    command.args(["serve", "--db", database, "--listen", &address.to_string(), "--workers", &workers.to_string()]);
    command.env("CANONRY_WEBHOOK_SECRET", SECRET).env("CANONRY_ADMIN_TOKEN", ADMIN_TOKEN);
    for variable in ["GITHUB_TOKEN", "CANONRY_APP_ID", "CANONRY_APP_PRIVATE_KEY"] {
        command.env_remove(variable);
    }
    Server::start(command, Door { address, path: "/webhooks/github", accepted: 202 }, log)
}

impl Server {
    /// Both servers write their default log to a file.
    fn start(mut command: Command, door: Door, log: &Path) -> Result<Self> {
        let file = File::create(log)?;
        let process = command.stdout(file.try_clone()?).stderr(file).spawn();
        let process = process.with_context(|| format!("{:?} could not be started", command.get_program()))?;
        let mut server = Self { process, log: log.to_owned(), door };
        let began = Instant::now();
        while TcpStream::connect(door.address).is_err() {
            if let Some(status) = server.process.try_wait()? {
                bail!("the server ended ({status}): {}", server.last_words());
            }
            ensure!(began.elapsed() < START_LIMIT, "the server does not listen: {}", server.last_words());
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Processor time and peak memory of the server and its child processes.
    pub(crate) fn used(&self) -> Used {
        let mut all = Used::default();
        for id in tree(self.process.id()) {
            let read = |file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
            if let Some(kib) = peak_memory(&read("status")) {
                all.peak_kib = Some(all.peak_kib.unwrap_or(0) + kib);
            }
            if let Some(seconds) = processor_time(&read("stat")) {
                all.cpu_seconds = Some(all.cpu_seconds.unwrap_or(0.0) + seconds);
            }
        }
        all
    }

    /// Sends SIGTERM, as a service manager does, and waits for the end.
    pub(crate) fn stop(mut self) -> Result<()> {
        kill(Pid::from_raw(i32::try_from(self.process.id())?), Signal::SIGTERM)?;
        let began = Instant::now();
        while self.process.try_wait()?.is_none() {
            ensure!(began.elapsed() < STOP_LIMIT, "the server does not stop: {}", self.last_words());
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The current memory of a process, in KiB.
pub(crate) fn resident_kib(id: u32) -> Option<u64> {
    resident_memory(&fs::read_to_string(format!("/proc/{id}/status")).ok()?)
}

fn tree(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (id, parent)));
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        next += 1;
    }
    found
}

pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::tree;

    #[test]
    fn a_process_is_found_with_its_children() {
        let mut child = Command::new("sleep").arg("10").spawn().expect("sleep");
        let found = tree(std::process::id());
        assert!(found.contains(&std::process::id()) && found.contains(&child.id()), "{found:?}");
        child.kill().expect("killed");
        child.wait().expect("gone");
    }
}
