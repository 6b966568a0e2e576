//! Pushes to a pull request, followed from one review to the next.

use std::collections::BTreeSet;

use canonry_domain::review::{
    CommitSha, Dismissal, DismissalKind, Dismisser, Earlier, FindingStatus, RepoPath, ReviewerName, Sighting,
    grounding, is_grounded, is_protected, sightings, track,
};
use canonry_review::reviewers::{read_sarif, read_with_rules};
use canonry_review::{HeadTexts, ReviewScope, ScopeRequest, find_scope, findings_of, who_read};
use serde_json::{Value, json};

use crate::repositories::test_repository::TestRepository;

/// What one review leaves to the next.
struct Reviewed {
    head: CommitSha,
    scope: ReviewScope,
    sightings: Vec<Sighting>,
    ledger: Vec<Earlier>,
}

/// Reviews the head of a repository with the built-in rules and a linter's report on everything.
async fn review(
    repository: &TestRepository,
    base: &CommitSha,
    before: Option<&Reviewed>,
    lint: Option<&Value>,
) -> Reviewed {
    let head = repository.head();
    let local = repository.local();
    let request = ScopeRequest { base, head: &head, last: before.map(|before| &before.head), full: false };
    let scope = find_scope(&local, request).await.expect("a scope");
    let earlier: &[Earlier] = before.map_or(&[], |before| &before.ledger);
    let linted = lint.map(|log| read_sarif("lint", log.to_string().as_bytes(), None)).unwrap_or_default();
    let mut spoken_of: BTreeSet<RepoPath> = linted.reported.iter().map(|one| one.path.clone()).collect();
    spoken_of.extend(earlier.iter().map(|one| one.finding.path.clone()));
    let texts = HeadTexts::read(local.git(), &head, &scope.changes, &spoken_of).await.expect("texts");
    let files: Vec<_> = scope.files_read().map(|change| texts.file(change)).collect();
    let heard = vec![read_with_rules(&files), linted];
    let mut all: BTreeSet<RepoPath> = scope.changes.iter().map(|change| change.path.clone()).collect();
    all.extend(spoken_of);
    let paths = earlier.iter().map(|one| one.finding.path.clone()).collect();
    let maps = scope.file_maps(local.git(), &head, &paths, who_read(&heard, &all)).await.expect("maps");
    let now = findings_of(heard, &texts);
    let tracked = track(earlier, &now, &maps, &mut texts.index());
    let sightings = sightings(earlier, now, &tracked, &maps);
    let ledger = sightings.iter().map(|one| Earlier {
        finding: one.finding.clone(),
        fixed: one.status == FindingStatus::Fixed,
        dismissals: one.earlier.map(|at| earlier[at].dismissals.clone()).unwrap_or_default(),
    });
    Reviewed { head, scope, ledger: ledger.collect(), sightings }
}

fn seen(reviewed: &Reviewed) -> Vec<(String, FindingStatus, bool)> {
    let place = |one: &Sighting| {
        let rule = one.finding.witnesses[0].rule.clone().unwrap_or_default();
        let line = one.finding.lines.map_or(0, |lines| lines.first);
        format!("{rule} {}:{line}", one.finding.path)
    };
    let mut seen: Vec<_> = reviewed.sightings.iter().map(|one| (place(one), one.status, one.is_known())).collect();
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    seen
}

fn expect(reviewed: &Reviewed, expected: &[(&str, FindingStatus, bool)]) {
    let expected: Vec<_> =
        expected.iter().map(|(place, status, known)| ((*place).to_owned(), *status, *known)).collect();
    assert_eq!(seen(reviewed), expected);
}

