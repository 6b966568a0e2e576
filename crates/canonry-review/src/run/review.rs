//! Runs a whole review, from the claim to the record.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use canonry_domain::review::{FileMaps, PatternKey, RepoPath, ReviewMode, Sighting, TrackedFinding};
use canonry_models::Embedder;
use canonry_store::{LedgerFinding, ReviewId, Store, StoreError, StoredPattern};
use jiff::Timestamp;

use crate::change::commits::CommitsError;
use crate::change::file_change::FileChange;
use crate::change::git::GitError;
use crate::change::head_texts::HeadTexts;
use crate::change::scope::{ReviewScope, ScopeRequest, find_scope};
use crate::findings::code_excerpts::add_excerpts;
use crate::findings::configured_filters::ConfiguredFilters;
use crate::findings::earlier_outcomes::EarlierOutcomes;
use crate::findings::judge_findings::{FindingJudge, follow, hidden_patterns};
use crate::findings::memory::{Memory, remember};
use crate::findings::reviewer_answer::{merge_raised_findings, reviewers_by_file};
use crate::findings::severity_floors::SeverityFloors;
use crate::reviewers::FileToRead;
use crate::reviewers::collect::{CollectedAnswers, ReviewTask, collect_answers};
use crate::reviewers::llm::LlmReviewer;
use crate::run::claim::{HeldRun, RunClaim, TimeSource, claim_run};
use crate::run::coverage::{coverage, is_idle, leave_out_skipped, still_unread};
use crate::run::reading_progress::ReadingProgress;
use crate::run::record::{last_review, read_back, record_review};
use crate::run::report::{ReportedFinding, ReviewReport};
use crate::run::request::{ReviewRequest, ReviewerChoice};

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
        let question = ReviewTask {
            request,
            scope: &scope,
            files: &files,
            assigned: &assigned,
            filters: &filters,
            earlier: &earlier,
            memory: &recalled,
            llm: self.llm,
        };
        let collected = collect_answers(&question).await;
        refuse_unread(&scope, request, &collected)?;
        if !self.held.is_current().await? {
            return Ok(None);
        }
        let read = last.read.after(is_idle(&scope.reason), collected.has_read);
        let mut coverage = coverage(scope.changes.len(), &files, &collected.read, skipped, collected.skipped);
        coverage.skipped.extend(still_unread(last.unread, &scope, &files, &filters));

        let reported = collected.heard.iter().flat_map(|heard| &heard.reported);
        let spoken_of: BTreeSet<RepoPath> = reported.map(|one| one.path.clone()).chain(earlier_paths.clone()).collect();
        texts.read_more(git, request.head, &spoken_of).await?;
        let changed = scope.changes.iter().map(|change| change.path.clone()).filter(|path| !filters.skips(path));
        let all: BTreeSet<RepoPath> = changed.chain(spoken_of).collect();
        let maps =
            scope.file_maps(git, request.head, &earlier_paths, reviewers_by_file(&collected.heard, &all)).await?;
        let maps = FileMaps { was_pushed: request.subject.pull().is_some(), ..maps };
        let floors = SeverityFloors::new(&settings.severity_floors);
        let now = merge_raised_findings(collected.heard, &texts, &floors);
        let sightings = follow(earlier, now, &floors, &maps, &texts);
        let mut findings = self.judge(sightings, &scope, &filters, &ledger, memory.as_ref(), &mut notes).await;
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
        };
        Ok(Some((report, read)))
    }

    async fn judge(
        &self,
        sightings: Vec<Sighting>,
        scope: &ReviewScope,
        filters: &ConfiguredFilters,
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
            filters,
            changes: &scope.changes,
            ledger,
            patterns: &patterns,
            outcomes: &outcomes,
            accepted: &accepted,
        };
        judging.judge(sightings)
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
        let is_asked = self.llm.is_some() && self.request.reviewers.contains(&ReviewerChoice::Llm);
        match memory.filter(|_| is_asked && !files.is_empty()) {
            Some(memory) => or_without("findings of the past", memory.for_files(files).await, notes),
            None => Vec::new(),
        }
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
