//! Runs a program that the operator chose: it gets the diff on standard input and reports on standard output.

use canonry_boxed::boxed;
use std::path::Path;
use std::time::Duration;

use canonry_domain::review::ReviewerName;
use canonry_models::{ProgramError, run_confined_program};
use tokio::process::Command;

use super::report_file::read_any;
use crate::findings::reviewer_answer::ReviewerAnswer;

/// The largest report that is read.
const LARGEST: usize = 32 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandReviewer {
    pub program: String,
    /// The arguments, passed unchanged: no shell interprets them.
    pub arguments: Vec<String>,
    pub timeout: Duration,
}

#[boxed]
impl CommandReviewer {
    /// Splits a line at its spaces; `None` if it contains no word.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let program = words.next()?;
        Some(Self { program, arguments: words.collect(), timeout: Duration::from_secs(300) })
    }

    /// The reviewer's name if the report contains none: the program's name without its folder.
    pub fn name(&self) -> ReviewerName {
        let name = Path::new(&self.program).file_name().and_then(|name| name.to_str());
        ReviewerName::tool(name.unwrap_or(&self.program))
    }

    /// Runs the program in a folder with a diff. It answers in SARIF, in rdjson (one document or lines), or with
    /// `{"findings": […]}`. Its exit status counts only if it reported nothing: linters end with 1 when they find
    /// something.
    pub async fn ask(&self, folder: &Path, diff: &[u8]) -> ReviewerAnswer {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(folder);
        let name = self.name();
        let failed = |problem: String| ReviewerAnswer {
            problems: vec![format!("{name} {problem}")],
            ..ReviewerAnswer::default()
        };
        let ended = match run_confined_program(&mut command, diff, self.timeout, LARGEST).await {
            Ok(ended) => ended,
            Err(ProgramError::Absent(error)) => return failed(format!("does not start: {error}")),
            Err(ProgramError::TooLong) => return failed(format!("gave no report within {} s", self.timeout.as_secs())),
            Err(ProgramError::TooMuch) => return failed(format!("reports more than {} MiB", LARGEST >> 20)),
            Err(ProgramError::Pipe(error)) => return failed(format!("cannot be read: {error}")),
        };
        if ended.out.iter().all(u8::is_ascii_whitespace) {
            // An empty output is a report without findings.
            if ended.status.success() {
                return ReviewerAnswer { read: vec![(name, None)], ..ReviewerAnswer::default() };
            }
            // The program's own error output is for the operator's log: problems are published.
            tracing::warn!(%name, status = %ended.status, said = canonry_domain::redact(&ended.telling_line()), "a reviewing program failed");
            return failed(format!("ended with {} and no report", ended.status));
        }
        let mut heard = read_any(&format!("the report of {name}"), &name, &ended.out, Some(folder));
        if ended.status.code().is_none() {
            // A signal ended it: the report may be incomplete.
            heard
                .problems
                .push(format!("{name} ended with {}; no finding counts as fixed because of this run", ended.status));
            heard.read.clear();
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::CommandReviewer;
    use crate::findings::reviewer_answer::ReviewerAnswer;
    use canonry_domain::review::ReviewerName;

    async fn ask(script: &str, timeout: Duration) -> ReviewerAnswer {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        let reviewer = CommandReviewer { program: "sh".to_owned(), arguments, timeout };
        let folder = tempfile::tempdir().expect("a folder");
        reviewer.ask(folder.path(), b"+one\n+two\n").await
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn it_is_given_the_diff_and_reports_in_any_format() {
        let own = r#"{"findings": [{"title": "Seen", "path": "a", "line": 1, "severity": "minor"}]}"#;
        let sarif = r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "T"}}, "results": [{"message": {"text": "Seen"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a"}}}]}]}]}"#;
        let rdjson = r#"{"source": {"name": "T"}, "diagnostics": [{"message": "Seen", "location": {"path": "a"}}]}"#;
        let line = r#"{"message": "Seen", "location": {"path": "a"}, "source": {"name": "T"}}"#;
        for (report, tool) in [(own, "sh"), (sarif, "t"), (rdjson, "t"), (line, "t")] {
            let heard = ask(&format!("grep -q '^+two$' && cat <<'EOF'\n{report}\nEOF\nexit 1"), MINUTE).await;
            let seen: Vec<_> = heard.reported.iter().map(|one| (one.reviewer.as_str(), one.title.as_str())).collect();
            assert_eq!((seen, heard.problems), (vec![(tool, "Seen")], Vec::new()), "{report}");
        }
    }

    #[tokio::test]
    async fn what_goes_wrong_is_told_and_fixes_nothing() {
        for (script, timeout, expected) in [
            ("echo 'no config' >&2; exit 2", MINUTE, "sh ended with exit status: 2 and no report"),
            ("exec sleep 600", Duration::from_millis(50), "sh gave no report within 0 s"),
            ("yes", MINUTE, "sh reports more than 32 MiB"),
            (
                "echo 'All good!'",
                MINUTE,
                "the report of sh is not used: it is not rdjson (it is not JSON, line 1, column 1)",
            ),
        ] {
            let heard = ask(script, timeout).await;
            assert_eq!((heard.problems, heard.read.len()), (vec![expected.to_owned()], 0), "{script}");
        }
        let absent = CommandReviewer::from_line("/nonexistent/checker --all").expect("a program");
        let heard = absent.ask(std::path::Path::new("/"), b"").await;
        assert!(heard.problems[0].starts_with("checker does not start: "), "{:?}", heard.problems);
        assert_eq!(ask("exit 0", MINUTE).await.read, [(ReviewerName::tool("sh"), None)]);
    }
}
