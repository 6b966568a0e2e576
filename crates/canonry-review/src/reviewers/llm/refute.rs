//! Reads severe findings a second time: another question tries to show that they are wrong.

use canonry_domain::review::Severity;
use canonry_domain::{Fence, counted, visible, visible_text};
use canonry_models::chat::ChatRequest;
use futures_util::future::join_all;

use super::answer::{read_verdict, verdict_schema};
use super::model_session::{ModelSession, NoAnswer, QuestionPurpose};
use super::safe_text::{first_chars, harmless};
use super::shown_file::ShownFile;
use crate::findings::reviewer_answer::RawFinding;

const SYSTEM: &str = include_str!("refute_prompt.md");
/// The limit in characters of the code around a finding: its function and what is before it.
const CODE_LIMIT: usize = 12_000;
const CLAIM_LIMIT: usize = 3_000;
const REASON_LIMIT: usize = 500;
/// A verdict is short; models that reason first count that as output too.
const MAX_TOKENS: u32 = 4_096;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SecondReadings {
    pub(super) notes: Vec<String>,
    pub(super) problems: Vec<String>,
}

/// Reads severe findings a second time, most severe first. A refuted finding is lowered by one step, with the reason,
/// and listed in a note; a finding whose second reading failed stays as it is.
///
/// Only one step, because the second reading is a model's verdict too, about code whose author would like the finding
/// to go away: a critical finding stays at least major, so that a model's doubt alone never makes it too small to be
/// shown.
pub(super) async fn refute(
    session: &ModelSession<'_>,
    files: &[ShownFile<'_>],
    reported: &mut [RawFinding],
) -> SecondReadings {
    let mut grave: Vec<usize> = (0..reported.len()).filter(|at| reported[*at].severity >= Severity::Major).collect();
    grave.sort_by_key(|at| std::cmp::Reverse(reported[*at].severity));
    let mut told = SecondReadings::default();
    let (mut not_asked, mut failed) = (Vec::new(), Vec::new());
    let mut rest = grave.as_slice();
    while !rest.is_empty() {
        let (wave, later) = rest.split_at(session.at_once().min(rest.len()));
        rest = later;
        let verdicts = join_all(wave.iter().map(|at| second_reading(session, files, &reported[*at]))).await;
        for (at, verdict) in wave.iter().zip(verdicts) {
            match verdict {
                Ok(None) => {}
                Ok(Some(reason)) => told.notes.push(lower(&mut reported[*at], &reason)),
                Err(NoVerdict::NotAsked(why)) => not_asked.push(why),
                Err(NoVerdict::Failed(why)) => failed.push(why),
            }
        }
    }
    let stand = |unread: &[String]| {
        let why = unread.first()?;
        let (unread, of) = (unread.len(), counted(grave.len() as u64, "grave finding"));
        Some(format!("{unread} of {of} of the model had no second reading: {why}"))
    };
    told.notes.extend(stand(&not_asked));
    told.problems.extend(stand(&failed));
    told
}

enum NoVerdict {
    NotAsked(String),
    Failed(String),
}

/// The reason why a finding is wrong; `None` if it is confirmed.
async fn second_reading(
    session: &ModelSession<'_>,
    files: &[ShownFile<'_>],
    one: &RawFinding,
) -> Result<Option<String>, NoVerdict> {
    let file = files.iter().find(|file| *file.path == one.path);
    let file = file.ok_or_else(|| NoVerdict::NotAsked("its file was not shown".to_owned()))?;
    let request = refutation_request(file, one);
    let answer = session.ask(QuestionPurpose::Refuting, &request).await.map_err(|failure| match failure {
        NoAnswer::NotAsked(why) => NoVerdict::NotAsked(why),
        failure => NoVerdict::Failed(failure.why().to_owned()),
    })?;
    let verdict = read_verdict(&answer.text);
    let verdict = verdict.map_err(|why| NoVerdict::Failed(format!("the model's answer {}", why.as_str())))?;
    let reason = harmless(&verdict.reason).split_whitespace().collect::<Vec<_>>().join(" ");
    // A refutation without a reason does not count.
    if verdict.refuted && reason.is_empty() {
        return Err(NoVerdict::Failed("the model's answer gave no reason".to_owned()));
    }
    Ok(verdict.refuted.then(|| first_chars(&reason, REASON_LIMIT).0.to_owned()))
}

/// Lowers a finding; returns the note about it.
fn lower(one: &mut RawFinding, reason: &str) -> String {
    let was = one.severity;
    one.severity = if was == Severity::Critical { Severity::Major } else { Severity::Medium };
    let said = format!("Reported as {was}. A second reading disputes this: {reason}");
    one.message = if one.message.is_empty() { said } else { format!("{}\n\n{said}", one.message) };
    let path = visible(one.path.as_str());
    format!(
        "{path}: \"{}\" was reported as {was} and counts as {}: a second reading disputes it",
        one.title, one.severity
    )
}

fn refutation_request(file: &ShownFile<'_>, one: &RawFinding) -> ChatRequest {
    let place = match one.lines {
        Some(lines) if lines.first == lines.last => format!("line {}", lines.first),
        Some(lines) => format!("lines {} to {}", lines.first, lines.last),
        None => "the whole file".to_owned(),
    };
    let claim = visible_text(&format!("{} ({}, {place}): {}", one.title, one.severity, one.message));
    let claim = first_chars(&claim, CLAIM_LIMIT).0;
    let code = file.around(one.lines.map(|lines| lines.first..=lines.last), CODE_LIMIT);
    let fence = Fence::around(&[claim, code.as_str()]);
    let user = format!(
        "The finding:\n{}\nThe code:\n{}\nDo lines of this code prove the finding wrong?\n",
        fence.fenced(claim),
        fence.fenced(&code)
    );
    ChatRequest {
        system: SYSTEM.to_owned(),
        preamble: String::new(),
        user,
        schema_name: "second_reading",
        json_schema: verdict_schema(),
        max_tokens: MAX_TOKENS,
    }
}
