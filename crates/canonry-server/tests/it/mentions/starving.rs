//! However many commands come in one repository, those of another one do not wait.

use canonry_store::{DeliveryFilter, MentionOutcome};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{NewIssue, Permission, World};
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::mention_world::{AUTHOR, MAINTAINER, MentionWorld, OWN, POOL, STRANGER, world};

const LAB: &str = "tide/lab";
const KEEPER: &str = "keeper";
const GRACE: &str = "triage: {mode: grace}\n";
/// More than GitHub lets an account write in a minute.
const MANY: u64 = 90;

/// Two repositories; in the second one Canonry closed #2 as a duplicate of #1.
async fn closed_in_the_lab(database: TestDatabase) -> MentionWorld {
    let mut world = world(GRACE);
    world.repo(LAB).file(".canonry.yml", GRACE);
    world.collaborator(LAB, KEEPER, Permission::Write);
    world.open(LAB, KEEPER, NewIssue::new("The tide stops: topic2", "It stops, and this is where it is looked into."));
    world.open(LAB, AUTHOR, NewIssue::new("Something else: topic70", "It stops, and it never comes back."));
    let setting = MentionWorld::on(database, world).await;
    setting.meanwhile(|world| world.comment(LAB, 2, KEEPER, "/canonry duplicate of #1"));
    setting.settle().await;
    assert!(is_closed(&setting.emulator.world()), "it is closed");
    setting
}

fn is_closed(world: &World) -> bool {
    world.issue(LAB, 2).closed_at.is_some()
}

/// The number of Canonry's comments on these items.
fn replies(world: &World, items: &[u64]) -> usize {
    items.iter().flat_map(|item| world.comments(POOL, *item)).filter(|comment| comment.author == OWN).count()
}

/// The time until the close in the other repository is undone after its maintainer asks for it now.
async fn undone_after(setting: &MentionWorld) -> SignedDuration {
    let asked = setting.emulator.world().now;
    setting.emulator.world().comment(LAB, 2, KEEPER, "/canonry undo");
    setting.settle_until(|world| !is_closed(world)).await;
    let took = setting.emulator.world().now.duration_since(asked);
    assert!(!is_closed(&setting.emulator.world()), "it is open");
    took
}

on_both_engines! {
    async fn a_stranger_who_asks_all_the_time_is_answered_a_few_times(database: TestDatabase) {
        let setting = closed_in_the_lab(database).await;
        let items = [1, 2, 3, 4];
        let asked: Vec<u64> = (0..MANY).map(|at| {
            setting.emulator.world().comment(POOL, items[at as usize % 4], STRANGER, "/canonry why")
        }).collect();
        let took = undone_after(&setting).await;
        assert!(took < SignedDuration::from_secs(30), "{took}");
        setting.settle().await;
        // Two workers may count at the same time.
        let answered = replies(&setting.emulator.world(), &items);
        assert!((10..=11).contains(&answered), "{answered}");
        let last = setting.noted(asked[89]).await.expect("recorded");
        assert_eq!(last.outcome, MentionOutcome::Refused);
        let ignored = DeliveryFilter { event: Some("issue_comment".to_owned()), ..DeliveryFilter::default() };
        let ignored = setting.store.deliveries().list(&ignored, 1_000).await.expect("reads");
        let told = ignored.iter().filter(|delivery| delivery.reason.as_deref().is_some_and(|reason| reason.contains("too many commands")));
        assert_eq!(told.count(), 90 - answered, "each says why");
        // Other people and maintainers are answered meanwhile.
        for by in ["mallory", MAINTAINER] {
            assert_eq!(setting.ask(1, by, "/canonry why").await.replies.len(), 1, "{by}");
        }
        // After the hour this person is answered again.
        setting.emulator.world().now += SignedDuration::from_hours(2);
        assert_eq!(setting.ask(4, STRANGER, "/canonry help").await.only(), setting.ask(3, STRANGER, "/canonry help").await.only());
        setting.stop().await;
    }
}

on_both_engines! {
    async fn what_an_author_takes_back_is_done_without_an_answer(database: TestDatabase) {
        let setting = MentionWorld::new(database, GRACE).await;
        let number = setting.issue("It stops again: topic2 alike70");
        setting.settle().await;
        for _ in 0..10 {
            setting.emulator.world().comment(POOL, 1, AUTHOR, "/canonry why");
        }
        setting.settle().await;
        let asked = setting.emulator.world().comment(POOL, number, AUTHOR, "/canonry not a duplicate of #3");
        setting.settle().await;
        assert_eq!(setting.noted(asked).await.expect("recorded").outcome, MentionOutcome::Done);
        let answered = setting.answered(number, asked);
        assert!(answered.replies.is_empty() && answered.reactions.is_empty(), "{answered:?}");
        let repo = setting.repo().await;
        assert_eq!(setting.store.duplicates().overrides(repo.id, None).await.expect("reads").len(), 1, "it is ruled");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn an_undo_does_not_wait_for_the_pace_of_everything_else(database: TestDatabase) {
        let setting = closed_in_the_lab(database).await;
        let items = [1, 2, 3, 4];
        let begun = setting.emulator.world().now;
        for at in 0..MANY {
            setting.emulator.world().comment(POOL, items[at as usize % 4], MAINTAINER, "/canonry why");
        }
        setting.settle_until(|world| replies(world, &items) >= 60).await;
        let took = undone_after(&setting).await;
        let world = setting.emulator.world();
        assert!(took < SignedDuration::from_secs(30), "{took}");
        if world.now.duration_since(begun) < SignedDuration::from_secs(60) {
            assert!(replies(&world, &items) < MANY as usize, "the others wait");
        }
        drop(world);
        setting.settle().await;
        assert_eq!(replies(&setting.emulator.world(), &items), MANY as usize, "and are answered then");
        setting.stop().await;
    }
}