fn lint(results: &[(&str, &str, u32)]) -> Value {
    let result = |(rule, path, line): &(&str, &str, u32)| {
        json!({"ruleId": rule, "message": {"text": format!("{rule} is not allowed")}, "locations": [{"physicalLocation":
            {"artifactLocation": {"uri": path}, "region": {"startLine": line}}}]})
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": results}]})
}

fn dismiss(reviewed: &mut Reviewed, path: &str, by: Dismisser) {
    let one = reviewed.ledger.iter_mut().find(|one| one.finding.path.as_str() == path).expect("a finding");
    let (kind, at) = (DismissalKind::NotUseful, "2026-01-02T03:04:05Z".parse().expect("a time"));
    let protected = is_protected(one.finding.severity, one.finding.category);
    one.dismissals.push(Dismissal { kind, by, code: one.finding.code.clone(), protected, at });
}

/// Sixty lines of code, with one of one's own at a place.
fn code(own: &str) -> String {
    (1..=60).map(|line| if line == 30 { format!("{own}\n") } else { format!("step{line}();\n") }).collect()
}

#[tokio::test]
async fn findings_are_followed_from_push_to_push() {
    let repository = TestRepository::new();
    repository.write("kept.js", code("a();")).write("moved.js", code("b();")).write("fixed.js", code("c();"));
    let base = repository.write("dismissed.js", code("d();")).commit("base");
    repository.branch("topic");
    for file in ["kept.js", "moved.js", "fixed.js", "dismissed.js"] {
        repository.write(file, code("debugger;"));
    }
    repository.commit("push A");
    let mut first = review(&repository, &base, None, None).await;
    let places =
        ["dismissed.js:30", "fixed.js:30", "kept.js:30", "moved.js:30"].map(|place| format!("debug-leftover {place}"));
    expect(&first, &places.each_ref().map(|place| (place.as_str(), FindingStatus::New, false)));
    assert!(first.scope.changes.iter().all(|change| change.hunks.len() == 1));
    dismiss(&mut first, "dismissed.js", Dismisser::Author);

    // Push B: one stays, one moves through a rename and two hundred lines, one is fixed, one is edited elsewhere.
    let top: String = (1..=200).map(|line| format!("first{line}();\n")).collect();
    repository.run(&["mv", "moved.js", "elsewhere.js"]);
    repository.write("elsewhere.js", top + &code("debugger;")).write("fixed.js", code("done();"));
    repository.write("dismissed.js", format!("one();\n{}", code("  debugger;"))).commit("push B");
    let second = review(&repository, &base, Some(&first), None).await;
    assert_eq!(second.scope.reason.to_string(), format!("incremental-from-{}", first.head.short()));
    assert!(!second.scope.read.iter().any(|path| path.as_str() == "kept.js"));
    expect(
        &second,
        &[
            ("debug-leftover dismissed.js:31", FindingStatus::Dismissed, true),
            ("debug-leftover elsewhere.js:230", FindingStatus::Moved, true),
            ("debug-leftover fixed.js:30", FindingStatus::Fixed, true),
            ("debug-leftover kept.js:30", FindingStatus::Same, true),
        ],
    );

    // Push C: the fixed one comes back, and the dismissed one stands on other code.
    repository
        .write("fixed.js", code("debugger;"))
        .write("dismissed.js", code("if (x) { debugger; }"))
        .commit("push C");
    let third = review(&repository, &base, Some(&second), None).await;
    expect(
        &third,
        &[
            ("debug-leftover dismissed.js:30", FindingStatus::Moved, false),
            ("debug-leftover elsewhere.js:230", FindingStatus::Same, true),
            ("debug-leftover fixed.js:30", FindingStatus::Reopened, false),
            ("debug-leftover kept.js:30", FindingStatus::Same, true),
        ],
    );
    // The same commit again says nothing new.
    let again = review(&repository, &base, Some(&third), None).await;
    assert_eq!(again.scope.reason.to_string(), format!("no-changes-since-{}", third.head.short()));
    assert!(again.sightings.iter().all(|one| one.status == FindingStatus::Same && one.is_known()));
}

#[tokio::test]
async fn a_linter_that_does_not_run_fixes_nothing() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", code("a();")).commit("base");
    repository.branch("topic").write("a.js", code("eval(x);")).commit("push A");
    let report = lint(&[("no-eval", "a.js", 30), ("no-step", "a.js", 5)]);
    let first = review(&repository, &base, None, Some(&report)).await;
    let hunks = &first.scope.changes[0].hunks;
    let on_the_change: Vec<bool> =
        first.sightings.iter().map(|one| is_grounded(&one.finding, grounding(hunks, one.finding.lines))).collect();
    assert_eq!(on_the_change, [true, false]);
    repository.write("a.js", format!("zero();\n{}", code("eval(x);"))).commit("push B");
    let without = review(&repository, &base, Some(&first), None).await;
    expect(
        &without,
        &[("no-eval a.js:31", FindingStatus::Moved, true), ("no-step a.js:6", FindingStatus::Moved, true)],
    );
    let clean = review(&repository, &base, Some(&without), Some(&lint(&[("no-eval", "a.js", 31)]))).await;
    expect(&clean, &[("no-eval a.js:31", FindingStatus::Same, true), ("no-step a.js:6", FindingStatus::Fixed, true)]);
}

