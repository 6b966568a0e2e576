//! Finds the merged pull requests that probably fixed an issue although none of them names it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use canonry_boxed::boxed;
use canonry_domain::{
    DraftAnswer, FixBase, FixingPull, Item, ItemNumber, ItemState, ItemType, StateReason, draft_answer,
};
use canonry_retrieval::{FixEvidence, FixIndex, FixQuery, MergedPull, RankedFix};
use canonry_store::{IndexVersion, ItemFilter, Repo, RepoId, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::online::check_draft::DraftCheck;
use crate::online::known_fixes::{is_revert, is_reverted};
use crate::retrieval::index_upkeep::off_async_threads;

/// Pull requests that are read at once.
const PAGE: u32 = 200;
/// Repositories whose pull requests are kept in memory.
const KEPT: usize = 4;
/// From this confidence on, a pull request is named as the fix of a closed issue: more than nine in ten are right.
const NAMED_FROM: f64 = 0.7;
/// An issue is closed by its fix, or some time later by hand, or shortly before the merge.
const CLOSED_AFTER: SignedDuration = SignedDuration::from_hours(24 * 30);
const CLOSED_BEFORE: SignedDuration = SignedDuration::from_hours(24);
/// The newest merged pull requests that are compared: older ones rarely fix a current problem.
const MOST_PULLS: usize = 20_000;

/// The merged pull requests of the last repositories that were asked about.
#[derive(Default)]
pub struct FixIndexes {
    kept: Mutex<HashMap<RepoId, (IndexVersion, Arc<FixIndex>)>>,
    building: tokio::sync::Mutex<()>,
}

impl FixIndexes {
    fn kept_at(&self, repo: RepoId, version: IndexVersion) -> Option<Arc<FixIndex>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&repo).filter(|(of, _)| *of == version).map(|(_, index)| Arc::clone(index))
    }
}

#[boxed]
impl FixIndexes {
    /// The index of a repository, read again after a change.
    pub async fn of(&self, store: &Store, repo: &Repo) -> Result<Arc<FixIndex>, StoreError> {
        let version = store.corpus().index_version(repo.id).await?;
        if let Some(index) = self.kept_at(repo.id, version) {
            return Ok(index);
        }
        // One at a time: several requests that come at once share the first one's index.
        let _building = self.building.lock().await;
        if let Some(index) = self.kept_at(repo.id, version) {
            return Ok(index);
        }
        let index = Arc::new(read_index(store, repo).await?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT && !kept.contains_key(&repo.id) {
            kept.clear();
        }
        kept.insert(repo.id, (version, Arc::clone(&index)));
        Ok(index)
    }

    /// The likeliest fixes of an issue.
    pub async fn rank(
        &self,
        store: &Store,
        repo: &Repo,
        issue: &Item,
        limit: usize,
    ) -> Result<Vec<RankedFix>, StoreError> {
        let Some(created_at) = issue.created_at else { return Ok(Vec::new()) };
        let (index, issue) = (self.of(store, repo).await?, issue.clone());
        Ok(off_async_threads(move || {
            let (title, body) = (&issue.title, &issue.body);
            index.rank(&FixQuery { title, body, author: issue.author.as_ref(), created_at }, limit)
        })
        .await)
    }

    /// Names the fix of the report that a draft matches, if the report was closed as completed and no pull request
    /// names it.
    pub async fn explain(
        &self,
        store: &Store,
        repo: &Repo,
        checked: &mut DraftCheck,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(report) = checked.report.clone().filter(|report| is_unexplained(report, checked)) else {
            return Ok(());
        };
        let ranked = self.rank(store, repo, &report, 1).await?;
        let Some(first) = ranked.into_iter().next().filter(is_sure) else { return Ok(()) };
        let Some(pull) = store.corpus().item(repo.id, ItemType::Pr, first.number).await? else { return Ok(()) };
        let (Some(merged), Some(closed)) = (pull.closed_at, report.closed_at) else { return Ok(()) };
        let waited = merged.duration_until(closed);
        if waited >= -CLOSED_BEFORE && waited <= CLOSED_AFTER {
            let default_branch = store.repos().default_branch(repo.id).await?;
            let fix = FixingPull::new(&pull, default_branch.as_deref());
            let (answer, _) = draft_answer(Some(&report), std::slice::from_ref(&fix), now);
            let is_elsewhere = fix.base == FixBase::AnotherBranch;
            let is_reverted = is_reverted(store, repo, &pull).await?;
            // What is inferred may add "fixed"; it never makes a reported problem a regression.
            if !is_elsewhere && !is_reverted && (answer == DraftAnswer::Fixed || checked.answer == answer) {
                checked.answer = answer;
                checked.fix = Some(fix);
                checked.fix_confidence = first.confidence;
                checked.fix_evidence = first.evidence.iter().map(ToString::to_string).collect();
            }
        }
        Ok(())
    }
}

fn is_unexplained(report: &Item, checked: &DraftCheck) -> bool {
    let may_be_fixed = matches!(checked.answer, DraftAnswer::Reported | DraftAnswer::PossibleRegression);
    may_be_fixed
        && checked.fix.is_none()
        && report.item_type == ItemType::Issue
        && report.state == ItemState::Closed
        && report.state_reason == Some(StateReason::Completed)
}

/// A fix needs a reason in the code or its place, not only similar words.
fn is_sure(fix: &RankedFix) -> bool {
    let is_code = |evidence: &FixEvidence| matches!(evidence, FixEvidence::File(_) | FixEvidence::Line(_));
    fix.confidence.is_some_and(|confidence| confidence.get() >= NAMED_FROM) && fix.evidence.iter().any(is_code)
}

async fn read_index(store: &Store, repo: &Repo) -> Result<FixIndex, StoreError> {
    let filter = ItemFilter { item_type: Some(ItemType::Pr), state: Some(ItemState::Closed), ..ItemFilter::default() };
    let mut after: Option<(ItemNumber, ItemType)> = None;
    let mut merged: Vec<Item> = Vec::new();
    loop {
        let pulls = store.corpus().items_after(repo.id, filter, after, PAGE).await?;
        let Some(last) = pulls.last() else { break };
        after = Some((last.number, last.item_type));
        // A revert changes the same lines as a fix, and fixes nothing.
        merged.extend(pulls.into_iter().filter(|pull| pull.merged && !is_revert(repo, pull)));
        merged.drain(..merged.len().saturating_sub(MOST_PULLS));
    }
    Ok(off_async_threads(move || {
        let known = merged.iter().filter_map(|pull| {
            let merged_at = pull.closed_at?;
            Some(MergedPull {
                number: pull.number,
                title: &pull.title,
                body: &pull.body,
                author: pull.author.as_ref(),
                changes: pull.changes.as_ref(),
                created_at: pull.created_at.unwrap_or(merged_at),
                merged_at,
            })
        });
        FixIndex::new(known)
    })
    .await)
}
