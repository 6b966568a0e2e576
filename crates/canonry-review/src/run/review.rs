//! Runs a whole review, from the claim to the record.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use canonry_domain::review::{
    CommitSha, FileMaps, Finding, PatternKey, RepoPath, ReviewMode, ReviewerName, Sighting, TrackedFinding,
};
use canonry_domain::{ItemNumber, ItemType, counted, fixed_issues};
use canonry_models::Embedder;
use canonry_store::{LedgerFinding, ReviewId, Store, StoreError, StoredPattern};
use jiff::Timestamp;

use crate::change::commits::CommitsError;
use crate::change::file_change::FileChange;
use crate::change::git::GitError;
use crate::change::head_texts::HeadTexts;
use crate::change::scope::{ReviewScope, ScopeRequest, find_scope};
use crate::findings::base_findings::{BaseComparison, BaseFindings, compare_with_base};
use crate::findings::code_excerpts::add_excerpts;
use crate::findings::configured_filters::ConfiguredFilters;
use crate::findings::earlier_outcomes::EarlierOutcomes;
use crate::findings::judge_findings::{FindingJudge, follow, hidden_patterns};
use crate::findings::memory::{Memory, remember};
use crate::findings::reviewer_answer::{merge_limited_findings, reviewers_by_file};
use crate::findings::severity_limits::SeverityLimits;
use crate::reviewers::collect::{CollectedAnswers, ReviewTask, collect_answers, parting};
use crate::reviewers::linted_commit::drop_lines_beyond_the_end;
use crate::reviewers::llm::LlmReviewer;
use crate::reviewers::{FileToRead, search_commits};
use crate::run::claim::{HeldRun, RunClaim, TimeSource, claim_run};
use crate::run::coverage::{coverage, is_idle, leave_out_skipped, still_unread};
use crate::run::reading_progress::ReadingProgress;
use crate::run::record::{last_review, read_back, record_review};
use crate::run::report::{ReportedFinding, ReviewReport, ReviewerRun, SkippedFile};
use crate::run::request::{ReviewRequest, ReviewerChoice};

/// The issues that a model is shown; a change that fixes more is about something else.
const MOST_ISSUES: usize = 3;

#[derive(Debug, Clone, PartialEq)]
pub enum ReviewOutcome {
    Reviewed(Box<ReviewReport>),
    /// The same head was reviewed before, and nobody requested it again: the earlier report.
    AlreadyReviewed(Box<ReviewReport>),
    /// A newer head replaced it; nothing was stored.
    Superseded {
        by: Option<ReviewId>,
    },
    Busy {
        /// When another process can take over, if the present one sends no more heartbeats.
        until: Timestamp,
    },
}

/// Why there is no review. The run is marked as failed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Change(#[from] CommitsError),
    #[error(transparent)]
    Files(#[from] GitError),
    #[error("review the change: {}", why(problems))]
    NobodyRead { problems: Vec<String> },
    #[error("read the review {review} back: a newer version of Canonry stored it; ask for a new review")]
    Unreadable { review: ReviewId },
}

fn why(problems: &[String]) -> String {
    if problems.is_empty() { "no reviewer is configured".to_owned() } else { problems.join("; ") }
}

/// Reviews a change: claim, scope, texts, reviewers, then the processing of their findings, then the record.
///
/// Optional parts fail open and are reported in the notes: feedback, history, memory, and each reviewer as long as
/// another one read the change. Any other failure fails the run, which is stored as failed with its reason.
#[boxed]
pub async fn review(
    store: &Store,
    request: &ReviewRequest<'_>,
    llm: Option<&LlmReviewer>,
    embedder: Option<&dyn Embedder>,
    clock: TimeSource<'_>,
) -> Result<ReviewOutcome, ReviewError> {
    let held = match claim_run(store, request, clock).await? {
        RunClaim::Held(held) => held,
        RunClaim::Completed(review) => {
            return Ok(ReviewOutcome::AlreadyReviewed(Box::new(read_back(store, request, review).await?)));
        }
        RunClaim::Busy { until } => return Ok(ReviewOutcome::Busy { until }),
        RunClaim::Outdated { by } => return Ok(ReviewOutcome::Superseded { by: Some(by) }),
    };
    let running = ReviewInProgress { store, request, llm, embedder, clock, held: &held };
    let ended = running.run().await;
    if let Err(error) = &ended {
        held.fail(&error.to_string()).await;
    }
    ended
}

struct ReviewInProgress<'a> {
    store: &'a Store,
    request: &'a ReviewRequest<'a>,
    llm: Option<&'a LlmReviewer>,
    embedder: Option<&'a dyn Embedder>,
    clock: TimeSource<'a>,
    held: &'a HeldRun<'a>,
}

