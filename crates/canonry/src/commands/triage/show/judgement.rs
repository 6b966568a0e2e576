//! What `show` prints about judging: decisions, triage records, the cluster, and closes.

use canonry_domain::{DecisionStatus, FixKind, Verdict};
use canonry_store::{AppliedClose, StoredDecision, StoredTriageAction, StoredTriageRecord};
use canonry_triage::CanonicalizedCluster;

use crate::commands::triage::show::learning::action_in_words;
use crate::output::numbers::percent;
use crate::output::printable::one_line;
use crate::output::reasons::{gate_reason, online_reason};
use crate::output::tables::counted;
use crate::output::terminal::paragraph;
use crate::session::context::Context;

pub(crate) fn decisions_in_words(decisions: &[StoredDecision], context: &Context) -> String {
    if decisions.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nJudged, newest first:\n");
    for decision in decisions {
        let target = decision.target.map(|target| format!(" of #{target}")).unwrap_or_default();
        let mut words = match decision.status {
            DecisionStatus::Accepted => format!("duplicate{target}"),
            DecisionStatus::Rejected => format!("not a duplicate{target}"),
            DecisionStatus::Skipped => "not judged".to_owned(),
        };
        if let Some(confidence) = decision.confidence {
            words += &format!(" (confidence {})", percent(confidence.get()));
        }
        if let Some(reason) = &decision.reason {
            words += &format!("; {}", gate_reason(reason));
        }
        if decision.superseded_at.is_some() {
            words += " (replaced since)";
        }
        let mut line = format!("{}: {words}", context.when(decision.created_at));
        if context.verbose {
            let model = one_line(&decision.model);
            line += &format!("; {} {model}, text version {}", decision.provider, decision.source_version.get());
        }
        text += &paragraph(2, &line);
        if let Some(reasoning) = decision.reasoning.as_deref().filter(|reasoning| !reasoning.is_empty()) {
            text += &paragraph(4, &one_line(reasoning));
        }
    }
    text
}

pub(crate) fn triage_in_words(
    records: &[StoredTriageRecord],
    actions: &[StoredTriageAction],
    context: &Context,
) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nTriaged, newest first:\n");
    for stored in records {
        let record = &stored.record;
        let target = record.target.map_or_else(String::new, |target| format!(" of #{target}"));
        let mut words = match record.verdict {
            Verdict::Duplicate => format!("duplicate{target}"),
            Verdict::MaybeDuplicate => format!("maybe a duplicate{target}"),
            Verdict::NotDuplicate => "not a duplicate".to_owned(),
        };
        let confidence = record.confidence.map(|confidence| format!("confidence {}", percent(confidence.get())));
        let score = record.target_score.map(|score| format!("score {}", percent(score.get())));
        let figures: Vec<String> = confidence.into_iter().chain(score).collect();
        if !figures.is_empty() {
            words += &format!(" ({})", figures.join(", "));
        }
        let reason = online_reason(&record.reason);
        let mut line = format!("{}: {words}; {reason}", context.when(stored.created_at));
        if context.verbose {
            let neighbours = counted(record.candidates.len() as u64, "neighbour");
            line += &format!("; record {}, {neighbours}", stored.id);
        }
        text += &paragraph(2, &line);
        if let Some(fix) = &record.fix {
            let found = match fix.kind {
                FixKind::Fixed => format!("Probably fixed by #{}: the same problem as", fix.fix),
                FixKind::PossibleRegression => format!("Possible regression, fixed before by #{}:", fix.fix),
            };
            let release = fix.release.as_deref().map(|tag| format!(", released in {}", one_line(tag)));
            let score = percent(fix.score.get());
            let line = format!("{found} #{} (score {score}){}", fix.report, release.unwrap_or_default());
            text += &paragraph(4, &line);
        }
        if let Some(action) = actions.iter().find(|one| one.action.triage_id == stored.id) {
            text += &paragraph(4, &action_in_words(action));
        }
    }
    text
}

pub(crate) fn cluster_in_words(cluster: Option<&CanonicalizedCluster>) -> String {
    let Some(cluster) = cluster else { return String::new() };
    let members: Vec<String> = cluster.members.iter().map(|member| format!("#{}", member.number)).collect();
    let words = format!("Cluster: {}; #{} stays open: {}", members.join(", "), cluster.canonical, cluster.because);
    format!("\n{}", paragraph(0, &words))
}

pub(crate) fn closes_in_words(closes: &[AppliedClose], context: &Context) -> String {
    let mut text = String::new();
    for close in closes {
        let at = context.when(close.applied_at);
        text += &format!("\nClosed by Canonry as a duplicate of #{}, {at} (plan {})", close.target, close.plan_id);
        match (close.undone_at, close.objected) {
            (Some(at), _) => text += &format!("; undone {}", context.when(at)),
            (None, true) => text += "; reopened by a person",
            (None, false) => {}
        }
        text.push('\n');
    }
    text
}
