//! Asks all reviewers concurrently; a reviewer that fails is reported and does not affect the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use canonry_config::Reviewer;
use canonry_domain::ItemNumber;
use canonry_domain::review::{CommitSha, RepoPath, ReviewerName, TrackedFinding};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};

use crate::change::file_change::{ChangeKind, FileChange};
use crate::change::git::{Git, GitError};
use crate::change::scope::ReviewScope;
use crate::findings::configured_filters::ConfiguredFilters;
use crate::findings::reviewer_answer::ReviewerAnswer;
use crate::reviewers::linted_commit::move_to_head;
use crate::reviewers::llm::{LlmInput, LlmReviewer};
use crate::reviewers::tool_reads::{ToolAnswer, bound_reads};
use crate::reviewers::{
    CommandReviewer, ContextRequest, FileToRead, find_unused_dependencies, gather_context, read_rdjson, read_report,
    read_sarif, read_with_rules,
};
use crate::run::reading_progress::{Assignment, ReviewerReads};
use crate::run::report::{ModelUse, ReviewerRun, SkippedFile};
use crate::run::request::{ReviewRequest, ReviewerChoice};

pub(crate) struct ReviewTask<'a> {
    pub(crate) request: &'a ReviewRequest<'a>,
    pub(crate) scope: &'a ReviewScope,
    pub(crate) files: &'a [FileToRead<'a>],
    /// What each reviewer of the request has to read.
    pub(crate) assigned: &'a [Assignment],
    pub(crate) filters: &'a ConfiguredFilters,
    pub(crate) earlier: &'a [TrackedFinding],
    /// Similar past findings, described for a model.
    pub(crate) memory: &'a [String],
    /// The issues that the change says it fixes: number, title and text.
    pub(crate) issues: &'a [(ItemNumber, String, String)],
    pub(crate) llm: Option<&'a LlmReviewer>,
}

#[derive(Debug, Default)]
pub(crate) struct CollectedAnswers {
    pub(crate) heard: Vec<ReviewerAnswer>,
    pub(crate) reviewers: Vec<ReviewerRun>,
    pub(crate) model: Option<ModelUse>,
    pub(crate) skipped: Vec<SkippedFile>,
    pub(crate) read: BTreeSet<RepoPath>,
    /// The files that a report covers which does not list the files that it read.
    pub(crate) unlisted: BTreeSet<RepoPath>,
    /// How much each asked reviewer has read, by its name across runs.
    pub(crate) has_read: Vec<(String, ReviewerReads)>,
    /// Whether any reviewer read a file, reported something, or had nothing to read and no problems.
    pub(crate) is_heard: bool,
}

#[derive(Default)]
struct NamedAnswer {
    /// The reviewer's name if its answer contains none.
    called: String,
    heard: ReviewerAnswer,
    model: Option<ModelUse>,
    skipped: Vec<SkippedFile>,
}

/// Asks every reviewer of the request that has something to read.
pub(crate) async fn collect_answers(question: &ReviewTask<'_>) -> CollectedAnswers {
    let asked: Vec<(&ReviewerChoice, &Assignment)> =
        question.request.reviewers.iter().zip(question.assigned).filter(|(_, assigned)| assigned.is_asked).collect();
    let mut answers = join_all(asked.iter().map(|(choice, assigned)| question.ask(choice, assigned))).await;
    for (answer, (choice, _)) in answers.iter_mut().zip(&asked) {
        if choice.is_report() {
            move_to_head(question.request, &answer.called, &mut answer.heard).await;
        }
    }
    let mut collected = CollectedAnswers::default();
    // Deleted files count as readable.
    let readable = question.files.iter().filter(|file| file.text.is_some() || file.change.kind == ChangeKind::Deleted);
    let readable: BTreeSet<&RepoPath> = readable.map(|file| &file.change.path).collect();
    for (answer, (choice, assigned)) in answers.iter_mut().zip(&asked) {
        // Findings in skipped paths are dropped, whichever reviewer reports them.
        answer.heard.reported.retain(|one| !question.filters.skips(&one.path));
        let (read, unlisted) = files_read(&answer.heard, choice.is_report(), &readable);
        collected.reviewers.push(run_of(answer, read.len()));
        collected.has_read.push((choice.called(), question.has_read(choice, assigned, answer)));
        collected.read.extend(read);
        collected.unlisted.extend(unlisted);
        collected.is_heard |= says_something(&answer.heard);
    }
    question.bound(&mut answers, &asked);
    for answer in answers {
        collected.heard.push(answer.heard);
        collected.model = collected.model.or(answer.model);
        collected.skipped.extend(answer.skipped);
    }
    collected
}

