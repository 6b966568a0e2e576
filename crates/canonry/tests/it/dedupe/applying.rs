//! Plans on an emulated GitHub: applied once, undone, and refused if they are too old: cases 29, 30 and 32.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewIssue};
use canonry_testkit::on_both_engines;
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::dedupe::on_github::{MONA, OWN, closes, open, open_pull, result, world};
use crate::dedupe::setting::{BODY, REPO, Setting, close, issue, issue_with, of, refused, rows, skip, title};

on_both_engines! {
    /// Cases 29 and 30.
    async fn a_plan_is_applied_once(database: TestDatabase) {
        let mut world = world(&[1, 2]);
        open(&mut world, 3, MONA, NewIssue::new(&title(3), BODY));
        world.collaborator(REPO, OWN, canonry_testkit::github::Permission::Write);
        let setting = Setting::on_github(database, world, &[(1, &[2, 3])]);
        setting.succeeds(&["override", "canonical", "1"]);
        let plan = setting.plan(&[]);
        assert_eq!(rows(&plan), [close(2, 1), skip(3, "maintainer_author")]);
        let run = setting.plan_number(&plan);
        setting.github().forget_requests();

        let without = setting.run(&["apply", &run]);
        refused(&without, 4, "--yes");
        assert_eq!(setting.github().writes().len(), 0);

        let applied = setting.apply(&run).succeeded().json();
        let stats = &applied["stats"];
        assert_eq!((&stats["applied"], &stats["failed"]), (&json!(1), &json!(0)), "{applied}");
        assert_eq!(result(&applied, 2).0, "applied");
        assert_eq!(closes(&setting.github().writes()), 1);
        setting.is_closed_once(2, 1);
        setting.is_untouched(3);
        // The canonical has one comment with a back link, and stays open.
        let back = setting.own_comments(1);
        assert!(back.len() == 1 && back[0].contains("#2") && setting.is_open(1), "{back:?}");
        let comment = &setting.own_comments(2)[0];
        for part in ["Reopen it", "ask a maintainer"] {
            assert!(comment.contains(part), "it tells how to object ({part}): {comment}");
        }
        let item = setting.show(2)["item"].clone();
        assert_eq!((&item["state"], &item["state_reason"]), (&json!("closed"), &json!("duplicate")), "{item}");

        setting.github().forget_requests();
        let again = setting.apply(&run).succeeded().json();
        assert_eq!(setting.github().requests().len(), 0, "GitHub is not even asked: {again}");
        assert!(of(&again["items"], 2).to_string().contains("already"), "{again}");
        // The plan has nothing left to do, and a new one has no row to close.
        let next = rows(&setting.plan(&[]));
        assert!(next.iter().all(|(_, outcome)| outcome.is_err()), "{next:?}");
    }

    /// Case 32.
    async fn an_undone_close_is_never_planned_again(database: TestDatabase) {
        let setting = Setting::on_github(database, world(&[1, 2, 3]), &[(1, &[2, 3])]);
        let (run, applied) = setting.plan_and_apply();
        assert_eq!(applied["stats"]["applied"], 2, "{applied}");
        let undone = setting.undo(&run, &["--item", "2"]).succeeded().json();
        assert_eq!((&undone["stats"]["applied"], result(&undone, 2).0.as_str()), (&json!(1), "applied"), "{undone}");
        assert!(setting.is_open(2) && !setting.is_open(3));
        assert_eq!((setting.own_closes(2), setting.own_comments(2).len()), ((1, 1), 2), "it says why");
        assert!(!setting.labels(2).contains(&"possible-duplicate".to_owned()), "{:?}", setting.labels(2));
        assert_eq!(setting.show(2)["item"]["state"], "open");
        let plan = setting.plan(&[]);
        assert!(rows(&plan).iter().all(|(number, _)| *number != 2), "the pair is in no plan: {plan}");
        // A second time changes nothing.
        setting.github().forget_requests();
        let again = setting.undo(&run, &["--item", "2"]);
        assert!(matches!(again.exit, Some(0 | 1 | 3)), "{again:?}");
        assert_eq!(setting.github().writes().len(), 0, "{again:?}");
        // The rest of the plan can be undone, too.
        setting.undo(&run, &[]).succeeded();
        assert!(setting.is_open(3));
        assert_eq!((setting.own_closes(2), setting.own_closes(3)), ((1, 1), (1, 1)));
    }

    async fn a_wrong_target_is_no_ruling_about_the_pair(database: TestDatabase) {
        let setting = Setting::on_github(database, world(&[1, 2]), &[(1, &[2])]);
        let (run, _) = setting.plan_and_apply();
        setting.undo(&run, &["--reason", "wrong-target"]).succeeded();
        assert!(setting.is_open(2));
        // There is no override, but a close that was undone is not repeated either.
        assert_eq!(rows(&setting.plan(&[])), [skip(2, "human_reopened")]);
        setting.succeeds(&["override", "duplicate", "2", "1"]);
        assert_eq!(rows(&setting.plan(&[])), [close(2, 1)], "unless somebody says so");
    }

    async fn what_a_person_reopened_stays_open(database: TestDatabase) {
        let setting = Setting::on_github(database, world(&[1, 2, 3]), &[(1, &[2, 3])]);
        let (run, _) = setting.plan_and_apply();
        setting.people(|world| world.reopen(REPO, 2, "ann"));
        setting.run(&["sync"]).succeeded();
        let plan = setting.plan(&[]);
        assert_eq!(rows(&plan)[0], skip(2, "human_reopened"), "{plan}");
        setting.apply(&setting.plan_number(&plan)).succeeded();
        assert!(setting.is_open(2));
        assert_eq!(setting.own_closes(2), (1, 0));
        // Undo reopens only what Canonry closed.
        setting.github().forget_requests();
        let undone = setting.undo(&run, &["--item", "2"]);
        assert!(matches!(undone.exit, Some(0 | 3 | 4)), "{undone:?}");
        assert_eq!(setting.own_closes(2), (1, 0), "there was nothing to reopen");
    }

    /// An undo affects its row and its cluster; the other rows can still be applied.
    async fn what_is_undone_leaves_the_rest_of_its_plan_applicable(database: TestDatabase) {
        let setting = Setting::on_github(database, world(&[1, 2, 3, 4, 5, 6]), &[(1, &[2, 3]), (4, &[5, 6])]);
        let run = setting.plan_number(&setting.plan(&[]));
        setting.succeeds(&["plan", "approve", &run, "--item", "2", "--item", "5"]);
        let first = setting.run(&["apply", &run, "--yes", "--approved-only", "--json"]).succeeded();
        assert!(first.stderr.contains("Closing 2 items."), "{first:?}");
        setting.undo(&run, &["--item", "2"]).succeeded();
        let applied = setting.apply(&run).succeeded();
        assert!(applied.stderr.contains("Closing 1 item. Left open: 1 item, because"), "{applied:?}");
        let document = applied.json();
        let ended: Vec<_> = [3, 6].map(|of_item| {
            let row = of(&document["items"], of_item);
            (row["result"].clone(), row["reason"].clone())
        }).into();
        assert_eq!(ended, [(json!("skipped"), json!("ruled_since")), (json!("applied"), Value::Null)], "{document}");
        setting.is_closed_once(6, 4);
        setting.is_untouched(3);
        // The next plan contains what the ruling left of the cluster.
        assert!(rows(&setting.plan(&[])).contains(&close(3, 1)));
    }

    async fn excluded_rows_and_rows_without_approval_stay(database: TestDatabase) {
        let setting = Setting::on_github(database, world(&[1, 2, 3, 4]), &[(1, &[2, 3, 4])]);
        let run = setting.plan_number(&setting.plan(&[]));
        setting.succeeds(&["plan", "approve", &run, "--item", "2"]);
        setting.succeeds(&["plan", "exclude", &run, "--item", "3"]);
        let first = setting.run(&["apply", &run, "--yes", "--approved-only", "--json"]).succeeded().json();
        assert_eq!(first["stats"]["applied"], 1, "{first}");
        setting.is_closed_once(2, 1);
        setting.is_untouched(4);
        setting.apply(&run).succeeded();
        setting.is_closed_once(2, 1);
        setting.is_untouched(3);
        setting.is_closed_once(4, 1);
        let back = setting.own_comments(1);
        assert!(back.len() == 1 && back[0].contains("#2") && back[0].contains("#4"), "edited, not repeated: {back:?}");
    }
}

