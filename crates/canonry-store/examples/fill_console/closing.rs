//! Decisions, clusters, plans, closes, rulings and graces.

use std::collections::BTreeMap;

use canonry_domain::{
    Certainty, ContentVersion, DecisionOrigin, DecisionStatus, Item, ItemNumber, ItemType, OverrideKind, Relation,
    RootCauseMatch, RowSnapshot, ScopeRelation, SkipReason, Structure, TargetPolicy, WriteKey, WriteKind, WriteOrigin,
};
use canonry_store::{
    AdjudicationKind, CandidateMember, CloseOutcome, CloseResult, DecidedCandidate, NewCandidateSet, NewDecision,
    NewGrace, NewOutboxEntry, NewOverride, NewPlan, NewPlanRow, Representation,
};
use jiff::SignedDuration;
use serde_json::json;

use crate::{BATCH, Failure, Filling, number, probability, score};

const ISSUE: ItemType = ItemType::Issue;
const RAW: Representation = Representation::Raw;

pub(crate) async fn fill(filling: &Filling) -> Result<(), Failure> {
    let (Filling { store, repo, now, .. }, pairs) = (filling, filling.pairs());
    for batch in pairs.chunks(BATCH) {
        let sets: Vec<NewCandidateSet> = batch.iter().map(|(item, of)| candidates(*item, *of)).collect();
        store.duplicates().write_candidate_sets(repo.id, &sets, *now).await?;
        let decisions: Vec<NewDecision> = batch.iter().map(|(item, of)| decision(*item, *of)).collect();
        store.judge().write_decisions(repo.id, &decisions, *now).await?;
    }
    let mut canonicals: BTreeMap<ItemNumber, ItemNumber> = pairs.iter().copied().collect();
    canonicals.extend(pairs.iter().map(|(_, canonical)| (*canonical, *canonical)));
    store.duplicates().set_canonicals(repo.id, ISSUE, RAW, &canonicals, *now).await?;
    store.judge().draw_adjudications(repo.id, AdjudicationKind::Triage, 7, 200, *now).await?;
    store.judge().draw_adjudications(repo.id, AdjudicationKind::Edge, 8, 200, *now).await?;

    let rows = rows(filling, &pairs).await?;
    let applied = plan(filling, &rows[..rows.len().min(2_000)], 48).await?;
    apply(filling, applied, &rows[..rows.len().min(500)]).await?;
    let largest = usize::try_from(filling.items / 10)?;
    plan(filling, &rows[..rows.len().min(largest)], 1).await?;

    for at in 0..filling.items / 100 {
        let (item, other) = pairs[usize::try_from(at)?];
        let by = format!("maint-{}", at % 5).parse()?;
        let kind = OverrideKind::NotDuplicate;
        let ruling =
            NewOverride { item_type: ISSUE, kind, item, other: Some(other), note: Some("seen"), by: Some(&by) };
        store.duplicates().add_override(repo.id, ruling, filling.ago(100)).await?;
    }
    for at in 0..filling.items / 1_000 {
        let (item, target) = pairs[pairs.len() - 1 - usize::try_from(at)?];
        let grace = NewGrace {
            item_type: ISSUE,
            number: item,
            target,
            triage_id: None,
            comment_key: None,
            approved_by: None,
            content_version: ContentVersion::FIRST,
            began_at: *now,
            due_at: *now + SignedDuration::from_hours(at),
        };
        store.close().begin_grace(repo.id, &grace).await?;
    }
    Ok(())
}

fn candidates(item: ItemNumber, of: ItemNumber) -> NewCandidateSet {
    let parts = BTreeMap::from([("dense".to_owned(), 0.9), ("lexical".to_owned(), 0.7), ("evidence".to_owned(), 0.5)]);
    let others = (0..9).map(|at| number(item.get() + 20 + at));
    let members = std::iter::once(of).chain(others).zip([0.95, 0.7, 0.69, 0.68, 0.67, 0.66, 0.65, 0.64, 0.63, 0.62]);
    NewCandidateSet {
        item_type: ISSUE,
        number: item,
        representation: RAW,
        content_version: ContentVersion::FIRST,
        model: "local".to_owned(),
        members: members.map(|(number, score)| CandidateMember { number, score, parts: parts.clone() }).collect(),
        pairs: Vec::new(),
    }
}

