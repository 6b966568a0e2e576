//! Which judges may close in a repository: the compiled-in one, and those that an audit in the repository has proven.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    AuditItem, ClosePath, Extractor, FlatRow, Item, ItemNumber, ItemType, JUDGE_PROMPT_VERSION, LEAST_PROVING_ANSWERS,
    Override, OverrideKind, SkipReason, is_accepted_answer_right,
};
use canonry_store::{Repo, Representation, Store, StoreError, StoredJudge};

use crate::judge::judge_case::Judge;

/// Whether a judge's yes may close an item of the repository. The compiled-in judge was measured on benchmark data;
/// any other must be proven in the repository itself.
#[boxed]
pub async fn is_judge_proven(store: &Store, repo: &Repo, judge: &StoredJudge) -> Result<bool, StoreError> {
    if judge.provider == Extractor::Local.as_str() {
        return Ok(true);
    }
    let proof = store.judge().judge_proof(repo.id, judge, LEAST_PROVING_ANSWERS).await?;
    Ok(proof.is_some_and(canonry_domain::JudgeProof::is_enough))
}

impl Judge<'_> {
    pub fn stored(&self) -> StoredJudge {
        StoredJudge {
            provider: self.provider().to_owned(),
            model: self.model_id().to_owned(),
            prompt_version: JUDGE_PROMPT_VERSION,
        }
    }
}

/// The edges of a plan that neither a proven judge nor a person supports.
pub(crate) struct UnprovenEdges {
    sources: BTreeSet<ItemNumber>,
    ruled: BTreeSet<(ItemNumber, ItemNumber)>,
}

impl UnprovenEdges {
    pub(crate) async fn read(
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
        representation: Representation,
    ) -> Result<Self, StoreError> {
        let mut known: BTreeMap<StoredJudge, bool> = BTreeMap::new();
        let mut sources = BTreeSet::new();
        for (source, judge) in store.judge().accepted_judges(repo.id, item_type, representation).await? {
            let is_proven = match known.get(&judge) {
                Some(is_proven) => *is_proven,
                None => {
                    let is_proven = is_judge_proven(store, repo, &judge).await?;
                    known.insert(judge, is_proven);
                    is_proven
                }
            };
            if !is_proven {
                sources.insert(source);
            }
        }
        let overrides = if sources.is_empty() {
            Vec::new()
        } else {
            store.duplicates().overrides(repo.id, Some(item_type)).await?
        };
        let ruled = overrides.iter().filter(|one| one.kind == OverrideKind::Duplicate);
        let ruled = ruled.filter_map(|one| Some((one.item, one.other?))).collect();
        Ok(Self { sources, ruled })
    }

    /// Why a row must not close its item.
    pub(crate) fn skip(&self, row: &FlatRow<'_>) -> Option<SkipReason> {
        let is_unproven = |from: ItemNumber, to| self.sources.contains(&from) && !self.ruled.contains(&(from, to));
        let rests_on_one = match row.path? {
            ClosePath::Direct => is_unproven(row.number, row.target),
            ClosePath::Through(other) => is_unproven(row.number, other) || is_unproven(other, row.target),
        };
        let is_ruled = self.ruled.contains(&(row.number, row.target));
        (rests_on_one && !is_ruled).then_some(SkipReason::UnprovenJudge)
    }
}

/// People's decisions about pairs of items. To measure a judge, they take precedence over any other judge's answers.
pub(crate) struct PeoplesTruth {
    overrides: Vec<Override>,
    adjudicated: BTreeMap<(ItemType, ItemNumber, ItemNumber), bool>,
}

impl PeoplesTruth {
    pub(crate) async fn read(store: &Store, repo: &Repo) -> Result<Self, StoreError> {
        let (overrides, adjudicated) =
            (store.duplicates().overrides(repo.id, None).await?, store.judge().adjudicated_pairs(repo.id).await?);
        Ok(Self { overrides, adjudicated })
    }

    /// Whether the accepted answer about an item was right; `None` if unknown.
    pub(crate) fn is_right(&self, source: &Item, audited: &AuditItem, is_other_judge: bool) -> Option<bool> {
        let said = audited.cheap.target.and_then(|target| self.is_duplicate_of(source, target));
        is_accepted_answer_right(audited, said, is_other_judge)
    }

    /// People's decision about a pair: a ruling, otherwise a sampled verdict, otherwise the target of the issue's
    /// close.
    fn is_duplicate_of(&self, source: &Item, target: ItemNumber) -> Option<bool> {
        let pair = |one: &&Override| {
            let named = (one.item, one.other);
            one.item_type == source.item_type
                && (named == (source.number, Some(target)) || named == (target, Some(source.number)))
        };
        let mut ruled = self.overrides.iter().filter(pair).filter_map(|one| match one.kind {
            OverrideKind::Duplicate => Some(true),
            OverrideKind::NotDuplicate => Some(false),
            OverrideKind::Canonical | OverrideKind::Excluded => None,
        });
        let adjudicated = || {
            let of = |one, other| self.adjudicated.get(&(source.item_type, one, other)).copied();
            of(source.number, target).or_else(|| of(target, source.number))
        };
        // An item that was closed as a duplicate of another one may still be the same problem.
        ruled.next_back().or_else(adjudicated).or_else(|| (source.duplicate_of == Some(target)).then_some(true))
    }
}