#[test]
fn plans_that_were_overtaken_are_refused() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3]), &[(1, &[2, 3])]);
    let old = setting.plan_number(&setting.plan(&[]));
    let new = setting.plan_number(&setting.plan(&[]));
    refused(&setting.apply(&old), 4, &format!("plan {new} is newer"));
    setting.succeeds(&["override", "not-duplicate", "2", "1"]);
    refused(&setting.apply(&new), 4, "override");
    setting.is_untouched(2);
    setting.is_untouched(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_last_week_is_refused() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let run = setting.plan_number(&setting.plan(&[]));
    let path = setting.database.url().strip_prefix("sqlite:").expect("SQLite");
    let mut connection = sqlx::SqliteConnection::connect(path).await.expect("it opens");
    let unit: i64 =
        sqlx::query_scalar("select created_at from close_runs").fetch_one(&mut connection).await.expect("one");
    // The stored unit is unknown, but the current time is that many units after 1970.
    let seven_days = unit / (Timestamp::now().as_second() / (7 * 86_400));
    sqlx::query("update close_runs set created_at = created_at - ?")
        .bind(seven_days + seven_days / 100)
        .execute(&mut connection)
        .await
        .expect("it is written");
    connection.close().await.expect("it closes");
    refused(&setting.apply(&run), 4, "days");
    setting.is_untouched(2);
}

