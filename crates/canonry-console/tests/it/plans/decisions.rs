//! The effect of people's decisions: what is closed by default, how an apply is stopped, and what outlives a plan.

use canonry_domain::{Login, OverrideKind, SkipReason};
use canonry_server::ConsoleOrder;
use canonry_store::{NewPlanRow, RowApproval};
use jiff::SignedDuration;
use reqwest::StatusCode;

use crate::reading::flash_of;
use crate::world::items::ruling;
use crate::world::plans::{PlanWorld, plan_header, plan_row};
use crate::world::{ISSUE, Who, number};

#[tokio::test]
async fn approved_rows_are_the_default_and_the_limit_is_counted_in() {
    let world = PlanWorld::new().await;
    let settings = Some("close:\n  maxPerDay: 1\n");
    world.store.repos().write_settings(world.repo.id, settings, world.now).await.expect("kept");
    let page = world.page(Who::Mona, &world.path("")).await;
    assert!(page.contains("No row is approved.") && !page.contains("id=\"apply-approved\""), "{page}");
    assert!(page.contains("type <code>close 1 in tide/pool</code> (2 more wait for the daily limit)"), "{page}");
    assert!(page.contains("Without approval: at most 1 a day, 0 used, 2 wait."), "{page}");
    assert!(page.contains("value=\"0\" id=\"apply-all\" data-keep required checked>"), "the only choice: {page}");
    assert!(page.contains("href=\"#apply-confirm\""), "it leads to the phrase: {page}");

    world
        .store
        .plans()
        .set_approved(world.plan, ISSUE, &[number(3)], Some(true), None, world.now)
        .await
        .expect("noted");
    let page = world.page(Who::Mona, &world.path("")).await;
    assert!(page.contains("value=\"1\" id=\"apply-approved\" data-keep required checked> the 1 approved"), "{page}");
    assert!(!page.contains("id=\"apply-all\" data-keep required checked"), "nothing unreviewed is preselected: {page}");
    assert!(page.contains("2: the approved and 1 not reviewed: type <code>close 2 in tide/pool</code>"), "{page}");
    let apply = async |confirm| {
        let fields = [("confirm", confirm), ("approved_only", "0")];
        world.send(Who::Mona, &world.path("/apply"), &fields, false).await
    };
    assert_eq!(
        apply("close 3 in tide/pool").await.status(),
        StatusCode::UNPROCESSABLE_ENTITY,
        "no more than really closes"
    );
    let answer = apply("close 2 in tide/pool").await;
    assert!(flash_of(&answer).contains("1 wait for the daily limit"), "{}", flash_of(&answer));
}

