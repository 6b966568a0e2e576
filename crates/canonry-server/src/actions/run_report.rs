//! What a run did, for its job summary.

use canonry_domain::{ItemNumber, RepoName, TriageMode, Verdict};
use canonry_store::{DeliveryState, Repo, Store, StoreError, StoredTriageRecord, TriageActionKind};
use canonry_triage::{suggestion_preview, why_item};
use jiff::Timestamp;
use serde::Serialize;

use crate::actions::run_event::RunEvent;
use crate::actions::run_once::RunReport;
use crate::actions::state_file::size_warning;

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
    /// The answer to `/canonry why`, in Markdown.
    pub explanation: String,
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
            reason: action.map_or_else(|| record.reason.clone(), |action| action.reason.to_string()),
            mode: action.map(|action| TriageMode::as_str(action.mode)),
            explanation: why_item(store, repo, *item_type, number, None).await?,
            is_posted: action.is_some_and(|action| action.action != TriageActionKind::Recorded),
            suggestion: suggestion_preview(store, repo, *item_type, number, record).await?,
        }));
    }
    Ok(None)
}

/// The job summary in Markdown; `web` is the repository's address, for links. Texts of strangers appear only in the
/// suggestion and the explanation, which quote them as on GitHub.
pub fn run_summary(run: &RunReport, web: &str) -> String {
    let mut text = String::from("### Canonry\n\n");
    for event in &run.events {
        text += &match &event.verdict {
            Some(verdict) => verdict_summary(event, verdict, web),
            None => event_summary(event, web),
        };
        text.push('\n');
    }
    text += &match run.done {
        None => "The run was interrupted; the next one continues.\n".to_owned(),
        Some(done) if done.is_cut_short => "The time limit was reached; the next run continues.\n".to_owned(),
        Some(done) if done.failed > 0 => "A job failed. The log says why.\n".to_owned(),
        Some(_) if run.events.is_empty() => "Nothing happened since the last run. What was due is done.\n".to_owned(),
        Some(_) => "What was due is done.\n".to_owned(),
    };
    text + &size_warning(run.state_size).map(|warning| format!("\n{warning}\n")).unwrap_or_default()
}

fn event_summary(event: &RunEventReport, web: &str) -> String {
    let about = event.number.map(|number| format!(" {}", link(number, web))).unwrap_or_default();
    let action = event.action.as_deref().map(|action| format!(" {}", plain(action))).unwrap_or_default();
    let reason = event.reason.as_deref().map(|reason| format!(" ({})", plain(reason))).unwrap_or_default();
    format!("`{}{action}`{about}: {}{reason}.\n", plain(&event.event), event.state)
}

fn verdict_summary(event: &RunEventReport, verdict: &RunVerdict, web: &str) -> String {
    let number = event.number.map(|number| link(number, web)).unwrap_or_default();
    let found = match (verdict.verdict, verdict.duplicate_of) {
        ("duplicate", Some(target)) => format!("{number} is a duplicate of {}", link(target, web)),
        (_, Some(target)) => format!("{number} may be a duplicate of {}", link(target, web)),
        (_, None) => format!("{number} is no duplicate"),
    };
    let mut text = format!("#### {found}\n\n{}\n", verdict.explanation.trim());
    // The explanation says what was posted.
    if let Some(suggestion) = verdict.suggestion.as_ref().filter(|_| !verdict.is_posted) {
        let heading = match verdict.mode {
            Some("shadow") => "Nothing was posted. In the mode `suggest`, above the threshold, this comment would be:",
            _ => "Nothing was posted. The comment would have been:",
        };
        // A cell looks like a comment. Blank lines around its content let Markdown be rendered in it.
        text += &format!("\n{heading}\n\n<table><tr><td>\n\n{}\n\n</td></tr></table>\n", suggestion.trim());
    }
    text
}

fn link(number: ItemNumber, web: &str) -> String {
    format!("[#{number}]({web}/issues/{number})")
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
    use crate::actions::drain::DrainSummary;
    use crate::actions::run_once::RunReport;

    const WEB: &str = "https://github.com/tide/pool";

    fn opened() -> RunEventReport {
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
                explanation: "This may be the same problem as #7. Canonry does not comment in the mode `shadow`."
                    .to_owned(),
                is_posted: false,
                suggestion: Some(
                    "This may be the same problem as #7.\n\n**Not the same?** 👎 this comment.".to_owned(),
                ),
            }),
        }
    }

    fn summary(events: Vec<RunEventReport>, done: Option<DrainSummary>) -> String {
        run_summary(&RunReport { events, done, state_size: 0 }, WEB)
    }

    #[test]
    fn the_summary_shows_what_would_have_been_said() {
        insta::assert_snapshot!(summary(vec![opened()], Some(DrainSummary::default())), @"
        ### Canonry

        #### [#12](https://github.com/tide/pool/issues/12) may be a duplicate of [#7](https://github.com/tide/pool/issues/7)

        This may be the same problem as #7. Canonry does not comment in the mode `shadow`.

        Nothing was posted. In the mode `suggest`, above the threshold, this comment would be:

        <table><tr><td>

        This may be the same problem as #7.

        **Not the same?** 👎 this comment.

        </td></tr></table>

        What was due is done.
        ");
    }

    #[test]
    fn the_end_of_the_run_is_told() {
        let done = DrainSummary::default();
        let texts = [
            summary(Vec::new(), Some(done)),
            summary(Vec::new(), Some(DrainSummary { failed: 1, ..done })),
            summary(Vec::new(), Some(DrainSummary { is_cut_short: true, ..done })),
            summary(Vec::new(), None),
        ];
        insta::assert_snapshot!(texts.map(|text| text.replace("### Canonry\n\n", "")).concat(), @"
        Nothing happened since the last run. What was due is done.
        A job failed. The log says why.
        The time limit was reached; the next run continues.
        The run was interrupted; the next one continues.
        ");
    }

    #[test]
    fn nothing_in_a_reason_reaches_the_runner() {
        let reason = Some("::set-output name=x::<img src=x> `id`\n::error::".to_owned());
        let text = summary(vec![RunEventReport { reason, verdict: None, ..opened() }], Some(DrainSummary::default()));
        assert!(!text.contains("::") && !text.contains('<') && text.lines().count() == 5, "{text}");
    }
}
