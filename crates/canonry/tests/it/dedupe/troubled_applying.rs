//! Applying while GitHub loses answers, refuses everything or runs out: nothing is done twice, and it can be resumed.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use serde_json::json;

use crate::dedupe::on_github::{MONA, OWN, result, world};
use crate::dedupe::setting::{REPO, Setting};

#[test]
fn a_run_that_was_stopped_in_the_middle_goes_on() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3, 4]), &[(1, &[2, 3, 4])]);
    let run = setting.plan_number(&setting.plan(&[]));
    // The token ends after the second close.
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

/// When who maintains cannot be known, nothing is planned.
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

/// Somebody tidied our comment away: the next close does not trip over that, and says it once at most.
#[test]
fn a_back_link_that_was_deleted_stops_nothing() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3]), &[(1, &[2, 3])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.succeeds(&["plan", "exclude", "--run", &run, "--item", "3"]);
    setting.apply(&run).succeeded();
    setting.people(|world| {
        let back = world.comments_by(REPO, 1, OWN)[0].id;
        world.delete_comment(REPO, back, MONA);
    });
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

/// What was deleted after it was closed cannot be opened, and the rest can.
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

/// What people did meanwhile is brought in, and changes neither the closed item nor the plan after it.
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
