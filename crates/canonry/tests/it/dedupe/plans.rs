//! What a plan closes, what it skips and why: cases 23 to 28, and every reason that a plan can find without GitHub.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use insta::assert_snapshot;
use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _};

use crate::dedupe::questions::{no, yes};
use crate::dedupe::setting::{Setting, close, clusters, issue, issue_with, of, rows, skip};
use crate::place::Ran;

fn canonical(number: i64) -> Value {
    issue_with(number, json!({"author": "mona", "comments": 9}))
}

on_both_engines! {
    /// Case 23, and the minimum confidence as an option.
    async fn a_low_confidence_is_skipped(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(
            &[issue(1), canonical(2), issue(3), issue(4), issue(5)],
            &[(1, 2, 0.95), (3, 2, 0.88), (4, 2, 0.90), (5, 2, 0.8999)],
        );
        setting.maintainers(&["mona"]);
        let plan = setting.plan(&[]);
        assert_eq!(rows(&plan), [close(1, 2), skip(3, "low_confidence"), close(4, 2), skip(5, "low_confidence")]);
        let row = of(&plan["items"], 1);
        assert_eq!((&row["confidence"], &row["approved"], &row["skip_reason"]), (&json!(0.95), &Value::Null, &Value::Null));
        assert_eq!(of(&plan["items"], 3)["confidence"], 0.88);
        let strict = setting.plan(&["--min-close", "0.93"]);
        assert_eq!(
            rows(&strict),
            [close(1, 2), skip(3, "low_confidence"), skip(4, "low_confidence"), skip(5, "low_confidence")]
        );
        let lax = setting.plan(&["--min-close", "0.86"]);
        assert_eq!(rows(&lax), [close(1, 2), close(3, 2), close(4, 2), close(5, 2)]);
    }

    /// Case 24, and the order of the reasons if several apply.
    async fn each_member_is_skipped_for_its_own_reason(database: TestDatabase) {
        let setting = Setting::on(database);
        let mut lines = vec![
            canonical(10),
            issue_with(11, json!({"author": "mona"})),
            issue_with(12, json!({"assignees": ["ben", "Mona"]})),
            issue_with(13, json!({"author": null})),
            issue_with(14, json!({"state": "closed", "author": null})),
            issue(15),
            issue_with(16, json!({"assignees": null})),
            issue_with(17, json!({"assignees": ["ben"]})),
            issue_with(18, json!({"author": "mona", "assignees": ["mona"]})),
            issue_with(19, json!({"labels": ["Security"]})),
        ];
        let edges: Vec<(i64, i64, f64)> =
            [11, 12, 13, 14, 16, 17, 18, 19].into_iter().map(|from| (from, 10, 0.95)).chain([(10, 15, 0.95)]).collect();
        lines.push(issue(30));
        setting.with_edges(&lines, &edges);
        setting.maintainers(&["mona"]);
        assert_eq!(rows(&setting.plan(&[])), [
            skip(11, "maintainer_author"),
            skip(12, "maintainer_assignee"),
            skip(13, "uncertain_maintainer_identity"),
            skip(14, "not_open"),
            skip(15, "missing_accepted_edge"),
            skip(16, "uncertain_maintainer_identity"),
            close(17, 10),
            skip(18, "maintainer_author"),
            skip(19, "protected_label"),
        ]);
    }

    async fn what_many_items_mention_is_no_evidence(database: TestDatabase) {
        let setting = Setting::on(database);
        let body = |at: i64, cache: &str| format!("Report {at}: the reader stops in `{cache}` after {at} hours of `common_cache` and a walk.");
        let mut lines = vec![
            issue_with(1, json!({"body": body(1, "rare_cache")})),
            issue_with(2, json!({"body": body(2, "rare_cache"), "author": "mona", "comments": 9})),
        ];
        lines.extend((3..=30).map(|at| issue_with(at, json!({"body": body(at, "other_cache")}))));
        setting.with_edges(&lines, &[(1, 2, 0.95)]);
        setting.maintainers(&["mona"]);
        let plan = setting.plan(&[]);
        assert_eq!(of(&plan["items"], 1)["evidence"]["facts"], json!(["both mention `rare_cache`"]));
    }

    /// Case 25.
    async fn a_chain_is_closed_onto_its_canonical_or_not_at_all(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(&[issue(1), issue(2), canonical(3)], &[(1, 2, 0.94), (2, 3, 0.96)]);
        setting.maintainers(&["mona"]);
        assert_eq!(rows(&setting.plan(&[])), [skip(1, "missing_accepted_edge"), close(2, 3)]);
        let fallback = setting.plan(&["--target-policy", "direct-fallback"]);
        let found = rows(&fallback);
        assert_eq!(found[1], close(2, 3));
        assert!(found[0] == close(1, 3) || found[0].1.is_err(), "never onto #2: {fallback}");
        if found[0].1.is_ok() {
            assert_eq!(of(&fallback["items"], 1)["confidence"], 0.94, "the weakest link: {fallback}");
        }

        setting.judge_says(|question| {
            assert_eq!((question.source, question.candidates.as_slice()), (1, &[3][..]), "exactly the missing pair");
            yes(3, 0.97)
        });
        let document = setting.with_judge(&["plan-close", "--judge-missing", "--json"]).succeeded().json();
        assert_eq!((rows(&document), setting.questions().len()), (vec![close(1, 3), close(2, 3)], 1));
        let again = setting.with_judge(&["plan-close", "--judge-missing", "--json"]).succeeded().json();
        assert_eq!((rows(&again), setting.questions().len()), (vec![close(1, 3), close(2, 3)], 1), "nothing is missing now");
    }

    /// Case 25 without the judge's confirmation: the judge is not asked a second time either.
    async fn a_missing_pair_that_is_refused_stays_open(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(&[issue(1), issue(2), canonical(3)], &[(1, 2, 0.94), (2, 3, 0.96)]);
        setting.maintainers(&["mona"]);
        for _ in 0..2 {
            let document = setting.with_judge(&["plan-close", "--judge-missing", "--json"]).succeeded().json();
            assert_eq!(rows(&document), [skip(1, "missing_accepted_edge"), close(2, 3)]);
            assert_eq!(setting.questions().len(), 1);
        }
        // The edge that joined it still exists.
        assert_eq!(setting.accepted(1)[0]["target"], 2);
    }

    /// Case 26, with a third item that is a duplicate of one of the two.
    async fn of_a_mutual_pair_one_is_closed(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(&[issue(1), issue(2), issue(3)], &[(1, 2, 0.95), (2, 1, 0.97), (3, 1, 0.95)]);
        setting.maintainers(&["mona"]);
        for policy in ["canonical-only", "direct-fallback"] {
            assert_eq!(rows(&setting.plan(&["--target-policy", policy])), [close(2, 1), close(3, 1)], "{policy}");
        }
    }

    /// Case 28: the pair is in no plan, and neither item is a target of the other.
    async fn people_decide_what_is_planned(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(
            &[issue(1), canonical(2), issue(3), issue(4), issue(11), issue(12), canonical(13)],
            &[(1, 2, 0.95), (3, 2, 0.95), (11, 12, 0.95), (12, 13, 0.95)],
        );
        setting.maintainers(&["mona"]);
        setting.succeeds(&["override", "not-duplicate", "2", "1"]);
        // The ends of a chain: they are in one cluster because of the third item, and must not share a plan.
        setting.succeeds(&["override", "not-duplicate", "11", "13"]);
        let found = rows(&setting.plan(&["--target-policy", "direct-fallback"]));
        assert_eq!(found, [close(3, 2), skip(11, "conflicting_override"), close(12, 13)]);

        setting.succeeds(&["override", "canonical", "3"]);
        let found = rows(&setting.plan(&[]));
        assert!(!found.contains(&close(3, 2)), "{found:?}");
        assert_eq!(found[0], skip(2, "maintainer_author"), "{found:?}");
        // An override is an accepted edge with confidence 1.
        setting.succeeds(&["override", "duplicate", "4", "3"]);
        let plan = setting.plan(&[]);
        assert_eq!(rows(&plan)[1], close(4, 3), "{plan}");
        assert_eq!(of(&plan["items"], 4)["confidence"].as_f64(), Some(1.0));
    }

    async fn single_rows_are_approved_and_excluded(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(&[issue(1), canonical(2), issue(3), issue(4)], &[(1, 2, 0.95), (3, 2, 0.95), (4, 2, 0.86)]);
        setting.maintainers(&["mona"]);
        let plan = setting.plan(&[]);
        let run = plan["plan"]["id"].as_i64().expect("a plan").to_string();
        setting.succeeds(&["plan", "approve", &run, "--item", "1"]);
        setting.succeeds(&["plan", "exclude", &run, "--item", "3"]);
        let exported = setting.run(&["plan", "export", &run, "--format", "json"]).succeeded().json();
        let approved: Vec<&Value> = [1, 3, 4].into_iter().map(|number| &of(&exported["items"], number)["approved"]).collect();
        assert_eq!(approved, [&json!(true), &json!(false), &Value::Null], "{exported}");
        // People can change their decision.
        setting.succeeds(&["plan", "approve", &run, "--item", "1", "--item", "3"]);
        let exported = setting.run(&["plan", "export", &run, "--format", "json"]).succeeded().json();
        assert_eq!(of(&exported["items"], 3)["approved"], true, "{exported}");
        // An exclusion and an approval also apply to later plans; a lifted exclusion does not come back.
        setting.succeeds(&["plan", "exclude", &run, "--item", "3"]);
        let next = setting.plan(&[]);
        assert_eq!(rows(&next), [close(1, 2), skip(3, "excluded"), skip(4, "low_confidence")]);
        assert_eq!((&of(&next["items"], 1)["approved"], &of(&next["items"], 3)["approved"]), (&json!(true), &json!(false)));
        assert!(of(&next["items"], 3)["approved_at"].is_string(), "{next}");
        let listed = setting.run(&["override", "list", "--json"]).succeeded().json();
        let excluded = &listed["overrides"][0];
        assert_eq!((&excluded["kind"], &excluded["item"], &excluded["other"]), (&json!("excluded"), &json!(3), &json!(2)));
        let run = next["plan"]["id"].as_i64().expect("a plan").to_string();
        let shown = setting.run(&["plan", "show", &run]).succeeded();
        assert!(shown.stdout.contains("excluded by a person on"), "{shown:?}");
        setting.succeeds(&["plan", "approve", &run, "--item", "3"]);
        let exported = setting.run(&["plan", "export", &run, "--format", "json"]).succeeded().json();
        assert_eq!((&of(&exported["items"], 3)["action"], &of(&exported["items"], 3)["approved"]), (&json!("close"), &json!(true)));
        assert_eq!(rows(&setting.plan(&[])), [close(1, 2), close(3, 2), skip(4, "low_confidence")]);
        // An exclusion can also be lifted by its number among the rulings.
        let run = setting.plan_number(&setting.plan(&[]));
        setting.succeeds(&["plan", "exclude", &run, "--item", "1"]);
        let listed = setting.run(&["override", "list", "--json"]).succeeded().json();
        setting.succeeds(&["override", "remove", &listed["overrides"][0]["id"].to_string()]);
        assert_eq!(rows(&setting.plan(&[]))[0], close(1, 2));
        // An approval is for a pair in its current state: after a change, a person must review it again.
        let run = setting.plan_number(&setting.plan(&[]));
        setting.succeeds(&["plan", "approve", &run, "--item", "1", "--item", "3"]);
        setting.import(&[issue_with(3, json!({"assignees": ["ben"]}))]);
        let next = setting.plan(&[]);
        assert_eq!((&of(&next["items"], 1)["approved"], &of(&next["items"], 3)["approved"]), (&json!(true), &Value::Null), "{next}");
        for wrong in [&[run.as_str(), "--item", "99"][..], &["4711", "--item", "1"]] {
            let ran = setting.run(&[&["plan", "approve"], wrong].concat());
            assert!(matches!(ran.exit, Some(1 | 2)) && !ran.stderr.is_empty(), "{ran:?}");
        }
    }
}

