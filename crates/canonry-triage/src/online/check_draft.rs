//! `check`: compares a draft with what is known, before it is filed. Nothing is stored.

use std::collections::{BTreeMap, BTreeSet};

use canonry_boxed::boxed;
use canonry_domain::{
    ChangeOverlap, DraftAnswer, FixBase, FixingPull, Item, ItemNumber, ItemRecord, ItemState, ItemType, Login,
    OnlineThresholds, OnlineVerdict, PairFact, Probability, PullChanges, Similarity, Verdict, draft_answer,
    merge_record, online_verdict, raw_text, visible,
};
use canonry_models::chat::TokenBudget;
use canonry_models::{EmbedError, InputType};
use canonry_retrieval::{Hit, RetrievalMode, SHORTLIST};
use canonry_store::{Repo, Representation, Store, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::close::row_evidence::facts_of;
use crate::judge::judge_case::{Judge, JudgeCase};
use crate::judge::known_duplicates::KnownDuplicates;
use crate::online::detect_new::{Detectors, KEPT, TopMatch, common_facts, items_of, judged_before_others, top_matches};
use crate::online::known_fixes::{fixes_of, is_reverted};
use crate::retrieval::embed::EmbedSource;
use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};
use crate::retrieval::search::query_of_text;

/// An issue, or a change, that is not filed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub title: String,
    #[serde(default)]
    pub body: String,
    /// Who will file it. An item with the same text by the same author is the draft itself, filed meanwhile.
    pub author: Option<Login>,
    /// The changed files and lines; a draft with changes is compared with pull requests.
    pub changes: Option<PullChanges>,
}

impl Draft {
    /// The size of its texts and its change.
    pub fn bytes(&self) -> usize {
        let of_changes = self
            .changes
            .as_ref()
            .map_or(0, |changes| changes.diff.len() + changes.files.iter().map(String::len).sum::<usize>());
        self.title.len() + self.body.len() + of_changes
    }

    pub fn is_empty(&self) -> bool {
        let has_changes = self.changes.as_ref().is_some_and(|changes| !changes.is_empty());
        self.title.trim().is_empty() && self.body.trim().is_empty() && !has_changes
    }
}

/// A draft as it is sent to a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftRequest {
    #[serde(flatten)]
    pub draft: Draft,
    /// The maximum number of similar items.
    #[serde(default = "usual_k")]
    pub k: u16,
}

const fn usual_k() -> u16 {
    5
}

#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The maximum number of similar items.
    pub k: usize,
    pub thresholds: OnlineThresholds,
    pub mode: RetrievalMode,
}

/// What is known about a draft.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftCheck {
    pub answer: DraftAnswer,
    /// Whether the judge is sure of the match (`duplicate`) or not (`maybe_duplicate`).
    pub verdict: Verdict,
    pub confidence: Option<Probability>,
    /// The code of the reason for the verdict.
    pub reason: String,
    /// Whether the match was made by the changed lines.
    pub has_same_lines: bool,
    /// What the draft's change and the match's have in common, as a sentence.
    pub change_evidence: Option<String>,
    /// The pull requests that the draft's change was compared with.
    pub compared_changes: Vec<(ItemNumber, ChangeOverlap)>,
    /// The item with the same problem, or the same change; of a duplicate, its original.
    pub report: Option<Item>,
    /// The item that the draft was matched with, which the evidence is about.
    pub matched: Option<ItemNumber>,
    /// The pull request that fixes it, or says so.
    pub fix: Option<FixingPull>,
    /// How sure it is that this pull request is the fix, if it does not say so itself.
    pub fix_confidence: Option<Probability>,
    pub fix_evidence: Vec<String>,
    pub evidence: Vec<PairFact>,
    pub similar: Vec<TopMatch>,
    /// How many items the draft was compared with.
    pub compared: usize,
    /// How many of them have a current vector, if vectors count; the others are only found by their words.
    pub embedded: usize,
    /// Whether the draft is a change and no similar pull request has its changes stored.
    pub lacks_changes: bool,
    /// How many pull requests near a draft with changes have no stored changes to compare with.
    pub without_changes: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(
        "{repo} is not embedded by {model} yet; run `canonry embed --repo {repo}` with the same embedder first, or use --retrieval lexical"
    )]
    NotEmbedded { repo: String, model: String },
    #[error("failed to {0}")]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The number that the draft has in comparisons: later than every real one.
