//! Reads findings a second time: another question has to quote the line of each and say how it fails.

use std::collections::BTreeMap;

use canonry_domain::review::{MISPLACED, Severity};
use canonry_domain::{Fence, counted, visible, visible_text};
use canonry_models::chat::ChatRequest;
use futures_util::future::join_all;

use super::answer::{SecondVerdict, read_verdicts, verdict_schema};
use super::model_session::{ModelSession, NoAnswer, QuestionPurpose};
use super::safe_text::{first_chars, harmless};
use super::shown_file::ShownFile;
use crate::findings::reviewer_answer::{DISPUTED, NOT_CONFIRMED, NOT_READ_AGAIN, RawFinding, UNPROVEN};

const SYSTEM: &str = include_str!("second_reading_prompt.md");
/// The findings of one file that share a question. A critical finding has a question of its own.
const TOGETHER: usize = 6;
/// The limit in characters of the code around a finding: its function and what is before it. Findings that share a
/// question share twice as much.
const CODE_LIMIT: usize = 12_000;
const CLAIM_LIMIT: usize = 3_000;
const REASON_LIMIT: usize = 500;
/// Verdicts are short; models that reason first count that as output too.
const MAX_TOKENS: u32 = 4_096;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SecondReadings {
    pub(super) notes: Vec<String>,
    pub(super) problems: Vec<String>,
}

/// Reads findings a second time, the most severe first. A finding that cannot be proven is tagged, so that it is stored
/// and not shown. A finding whose second reading failed, or for which no question was left, stays and says so.
///
/// A critical finding is lowered by one step instead, with the reason: the second reading is a model's verdict too,
/// about code whose author would like the finding to go away, and a model's doubt alone never makes a critical finding
/// too small to be shown.
pub(super) async fn read_again(
    session: &ModelSession<'_>,
    files: &[ShownFile<'_>],
    reported: &mut [RawFinding],
) -> SecondReadings {
    let mut told = SecondReadings::default();
    let (mut not_asked, mut failed) = (Vec::new(), Vec::new());
    let questions = questions(files, reported);
    let asked: usize = questions.iter().map(|question| question.findings.len()).sum();
    let mut rest = questions.as_slice();
    while !rest.is_empty() {
        let (wave, later) = rest.split_at(session.at_once().min(rest.len()));
        rest = later;
        let answers = join_all(wave.iter().map(|question| ask(session, question, reported))).await;
        for (question, answer) in wave.iter().zip(answers) {
            for (position, at) in question.findings.iter().enumerate() {
                let one = &mut reported[*at];
                match answer.as_ref().map(|verdicts| doubt(verdicts.get(&(position + 1)), question.file, one)) {
                    Ok(Ok(None)) => {}
                    Ok(Ok(Some(reason))) => told.notes.extend(mark(one, &reason)),
                    Ok(Err(why)) => {
                        append(one, &format!("{NOT_READ_AGAIN}{why}."));
                        failed.push(why);
                    }
                    Err(failure) => {
                        append(one, &format!("{NOT_READ_AGAIN}{}.", failure.why()));
                        let is_asked = !matches!(failure, NoAnswer::NotAsked(_));
                        (if is_asked { &mut failed } else { &mut not_asked }).push(failure.why().to_owned());
                    }
                }
            }
        }
    }
    // A place that was not shown cannot be read again.
    let is_elsewhere = |one: &RawFinding| files.iter().all(|file| *file.path != one.path);
    for one in reported.iter_mut().filter(|one| is_elsewhere(one) && one.severity < Severity::Critical) {
        let _ = mark(one, "it is about a file that was not shown");
    }
    let stand = |unread: &[String]| {
        let why = unread.first()?;
        let (unread, of) = (unread.len(), counted(asked as u64, "finding"));
        Some(format!("{unread} of the model's {of} had no second reading: {why}"))
    };
    told.notes.extend(stand(&not_asked));
    told.problems.extend(stand(&failed));
    told
}

/// Findings that are read again in one question.
struct SecondQuestion<'a, 'b> {
    file: &'b ShownFile<'a>,
    /// The positions of the findings.
    findings: Vec<usize>,
}

/// The questions, the most severe findings first.
fn questions<'a, 'b>(files: &'b [ShownFile<'a>], reported: &[RawFinding]) -> Vec<SecondQuestion<'a, 'b>> {
    let mut order: Vec<usize> = (0..reported.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(reported[*at].severity));
    let mut questions: Vec<SecondQuestion<'a, 'b>> = Vec::new();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for at in order {
        let one = &reported[at];
        let Some(file) = files.iter().find(|file| *file.path == one.path) else { continue };
        let shared = open.get(one.path.as_str()).copied().filter(|place| questions[*place].findings.len() < TOGETHER);
        match shared.filter(|_| one.severity < Severity::Critical) {
            Some(place) => questions[place].findings.push(at),
            None => {
                if one.severity < Severity::Critical {
                    open.insert(one.path.as_str(), questions.len());
                }
                questions.push(SecondQuestion { file, findings: vec![at] });
            }
        }
    }
    questions
}

