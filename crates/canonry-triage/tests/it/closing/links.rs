//! Back-links are edited and never repeated, and earlier duplicates follow their canonical item.

use canonry_domain::UndoReason;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::closing::setting::{OWN, REPO, Setting, plain, told};

on_both_engines! {
    async fn each_canonical_has_one_back_link_that_grows(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(3);
        for (index, duplicate) in duplicates.iter().enumerate() {
            let plan = setting.plan(&[(*duplicate, original)]).await;
            setting.apply(plan).await;
            setting.assert_back_link(original, &duplicates[..=index], "grown");
            setting.later(60);
        }
        let world = setting.emulator.world();
        assert_eq!(world.comments_by(REPO, plain(original), OWN).len(), 1);
    }

    async fn a_back_link_that_somebody_deleted_is_not_written_again(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        setting.apply(plan).await;
        {
            let mut world = setting.emulator.world();
            let id = world.comments_by(REPO, plain(original), OWN)[0].id;
            world.delete_comment(REPO, id, "maint");
        }
        setting.later(60);
        let next = setting.plan(&[(duplicates[1], original)]).await;
        let report = setting.apply(next).await;
        assert_eq!((report.applied, report.failed), (1, 0));
        assert!(report.remarks[0].contains("gone"), "{report:?}");
        assert!(setting.shown(original).comments.is_empty());
    }

    async fn clusters_of_one_plan_have_their_own_back_links(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let ((one, of_one), (two, of_two)) = (setting.cluster(2), setting.cluster(1));
        let plan = setting.plan(&[(of_one[0], one), (of_two[0], two), (of_one[1], one)]).await;
        assert_eq!(setting.apply(plan).await.applied, 3);
        setting.assert_back_link(one, &of_one, "the first cluster");
        setting.assert_back_link(two, &of_two, "the second cluster");
    }

    async fn earlier_duplicates_follow_a_canonical_that_is_closed_and_come_back_with_it(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (old, earlier) = setting.cluster(2);
        let pairs: Vec<_> = earlier.iter().map(|duplicate| (*duplicate, old)).collect();
        let first = setting.plan(&pairs).await;
        setting.apply(first).await;
        let before = setting.shown(earlier[0]).comments;
        setting.later(60);
        let new = setting.open("Sync stops, with everything one needs to know");
        let second = setting.plan(&[(old, new)]).await;
        let report = setting.apply(second).await;
        assert_eq!((told(&report), report.remarks.len()), (vec![format!("#{old} applied")], 0), "{report:?}");
        for duplicate in &earlier {
            let shown = setting.shown(*duplicate);
            assert_eq!((shown.open, shown.closes, shown.comments.len()), (false, 1, 1));
            let expected = format!("Closed as a duplicate; please follow #{new}. It replaces #{old},");
            assert!(shown.comments[0].starts_with(&expected), "{shown:?}");
        }
        setting.assert_back_link(new, &[old, earlier[0], earlier[1]], "all point at the new one");
        setting.later(60);
        setting.emulator.forget_requests();
        setting.apply(second).await;
        assert!(setting.emulator.writes().is_empty(), "nothing is pointed twice");

        let undone = setting.try_undo(second, None, UndoReason::WrongTarget).await.expect("undone");
        assert_eq!(told(&undone), [format!("#{old} applied")]);
        assert_eq!(setting.shown(earlier[0]).comments, before, "they point at the old one again");
        assert_eq!(setting.shown(new).comments, ["No issue is closed as a duplicate of this one any more."]);
    }
}