const DRAFT_NUMBER: i64 = i64::MAX;
/// The reasons of verdicts about a change: most lines are the same, much is the same, or neither.
const SAME_CHANGE: &str = "same_change";
const SIMILAR_CHANGE: &str = "similar_change";
const NO_SIMILAR_CHANGE: &str = "no_similar_change";
/// Pull requests whose changes are compared with those of a draft. Nineteen in twenty originals are among them.
const CHANGES_COMPARED: usize = 20;

/// Issues that are fetched for each one that is shown. A problem with many known duplicates takes as many hits.
const HITS_PER_SHOWN: usize = 4;

/// Compares a draft with the stored items and lets the built-in judge decide: no model is asked, nothing is stored.
/// Closed items count too: they tell that a problem is fixed, or was.
#[boxed]
pub async fn check_draft(
    store: &Store,
    repo: &Repo,
    draft: &Draft,
    with: Detectors<'_>,
    options: &CheckOptions,
    now: Timestamp,
) -> Result<DraftCheck, CheckError> {
    let source = draft_item(draft, now);
    let near = with.neighbourhood(store, repo, source.item_type, EmbedSource::Raw).await?;
    let compared = near.rows().len();
    let embedded = if options.mode == RetrievalMode::Lexical { compared } else { near.embedded() };
    if embedded == 0 && compared > 0 {
        let model = with.embedder.model_id().to_owned();
        return Err(CheckError::NotEmbedded { repo: repo.name.to_string(), model });
    }
    let known = KnownDuplicates::load(store, repo, source.item_type, Representation::Raw).await?;
    let found = neighbours(&near, &source, with, options).await?;
    let mut items = items_of(store, repo, source.item_type, &found).await?;
    items.retain(|_, item| !is_same_item(item, &source));
    let found: Vec<Hit> = found.into_iter().filter(|hit| items.contains_key(&hit.number)).collect();
    let of_problems = one_of_each_problem(&found, &items, &known);
    let without_changes = match source.changes {
        Some(_) => items.values().filter(|item| item.changes.is_none()).count(),
        None => 0,
    };
    let lacks_changes = without_changes > 0 && without_changes == items.len();
    let by_changes = source.changes.as_ref().filter(|_| !lacks_changes);
    let mut compared_changes = Vec::new();
    let (verdict, has_same_lines, shown, judged) = match by_changes {
        Some(changes) => {
            let compared = ComparedChanges::of(&source, changes, &found, &items, &near);
            let (verdict, has_same_lines) = compared.verdict();
            let shown = compared.shown(of_problems, options.k);
            compared_changes = compared.compared.iter().map(|(item, overlap)| (item.number, *overlap)).collect();
            (verdict, has_same_lines, shown, Vec::new())
        }
        None => {
            let hits = judged_before_others(of_problems.clone(), options.thresholds.min_score, options.k);
            let (verdict, judged) = judge_draft(&source, &hits, &items, &near, options).await?;
            (verdict, false, of_problems.into_iter().take(options.k).collect(), judged)
        }
    };
    let matched = verdict.target.and_then(|target| items.get(&target)).cloned();
    let evidence = matched
        .as_ref()
        .map(|matched| facts_of(&repo.name, near.boilerplate(), &common_facts(&near, &source), &source, matched))
        .unwrap_or_default();
    let change_evidence = matched.as_ref().filter(|_| !has_same_lines).and_then(|matched| in_common(&source, matched));
    let (shown, judged) = in_place_of_duplicates(store, repo, &known, &source, &mut items, shown, judged).await?;
    let similar = top_matches(&items, &shown, &judged);
    drop(near);
    let report = match &matched {
        Some(matched) => Some(original_of(store, repo, &known, matched).await?),
        None => None,
    };
    let fixes = match &report {
        Some(report) if report.item_type == ItemType::Issue => {
            fixes_of(store, repo, verdict.target.into_iter().chain([report.number]).collect()).await?
        }
        _ => Vec::new(),
    };
    let is_in_place = match &report {
        Some(report) if report.item_type == ItemType::Pr => is_in_place(store, repo, report).await?,
        _ => true,
    };
    let state = report.clone().map(|report| Item { merged: report.merged && is_in_place, ..report });
    let (answer, fix) = draft_answer(state.as_ref(), &fixes, now);
    Ok(DraftCheck {
        answer,
        verdict: verdict.verdict,
        confidence: verdict.confidence.filter(|_| report.is_some()),
        reason: verdict.reason,
        has_same_lines,
        change_evidence,
        compared_changes,
        matched: verdict.target,
        fix: fix.cloned(),
        fix_confidence: None,
        fix_evidence: Vec::new(),
        report,
        evidence,
        similar,
        compared,
        embedded,
        lacks_changes,
        without_changes,
    })
}

