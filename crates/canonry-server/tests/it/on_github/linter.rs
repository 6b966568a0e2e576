//! A program of the operator that prints the report the test wrote into its file.

use std::os::unix::fs::PermissionsExt as _;

use canonry_review::reviewers::CommandReviewer;
use canonry_server::ReviewParts;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program, and the file that it prints.
pub(crate) struct Linter {
    folder: TempDir,
}

impl Linter {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let linter = Self { folder };
        let program = linter.program();
        let script = format!("#!/bin/sh\ncat '{}'\n", linter.folder.path().join("report").display());
        std::fs::write(&program, script).expect("a program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
        linter.finds(&[]);
        linter
    }

    /// The service parts that run the program.
    pub(crate) fn parts(&self) -> ReviewParts {
        let command = CommandReviewer::from_line(&self.program());
        ReviewParts { llm: None, command: Some(command.expect("a program")) }
    }

    pub(crate) fn finds(&self, findings: &[Value]) {
        self.says(&json!({ "findings": findings }).to_string());
    }

    /// Sets the report, in any format.
    pub(crate) fn says(&self, report: &str) {
        std::fs::write(self.folder.path().join("report"), report).expect("a report");
    }

    fn program(&self) -> String {
        self.folder.path().join("tidelint").to_str().expect("UTF-8").to_owned()
    }
}
