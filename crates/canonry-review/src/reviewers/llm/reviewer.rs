//! Reviews a change with a model, from the files to the reported findings.

use canonry_boxed::boxed;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use canonry_config::ReviewSettings;
use canonry_domain::review::{RepoPath, ReviewerName, Severity, TrackedFinding};
use canonry_models::chat::{ChatModel, ChatRequest};
use futures_util::future::join_all;

use super::answer::{ClaimedFinding, Unusable, UnusableClaim, read_findings_answer};
use super::batches::{ReadingBatch, ReadingPlan};
use super::budget::LlmReviewBudget;
use super::claims::reported;
use super::context_plan::LeftOut;
use super::model_session::{ModelSession, NoAnswer, QuestionPurpose};
use super::overview::{Overview, ask_overview};
use super::prompt::{PromptContext, asked_again, review_question};
use super::second_reading::read_again;
use super::shown_file::ShownFile;
use crate::findings::reviewer_answer::{RawFinding, ReviewerAnswer};
use crate::reviewers::{FileToRead, ReviewContext};
use crate::run::report::{ModelUse, SkippedFile};

/// The dropped findings that are listed one by one.
const TOLD: usize = 5;

#[derive(Clone)]
pub struct LlmReviewer {
    chat: Arc<dyn ChatModel>,
}

#[derive(Debug, Clone, Copy)]
pub struct LlmInput<'a> {
    pub files: &'a [FileToRead<'a>],
    /// Texts before the change, by the paths at that time. Without them, removed lines are only counted.
    pub before: &'a BTreeMap<RepoPath, String>,
    /// The repository's settings: instructions, suppressions, areas, minimum severity, language.
    pub settings: &'a ReviewSettings,
    pub prior: &'a [TrackedFinding],
    pub memory: &'a [String],
    /// What is known about the change beside its lines.
    pub context: &'a ReviewContext,
    pub budget: LlmReviewBudget,
}

/// The result of a reading. There is always one: a model that does not answer has read nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmAnswer {
    pub heard: ReviewerAnswer,
    pub model_use: ModelUse,
    pub skipped: Vec<SkippedFile>,
}

#[boxed]
impl LlmReviewer {
    pub fn new(chat: Arc<dyn ChatModel>) -> Self {
        Self { chat }
    }

    pub fn model_id(&self) -> &str {
        self.chat.model_id()
    }

    /// Reads files. Anything that goes wrong is reported in the result.
    pub async fn read(&self, input: &LlmInput<'_>) -> LlmAnswer {
        let mut plan = ReadingPlan::of(input.files, input.before, &input.context.not_shown, &input.budget);
        let session = ModelSession::new(self.chat.as_ref(), input.budget);
        let around = PromptContext {
            settings: input.settings,
            prior: input.prior,
            memory: input.memory,
            context: input.context,
        };
        let mut told = ReadingNotes { notes: input.context.notes.clone(), ..ReadingNotes::default() };
        let mut left_out = LeftOut::default();
        // A change that fits into one question is seen as a whole anyway.
        let overview = if plan.batches.len() < 2 {
            None
        } else {
            let overview = if input.budget.reading_calls() as usize > plan.batches.len() {
                let (overview, cut) = ask_overview(&session, &plan.files, &around).await;
                left_out.merge(&cut);
                overview
            } else {
                Err(format!("the limit of {} model calls leaves none for it", input.budget.calls))
            };
            overview.map_err(|why| told.notes.push(format!("each part was read without an overview: {why}"))).ok()
        };
        let mut found = Vec::new();
        let mut next = 0;
        while next < plan.batches.len() {
            let end = plan.batches.len().min(next + session.at_once());
            let wave = &plan.batches[next..end];
            let heard =
                join_all(wave.iter().map(|batch| read_batch(&session, batch, &plan.files, &around, overview.as_ref())))
                    .await;
            for (at, heard) in (next..end).zip(heard) {
                left_out.merge(&heard.left_out);
                match heard.claims {
                    Ok(claims) => {
                        for claim in claims {
                            match claim {
                                Ok(one) => found.push(one),
                                Err(UnusableClaim { why, is_critical: true }) => {
                                    let lost = "a finding that the model calls critical could not be read";
                                    once(&mut told.problems, format!("{lost}: it {why}"));
                                }
                                Err(UnusableClaim { why, .. }) => told.left_out.push(why),
                            }
                        }
                    }
                    Err(why) => {
                        plan.was_not_read(at, &why);
                        once(&mut told.problems, format!("the model did not read everything: {why}"));
                    }
                }
            }
            next = end;
        }
        told.notes.extend(left_out.notes());
        let second = read_again(&session, &plan.files, &mut found).await;
        told.notes.extend(plan.note());
        told.notes.extend(second.notes);
        told.problems.extend(second.problems);
        // A model that read nothing is not listed as a reader.
        let read = plan.is_anything_read().then(|| (ReviewerName::model(), Some(plan.read_wholly())));
        let (problems, notes) = told.into_parts();
        LlmAnswer {
            heard: ReviewerAnswer {
                reported: found,
                problems,
                notes,
                read: read.into_iter().collect(),
                ..ReviewerAnswer::default()
            },
            model_use: session.model_use(),
            skipped: plan.skipped(),
        }
    }
}

