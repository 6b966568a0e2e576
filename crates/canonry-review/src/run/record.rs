//! Stores a review, and reads it back.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{CommitSha, FindingStatus, LineRange, PatternKey, RepoPath, ScopeReason, Sighting};
use canonry_store::{FindingRecord, ReviewId, ReviewRecord, Store, StoreError, StoredSighting};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::findings::earlier_outcomes::EarlierOutcomes;
use crate::run::reading_progress::ReadingProgress;
use crate::run::report::{Coverage, ModelUse, PatternHistory, ReportedFinding, ReviewReport, ReviewerRun, SkippedFile};
use crate::run::request::ReviewRequest;
use crate::run::review::ReviewError;

/// The reviews among which the last one is searched: a run may end after one that was requested later.
const RECENT: u32 = 10;

#[derive(Serialize, Deserialize)]
pub(crate) struct ReviewDetailsJson {
    pub(crate) reviewers: Vec<ReviewerRun>,
    pub(crate) coverage: Coverage,
    pub(crate) hidden_patterns: usize,
    /// The head of the last review; the reason contains only its first seven digits.
    pub(crate) since: Option<CommitSha>,
    pub(crate) model: Option<ModelUse>,
    /// The earlier places of moved findings, by position in the list of findings.
    moved_from: Vec<(usize, RepoPath, Option<LineRange>)>,
    read: ReadingProgress,
}

#[derive(Default)]
pub(crate) struct LastReview {
    /// The commit with which the head was compared; `None` if unknown.
    pub(crate) base: Option<CommitSha>,
    pub(crate) read: ReadingProgress,
    /// Files of the head that had to be read and that nobody read.
    pub(crate) unread: Vec<SkippedFile>,
}

/// Loads the details of the last review of a subject, which was of this head. If they cannot be parsed, all reviewers
/// read everything again.
pub(crate) async fn last_review(
    store: &Store,
    request: &ReviewRequest<'_>,
    head: Option<&CommitSha>,
) -> Result<LastReview, StoreError> {
    let Some(head) = head else { return Ok(LastReview::default()) };
    let stored = store.review().list(request.repo, Some(request.subject), RECENT).await?;
    let Some(stored) = stored.into_iter().find(|review| review.head == *head) else { return Ok(LastReview::default()) };
    let base = Some(stored.base);
    let Ok(details) = serde_json::from_value::<ReviewDetailsJson>(stored.reviewers) else {
        return Ok(LastReview { base, ..LastReview::default() });
    };
    let unread = details.coverage.skipped.into_iter().filter(|one| one.gap && !one.in_history).collect();
    Ok(LastReview { base, read: details.read, unread })
}

/// Stores a review completely or not at all, and sets the ids of its findings; `false` if the run no longer belongs to
/// this process.
pub(crate) async fn record_review(
    store: &Store,
    owner: &str,
    run: ReviewId,
    report: &mut ReviewReport,
    read: ReadingProgress,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let moved = report.findings.iter().enumerate();
    let moved = moved.filter_map(|(at, one)| one.moved_from.clone().map(|(path, lines)| (at, path, lines)));
    let details = ReviewDetailsJson {
        reviewers: report.reviewers.clone(),
        coverage: report.coverage.clone(),
        hidden_patterns: report.hidden_patterns,
        since: since(&report.reason).cloned(),
        model: report.model.clone(),
        moved_from: moved.collect(),
        read,
    };
    let details = serde_json::to_value(details).expect("invariant: the details are plain values");
    let findings: Vec<FindingRecord<'_>> = report.findings.iter().map(finding_record).collect();
    let reason = report.reason.to_string();
    let record = ReviewRecord {
        run,
        owner,
        mode: report.mode(),
        reason: &reason,
        files_read: report.coverage.files_read as u64,
        lines_read: report.coverage.lines_read,
        notes: &report.notes,
        reviewers: &details,
        model: report.model.as_ref().map(|model| model.model.as_str()),
        cost_usd: report.model.as_ref().and_then(|model| model.cost_usd).unwrap_or_default(),
        findings: &findings,
    };
    let Some(ids) = store.review().complete(&record, now).await? else { return Ok(false) };
    for (one, id) in report.findings.iter_mut().zip(ids) {
        one.id = Some(id);
    }
    report.review = Some(run);
    Ok(true)
}

