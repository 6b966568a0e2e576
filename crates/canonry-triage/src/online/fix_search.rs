//! Finds the closed report that a new issue repeats, and the merged pull request that fixed it.

use std::collections::BTreeMap;

use canonry_domain::{
    FixBase, FixMatch, FixRelease, FixingPull, Item, ItemNumber, ItemState, ItemType, Probability, ReleaseVersion,
    Similarity, StateReason, fix_of_report, is_proven_fix, merge_record, online_verdict,
};
use canonry_github::{GitHub, GitHubError, item_from_pull};
use canonry_models::chat::TokenBudget;
use canonry_retrieval::Hit;
use canonry_store::{Repo, Store};
use jiff::Timestamp;

use crate::close::live_item::is_gone;
use crate::corpus::refetch_item::not_an_item;
use crate::judge::judge_case::{Judge, JudgeCase};
use crate::judge::known_duplicates::KnownDuplicates;
use crate::online::check_draft::original_of;
use crate::online::detect_new::{DetectError, DetectOptions};
use crate::online::known_fixes::fixes_of;
use crate::retrieval::neighbourhood::{Neighbourhood, RetrievalError};

/// Pull requests that are fetched for one issue: each may turn out to belong to another branch.
const FETCHED: usize = 3;

/// A closed issue with the same problem as a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepeatedReport {
    number: ItemNumber,
    score: Similarity,
    confidence: Option<Probability>,
}

/// The closed issue that a new issue repeats, by the built-in judge and the thresholds for new items. No model is
/// asked: nothing is ever closed because of the answer.
pub(crate) async fn repeated_report(
    near: &Neighbourhood,
    known: &KnownDuplicates,
    item: &Item,
    closed: &[Hit],
    items: &BTreeMap<ItemNumber, Item>,
    options: &DetectOptions,
) -> Result<Option<RepeatedReport>, RetrievalError> {
    if item.item_type != ItemType::Issue {
        return Ok(None);
    }
    let may_be_fixed = |item: &&Item| item.state_reason != Some(StateReason::NotPlanned);
    let is_apart = |hit: &&Hit| known.ruled_not_duplicates(item.number, hit.number);
    // The judge is asked whether the problem is the same, so that the state does not matter.
    let open = |item: &Item| Item { state: ItemState::Open, ..item.clone() };
    let mut compared = BTreeMap::new();
    for hit in closed.iter().filter(|hit| !is_apart(hit)) {
        compared.extend(items.get(&hit.number).filter(may_be_fixed).map(|item| (hit.number, open(item))));
    }
    let hits: Vec<Hit> = closed.iter().filter(|hit| compared.contains_key(&hit.number)).cloned().collect();
    let case = JudgeCase::of_neighbours(item, &hits, &compared, near, &options.thresholds, options.mode).await?;
    if case.numbers().is_empty() {
        return Ok(None);
    }
    let judge = Judge::Local;
    let reply = judge.ask(&judge.question(&case), &case, "detect", &TokenBudget::default()).await;
    let Some(answer) = reply.ok().and_then(|reply| reply.answer.ok()) else { return Ok(None) };
    let candidates = case.gate_candidates();
    let verdict = online_verdict(&case.gate_source(), &candidates, &case.pairs, Some(&answer), &options.thresholds);
    Ok(verdict.target.and_then(|target| {
        let hit = hits.iter().find(|hit| hit.number == target)?;
        Some(RepeatedReport { number: target, score: hit.score, confidence: verdict.confidence })
    }))
}