/// Whether the change of a merged pull request may be on the default branch: it was not merged into another one, and not
/// reverted.
async fn is_in_place(store: &Store, repo: &Repo, pull: &Item) -> Result<bool, StoreError> {
    let default_branch = store.repos().default_branch(repo.id).await?;
    let base = FixBase::of(pull.base_branch.as_deref(), default_branch.as_deref());
    Ok(base != FixBase::AnotherBranch && !is_reverted(store, repo, pull).await?)
}

fn draft_item(draft: &Draft, now: Timestamp) -> Item {
    let item_type = if draft.changes.is_some() { ItemType::Pr } else { ItemType::Issue };
    let number = ItemNumber::new(DRAFT_NUMBER).expect("invariant: the constant is positive");
    let record = ItemRecord {
        body: Some(draft.body.clone()),
        author: draft.author.clone(),
        created_at: Some(now),
        changes: draft.changes.clone(),
        ..ItemRecord::new(item_type, number, &draft.title)
    };
    merge_record(None, record).item
}

/// Asks the built-in judge; also returns which neighbours it saw.
async fn judge_draft(
    source: &Item,
    hits: &[Hit],
    items: &BTreeMap<ItemNumber, Item>,
    near: &Neighbourhood,
    options: &CheckOptions,
) -> Result<(OnlineVerdict, Vec<ItemNumber>), CheckError> {
    // The judge is asked whether the problem is the same, so that the state does not matter.
    let mut compared = items.clone();
    compared.values_mut().for_each(|item| item.state = ItemState::Open);
    let (thresholds, mode) = (&options.thresholds, options.mode);
    let case = JudgeCase::of_neighbours(source, hits, &compared, near, thresholds, mode).await?;
    let judged = case.numbers();
    let answer = match judged.is_empty() {
        true => None,
        false => {
            let judge = Judge::Local;
            let reply = judge.ask(&judge.question(&case), &case, "check", &TokenBudget::default()).await;
            reply.ok().and_then(|reply| reply.answer.ok())
        }
    };
    let candidates = case.gate_candidates();
    let verdict = online_verdict(&case.gate_source(), &candidates, &case.pairs, answer.as_ref(), thresholds);
    Ok((verdict, judged))
}

/// The pull requests nearest to a draft, each with what it has in common with the draft's change.
struct ComparedChanges<'a> {
    source: &'a Item,
    changes: &'a PullChanges,
    /// In the order of the ranker.
    compared: Vec<(&'a Item, ChangeOverlap)>,
}

impl<'a> ComparedChanges<'a> {
    fn of(
        source: &'a Item,
        changes: &'a PullChanges,
        hits: &[Hit],
        items: &'a BTreeMap<ItemNumber, Item>,
        near: &Neighbourhood,
    ) -> Self {
        let mut numbers: Vec<ItemNumber> = near.rows().keys().copied().collect();
        numbers.sort_unstable();
        let overlap = |hit: &Hit| {
            let item = items.get(&hit.number)?;
            let part = |name| hit.parts.get(name).copied().unwrap_or_default();
            let (shared, smaller) = changes.shared_lines(item.changes.as_ref()?);
            let followed_by = numbers.len() - numbers.partition_point(|number| *number <= hit.number);
            let overlap = ChangeOverlap {
                identifiers: part("diff"),
                paths: part("paths"),
                words: part("lexical"),
                lines: shared as f64 / smaller.max(1) as f64,
                nearness: ChangeOverlap::nearness_after(followed_by),
            };
            Some((item, overlap))
        };
        Self { source, changes, compared: hits.iter().filter_map(overlap).collect() }
    }

