//! What a run did, for its job summary.

use canonry_domain::{ItemNumber, RepoName, TriageMode, Verdict};
use canonry_store::{DeliveryState, Repo, Store, StoreError, StoredTriageRecord, TriageActionKind};
use canonry_triage::suggestion_preview;
use jiff::Timestamp;
use serde::Serialize;

use crate::actions::run_event::RunEvent;

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEventReport {
    pub event: String,
    pub action: Option<String>,
    pub number: Option<ItemNumber>,
    pub state: &'static str,
    /// Why nothing was done, or why it failed.
    pub reason: Option<String>,
    pub verdict: Option<RunVerdict>,
}

/// The verdict about the event's item, if the event led to one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunVerdict {
    pub verdict: &'static str,
    pub duplicate_of: Option<ItemNumber>,
    pub reason: String,
    pub mode: Option<&'static str>,
    /// Whether a comment is posted or edited because of it.
    pub is_posted: bool,
    /// The suggestion that the verdict leads to in the mode `suggest` at a score above the threshold.
    pub suggestion: Option<String>,
}

/// Reads what became of the events since the run began.
pub(crate) async fn report_events(
    store: &Store,
    repo: &RepoName,
    events: &[RunEvent],
    since: Timestamp,
) -> Result<Vec<RunEventReport>, StoreError> {
    let known = store.repos().find(repo).await?;
    let mut reports = Vec::new();
    for event in events {
        let Some(delivery) = store.deliveries().get(&event.id).await? else { continue };
        let verdict = match (&known, delivery.number) {
            (Some(repo), Some(number)) if delivery.state == DeliveryState::Done => {
                verdict_since(store, repo, number, since).await?
            }
            _ => None,
        };
        reports.push(RunEventReport {
            event: delivery.event,
            action: delivery.action,
            number: delivery.number,
            state: delivery.state.as_str(),
            reason: delivery.reason,
            verdict,
        });
    }
    Ok(reports)
}

async fn verdict_since(
    store: &Store,
    repo: &Repo,
    number: ItemNumber,
    since: Timestamp,
) -> Result<Option<RunVerdict>, StoreError> {
    for item_type in canonry_domain::ItemType::ALL {
        let records = store.duplicates().triage_records_of(repo.id, *item_type, number).await?;
        let Some(StoredTriageRecord { id, record, .. }) = records.first().filter(|record| record.created_at >= since)
        else {
            continue;
        };
        let actions = store.duplicates().triage_actions_of(repo.id, *item_type, number).await?;
        let action = actions.iter().map(|stored| &stored.action).find(|action| action.triage_id == *id);
        return Ok(Some(RunVerdict {
            verdict: record.verdict.as_str(),
            duplicate_of: record.target.filter(|_| record.verdict != Verdict::NotDuplicate),
            reason: action.map_or_else(|| record.reason.clone(), |action| action.reason.clone()),
            mode: action.map(|action| TriageMode::as_str(action.mode)),
            is_posted: action.is_some_and(|action| action.action != TriageActionKind::Recorded),
            suggestion: suggestion_preview(store, repo, *item_type, number, record).await?,
        }));
    }
    Ok(None)
}

/// The job summary in Markdown. Texts of strangers appear only in the suggestion, which quotes them as on GitHub.
pub fn run_summary(events: &[RunEventReport]) -> String {
    let mut text = String::from("### Canonry\n\n");
    if events.is_empty() {
        text += "No event to handle; what was due is done.\n";
    }
    for event in events {
        let about = event.number.map(|number| format!(" #{number}")).unwrap_or_default();
        let action = event.action.as_deref().map(|action| format!(" {}", plain(action))).unwrap_or_default();
        text += &format!("- `{}{action}`{about}: {}", plain(&event.event), event.state);
        if let Some(reason) = &event.reason {
            text += &format!(" ({})", plain(reason));
        }
        text.push('\n');
        if let Some(verdict) = &event.verdict {
            text += &verdict_summary(verdict);
        }
    }
    text
}

fn verdict_summary(verdict: &RunVerdict) -> String {
    let target = verdict.duplicate_of.map(|target| format!(" of #{target}")).unwrap_or_default();
    let mut text = format!("  - verdict: **{}**{target} (`{}`)\n", verdict.verdict, plain(&verdict.reason));
    if let Some(suggestion) = &verdict.suggestion {
        let heading = match (verdict.is_posted, verdict.mode) {
            (true, _) => "This comment is posted:",
            (false, Some("shadow")) => {
                "In the mode `suggest` this comment would be posted if the score reaches the threshold:"
            }
            (false, _) => "This comment is not posted:",
        };
        let quoted: Vec<String> = suggestion.lines().map(|line| format!("> {line}")).collect();
        text += &format!("\n{heading}\n\n{}\n", quoted.join("\n"));
    }
    text
}

/// Our own codes and sentences, without anything that Markdown or the runner could act on.
fn plain(text: &str) -> String {
    let keeps = |c: char| c.is_alphanumeric() || " .,;:#_-/()'%+".contains(c);
    let text: String = text.chars().filter(|c| keeps(*c)).take(300).collect();
    text.replace("::", ":")
}

#[cfg(test)]
mod tests {
    use canonry_domain::ItemNumber;

    use super::{RunEventReport, RunVerdict, run_summary};

    fn report() -> RunEventReport {
        RunEventReport {
            event: "issues".to_owned(),
            action: Some("opened".to_owned()),
            number: ItemNumber::new(12).ok(),
            state: "done",
            reason: None,
            verdict: Some(RunVerdict {
                verdict: "maybe_duplicate",
                duplicate_of: ItemNumber::new(7).ok(),
                reason: "mode".to_owned(),
                mode: Some("shadow"),
                is_posted: false,
                suggestion: Some(
                    "This may be the same problem as #7.\n\n**Not the same?** 👎 this comment.".to_owned(),
                ),
            }),
        }
    }

    #[test]
    fn the_summary_shows_what_would_have_been_said() {
        let lines = [
            "### Canonry",
            "",
            "- `issues opened` #12: done",
            "  - verdict: **maybe_duplicate** of #7 (`mode`)",
            "",
            "In the mode `suggest` this comment would be posted if the score reaches the threshold:",
            "",
            "> This may be the same problem as #7.",
            "> ",
            "> **Not the same?** 👎 this comment.",
            "",
        ];
        assert_eq!(run_summary(&[report()]), lines.join("\n"));
    }

    #[test]
    fn nothing_in_a_reason_reaches_the_runner() {
        let reason = Some("::set-output name=x::<img src=x> `id`\n::error::".to_owned());
        let text = run_summary(&[RunEventReport { reason, verdict: None, ..report() }]);
        assert!(!text.contains("::") && !text.contains('<') && text.lines().count() == 3, "{text}");
        assert_eq!(run_summary(&[]), "### Canonry\n\nNo event to handle; what was due is done.\n");
    }
}
