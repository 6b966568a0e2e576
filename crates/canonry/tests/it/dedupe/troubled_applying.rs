//! Applying while GitHub loses answers, refuses everything or hits its limits: nothing is done twice, and it can be
//! resumed.

use std::time::{Duration, Instant};

use canonry_store::Store;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::dedupe::on_github::{MONA, OWN, result, world};
use crate::dedupe::setting::{REPO, Setting, of};

#[test]
fn a_run_that_was_stopped_in_the_middle_goes_on() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3, 4]), &[(1, &[2, 3, 4])]);
    let run = setting.plan_number(&setting.plan(&[]));
    // The token becomes invalid after the second close.
    setting
        .github()
        .fault(Fault::on("*", "/**").when(|request| request.path.contains("/issues/4")).always().answer(401));
    let ran = setting.apply(&run);
    assert!(matches!(ran.exit, Some(1 | 3)), "{ran:?}");
    setting.github().clear_faults();
    let again = setting.apply(&run).succeeded().json();
    for number in [2, 3, 4] {
        setting.is_closed_once(number, 1);
    }
    assert_eq!(result(&again, 4).0, "applied", "{again}");
    assert_eq!(setting.own_comments(1).len(), 1, "{:?}", setting.own_comments(1));
}

#[test]
fn a_read_only_repository_fails_every_row_in_words() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.people(|world| world.get_mut(REPO).archived = true);
    let ran = setting.apply(&run);
    assert!(matches!(ran.exit, Some(1 | 3)), "{ran:?}");
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("archived"), "{ran:?}");
    setting.is_untouched(2);
    setting.people(|world| world.get_mut(REPO).archived = false);
    let again = setting.apply(&run);
    assert!(matches!(again.exit, Some(0 | 3)), "{again:?}");
    if setting.is_open(2) {
        assert!(again.stdout.contains("new plan"), "what to do next: {again:?}");
        setting.plan_and_apply();
    }
    setting.is_closed_once(2, 1);
}

#[test]
fn what_bots_say_is_no_reason() {
    let mut world = world(&[1, 2, 3]);
    world.bot("stale[bot]");
    let setting = Setting::on_github(TestDatabase::sqlite(), world, &[(1, &[2, 3])]);
    setting.people(|world| {
        world.label(REPO, 3, OWN, "possible-duplicate");
    });
    setting.run(&["sync"]).succeeded();
    let run = setting.plan_number(&setting.plan(&[]));
    setting.people(|world| {
        world.comment(REPO, 2, "stale[bot]", "This issue is stale.");
    });
    let applied = setting.apply(&run).succeeded().json();
    assert_eq!(applied["stats"]["applied"], 2, "{applied}");
    setting.is_closed_once(2, 1);
    setting.is_closed_once(3, 1);
}

#[test]
fn a_renamed_repository_is_found() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.people(|world| world.rename_repo(REPO, "octo/tiger", MONA));
    let ran = setting.apply(&run);
    assert!(matches!(ran.exit, Some(0 | 1 | 3 | 4)), "{ran:?}");
    let world = setting.github().world();
    let (comments, state) = (world.comments_by("octo/tiger", 2, OWN).len(), world.issue("octo/tiger", 2).state);
    assert_eq!(comments == 1, state == canonry_testkit::github::State::Closed, "both or neither: {ran:?}");
}

/// If the maintainers cannot be determined, nothing is planned.
#[test]
fn planning_needs_github_or_a_list() {
    let setting = Setting::with_world(TestDatabase::sqlite(), world(&[1, 2]));
    setting.run(&["sync"]).succeeded();
    setting.github().fault(Fault::on("GET", "/repos/*/*/collaborators").always().answer(404));
    let ran = setting.run(&["plan-close", "--json"]);
    assert_eq!(ran.exit, Some(4), "{ran:?}");
    setting.maintainers(&["mona"]);
    let plan = setting.plan(&[]);
    assert_eq!(plan["items"], json!([]), "{plan}");
}

/// If a user deleted our comment, the next close still works and posts it at most once.
#[test]
fn a_back_link_that_was_deleted_stops_nothing() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3]), &[(1, &[2, 3])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.succeeds(&["plan", "exclude", &run, "--item", "3"]);
    setting.apply(&run).succeeded();
    setting.people(|world| {
        let back = world.comments_by(REPO, 1, OWN)[0].id;
        world.delete_comment(REPO, back, MONA);
    });
    let rulings = setting.run(&["override", "list", "--json"]).succeeded().json();
    setting.succeeds(&["override", "remove", &rulings["overrides"][0]["id"].to_string()]);
    setting.plan_and_apply();
    setting.is_closed_once(3, 1);
    let back = setting.own_comments(1);
    assert!(back.len() <= 1 && back.iter().all(|text| text.contains("#3")), "{back:?}");
}

#[test]
fn a_close_is_undone_although_its_canonical_is_gone() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let (run, _) = setting.plan_and_apply();
    setting.people(|world| world.delete(REPO, 1, MONA));
    let ran = setting.undo(&run, &[]);
    assert!(matches!(ran.exit, Some(0 | 3)), "{ran:?}");
    assert!(setting.is_open(2), "{ran:?}");
    assert_eq!((setting.own_closes(2), setting.own_comments(2).len()), ((1, 1), 2));
}

