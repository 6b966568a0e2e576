//! What `show` tells about judgement: decisions, triage records, the cluster, and closes.

use canonry_store::{AppliedClose, StoredDecision, StoredTriageAction, StoredTriageRecord};
use canonry_triage::CanonicalizedCluster;

use crate::commands::triage::show::learning::action_in_words;
use crate::output::printable::one_line;
use crate::output::tables::counted;

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

pub(crate) fn cluster_in_words(cluster: Option<&CanonicalizedCluster>) -> String {
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
