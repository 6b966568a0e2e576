//! Reads report files of other tools, within a limit.

use canonry_boxed::boxed;
use std::path::Path;

use canonry_domain::review::ReviewerName;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::AsyncReadExt as _;

use super::findings_json::read_findings;
use super::rdjson::read_rdjson;
use super::report_text::report_text;
use super::sarif::read_sarif;
use crate::findings::reviewer_answer::ReviewerAnswer;

/// The largest report that is read: a result takes about a kilobyte, and nobody reads a hundred thousand of them.
const LARGEST: u64 = 100 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("read {name}: {error}")]
    Unreadable { name: String, error: std::io::Error },
    #[error("read {name}: it has {} MB, and at most {} MB are read; let the tool report on changed files only", bytes / 1_000_000, LARGEST / 1_000_000)]
    TooLarge { name: String, bytes: u64 },
}

/// Reads a report. A report that is too large is not opened; a report of unknown size, such as a pipe, is read up to
/// the same limit.
#[boxed]
pub async fn read_report(path: &Path) -> Result<Vec<u8>, ReportError> {
    let name = || path.display().to_string();
    let unreadable = |error| ReportError::Unreadable { name: name(), error };
    let bytes = tokio::fs::metadata(path).await.map_err(unreadable)?.len();
    if bytes > LARGEST {
        return Err(ReportError::TooLarge { name: name(), bytes });
    }
    let mut content = Vec::new();
    let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut content).await.map_err(unreadable)?;
    match content.len() as u64 {
        bytes if bytes > LARGEST => Err(ReportError::TooLarge { name: name(), bytes }),
        _ => Ok(content),
    }
}

pub(super) fn read_any(name: &str, reviewer: &ReviewerName, bytes: &[u8], root: Option<&Path>) -> ReviewerAnswer {
    #[derive(Deserialize)]
    struct Shape {
        runs: Option<IgnoredAny>,
        findings: Option<IgnoredAny>,
    }
    let mut problems = Vec::new();
    let text = report_text(name, bytes, &mut problems);
    let mut heard = match serde_json::from_str::<Shape>(&text) {
        Ok(Shape { runs: Some(_), .. }) => read_sarif(name, text.as_bytes(), root),
        Ok(Shape { findings: Some(_), .. }) => read_findings(name, reviewer, text.as_bytes(), root),
        _ => read_rdjson(name, text.as_bytes(), root),
    };
    heard.problems.splice(0..0, problems);
    heard
}

#[cfg(test)]
mod tests {
    use super::read_report;

    #[tokio::test]
    async fn a_report_of_two_hundred_megabytes_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("huge.sarif");
        std::fs::File::create(&path).and_then(|file| file.set_len(200_000_000)).expect("a file");
        let error = read_report(&path).await.expect_err("too large").to_string();
        assert!(
            error.ends_with(
                "huge.sarif: it has 200 MB, and at most 104 MB are read; let the tool report on changed files only"
            ),
            "{error}"
        );
        let absent = read_report(&folder.path().join("absent")).await.expect_err("absent").to_string();
        assert!(absent.contains("absent: No such file"), "{absent}");
        std::fs::write(&path, "{}").expect("a file");
        assert_eq!(read_report(&path).await.expect("read"), b"{}");
    }
}
