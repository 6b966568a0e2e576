//! A list that was fetched during an apply, and is stored after it.

use canonry_domain::{ItemNumber, ItemState, ItemType, OutcomeKind};
use canonry_server::{ApplyOrder, queue_apply};
use canonry_store::JobState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use canonry_testkit::on_both_engines;

use crate::world::close_world::{CloseWorld, maintainer};

async fn state(setting: &CloseWorld, number: ItemNumber) -> ItemState {
    setting.store.corpus().item(setting.repo.id, ItemType::Issue, number).await.expect("reads").expect("known").state
}

on_both_engines! {
    async fn what_was_read_between_our_comment_and_our_close_is_no_reopening(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(1).await;
        setting.approve(plan, &duplicates).await;
        setting.emulator.world().advance(3_600);
        let order = ApplyOrder { plan, approved_only: true, only_takes_back: false, by: maintainer() };
        let job = queue_apply(&setting.store, &setting.repo, &order, setting.now()).await.expect("reads").expect("queued");
        let (fault, mut closing) = Fault::on("PATCH", "/repos/*/*/issues/*").hold();
        setting.emulator.fault(fault);
        let (fault, mut list) = Fault::on("GET", "/repos/*/*/issues").hold_answer();
        setting.emulator.fault(fault);
        let meanwhile = async {
            closing.arrived().await;
            assert_eq!(setting.shown(duplicates[0]).comments, 1, "the comment goes first");
            let close = async {
                list.arrived().await;
                closing.release();
                while state(&setting, duplicates[0]).await == ItemState::Open {
                    tokio::task::yield_now().await;
                }
                list.release();
            };
            tokio::join!(setting.sync(), close);
        };
        let both = async { tokio::join!(setting.work(), meanwhile) };
        tokio::time::timeout(std::time::Duration::from_secs(60), both).await.expect("both end");
        assert_eq!(setting.ended(job).await, (JobState::Done, None));
        setting.assert_closed(&duplicates, "applied");
        assert_eq!(state(&setting, duplicates[0]).await, ItemState::Closed);
        let events = setting.store.learning().outcome_events(setting.repo.id, duplicates[0]).await.expect("reads");
        assert!(events.iter().all(|event| event.kind == OutcomeKind::Closed), "{events:?}");
        assert_eq!(setting.store.learning().reopened_numbers(setting.repo.id).await.expect("reads"), []);
    }
}
