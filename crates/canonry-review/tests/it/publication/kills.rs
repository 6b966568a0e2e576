//! Tests a kill at every point of publishing, and a restart: everything is posted, and nothing twice.

use canonry_domain::review::AnswerableScope;
use std::sync::Arc;

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::ReviewState;
use canonry_testkit::on_both_engines;

use crate::publication::setting::{ALL, REPO, Setting, code, done, finding};

/// More points than any publication here has.
const MOST_POINTS: usize = 80;

on_both_engines! {
    async fn at_every_point_of_a_publication(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        // Each push brings a review, a resolved thread and a check run; each dies one point later.
        for steps in 0..MOST_POINTS {
            setting.push(&code(&[(5, &format!("leak{steps}();"))]));
            let title = format!("Leak of number {steps}");
            let report = setting.review(&[finding(&title, 5, "major", "correctness")]).await;
            let lived = setting.publish_until(&report, steps).await;
            // By then the lease of the dead process has ended.
            setting.emulator.world().advance(600);
            done(&setting.publish(&report).await);
            let said = steps + 1;
            assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((said, said), 0), "{steps}");
            {
                let world = setting.emulator.world();
                let threads = &world.pull(REPO, setting.number()).threads;
                assert_eq!(threads.iter().filter(|thread| thread.resolved_by.is_some()).count(), steps, "{steps}");
                let checks: Vec<Option<&str>> =
                    world.get(REPO).check_runs.iter().map(|check| check.conclusion.as_deref()).collect();
                assert_eq!(checks, vec![Some("neutral"); said], "{steps}");
            }
            if lived.is_some() {
                assert!(steps > 20, "{steps}");
                return;
            }
        }
        panic!("it never lives");
    }

    async fn a_review_whose_comments_were_not_recorded_is_not_said_again(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, "leak();")])).await;
        let leak = finding("Leak", 5, "major", "correctness");
        let first = setting.review(std::slice::from_ref(&leak)).await;
        let (emulator, number, own) = (Arc::clone(&setting.emulator), setting.number(), setting.own);
        let unseen = move || {
            let world = emulator.world();
            world.reviews_by(REPO, number, own).iter().all(|review| review.state == ReviewState::Pending)
        };
        assert_eq!(setting.publish_while(&first, unseen).await, None);
        assert_eq!(setting.own_reviews(), (1, 1));
        assert_eq!(setting.store.findings().posted_on_pull(setting.repo.id, setting.pull).await.expect("read"), []);
        // Meanwhile something else is pushed.
        setting.push(&code(&[(5, "leak();"), (20, "more();")]));
        setting.emulator.world().advance(600);
        let second = setting.review(&[leak]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 0));
        assert_eq!(setting.own_reviews(), (1, 1));
        let ledger = setting.store.review().ledger(setting.repo.id, &second.subject).await.expect("read");
        assert!(ledger.iter().all(|one| one.said_inline), "{ledger:?}");
    }

    async fn a_review_without_remarks_at_lines_is_posted_once(database: TestDatabase) {
        let mut setting = Setting::with_app(database, &ALL, &code(&[])).await;
        setting.settings.review.scope = AnswerableScope::All;
        for steps in 0..MOST_POINTS {
            setting.push(&code(&[(5, &format!("more{steps}();"))]));
            let mut elsewhere = finding(&format!("Password of number {steps}"), 1, "critical", "security");
            elsewhere["path"] = "README.md".into();
            let report = setting.review(&[elsewhere]).await;
            let lived = setting.publish_until(&report, steps).await;
            setting.emulator.world().advance(600);
            done(&setting.publish(&report).await);
            assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((steps + 1, 0), 0), "{steps}");
            assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("failure"), "{steps}");
            if lived.is_some() {
                assert!(steps > 10, "{steps}");
                return;
            }
        }
        panic!("it never lives");
    }
}