/// The files that a reviewer read, and those that it may have read. A report that does not list its files has read those
/// that it reports on; a program got the whole change.
fn files_read(
    heard: &ReviewerAnswer,
    is_report: bool,
    readable: &BTreeSet<&RepoPath>,
) -> (BTreeSet<RepoPath>, BTreeSet<RepoPath>) {
    let listed: BTreeSet<&RepoPath> = heard.read.iter().filter_map(|(_, paths)| paths.as_ref()).flatten().collect();
    let reported: BTreeSet<&RepoPath> = heard.reported.iter().map(|one| &one.path).collect();
    let may_be_all = heard.read.iter().any(|(_, paths)| paths.is_none());
    let is_read = |path: &&RepoPath| listed.contains(path) || (may_be_all && (!is_report || reported.contains(path)));
    let (read, others): (BTreeSet<&RepoPath>, BTreeSet<&RepoPath>) = readable.iter().copied().partition(is_read);
    let others = others.into_iter().filter(|_| may_be_all);
    (read.into_iter().cloned().collect(), others.cloned().collect())
}

fn says_something(heard: &ReviewerAnswer) -> bool {
    let read = heard.read.iter().any(|(_, files)| files.as_ref().is_none_or(|files| !files.is_empty()));
    read || !heard.reported.is_empty() || heard.problems.is_empty()
}

impl<'a> ReviewTask<'a> {
    fn ask(&'a self, choice: &'a ReviewerChoice, assigned: &'a Assignment) -> BoxFuture<'a, NamedAnswer> {
        let root = self.request.root;
        match choice {
            ReviewerChoice::Builtin => self.ask_rules(assigned).boxed(),
            ReviewerChoice::Sarif(path) => read_file(path, choice.called(), root, read_sarif).boxed(),
            ReviewerChoice::Rdjson(path) => read_file(path, choice.called(), root, read_rdjson).boxed(),
            ReviewerChoice::Command(command) => self.ask_command(command).boxed(),
            ReviewerChoice::Llm => self.ask_model(assigned).boxed(),
            ReviewerChoice::Missing(reviewer) => {
                let what = if *reviewer == Reviewer::Command {
                    "no program is configured"
                } else {
                    "no report of this reviewer is given"
                };
                let problem = format!("the settings name this reviewer, but {what}");
                async move { troubled(&choice.called(), problem) }.boxed()
            }
        }
    }

    fn files_of(&self, assigned: &Assignment) -> Vec<FileToRead<'a>> {
        self.files.iter().filter(|file| assigned.paths.contains(&file.change.path)).copied().collect()
    }

    fn has_read(&self, choice: &ReviewerChoice, assigned: &Assignment, answer: &NamedAnswer) -> ReviewerReads {
        let gaps: BTreeSet<&RepoPath> = answer.skipped.iter().filter(|one| one.gap).map(|one| &one.path).collect();
        let (mut left_out, is_whole) = (BTreeSet::new(), choice.is_heard_whole());
        for file in self.files_of(assigned).into_iter().filter(|file| !is_whole && file.change.is_readable()) {
            let path = &file.change.path;
            // A file that is too large stays too large; a file that could not be fetched may be readable next time.
            if file.text.map_or(file.bytes.is_none(), |_| gaps.contains(path)) {
                left_out.insert(path.clone());
            }
        }
        ReviewerReads::of(&answer.heard.problems, !answer.heard.read.is_empty(), left_out)
    }

    /// Limits the files that reports and programs claim to have read.
    fn bound(&self, answers: &mut [NamedAnswer], asked: &[(&ReviewerChoice, &Assignment)]) {
        let tools = answers.iter_mut().zip(asked).filter(|(_, (choice, _))| choice.is_heard_whole());
        let mut tools: Vec<ToolAnswer<'_>> = tools
            .map(|(answer, (choice, assigned))| ToolAnswer {
                program: (!choice.is_report()).then(|| ReviewerName::tool(&answer.called)),
                heard: &mut answer.heard,
                is_behind: assigned.is_behind,
            })
            .collect();
        let paths = |changes: &[FileChange]| -> BTreeSet<RepoPath> {
            changes.iter().map(|change| change.path.clone()).collect()
        };
        bound_reads(&mut tools, self.scope.since.as_deref().map(paths).as_ref(), &paths(&self.scope.changes));
    }

    async fn ask_rules(&self, assigned: &Assignment) -> NamedAnswer {
        let files = self.files_of(assigned);
        let mut heard = read_with_rules(&files);
        let (git, base, head) = (self.request.repository.git(), self.request.base, self.request.head);
        heard.reported.extend(find_unused_dependencies(git, base, head, &files).await);
        NamedAnswer { heard, ..called("builtin") }
    }

