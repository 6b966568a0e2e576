//! One process of the service: started, queried, killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::chaos::child::{ANCHOR, API, DATABASE, LISTENING};

/// A slow machine may take a while to start a process.
const START: Duration = Duration::from_secs(60);

/// The parameters of every process of one test.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) database: String,
    pub(crate) api: String,
    pub(crate) anchor: String,
    pub(crate) logs: PathBuf,
}

pub(crate) struct Replica {
    child: Child,
    pub(crate) url: String,
}

impl Replica {
    /// Starts a process; returns when it listens.
    pub(crate) async fn start(told: &Told, name: usize) -> Self {
        let log = log_file(&told.logs.join(format!("replica-{name}.log")));
        // A write beyond the limit of `limit_files` must fail, as on a full disk, and not kill the process.
        let mut child = Command::new("sh")
            .args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "chaos::child::serves", "--ignored", "--nocapture", "--test-threads", "1"])
            .env(DATABASE, &told.database)
            .env(API, &told.api)
            .env(ANCHOR, &told.anchor)
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log))
            .spawn()
            .expect("a child");
        let mut printed = BufReader::new(child.stdout.take().expect("a pipe"));
        let reading = tokio::task::spawn_blocking(move || {
            let mut all = String::new();
            loop {
                let start = all.len();
                if printed.read_line(&mut all).expect("text") == 0 {
                    return Err(all);
                }
                if let Some((_, url)) = all[start..].split_once(LISTENING) {
                    let url = url.trim().to_owned();
                    // Keeps reading, so that the child can keep writing.
                    std::thread::spawn(move || printed.read_to_string(&mut String::new()));
                    return Ok(url);
                }
            }
        });
        let read = tokio::time::timeout(START, reading).await.expect("it starts in time").expect("reads");
        match read {
            Ok(url) => Self { child, url },
            Err(printed) => panic!("a process ended by itself: {printed}"),
        }
    }

    /// Limits the length of files that the process may write; `None` removes the limit.
    #[cfg(target_os = "linux")]
    pub(crate) fn limit_files(&self, length: Option<u64>) {
        let length = length.map_or_else(|| "unlimited".to_owned(), |length| length.to_string());
        let (pid, limit) = (self.child.id().to_string(), format!("--fsize={length}:"));
        let status = Command::new("prlimit").args(["--pid", &pid, &limit]).status().expect("prlimit is there");
        assert!(status.success(), "{status}");
    }

    /// Kills it; it must not have ended by itself before.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        let status = self.child.wait().expect("it has ended");
        assert_eq!(status.signal(), Some(9), "a process ended by itself: {status}");
    }
}

fn log_file(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("a log file")
}