    /// The verdict, and whether it was made by the same lines. What the author of the draft opened before is known to the
    /// author, or is the draft itself.
    fn verdict(&self) -> (OnlineVerdict, bool) {
        let author = self.source.author.as_ref();
        let others = || self.compared.iter().filter(|(item, _)| author.is_none() || item.author.as_ref() != author);
        let twin = others().find(|(item, _)| item.changes.as_ref().is_some_and(|own| self.changes.is_same_change(own)));
        if let Some((twin, _)) = twin {
            return (matched(twin, Verdict::Duplicate, SAME_CHANGE), true);
        }
        let likeliest = others().max_by(|(_, one), (_, other)| one.log_odds().total_cmp(&other.log_odds()));
        match likeliest.filter(|(_, overlap)| overlap.is_match()) {
            Some((item, _)) => (matched(item, Verdict::MaybeDuplicate, SIMILAR_CHANGE), false),
            None => {
                let reason = NO_SIMILAR_CHANGE.to_owned();
                (OnlineVerdict { verdict: Verdict::NotDuplicate, target: None, confidence: None, reason }, false)
            }
        }
    }

    /// What is shown: changes that are worth a look, and similar texts.
    fn shown(&self, hits: Vec<Hit>, k: usize) -> Vec<Hit> {
        let is_similar = |hit: &Hit| {
            let overlap = self.compared.iter().find(|(item, _)| item.number == hit.number);
            hit.score.get() >= KEPT || overlap.is_some_and(|(_, overlap)| overlap.is_similar())
        };
        hits.into_iter().filter(is_similar).take(k).collect()
    }
}

fn matched(item: &Item, verdict: Verdict, reason: &str) -> OnlineVerdict {
    OnlineVerdict { verdict, target: Some(item.number), confidence: None, reason: reason.to_owned() }
}

/// A sentence about what two changes have in common.
fn in_common(source: &Item, matched: &Item) -> Option<String> {
    let (own, others) = (source.changes.as_ref()?, matched.changes.as_ref()?);
    let path = own.files.iter().find(|path| others.files.contains(path));
    let lines = match own.shared_lines(others) {
        (0, _) => None,
        (1, _) => Some("1 changed line is in both.".to_owned()),
        (shared, _) => Some(format!("{shared} changed lines are in both.")),
    };
    let path = path.map(|path| format!("Both change `{}`.", visible(path)));
    let told: Vec<String> = path.into_iter().chain(lines).collect();
    (!told.is_empty()).then(|| told.join(" "))
}

/// Whether an item is the draft itself, filed meanwhile.
fn is_same_item(item: &Item, draft: &Item) -> bool {
    draft.author.is_some() && item.author == draft.author && item.content_hash == draft.content_hash
}

/// The neighbours that are compared with the draft, in the order of the ranker.
async fn neighbours(
    near: &Neighbourhood,
    source: &Item,
    with: Detectors<'_>,
    options: &CheckOptions,
) -> Result<Vec<Hit>, CheckError> {
    if !near.boilerplate().leaves_content(source) {
        return Ok(Vec::new());
    }
    let own = near.boilerplate().own(source);
    let mut made = None;
    if options.mode != RetrievalMode::Lexical {
        let text = raw_text(&own.title, &own.body);
        made = with.embedder.embed_with_tokens(&[text], InputType::Document).await?.pop();
    }
    // The number that the draft would get: duplicates come soon after their original.
    let newest = near.rows().keys().max().map_or(0, |number| number.get());
    let next = ItemNumber::new(newest.saturating_add(1)).expect("invariant: the sum is positive");
    let query = query_of_text(&own.title, &own.body, own.changes.as_ref(), made.as_ref()).numbered(next);
    let vector = made.as_ref().map(|made| made.vector.as_slice());
    let kept = Similarity::new(KEPT).expect("invariant: the constant is in range");
    // Texts of changes are short: what they change says more.
    let min_score = if source.changes.is_some() { Similarity::ZERO } else { kept.min(options.thresholds.min_score) };
    let wanted = NeighbourQuery { mode: options.mode, k: SHORTLIST, min_score, state: None };
    let mut hits = near.neighbours(&query, vector, wanted, &|_| true).await?;
    match source.changes {
        Some(_) => hits.truncate(CHANGES_COMPARED.max(options.k)),
        None => {
            // What is judged, and what is shown: the first ones, and more in place of known duplicates and of a draft that
            // was filed meanwhile.
            let most = options.k.saturating_mul(HITS_PER_SHOWN);
            let judged = judged_before_others(hits.clone(), options.thresholds.min_score, most);
            let judged: BTreeSet<ItemNumber> = judged.iter().map(|hit| hit.number).collect();
            let mut at = 0;
            hits.retain(|hit| {
                at += 1;
                at <= most || judged.contains(&hit.number)
            });
        }
    }
    Ok(hits)
}

