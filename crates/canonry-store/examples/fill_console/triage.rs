//! Verdicts about issues, the actions of people on them, and the cases drawn for adjudication.

use std::collections::BTreeMap;

use canonry_domain::{
    AuditCandidate, AuditClass, AuditItem, ContentVersion, EventBy, ItemState, ItemType, LaneResult, LaneStatus,
    OutcomeEvent, OutcomeKind, StateReason, Verdict,
};
use canonry_store::{AuditedItem, NewAudit, NewTriageRecord, Representation, TriageCandidate};

use crate::{BATCH, Failure, Filling, number, probability, score};

pub(crate) async fn fill(filling: &Filling) -> Result<(), Failure> {
    let Filling { store, repo, now, items } = filling;
    for of in 2..=items / 2 {
        store.duplicates().write_triage_record(repo.id, &record(of), filling.ago((items / 2 - of) / 6)).await?;
    }
    let events: Vec<OutcomeEvent> = (2..=items * 3 / 10).map(|of| closed(filling, of)).collect();
    for batch in events.chunks(BATCH) {
        store.learning().record_outcome_events(repo.id, batch, *now).await?;
    }
    for seed in 1..=5 {
        let audited: Vec<AuditedItem> = (0..500).map(|at| audited(2 + at)).collect();
        let audit = NewAudit {
            representation: Representation::Raw,
            seed,
            sample_size: 500,
            cheap_provider: "local".to_owned(),
            cheap_model: "evidence".to_owned(),
            strong_provider: "command".to_owned(),
            strong_model: "strong".to_owned(),
            min_edge: probability(85),
            run_id: format!("audit-{seed}"),
            prompt_version: Some(1),
            proof: None,
        };
        store.judge().write_audit(repo.id, &audit, &audited, *now).await?;
    }
    Ok(())
}

/// The nearest items are the ten before; one in four is a duplicate of the nearest.
fn record(of: i64) -> NewTriageRecord {
    let verdict = match of % 8 {
        0 | 1 => Verdict::Duplicate,
        2 => Verdict::MaybeDuplicate,
        _ => Verdict::NotDuplicate,
    };
    let named = verdict != Verdict::NotDuplicate;
    let candidate = |at: i64| TriageCandidate {
        number: number(at),
        score: score(97 - (of - at)),
        parts: BTreeMap::from([("dense".to_owned(), 0.81), ("lexical".to_owned(), 0.4), ("title".to_owned(), 0.2)]),
        state: ItemState::Open,
        judged: of - at < 3,
    };
    NewTriageRecord {
        item_type: ItemType::Issue,
        number: number(of),
        verdict,
        target: named.then(|| number(of - 1)),
        target_score: named.then(|| score(70 + of % 30)),
        is_duplicate: named,
        confidence: Some(probability(70 + of % 30)),
        reason: if named { "duplicate" } else { "model_not_duplicate" }.to_owned(),
        reasoning: "Both stop at the same line with the same error.".to_owned(),
        effective_source: Representation::Raw,
        source_fallback_reason: None,
        provider: "local".to_owned(),
        model: "evidence".to_owned(),
        prompt_version: 1,
        config_hash: "c".to_owned(),
        content_version: ContentVersion::FIRST,
        embed_model: "local".to_owned(),
        run_id: format!("run-{of}"),
        candidates: (1.max(of - 10)..of).rev().map(candidate).collect(),
        fix: None,
    }
}

fn closed(filling: &Filling, of: i64) -> OutcomeEvent {
    let duplicate = of % 5 < 2;
    OutcomeEvent {
        delivery_id: format!("closed {of}"),
        number: number(of),
        kind: OutcomeKind::Closed,
        state_reason: Some(if duplicate { StateReason::Duplicate } else { StateReason::Completed }),
        actor: "maint".parse().ok(),
        by: EventBy::Maintainer,
        duplicate_of: duplicate.then(|| number(of - 1)),
        in_body: None,
        comment: None,
        labels: Some(vec![format!("area/{}", of % 12)]),
        cluster: Vec::new(),
        // After the record: an earlier event says nothing about it.
        occurred_at: filling.ago((filling.items * 3 / 10 - of) / 8),
    }
}

fn audited(of: i64) -> AuditedItem {
    let (cheap, strong) = (of % 3 != 0, of % 4 != 0);
    let lane = |says: bool| LaneResult {
        status: if says { LaneStatus::Accepted } else { LaneStatus::Rejected },
        target: says.then(|| number(of - 1)),
        confidence: None,
        reason: None,
    };
    let class = match (cheap, strong) {
        (true, true) => AuditClass::Tp,
        (true, false) => AuditClass::Fp,
        (false, true) => AuditClass::Fn,
        (false, false) => AuditClass::Tn,
    };
    let candidate = AuditCandidate { number: number(of - 1), rank: 1, score: score(60 + of % 40), same_as: Vec::new() };
    AuditedItem {
        item_type: ItemType::Issue,
        number: number(of),
        candidate_set: None,
        item: AuditItem { candidates: vec![candidate], cheap: lane(cheap), strong: lane(strong) },
        class,
    }
}