/// Case 27: all tables are unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(1), canonical(2)], &[(1, 2, 0.95)]);
    setting.maintainers(&["mona"]);
    let before = table_sizes(&setting).await;
    let plan = setting.plan(&["--dry-run"]);
    assert_eq!(rows(&plan), [close(1, 2)]);
    assert!(plan["plan"]["id"].is_null(), "{plan}");
    assert_eq!(table_sizes(&setting).await, before);
    let ran = setting.run(&["apply", "1", "--yes"]);
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    setting.plan(&[]);
    assert_ne!(table_sizes(&setting).await, before);
}

async fn table_sizes(setting: &Setting) -> Vec<(String, i64)> {
    let path = setting.database.url().strip_prefix("sqlite:").expect("SQLite");
    let mut connection = sqlx::SqliteConnection::connect(path).await.expect("it opens");
    let names =
        sqlx::query("select name from sqlite_master where type = 'table' and name not like '%fts%' order by name")
            .fetch_all(&mut connection)
            .await
            .expect("it answers");
    let mut sizes = Vec::new();
    for name in names {
        let name: String = name.get(0);
        let statement = sqlx::AssertSqlSafe(format!("select count(*) from \"{name}\""));
        let size: i64 = sqlx::query_scalar(statement).fetch_one(&mut connection).await.expect("it answers");
        sizes.push((name, size));
    }
    sizes
}