/// The best hit of each problem, ranked anew: items that are known to be duplicates of one another take one place.
fn one_of_each_problem(hits: &[Hit], items: &BTreeMap<ItemNumber, Item>, known: &KnownDuplicates) -> Vec<Hit> {
    let mut problems = BTreeSet::new();
    let first = hits.iter().filter(|hit| problems.insert(last_known_original(known, items, hit.number)));
    first.enumerate().map(|(at, hit)| Hit { rank: at + 1, ..hit.clone() }).collect()
}

/// Follows a duplicate to its original, as far as these items tell.
fn last_known_original(known: &KnownDuplicates, items: &BTreeMap<ItemNumber, Item>, number: ItemNumber) -> ItemNumber {
    let mut passed = BTreeSet::from([number]);
    let mut last = number;
    while let Some(original) = items.get(&last).and_then(|item| known_original(known, item)) {
        if !passed.insert(original) {
            break;
        }
        last = original;
    }
    last
}

/// Shows each duplicate as its original, which is the item to follow.
async fn in_place_of_duplicates(
    store: &Store,
    repo: &Repo,
    known: &KnownDuplicates,
    draft: &Item,
    items: &mut BTreeMap<ItemNumber, Item>,
    mut shown: Vec<Hit>,
    mut judged: Vec<ItemNumber>,
) -> Result<(Vec<Hit>, Vec<ItemNumber>), StoreError> {
    let original = |number: &ItemNumber| last_known_original(known, items, *number);
    let originals: BTreeMap<ItemNumber, ItemNumber> =
        shown.iter().map(|hit| (hit.number, original(&hit.number))).collect();
    let missing: Vec<ItemNumber> = originals.values().filter(|number| !items.contains_key(number)).copied().collect();
    if !missing.is_empty() {
        let stored = store.corpus().items_by_number(repo.id, draft.item_type, &missing).await?;
        let may_be_shown = |item: &Item| item.gone.is_none() && !is_same_item(item, draft);
        items.extend(stored.into_iter().filter(may_be_shown).map(|item| (item.number, item)));
    }
    let show = |number: &mut ItemNumber| {
        *number = originals.get(number).filter(|original| items.contains_key(original)).copied().unwrap_or(*number);
    };
    shown.iter_mut().for_each(|hit| show(&mut hit.number));
    judged.iter_mut().for_each(show);
    Ok((shown, judged))
}

/// The canonical of a duplicate's cluster, or what people linked it to.
fn known_original(known: &KnownDuplicates, item: &Item) -> Option<ItemNumber> {
    known.canonical_of(item.number).or(item.duplicate_of).filter(|original| *original != item.number)
}

/// The item to follow instead of a duplicate.
pub(crate) async fn original_of(
    store: &Store,
    repo: &Repo,
    known: &KnownDuplicates,
    matched: &Item,
) -> Result<Item, StoreError> {
    let Some(original) = known_original(known, matched) else { return Ok(matched.clone()) };
    let item = store.corpus().item(repo.id, matched.item_type, original).await?;
    Ok(item.filter(|item| item.gone.is_none()).unwrap_or_else(|| matched.clone()))
}