fn finding_record(one: &ReportedFinding) -> FindingRecord<'_> {
    FindingRecord {
        // Before the review is stored, only a known finding has an id.
        earlier: one.id,
        finding: &one.sighting.finding,
        excerpt: one.excerpt.as_ref(),
        status: one.sighting.status,
        shown: one.shown,
        hidden_by: one.hidden_by.as_ref(),
        confidence: one.confidence,
        grounded: one.grounded,
        said_inline: one.said_inline,
        reported: one.sighting.reported,
        code_unchanged: one.sighting.code_unchanged,
    }
}

pub(crate) async fn read_back(
    store: &Store,
    request: &ReviewRequest<'_>,
    review: ReviewId,
) -> Result<ReviewReport, ReviewError> {
    let unreadable = || ReviewError::Unreadable { review };
    let stored = store.review().get(review).await?.ok_or_else(unreadable)?;
    let details: ReviewDetailsJson = serde_json::from_value(stored.reviewers).map_err(|_| unreadable())?;
    let sightings = store.review().sightings(review).await?;
    let keys: BTreeSet<PatternKey> = sightings.iter().map(|one| one.finding.key().clone()).collect();
    let ledger = store.review().ledger(request.repo, request.subject).await?;
    let standing = EarlierOutcomes::counted(&ledger);
    let outcomes = EarlierOutcomes::new(store.findings().pattern_history(request.repo, &keys).await?, standing);
    let mut moved: BTreeMap<usize, (RepoPath, Option<LineRange>)> =
        details.moved_from.into_iter().map(|(at, path, lines)| (at, (path, lines))).collect();
    let findings = sightings.into_iter().enumerate();
    let findings = findings.map(|(at, one)| {
        let history = outcomes.of(one.finding.key());
        reported(at, one, moved.remove(&at), history)
    });
    Ok(ReviewReport {
        review: Some(review),
        repo: request.name.clone(),
        subject: stored.subject,
        base: stored.base,
        head: stored.head,
        reason: reason_of(&stored.reason, details.since).ok_or_else(unreadable)?,
        findings: findings.collect(),
        coverage: details.coverage,
        reviewers: details.reviewers,
        hidden_patterns: details.hidden_patterns,
        notes: stored.notes,
        model: details.model,
        names_bots: request.names_bots(),
        referee: None,
    })
}

fn reported(
    at: usize,
    one: StoredSighting,
    moved_from: Option<(RepoPath, Option<LineRange>)>,
    history: Option<PatternHistory>,
) -> ReportedFinding {
    ReportedFinding {
        id: Some(one.id),
        sighting: Sighting {
            finding: one.finding,
            earlier: (one.status != FindingStatus::New).then_some(at),
            status: one.status,
            reported: one.reported,
            code_unchanged: one.code_unchanged,
        },
        excerpt: one.excerpt,
        shown: one.shown,
        hidden_by: one.hidden_by,
        confidence: one.confidence,
        grounded: one.grounded,
        said_inline: one.said_inline,
        moved_from,
        history,
    }
}

fn since(reason: &ScopeReason) -> Option<&CommitSha> {
    match reason {
        ScopeReason::IncrementalFrom(sha) | ScopeReason::NoChangesSince(sha) => Some(sha),
        _ => None,
    }
}

pub(crate) fn reason_of(text: &str, since: Option<CommitSha>) -> Option<ScopeReason> {
    let plain = [
        ScopeReason::NoPriorReview,
        ScopeReason::PriorShaUnreachable,
        ScopeReason::DiffComputationFailed,
        ScopeReason::FullRequested,
    ];
    let dated =
        since.into_iter().flat_map(|sha| [ScopeReason::IncrementalFrom(sha.clone()), ScopeReason::NoChangesSince(sha)]);
    plain.into_iter().chain(dated).find(|reason| reason.to_string() == text)
}
