//! Runs another program with limits on time and output.

use canonry_boxed::boxed;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::confined_program::spawn_confined;

/// How many bytes of a program's standard error are kept.
const SAID: u64 = 64 * 1024;

/// How long the output is read after the program ended: a process that it started may keep the pipe open for ever.
const LEFT_OPEN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct ProgramEnd {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    /// The beginning of its standard error.
    pub said: Vec<u8>,
}

impl ProgramEnd {
    /// The most informative line of its standard error, safe to show; empty if there is none. Programs usually
    /// conclude in the last line, but a line with `fatal` is the conclusion, whatever advice follows.
    pub fn telling_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        // git says this after the line that says why.
        let says_why = |line: &&str| !line.is_empty() && *line != "fatal: Could not read from remote repository.";
        let lines = || text.lines().rev().map(str::trim).filter(says_why);
        let rejected = || lines().find(|line| line.contains("[remote rejected]"));
        let fatal = || lines().find(|line| line.starts_with("fatal: "));
        let line = rejected().or_else(fatal).or_else(|| lines().next()).unwrap_or_default();
        line.chars().filter(|c| !c.is_control()).take(300).collect()
    }
}

#[derive(Debug)]
pub enum ProgramError {
    Absent(std::io::Error),
    TooLong,
    TooMuch,
    Pipe(std::io::Error),
}

/// Runs a program, writes to it, and reads its output to the end. Processes that it left behind are killed with it.
#[boxed]
pub async fn run_program(
    command: &mut Command,
    input: &[u8],
    time: Duration,
    most: usize,
) -> Result<ProgramEnd, ProgramError> {
    run_spawned(command, Command::spawn, input, time, most).await
}

/// The same for a program that reads text from strangers.
#[boxed]
pub async fn run_confined_program(
    command: &mut Command,
    input: &[u8],
    time: Duration,
    most: usize,
) -> Result<ProgramEnd, ProgramError> {
    run_spawned(command, spawn_confined, input, time, most).await
}

async fn run_spawned(
    command: &mut Command,
    spawn: fn(&mut Command) -> std::io::Result<Child>,
    input: &[u8],
    time: Duration,
    most: usize,
) -> Result<ProgramEnd, ProgramError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    command.process_group(0);
    // The program is killed on every early return, so that it does not continue unnoticed.
    let mut child = spawn(command.kill_on_drop(true)).map_err(ProgramError::Absent)?;
    let _group = ProcessGroup::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut said) = (Vec::new(), Vec::new());
    let talk = async {
        let write = async {
            if let Some(mut stdin) = stdin {
                // The program may end before it has read everything; its exit status shows that.
                let _ = stdin.write_all(input).await;
            }
            Ok(())
        };
        // All three at once, because a full pipe would block the others. The first failure ends all of them, because
        // a program whose output is no longer read never closes its standard error.
        let mut read = pin!(async {
            tokio::try_join!(write, read_out(stdout, most, &mut out), read_said(stderr, &mut said)).map(drop)
        });
        tokio::select! {
            read = &mut read => {
                read?;
                child.wait().await.map_err(ProgramError::Pipe)
            }
            status = child.wait() => {
                // Output that was written until then is still read; later output is ignored.
                tokio::time::timeout(LEFT_OPEN, read).await.unwrap_or(Ok(()))?;
                status.map_err(ProgramError::Pipe)
            }
        }
    };
    let status = tokio::time::timeout(time, talk).await.unwrap_or(Err(ProgramError::TooLong))?;
    Ok(ProgramEnd { status, out, said })
}

/// Kills a program and everything that it started when dropped.
struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<nix::unistd::Pid>,
}

