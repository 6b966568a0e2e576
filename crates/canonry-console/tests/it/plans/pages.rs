//! What the pages of plans show, and to whom.

use canonry_domain::{GoneReason, OverrideKind};
use canonry_store::{CloseOutcome, CloseResult, PlanTotals};
use jiff::SignedDuration;
use reqwest::StatusCode;

use crate::reading::assert_harmless;
use crate::world::items::ruling;
use crate::world::plans::{PlanWorld, body, issue, plan_header, plan_row};
use crate::world::{HOSTILE, ISSUE, Who, number};

#[tokio::test]
async fn pages_are_for_readers_and_actions_for_maintainers() {
    let world = PlanWorld::new().await;
    let paths = ["/plans".to_owned(), world.path(""), world.path("/rows/issue/3")];
    for path in &paths {
        for (who, status) in [
            (Who::Operator, StatusCode::OK),
            (Who::Mona, StatusCode::OK),
            (Who::Rita, StatusCode::OK),
            (Who::Stranger, StatusCode::NOT_FOUND),
            (Who::Nobody, StatusCode::SEE_OTHER),
        ] {
            assert_eq!(world.ask(who, path, false).await.status(), status, "{who:?} {path}");
        }
    }
    let (mona, rita) = (world.page(Who::Mona, &world.path("")).await, world.page(Who::Rita, &world.path("")).await);
    for action in ["data-key=\"a\"", "name=\"confirm\"", "Approve all 3 undecided", "type=\"checkbox\"", "/export."] {
        assert!(mona.contains(action) && !rita.contains(action), "{action}");
    }
    assert!(mona.contains("close 3 in tide/pool"));
    assert!(world.page(Who::Mona, "/plans").await.contains("Make a plan"));
    assert!(!world.page(Who::Rita, "/plans").await.contains("Make a plan"));
    for unknown in ["/plans/999", "/plans/x", "/plans/1/rows/issue/99", "/plans/1/rows/bug/2", "/plans/999/export.csv"]
    {
        assert_eq!(world.ask(Who::Mona, unknown, false).await.status(), StatusCode::NOT_FOUND, "{unknown}");
    }
}

#[tokio::test]
async fn a_row_shows_both_texts_with_what_they_share_and_nothing_hostile() {
    let world = PlanWorld::new().await;
    let page = world.page(Who::Rita, &world.path("/rows/issue/3")).await;
    assert!(page.contains("Close issue #3 as a duplicate of #1"));
    // The error line is marked in both texts, with the identifier and the quote inside it.
    assert_eq!(page.matches("<mark class=\"e0\" data-fact=\"1\"").count(), 2, "{page}");
    assert_eq!(page.matches("&lt;could&gt;<mark class=\"e0\"").count(), 2, "{page}");
    assert_eq!(page.matches(">lock_file</mark>").count(), 3, "in both texts, and in the list of evidence");
    assert!(
        page.contains(">error: lock_file &#60;could&#62; not be") && page.contains("error message</span>"),
        "{page}"
    );
    assert!(page.contains("They fail alike.") && page.contains("is a duplicate of #4"));
    for list in [page, world.page(Who::Mona, &world.path("?show=all")).await, world.page(Who::Mona, "/plans").await] {
        assert_harmless(&list);
    }
    let shown = world.page(Who::Mona, &world.path("")).await;
    assert!(shown.contains("\\u{202e}") && shown.contains("{{ 7*7 }}") && HOSTILE.contains("7*7"));
}

