//! What a plan's page says about pauses, and how unfinished closes are cancelled.

use canonry_domain::{WriteKey, WriteKind, WriteOrigin};
use canonry_server::{ApplyOrder, ConsoleOrder};
use canonry_store::{BrakeKind, NewOutboxEntry};
use jiff::SignedDuration;
use reqwest::StatusCode;

use crate::reading::flash_of;
use crate::world::plans::PlanWorld;
use crate::world::{ISSUE, Who, number};

/// As if an apply had begun to close an item when it was stopped.
async fn begun(world: &PlanWorld, of: i64) {
    let plan = world.plan.get();
    let key = WriteKey::of_item(WriteOrigin::Close, plan, ISSUE, number(of)).with_record(plan);
    let payload = serde_json::json!({});
    let new = NewOutboxEntry {
        repo: world.repo.id,
        number: number(of),
        kind: WriteKind::Close,
        key: &key,
        payload: &payload,
        refused: None,
    };
    world.store.outbox().enqueue(&new, world.now).await.expect("stored");
}

#[tokio::test]
async fn the_breaker_holds_back_what_is_closed_by_itself_and_says_no_more() {
    let world = PlanWorld::new().await;
    let objected = "Automatic closing stopped now: people objected to several closes.";
    assert!(!world.page(Who::Mona, &world.path("")).await.contains(objected));
    let set =
        world.store.close().set_brake(world.repo.id, BrakeKind::Breaker, None, "three objections", world.now).await;
    set.expect("set");
    let page = world.page(Who::Mona, &world.path("")).await;
    assert!(page.contains(objected) && page.contains("A plan that you apply still runs."), "{page}");
    let fields = [("confirm", "close 3 in tide/pool"), ("approved_only", "0")];
    let answer = world.send(Who::Mona, &world.path("/apply"), &fields, false).await;
    assert_eq!((answer.status(), world.jobs().await.len()), (StatusCode::SEE_OTHER, 1));
}

#[tokio::test]
async fn what_was_begun_in_vain_is_taken_back() {
    let mut world = PlanWorld::new().await;
    let offers = async |world: &PlanWorld, who| world.page(who, &world.path("")).await.contains("/withdraw\"");
    let withdraw = async |world: &PlanWorld, who| world.send(who, &world.path("/withdraw"), &[], false).await;
    begun(&world, 2).await;
    // A valid plan is applied, and its apply continues unfinished closes.
    assert!(!offers(&world, Who::Mona).await);
    let answer = withdraw(&world, Who::Mona).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.text().await.expect("a page").contains("Nothing was cancelled"));

    let good = world.plan;
    world.plan = world.planned(SignedDuration::from_hours(7 * 24 + 1)).await;
    assert!(!offers(&world, Who::Mona).await, "nothing of this one was begun");
    begun(&world, 3).await;
    assert!(offers(&world, Who::Mona).await && !offers(&world, Who::Rita).await);
    assert_eq!(withdraw(&world, Who::Rita).await.status(), StatusCode::FORBIDDEN);
    // While paused, not even the correction of a comment is written.
    let kind = BrakeKind::Pause;
    world.store.close().set_brake(world.repo.id, kind, None, "so", world.now).await.expect("set");
    assert!(!offers(&world, Who::Mona).await);
    assert_eq!(withdraw(&world, Who::Mona).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(world.jobs().await, []);
    world.store.close().lift_brake(world.repo.id, kind, None, world.now).await.expect("lifted");

    let answer = withdraw(&world, Who::Mona).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert!(flash_of(&answer).contains("Cancelling unfinished closes"), "{}", flash_of(&answer));
    let order = |plan| {
        let by = Some("mona".parse().expect("a login"));
        Some(ConsoleOrder::Apply(ApplyOrder { plan, approved_only: true, only_takes_back: true, by }))
    };
    let queued = async |world: &PlanWorld| world.jobs().await.iter().map(ConsoleOrder::of).collect::<Vec<_>>();
    assert_eq!(queued(&world).await, [order(world.plan)]);
    assert_eq!(withdraw(&world, Who::Mona).await.status(), StatusCode::UNPROCESSABLE_ENTITY, "it is ordered already");
    let actions = world.store.console().actions(world.repo.id, 10).await.expect("reads");
    let told = (actions[0].action.as_str(), actions[0].subject.clone());
    assert_eq!(told, ("plan: withdraw", format!("1 begun close of plan {}", world.plan)));

    // Also for a plan whose rows were all excluded since: nothing is left to apply.
    let old = world.plan;
    world.plan = good;
    let all = [number(2), number(3), number(5)];
    world.store.plans().set_approved(good, ISSUE, &all, Some(false), None, world.now).await.expect("noted");
    assert_eq!(withdraw(&world, Who::Mona).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(queued(&world).await, [order(good), order(old)]);
}
