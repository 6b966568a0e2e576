//! Writes a report as GitLab's code quality report.

use std::collections::BTreeMap;

use canonry_domain::review::{Finding, Severity};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::diagnostic::{message, rule_id};
use crate::run::report::ReviewReport;

/// The open findings. The format cannot express gaps: the exit status does.
pub fn gitlab(report: &ReviewReport) -> Value {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let issues = report.standing().map(|one| {
        let finding = &one.sighting.finding;
        let identity = identity(finding);
        let times = seen.entry(identity.clone()).or_default();
        *times += 1;
        let digest = Sha256::digest(format!("{identity}\n{times}").as_bytes());
        json!({
            "description": message(finding),
            "check_name": rule_id(finding),
            "fingerprint": canonry_domain::hex_digits(&digest[..16]),
            "severity": severity(finding.severity),
            "location": {
                "path": finding.path,
                // The format requires a line.
                "lines": {"begin": finding.lines.map_or(1, |lines| lines.first), "end": finding.lines.map_or(1, |lines| lines.last)},
            },
        })
    });
    Value::Array(issues.collect())
}

/// What stays the same when the code moves: GitLab compares the branches by it.
fn identity(finding: &Finding) -> String {
    let code = finding.code.as_ref().map_or("", |code| code.as_str());
    format!("{}\n{}\n{}\n{code}", rule_id(finding), finding.fingerprint, finding.path)
}

/// Five words for four severities; `info` is for what needs no action.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "blocker",
        Severity::Major => "critical",
        Severity::Medium => "major",
        Severity::Minor => "minor",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canonry_domain::review::Severity;

    use super::gitlab;
    use crate::output::sample::{finding, report};

    #[test]
    fn one_entry_a_finding() {
        let mut whole = finding("b.rs", 1, "Large file", Severity::Minor);
        whole.sighting.finding.lines = None;
        let report = report(vec![finding("src/a.rs", 12, "Unquoted", Severity::Major), whole]);
        insta::assert_json_snapshot!(gitlab(&report), @r#"
        [
          {
            "description": "Unquoted",
            "check_name": "semgrep/rule-12",
            "fingerprint": "b806cf52f3117c7eb5caab3fd17547b9",
            "severity": "critical",
            "location": {
              "path": "src/a.rs",
              "lines": {
                "begin": 12,
                "end": 12
              }
            }
          },
          {
            "description": "Large file",
            "check_name": "semgrep/rule-1",
            "fingerprint": "140c8b02b2ff9effe489a61db70d8ec3",
            "severity": "minor",
            "location": {
              "path": "b.rs",
              "lines": {
                "begin": 1,
                "end": 1
              }
            }
          }
        ]
        "#);
    }

    #[test]
    fn two_of_a_kind_are_told_apart() {
        let one = finding("a.rs", 1, "Twice", Severity::Medium);
        let entries = gitlab(&report(vec![one.clone(), one]));
        let entries = entries.as_array().expect("a list").iter().map(|one| one["fingerprint"].to_string());
        assert_eq!(entries.collect::<BTreeSet<_>>().len(), 2);
    }
}
