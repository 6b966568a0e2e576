//! Writes a report as workflow commands: GitHub shows each as an annotation at its line, without a token.

use canonry_domain::review::Severity;

use super::counts::skipped_files;
use super::diagnostic::{message, rule_id};
use crate::run::report::{ReportedFinding, ReviewReport};

/// The open findings and the gaps, each on its own line.
pub fn github(report: &ReviewReport) -> String {
    let findings = report.standing().map(annotation);
    let problems = report.reviewers.iter().flat_map(|one| {
        one.problems.iter().map(move |problem| {
            command("warning", &[("title", "The review is incomplete".to_owned())], &format!("{}: {problem}", one.name))
        })
    });
    let gaps = report.coverage.skipped.iter().filter(|one| one.gap).map(|one| &one.path);
    let gaps: std::collections::BTreeSet<_> = gaps.collect();
    let unread = skipped_files(report).into_iter().filter(|(path, _)| gaps.contains(path)).map(|(path, why)| {
        let place = [("file", path.to_string()), ("title", "This file was not read".to_owned())];
        command("warning", &place, &why.into_iter().collect::<Vec<_>>().join("; "))
    });
    findings.chain(problems).chain(unread).collect()
}

fn annotation(one: &ReportedFinding) -> String {
    let finding = &one.sighting.finding;
    let level = match finding.severity {
        Severity::Critical | Severity::Major => "error",
        Severity::Medium => "warning",
        Severity::Minor => "notice",
    };
    let mut place = vec![("file", finding.path.to_string())];
    if let Some(lines) = finding.lines {
        place.extend([("line", lines.first.to_string()), ("endLine", lines.last.to_string())]);
    }
    place.push(("title", format!("{} ({}, {})", finding.title, finding.severity, rule_id(finding))));
    command(level, &place, &message(finding))
}

fn command(level: &str, properties: &[(&str, String)], text: &str) -> String {
    let properties: Vec<String> =
        properties.iter().map(|(name, value)| format!("{name}={}", escaped(value, "%\r\n:,"))).collect();
    format!("::{level} {}::{}\n", properties.join(","), escaped(text, "%\r\n"))
}

/// The text with these characters as `%XX`: they would end the command or one of its properties.
fn escaped(text: &str, special: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => " ".to_owned(),
            c if special.contains(c) => format!("%{:02X}", u32::from(c)),
            c => c.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::Severity;

    use super::github;
    use crate::output::sample::{finding, report, skipped};

    #[test]
    fn each_finding_and_each_gap_is_an_annotation() {
        let mut first = finding("src/a,b.rs", 12, "Unquoted: variable", Severity::Major);
        first.sighting.finding.message = "It is split.\n::error::100 %".into();
        let mut whole = finding("b.rs", 1, "Large file", Severity::Minor);
        whole.sighting.finding.lines = None;
        let mut report = report(vec![first, whole]);
        report.coverage.skipped = vec![skipped("c.txt", "it is too large", true), skipped("d.png", "an image", false)];
        report.reviewers[0].problems = vec!["no answer".into()];
        insta::assert_snapshot!(github(&report), @r"
        ::error file=src/a%2Cb.rs,line=12,endLine=12,title=Unquoted%3A variable (major%2C semgrep/rule-12)::Unquoted: variable%0A%0AIt is split.%0A::error::100 %25
        ::notice file=b.rs,title=Large file (minor%2C semgrep/rule-1)::Large file
        ::warning title=The review is incomplete::semgrep: no answer
        ::warning file=c.txt,title=This file was not read::it is too large
        ");
    }
}
