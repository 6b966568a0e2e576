//! The learning page: every number with its count, its interval and its reason.

use canonry_domain::Verdict;
use reqwest::StatusCode;

use crate::reading::{assert_harmless, linked, words};
use crate::world::{ConsoleWorld, REPO, Who};

#[tokio::test]
async fn a_sceptic_finds_every_number_with_its_count_and_its_interval() {
    let world = ConsoleWorld::new().await;
    let empty = words(&world.page(Who::Rita, "/learning").await);
    assert!(empty.contains("No prediction at 85 % or more has an outcome yet."), "{empty}");
    assert!(
        empty.contains("No outcome yet. The chart begins")
            && empty.contains("No outcome yet. Each issue that Canonry compared"),
        "{empty}"
    );
    learned(&world).await;
    let page = world.page(Who::Rita, "/learning").await;
    assert_harmless(&page);
    let said = words(&page);
    let state = world.store.learning().thresholds(world.repo.id).await.expect("reads").repository;
    let reason = state.reason.to_string();
    assert!(said.contains(&reason[1..]), "the rule's own reason: {reason}\n{said}");
    assert!(said.contains("All 120 Right 64 Wrong 32 Missed 16 Not flagged 8"), "{said}");
    assert!(said.contains("Predictions at 85 % or more: 48 of 72 right (95 % CI 55–76 %)."), "{said}");
    assert!(said.contains("equal Recomputed from the counts of 120 outcomes"), "{said}");
    assert!(said.contains("in a row at "), "what would change it: {said}");
    assert!(said.contains("@mona, a maintainer") && said.contains("closed as a duplicate of #1"), "{said}");
    assert_eq!((page.matches("<svg viewBox").count(), page.matches("<summary>As a table").count()), (3, 3));
    assert!(page.contains(&format!("/r/{REPO}/issues/121")), "each outcome leads to its issue");

    let name = "sync & <b>more";
    let thresholds = world.store.learning().thresholds(world.repo.id).await.expect("reads");
    assert_eq!(thresholds.components.len(), 2, "{thresholds:?}");
    let component = world.page(Who::Rita, "/learning?component=sync+%26+%3Cb%3Emore").await;
    assert_harmless(&component);
    assert!(!component.contains(name) && component.contains("sync &#38; &#60;b&#62;more"), "escaped");
    assert!(words(&component).contains("All 40 "), "{}", words(&component));
    let unknown = world.page(Who::Rita, "/learning?component=nobody").await;
    assert!(!words(&unknown).contains("For issues of"), "what is no component is the repository");
    let checked = words(&world.page(Who::Mona, "/learning?check=1").await);
    assert!(checked.contains("equal Recomputed from every recorded event"), "{checked}");
    // The check reads everything, so readers may not run it.
    assert_eq!(world.ask(Who::Rita, "/learning?check=1", false).await.status(), StatusCode::FORBIDDEN);
    assert!(world.page(Who::Mona, "/learning").await.contains("check=1") && !page.contains("check=1"));
}

#[tokio::test]
async fn every_outcome_and_every_move_is_to_be_found() {
    let world = ConsoleWorld::new().await;
    learned(&world).await;
    let (mut path, mut seen, mut pages) = ("/learning".to_owned(), Vec::new(), 0);
    loop {
        let page = world.page(Who::Rita, &path).await;
        let (_, outcomes) = page.split_once(r#"id="outcomes""#).expect("the section");
        let numbers = outcomes.split(r#"pool/issues/"#).skip(1).filter_map(|rest| rest.split('"').next());
        seen.extend(numbers.filter_map(|number| number.parse::<i64>().ok()));
        pages += 1;
        let Some(next) = linked(outcomes, "Next page") else { break };
        path = next;
        assert!(pages < 20, "{seen:?}");
    }
    assert_eq!((pages, seen), (8, (2..=121).rev().collect()), "each once, the latest first");
    let wrong = world.page(Who::Rita, "/learning?taught=missed&component=other").await;
    let (_, outcomes) = wrong.split_once(r#"id="outcomes""#).expect("the section");
    assert_eq!(outcomes.matches("<tr data-row>").count(), 15, "{outcomes}");
    let second = world.page(Who::Rita, &linked(outcomes, "Next page").expect("more")).await;
    let (_, outcomes) = second.split_once(r#"id="outcomes""#).expect("the section");
    assert_eq!(outcomes.matches("<tr data-row>").count(), 1, "sixteen were missed: {outcomes}");
    assert_eq!(linked(outcomes, "First page").as_deref(), Some("/learning?component=other&taught=missed"));
    let moves = world.store.learning().threshold_adjustments(world.repo.id, 99).await.expect("reads");
    let behind = world.page(Who::Rita, &format!("/learning?moves={}", moves[0].id)).await;
    let (_, listed) = behind.split_once(r#"id="moves""#).expect("the section");
    assert!(linked(listed, "First page").as_deref() == Some("/learning"), "{listed}");
}

async fn learned(world: &ConsoleWorld) {
    world.issues(125).await;
    for of in 2..=121 {
        let verdict = if of % 5 == 0 { Verdict::NotDuplicate } else { Verdict::Duplicate };
        world.said(of, verdict, 0.80 + (of % 20) as f64 / 100.0).await;
        let component = if of % 3 == 0 { "sync & <b>more" } else { "other" };
        world.closed(of, of % 3 != 0, component, of).await;
    }
}
