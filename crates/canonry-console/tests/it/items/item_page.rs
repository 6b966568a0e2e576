//! The page of one item: its verdict, actions, comparison, checks and history.

use canonry_domain::{
    CurrentThreshold, DecisionStatus, ItemRecord, ItemState, ItemType, Threshold, ThresholdSource, TriageMode,
    TriageReason, Verdict,
};
use canonry_store::{CloseOutcome, CloseResult, TriageAction, TriageActionKind};

use crate::reading::{assert_harmless, words};
use crate::world::items::{decision, record};
use crate::world::plans::{plan_header, plan_row};
use crate::world::reviews::review_history;
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
    assert!(page.contains("Duplicate of ") && page.contains("confidence is 95\u{a0}%, and all checks passed"));
    let marks = gates(&page);
    assert_eq!((marks.len(), marks[12].as_str()), (13, "decided yes"));
    assert!(marks[..12].iter().all(|mark| mark == "passed"), "{marks:?}");
    assert!(page.contains("<summary>13 checks passed</summary>"), "{page}");
    assert!(page.contains("E0512"), "what both texts share is named");
    assert!(
        page.contains("Both stop at noon")
            && page.contains("same instance")
            && page.contains("#1 leads #8 by 4.9\u{a0}%; 1.5\u{a0}% is required.")
    );

    let said_no = gates(&world.page(Who::Rita, "/issues/3").await);
    assert_eq!((said_no[4].as_str(), said_no[5].as_str(), said_no[6].as_str()), ("passed", "decided", "skipped"));
    let page = world.page(Who::Rita, "/issues/4").await;
    let unsure = gates(&page);
    assert_eq!((unsure[9].as_str(), unsure[10].as_str(), unsure[11].as_str()), ("passed", "decided", "skipped"));
    assert!(page.contains("No: 70\u{a0}%; 85\u{a0}% is required."));
    let (failed, folded) =
        page.split_once("<summary>10 checks passed, 2 not reached</summary>").expect("folded checks");
    assert!(failed.contains("Is the judge’s confidence high enough?") && folded.contains("not reached"), "{page}");
    let page = world.page(Who::Rita, "/issues/5").await;
    assert_eq!(gates(&page)[7], "decided");
    assert!(page.contains("relation is “partial overlap”"));
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
        reason: TriageReason::AboveThreshold.into(),
        comment_key: None,
    };
    store.duplicates().record_triage_action(&action, now).await.expect("noted");
    let page = world.page(Who::Rita, "/issues/6").await;
    assert!(
        page.contains("Looks like a duplicate of ") && page.contains("Threshold: 80 %, learned from past outcomes.")
    );
    assert!(page.contains("ranked by vectors 1.3") && page.contains("not similar enough to be judged"));
    assert_eq!(gates(&page)[14], "decided yes");
    assert_harmless(&page);

    let plan = store.plans().create(repo, &plan_header("p"), &[plan_row(6, 1)], now).await.expect("planned");
    let page = world.page(Who::Rita, "/issues/6").await;
    assert!(page.contains("Planned to be closed as a duplicate of #1.") && page.contains(&format!("/plans/{plan}")));
    let apply = store.plans().begin_apply(plan, "a", now).await.expect("begun").expect("a plan");
    let applied = CloseResult { outcome: CloseOutcome::Applied { objected: false }, reason: None, outbox_key: None };
    store.plans().record_close_result(apply.id, ISSUE, number(6), applied, now).await.expect("recorded");
    let page = world.page(Who::Rita, "/issues/6").await;
    assert!(page.contains("Closed by Canonry as a duplicate of ") && page.contains("closed as a duplicate</span>"));
    assert!(page.contains("Closed as a duplicate of #1."), "{page}");

    let reopened =
        ItemRecord { state: Some(ItemState::Open), updated_at: Some(now), ..ItemRecord::new(ISSUE, number(6), "Noon") };
    store.corpus().upsert_items(&world.repo, vec![reopened], now).await.expect("taken in");
    assert!(world.page(Who::Rita, "/issues/6").await.contains("; people reopened it."));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_texts_are_formatted_side_by_side() {
    let world = ConsoleWorld::filled().await;
    let body = "## Steps\n\n- open `table.rs`\n\n```\nerror E0512 at noon\n```\n![shot](https://evil.example/x.png)\n<script>alert(1)</script>";
    let text =
        |of| ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(ISSUE, number(of), format!("Noon {of}")) };
    world.store.corpus().upsert_items(&world.repo, vec![text(2), text(1)], world.now).await.expect("stored");
    world.decide(decision(2, Some(1), DecisionStatus::Accepted, None, 0.95)).await;
    let page = world.page(Who::Rita, "/issues/2").await;
    assert_harmless(&page);
    assert_eq!(page.matches("<h4>Steps</h4>").count(), 2, "{page}");
    assert!(page.contains("Compared with #1") && page.contains("<pre><code>") && !page.contains("```"), "{page}");
    assert!(page.contains("[image not shown: shot]") && !page.contains("href=\"https://evil.example"), "{page}");
    assert!(page.contains("<mark class=\"e4\" data-fact=\"1,5\""), "shared evidence is marked: {page}");
    let lines = world.page(Who::Rita, "/issues/2?view=lines").await;
    assert!(lines.contains("Side by side") && lines.contains("class=\"text lines\""), "{lines}");
    // Without a candidate only the text is shown.
    assert!(world.page(Who::Rita, "/issues/7").await.contains("<h2 id=\"comparison\">Description</h2>"));
}

#[tokio::test]
async fn a_pull_request_begins_with_its_findings_and_their_code() {
    let world = ConsoleWorld::on_github().await;
    let pull = ItemRecord::new(ItemType::Pr, number(1), "Faster tides");
    let new = ItemRecord::new(ItemType::Pr, number(3), "Not reviewed");
    world.store.corpus().upsert_items(&world.repo, vec![pull, new], world.now).await.expect("stored");
    let history = review_history(&world).await;
    let page = world.page(Who::Rita, "/pulls/1").await;
    assert_harmless(&page);
    let findings = page.find("Findings over its pushes").expect("findings");
    assert!(findings < page.find("aria-label=\"Verdict\"").expect("a verdict"), "duplicates come second");
    for link in ["/reviews?pull=1\"", "/findings?pull=1\"", "https://github.com/tide/pool/pull/1/checks\""] {
        assert!(page.contains(link), "{link}: {page}");
    }
    assert!(page.contains(&format!("/findings/{}\"", history.eval)), "{page}");
    let told = words(&page);
    assert!(told.contains("aaaaaaa new bbbbbbb still open ddddddd fixed"), "{told}");
    assert!(told.contains("src/run.js:3 1 let a = 1; 2 3 flagged eval(a); 4 }"), "{told}");
    assert!(told.contains("No code was stored for these reviews."), "{told}");
    assert!(world.told("/pulls/3").await.contains("Not reviewed yet. Findings appear here after the first review"));
}

/// The class of every check of the first run, in order.
fn gates(page: &str) -> Vec<String> {
    let list =
        page.split("<ol class=\"steps gates\">").nth(1).and_then(|rest| rest.split("</ol>").next()).expect("gates");
    list.split("<li class=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}