/// The merged pull request that fixed a repeated report, and the report: the original, if it was a duplicate itself.
/// On GitHub the pull request is fetched first, because a sync does not see its base.
pub(crate) async fn find_fix(
    store: &Store,
    github: Option<&GitHub>,
    repo: &Repo,
    known: &KnownDuplicates,
    item: &Item,
    (repeated, matched): (RepeatedReport, &Item),
    now: Timestamp,
) -> Result<Option<(FixMatch, Item)>, DetectError> {
    let report = original_of(store, repo, known, matched).await?;
    if report.number == item.number || known.ruled_not_duplicates(item.number, report.number) {
        return Ok(None);
    }
    let mut fixes = fixes_of(store, repo, [repeated.number, report.number].into()).await?;
    let filed_at = item.created_at.unwrap_or(now);
    let mut fetched: Vec<FetchedFix> = Vec::new();
    let (kind, fix) = loop {
        let Some((kind, fix)) = fix_of_report(&report, &fixes, filed_at) else { return Ok(None) };
        let number = fix.number;
        let is_fetched = fetched.iter().any(|live| live.fix.number == number);
        let Some(github) = github.filter(|_| !is_fetched) else { break (kind, fix.clone()) };
        if fetched.len() >= FETCHED {
            return Ok(None);
        }
        fixes.retain(|fix| fix.number != number);
        if let Some(live) = fetch_pull(store, github, repo, number).await? {
            fixes.push(live.fix.clone());
            fetched.push(live);
        }
    };
    let Some(merged_at) = fix.closed_at.filter(|_| is_proven_fix(&fix, &report)) else { return Ok(None) };
    let merge_commit = fetched.into_iter().find(|live| live.fix.number == fix.number).and_then(|live| live.commit);
    let release = match (github, merge_commit) {
        (Some(github), Some(commit)) => release_with(github, repo, &commit, merged_at).await?,
        _ => FixRelease::Unknown,
    };
    let version = ReleaseVersion::of_report(&item.body, repo.name.name());
    let found = FixMatch {
        kind: kind.by_version(&release, version.as_ref()),
        report: report.number,
        score: repeated.score,
        confidence: repeated.confidence,
        fix: fix.number,
        merged_at,
        release: release.name(),
    };
    Ok(Some((found, report)))
}

impl RepeatedReport {
    pub(crate) fn number(self) -> ItemNumber {
        self.number
    }
}

/// A pull request as it is on GitHub now.
struct FetchedFix {
    fix: FixingPull,
    /// The commit of the base branch that merged it.
    commit: Option<String>,
}

/// Fetches a pull request and stores what is new, such as its base; `None` if it is gone.
async fn fetch_pull(
    store: &Store,
    github: &GitHub,
    repo: &Repo,
    number: ItemNumber,
) -> Result<Option<FetchedFix>, DetectError> {
    let seen = store.corpus().item(repo.id, ItemType::Pr, number).await?;
    let pull = match github.pull(&repo.name, number).await {
        Err(error) if is_gone(&error) => return Ok(None),
        answer => answer?,
    };
    let record = item_from_pull(&pull, github.now()).map_err(|error| not_an_item(&error))?;
    let default = pull.base.repo.as_ref().map(|base| base.default_branch.as_str()).filter(|name| !name.is_empty());
    if let Some(default) = default {
        store.repos().set_default_branch(repo.id, default).await?;
    }
    let fix = FixingPull::new(&merge_record(None, record.clone()).item, default);
    store.corpus().upsert_fetched_item(repo, seen.as_ref(), record, github.now()).await?;
    // The second request would say the same.
    let fix = if fix.base == FixBase::Unknown { FixingPull { base: FixBase::AnotherBranch, ..fix } } else { fix };
    Ok(Some(FetchedFix { fix, commit: pull.merge_commit_sha.filter(|sha| !sha.is_empty()) }))
}

/// The first release with a commit. A repository whose releases may not be read has none to name.
async fn release_with(
    github: &GitHub,
    repo: &Repo,
    commit: &str,
    merged_at: Timestamp,
) -> Result<FixRelease, GitHubError> {
    match github.first_release_with(&repo.name, commit, merged_at).await {
        Err(error @ (GitHubError::Forbidden { .. } | GitHubError::BadAnswer { .. } | GitHubError::Refused { .. })) => {
            tracing::info!(repo = %repo.name, %error, "the releases cannot be read");
            Ok(FixRelease::Unknown)
        }
        Err(error) if is_gone(&error) => Ok(FixRelease::Unknown),
        answer => answer,
    }
}