impl ReviewInProgress<'_> {
    async fn run(&self) -> Result<ReviewOutcome, ReviewError> {
        // A run that lost its claim ends at once, whatever it waits for. Storing is not part of this: the claim of a
        // completed run is not renewed any more, and must not look like a lost one.
        let report = tokio::select! {
            biased;
            report = self.read_and_judge() => report?,
            () = self.held.until_lost() => None,
        };
        let Some((mut report, read)) = report else { return Ok(ReviewOutcome::Superseded { by: None }) };
        if !self.held.is_current().await? {
            return Ok(ReviewOutcome::Superseded { by: None });
        }
        let (owner, run) = (self.request.owner, self.held.run.id);
        if !record_review(self.store, owner, run, &mut report, read, (self.clock)()).await? {
            return Ok(ReviewOutcome::Superseded { by: None });
        }
        tracing::info!(
            repo = %report.repo, subject = %report.subject, head = report.head.short(), reason = %report.reason,
            findings = report.findings.len(), files = report.coverage.files_read, "a review is completed"
        );
        self.learn(&mut report).await;
        Ok(ReviewOutcome::Reviewed(Box::new(report)))
    }

    /// Everything before the record; `None` if the run no longer belongs to this process.
    async fn read_and_judge(&self) -> Result<Option<(ReviewReport, ReadingProgress)>, ReviewError> {
        let request = self.request;
        let (settings, git) = (&request.settings.review, request.repository.git());
        let filters = ConfiguredFilters::new(settings);
        let last = self.held.run.last_head.as_ref();
        let asked = ScopeRequest { base: request.base, head: request.head, last, full: self.held.run.full };
        let mut scope = find_scope(request.repository, asked).await?;
        let last = last_review(self.store, request, last).await?;
        if let Some((base, head)) = last.base.as_ref().zip(self.held.run.last_head.as_ref())
            && base != request.base
            && scope.reason.mode() == ReviewMode::Incremental
        {
            scope.add_changes_hidden_by_base(git, base, head).await;
        }
        let mut notes: Vec<String> = request.notes.iter().cloned().chain(std::mem::take(&mut scope.notes)).collect();
        let skipped = leave_out_skipped(&mut scope, &filters);
        let (assigned, told) = last.read.assign(request, &scope, &filters);
        notes.extend(told);
        let to_read: BTreeSet<&RepoPath> = assigned.iter().flat_map(|one| &one.paths).collect();
        let to_read: Vec<&FileChange> = scope.changes.iter().filter(|change| to_read.contains(&change.path)).collect();
        if !self.held.is_current().await? {
            return Ok(None);
        }

        let mut ledger = self.store.review().ledger(request.repo, request.subject).await?;
        ledger.retain(|one| !filters.skips(&one.earlier.finding.path));
        let earlier: Vec<TrackedFinding> = ledger.iter().map(|one| one.earlier.clone()).collect();
        let earlier_paths: BTreeSet<RepoPath> = earlier.iter().map(|one| one.finding.path.clone()).collect();
        let mut texts = HeadTexts::read(git, request.head, to_read.iter().copied(), &earlier_paths).await?;
        let memory = self.open_memory(&mut notes).await;

        let files: Vec<FileToRead<'_>> = to_read.iter().map(|change| texts.file(change)).collect();
        let recalled = self.recall(memory.as_ref(), &files, &mut notes).await;
        let issues = or_without("the issues that it fixes", self.fixed_issues().await, &mut notes);
        let question = ReviewTask {
            request,
            scope: &scope,
            files: &files,
            assigned: &assigned,
            filters: &filters,
            earlier: &earlier,
            memory: &recalled,
            issues: &issues,
            llm: self.llm,
        };
        let mut collected = collect_answers(&question).await;
        refuse_unread(&scope, request, &collected)?;
        if !self.held.is_current().await? {
            return Ok(None);
        }
        let was_read = |path: &RepoPath| last.read.has_read(request.reviewers, path);
        let mut coverage = coverage(scope.changes.len(), &files, &texts, &mut collected, skipped, was_read);
        let read = last.read.after(is_idle(&scope.reason), std::mem::take(&mut collected.has_read));
        coverage.skipped.extend(still_unread(last.unread, &scope, &files, &filters));
        let from = parting(git, request.base, request.head).await;
        coverage.skipped.extend(self.search_history(&from, &scope, &filters, &earlier, &mut collected).await);

        let reported = collected.heard.iter().flat_map(|heard| &heard.reported);
        let spoken_of: BTreeSet<RepoPath> = reported.map(|one| one.path.clone()).chain(earlier_paths.clone()).collect();
        texts.read_more(git, request.head, &spoken_of).await?;
        drop_unknown_lines(&mut collected, &texts);
        let changed = scope.changes.iter().map(|change| change.path.clone()).filter(|path| !filters.skips(path));
        let all: BTreeSet<RepoPath> = changed.chain(spoken_of).collect();
        let maps =
            scope.file_maps(git, request.head, &earlier_paths, reviewers_by_file(&collected.heard, &all)).await?;
        let maps = FileMaps { was_pushed: request.subject.pull().is_some(), ..maps };
        let limits = SeverityLimits::new(settings);
        let now = merge_limited_findings(collected.heard, &texts, &limits);
        let at_base = self.compare_with_base(&from, &now, &texts, &mut collected.reviewers, &mut notes).await;
        let sightings = follow(earlier, now, &limits, &maps, &texts);
        let judged = JudgedChange { scope: &scope, filters: &filters, at_base: &at_base };
        let mut findings = self.judge(sightings, &judged, &ledger, memory.as_ref(), &mut notes).await;
        add_excerpts(&mut findings, &texts);
        let report = ReviewReport {
            review: None,
            repo: request.name.clone(),
            subject: request.subject.clone(),
            base: request.base.clone(),
            head: request.head.clone(),
            reason: scope.reason,
            hidden_patterns: hidden_patterns(&findings),
            findings,
            coverage,
            reviewers: collected.reviewers,
            notes,
            model: collected.model,
            names_bots: request.names_bots(),
            referee: None,
        };
        Ok(Some((report, read)))
    }

    async fn judge(
        &self,
        sightings: Vec<Sighting>,
        judged: &JudgedChange<'_>,
        ledger: &[LedgerFinding],
        memory: Option<&Memory<'_>>,
        notes: &mut Vec<String>,
    ) -> Vec<ReportedFinding> {
        let (store, repo) = (self.store, self.request.repo);
        let patterns = or_without("people's feedback", store.findings().pattern_feedback(repo).await, notes);
        let patterns: BTreeMap<PatternKey, StoredPattern> =
            patterns.into_iter().map(|pattern| (pattern.key.clone(), pattern)).collect();
        let keys: BTreeSet<PatternKey> = sightings.iter().map(|one| one.finding.key().clone()).collect();
        let histories =
            or_without("the history of its patterns", store.findings().pattern_history(repo, &keys).await, notes);
        let outcomes = EarlierOutcomes::new(histories, EarlierOutcomes::counted(ledger));
        let accepted = match memory {
            Some(memory) => or_without("findings of the past", memory.accepted_twins(&sightings, ledger).await, notes),
            None => BTreeSet::new(),
        };
        let judging = FindingJudge {
            settings: self.request.settings,
            filters: judged.filters,
            at_base: judged.at_base,
            changes: &judged.scope.changes,
            ledger,
            patterns: &patterns,
            outcomes: &outcomes,
            accepted: &accepted,
        };
        judging.judge(sightings)
    }

    /// Searches the commits of the change for credentials that its last state does not have any more. Returns the files
    /// that could not be searched.
    async fn search_history(
        &self,
        from: &CommitSha,
        scope: &ReviewScope,
        filters: &ConfiguredFilters,
        earlier: &[TrackedFinding],
        collected: &mut CollectedAnswers,
    ) -> Vec<SkippedFile> {
        if !self.request.reviewers.contains(&ReviewerChoice::Builtin) {
            return Vec::new();
        }
        let git = self.request.repository.git();
        let (mut past, mut unsearched) = search_commits(git, from, self.request.head, &scope.changes).await;
        past.reported.retain(|one| !filters.skips(&one.path));
        unsearched.retain(|one| !filters.skips(&one.path));
        if past.problems.is_empty() {
            // A credential that no commit has any more is gone, also where no file had to be read again.
            let builtin = ReviewerName::builtin();
            let is_own = |one: &&TrackedFinding| one.finding.witnesses.iter().any(|by| by.reviewer == builtin);
            let (removed, others): (Vec<_>, Vec<_>) = earlier
                .iter()
                .filter(is_own)
                .filter(|one| !one.fixed)
                .partition(|one| one.finding.is_removed_credential());
            let others: BTreeSet<&RepoPath> = others.iter().map(|one| &one.finding.path).collect();
            let paths = removed.iter().map(|one| &one.finding.path).filter(|path| !others.contains(path));
            past.read.push((builtin, Some(paths.cloned().collect())));
        }
        let known = collected.reviewers.iter_mut().find(|one| one.name == "builtin");
        match known {
            Some(builtin) => {
                builtin.findings += past.reported.len();
                builtin.problems.append(&mut past.problems);
            }
            None if past.problems.is_empty() && past.reported.is_empty() => {}
            None => collected.reviewers.push(ReviewerRun {
                name: "builtin".to_owned(),
                findings: past.reported.len(),
                files: 0,
                problems: std::mem::take(&mut past.problems),
                notes: Vec::new(),
            }),
        }
        collected.heard.push(past);
        unsearched
    }

    /// Compares the present findings with the reports of the base and the ledger of the base branch.
    async fn compare_with_base(
        &self,
        from: &CommitSha,
        now: &[Finding],
        texts: &HeadTexts,
        reviewers: &mut Vec<ReviewerRun>,
        notes: &mut Vec<String>,
    ) -> BaseComparison {
        let (request, git) = (self.request, self.request.repository.git());
        let mut problems = Vec::new();
        let mut bases = BaseFindings::of_reports(git, request.base_reports, request.root, from, &mut problems).await;
        if !problems.is_empty() {
            let name = "the report of the base".to_owned();
            reviewers.push(ReviewerRun { name, findings: 0, files: 0, problems, notes: Vec::new() });
        }
        if let Some(branch) = request.base_ledger.filter(|branch| *branch != request.subject) {
            bases.extend(BaseFindings::of_branch(self.store, git, request.repo, branch).await);
        }
        compare_with_base(git, request.head, texts, &bases, now, notes).await
    }

    async fn open_memory(&self, notes: &mut Vec<String>) -> Option<Memory<'_>> {
        let opened = Memory::open(self.store, self.request, self.embedder?).await;
        or_without("findings of the past", opened, notes)
    }

    /// Similar past findings, described for a model; empty if no model is asked.
    async fn recall(
        &self,
        memory: Option<&Memory<'_>>,
        files: &[FileToRead<'_>],
        notes: &mut Vec<String>,
    ) -> Vec<String> {
        match memory.filter(|_| self.is_model_asked() && !files.is_empty()) {
            Some(memory) => or_without("findings of the past", memory.for_files(files).await, notes),
            None => Vec::new(),
        }
    }

    /// The issues that a pull request says it fixes, as far as they are stored: number, title and text.
    async fn fixed_issues(&self) -> Result<Vec<(ItemNumber, String, String)>, StoreError> {
        let Some(description) = self.request.description.filter(|_| self.is_model_asked()) else {
            return Ok(Vec::new());
        };
        let text = format!("{}\n\n{}", description.title, description.body);
        let numbers: Vec<ItemNumber> = fixed_issues(self.request.name, &text).into_iter().take(MOST_ISSUES).collect();
        let items = self.store.corpus().items_by_number(self.request.repo, ItemType::Issue, &numbers).await?;
        Ok(items.into_iter().map(|item| (item.number, item.title, item.body)).collect())
    }

    fn is_model_asked(&self) -> bool {
        self.llm.is_some() && self.request.reviewers.contains(&ReviewerChoice::Llm)
    }

    /// Stores what improves later reviews. The review is stored already: a failure here does not undo it.
    async fn learn(&self, report: &mut ReviewReport) {
        let knowledge = &self.request.settings.knowledge;
        let shared = self
            .store
            .findings()
            .set_sharing(self.request.repo, knowledge.share_global, knowledge.share_within_owner)
            .await;
        or_without("what others may know of it", shared, &mut report.notes);
        if let Some(embedder) = self.embedder {
            let remembered = remember(self.store, self.request, embedder, (self.clock)()).await;
            or_without("a memory of its findings", remembered, &mut report.notes);
        }
    }
}

