//! What `show` tells about judgement: decisions, triage records, the cluster, and closes.

use canonry_domain::ordered_scores;
use canonry_store::{AppliedClose, DecidedCandidate, StoredDecision, StoredTriageAction, StoredTriageRecord};
use canonry_triage::ClusterLine;
use serde_json::{Value, json};

use crate::commands::triage::show::learning::{action_document, action_in_words};
use crate::output::printable::one_line;
use crate::output::tables::counted;

pub(crate) fn decision_document(decision: &StoredDecision) -> Value {
    json!({
        "id": decision.id.get(),
        "representation": decision.representation.as_str(),
        "origin": decision.origin.as_str(),
        "target": decision.target,
        "final_status": decision.status.as_str(),
        "veto_reason": decision.reason,
        "model_is_duplicate": decision.model_is_duplicate,
        "confidence": decision.confidence,
        "reasoning": decision.reasoning,
        "structure": decision.structure,
        "superseded_at": decision.superseded_at,
        "provider": decision.provider,
        "model": decision.model,
        "prompt_version": decision.prompt_version,
        "config_hash": decision.config_hash,
        "input_hash": decision.input_hash,
        "content_version": decision.source_version,
        "target_content_version": decision.target_version,
        "candidates": decided_candidates(decision),
        "created_at": decision.created_at,
        "run_id": decision.run_id,
    })
}

/// The candidates as they were judged, in the order of their ranks.
fn decided_candidates(decision: &StoredDecision) -> Vec<Value> {
    let scores = ordered_scores(&decision.candidates.iter().map(|one| one.score.get()).collect::<Vec<_>>());
    let candidate = |(one, score): (&DecidedCandidate, f64)| {
        json!({
            "number": one.number, "score": score, "similarity": one.score, "content_version": one.content_version,
        })
    };
    decision.candidates.iter().zip(scores).map(candidate).collect()
}

pub(crate) fn triage_document(stored: &StoredTriageRecord, actions: &[StoredTriageAction]) -> Value {
    let record = &stored.record;
    let action = actions.iter().find(|one| one.action.triage_id == stored.id);
    let scores = ordered_scores(&record.candidates.iter().map(|one| one.score.get()).collect::<Vec<_>>());
    let candidates = record.candidates.iter().zip(scores).map(|(one, score)| {
        json!({
            "number": one.number, "score": score, "similarity": one.score, "parts": one.parts, "state": one.state,
            "judged": one.judged,
        })
    });
    json!({
        "id": stored.id,
        "verdict": record.verdict,
        "duplicate_of": record.target,
        "target_score": record.target_score,
        "is_duplicate": record.is_duplicate,
        "confidence": record.confidence,
        "reason": record.reason,
        "reasoning": record.reasoning,
        "effective_source": record.effective_source.as_str(),
        "source_fallback_reason": record.source_fallback_reason,
        "provider": record.provider,
        "model": record.model,
        "prompt_version": record.prompt_version,
        "config_hash": record.config_hash,
        "content_version": record.content_version,
        "embed_model": record.embed_model,
        "created_at": stored.created_at,
        "run_id": record.run_id,
        "candidates": candidates.collect::<Vec<_>>(),
        "action": action.map_or(Value::Null, action_document),
    })
}

pub(crate) fn close_document(close: &AppliedClose) -> Value {
    json!({
        "target": close.target,
        "plan": close.plan_id.get(),
        "approved": close.approved,
        "closed_at": close.applied_at,
        "objected": close.objected,
        "undone_at": close.undone_at,
    })
}

pub(crate) fn decisions_in_words(decisions: &[StoredDecision]) -> String {
    if decisions.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nDecisions, newest first:\n");
    for decision in decisions {
        let target = decision.target.map_or_else(String::new, |target| format!(" #{target}"));
        let mut words = format!("{}{target}", decision.status);
        if let Some(reason) = &decision.reason {
            words += &format!(" ({})", one_line(reason));
        }
        if let Some(confidence) = decision.confidence {
            words += &format!(", confidence {:.2}", confidence.get());
        }
        if decision.superseded_at.is_some() {
            words += ", since replaced";
        }
        text += &format!(
            "  {}  {words}; {} {}, text version {}\n",
            decision.created_at,
            decision.provider,
            one_line(&decision.model),
            decision.source_version.get()
        );
        if let Some(reasoning) = decision.reasoning.as_deref().filter(|reasoning| !reasoning.is_empty()) {
            text += &format!("    {}\n", one_line(reasoning));
        }
    }
    text
}

pub(crate) fn triage_in_words(records: &[StoredTriageRecord], actions: &[StoredTriageAction]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nSaid when it was new, newest first:\n");
    for stored in records {
        let record = &stored.record;
        let target = record.target.map_or_else(String::new, |target| format!(" #{target}"));
        let confidence = record.confidence.map_or_else(String::new, |sure| format!(", confidence {:.2}", sure.get()));
        let score = record.target_score.map_or_else(String::new, |score| format!(", score {:.4}", score.get()));
        text += &format!(
            "  {}  record {}: {}{target} ({}{confidence}{score}), {}\n",
            stored.created_at,
            stored.id,
            record.verdict.as_str().replace('_', " "),
            one_line(&record.reason),
            counted(record.candidates.len() as u64, "neighbour")
        );
        if let Some(action) = actions.iter().find(|one| one.action.triage_id == stored.id) {
            text += &format!("    {}\n", action_in_words(action));
        }
    }
    text
}

pub(crate) fn cluster_in_words(cluster: Option<&ClusterLine>) -> String {
    let Some(cluster) = cluster else { return String::new() };
    let members: Vec<String> = cluster.members.iter().map(|member| format!("#{}", member.number)).collect();
    format!("\nIts cluster: {}; #{} stays open: {}\n", members.join(", "), cluster.canonical, cluster.because)
}

pub(crate) fn closes_in_words(closes: &[AppliedClose]) -> String {
    let mut text = String::new();
    for close in closes {
        text += &format!("\nClosed in favour of #{} on {} by plan {}", close.target, close.applied_at, close.plan_id);
        match (close.undone_at, close.objected) {
            (Some(at), _) => text += &format!("; undone on {at}"),
            (None, true) => text += "; a person opened it again",
            (None, false) => {}
        }
        text.push('\n');
    }
    text
}