impl ProcessGroup {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: id.map(nix::unistd::Pid::from_raw) }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Self {
        Self {}
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            // In most cases no process is left, and this returns an error.
            let _ = nix::sys::signal::killpg(leader, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

async fn read_out(
    stream: Option<impl AsyncRead + Unpin>,
    most: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), ProgramError> {
    if let Some(stream) = stream {
        stream.take(most as u64 + 1).read_to_end(bytes).await.map_err(ProgramError::Pipe)?;
    }
    if bytes.len() > most { Err(ProgramError::TooMuch) } else { Ok(()) }
}

/// Reads standard error to its end, so that the program never blocks, but keeps only the beginning.
async fn read_said(stream: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> Result<(), ProgramError> {
    if let Some(mut stream) = stream {
        (&mut stream).take(SAID).read_to_end(bytes).await.map_err(ProgramError::Pipe)?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map_err(ProgramError::Pipe)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::process::Command;

    use super::{ProgramError, run_program};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn what_it_reads_writes_and_says() {
        let ended = run_program(&mut shell("cat; echo one >&2; echo two >&2; exit 3"), b"in", MINUTE, 10).await;
        let Ok(ended) = ended else { panic!("it ran") };
        assert_eq!(
            (ended.status.code(), ended.out.as_slice(), ended.telling_line().as_str()),
            (Some(3), &b"in"[..], "two")
        );
    }

    #[tokio::test]
    async fn too_much_ends_it_at_once() {
        let ended = run_program(&mut shell("yes"), b"", MINUTE, 1000).await;
        assert!(matches!(ended, Err(ProgramError::TooMuch)));
        let ended = run_program(&mut shell("yes | head -c 300000 >&2; printf done"), b"", MINUTE, 1000).await;
        assert!(matches!(ended, Ok(ended) if ended.out == b"done"));
    }

    #[tokio::test]
    async fn too_long_ends_it() {
        let ended = run_program(&mut shell("exec sleep 600"), b"", Duration::from_millis(50), 10).await;
        assert!(matches!(ended, Err(ProgramError::TooLong)));
    }

    /// Whether a process runs; a zombie does not.
    fn runs(id: &str) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    async fn ends(id: &str) -> bool {
        // A signal is delivered at once, but the process ends only when it is scheduled next.
        for _ in 0..1_000 {
            if !runs(id) {
                return true;
            }
            tokio::task::yield_now().await;
            std::thread::yield_now();
            let _ = run_program(&mut shell(":"), b"", MINUTE, 10).await;
        }
        false
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_it_left_behind_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let left = folder.path().join("left");
        let id = || std::fs::read_to_string(&left).expect("its id").trim().to_owned();
        // The program ends, but a process that it started keeps its output open.
        let script = format!("sleep 600 & echo $! > {}; echo report", left.display());
        let ended = run_program(&mut shell(&script), b"", MINUTE, 100).await;
        assert!(matches!(ended, Ok(ended) if ended.out == b"report\n" && ended.status.success()));
        assert!(ends(&id()).await);
        // The program times out while it waits for a process that it started.
        let script = format!("sh -c 'echo $$ > {}; sleep 600; true'; true", left.display());
        std::fs::remove_file(&left).expect("there");
        let ended = run_program(&mut shell(&script), b"", Duration::from_secs(5), 100).await;
        assert!(matches!(ended, Err(ProgramError::TooLong)));
        assert!(ends(&id()).await);
    }

    #[tokio::test]
    async fn what_is_fatal_is_told_rather_than_the_advice_after_it() {
        let script = "echo 'fatal: dubious ownership' >&2; echo 'To add an exception, call:' >&2; exit 128";
        let ended = run_program(&mut shell(script), b"", MINUTE, 10).await;
        assert!(matches!(ended, Ok(ended) if ended.telling_line() == "fatal: dubious ownership"));
    }

    #[tokio::test]
    async fn a_program_that_does_not_read_is_no_failure() {
        let ended = run_program(&mut shell("echo fine"), &vec![b'x'; 1 << 20], MINUTE, 10).await;
        assert!(matches!(ended, Ok(ended) if ended.out == b"fine\n" && ended.status.success()));
        let absent = run_program(&mut Command::new("/nonexistent/program"), b"", MINUTE, 10).await;
        assert!(matches!(absent, Err(ProgramError::Absent(_))));
    }
}