async fn ask(
    session: &ModelSession<'_>,
    question: &SecondQuestion<'_, '_>,
    reported: &[RawFinding],
) -> Result<BTreeMap<usize, SecondVerdict>, NoAnswer> {
    let findings: Vec<&RawFinding> = question.findings.iter().map(|at| &reported[*at]).collect();
    let answer = session.ask(QuestionPurpose::SecondReading, &second_request(question.file, &findings)).await?;
    read_verdicts(&answer.text).map_err(|why| NoAnswer::Failed(format!("the model's answer {}", why.as_str())))
}

/// Why a finding is not proven, `None` if it is; or why its verdict is none.
fn doubt(verdict: Option<&SecondVerdict>, file: &ShownFile<'_>, one: &RawFinding) -> Result<Option<String>, String> {
    let verdict = verdict.ok_or("the model's answer left out a finding")?;
    let line = |text: &str| harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = first_chars(&line(&verdict.reason), REASON_LIMIT).0.to_owned();
    if verdict.refuted {
        // A refutation without a reason does not count.
        return if reason.is_empty() { Err("the model's answer gave no reason".to_owned()) } else { Ok(Some(reason)) };
    }
    // If the place that the model named does not exist, the line may be anywhere in the file.
    let lines = one.lines.filter(|_| !one.tags.contains(MISPLACED)).map(|lines| lines.first..=lines.last);
    Ok(if !file.is_quoted(lines, &verdict.quote) {
        Some("it quotes no line of the code".to_owned())
    } else if line(&verdict.failure).is_empty() {
        Some("it does not say how the code fails".to_owned())
    } else {
        None
    })
}

/// Tags a finding that is not proven; a critical finding is lowered instead, and the note says so.
fn mark(one: &mut RawFinding, reason: &str) -> Option<String> {
    let was = one.severity;
    let said = if was == Severity::Critical {
        one.severity = Severity::Major;
        format!("{DISPUTED}{reason}")
    } else {
        one.tags.insert(UNPROVEN.to_owned());
        format!("{NOT_CONFIRMED}{reason}")
    };
    append(one, &said);
    let path = visible(one.path.as_str());
    (was == Severity::Critical).then(|| {
        format!(
            "{path}: \"{}\" was reported as {was} and counts as {}: a second reading disputes it",
            one.title, one.severity
        )
    })
}

fn append(one: &mut RawFinding, said: &str) {
    if !one.message.is_empty() {
        one.message.push_str("\n\n");
    }
    one.message.push_str(said);
}

fn second_request(file: &ShownFile<'_>, findings: &[&RawFinding]) -> ChatRequest {
    let claim = |(number, one): (usize, &&RawFinding)| {
        let place = match one.lines {
            Some(lines) if lines.first == lines.last => format!("line {}", lines.first),
            Some(lines) => format!("lines {} to {}", lines.first, lines.last),
            None => "the whole file".to_owned(),
        };
        let claim = format!("Finding {} ({}, {place}): {}: {}", number + 1, one.severity, one.title, one.message);
        first_chars(&visible_text(&claim), CLAIM_LIMIT).0.to_owned()
    };
    let claims = findings.iter().enumerate().map(claim).collect::<Vec<_>>().join("\n\n");
    let places: Vec<_> = findings.iter().map(|one| one.lines.map(|lines| lines.first..=lines.last)).collect();
    let code = file.around(&places, if places.len() > 1 { 2 * CODE_LIMIT } else { CODE_LIMIT });
    let fence = Fence::around(&[claims.as_str(), code.as_str()]);
    let user = format!(
        "The findings:\n{}\nThe code:\n{}\nWhich line is each finding about, and how does it fail?\n",
        fence.fenced(&claims),
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
