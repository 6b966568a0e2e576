//! The services for the browser: the demo as a person starts it, and a service on an empty database.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use canonry_testkit::browser::{Browser, Page};
use canonry_testkit::github::Emulator;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// The repository of these tests.
pub(crate) const REPO: &str = "/r/brindle/brindle";

/// A folder that is home, current folder and temporary folder, with an environment that contains nothing else.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("canonry-demo-").tempdir().expect("a temporary folder"))
    }

    pub(crate) fn canonry(&self, arguments: &[&str]) -> Command {
        let home = self.0.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_canonry"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("TMPDIR", home)
            .current_dir(home)
            .stdin(Stdio::null());
        command
    }
}

/// The demo as a person starts it.
pub(crate) struct Demo {
    process: Child,
    /// Open for as long as the demo runs, like a terminal.
    _output: ChildStdout,
    document: Value,
    _home: Home,
}

impl Demo {
    pub(crate) fn start() -> Self {
        let home = Home::new();
        let mut process = home
            .canonry(&["demo", "--json", "--quiet", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut output = process.stdout.take().expect("a pipe was asked for");
        let document = serde_json::Deserializer::from_reader(BufReader::new(&mut output)).into_iter().next();
        let document = document.expect("it says where its console is").expect("it says so in JSON");
        Self { process, _output: output, document, _home: home }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.document["console"].as_str().expect("an address"))
    }

    pub(crate) fn plan(&self) -> String {
        format!("{REPO}/plans/{}", self.document["stats"]["plan"]["id"])
    }

    /// The URL that signs in.
    pub(crate) fn sign_in(&self) -> &str {
        self.document["sign_in"].as_str().expect("an address")
    }

    /// Pages that only a person at the keyboard would find.
    pub(crate) fn sights(&self) -> Vec<String> {
        let sights = self.document["sights"].as_array().expect("a list");
        sights.iter().map(|sight| sight["path"].as_str().expect("a path").to_owned()).collect()
    }

    /// A tab in which the operator is signed in.
    pub(crate) fn signed_in(&self, browser: &Browser) -> Page {
        let page = browser.page();
        page.goto(self.sign_in());
        page.follow(|page| page.press("Enter"));
        page
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// A service on an empty database, as it is right after its first start.
pub(crate) struct EmptyService {
    process: Child,
    _log: BufReader<ChildStderr>,
    url: String,
    _home: Home,
}

impl EmptyService {
    pub(crate) const TOKEN: &str = "the-operators-own-token";

    /// Starts it with an emulated GitHub. Its public URL is a different one.
    pub(crate) fn start(github: &Emulator) -> Self {
        let home = Home::new();
        let mut process = home
            .canonry(&["serve", "--listen", "127.0.0.1:0"])
            .env("CANONRY_WEBHOOK_SECRET", "the tide comes in and goes out")
            .env("CANONRY_ADMIN_TOKEN", Self::TOKEN)
            .env("CANONRY_PUBLIC_URL", "http://canonry.example")
            .env("CANONRY_GITHUB_API_URL", github.url())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut log = BufReader::new(process.stderr.take().expect("a pipe was asked for"));
        let mut told = String::new();
        let url = loop {
            assert!(log.read_line(&mut told).expect("text") > 0, "it ended: {told}");
            if let Some((_, rest)) = told.split_once("listening at ") {
                break rest.split(['"', ' ', '\n']).next().unwrap_or_default().to_owned();
            }
        };
        Self { process, _log: log, url, _home: home }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

impl Drop for EmptyService {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

fn end(process: &mut Child) {
    let id = i32::try_from(process.id()).expect("ids of processes are small");
    let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    let _ = process.wait();
}
