//! Shared helpers of the store's tests.

use std::ops::RangeInclusive;

use canonry_domain::{
    ContentVersion, DecisionOrigin, DecisionStatus, ItemNumber, ItemRecord, ItemType, Login, Probability, Similarity,
    TargetPolicy, Verdict,
};
use canonry_store::{NewDecision, NewPlan, NewPlanRow, NewTriageRecord, Repo, Representation, Store};
use canonry_testkit::database::TestDatabase;
use jiff::Timestamp;
use serde_json::json;

pub(crate) const ISSUE: ItemType = ItemType::Issue;
pub(crate) const RAW: Representation = Representation::Raw;

pub(crate) const PLAN: NewPlan<'static> = NewPlan {
    representation: RAW,
    target_policy: TargetPolicy::CanonicalOnly,
    min_close: Probability::ONE,
    config_hash: "c",
    run_id: "planning",
};

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

pub(crate) fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a valid number")
}

pub(crate) fn login(name: &str) -> Login {
    name.parse().expect("a login")
}

pub(crate) fn probability(value: f64) -> Probability {
    Probability::new(value).expect("a probability")
}

pub(crate) fn score(value: f64) -> Similarity {
    Similarity::new(value).expect("a score")
}

pub(crate) async fn open_store(database: &TestDatabase) -> Store {
    Store::open(&database.url().parse().expect("a URL"), at(0)).await.expect("opens")
}

/// A store with the repository tide/pool and these items.
pub(crate) async fn open_with(database: &TestDatabase, items: impl IntoIterator<Item = ItemRecord>) -> (Store, Repo) {
    let store = open_store(database).await;
    let repo = store.repos().ensure(&"tide/pool".parse().expect("a name"), at(0)).await.expect("created");
    store.corpus().upsert_items(&repo, items.into_iter().collect(), at(0)).await.expect("stored");
    (store, repo)
}

pub(crate) fn issues(numbers: RangeInclusive<i64>) -> impl Iterator<Item = ItemRecord> {
    numbers.map(|of| ItemRecord::new(ISSUE, number(of), format!("Issue {of}")))
}

pub(crate) fn pulls(numbers: RangeInclusive<i64>) -> impl Iterator<Item = ItemRecord> {
    numbers.map(|of| ItemRecord::new(ItemType::Pr, number(of), format!("Fix {of}")))
}

/// A row that closes an issue.
pub(crate) fn plan_row(of: i64, target: i64) -> NewPlanRow {
    NewPlanRow {
        item_type: ISSUE,
        number: number(of),
        target: Some(number(target)),
        skip: None,
        confidence: Some(probability(0.95)),
        evidence: json!({}),
        snapshot: json!({}),
    }
}

pub(crate) fn triage_record(of: i64, verdict: Verdict, target: Option<i64>) -> NewTriageRecord {
    NewTriageRecord {
        item_type: ISSUE,
        number: number(of),
        verdict,
        target: target.map(number),
        target_score: target.map(|_| score(0.9)),
        is_duplicate: target.is_some(),
        confidence: target.map(|_| Probability::ONE),
        reason: verdict.to_string(),
        reasoning: String::new(),
        effective_source: RAW,
        source_fallback_reason: None,
        provider: "local".to_owned(),
        model: "evidence".to_owned(),
        prompt_version: 1,
        config_hash: "c".to_owned(),
        content_version: ContentVersion::FIRST,
        embed_model: "local".to_owned(),
        run_id: "run".to_owned(),
        candidates: Vec::new(),
        fix: None,
    }
}

pub(crate) fn judge_decision(source: i64, status: DecisionStatus, target: Option<i64>) -> NewDecision {
    NewDecision {
        item_type: ISSUE,
        number: number(source),
        target: target.map(number),
        representation: RAW,
        candidate_set: None,
        origin: DecisionOrigin::Batch,
        status,
        replaces: false,
        model_is_duplicate: Some(status == DecisionStatus::Accepted),
        confidence: Some(probability(0.93)),
        reasoning: None,
        structure: None,
        reason: None,
        answer: None,
        provider: "local".to_owned(),
        model: "evidence".to_owned(),
        prompt_version: 1,
        config_hash: "c".to_owned(),
        input_hash: "i".to_owned(),
        source_version: ContentVersion::FIRST,
        target_version: target.map(|_| ContentVersion::FIRST),
        candidates: Vec::new(),
        run_id: "run".to_owned(),
    }
}