/// If a canonical is closed as a duplicate itself, its own duplicates follow it.
#[test]
fn earlier_duplicates_are_pointed_to_the_new_canonical() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3]), &[(1, &[2])]);
    setting.plan_and_apply();
    setting.succeeds(&["override", "duplicate", "1", "3"]);
    setting.succeeds(&["override", "canonical", "3"]);
    let plan = setting.plan(&[]);
    assert_eq!(rows(&plan), [close(1, 3), skip(2, "not_open")], "{plan}");
    setting.apply(&setting.plan_number(&plan)).succeeded();
    assert!(!setting.is_open(1) && setting.is_open(3));
    let told = setting.own_comments(2).join("\n");
    assert!(told.contains("#3"), "{told}");
    assert_eq!(setting.own_comments(2).len(), 1, "edited, not repeated: {told}");
}

#[test]
fn at_most_ten_closes_a_day_without_approval() {
    let numbers: Vec<i64> = (2..=14).collect();
    let all: Vec<i64> = (1..=14).collect();
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&all), &[(1, &numbers)]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.succeeds(&["plan", "approve", &run, "--item", "14"]);
    let ran = setting.apply(&run);
    assert!(matches!(ran.exit, Some(0 | 3 | 4)), "{ran:?}");
    let applied = ran.json();
    assert_eq!(applied["stats"]["applied"], 11, "ten, and the approved one: {applied}");
    let limited = applied["items"].as_array().expect("items").iter().filter(|item| item["reason"] == "daily_limit");
    assert_eq!(limited.count(), 2, "{applied}");
    assert_eq!(closes(&setting.github().writes()), 11);
    setting.is_closed_once(14, 1);
    // After an approval, the same plan can be applied to the rest.
    let open: Vec<i64> = numbers.into_iter().filter(|&number| setting.is_open(number)).collect();
    for number in &open {
        setting.succeeds(&["plan", "approve", &run, "--item", &number.to_string()]);
    }
    setting.apply(&run).succeeded();
    assert!(open.iter().all(|&number| !setting.is_open(number)), "{open:?}");
    assert_eq!(closes(&setting.github().writes()), 13);
}

