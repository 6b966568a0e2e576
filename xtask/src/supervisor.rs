//! The process that owns one PostgreSQL server and stops it when its stdin ends.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::postgres::Durability;
use crate::process::quietly;
use crate::tools;

/// PostgreSQL refuses to run as root; this is `nobody` on the systems that we know.
const UNPRIVILEGED_USER: u32 = 65534;

/// A cold, loaded machine with two cores needs about ten seconds.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Another program may take the free port before the server does; five times in a row is a fault.
const START_ATTEMPTS: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct ServerArguments {
    /// The folder with PostgreSQL's bin, lib and share.
    #[arg(long)]
    installation: PathBuf,
    #[arg(long)]
    durability: Durability,
}

/// Starts a server, prints its URL, and stops it when stdin ends.
pub(crate) fn supervise(arguments: &ServerArguments) -> Result<()> {
    let user = match tools::effective_user()? {
        0 => Some(UNPRIVILEGED_USER),
        _ => None,
    };
    let home = ServerHome::create(&tools::folder()?.join("servers"), user)?;
    initialise(arguments, &home, user)?;
    let (server, port) = start(arguments, &home, user)?;
    println!("postgres://postgres@127.0.0.1:{port}/postgres");
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    drop(server);
    Ok(())
}

/// The folder of one server's data and log, locked as long as its supervisor lives.
#[derive(Debug)]
struct ServerHome {
    folder: TempDir,
    _lock: File,
}

impl ServerHome {
    fn create(servers: &Path, user: Option<u32>) -> Result<Self> {
        if !servers.is_dir() {
            tools::create_folder(servers)?;
        }
        // Between creating a folder and locking it, it looks abandoned to others.
        let others = File::create(servers.join(".lock")).with_context(|| tools::not_writable(servers))?;
        others.lock()?;
        remove_abandoned(servers)?;
        let folder = tempfile::Builder::new().prefix("server-").tempdir_in(servers)?;
        let lock = File::open(folder.path())?;
        lock.lock()?;
        if let Some(user) = user {
            chown(folder.path(), Some(user), Some(user))?;
        }
        Ok(Self { folder, _lock: lock })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

/// Removes the folders of supervisors that were killed. A server that still runs in one of them
/// notices within a minute that its lock file is gone, and stops by itself.
fn remove_abandoned(servers: &Path) -> Result<()> {
    for entry in fs::read_dir(servers)? {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn initialise(arguments: &ServerArguments, home: &ServerHome, user: Option<u32>) -> Result<()> {
    let mut initdb = program(arguments, "initdb", home, user);
    initdb
        .arg("--pgdata")
        .arg(home.data())
        .args(["--username", "postgres", "--auth", "trust", "--encoding", "UTF8"])
        // The only Unicode locale that needs nothing from the system.
        .args(["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"]);
    if arguments.durability == Durability::Off {
        initdb.arg("--no-sync");
    }
    quietly(&mut initdb).context("initdb")?;
    Ok(())
}

fn start(arguments: &ServerArguments, home: &ServerHome, user: Option<u32>) -> Result<(Server, u16)> {
    for _ in 0..START_ATTEMPTS {
        let port = free_port()?;
        let mut server = Server(
            program(arguments, "postgres", home, user)
                .arg("-D")
                .arg(home.data())
                .args(settings(port, arguments.durability))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(File::create(home.log())?)
                .spawn()
                .context("postgres")?,
        );
        if wait_until_ready(&mut server, &home.data())? {
            return Ok((server, port));
        }
        let log = fs::read_to_string(home.log()).unwrap_or_default();
        if !log.contains("Address already in use") {
            bail!("PostgreSQL stopped while it started:\n{log}");
        }
    }
    bail!("PostgreSQL found no free port in {START_ATTEMPTS} attempts");
}

/// A program of the installation, as the server's user, in the server's folder, with no variable
/// of ours: `PGPORT`, `PGDATA` or `LD_LIBRARY_PATH` would change what it does.
fn program(arguments: &ServerArguments, name: &str, home: &ServerHome, user: Option<u32>) -> Command {
    let mut command = Command::new(arguments.installation.join("bin").join(name));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").current_dir(home.folder.path());
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command
}

fn settings(port: u16, durability: Durability) -> Vec<String> {
    let mut settings = vec![
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        "max_connections=400".to_owned(),
    ];
    if durability == Durability::Off {
        settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"].map(String::from));
    }
    settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// True when the server accepts connections, false when it ended instead.
fn wait_until_ready(server: &mut Server, data: &Path) -> Result<bool> {
    let began = Instant::now();
    while began.elapsed() < START_LIMIT {
        if server.0.try_wait()?.is_some() {
            return Ok(false);
        }
        if fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|status| is_ready(&status)) {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(20));
    }
    bail!("PostgreSQL did not answer within {} s", START_LIMIT.as_secs());
}

/// The eighth line of `postmaster.pid` is the server's own word on its state.
fn is_ready(postmaster: &str) -> bool {
    postmaster.lines().nth(7).is_some_and(|line| line.trim() == "ready")
}

/// A server process, stopped at once when dropped: its data is thrown away with it.
#[derive(Debug)]
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(process) = i32::try_from(self.0.id())
            && matches!(self.0.try_wait(), Ok(None))
        {
            let _ = kill(Pid::from_raw(process), Signal::SIGQUIT);
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Durability, ServerHome, is_ready, remove_abandoned, settings};

    #[test]
    fn a_server_is_ready_when_it_says_so() {
        let starting = "12\n/data\n1700000000\n5432\n\n127.0.0.1\n  1 2\nstarting\n";
        assert!(!is_ready(starting));
        assert!(is_ready(&starting.replace("starting", "ready   ")));
        assert!(!is_ready("12\n/data\n"));
    }

    #[test]
    fn only_tests_give_durability_up() {
        let off = settings(1, Durability::Off);
        let full = settings(1, Durability::Full);
        assert!(off.iter().any(|setting| setting == "fsync=off"));
        assert!(!full.iter().any(|setting| setting.contains("fsync")));
        assert!(full.iter().any(|setting| setting == "port=1"));
    }

    #[test]
    fn a_living_servers_folder_stays_and_an_abandoned_one_goes() {
        let servers = tempfile::tempdir().expect("a folder");
        let abandoned = servers.path().join("server-abandoned");
        fs::create_dir_all(abandoned.join("data")).expect("a folder");
        let living = ServerHome::create(servers.path(), None).expect("a home");
        assert!(!abandoned.exists());
        let folder = living.folder.path().to_owned();
        remove_abandoned(servers.path()).expect("the folder is ours");
        assert!(folder.is_dir());
        drop(living);
        assert!(!folder.exists());
    }
}
