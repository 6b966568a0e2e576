//! Finds which comments of other reviewers name one problem, ranks the problems, and records who named them.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::Share;
use canonry_domain::review::{
    AT_LEAST_ALIKE, BotRecord, GroupedRemark, LineRange, RANK_WEIGHTS, RemarkOutcome, ReviewRemark, group_remarks,
    likeness, problem_traits, remark_essence, remark_outcome, remark_words,
};
use canonry_models::{Embedder, InputType};
use canonry_store::{FindingId, RepoId, Store, StoreError, WitnessedRemark};
use jiff::Timestamp;

use super::referee_report::{RefereeReport, RefereedProblem, RemarkWitness};
use super::remark_sources::HeardRemarks;
use crate::run::report::{ReportedFinding, ReviewReport};

/// How much each 👍 adds to a problem's rank and each 👎 takes, up to two. The judged comments have no reactions: it is
/// chosen so that two people outweigh a second bot.
const THUMB: f64 = 0.7;
const MOST_THUMBS: f64 = 2.0;

/// Canonry's shown findings that are compared with comments; a linter may report thousands.
const MOST_FINDINGS: usize = 300;

/// Something that names a problem: a remark, or a finding of Canonry.
struct Voice<'a> {
    text: String,
    path: &'a str,
    lines: Option<LineRange>,
    words: BTreeSet<String>,
    said: VoiceSource<'a>,
}

enum VoiceSource<'a> {
    Remark(&'a ReviewRemark),
    Finding(FindingId, &'a ReportedFinding),
}

impl VoiceSource<'_> {
    fn remark(&self) -> Option<&ReviewRemark> {
        match self {
            Self::Remark(remark) => Some(remark),
            Self::Finding(..) => None,
        }
    }

    fn finding(&self) -> Option<FindingId> {
        match self {
            Self::Remark(_) => None,
            Self::Finding(id, _) => Some(*id),
        }
    }
}

/// Weighs the comments on a stored review's change, records them as witnesses, and adds the result to the report.
/// Repeating is harmless.
#[boxed]
pub async fn weigh_remarks(
    store: &Store,
    repo: RepoId,
    embedder: Option<&dyn Embedder>,
    report: &mut ReviewReport,
    heard: HeardRemarks,
    now: Timestamp,
) -> Result<(), StoreError> {
    let HeardRemarks { remarks, mut notes } = heard;
    let before: BTreeMap<String, Share> =
        store.findings().bot_records(repo).await?.into_iter().map(|one| (one.login.key(), one.share)).collect();
    let voices = voices(&remarks, report);
    let vectors = match embedder {
        Some(embedder) if !remarks.is_empty() => {
            let texts: Vec<String> = voices.iter().map(|voice| voice.text.clone()).collect();
            match embedder.embed(&texts, InputType::Document).await {
                Ok(vectors) => vectors,
                Err(error) => {
                    notes.push(format!("comments of other reviewers are compared by words alone: failed to {error}"));
                    Vec::new()
                }
            }
        }
        _ => Vec::new(),
    };
    let compared: Vec<GroupedRemark<'_>> = voices
        .iter()
        .enumerate()
        .map(|(at, voice)| GroupedRemark {
            path: voice.path,
            lines: voice.lines,
            words: &voice.words,
            vector: vectors.get(at).map(Vec::as_slice),
        })
        .collect();
    let groups = group_remarks(&compared, AT_LEAST_ALIKE);
    let witnessed: Vec<WitnessedRemark<'_>> = groups.iter().flat_map(|group| witnesses_of(group, &voices)).collect();
    let own: BTreeSet<FindingId> = voices.iter().filter_map(|voice| voice.said.finding()).collect();
    store.findings().record_remarks(repo, &report.subject, &witnessed, &own, now).await?;
    let mut result = RefereeReport {
        remarks: remarks.len(),
        records: current_bots(store.findings().bot_records(repo).await?, &remarks),
        ..RefereeReport::default()
    };
    for group in &groups {
        let said: Vec<&ReviewRemark> = group.iter().filter_map(|at| voices[*at].said.remark()).collect();
        let named_by_bots = said.iter().filter(|remark| remark.author.is_bot);
        let is_rejected =
            |remark: &ReviewRemark| remark_outcome(remark.thread, remark.thumbs) == Some(RemarkOutcome::Wrong);
        if named_by_bots.clone().any(|remark| remark.thread.is_open() && !is_rejected(remark)) {
            result.problems.push(problem(group, &voices, &compared, &before));
        } else if named_by_bots.count() > 0 {
            result.settled += 1;
        }
    }
    result.problems.sort_by(|one, other| other.rank.total_cmp(&one.rank));
    report.referee = Some(result);
    report.notes.extend(notes);
    Ok(())
}

