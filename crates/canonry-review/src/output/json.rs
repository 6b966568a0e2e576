//! Writes a report as JSON for scripts.

use canonry_domain::review::{FindingStatus, Severity};
use serde_json::{Map, Value, json as object};

use super::counts::counts;
use crate::run::report::{ReportedFinding, ReviewReport};

/// The parts of the document that `review --json` prints: `run`, `findings`, `counts` and the other facts.
pub fn json(report: &ReviewReport) -> Value {
    let skipped: Vec<Value> =
        report.coverage.skipped.iter().map(|one| object!({"path": one.path, "why": one.why, "gap": one.gap})).collect();
    let mut document = object!({
        "run": {
            "id": report.review.map(|id| id.get()),
            "subject": report.subject.to_string(),
            "mode": report.mode().as_str(),
            "reason": report.reason.to_string(),
            "base_sha": report.base,
            "head_sha": report.head,
        },
        "findings": report.findings.iter().map(finding).collect::<Vec<Value>>(),
        "counts": numbers(report),
        "coverage": {
            "files_changed": report.coverage.files_changed,
            "files_read": report.coverage.files_read,
            "files_unlisted": report.coverage.files_unlisted,
            "lines_read": report.coverage.lines_read,
            "skipped": skipped,
        },
        "reviewers": report.reviewers,
        "suppressed_patterns": report.hidden_patterns,
        "notes": report.notes,
        "model": report.model,
    });
    if let (Some(referee), Value::Object(keys)) = (&report.referee, &mut document) {
        keys.insert("referee".to_owned(), referee.document());
    }
    document
}

fn finding(one: &ReportedFinding) -> Value {
    let (sighting, finding) = (&one.sighting, &one.sighting.finding);
    let witnesses: Vec<Value> =
        finding.witnesses.iter().map(|by| object!({"reviewer": by.reviewer, "rule": by.rule})).collect();
    let moved_from =
        (one.moved_from.as_ref()).map(|(path, lines)| object!({"path": path, "line": lines.map(|lines| lines.first)}));
    object!({
        "id": one.id.map(|id| id.get()),
        "fingerprint": finding.fingerprint,
        "title": finding.title,
        "message": finding.message,
        "path": finding.path,
        "line": finding.lines.map(|lines| lines.first),
        "end_line": finding.lines.map(|lines| lines.last),
        "severity": finding.severity.as_str(),
        "category": finding.category.as_str(),
        "confidence": one.confidence.get(),
        "status": sighting.status.as_str(),
        "visibility": one.shown.as_str(),
        "suppressed_by": one.hidden_by.as_ref().map(|by| by.as_text()),
        "grounded": one.grounded,
        "reported": sighting.reported,
        "code_unchanged": sighting.code_unchanged,
        "moved_from": moved_from,
        "history": one.history.map(|history| object!({"fixed": history.fixed, "total": history.total})),
        "witnesses": witnesses,
        "tags": finding.tags,
        "fix": finding.fix,
        "replacement": finding.replacement,
    })
}

fn numbers(report: &ReviewReport) -> Value {
    let counts = counts(report);
    let by_severity: Map<String, Value> = (Severity::ALL.iter().rev())
        .map(|severity| (severity.to_string(), counts.with_severity(*severity).into()))
        .collect();
    let by_status: Map<String, Value> =
        (FindingStatus::ALL.iter()).map(|status| (status.to_string(), counts.with_status(*status).into())).collect();
    let suppressed_by: Map<String, Value> =
        counts.hidden_by.iter().map(|(by, count)| (by.as_text(), (*count).into())).collect();
    object!({
        "findings": counts.shown() + counts.suppressed,
        "shown": counts.shown(),
        "inline": counts.inline,
        "details": counts.details,
        "low_confidence": counts.low_confidence,
        "suppressed": counts.suppressed,
        "fixed": counts.with_status(FindingStatus::Fixed),
        "by_severity": by_severity,
        "by_status": by_status,
        "suppressed_by": suppressed_by,
    })
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{FindingStatus, HiddenBy, Severity, ShownAs};
    use serde_json::json as object;

    use super::json;
    use crate::output::sample::{finding, report};
    use crate::run::report::PatternHistory;

    #[test]
    fn scripts_find_what_they_rely_on() {
        let mut moved = finding("src/a b.rs", 12, "SQL injection in `query()`", Severity::Critical);
        moved.sighting.status = FindingStatus::Moved;
        moved.moved_from = Some(("src/old.rs".parse().expect("a path"), None));
        moved.history = Some(PatternHistory { fixed: 27, total: 38 });
        let mut hidden = finding("b.rs", 3, "Naming", Severity::Minor);
        (hidden.shown, hidden.hidden_by) = (ShownAs::Suppressed, Some(HiddenBy::Pattern("nam".into())));
        let document = json(&report(vec![moved, hidden]));
        assert_eq!(
            document["run"],
            object!({"id": null, "subject": "branch/topic", "mode": "full", "reason": "no-prior-review",
                "base_sha": "a".repeat(40), "head_sha": "b".repeat(40)})
        );
        assert_eq!(
            document["findings"][0],
            object!({"id": null, "fingerprint": "fp-85f50ce3", "title": "SQL injection in `query()`", "message": "",
                "path": "src/a b.rs", "line": 12, "end_line": 12, "severity": "critical", "category": "security",
                "confidence": 95, "status": "moved", "visibility": "inline", "suppressed_by": null, "grounded": true,
                "reported": true, "code_unchanged": false, "moved_from": {"path": "src/old.rs", "line": null},
                "history": {"fixed": 27, "total": 38}, "witnesses": [{"reviewer": "semgrep", "rule": "rule-12"}],
                "tags": [], "fix": null, "replacement": null})
        );
        assert_eq!(document["findings"][1]["suppressed_by"], "pattern:nam");
        assert_eq!(
            document["counts"],
            object!({"findings": 2, "shown": 1, "inline": 1, "details": 0, "low_confidence": 0, "suppressed": 1,
                "fixed": 0, "by_severity": {"critical": 1, "major": 0, "medium": 0, "minor": 0},
                "by_status": {"new": 1, "same": 0, "moved": 1, "fixed": 0, "reopened": 0, "dismissed": 0},
                "suppressed_by": {"pattern:nam": 1}})
        );
    }
}