#[test]
fn who_maintains_must_be_known_only_to_apply() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(1), issue(2)], &[(1, 2, 0.95)]);
    let ran = setting.run(&["plan-close"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.contains("`canonry apply` needs the list"), "{ran:?}");
}

#[test]
fn a_closed_canonical_takes_nobody() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(1), issue_with(2, json!({"state": "closed"})), issue(3)], &[(1, 2, 0.95), (3, 2, 0.95)]);
    setting.maintainers(&["mona"]);
    // Without an override, an open member replaces it.
    let found = rows(&setting.plan(&["--target-policy", "direct-fallback"]));
    assert!(found.iter().all(|(_, outcome)| *outcome != Ok(2)), "{found:?}");
    setting.succeeds(&["override", "canonical", "2"]);
    assert_eq!(rows(&setting.plan(&[])), [skip(1, "unsafe_target"), skip(3, "unsafe_target")]);
}

#[test]
fn what_a_pull_request_is_about_to_fix_is_left_alone() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(1), canonical(2), issue(3), issue(4)], &[(1, 2, 0.95), (3, 2, 0.95), (4, 2, 0.95)]);
    setting.maintainers(&["mona"]);
    let pull = |number: i64, state: &str, body: &str| json!({"type": "pr", "number": number, "title": format!("Change {number}"), "body": body, "state": state});
    setting.import(&[
        pull(50, "open", "Fixes #1"),
        pull(51, "closed", "Fixes #3"),
        pull(52, "open", "See `fixes #4`\n\n> closes #4"),
    ]);
    assert_eq!(rows(&setting.plan(&[])), [skip(1, "in_progress"), close(3, 2), close(4, 2)]);
}

