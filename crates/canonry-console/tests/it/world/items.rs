//! Twenty issues, six of them about the same problem, and data about them.

use std::collections::BTreeMap;

use canonry_domain::{
    Certainty, ContentVersion, DecisionOrigin, DecisionStatus, ItemRecord, ItemState, OverrideKind, Probability,
    Relation, RootCauseMatch, ScopeRelation, Similarity, Structure, Verdict,
};
use canonry_store::{
    DecidedCandidate, NewDecision, NewGrace, NewOverride, NewTriageRecord, Representation, TriageCandidate,
};
use jiff::{SignedDuration, Timestamp};

use crate::world::{ConsoleWorld, HOSTILE, ISSUE, number};

pub(crate) const RAW: Representation = Representation::Raw;

impl ConsoleWorld {
    /// Issues 1 to 6 are about the same problem, 7 to 20 are not; 9 has a text of a hostile stranger.
    pub(crate) async fn filled() -> Self {
        let world = Self::new().await;
        let text = |of: i64| match of {
            9 => HOSTILE.to_owned(),
            1..=6 => format!("The tide table stops at noon ({of}), with error E0512 in table.rs"),
            _ => format!("Something else {of}"),
        };
        let records = (1..=20).map(|of| ItemRecord {
            body: Some(if of == 9 { HOSTILE.repeat(60).replace(' ', "\n") } else { text(of) }),
            state: Some(ItemState::Open),
            author: Some("ann".parse().expect("a login")),
            created_at: Some(world.now - SignedDuration::from_hours(100 - of)),
            labels: Some(if of == 9 { vec![HOSTILE.to_owned()] } else { Vec::new() }),
            ..ItemRecord::new(ISSUE, number(of), text(of))
        });
        world.store.corpus().upsert_items(&world.repo, records.collect(), world.now).await.expect("taken in");
        world
    }

    pub(crate) async fn decide(&self, decision: NewDecision) {
        self.store.judge().write_decisions(self.repo.id, &[decision], self.now).await.expect("written");
    }

    pub(crate) async fn map(&self, pairs: &[(i64, i64)]) {
        let mapping = pairs.iter().map(|(item, canonical)| (number(*item), number(*canonical))).collect();
        self.store.duplicates().set_canonicals(self.repo.id, ISSUE, RAW, &mapping, self.now).await.expect("written");
    }
}

pub(crate) fn decision(
    source: i64,
    target: Option<i64>,
    status: DecisionStatus,
    reason: Option<&str>,
    confidence: f64,
) -> NewDecision {
    let candidate = |of: i64, score: f64| DecidedCandidate {
        number: number(of),
        score: alike(score),
        content_version: ContentVersion::FIRST,
    };
    NewDecision {
        item_type: ISSUE,
        number: number(source),
        target: target.map(number),
        representation: RAW,
        candidate_set: None,
        origin: DecisionOrigin::Batch,
        status,
        replaces: false,
        model_is_duplicate: Some(target.is_some()),
        confidence: Some(probability(confidence)),
        reasoning: Some("Both stop at noon, at the same line.".to_owned()),
        structure: Some(Structure {
            relation: Some(Relation::SameInstance),
            root_cause_match: Some(RootCauseMatch::Same),
            scope_relation: Some(ScopeRelation::SameScope),
            path_match: None,
            certainty: Some(Certainty::Sure),
        }),
        reason: reason.map(str::to_owned),
        answer: Some("{\"is_duplicate\": true}".to_owned()),
        provider: "local".to_owned(),
        model: "evidence".to_owned(),
        prompt_version: 1,
        config_hash: "c".to_owned(),
        input_hash: "i".to_owned(),
        source_version: ContentVersion::FIRST,
        target_version: target.map(|_| ContentVersion::FIRST),
        candidates: vec![candidate(1, 0.951), candidate(8, 0.902)],
        run_id: "run".to_owned(),
    }
}

/// The neighbours are 1, which the judge read, and 9, which it did not.
pub(crate) fn record(of: i64, verdict: Verdict, reason: &str, target: Option<i64>) -> NewTriageRecord {
    let parts = [("dense", 0.83), ("lexical", 0.41), ("by_vectors", 1.3)];
    let parts: BTreeMap<String, f64> = parts.map(|(name, value)| (name.to_owned(), value)).into();
    let other = |of, score, judged| TriageCandidate { parts: parts.clone(), ..neighbour(of, score, judged) };
    NewTriageRecord {
        confidence: Some(probability(0.97)),
        reason: reason.to_owned(),
        reasoning: format!("The same stop. {HOSTILE}"),
        candidates: vec![other(1, 0.93, true), other(9, 0.6, false)],
        ..plain_record(of, verdict, target, 0.93)
    }
}

/// A verdict without neighbours, reasoning and confidence.
pub(crate) fn plain_record(of: i64, verdict: Verdict, target: Option<i64>, score: f64) -> NewTriageRecord {
    NewTriageRecord {
        item_type: ISSUE,
        number: number(of),
        verdict,
        target: target.map(number),
        target_score: target.map(|_| alike(score)),
        is_duplicate: target.is_some(),
        confidence: None,
        reason: "duplicate".to_owned(),
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

pub(crate) fn neighbour(of: i64, score: f64, judged: bool) -> TriageCandidate {
    let (number, score, parts) = (number(of), alike(score), BTreeMap::new());
    TriageCandidate { number, score, parts, state: ItemState::Open, judged }
}

/// An announced close as a duplicate of `target`, due after this many hours.
pub(crate) fn grace(of: i64, target: i64, now: Timestamp, hours: i64) -> NewGrace<'static> {
    NewGrace {
        item_type: ISSUE,
        number: number(of),
        target: number(target),
        triage_id: None,
        comment_key: None,
        approved_by: None,
        content_version: ContentVersion::FIRST,
        began_at: now,
        due_at: now + SignedDuration::from_hours(hours),
    }
}

/// A ruling without an author.
pub(crate) fn ruling(kind: OverrideKind, item: i64, other: Option<i64>) -> NewOverride<'static> {
    NewOverride { item_type: ISSUE, kind, item: number(item), other: other.map(number), note: None, by: None }
}

pub(crate) fn probability(value: f64) -> Probability {
    Probability::new(value).expect("a probability")
}

pub(crate) fn alike(value: f64) -> Similarity {
    Similarity::new(value).expect("a score")
}