fn voices<'a>(remarks: &'a [ReviewRemark], report: &'a ReviewReport) -> Vec<Voice<'a>> {
    let mut voices: Vec<Voice<'a>> = Vec::new();
    // Without remarks there is nothing to compare Canonry's findings with.
    let findings = report.standing().filter(|_| !remarks.is_empty()).take(MOST_FINDINGS);
    for (id, one) in findings.filter_map(|one| one.id.map(|id| (id, one))) {
        let finding = &one.sighting.finding;
        let text = remark_essence(&format!("{}. {}", finding.title, finding.message));
        let said = VoiceSource::Finding(id, one);
        let (path, lines) = (finding.path.as_str(), finding.lines);
        voices.push(Voice { words: remark_words(&text), text, path, lines, said });
    }
    voices.extend(remarks.iter().map(|remark| Voice {
        text: remark.text.clone(),
        path: remark.path.as_str(),
        lines: remark.lines,
        words: remark_words(&remark.text),
        said: VoiceSource::Remark(remark),
    }));
    voices
}

/// The remarks of a group, with Canonry's most severe finding in it and the number of others who agree.
fn witnesses_of<'v>(group: &[usize], voices: &'v [Voice<'_>]) -> Vec<WitnessedRemark<'v>> {
    let finding = group.iter().find_map(|at| voices[*at].said.finding());
    let remarks: Vec<&ReviewRemark> = group.iter().filter_map(|at| voices[*at].said.remark()).collect();
    let authors: BTreeSet<String> = remarks.iter().map(|remark| remark.author.login.key()).collect();
    let agreeing = (authors.len().saturating_sub(1) + usize::from(finding.is_some())) as u64;
    remarks.into_iter().map(|remark| WitnessedRemark { remark, finding, agreeing }).collect()
}

fn problem(
    group: &[usize],
    voices: &[Voice<'_>],
    compared: &[GroupedRemark<'_>],
    before: &BTreeMap<String, Share>,
) -> RefereedProblem {
    let alike = |one: usize| {
        let others = group.iter().filter(|other| **other != one);
        others.map(|other| likeness(&compared[one], &compared[*other])).sum::<f64>()
    };
    let mut reviewers: BTreeMap<String, Share> = BTreeMap::new();
    let (mut findings, mut witnesses, mut thumbs) = (Vec::new(), Vec::new(), 0.0);
    for at in group {
        match &voices[*at].said {
            VoiceSource::Finding(id, _) => {
                findings.push(*id);
                reviewers.insert(String::new(), Share::default());
            }
            VoiceSource::Remark(remark) => {
                let login = remark.author.login.key();
                let share = before.get(&login).copied().unwrap_or_default();
                reviewers.insert(login, share);
                thumbs += f64::from(remark.thumbs.0) - f64::from(remark.thumbs.1);
                witnesses.push(RemarkWitness {
                    author: remark.author.clone(),
                    lines: remark.lines,
                    link: remark.link.clone(),
                    said_at: remark.said_at,
                    thread: remark.thread,
                });
            }
        }
    }
    let own = group.iter().find(|at| matches!(voices[**at].said, VoiceSource::Finding(..)));
    let central =
        own.or_else(|| group.iter().max_by(|one, other| alike(**one).total_cmp(&alike(**other)).then(other.cmp(one))));
    let shown = &voices[*central.expect("invariant: a group has a member")];
    let text = match &shown.said {
        VoiceSource::Finding(_, one) => one.sighting.finding.title.clone(),
        VoiceSource::Remark(remark) => remark.text.clone(),
    };
    let path = match &shown.said {
        VoiceSource::Finding(_, one) => one.sighting.finding.path.clone(),
        VoiceSource::Remark(remark) => remark.path.clone(),
    };
    let reviewers: Vec<Share> = reviewers.into_values().collect();
    let rank = RANK_WEIGHTS.rank(&problem_traits(&reviewers, group.len()));
    let thumbs = THUMB * thumbs.clamp(-MOST_THUMBS, MOST_THUMBS);
    RefereedProblem { findings, path, lines: shown.lines, text, witnesses, rank: rank + thumbs }
}

/// The records of the bots that commented on this change.
fn current_bots(records: Vec<BotRecord>, remarks: &[ReviewRemark]) -> Vec<BotRecord> {
    let here: BTreeSet<String> = remarks.iter().map(|remark| remark.author.login.key()).collect();
    records.into_iter().filter(|record| here.contains(&record.login.key())).collect()
}
