//! A git repository to review, with a branch `main` and a branch to work on.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::place::{Place, Ran};

/// A clone in the folder `cat` of its own place.
pub(crate) struct WorkingCopy {
    pub(crate) place: Place,
}

impl WorkingCopy {
    /// One commit on `main`, and a branch `topic` to work on.
    pub(crate) fn new() -> Self {
        let place = Place::new();
        fs::create_dir(place.path("cat")).expect("a new folder takes a folder");
        let copy = Self { place };
        copy.git(&["init", "--quiet", "--initial-branch=main"]);
        copy.write("src/app.js", &code("start();")).write("README.md", "# Cat\n").commit("Begin");
        copy.git(&["switch", "--quiet", "--create", "topic"]);
        copy.git(&["remote", "add", "origin", "https://github.com/octo/cat.git"]);
        copy
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.place.path("cat").join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("inside the clone")).expect("a folder");
        fs::write(path, content).expect("a file");
        self
    }

    /// Runs git as a developer would, without this machine's settings.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.path(""))
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits everything and returns the commit's id.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all", "."]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Notes that a remote's `main` is the current commit, as after a push.
    pub(crate) fn pushed(&self, remote: &str) {
        self.git(&["update-ref", &format!("refs/remotes/{remote}/main"), "HEAD"]);
    }

    /// The program in the clone, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.current_dir(self.path("")).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub(crate) fn canonry(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().expect("the program starts"))
    }

    #[track_caller]
    pub(crate) fn review(&self, arguments: &[&str]) -> Value {
        self.canonry(&[&["review", "--json"], arguments].concat()).succeeded().json()
    }
}

/// Twenty lines of code, the tenth of which is `own`.
pub(crate) fn code(own: &str) -> String {
    (1..=20).map(|line| if line == 10 { format!("{own}\n") } else { format!("step{line}();\n") }).collect()
}

/// The token is assembled at run time, so that no scanner reports this file as a leak.
pub(crate) fn credential() -> String {
    format!("const token = '{}';", ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o50smkjE"].concat())
}

/// A linter's report in SARIF: rule, level, file, line.
pub(crate) fn sarif(results: &[(&str, &str, &str, u32)]) -> String {
    let result = |(rule, level, path, line): &(&str, &str, &str, u32)| {
        json!({"ruleId": rule, "level": level, "message": {"text": format!("{rule} is not allowed")}, "locations":
            [{"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": line}}}]})
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "Lint"}}, "results": results}]}).to_string()
}

/// `rule or title, place, status, visibility` of each finding.
#[track_caller]
pub(crate) fn told(document: &Value) -> Vec<String> {
    let findings = document["findings"].as_array().expect("a list");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |one: &Value| {
        let rule = word(&one["witnesses"][0]["rule"]);
        let (path, status, shown) = (word(&one["path"]), word(&one["status"]), word(&one["visibility"]));
        format!("{rule} {path}:{} {status} {shown}", one["line"])
    };
    findings.iter().map(line).collect()
}
