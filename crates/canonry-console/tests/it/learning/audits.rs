//! Audits: their results, and the effect of other gates.

use canonry_domain::{
    AdjudicatedAnswer, AuditCandidate, AuditClass, AuditItem, LaneResult, LaneStatus, Probability, Similarity, Verdict,
};
use canonry_store::{AdjudicationKind, AuditedItem, NewAudit, Representation};

use crate::reading::{assert_harmless, linked, words};
use crate::world::{ConsoleWorld, ISSUE, REPO, Who, number};

#[tokio::test]
async fn sliders_change_the_figures_and_nothing_else() {
    let world = ConsoleWorld::new().await;
    let none = words(&world.page(Who::Rita, "/audits").await);
    assert!(none.contains("No audit yet. Start one with canonry judge-audit --repo tide/pool"), "{none}");
    world.issues(10).await;
    let id = world.audited().await;
    let list = world.page(Who::Rita, "/audits").await;
    assert_harmless(&list);
    assert!(words(&list).contains("2 of 3 right (95 % CI "), "{}", words(&list));
    let path = format!("/audits/{id}");
    let page = world.page(Who::Rita, &path).await;
    assert_harmless(&page);
    assert_eq!(page.matches(r#"type="range""#).count(), 3);
    assert_eq!(page.matches(r#"type="number""#).count(), 3);
    let stored = words(&page);
    assert!(stored.contains("As stored") && stored.contains("None yet. Move a slider"), "{stored}");

    let part = world.ask(Who::Rita, &format!("{path}?score=92&score_at=92&score_was=50"), true).await;
    assert_eq!(part.headers()["vary"], "HX-Request");
    let part = part.text().await.expect("a part");
    assert!(!part.contains("<html") && !part.contains("<nav"), "{part}");
    assert_harmless(&part);
    let told = words(&part);
    assert!(told.contains("With these gates") && told.contains("Precision 1 of 1 right (95 % CI "), "{told}");
    assert!(told.contains("stored: 2 of 3 right (95 % CI "), "{told}");
    assert!(told.contains("Changed items: 2") && told.contains("wrongly accepted correctly refused"), "{told}");
    assert!(part.contains(&format!("/r/{REPO}/issues/3")) && part.contains(&format!("/r/{REPO}/issues/4")));
    assert!(told.contains(&format!("canonry report-audit {id} --repo tide/pool --min-score 0.92")), "{told}");

    // The same without scripts: the slider was moved, the number beside it was not.
    let whole = world.page(Who::Rita, &format!("{path}?score=50&score_at=92&score_was=50")).await;
    assert!(whole.contains("<html") && words(&whole).contains("Changed items: 2"));
    let odd = world.page(Who::Rita, &format!("{path}?score=%3Cscript%3Ealert&rank=NaN&gap=-1")).await;
    assert_harmless(&odd);
    assert!(words(&odd).contains("As stored"));

    // People are shown beside the judges, by verdict and score.
    for of in [2, 3] {
        world.said(of, Verdict::Duplicate, 0.93).await;
    }
    let drawn = world.store.judge().draw_adjudications(world.repo.id, AdjudicationKind::Triage, 1, 5, world.now).await;
    assert_eq!(drawn.expect("drawn"), 2);
    for word in [AdjudicatedAnswer::Same, AdjudicatedAnswer::Different] {
        let case = world.store.judge().next_adjudication(world.repo.id, None).await.expect("reads").expect("a case");
        assert!(world.store.judge().adjudicate(world.repo.id, case.id, word, None, world.now).await.expect("kept"));
    }
    for path in ["/audits", path.as_str()] {
        let told = words(&world.page(Who::Rita, path).await);
        assert!(told.contains("2 answered (0 “cannot tell”)"), "{told}");
        assert!(
            told.contains("duplicate 1 of 2 (95 % CI ") && told.contains("score 90 to 94 % 1 of 2 (95 % CI "),
            "{told}"
        );
    }
}

/// An audit of issues 2 to 121 with these judges, all accepted by both at .8.
async fn audited(world: &ConsoleWorld, strong: &str, representation: Representation) -> i64 {
    let lane = LaneResult { status: LaneStatus::Accepted, target: Some(number(1)), confidence: None, reason: None };
    let score = Similarity::new(0.8).expect("a score");
    let item = |of: i64| AuditedItem {
        item_type: ISSUE,
        number: number(of),
        candidate_set: None,
        item: AuditItem {
            candidates: vec![AuditCandidate { number: number(1), rank: 1, score, same_as: Vec::new() }],
            cheap: lane.clone(),
            strong: lane.clone(),
        },
        class: AuditClass::Tp,
    };
    let items: Vec<AuditedItem> = (2..=121).map(item).collect();
    let audit = NewAudit {
        representation,
        seed: 1,
        sample_size: 120,
        cheap_provider: "local".to_owned(),
        cheap_model: "evidence".to_owned(),
        strong_provider: strong.to_owned(),
        strong_model: "strong-1".to_owned(),
        min_edge: Probability::new(0.85).expect("in range"),
        run_id: "run".to_owned(),
        prompt_version: Some(1),
        proof: None,
    };
    world.store.judge().write_audit(world.repo.id, &audit, &items, world.now).await.expect("written")
}

#[tokio::test]
async fn every_item_whose_class_changes_is_reached_with_the_same_gates() {
    let world = ConsoleWorld::new().await;
    world.issues(121).await;
    let id = audited(&world, "anthropic", Representation::Raw).await;
    let mut told: Vec<i64> = Vec::new();
    let mut page = world.page(Who::Rita, &format!("/audits/{id}?score=90&gap=1")).await;
    loop {
        let changes = page.split("id=\"changes\"").nth(1).and_then(|rest| rest.split("</section>").next());
        let changes = changes.expect("the list");
        assert!(words(changes).contains("Changed items: 120"));
        let rows = changes.split("<tr data-row>").skip(1);
        told.extend(rows.filter_map(|row| row.split(">#").nth(1)?.split('<').next()?.parse::<i64>().ok()));
        let Some(next) = linked(&page, "Next page") else { break };
        assert!(next.contains("score=90") && next.contains("gap=1"), "{next}");
        page = world.page(Who::Rita, &next).await;
    }
    assert_eq!(told, (2..=121).collect::<Vec<_>>());
    assert_eq!(linked(&page, "First page"), Some(format!("/audits/{id}?score=90&gap=1")));
}

#[tokio::test]
async fn audits_are_filtered_by_the_address() {
    let world = ConsoleWorld::new().await;
    world.issues(121).await;
    let mut ids = Vec::new();
    for (strong, of) in [("anthropic", Representation::Raw), ("openai", Representation::Intent)] {
        ids.push(audited(&world, strong, of).await);
    }
    let listed = async |query: &str| -> Vec<usize> {
        let page = world.page(Who::Rita, &format!("/audits{query}")).await;
        let is_in = |at: &usize| page.contains(&format!("/audits/{}\"", ids[*at]));
        (0..ids.len()).filter(is_in).collect()
    };
    for (query, expected) in [
        ("", vec![0, 1]),
        ("?judge=anthropic", vec![0]),
        ("?judge=local", vec![0, 1]),
        ("?judge=gemini", vec![]),
        ("?source=intent", vec![1]),
        ("?judge=anthropic&source=intent", vec![]),
        ("?judge=nobody&source=x", vec![0, 1]),
    ] {
        assert_eq!(listed(query).await, expected, "{query}");
    }
    let none = world.page(Who::Rita, "/audits?judge=gemini").await;
    assert!(none.contains("No audit matches these filters.") && none.contains("<option value=\"gemini\" selected>"));
    let all = world.told("/audits").await;
    assert!(all.contains("strong-1 by anthropic") && all.contains("Canonry’s own judge (evidence)"), "{all}");
    // The command reports audits and does not run one.
    assert!(all.contains("canonry report-audit --repo tide/pool") && !all.contains("judge-audit"), "{all}");
}