#[tokio::test]
async fn findings_survive_a_rebase_a_merge_and_a_lost_head() {
    let repository = TestRepository::new();
    repository.write("a.js", code("a();")).write("b.js", "b();\n").commit("base");
    repository.branch("topic").write("a.js", code("debugger;")).commit("push A");
    let base = repository.run(&["rev-parse", "main"]).parse().expect("an id");
    let first = review(&repository, &base, None, None).await;
    repository
        .switch("main")
        .write("a.js", format!("base();\nbase2();\n{}", code("a();")))
        .write("b.js", "b();\nc();\n");
    let base = repository.commit("meanwhile");
    repository.switch("topic").run(&["rebase", "--quiet", "main"]);
    let rebased = review(&repository, &base, Some(&first), None).await;
    expect(&rebased, &[("debug-leftover a.js:32", FindingStatus::Moved, true)]);
    repository.switch("main").write("b.js", "b();\nd();\n");
    let base = repository.commit("more");
    repository.switch("topic").run(&["merge", "--quiet", "--no-edit", "main"]);
    let merged = review(&repository, &base, Some(&rebased), None).await;
    assert_eq!(merged.scope.reason.to_string(), format!("no-changes-since-{}", rebased.head.short()));
    expect(&merged, &[("debug-leftover a.js:32", FindingStatus::Same, true)]);
    let nobody = "1234567890123456789012345678901234567890".parse().expect("an id");
    let lost = Reviewed { head: nobody, ..merged };
    repository.write("a.js", format!("x();\n{}", code("debugger;"))).commit("push");
    let full = review(&repository, &base, Some(&lost), None).await;
    assert_eq!(full.scope.reason.to_string(), "prior-sha-unreachable");
    expect(&full, &[("debug-leftover a.js:31", FindingStatus::Moved, true)]);
    assert!(full.sightings.iter().all(|one| one.finding.witnesses[0].reviewer == ReviewerName::builtin()));
}

/// `cargo test --release -p canonry-review --test it -- --ignored`
#[tokio::test]
#[ignore = "a measurement, for a release build"]
async fn a_large_change_is_reviewed_in_seconds() {
    let repository = TestRepository::new();
    let file = |at: usize, from: usize| -> String {
        (from..from + 100).map(|line| format!("let value{line} = call{}({at}, {line});\n", line % 9)).collect()
    };
    for at in 0..500 {
        repository.write(format!("src/{at}.js"), file(at, 0));
    }
    let base = repository.commit("base");
    repository.branch("topic");
    for at in 0..500 {
        repository.write(format!("src/{at}.js"), file(at, 0) + &file(at, 100));
    }
    repository.commit("push A");
    let names: Vec<String> = (0..500).map(|at| format!("src/{at}.js")).collect();
    let report = |shift: u32| -> Value {
        let at = |one: usize| {
            ("no-call", names[one % 500].as_str(), u32::try_from(101 + one / 500 * 9).expect("small") + shift)
        };
        lint(&(0..5_000).map(at).collect::<Vec<_>>())
    };
    let start = std::time::Instant::now();
    let first = review(&repository, &base, None, Some(&report(0))).await;
    let full = start.elapsed();
    assert_eq!(first.sightings.len(), 5_000);
    for at in 0..500 {
        repository.write(format!("src/{at}.js"), format!("zero();\n{}{}", file(at, 0), file(at, 100)));
    }
    repository.commit("push B");
    let start = std::time::Instant::now();
    let second = review(&repository, &base, Some(&first), Some(&report(1))).await;
    let incremental = start.elapsed();
    assert!(second.sightings.iter().all(|one| one.status == FindingStatus::Moved && one.is_known()));
    assert!(full.as_secs() < 5 && incremental.as_secs() < 5, "{full:?}, {incremental:?}");
}
