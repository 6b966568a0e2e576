//! The page of one item: its gates, verdicts, plans and what people did.

use canonry_domain::{
    CurrentThreshold, DecisionStatus, ItemRecord, ItemState, Threshold, ThresholdSource, TriageMode, Verdict,
};
use canonry_store::{CloseOutcome, CloseResult, TriageAction, TriageActionKind};

use crate::reading::assert_harmless;
use crate::world::items::{decision, record};
use crate::world::plans::{plan_header, plan_row};
use crate::world::{ConsoleWorld, ISSUE, Who, number};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gates_of_a_decision_are_told_as_they_were() {
    let world = ConsoleWorld::filled().await;
    let (accepted, rejected) = (DecisionStatus::Accepted, DecisionStatus::Rejected);
    world.decide(decision(2, Some(1), accepted, None, 0.95)).await;
    world.decide(decision(3, None, rejected, None, 0.91)).await;
    world.decide(decision(4, Some(1), rejected, Some("below_min_edge"), 0.7)).await;
    world.decide(decision(5, Some(1), rejected, Some("relation=partial_overlap"), 0.95)).await;

    let page = world.page(Who::Rita, "/issues/2").await;
    assert!(page.contains("Canonry takes it for a duplicate of ") && page.contains("confidence is .95"));
    let marks = gates(&page);
    assert_eq!((marks.len(), marks[11].as_str()), (12, "decided yes"));
    assert!(marks[..11].iter().all(|mark| mark == "passed"), "{marks:?}");
    assert!(page.contains("E0512"), "what both texts share is named");
    assert!(
        page.contains("Both stop at noon")
            && page.contains("same instance")
            && page.contains("#1 has 0.951, #8 has 0.902")
    );

    let said_no = gates(&world.page(Who::Rita, "/issues/3").await);
    assert_eq!((said_no[4].as_str(), said_no[5].as_str(), said_no[6].as_str()), ("passed", "decided", "skipped"));
    let page = world.page(Who::Rita, "/issues/4").await;
    let unsure = gates(&page);
    assert_eq!((unsure[8].as_str(), unsure[9].as_str(), unsure[10].as_str()), ("passed", "decided", "skipped"));
    assert!(page.contains("No: .70, and it takes .85."));
    let page = world.page(Who::Rita, "/issues/5").await;
    assert_eq!(gates(&page)[6], "decided");
    assert!(page.contains("the relation is “partial overlap”"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_story_is_told_from_verdict_to_lesson() {
    let world = ConsoleWorld::filled().await;
    let (store, repo, now) = (&world.store, world.repo.id, world.now);
    let id = store
        .duplicates()
        .write_triage_record(repo, &record(6, Verdict::Duplicate, "duplicate", Some(1)), now)
        .await
        .expect("written");
    let action = TriageAction {
        triage_id: id,
        mode: TriageMode::Suggest,
        component: None,
        threshold: CurrentThreshold::From(Threshold::new(80).expect("in range")),
        source: ThresholdSource::Learned,
        action: TriageActionKind::Commented,
        reason: "above_threshold".to_owned(),
        comment_key: None,
    };
    store.duplicates().record_triage_action(&action, now).await.expect("noted");
    let page = world.page(Who::Rita, "/issues/6").await;
    assert!(page.contains("It looks like a duplicate of ") && page.contains("It speaks from 80 % on, as learned"));
    assert!(page.contains("ranked by vectors 1.3") && page.contains("not near enough to be judged"));
    assert_eq!(gates(&page)[13], "decided yes");
    assert_harmless(&page);

    let plan = store.plans().create(repo, &plan_header("p"), &[plan_row(6, 1)], now).await.expect("planned");
    let page = world.page(Who::Rita, "/issues/6").await;
    assert!(page.contains("The plan closes it in favour of #1.") && page.contains(&format!("/plans/{plan}")));
    let apply = store.plans().begin_apply(plan, "a", now).await.expect("begun").expect("a plan");
    let applied = CloseResult { outcome: CloseOutcome::Applied { objected: false }, reason: None, outbox_key: None };
    store.plans().record_close_result(apply.id, ISSUE, number(6), applied, now).await.expect("recorded");
    let page = world.page(Who::Rita, "/issues/6").await;
    assert!(page.contains("Canonry closed it as a duplicate of ") && page.contains("closed as a duplicate</span>"));
    assert!(page.contains("What people did, and what it taught"));

    let reopened =
        ItemRecord { state: Some(ItemState::Open), updated_at: Some(now), ..ItemRecord::new(ISSUE, number(6), "Noon") };
    store.corpus().upsert_items(&world.repo, vec![reopened], now).await.expect("taken in");
    assert!(world.page(Who::Rita, "/issues/6").await.contains(", and people opened it again."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comments_are_counted_whatever_their_number() {
    let world = ConsoleWorld::filled().await;
    let busy = ItemRecord {
        comments: Some(u32::MAX),
        review_comments: Some(1),
        ..ItemRecord::new(ISSUE, number(21), "A busy one")
    };
    world.store.corpus().upsert_items(&world.repo, vec![busy], world.now).await.expect("taken in");
    assert!(world.page(Who::Rita, "/issues/21").await.contains("4294967296 comments"));
}

/// The class of every gate of the first look, in order.
fn gates(page: &str) -> Vec<String> {
    let list =
        page.split("<ol class=\"steps gates\">").nth(1).and_then(|rest| rest.split("</ol>").next()).expect("gates");
    list.split("<li class=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}
