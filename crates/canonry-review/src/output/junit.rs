//! Writes a report as JUnit XML, which nearly every CI shows.

use canonry_domain::review::{Severity, gaps_in_words};

use super::counts::{gaps, skipped_files};
use super::diagnostic::{message, rule_id};
use crate::run::report::{ReportedFinding, ReviewReport};

/// The report as one suite: a failed test for each open finding, an error for each gap, and a passed test if there is
/// neither.
pub fn junit(report: &ReviewReport) -> String {
    let findings: Vec<String> = report.standing().map(failure).collect();
    let unread: std::collections::BTreeSet<_> =
        report.coverage.skipped.iter().filter(|one| one.gap).map(|one| &one.path).collect();
    let mut errors: Vec<String> = skipped_files(report)
        .into_iter()
        .filter(|(path, _)| unread.contains(path))
        .map(|(path, why)| error(path.as_str(), "not-read", &why.into_iter().collect::<Vec<_>>().join("; ")))
        .collect();
    for one in &report.reviewers {
        errors.extend(one.problems.iter().map(|problem| error(&one.name, "reviewer", problem)));
    }
    let is_clean = findings.is_empty() && gaps_in_words(&gaps(report)).is_none();
    let passed = if is_clean { "    <testcase classname=\"canonry\" name=\"review\"/>\n" } else { "" };
    let (tests, failures) = (findings.len() + errors.len() + usize::from(is_clean), findings.len());
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{}\"", errors.len());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"canonry\" {counts}>\n{passed}{}{}  </testsuite>\n</testsuites>\n",
        findings.concat(),
        errors.concat()
    )
}

fn failure(one: &ReportedFinding) -> String {
    let finding = &one.sighting.finding;
    let place = match finding.lines {
        Some(lines) => format!("{}:{}", finding.path, lines.first),
        None => finding.path.to_string(),
    };
    let kind = match finding.severity {
        Severity::Critical => "critical",
        Severity::Major => "major",
        Severity::Medium => "medium",
        Severity::Minor => "minor",
    };
    format!(
        "    <testcase classname=\"{}\" name=\"{}\">\n      <failure type=\"{kind}\" message=\"{}\">{}</failure>\n    </testcase>\n",
        escaped(finding.path.as_str()),
        escaped(&format!("{} at {place}", rule_id(finding))),
        escaped(&finding.title),
        escaped(&format!("{place}\n{}", message(finding))),
    )
}

fn error(name: &str, kind: &str, why: &str) -> String {
    format!(
        "    <testcase classname=\"{0}\" name=\"{0}\">\n      <error type=\"{kind}\" message=\"{1}\"/>\n    </testcase>\n",
        escaped(name),
        escaped(why)
    )
}

/// The text for an attribute or an element. XML has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(' '),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::Severity;

    use super::junit;
    use crate::output::sample::{finding, report, skipped};

    #[test]
    fn findings_fail_and_gaps_are_errors() {
        let mut first = finding("src/a.rs", 12, "Unquoted <x> & \"y\"", Severity::Major);
        first.sighting.finding.message = "It is\u{1b} split.".into();
        let mut report = report(vec![first]);
        report.coverage.skipped = vec![skipped("c.txt", "it is too large", true), skipped("d.png", "an image", false)];
        report.reviewers[0].problems = vec!["no answer".into()];
        insta::assert_snapshot!(junit(&report), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="3" failures="1" errors="2">
          <testsuite name="canonry" tests="3" failures="1" errors="2">
            <testcase classname="src/a.rs" name="semgrep/rule-12 at src/a.rs:12">
              <failure type="major" message="Unquoted &lt;x&gt; &amp; &quot;y&quot;">src/a.rs:12&#10;Unquoted &lt;x&gt; &amp; &quot;y&quot;&#10;&#10;It is� split.</failure>
            </testcase>
            <testcase classname="c.txt" name="c.txt">
              <error type="not-read" message="it is too large"/>
            </testcase>
            <testcase classname="semgrep" name="semgrep">
              <error type="reviewer" message="no answer"/>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn a_clean_review_is_a_passed_test() {
        insta::assert_snapshot!(junit(&report(vec![])), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="1" failures="0" errors="0">
          <testsuite name="canonry" tests="1" failures="0" errors="0">
            <testcase classname="canonry" name="review"/>
          </testsuite>
        </testsuites>
        "#);
    }
}