impl fmt::Debug for LlmReviewer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LlmReviewer").field("model", &self.model_id()).finish()
    }
}

struct BatchAnswer {
    /// Each finding, or why it is left out; or why there is no answer.
    claims: Result<Vec<Result<RawFinding, UnusableClaim>>, String>,
    left_out: LeftOut,
}

async fn read_batch(
    session: &ModelSession<'_>,
    batch: &ReadingBatch,
    files: &[ShownFile<'_>],
    around: &PromptContext<'_>,
    overview: Option<&Overview>,
) -> BatchAnswer {
    let question = review_question(batch, files, around, overview);
    let shown: Vec<&ShownFile<'_>> = batch.pieces.iter().map(|piece| &files[piece.file]).collect();
    let claims = match ask(session, &question.request, &shown).await {
        // An answer that cannot be parsed is requested once more; a third one would not be better.
        Err(NoFindings::Unreadable(why)) => {
            let second = ask(session, &asked_again(&question.request, why), &shown).await;
            second.map_err(|_| format!("the model's answer {why}"))
        }
        Err(NoFindings::NoAnswer(why)) => Err(why),
        Ok(claims) => Ok(claims),
    };
    BatchAnswer { claims, left_out: question.left_out }
}

enum NoFindings {
    /// There is an answer in another form; reads after "the answer".
    Unreadable(&'static str),
    NoAnswer(String),
}

async fn ask(
    session: &ModelSession<'_>,
    request: &ChatRequest,
    shown: &[&ShownFile<'_>],
) -> Result<Vec<Result<RawFinding, UnusableClaim>>, NoFindings> {
    let answer = session.ask(QuestionPurpose::Reading, request).await.map_err(|failure| match failure {
        NoAnswer::CutOff => NoFindings::Unreadable(Unusable::TooLong.as_str()),
        failure => NoFindings::NoAnswer(failure.why().to_owned()),
    })?;
    let claims = read_findings_answer(&answer.text).map_err(|why| NoFindings::Unreadable(why.as_str()))?;
    let read = |claim: Result<ClaimedFinding, UnusableClaim>| {
        let claim = claim?;
        let is_critical = claim.severity == Severity::Critical;
        reported(&claim, shown).map_err(|why| UnusableClaim { why, is_critical })
    };
    Ok(claims.into_iter().map(read).collect())
}

#[derive(Default)]
struct ReadingNotes {
    problems: Vec<String>,
    notes: Vec<String>,
    left_out: Vec<String>,
}

impl ReadingNotes {
    /// The problems and the notes. An unusable finding leaves no gap.
    fn into_parts(self) -> (Vec<String>, Vec<String>) {
        let mut notes = self.notes;
        let more = self.left_out.len().saturating_sub(TOLD);
        let told = self.left_out.into_iter().take(TOLD);
        notes.extend(told.map(|why| format!("a finding of the model is left out: it {why}")));
        match more {
            0 => {}
            1 => notes.push("1 more finding of the model is left out".to_owned()),
            more => notes.push(format!("{more} more findings of the model are left out")),
        }
        (self.problems, notes)
    }
}

/// Adds a sentence unless it is in the list: the same sentence about many questions is reported once.
fn once(told: &mut Vec<String>, sentence: String) {
    if !told.contains(&sentence) {
        told.push(sentence);
    }
}
