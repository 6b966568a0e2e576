//! Tests the terminal output state by state.

use canonry_domain::review::{
    Category, CodeExcerpt, FindingStatus, HiddenBy, LineRange, RepoPath, ReviewerName, ScopeReason, Severity, ShownAs,
    Witness,
};
use insta::assert_snapshot;
use proptest::prelude::{any, prop_assert, proptest};

use super::columns::columns;
use super::sample::{finding, hidden, report, skipped, with_status};
use super::sarif;
use super::text::text;
use crate::run::report::{ModelUse, PatternHistory, ReviewReport, ReviewerRun};

const CODE: &str = "fn find(name: &str) -> Row {\r\n\tlet sql = format!(\"select * from t where n = '{name}'\");\r\n\trun(&sql)\r\n}\r\n";

fn plain(report: &ReviewReport, texts: &[(&str, &str)]) -> String {
    let mut report = report.clone();
    for one in &mut report.findings {
        let finding = &one.sighting.finding;
        let text = texts.iter().find(|(path, _)| *path == finding.path.as_str());
        one.excerpt = text.zip(finding.lines).and_then(|((_, text), lines)| CodeExcerpt::around(text, lines));
    }
    let shown = text(&report, 80, None);
    anstream::adapter::strip_str(&shown).to_string()
}

