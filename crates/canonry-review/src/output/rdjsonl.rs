//! Writes a report for reviewdog and compatible tools: one diagnostic per line.

use canonry_domain::review::Severity;
use serde_json::{Value, json};

use super::diagnostic::{message, plain_path, rule_id};
use crate::run::report::{ReportedFinding, ReviewReport};

/// The open findings that are shown, each on its own line; empty if there are none. Fixed and suppressed findings are
/// left out: the format cannot express them.
pub fn rdjsonl(report: &ReviewReport) -> String {
    report.standing().map(|one| format!("{}\n", diagnostic(one))).collect()
}

fn diagnostic(one: &ReportedFinding) -> Value {
    let finding = &one.sighting.finding;
    let mut location = json!({"path": plain_path(finding.path.as_str())});
    if let Some(lines) = finding.lines {
        location["range"] = json!({"start": {"line": lines.first}, "end": {"line": lines.last}});
    }
    let severity = match finding.severity {
        Severity::Critical | Severity::Major => "ERROR",
        Severity::Medium => "WARNING",
        Severity::Minor => "INFO",
    };
    let mut diagnostic = json!({
        "message": message(finding),
        "location": location,
        "severity": severity,
        "source": {"name": "canonry"},
        "code": {"value": rule_id(finding)},
    });
    // A range without columns stands for whole lines.
    if let Some((lines, code)) = finding.lines.zip(finding.replacement.as_ref()) {
        let range = json!({"start": {"line": lines.first}, "end": {"line": lines.last}});
        diagnostic["suggestions"] = json!([{"range": range, "text": code}]);
    }
    diagnostic
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{FindingStatus, Severity, ShownAs};

    use super::rdjsonl;
    use crate::output::sample::{finding, report};

    #[test]
    fn one_diagnostic_a_line() {
        let mut first = finding("src/a.rs", 12, "Unquoted\nvariable", Severity::Major);
        first.sighting.finding.message = "It is split.".into();
        first.sighting.finding.fix = Some("quote it".into());
        first.sighting.finding.replacement = Some("  echo \"$x\"".into());
        let mut whole = finding("b:c.rs", 1, "Large file", Severity::Minor);
        whole.sighting.finding.lines = None;
        let mut fixed = finding("c.rs", 2, "Gone", Severity::Minor);
        fixed.sighting.status = FindingStatus::Fixed;
        let mut hidden = finding("c.rs", 2, "Hidden", Severity::Minor);
        hidden.shown = ShownAs::Suppressed;
        assert_eq!(
            rdjsonl(&report(vec![first, whole, fixed, hidden])),
            concat!(
                r#"{"message":"Unquoted\nvariable\n\nIt is split.\n\nSuggested: quote it","location":{"path":"src/a.rs","#,
                r#""range":{"start":{"line":12},"end":{"line":12}}},"severity":"ERROR","source":{"name":"canonry"},"#,
                r#""code":{"value":"semgrep/rule-12"},"suggestions":[{"range":{"start":{"line":12},"end":{"line":12}},"#,
                r#""text":"  echo \"$x\""}]}"#,
                "\n",
                r#"{"message":"Large file","location":{"path":"./b:c.rs"},"severity":"INFO","source":{"name":"canonry"},"#,
                r#""code":{"value":"semgrep/rule-1"}}"#,
                "\n"
            )
        );
        assert_eq!(rdjsonl(&report(vec![])), "");
    }
}
