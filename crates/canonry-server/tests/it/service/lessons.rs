//! Issues that Canonry triaged and people closed, for tests that need learned data.

use canonry_domain::{
    ContentVersion, EventBy, GithubId, ItemNumber, ItemRecord, ItemType, OutcomeEvent, OutcomeKind, Probability,
    Similarity, StateReason, Verdict,
};
use canonry_store::{NewTriageRecord, Repo, Representation, Store};
use jiff::Timestamp;

/// A repository with this GitHub id.
pub(crate) async fn repository(store: &Store, name: &str, id: i64, now: Timestamp) -> Repo {
    let name = name.parse().expect("a name");
    let repo = store.repos().ensure(&name, now).await.expect("created");
    store.repos().identify(repo.id, GithubId(id), &name).await.expect("answers").expect("nobody else has it")
}

/// Issues with these numbers that were predicted to be duplicates of #1 with a score of 0.93, and how people closed
/// them.
pub(crate) async fn teach(
    store: &Store,
    repo: &Repo,
    numbers: std::ops::Range<i64>,
    labels: &[&str],
    reason: StateReason,
    now: Timestamp,
) {
    let number = |number| ItemNumber::new(number).expect("a number");
    let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    let issue = |of: i64| ItemRecord::new(ItemType::Issue, number(of), format!("Issue {of}"));
    let records = std::iter::once(1).chain(numbers.clone()).map(issue).collect();
    store.corpus().upsert_items(repo, records, now).await.expect("taken in");
    for of in numbers.clone() {
        store.duplicates().write_triage_record(repo.id, &said(number(of), number(1)), now).await.expect("written");
    }
    let events: Vec<OutcomeEvent> = numbers
        .map(|of| OutcomeEvent {
            delivery_id: format!("{}#{of}", repo.name),
            number: number(of),
            kind: OutcomeKind::Closed,
            state_reason: Some(reason),
            actor: Some("mona".parse().expect("a login")),
            by: EventBy::Person,
            duplicate_of: (reason == StateReason::Duplicate).then(|| number(1)),
            in_body: None,
            comment: None,
            labels: Some(labels.clone()),
            cluster: Vec::new(),
            occurred_at: now,
        })
        .collect();
    store.learning().record_outcome_events(repo.id, &events, now).await.expect("recorded");
}

fn said(of: ItemNumber, target: ItemNumber) -> NewTriageRecord {
    NewTriageRecord {
        item_type: ItemType::Issue,
        number: of,
        verdict: Verdict::Duplicate,
        target: Some(target),
        target_score: Some(Similarity::new(0.93).expect("a score")),
        is_duplicate: true,
        confidence: Some(Probability::ONE),
        reason: "duplicate".to_owned(),
        reasoning: "A secret reasoning.".to_owned(),
        effective_source: Representation::Raw,
        source_fallback_reason: None,
        provider: "local".to_owned(),
        model: "evidence".to_owned(),
        prompt_version: 1,
        config_hash: "c".to_owned(),
        content_version: ContentVersion::FIRST,
        embed_model: "small".to_owned(),
        run_id: format!("run {of}"),
        candidates: Vec::new(),
        fix: None,
    }
}
