//! Changes between plan and apply, and refusals by GitHub in the middle, with their exit statuses.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewIssue, Permission, State};
use canonry_testkit::on_both_engines;

use crate::dedupe::on_github::{MONA, open, plain, result, world};
use crate::dedupe::setting::{BODY, REPO, Setting, title};

on_both_engines! {
    /// Items that left the repository are skipped, the rest is applied, and the exit status says that not all was
    /// done.
    async fn items_that_are_gone_cost_only_themselves(database: TestDatabase) {
        let setting = Setting::on_github(database, world(&[1, 2, 3, 4, 5]), &[(1, &[2, 3, 4, 5])]);
        let run = setting.plan_number(&setting.plan(&[]));
        setting.people(|world| {
            world.delete(REPO, 2, MONA);
            world.transfer(REPO, 3, MONA, "octo/dog");
            world.convert_to_discussion(REPO, 4, MONA);
        });
        let ran = setting.apply(&run);
        assert_eq!(ran.exit, Some(3), "{ran:?}");
        let applied = ran.json();
        for number in [2, 3, 4] {
            let (result, reason) = result(&applied, number);
            assert!(result != "applied" && !reason.is_empty(), "#{number}: {result} {reason}");
        }
        setting.is_closed_once(5, 1);
        let moved = setting.github().world().get("octo/dog").issues.values().map(|issue| issue.state).collect::<Vec<_>>();
        assert_eq!(moved, [State::Open], "what moved away is not ours to close");
    }
}

/// A user who became a maintainer after the plan counts as one when it is applied, however fresh the list is.
#[test]
fn a_new_maintainer_keeps_their_items() {
    let mut world = world(&[1, 2]);
    open(&mut world, 3, "carl", NewIssue::new(&title(3), BODY));
    let setting = Setting::on_github(TestDatabase::sqlite(), world, &[(1, &[2, 3])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.people(|world| world.collaborator(REPO, "carl", Permission::Write));
    let applied = setting.apply(&run).json();
    assert_eq!(result(&applied, 3), ("skipped".to_owned(), "drift:maintainer_changed".to_owned()), "{applied}");
    setting.is_untouched(3);
    setting.is_closed_once(2, 1);
}

#[test]
fn what_github_refuses_costs_one_row() {
    // Each status for another request about another issue.
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2, 3, 4, 5, 6]), &[(1, &[2, 3, 4, 5, 6])]);
    let run = setting.plan_number(&setting.plan(&[]));
    let github = setting.github();
    github.fault(Fault::on("GET", "/repos/*/*/issues/2").always().answer(404));
    github.fault(Fault::on("GET", "/repos/*/*/issues/3").always().answer(451));
    github.fault(Fault::on("PATCH", "/repos/*/*/issues/4").always().answer(403));
    github.fault(Fault::on("PATCH", "/repos/*/*/issues/5").always().answer(422));
    let ran = setting.apply(&run);
    assert_eq!(ran.exit, Some(3), "{ran:?}");
    let applied = ran.json();
    assert_eq!(applied["stats"]["applied"], 1, "{applied}");
    for number in [2, 3, 4, 5] {
        let (result, reason) = result(&applied, number);
        assert!(result != "applied" && !reason.is_empty(), "#{number}: {result} {reason}");
        assert!(setting.is_open(number));
    }
    setting.is_closed_once(6, 1);
    // No comment claims to have closed an open item.
    for number in [4, 5] {
        let comments = setting.own_comments(number);
        assert!(comments.iter().all(|text| !text.starts_with("Closing as")), "{comments:?}");
    }
    // When GitHub works again, the same plan continues.
    github.clear_faults();
    let again = setting.apply(&run);
    assert!(matches!(again.exit, Some(0 | 3)), "{again:?}");
    setting.is_closed_once(6, 1);
    for number in [2, 3, 4, 5] {
        assert!(setting.own_closes(number).0 <= 1 && setting.own_comments(number).len() <= 1, "#{number}");
    }
}

#[test]
fn a_short_outage_is_waited_for() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.github().fault(Fault::on("GET", "/repos/*/*/issues/2").answer(502));
    setting.apply(&run).succeeded();
    setting.is_closed_once(2, 1);
}

#[test]
fn a_token_without_rights_changes_nothing() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.people(|world| world.collaborator(REPO, crate::dedupe::on_github::OWN, Permission::Read));
    let ran = setting.apply(&run);
    assert!(matches!(ran.exit, Some(1 | 3 | 4)), "{ran:?}");
    assert!(setting.is_open(2));
    let comments = setting.own_comments(2);
    assert!(comments.iter().all(|text| !text.starts_with("Closing as")), "{comments:?}");
    assert_eq!(setting.github().world().issue(REPO, plain(2)).labels, Vec::<String>::new());
}