/// An item that was deleted after its close cannot be reopened; the rest can.
#[test]
fn items_that_are_gone_are_not_undone() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3, 4]), &[(1, &[2, 3, 4])]);
    let (run, _) = setting.plan_and_apply();
    setting.people(|world| {
        world.delete(REPO, 2, MONA);
        world.lock(REPO, 3, MONA, None);
    });
    let ran = setting.undo(&run, &[]);
    assert_eq!(ran.exit, Some(3), "{ran:?}");
    let undone = ran.json();
    assert_ne!(result(&undone, 2).0, "applied", "{undone}");
    assert!(setting.is_open(4), "{undone}");
    assert_eq!(setting.is_open(3), result(&undone, 3).0 == "applied", "what is reported is so: {undone}");
}

/// A sync imports what people did meanwhile, and changes neither the closed item nor the next plan.
#[test]
fn a_sync_after_applying_changes_nothing() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3]), &[(1, &[2, 3])]);
    setting.plan_and_apply();
    let before = setting.show(2)["item"].clone();
    setting.run(&["sync"]).succeeded();
    let after = setting.show(2)["item"].clone();
    for key in ["state", "state_reason", "content_version", "duplicate_of"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let plan = setting.plan(&[]);
    assert_eq!(
        crate::dedupe::setting::rows(&plan),
        [(2, Err("not_open".to_owned())), (3, Err("not_open".to_owned()))],
        "{plan}"
    );
    setting.github().forget_requests();
    setting.apply(&setting.plan_number(&plan)).succeeded();
    assert_eq!(setting.github().writes().len(), 0);
}

/// A run that is stopped while it has its leases: by a person, or killed. The next run need not wait.
#[test]
fn a_run_that_was_stopped_leaves_nobody_waiting() {
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
        let run = setting.plan_number(&setting.plan(&[]));
        // The second fetch of the item is the one before the first write, which the run has already claimed.
        let (fault, mut gate) = Fault::on("GET", "/repos/*/*/issues/2/timeline").nth(2).hold();
        setting.github().fault(fault);
        let mut child = setting.start(&["apply", &run, "--yes"]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(gate.arrived());
        kill(Pid::from_raw(i32::try_from(child.id()).expect("small")), signal).expect("our child is there");
        child.wait().expect("it ends");
        gate.release();
        setting.github().clear_faults();
        let begun = Instant::now();
        let again = setting.apply(&run).succeeded().json();
        assert_eq!(result(&again, 2).0, "applied", "{signal}: {again}");
        // Otherwise it would wait a minute for the lease of closing, and five for that of writing.
        assert!(begun.elapsed() < Duration::from_secs(30), "{signal}: it waited for {:?}", begun.elapsed());
        setting.is_closed_once(2, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_another_process_says_so() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let run = setting.plan_number(&setting.plan(&[]));
    let store = Store::open_existing(&setting.database.url().parse().expect("a URL")).await.expect("opens");
    let repo = store.repos().find(&REPO.parse().expect("a name")).await.expect("reads").expect("known");
    let now = Timestamp::now();
    let until = now + SignedDuration::from_secs(3);
    assert!(store.close().take_lease(repo.id, "apply-close elsewhere", now, until).await.expect("taken"));
    let ran = setting.run(&["apply", &run, "--yes"]).succeeded();
    let told = "for another process that closes or reopens in this repository";
    assert!(ran.stderr.contains("waiting until ") && ran.stderr.contains(told), "{ran:?}");
    setting.is_closed_once(2, 1);
}

#[test]
fn a_maintainers_ruling_closes_what_was_opened_again() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let (run, _) = setting.plan_and_apply();
    setting.undo(&run, &["--reason", "other"]).succeeded();
    assert!(setting.is_open(2));
    setting.run(&["override", "duplicate", "2", "1"]).succeeded();
    let again = setting.plan_number(&setting.plan(&[]));
    setting.run(&["plan", "approve", &again, "--item", "2"]).succeeded();
    let applied = setting.apply(&again).succeeded().json();
    assert_eq!(result(&applied, 2), ("applied".to_owned(), String::new()), "{applied}");
    assert!(!setting.is_open(2));
}

#[test]
fn a_plan_skips_what_applying_it_would() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3, 4]), &[(1, &[2, 3, 4])]);
    // Without a sync after the plan, only applying finds the changes.
    let run = setting.plan_number(&setting.plan(&[]));
    setting.people(|world| {
        let milestone = world.milestone(REPO, "1.0");
        world.set_milestone(REPO, 2, MONA, Some(milestone));
        world.lock(REPO, 3, MONA, None);
    });
    let applied = setting.apply(&run).succeeded().json();
    let reasons = [2, 3, 4].map(|number| result(&applied, number).1);
    assert_eq!(reasons, ["in_progress", "drift:source_locked", ""], "{applied}");
    let known = |plan: &serde_json::Value, number| of(&plan["items"], number)["skip_reason"].clone();
    let again = setting.plan(&[]);
    assert_eq!([2, 3].map(|number| known(&again, number)), [json!("in_progress"), json!("locked")], "{again}");
    setting.run(&["sync"]).succeeded();
    let synced = setting.plan(&[]);
    assert_eq!([2, 3].map(|number| known(&synced, number)), [json!("in_progress"), json!("locked")], "{synced}");
}
