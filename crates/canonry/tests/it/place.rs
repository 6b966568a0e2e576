//! A folder in which a test runs the program, with an environment that contains nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use canonry_store::NEWEST_SCHEMA;
use serde_json::Value;
use tempfile::TempDir;

/// Three items, one of each kind that prints differently.
pub(crate) const ITEMS: &str = r#"{"number":1,"title":"Crash on start","body":"It crashes.\r\n\r\n  thread 'main' panicked","state":"open","author":"mona","assignees":["hubot"],"labels":["bug","area/start"],"comments":3,"created_at":"2026-01-01T10:00:00Z","updated_at":"2026-01-02T10:00:00Z","url":"https://github.com/octo/cat/issues/1"}
{"number":2,"title":"Does not start","state":"closed","state_reason":"duplicate","duplicate_of":1,"assignees":[],"created_at":"2026-01-03T10:00:00Z","updated_at":"2026-01-04T10:00:00Z","closed_at":"2026-01-04T10:00:00Z"}
{"type":"pr","number":3,"title":"Start again","body":"Fixes #1","state":"closed","merged":true,"author":"hubot","comments":1,"review_comments":2,"created_at":"2026-01-05T10:00:00Z","updated_at":"2026-01-06T10:00:00Z","closed_at":"2026-01-06T10:00:00Z","files":["src/main.rs"],"diff":"-crash();\n+start();\n"}
"#;

/// The folder of a test: home, current folder and temporary folder.
pub(crate) struct Place {
    folder: TempDir,
}

/// The result of one run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("canonry-cli-").tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("tmp")).expect("a new folder takes a folder");
        Self { folder }
    }

    /// A place with a database that contains [`ITEMS`] as `octo/cat`.
    pub(crate) fn with_items() -> Self {
        let place = Self::new();
        place.write("items.jsonl", ITEMS);
        place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("the folder takes files");
        path
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path(".local/share/canonry/canonry.db")
    }

    /// The program with these arguments, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_canonry"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn canonry(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Starts the program with a pipe for every stream.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    /// The output of a run, with this folder's name and the run's id replaced.
    pub(crate) fn shown(&self, ran: &Ran) -> String {
        let exit = ran.exit.map_or_else(|| "signal".to_owned(), |code| code.to_string());
        let mut text = format!("exit {exit}\n{}", ran.stdout);
        if !ran.stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", ran.stderr));
        }
        self.without_accidents(&text)
    }

    pub(crate) fn shown_json(&self, ran: &Ran) -> String {
        let exit = ran.exit.map_or_else(|| "signal".to_owned(), |code| code.to_string());
        let document = serde_json::to_string_pretty(&ran.json()).expect("it was JSON");
        self.without_accidents(&format!("exit {exit}\n{document}"))
    }

    fn without_accidents(&self, text: &str) -> String {
        let here = self.folder.path().to_str().expect("a temporary folder with a UTF-8 path");
        let newest = NEWEST_SCHEMA.0;
        let text = text
            .replace(here, "[HERE]")
            .replace(&format!("schema {newest}"), "schema [NEWEST]")
            .replace(&format!("\"after\": {newest}"), "\"after\": [NEWEST]");
        without_run_ids(&text)
    }
}

/// A run's id is the only word of 28 hexadecimal digits.
fn without_run_ids(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split_inclusive(|character: char| !character.is_ascii_alphanumeric()) {
        let bare = word.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
        let is_id = bare.len() == 28 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        words.push(if is_id { word.replace(bare, "[RUN]") } else { word.to_owned() });
    }
    words.concat()
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            exit: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not one JSON document ({error}): {self:?}"))
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.exit, Some(0), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn failed(&self) -> &str {
        self.ended_with(1)
    }

    /// The error sentence of a run that ended with this exit status.
    #[track_caller]
    pub(crate) fn ended_with(&self, exit: i32) -> &str {
        assert_eq!((self.exit, self.stdout.as_str()), (Some(exit), ""), "{self:?}");
        let sentence = self.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("{self:?}"));
        let sentence = sentence.strip_suffix('\n').unwrap_or(sentence);
        assert!(!sentence.contains('\n'), "more than one line: {self:?}");
        sentence
    }
}

/// The names in a folder, sorted.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