#[test]
fn protected_labels_are_configurable() {
    let setting = Setting::sqlite();
    let labelled = |number: i64, label: &str| issue_with(number, json!({"labels": [label]}));
    setting.with_edges(
        &[labelled(1, "security"), canonical(2), labelled(3, "keep"), labelled(4, "bug")],
        &[(1, 2, 0.95), (3, 2, 0.95), (4, 2, 0.95)],
    );
    setting.maintainers(&["mona"]);
    assert_eq!(rows(&setting.plan(&[])), [skip(1, "protected_label"), close(3, 2), close(4, 2)]);
    setting.place.write("canonry.yml", "close:\n  protectedLabels: [Keep, later]\n  minClose: 0.94\n");
    let plan = setting.plan(&["--config", "canonry.yml"]);
    assert_eq!(rows(&plan), [close(1, 2), skip(3, "protected_label"), close(4, 2)]);
}

#[test]
fn a_plan_can_be_taken_along() {
    let setting = Setting::sqlite();
    let evil = "Report 1: a, \"quoted\" | title\u{1b}[31m with =cmd() <b>@ann</b>";
    setting.with_edges(&[issue_with(1, json!({"title": evil})), canonical(2), issue(3)], &[(1, 2, 0.95), (3, 2, 0.86)]);
    setting.maintainers(&["mona"]);
    let plan = setting.plan(&[]);
    let run = plan["plan"]["id"].as_i64().expect("a plan").to_string();
    let export = |format: &str| setting.run(&["plan", "export", &run, "--format", format]).succeeded().stdout;
    let markdown = export("markdown");
    assert!(markdown.contains("#1") && markdown.contains("#2") && markdown.contains("low_confidence"), "{markdown}");
    assert!(markdown.lines().filter(|line| line.starts_with('|')).count() >= 4, "a table: {markdown}");
    assert!(!markdown.contains('\u{1b}') && !markdown.contains("<b>@ann"), "{markdown}");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert!(table.windows(2).all(|two| columns(two[0]) == columns(two[1])), "a title cannot add a column: {markdown}");

    let csv = export("csv");
    let mut lines = csv.lines();
    let header = lines.next().expect("a header");
    for column in ["number", "target", "action", "skip_reason", "confidence", "approved"] {
        assert!(header.split(',').any(|name| name == column), "{column}: {header}");
    }
    assert_eq!(lines.count(), 2, "{csv}");
    assert!(!csv.contains(",=cmd") && !csv.contains('\u{1b}'), "{csv}");

    let document: Value = serde_json::from_str(&export("json")).expect("JSON");
    assert_eq!(rows(&document), rows(&plan));
    assert!(of(&document["items"], 1).get("evidence").is_some(), "{document}");
    assert_eq!(setting.run(&["plan", "export", &run, "--format", "xml"]).exit, Some(2));
}

