//! Reads findings in Canonry's own format: `{"findings": [{"title", "path", "line", …}]}`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use canonry_domain::review::{Category, LineRange, ReviewerName, Severity};
use serde::Deserialize;
use serde_json::Value;

use super::json_problem::reason;
use super::tool_path::plain_path;
use crate::findings::reviewer_answer::{RawFinding, ReviewerAnswer, SuggestedFix, title_and_rest};

const TOLD: usize = 5;

/// Reads the findings of one reviewer. Unusable findings become problems, and the others are kept. `name` is their
/// source, for the problems.
pub fn read_findings(name: &str, reviewer: &ReviewerName, bytes: &[u8], root: Option<&Path>) -> ReviewerAnswer {
    let mut heard = ReviewerAnswer::default();
    let document: FindingsJson = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => {
            heard.problems.push(format!("{name} is not used: it has no list of findings ({})", reason(&error)));
            return heard;
        }
    };
    let mut problems = Vec::new();
    for (at, written) in document.findings.into_iter().enumerate() {
        match serde_json::from_value(written) {
            Ok(written) => match reported(reviewer, written, root) {
                Ok(reported) => heard.reported.push(reported),
                Err(why) => problems.push(format!("finding {} {why}", at + 1)),
            },
            Err(_) => problems.push(format!("finding {} has another format", at + 1)),
        }
    }
    let more = problems.len().saturating_sub(TOLD);
    heard.problems.extend(problems.into_iter().take(TOLD).map(|problem| format!("{name}: {problem}; it is left out")));
    if more > 0 {
        heard.problems.push(format!("{name}: {more} more are left out"));
    }
    // Nobody knows whether an earlier finding is among the unusable ones.
    match heard.problems.last_mut() {
        Some(last) => last.push_str("; nothing counts as fixed"),
        None => heard.read.push((reviewer.clone(), None)),
    }
    heard
}

fn reported(reviewer: &ReviewerName, written: FindingJson, root: Option<&Path>) -> Result<RawFinding, String> {
    let (title, rest) = title_and_rest(&written.title);
    if title.is_empty() {
        return Err("has no title".to_owned());
    }
    let path = plain_path(&written.path, root).map_err(|error| format!("is about no file: {error}"))?;
    let severity = written.severity.parse::<Severity>().map_err(|error| format!("has no severity: {error}"))?;
    let category = match written.category.as_deref() {
        Some(word) => word.parse::<Category>().map_err(|error| format!("has no category: {error}"))?,
        None => Category::Correctness,
    };
    let lines = written.line.and_then(|first| LineRange::new(first, written.end_line.unwrap_or(first).max(first)));
    Ok(RawFinding {
        reviewer: reviewer.clone(),
        rule: written.rule.filter(|rule| !rule.trim().is_empty()),
        title,
        message: if rest.is_empty() { title_and_rest(&format!("-\n{}", written.message)).1 } else { rest },
        path,
        lines,
        severity,
        category,
        partial: BTreeMap::new(),
        tags: BTreeSet::new(),
        fix: written.fix.map(SuggestedFix::from),
        is_serious: false,
        removed_code: None,
    })
}

#[derive(Deserialize)]
struct FindingsJson {
    findings: Vec<Value>,
}

#[derive(Deserialize)]
struct FindingJson {
    title: String,
    #[serde(default)]
    message: String,
    path: String,
    line: Option<u32>,
    end_line: Option<u32>,
    severity: String,
    category: Option<String>,
    rule: Option<String>,
    fix: Option<String>,
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{Category, LineRange, ReviewerName, Severity};

    use super::read_findings;

    #[test]
    fn what_is_a_finding_and_what_is_not() {
        let text = r#"{"findings": [
            {"title": "Leak", "message": "The file stays open.", "path": "src/a.c", "line": 3, "end_line": 5, "severity": "major", "rule": "leak", "fix": "close(f)"},
            {"title": "Slow", "path": "b.c", "severity": "minor", "category": "performance"},
            {"title": "", "path": "b.c", "severity": "minor"},
            {"title": "x", "path": "/etc/passwd", "severity": "minor"},
            {"title": "x", "path": "b.c", "severity": "huge"},
            {"title": "x"}
        ]}"#;
        let heard = read_findings("checker", &ReviewerName::tool("checker"), text.as_bytes(), None);
        let seen: Vec<_> = (heard.reported.iter())
            .map(|one| {
                (one.title.as_str(), one.message.as_str(), one.lines, one.severity, one.category, one.rule.as_deref())
            })
            .collect();
        assert_eq!(
            seen,
            [
                (
                    "Leak",
                    "The file stays open.",
                    LineRange::new(3, 5),
                    Severity::Major,
                    Category::Correctness,
                    Some("leak")
                ),
                ("Slow", "", None, Severity::Minor, Category::Performance, None),
            ]
        );
        assert_eq!(
            heard.problems,
            [
                "checker: finding 3 has no title; it is left out",
                "checker: finding 4 is about no file: the path is absolute; it is left out",
                "checker: finding 5 has no severity: \"huge\" is not a severity; it must be one of minor, medium, major, critical; it is left out",
                "checker: finding 6 has another format; it is left out; nothing counts as fixed",
            ]
        );
        assert_eq!(heard.read, []);
        let whole = read_findings("checker", &ReviewerName::tool("checker"), br#"{"findings": []}"#, None);
        assert_eq!(whole.read, [(ReviewerName::tool("checker"), None)]);
    }
}