#[tokio::test]
async fn rows_are_filtered_and_grouped_by_what_stays_open() {
    let world = PlanWorld::new().await;
    let rows = async |show: &str| {
        let page = world.page(Who::Mona, &world.path(&format!("?show={show}"))).await;
        let mut found: Vec<i64> = (1..=6).filter(|of| page.contains(&format!("id=\"row-issue-{of}\""))).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(rows("all").await, [2, 3, 5, 6]);
    assert_eq!(rows("closes").await, [2, 3, 5]);
    assert_eq!(rows("skips").await, [6]);
    assert_eq!(rows("skips&reason=not_open").await, [0; 0]);
    assert_eq!(rows("skips&reason=pinned").await, [6]);
    assert_eq!(rows("closes&after=issue/3").await, [5]);
    world
        .store
        .plans()
        .set_approved(world.plan, ISSUE, &[number(3)], Some(true), None, world.now)
        .await
        .expect("noted");
    assert_eq!(rows("undecided").await, [2, 5]);
    assert_eq!(rows("approved").await, [3]);
    let page = world.page(Who::Mona, &world.path("")).await;
    assert_eq!(page.matches("scope=\"rowgroup\"").count(), 2);
    assert!(page.contains("data-count=\"closes\">3<") && page.contains("data-count=\"approved\">1<"), "{page}");
    // What an apply would close, its limit and the plan's end are above the rows.
    assert!(page.contains("Apply can close 3 items: 1 approved, 2 not reviewed."), "{page}");
    assert!(page.contains("Without approval: at most 10 a day, 0 used. Expires in 7 days."), "{page}");
    assert!(
        page.contains("it is pinned")
            || world.page(Who::Mona, &world.path("?show=skips")).await.contains("it is pinned")
    );
    // Line by line, common lines appear once.
    let lines = world.page(Who::Mona, &world.path("/rows/issue/3?view=lines")).await;
    assert!(lines.contains("<del>What I did in 3") && lines.contains("<ins>What I did in 1"), "{lines}");
}

#[tokio::test]
async fn what_changed_since_the_plan_and_what_holds_it_back_is_told() {
    let world = PlanWorld::new().await;
    let page = world.page(Who::Mona, &world.path("/rows/issue/3")).await;
    assert!(page.contains("Expires in 7 days.") && !page.contains("Changed since"));
    let edited = format!("{} and more", body(3));
    world.store.corpus().upsert_items(&world.repo, vec![issue(3, &edited)], world.now).await.expect("taken in");
    let page = world.page(Who::Mona, &world.path("/rows/issue/3")).await;
    assert!(page.contains("Changed since the plan was made: its text was edited."), "{page}");
    assert!(page.contains("The text was edited after the plan was made."));

    let old = world.planned(SignedDuration::from_hours(8 * 24)).await;
    assert!(world.page(Who::Mona, &format!("/plans/{old}")).await.contains("is older than 7 days"));
    let page = world.page(Who::Mona, &world.path("")).await;
    assert!(page.contains(&format!("plan {old} is newer and has items of plan {}", world.plan)), "{page}");
    assert!(page.contains("This plan cannot be applied: ") && !page.contains("id=\"apply\""), "{page}");
    let by = "mona".parse().expect("a login");
    let kind = canonry_store::BrakeKind::Pause;
    world.store.close().set_brake(world.repo.id, kind, Some(&by), "so", world.now).await.expect("set");
    assert!(
        world
            .page(Who::Rita, &world.path(""))
            .await
            .contains("Paused by @mona now: nothing is written to GitHub in this repository.")
    );
}

#[tokio::test]
async fn a_plan_that_would_be_refused_is_not_offered() {
    let world = PlanWorld::new().await;
    assert!(world.told("/plans").await.contains("to review"));
    assert!(world.told("").await.contains("Plan 1: 3 rows to review"));
    let apart = ruling(OverrideKind::NotDuplicate, 2, Some(1));
    let later = world.now + SignedDuration::from_secs(1);
    world.store.duplicates().add_override(world.repo.id, apart, later).await.expect("ruled");
    assert!(world.told("/plans").await.contains("to review"), "the other cluster can be applied");
    let apart = ruling(OverrideKind::NotDuplicate, 5, Some(4));
    world.store.duplicates().add_override(world.repo.id, apart, later).await.expect("ruled");
    let told = world.told("/plans").await;
    assert!(told.contains("outdated by a ruling") && !told.contains("to review"));
    let told = world.told("").await;
    assert!(
        told.contains("Plan 1 is out of date: a ruling changed its clusters") && !told.contains("to review"),
        "{told}"
    );
    let old = world.planned(SignedDuration::from_hours(8 * 24)).await;
    let told = world.told("/plans").await;
    assert!(told.contains(&format!("replaced by plan {old}")) && told.contains("expired"), "{told}");
    assert!(!world.told("").await.contains("rows to review"), "nobody is asked to");
}

#[tokio::test]
async fn what_an_apply_came_to_is_said_as_it_is() {
    let world = PlanWorld::new().await;
    let run =
        world.store.plans().begin_apply(world.plan, "applying", world.now).await.expect("begun").expect("a plan").id;
    let ended = async |of: i64, outcome: CloseOutcome| {
        let result = CloseResult { outcome, reason: Some("drift:source_edited"), outbox_key: None };
        let recorded = world.store.plans().record_close_result(run, ISSUE, number(of), result, world.now).await;
        assert!(recorded.expect("recorded"));
    };
    ended(2, CloseOutcome::Skipped).await;
    let page = world.page(Who::Rita, "/plans").await;
    assert!(page.contains("0 closed, 2 left") && page.matches("<time").count() == 1, "only when it was made: {page}");
    ended(3, CloseOutcome::Skipped).await;
    ended(5, CloseOutcome::Failed).await;
    world.store.plans().finish_run(run, world.now).await.expect("finished");
    let page = world.page(Who::Rita, "/plans").await;
    assert!(page.contains("nothing closed: 2 skipped, 1 failed") && !page.contains("badge good"), "{page}");
    assert_eq!(page.matches("<time").count(), 2, "{page}");
}

#[tokio::test]
async fn the_list_shows_the_chosen_row_however_far_behind_it_is() {
    let mut world = PlanWorld::new().await;
    let many: Vec<_> = (10..=140).map(|of| issue(of, "long")).collect();
    world.store.corpus().upsert_items(&world.repo, many, world.now).await.expect("taken in");
    let rows: Vec<_> = (10..=140).map(|of| plan_row(of, 1)).collect();
    world.plan =
        world.store.plans().create(world.repo.id, &plan_header("planning"), &rows, world.now).await.expect("planned");
    for (of, tail) in [(12, ""), (61, ""), (135, ""), (12, "?after=issue/100")] {
        let page = world.page(Who::Rita, &world.path(&format!("/rows/issue/{of}{tail}"))).await;
        assert!(page.contains(&format!("id=\"row-issue-{of}\" tabindex=\"-1\" data-current")), "{of}: {page}");
    }
    // The list continues from there, and a row that does not match the filter is shown beside the first page.
    let page = world.page(Who::Rita, &world.path("/rows/issue/70")).await;
    assert!(page.contains("after=issue%2F119"), "{page}");
    let page = world.page(Who::Rita, &world.path("/rows/issue/135?show=approved")).await;
    assert!(page.contains("No row matches this filter."), "{page}");
}

#[tokio::test]
async fn a_plan_can_be_kept_as_a_file() {
    let world = PlanWorld::new().await;
    world
        .store
        .plans()
        .set_approved(world.plan, ISSUE, &[number(3)], Some(false), None, world.now)
        .await
        .expect("noted");
    let file = async |ending: &str| {
        let path = world.path(&format!("/export.{ending}"));
        for (who, status) in [(Who::Rita, StatusCode::FORBIDDEN), (Who::Stranger, StatusCode::NOT_FOUND)] {
            assert_eq!(world.ask(who, &path, false).await.status(), status, "{path} by {who:?}");
        }
        let answer = world.ask(Who::Mona, &path, false).await;
        let header = |name: &str| answer.headers()[name].to_str().expect("a text").to_owned();
        let kind = header("content-type");
        assert_eq!(header("content-disposition"), format!("attachment; filename=\"plan-{}.{ending}\"", world.plan));
        assert_eq!(header("x-content-type-options"), "nosniff");
        (kind, answer.text().await.expect("a text"))
    };
    let (kind, markdown) = file("md").await;
    assert!(kind.starts_with("text/markdown") && markdown.contains("| excluded |"), "{markdown}");
    let (kind, csv) = file("csv").await;
    assert!(kind.starts_with("text/csv"));
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.lines().skip(1).all(|line| line.starts_with("issue,") && line.contains(",\"'=HYPERLINK(")), "{csv}");
    let (kind, document) = file("json").await;
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!((kind.as_str(), document["items"].as_array().map(Vec::len)), ("application/json", Some(4)));
    assert_eq!((&document["items"][1]["number"], &document["items"][1]["approved"]), (&3.into(), &false.into()));
}

#[test]
fn what_was_undone_while_it_was_counted_is_no_mistake() {
    let totals = |applied, undone| PlanTotals { applied, undone, ..PlanTotals::default() };
    assert_eq!((totals(3, 1).can_be_undone(), totals(1, 2).can_be_undone()), (2, 0));
}

#[tokio::test]
async fn a_row_says_nothing_of_what_was_deleted_on_github() {
    let planned = PlanWorld::new().await;
    let (row, list) = (planned.path("/rows/issue/2"), planned.path(""));
    for gone in [1, 2] {
        let text = format!("What I did in {gone}:");
        assert!(planned.page(Who::Rita, &row).await.contains(&text));
        let marked =
            planned.store.corpus().mark_gone(planned.repo.id, number(gone), GoneReason::Deleted, planned.now).await;
        assert!(marked.expect("written"));
        let told = planned.page(Who::Rita, &row).await;
        assert!(!told.contains(&text) && told.contains("(gone from GitHub)"), "{told}");
        assert!(planned.page(Who::Rita, &list).await.contains("(gone from GitHub)"));
        assert!(planned.page(Who::Mona, &row).await.contains(&text));
    }
}
