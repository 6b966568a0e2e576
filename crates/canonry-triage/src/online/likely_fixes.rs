//! Finds the merged pull requests that probably fixed an issue although none of them names it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use canonry_boxed::boxed;
use canonry_domain::{
    DraftAnswer, FixingPull, Item, ItemNumber, ItemState, ItemType, Probability, StateReason, draft_answer,
};
use canonry_retrieval::{FixIndex, FixQuery, MergedPull, RankedFix};
use canonry_store::{IndexVersion, ItemFilter, Repo, RepoId, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::online::check_draft::DraftCheck;
use crate::retrieval::index_upkeep::off_async_threads;

/// Pull requests that are read at once.
const PAGE: u32 = 200;
/// Repositories whose pull requests are kept in memory.
const KEPT: usize = 4;
/// From this confidence on, a pull request is named as the fix of a closed issue: more than nine in ten are right.
const NAMED_FROM: f64 = 0.7;
/// An issue is closed by its fix, or a little later by hand.
const CLOSED_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// The merged pull requests of the last repositories that were asked about.
#[derive(Default)]
pub struct FixIndexes {
    kept: Mutex<HashMap<RepoId, (IndexVersion, Arc<FixIndex>)>>,
}

#[boxed]
impl FixIndexes {
    /// The index of a repository, read again after a change.
    pub async fn of(&self, store: &Store, repo: &Repo) -> Result<Arc<FixIndex>, StoreError> {
        let version = store.corpus().index_version(repo.id).await?;
        {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, index)) = kept.get(&repo.id).filter(|(of, _)| *of == version) {
                return Ok(Arc::clone(index));
            }
        }
        let index = Arc::new(read_index(store, repo).await?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
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
        let Some(first) = ranked.into_iter().next().filter(|first| is_sure(first.confidence)) else { return Ok(()) };
        let Some(pull) = store.corpus().item(repo.id, ItemType::Pr, first.number).await? else { return Ok(()) };
        let closed_by_it =
            pull.closed_at.zip(report.closed_at).is_some_and(|(merged, closed)| merged <= closed + CLOSED_AFTER);
        if closed_by_it {
            let fix = FixingPull::from(&pull);
            let (answer, _) = draft_answer(Some(&report), std::slice::from_ref(&fix), now);
            checked.answer = answer;
            checked.fix = Some(fix);
            checked.fix_confidence = first.confidence;
            checked.fix_evidence = first.evidence.iter().map(ToString::to_string).collect();
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

fn is_sure(confidence: Option<Probability>) -> bool {
    confidence.is_some_and(|confidence| confidence.get() >= NAMED_FROM)
}

async fn read_index(store: &Store, repo: &Repo) -> Result<FixIndex, StoreError> {
    let filter = ItemFilter { item_type: Some(ItemType::Pr), state: Some(ItemState::Closed), ..ItemFilter::default() };
    let mut after: Option<(ItemNumber, ItemType)> = None;
    let mut merged: Vec<Item> = Vec::new();
    loop {
        let pulls = store.corpus().items_after(repo.id, filter, after, PAGE).await?;
        let Some(last) = pulls.last() else { break };
        after = Some((last.number, last.item_type));
        merged.extend(pulls.into_iter().filter(|pull| pull.merged));
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