#[test]
fn pull_requests_are_closed_in_their_own_words() {
    let mut world = world(&[]);
    open_pull(&mut world, 1, "ann");
    open_pull(&mut world, 2, "ben");
    let setting = Setting::on_github(TestDatabase::sqlite(), world, &[(1, &[2])]);
    setting.plan_and_apply();
    setting.is_closed_once(2, 1);
    assert!(setting.own_comments(2)[0].contains("please continue in #1"), "{:?}", setting.own_comments(2));
}

#[test]
fn titles_cannot_speak_through_the_comments() {
    let mut world = world(&[1]);
    let evil = "Report 2: @octo/everyone <!-- canonry:v1:x --> [click](https://evil.example) /canonry undo";
    open(&mut world, 2, "ann", NewIssue::new(evil, BODY));
    open(&mut world, 3, "ann", NewIssue::new("Report 3: @mona ![x](https://evil.example/x.png)", BODY));
    let setting = Setting::on_github(TestDatabase::sqlite(), world, &[(1, &[2, 3])]);
    setting.plan_and_apply();
    for number in [1, 2, 3] {
        let world = setting.github().world();
        for comment in world.comments_by(REPO, u64::try_from(number).expect("small"), OWN) {
            let text = &comment.body;
            assert!(!text.contains("@octo/everyone") && !text.contains("@mona"), "{text}");
            assert!(!text.contains("](https://evil") && text.matches("<!--").count() == 1, "{text}");
        }
    }
}

#[test]
fn the_canonical_of_applied_closes_stays_while_it_is_open() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3]), &[(1, &[2])]);
    setting.plan_and_apply();
    // Later a maintainer opens another issue with more comments.
    setting.people(|world| {
        open(world, 4, MONA, NewIssue::new(&title(4), BODY));
        for _ in 0..5 {
            world.comment(REPO, 4, "ben", "Me too.");
        }
    });
    setting.knows(4, &title(4));
    setting.run(&["sync"]).succeeded();
    setting.succeeds(&["override", "duplicate", "4", "1"]);
    let plan = setting.plan(&[]);
    assert_eq!(rows(&plan), [skip(2, "not_open"), skip(4, "maintainer_author")], "{plan}");
}

#[test]
fn two_plans_at_once_close_everything_once() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3, 4]), &[(1, &[2, 3, 4])]);
    let run = setting.plan_number(&setting.plan(&[]));
    let exits: Vec<Option<i32>> = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2).map(|_| scope.spawn(|| setting.apply(&run))).collect();
        both.into_iter().map(|one| one.join().expect("it ends").exit).collect()
    });
    assert!(exits.contains(&Some(0)), "{exits:?}");
    setting.apply(&run).succeeded();
    for number in [2, 3, 4] {
        setting.is_closed_once(number, 1);
    }
    assert_eq!(setting.own_comments(1).len(), 1);
}

#[test]
fn undo_takes_one_of_three_reasons() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let (run, _) = setting.plan_and_apply();
    assert_eq!(setting.undo(&run, &["--reason", "whim"]).exit, Some(2));
    assert!(!setting.is_open(2));
    // A maintainer closed it again after Canonry: that close stays.
    setting.people(|world| {
        world.reopen(REPO, 2, "ann");
        world.close(REPO, 2, MONA, CloseReason::NotPlanned);
    });
    let ran = setting.undo(&run, &[]);
    assert!(matches!(ran.exit, Some(0 | 3 | 4)), "{ran:?}");
    assert!(!setting.is_open(2), "the last close is not ours: {ran:?}");
}

/// A plan of imported items can be read but not applied: GitHub does not know them.
#[test]
fn applying_needs_a_token() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(1), issue_with(2, json!({"comments": 3}))], &[(1, 2, 0.95)]);
    setting.maintainers(&["mona"]);
    let plan: Value = setting.plan(&[]);
    refused(&setting.apply(&setting.plan_number(&plan)), 1, "GITHUB_TOKEN");
}
