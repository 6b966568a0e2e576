//! Tests that reports in the formats for programs can be read back, as far as the format can express them.

use canonry_domain::review::{Category, LineRange, RepoPath, Severity};
use proptest::prelude::{Strategy, prop_assert_eq, prop_oneof, proptest};

use super::sample::{finding, report};
use super::{rdjsonl, sarif};
use crate::findings::reviewer_answer::RawFinding;
use crate::reviewers::{read_rdjson, read_sarif};
use crate::run::report::{ReportedFinding, ReviewReport};

/// A path with any characters that git allows.
fn any_path() -> impl Strategy<Value = String> {
    let part = prop_oneof!["[a-z]{1,8}\\.rs", "[^/\0]{1,12}", "[A-Za-z]:", "[a-z]\\\\[a-z]", "%[0-9A-F]{2}[#?&+ ]"];
    proptest::collection::vec(part, 1..4)
        .prop_map(|parts| parts.join("/"))
        .prop_filter("no path", |path| RepoPath::exact(path).is_ok())
}

/// A title like those of reviewers: one line, trimmed, not longer than the limit.
fn any_title() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,60}", "\\PC{1,40}"]
        .prop_map(|title| title.trim().to_owned())
        .prop_filter("it says something", |title| !title.is_empty())
}

fn any_finding() -> impl Strategy<Value = ReportedFinding> {
    (
        any_path(),
        proptest::option::of((1_u32..5_000, 0_u32..50)),
        any_title(),
        "[ -~\n]{0,80}",
        proptest::sample::select(Severity::ALL),
        proptest::sample::select(Category::ALL),
    )
        .prop_map(|(path, lines, title, message, severity, category)| {
            let mut one = finding(&path, 1, &title, severity);
            one.sighting.finding.lines = lines.and_then(|(first, more)| LineRange::new(first, first + more));
            one.sighting.finding.message = message.trim().to_owned();
            one.sighting.finding.category = category;
            one
        })
}

type ReadBackFinding = (String, Option<LineRange>, String, String, Severity);

fn written(report: &ReviewReport, held: impl Fn(Severity, Category) -> Severity) -> Vec<ReadBackFinding> {
    let seen = report.findings.iter().map(|one| &one.sighting.finding).map(|one| {
        let severity = held(one.severity, one.category);
        (one.path.to_string(), one.lines, one.title.clone(), one.message.clone(), severity)
    });
    seen.collect()
}

fn read(reported: Vec<RawFinding>) -> Vec<ReadBackFinding> {
    let seen = |one: RawFinding| (one.path.to_string(), one.lines, one.title, one.message, one.severity);
    reported.into_iter().map(seen).collect()
}

proptest! {
    #[test]
    fn sarif_is_read_back(findings in proptest::collection::vec(any_finding(), 0..6)) {
        let report = report(findings);
        let heard = read_sarif("own", sarif(&report).to_string().as_bytes(), None);
        prop_assert_eq!(&heard.problems, &[""; 0]);
        // The format can express critical severity only for security findings.
        let held = |severity, category| match (severity, category) {
            (Severity::Critical, Category::Security) => Severity::Critical,
            (severity, _) => severity.min(Severity::Major),
        };
        let categories: Vec<Category> = heard.reported.iter().map(|one| one.category).collect();
        let expected: Vec<Category> = report.findings.iter().map(|one| one.sighting.finding.category).collect();
        prop_assert_eq!(categories, expected);
        prop_assert_eq!(read(heard.reported), written(&report, held));
    }

    #[test]
    fn rdjsonl_is_read_back(findings in proptest::collection::vec(any_finding(), 1..6)) {
        let report = report(findings);
        let heard = read_rdjson("own", rdjsonl(&report).as_bytes(), None);
        prop_assert_eq!(&heard.problems, &[""; 0]);
        prop_assert_eq!(read(heard.reported), written(&report, |severity, _| severity.min(Severity::Major)));
    }
}