#[test]
fn nothing() {
    assert_snapshot!(plain(&report(vec![]), &[]), @"
    No findings.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Full review: no earlier review. 2
    of 2 changed files read, 40 lines. Reviewers: semgrep (0 findings).
    ");
    let mut again = report(vec![]);
    again.reason = ScopeReason::NoChangesSince("c".repeat(40).parse().expect("an id"));
    (again.coverage.files_read, again.coverage.lines_read) = (0, 0);
    assert_snapshot!(plain(&again, &[]), @"
    No findings.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Incremental review: no changes
    since ccccccc. 0 of 2 changed files read, 0 lines. Reviewers: semgrep (0
    findings).
    ");
}

#[test]
fn nothing_but_a_reviewer_failed_and_a_file_was_skipped() {
    let mut failed = report(vec![]);
    failed.reviewers.push(ReviewerRun {
        name: "llm".into(),
        findings: 0,
        files: 0,
        problems: vec!["the model gave no usable answer: it \u{1b}[2J is prose".into()],
        notes: vec!["one finding was refuted".into()],
    });
    failed.coverage.skipped = vec![
        skipped("data/big.txt", "it is larger than 2 MiB", true),
        skipped("data/big.txt", "the model had no room for it", true),
        skipped("data/logo.png", "it is binary", false),
    ];
    failed.notes = vec![".canonry.yml: review.maxComments is no number; the default holds".into()];
    assert_snapshot!(plain(&failed, &[]), @r"
    No findings, but the review is incomplete: 1 of 2 reviewers had problems, 1 file
    was not read.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Full review: no earlier review. 2
    of 2 changed files read, 40 lines; 2 skipped. Reviewers: semgrep (0 findings),
    llm (0 findings).

    Problems (1)
      llm: the model gave no usable answer: it \u{1b}[2J is prose

    Not read (2)
      data/big.txt: it is larger than 2 MiB; the model had no room for it
      data/logo.png: it is binary

    Notes (2)
      .canonry.yml: review.maxComments is no number; the default holds
      llm: one finding was refuted
    ");
    failed.reviewers.truncate(1);
    failed.coverage.skipped.retain(|one| !one.gap);
    assert!(plain(&failed, &[]).starts_with("No findings.\n"), "nobody could have read what is binary");
    failed.reviewers.clear();
    failed.coverage.skipped.clear();
    assert_snapshot!(plain(&failed, &[]), @"
    Not reviewed: no reviewer ran.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Full review: no earlier review. 2
    of 2 changed files read, 40 lines.

    Notes (1)
      .canonry.yml: review.maxComments is no number; the default holds
    ");
}

#[test]
fn several() {
    let mut injection = finding("src/db.rs", 2, "SQL injection in `find`", Severity::Critical);
    injection.sighting.finding.message =
        "The name comes from the request and is put into the statement as it is, so that anybody can write any \
         statement there.\n\nSee the rules about databases."
            .into();
    injection.sighting.finding.fix = Some("bind the name as a parameter".into());
    injection.history = Some(PatternHistory { fixed: 27, total: 38 });
    let model = ReviewerName::model();
    let key = injection.sighting.finding.key().clone();
    injection.sighting.finding.witnesses.push(Witness { reviewer: model, rule: None, key });
    let mut range = finding("src/db.rs", 1, "A function without a word about what it does", Severity::Minor);
    range.sighting.finding.lines = LineRange::new(1, 4);
    range.sighting.finding.category = Category::Documentation;
    let mut whole = finding("LICENSE", 1, "The file is empty", Severity::Major);
    whole.sighting.finding.lines = None;
    whole.grounded = false;
    let mut several = report(vec![injection, whole, range]);
    several.model = Some(ModelUse {
        model: "m-1".into(),
        calls: 3,
        input_tokens: 12_345,
        output_tokens: 678,
        cost_usd: Some(0.031),
    });
    assert_snapshot!(plain(&several, &[("src/db.rs", CODE)]), @r#"
    3 findings: 1 critical, 1 major, 1 minor.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Full review: no earlier review. 2
    of 2 changed files read, 40 lines. Reviewers: semgrep (3 findings).

    src/db.rs
      critical  SQL injection in `find`
        line 2 · security · confidence 95 %, fixed 27 of 38 here · semgrep (rule-2),
        llm
          1 │ fn find(name: &str) -> Row {
        > 2 │     let sql = format!("select * from t where n = '{name}'");
          3 │     run(&sql)
          4 │ }
        The name comes from the request and is put into the statement as it is, so
        that anybody can write any statement there.

        See the rules about databases.
        Suggested: bind the name as a parameter

      minor     A function without a word about what it does
        lines 1 to 4 · documentation · confidence 65 % · semgrep (rule-1)
        > 1 │ fn find(name: &str) -> Row {
        > 2 │     let sql = format!("select * from t where n = '{name}'");
        > 3 │     run(&sql)
        > 4 │ }

    LICENSE
      major     The file is empty
        whole file · outside the diff · security · confidence 85 % · semgrep
        (rule-1)

    m-1: 3 calls, 12,345 tokens in, 678 tokens out, $0.0310
    "#);
}

#[test]
fn what_became_of_earlier_ones() {
    let mut moved = with_status(finding("b.js", 230, "Debugger", Severity::Medium), FindingStatus::Moved, true);
    moved.moved_from = Some(("a.js".parse().expect("a path"), LineRange::new(30, 30)));
    let mut below = with_status(finding("b.js", 9, "Alert", Severity::Medium), FindingStatus::Moved, false);
    below.moved_from = Some(("b.js".parse().expect("a path"), LineRange::new(7, 7)));
    let mut second = report(vec![
        finding("b.js", 3, "Eval", Severity::Major),
        with_status(finding("b.js", 4, "Back", Severity::Major), FindingStatus::Reopened, false),
        moved,
        below,
        with_status(finding("b.js", 5, "Stays", Severity::Minor), FindingStatus::Same, true),
        with_status(finding("b.js", 6, "Was here", Severity::Minor), FindingStatus::Fixed, true),
    ]);
    second.reason = ScopeReason::IncrementalFrom("c".repeat(40).parse().expect("an id"));
    assert_snapshot!(plain(&second, &[]), @"
    5 findings: 2 major, 2 medium, 1 minor.
    Since the last review: 1 new, 1 fixed, 1 back again, 3 still open.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Incremental review: changes since
    ccccccc. 2 of 2 changed files read, 40 lines. Reviewers: semgrep (6 findings).

    b.js
      major     Eval
        line 3 · security · confidence 85 % · semgrep (rule-3) · new

      major     Back
        line 4 · security · confidence 85 % · semgrep (rule-4) · back again

      medium    Debugger
        line 230 · security · confidence 75 % · semgrep (rule-230) · moved from
        a.js:30

      medium    Alert
        line 9 · security · confidence 75 % · semgrep (rule-9) · moved from line 7,
        code changed

      minor     Stays
        line 5 · security · confidence 65 % · semgrep (rule-5) · still open

    Fixed since the last review (1)
      fixed     b.js:6  Was here
    ");
}

#[test]
fn what_is_folded_away() {
    let folded = |mut one: crate::run::report::ReportedFinding, shown| {
        one.shown = shown;
        one
    };
    let mut findings: Vec<_> = (1..=17)
        .map(|line| folded(finding("src/a.rs", line, "Unclear name", Severity::Minor), ShownAs::LowConfidence))
        .collect();
    let long = "A title that is so long that it does not fit into one line of a terminal by any means";
    findings.push(folded(finding("src/deep/er.rs", 3, long, Severity::Major), ShownAs::Details));
    findings.push(hidden(finding("x.rs", 1, "No", Severity::Minor), HiddenBy::Pattern("\u{1b}]0;x\u{7}".into())));
    let dismissed = with_status(finding("x.rs", 2, "Again", Severity::Minor), FindingStatus::Dismissed, true);
    findings.push(hidden(dismissed, HiddenBy::Dismissal));
    findings.push(hidden(finding("x.rs", 3, "No", Severity::Minor), HiddenBy::Feedback));
    let mut folded = report(findings);
    folded.hidden_patterns = 1;
    assert_snapshot!(plain(&folded, &[]), @r#"
    18 findings: 1 major, 17 minor.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Full review: no earlier review. 2
    of 2 changed files read, 40 lines. Reviewers: semgrep (21 findings).

    Further findings (1)
      major     src/deep/er.rs:3  A title that is so long that it does not fi…  85 %

    Low confidence (17)
      minor     src/a.rs:1  Unclear name  65 %
      minor     src/a.rs:2  Unclear name  65 %
      minor     src/a.rs:3  Unclear name  65 %
      minor     src/a.rs:4  Unclear name  65 %
      minor     src/a.rs:5  Unclear name  65 %
      minor     src/a.rs:6  Unclear name  65 %
      minor     src/a.rs:7  Unclear name  65 %
      minor     src/a.rs:8  Unclear name  65 %
      minor     src/a.rs:9  Unclear name  65 %
      minor     src/a.rs:10  Unclear name  65 %
      minor     src/a.rs:11  Unclear name  65 %
      minor     src/a.rs:12  Unclear name  65 %
      minor     src/a.rs:13  Unclear name  65 %
      minor     src/a.rs:14  Unclear name  65 %
      minor     src/a.rs:15  Unclear name  65 %
      … and 2 more

    3 findings hidden: 1 dismissed, 1 by feedback, 1 by pattern "\u{1b}]0;x\u{7}". 1
    pattern auto-suppressed based on prior feedback.
    "#);
}

#[test]
fn strange_paths_and_texts() {
    let mut strange = finding("we ird\u{202e}/\"q\"\nü.rs", 2, "\u{1b}[31mRed\u{7} 日本語の題名", Severity::Medium);
    strange.sighting.finding.message = "one\r\n\ttwo \u{9b}2J three\n\n\n\nfour".into();
    let path = strange.sighting.finding.path.clone();
    let code = "\tif (ok) {\r\n日本語の長い行日本語の長い行日本語の長い行日本語の長い行日本語の長い行日本語の長い行\r\n\u{1b}[8mhidden\u{0}\r\n";
    let one = report(vec![strange]);
    let shown = plain(&one, &[(path.as_str(), code)]);
    assert_snapshot!(shown, @r#"
    1 finding: 1 medium.
    octo/widgets branch/topic, aaaaaaa..bbbbbbb. Full review: no earlier review. 2
    of 2 changed files read, 40 lines. Reviewers: semgrep (1 finding).

    we ird\u{202e}/"q"\nü.rs
      medium    \u{1b}[31mRed\u{7} 日本語の題名
        line 2 · security · confidence 75 % · semgrep (rule-2)
          1 │     if (ok) {
        > 2 │ 日本語の長い行日本語の長い行日本語の長い行日本語の長い行日本語の長い…
          3 │ \u{1b}[8mhidden\u{0}
        one
            two \u{9b}2J three

        four
    "#);
    // The formats for programs contain the text unchanged.
    let message = &sarif(&one)["runs"][0]["results"][0]["message"]["text"];
    assert!(message.as_str().is_some_and(|text| text.starts_with("\u{1b}[31mRed\u{7} 日本語の題名\n\none\r\n")));
}

proptest! {
    #[test]
    fn no_text_of_strangers_acts_on_the_terminal(
        title in any::<String>(), message in any::<String>(), code in any::<String>(), problem in any::<String>(),
        path in "[^/\0]{1,30}", width in 0_usize..200,
    ) {
        let Ok(repo_path) = RepoPath::exact(&path) else { return Ok(()) };
        let mut one = finding("a", 1, &title, Severity::Major);
        one.sighting.finding.path = repo_path;
        one.excerpt = one.sighting.finding.lines.and_then(|lines| CodeExcerpt::around(&code, lines));
        one.sighting.finding.message = message;
        one.sighting.finding.fix = Some(problem.clone());
        let mut report = report(vec![one]);
        report.notes = vec![problem.clone()];
        report.reviewers[0].problems = vec![problem];
        let shown = text(&report, width, None);
        for line in shown.lines() {
            // After our own colours are removed, nothing is left that a terminal would act on.
            let mut rest = String::new();
            let mut parts = line.split("\u{1b}[");
            rest.push_str(parts.next().unwrap_or_default());
            for part in parts {
                let (colour, after) = part.split_once('m').expect("a colour");
                prop_assert!(colour.chars().all(|c| c.is_ascii_digit() || c == ';'), "{line:?}");
                rest.push_str(after);
            }
            prop_assert!(!rest.contains(|c: char| c.is_control()), "{line:?}");
            prop_assert!(columns(&rest) <= width.clamp(40, 120), "{rest:?}");
        }
    }
}