#[test]
fn a_plan_is_a_table_that_people_can_read() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(1), canonical(2), issue(3)], &[(1, 2, 0.95), (3, 2, 0.86)]);
    setting.maintainers(&["mona"]);
    let shown = setting.run(&["plan-close"]).succeeded().stdout;
    for part in ["#1", "#2", "#3", "86 %", "canonry apply 1 --yes", "canonry plan exclude 1 --item NUMBER"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("confidence is too low"), "{shown}");
    let at = |columns: &str| {
        let mut command = setting.place.command(&["plan", "show", "1"]);
        command.env("CANONRY_DATABASE_URL", setting.database.url()).env("COLUMNS", columns);
        Ran::of(command.output().expect("the program starts")).succeeded().stdout
    };
    assert_snapshot!(at("200"), @"
    Plan 1, made just now: 1 item to close, 1 left open.

    item                                         action      duplicate of                                 sure  why
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    #1 Report 1: the exporter writes its summa…  close       #2 Report 2: the exporter writes its summa…  95 %  Both tell of the same summary that is written twice.
    #3 Report 3: the exporter writes its summa…  leave open  #2 Report 2: the exporter writes its summa…  86 %  the confidence is too low

    To close: canonry apply 1 --yes
    ");
    assert_snapshot!(at("80"), @"
    Plan 1, made just now: 1 item to close, 1 left open.

    item                 action      duplicate of         sure  why
    ───────────────────────────────────────────────────────────────────────────────
    #1 Report 1: the     close       #2 Report 2: the     95 %  Both tell of the
    exporter writes its              exporter writes its        same summary that
    summa…                           summa…                     is written twice.
    #3 Report 3: the     leave open  #2 Report 2: the     86 %  the confidence is
    exporter writes its              exporter writes its        too low
    summa…                           summa…

    To close: canonry apply 1 --yes
    ");
    assert_snapshot!(at("50"), @"
    Plan 1, made just now: 1 item to close, 1 left open.

    #1 Report 1: the exporter writes its summa…
      action        close
      duplicate of  #2 Report 2: the exporter writes
                    its summa…
      sure          95 %
      why           Both tell of the same summary that
                    is written twice.
    #3 Report 3: the exporter writes its summa…
      action        leave open
      duplicate of  #2 Report 2: the exporter writes
                    its summa…
      sure          86 %
      why           the confidence is too low

    To close: canonry apply 1 --yes
    ");
}

/// Case 26 by people: whichever stays, the other is closed.
#[test]
fn of_a_pair_that_people_ruled_both_ways_one_is_closed() {
    let setting = Setting::sqlite();
    let written_to = |number: i64| issue_with(number, json!({"comments": 9}));
    setting.import(&[issue(1), written_to(2), written_to(11), issue(12)]);
    setting.maintainers(&["mona"]);
    for (item, other) in [("1", "2"), ("2", "1"), ("11", "12"), ("12", "11")] {
        setting.succeeds(&["override", "duplicate", item, other]);
    }
    assert_eq!(rows(&setting.plan(&[])), [close(1, 2), close(12, 11)]);
}

/// A later run of the judge that skips known pairs removes nothing from a plan.
#[test]
fn the_evidence_stays_when_the_judge_runs_again() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(1), canonical(2)], &[(1, 2, 0.95)]);
    setting.maintainers(&["mona"]);
    let evidence = || of(&setting.plan(&[])["items"], 1)["evidence"].clone();
    let first = evidence();
    assert!(first.to_string().contains("written twice"), "{first}");
    setting.judge(&[]);
    setting.find_candidates(&[]);
    setting.judge(&[]);
    assert_eq!(evidence(), first);
}

#[test]
fn nothing_to_close_is_an_empty_plan() {
    let setting = Setting::sqlite();
    setting.import(&[issue(1), issue(2)]);
    setting.maintainers(&["mona"]);
    let plan = setting.plan(&[]);
    assert_eq!(rows(&plan), []);
    assert_eq!(clusters(&setting.succeeds(&["canonicalize"])), []);
}

#[test]
fn overrides_name_items_that_exist() {
    let setting = Setting::sqlite();
    setting.import(&[issue(1), issue(2)]);
    for wrong in [&["duplicate", "1", "9"][..], &["not-duplicate", "9", "1"], &["canonical", "9"], &["remove", "77"]] {
        let ran = setting.run(&[&["override"], wrong].concat());
        assert_eq!(ran.exit, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("9") || ran.stderr.contains("77"), "{ran:?}");
    }
    for wrong in
        [&["duplicate", "1", "1"][..], &["duplicate", "1"], &["duplicate", "0", "1"], &["twins", "1", "2"], &[]]
    {
        let ran = setting.run(&[&["override"], wrong].concat());
        assert!(matches!(ran.exit, Some(1 | 2)), "{ran:?}");
    }
    setting.judge_says(|_| no());
}