fn decision(item: ItemNumber, of: ItemNumber) -> NewDecision {
    let judged = DecidedCandidate { number: of, score: score(95), content_version: ContentVersion::FIRST };
    NewDecision {
        item_type: ISSUE,
        number: item,
        target: Some(of),
        representation: RAW,
        candidate_set: None,
        origin: DecisionOrigin::Batch,
        status: DecisionStatus::Accepted,
        replaces: false,
        model_is_duplicate: Some(true),
        confidence: Some(probability(86 + item.get() % 14)),
        reasoning: Some("Both stop at the same line with the same error.".to_owned()),
        structure: Some(Structure {
            relation: Some(Relation::SameInstance),
            root_cause_match: Some(RootCauseMatch::Same),
            scope_relation: Some(ScopeRelation::SameScope),
            path_match: None,
            certainty: Some(Certainty::Sure),
        }),
        reason: None,
        answer: Some(r#"{"is_duplicate": true}"#.to_owned()),
        provider: "local".to_owned(),
        model: "evidence".to_owned(),
        prompt_version: 1,
        config_hash: "c".to_owned(),
        input_hash: format!("{item}-{of}"),
        source_version: ContentVersion::FIRST,
        target_version: Some(ContentVersion::FIRST),
        candidates: vec![judged],
        run_id: "run".to_owned(),
    }
}

async fn rows(filling: &Filling, pairs: &[(ItemNumber, ItemNumber)]) -> Result<Vec<NewPlanRow>, Failure> {
    let mut rows = Vec::with_capacity(pairs.len());
    for batch in pairs.chunks(BATCH) {
        let named: Vec<ItemNumber> = batch.iter().flat_map(|(item, of)| [*item, *of]).collect();
        let items = filling.store.corpus().items_by_number(filling.repo.id, ISSUE, &named).await?;
        let items: BTreeMap<ItemNumber, &Item> = items.iter().map(|item| (item.number, item)).collect();
        for (item, of) in batch {
            let skip = (item.get() % 4 == 0).then_some(SkipReason::LowConfidence);
            rows.push(NewPlanRow {
                item_type: ISSUE,
                number: *item,
                target: Some(*of),
                skip,
                confidence: Some(probability(86 + item.get() % 14)),
                evidence: json!({ "facts": ["the error `E0599`", "the file `src/tide/table.rs`"] }),
                snapshot: serde_json::to_value(RowSnapshot::of(items[item], items[of]))?,
            });
        }
    }
    Ok(rows)
}

async fn plan(filling: &Filling, rows: &[NewPlanRow], hours: i64) -> Result<canonry_store::CloseRunId, Failure> {
    let new = NewPlan {
        representation: RAW,
        target_policy: TargetPolicy::CanonicalOnly,
        min_close: probability(90),
        config_hash: "c",
        run_id: "planned",
    };
    Ok(filling.store.plans().create(filling.repo.id, &new, rows, filling.ago(hours)).await?)
}

/// Applies an earlier plan: each row with its write.
async fn apply(filling: &Filling, plan: canonry_store::CloseRunId, rows: &[NewPlanRow]) -> Result<(), Failure> {
    let Filling { store, repo, now, .. } = filling;
    let run = store.plans().begin_apply(plan, "applied", filling.ago(47)).await?.ok_or("the plan is there")?;
    for row in rows.iter().filter(|row| row.skip.is_none()) {
        let key = WriteKey::of_item(WriteOrigin::Close, plan.get(), ISSUE, row.number).with_record(plan.get());
        let payload = json!({});
        let write = NewOutboxEntry {
            repo: repo.id,
            number: row.number,
            kind: WriteKind::Close,
            key: &key,
            payload: &payload,
            refused: None,
        };
        store.outbox().enqueue(&write, *now).await?;
        let outcome = CloseOutcome::Applied { objected: false };
        let result = CloseResult { outcome, reason: None, outbox_key: Some(&key.text) };
        store.plans().record_close_result(run.id, ISSUE, row.number, result, filling.ago(46)).await?;
    }
    Ok(())
}