/// What the findings of a change are judged by.
struct JudgedChange<'a> {
    scope: &'a ReviewScope,
    filters: &'a ConfiguredFilters,
    at_base: &'a BaseComparison,
}

/// Drops results of tools on lines that no file of the head has, and reports them as a gap.
fn drop_unknown_lines(collected: &mut CollectedAnswers, texts: &HeadTexts) {
    for (heard, run) in collected.heard.iter_mut().zip(&mut collected.reviewers) {
        let dropped = drop_lines_beyond_the_end(heard, texts);
        if dropped > 0 {
            let results = counted(dropped as u64, "result");
            let why = "behind the end of their files; the report is about another commit, name it with --linted";
            run.problems.push(format!("{results} left out, {why}; no finding counts as fixed because of this report"));
            heard.read.clear();
        }
    }
}

/// A run in which nobody read anything is not a review: without findings it would look like an approval.
fn refuse_unread(
    scope: &ReviewScope,
    request: &ReviewRequest<'_>,
    collected: &CollectedAnswers,
) -> Result<(), ReviewError> {
    let problems = collected.reviewers.iter().flat_map(|reviewer| &reviewer.problems);
    if collected.is_heard || (is_idle(&scope.reason) && !request.reviewers.is_empty()) {
        return Ok(());
    }
    Err(ReviewError::NobodyRead { problems: problems.cloned().collect() })
}

fn or_without<T: Default, E: fmt::Display>(what: &str, given: Result<T, E>, notes: &mut Vec<String>) -> T {
    given.unwrap_or_else(|error| {
        tracing::warn!(%error, what, "a review goes on without something optional");
        notes.push(format!("the review goes on without {what}: failed to {error}"));
        T::default()
    })
}