    async fn ask_command(&self, command: &CommandReviewer) -> NamedAnswer {
        let name = command.name();
        let Some(root) = self.request.root else {
            return troubled(name.as_str(), format!("{name} is not run: there is no folder to run it in"));
        };
        let git = self.request.repository.git();
        let from = parting(git, self.request.base, self.request.head).await;
        match git.patch(&from, self.request.head).await {
            Ok(diff) => NamedAnswer { heard: command.ask(root, &diff).await, ..called(name.as_str()) },
            Err(error) => troubled(name.as_str(), format!("{name} is not run: failed to {error}")),
        }
    }

    async fn ask_model(&self, assigned: &Assignment) -> NamedAnswer {
        let Some(llm) = self.llm else {
            return troubled(
                "llm",
                "no language model is configured, so only the other reviewers read the change".to_owned(),
            );
        };
        let files = self.files_of(assigned);
        let (before, trouble) = match self.texts_before(&files).await {
            Ok(texts) => (texts, None),
            Err(error) => {
                (BTreeMap::new(), Some(format!("removed lines are not shown to the model: failed to {error}")))
            }
        };
        let (git, base, head) = (self.request.repository.git(), self.request.base, self.request.head);
        let from = parting(git, base, head).await;
        let about = ContextRequest { git, base, from: &from, head, files: &files };
        let mut context = gather_context(&about).await;
        context.issues = self.issues.to_vec();
        if let Some(description) = self.request.description {
            context.title = Some(description.title.clone());
            context.description = description.body.clone();
        }
        let input = LlmInput {
            files: &files,
            before: &before,
            settings: &self.request.settings.review,
            prior: self.earlier,
            memory: self.memory,
            context: &context,
            budget: self.request.llm_budget,
        };
        let mut heard = llm.read(&input).await;
        heard.heard.problems.extend(trouble);
        NamedAnswer { heard: heard.heard, model: Some(heard.model_use), skipped: heard.skipped, ..called("llm") }
    }

    /// The texts of the files at the merge base, by their paths there.
    async fn texts_before(&self, files: &[FileToRead<'_>]) -> Result<BTreeMap<RepoPath, String>, GitError> {
        let git = self.request.repository.git();
        let from = parting(git, self.request.base, self.request.head).await;
        let paths: Vec<&RepoPath> = files.iter().map(|file| file.change.path_before()).collect();
        let blobs = git.blobs_at(&from, &paths).await?;
        let ids: Vec<&str> = blobs.values().map(|blob| blob.id.as_str()).collect();
        let texts = git.texts(&ids).await?;
        // Two files with the same content have one blob.
        let before = blobs.iter().filter_map(|(path, blob)| Some((path.clone(), texts.get(&blob.id)?.clone())));
        Ok(before.collect())
    }
}

/// The merge base, or the base if it is unknown: the same as in the scope.
pub(crate) async fn parting(git: &Git, base: &CommitSha, head: &CommitSha) -> CommitSha {
    git.merge_base(base, head).await.ok().flatten().unwrap_or_else(|| base.clone())
}

async fn read_file(
    path: &Path,
    name: String,
    root: Option<&Path>,
    read: fn(&str, &[u8], Option<&Path>) -> ReviewerAnswer,
) -> NamedAnswer {
    match read_report(path).await {
        Ok(bytes) => NamedAnswer { heard: read(&name, &bytes, root), ..called(&name) },
        Err(error) => troubled(&name, format!("failed to {error}")),
    }
}

fn called(name: &str) -> NamedAnswer {
    NamedAnswer { called: name.to_owned(), ..NamedAnswer::default() }
}

fn troubled(name: &str, problem: String) -> NamedAnswer {
    NamedAnswer { heard: ReviewerAnswer { problems: vec![problem], ..ReviewerAnswer::default() }, ..called(name) }
}

/// The record of a reviewer. A report may contain several tools; their names replace the name of the file.
fn run_of(answer: &NamedAnswer, files: usize) -> ReviewerRun {
    let heard = &answer.heard;
    let read = heard.read.iter().map(|(reviewer, _)| reviewer);
    let names: BTreeSet<&str> =
        read.chain(heard.reported.iter().map(|one| &one.reviewer)).map(|reviewer| reviewer.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    ReviewerRun {
        name: if names.is_empty() { answer.called.clone() } else { names.join(", ") },
        findings: heard.reported.len(),
        files,
        problems: heard.problems.clone(),
        notes: heard.notes.clone(),
    }
}