#[tokio::test]
async fn an_apply_is_stopped_beside_its_progress() {
    let world = PlanWorld::new().await;
    let stop = async |who| world.send(who, &world.path("/stop"), &[], false).await;
    let nothing = stop(Who::Mona).await;
    assert!(nothing.text().await.expect("a page").contains("no apply is running"));
    let fields = [("confirm", "close 3 in tide/pool"), ("approved_only", "0")];
    world.send(Who::Mona, &world.path("/apply"), &fields, false).await;
    let part = async |who| world.ask(who, &world.path("/progress"), true).await.text().await.expect("a part");
    let offered = format!("action=\"/r/tide/pool{}\"", world.path("/stop"));
    assert!(part(Who::Mona).await.contains(&offered));
    assert!(!part(Who::Rita).await.contains(&offered), "readers stop nothing");
    assert_eq!(stop(Who::Rita).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(world.store.plans().stop_of_apply(world.plan).await.expect("reads"), None);
    let stopped = stop(Who::Mona).await;
    assert!(flash_of(&stopped).contains("Stopping before the next row"), "{}", flash_of(&stopped));
    let mona: Login = "mona".parse().expect("a login");
    assert_eq!(world.store.plans().stop_of_apply(world.plan).await.expect("reads"), Some((world.now, Some(mona))));
    let told = part(Who::Mona).await;
    assert!(told.contains("Applying the plan: stopping") && !told.contains(&offered), "{told}");
}

#[tokio::test]
async fn what_is_closed_can_be_undone_from_the_list_and_the_top() {
    let world = PlanWorld::new().await;
    world.applied().await;
    let page = world.page(Who::Mona, &world.path("")).await;
    let undo = format!("href=\"/r/tide/pool{}#undo-row\" aria-label=\"Undo #2\"", world.path("/rows/issue/2"));
    assert!(page.contains(&undo), "{page}");
    let (whole, rows) =
        (page.find("href=\"#undo-reason\"").expect("offered"), page.find("class=\"split review\"").expect("rows"));
    assert!(whole < rows && page.contains("id=\"undo\""), "before the rows");
    let reader = world.page(Who::Rita, &world.path("")).await;
    assert!(
        !reader.contains("#undo-row") && !reader.contains("#undo-reason") && !reader.contains("id=\"undo\""),
        "{reader}"
    );
}

#[tokio::test]
async fn a_ruling_leaves_the_other_clusters_and_offers_a_new_plan() {
    let world = PlanWorld::new().await;
    let page = world.page(Who::Mona, &world.path("")).await;
    assert!(!page.contains("id=\"new-plan\""), "{page}");
    let later = world.now + SignedDuration::from_secs(1);
    let apart = ruling(OverrideKind::NotDuplicate, 2, Some(1));
    world.store.duplicates().add_override(world.repo.id, apart, later).await.expect("ruled");
    let page = world.page(Who::Mona, &world.path("")).await;
    assert!(page.contains("2 rows will stay open") && page.contains("close 1 in tide/pool"), "{page}");
    assert!(page.contains("id=\"new-plan\"") && page.contains("It keeps exclusions, and approvals"), "{page}");
    assert!(!world.page(Who::Rita, &world.path("")).await.contains("id=\"new-plan\""));
    let apart = ruling(OverrideKind::NotDuplicate, 5, Some(4));
    world.store.duplicates().add_override(world.repo.id, apart, later).await.expect("ruled");
    let page = world.page(Who::Mona, &world.path("")).await;
    assert!(page.contains("This plan cannot be applied: override") && page.contains("id=\"new-plan\""), "{page}");
    world.send(Who::Mona, "/plans", &[], false).await;
    assert!(matches!(ConsoleOrder::of(&world.jobs().await[0]), Some(ConsoleOrder::Plan(_))));
}

#[tokio::test]
async fn an_exclusion_of_an_earlier_plan_is_shown_and_lifted() {
    let mut world = PlanWorld::new().await;
    let fields = [("word", "exclude"), ("item", "issue/2")];
    world.send(Who::Mona, &world.path("/rows"), &fields, false).await;
    let rulings =
        async |world: &PlanWorld| world.store.duplicates().overrides(world.repo.id, None).await.expect("reads");
    assert_eq!(rulings(&world).await[0].kind, OverrideKind::Excluded);
    let settings = world.page(Who::Mona, "/settings").await;
    assert!(settings.contains("must not be closed as a duplicate of"), "{settings}");

    let row = NewPlanRow { skip: Some(SkipReason::Excluded), ..plan_row(2, 1) };
    let word = RowApproval { approved: false, by: Some("mona".parse().expect("a login")), at: world.now };
    let words = [((ISSUE, number(2)), word)].into();
    let later = world.now + SignedDuration::from_secs(1);
    world.plan = world
        .store
        .plans()
        .create_keeping_approvals(world.repo.id, &plan_header("again"), &[row], &words, later)
        .await
        .expect("planned");
    let page = world.page(Who::Mona, &world.path("/rows/issue/2?show=excluded")).await;
    assert!(page.contains("excluded</span> by @mona") && page.contains("Remove the exclusion"), "{page}");
    let fields = [("word", "clear"), ("item", "issue/2")];
    world.send(Who::Mona, &world.path("/rows"), &fields, false).await;
    assert_eq!((rulings(&world).await, world.words().await), (vec![], vec![(2, None, None)]));
}
