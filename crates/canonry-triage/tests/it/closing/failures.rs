//! GitHub refuses or does not answer in between: that row fails with a clear message, the others continue.

use canonry_domain::ItemNumber;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Answer, Fault, World};
use canonry_testkit::on_both_engines;
use canonry_triage::{CloseReport, RowResult};

use crate::closing::setting::{REPO, Setting, plain};

/// A plan with two rows; the first one has trouble.
async fn troubled(setting: &Setting, trouble: impl FnOnce(&Setting, ItemNumber)) -> (CloseReport, [ItemNumber; 4]) {
    let (target, source) = (setting.open("Sync stops"), setting.open("Sync stops too"));
    let (other_target, other) = (setting.open("Export hangs"), setting.open("Export hangs, too"));
    let plan = setting.plan(&[(source, target), (other, other_target)]).await;
    trouble(setting, source);
    let report = setting.apply(plan).await;
    setting.emulator.clear_faults();
    assert_eq!(report.rows[1].result, RowResult::Applied, "{report:?}");
    setting.assert_closed(other, other_target, "the row behind the trouble");
    (report, [source, target, other, other_target])
}

type Departure = fn(&mut World, u64);

on_both_engines! {
    async fn a_refused_close_is_told_and_its_comment_corrected(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for status in [403, 404, 410, 422, 451] {
            let refuse = |setting: &Setting, source: ItemNumber| {
                setting.emulator.fault(Fault::on("PATCH", &format!("/repos/*/*/issues/{source}")).answer(status));
            };
            let (report, [source, ..]) = troubled(&setting, refuse).await;
            let row = &report.rows[0];
            assert_eq!((row.result, report.failed), (RowResult::Failed, 1), "{status}");
            assert!(row.reason.as_deref().is_some_and(|reason| reason.contains(&status.to_string())), "{row:?}");
            let shown = setting.shown(source);
            assert_eq!((shown.open, shown.closes, shown.labels.len(), shown.comments.len()), (true, 0, 0, 1), "{status}");
            assert!(shown.comments[0].contains("stays open"), "{shown:?}");
            setting.next_hour();
        }
    }

    async fn a_refused_comment_leaves_no_trace(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for status in [403, 404, 410, 422, 451] {
            let refuse = |setting: &Setting, source: ItemNumber| {
                let comments = format!("/repos/*/*/issues/{source}/comments");
                setting.emulator.fault(Fault::on("POST", &comments).answer(status));
            };
            let (report, [source, ..]) = troubled(&setting, refuse).await;
            assert_eq!(report.rows[0].result, RowResult::Failed, "{status}");
            setting.assert_untouched(source, "refused");
            setting.next_hour();
        }
    }

    async fn a_refused_label_is_told_and_the_close_stands(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let refuse = |setting: &Setting, source: ItemNumber| {
            setting.emulator.fault(Fault::on("POST", &format!("/repos/*/*/issues/{source}/labels")).answer(403));
        };
        let (report, [source, target, ..]) = troubled(&setting, refuse).await;
        let row = &report.rows[0];
        assert_eq!(row.result, RowResult::Applied);
        assert!(row.reason.as_deref().is_some_and(|reason| reason.contains("possible-duplicate")), "{row:?}");
        let shown = setting.shown(source);
        assert_eq!((shown.open, shown.closes, shown.comments.len()), (false, 1, 1));
        setting.assert_back_link(target, &[source], "closed all the same");
    }

    async fn a_refused_back_link_is_told_and_tried_again_by_the_next_run(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        let comments = format!("/repos/*/*/issues/{original}/comments");
        setting.emulator.fault(Fault::on("POST", &comments).answer(403));
        let report = setting.apply(plan).await;
        assert_eq!((report.applied, report.remarks.len()), (1, 1), "{report:?}");
        assert!(report.remarks[0].contains(&format!("the back-link on #{original}")), "{report:?}");
        setting.later(5);
        let next = setting.plan(&[(duplicates[1], original)]).await;
        setting.apply(next).await;
        setting.assert_back_link(original, &duplicates, "the next run");
    }

    async fn errors_of_github_are_waited_out(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for status in [500, 502, 503] {
            let fail = |setting: &Setting, source: ItemNumber| {
                setting.emulator.fault(Fault::on("PATCH", &format!("/repos/*/*/issues/{source}")).answer(status));
                setting.emulator.fault(Fault::on("GET", &format!("/repos/*/*/issues/{source}/**")).times(2).answer(status));
            };
            let (report, [source, target, ..]) = troubled(&setting, fail).await;
            assert_eq!(report.rows[0].result, RowResult::Applied, "{report:?}");
            setting.assert_closed(source, target, "waited out");
            setting.next_hour();
        }
    }

    async fn what_has_to_wait_for_long_goes_on_later(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let limited = || Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "3600");
        let unwell = || Answer::message(503, "No server is available");
        for (method, path, answer, result) in [
            // Before anything has begun, the whole row is retried.
            ("GET", "/timeline", unwell(), RowResult::Failed),
            // Once it has begun, the outbox continues it.
            ("POST", "/comments", limited(), RowResult::Pending),
            ("PATCH", "", limited(), RowResult::Pending),
            ("POST", "/labels", limited(), RowResult::Pending),
        ] {
            let (target, source) = (setting.open("Sync stops"), setting.open("Sync stops too"));
            let (other_target, other) = (setting.open("Export hangs"), setting.open("Export hangs, too"));
            let plan = setting.plan(&[(other, other_target), (source, target)]).await;
            let path = format!("/repos/*/*/issues/{source}{path}");
            setting.emulator.fault(Fault::on(method, &path).always().answer_with(answer));
            let report = setting.apply(plan).await;
            let row = report.rows.iter().find(|row| row.number == source).expect("a row");
            assert_eq!(row.result, result, "{method} {path}: {report:?}");
            if result == RowResult::Pending {
                assert!(row.reason.as_deref().is_some_and(|reason| reason.contains("run this again")), "{row:?}");
            }
            setting.emulator.clear_faults();
            setting.next_hour();
            let again = setting.apply(plan).await;
            assert_eq!(again.failed, 0, "{method} {path}: {again:?}");
            for (item, original) in [(source, target), (other, other_target)] {
                setting.assert_closed(item, original, &path);
                setting.assert_back_link(original, &[item], &path);
            }
            setting.next_hour();
        }
    }

    async fn errors_of_github_that_do_not_end_are_given_up(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (method, path) in [("POST", "/comments"), ("PATCH", "")] {
            let fail = |setting: &Setting, source: ItemNumber| {
                let path = format!("/repos/*/*/issues/{source}{path}");
                setting.emulator.fault(Fault::on(method, &path).always().answer(500));
            };
            let (report, [source, ..]) = troubled(&setting, fail).await;
            assert_eq!((report.rows[0].result, report.failed), (RowResult::Failed, 1), "{report:?}");
            let shown = setting.shown(source);
            assert_eq!((shown.open, shown.closes, shown.labels.len()), (true, 0, 0));
            assert!(shown.comments.iter().all(|comment| comment.contains("stays open")), "{shown:?}");
            setting.next_hour();
        }
    }

    async fn items_that_left_the_repository_fail_in_clear_words(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let departures: [(&str, Departure); 3] = [
            ("gone", |world, source| world.delete(REPO, source, "maint")),
            ("moved to acme/attic", |world, source| {
                world.transfer(REPO, source, "maint", "acme/attic");
            }),
            ("GitHub has no", |world, source| world.convert_to_discussion(REPO, source, "maint")),
        ];
        for (words, leave) in departures {
            let go = |setting: &Setting, source: ItemNumber| leave(&mut setting.emulator.world(), plain(source));
            let (report, _) = troubled(&setting, go).await;
            let row = &report.rows[0];
            assert_eq!(row.result, RowResult::Failed, "{words}");
            assert!(row.reason.as_deref().is_some_and(|reason| reason.contains(words)), "{words}: {row:?}");
            setting.next_hour();
        }
    }

    async fn items_that_cannot_be_read_fail_and_are_tried_again(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for status in [403, 451] {
            let hide = |setting: &Setting, source: ItemNumber| {
                setting.emulator.fault(Fault::on("GET", &format!("/repos/*/*/issues/{source}")).always().answer(status));
            };
            let (report, [source, ..]) = troubled(&setting, hide).await;
            assert_eq!(report.rows[0].result, RowResult::Failed, "{status}: {report:?}");
            setting.assert_untouched(source, "unreadable");
            setting.next_hour();
        }
    }
}
