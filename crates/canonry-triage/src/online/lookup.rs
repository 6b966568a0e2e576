//! Answers questions about what is stored, for the API, the console and MCP. Nothing is written, and no language model
//! is asked.

use std::sync::Arc;
use std::time::Duration;

use canonry_boxed::boxed;
use canonry_domain::review::{FindingStatus, ReviewSubject, ShownAs};
use canonry_domain::{Item, ItemNumber, ItemState, ItemType, OnlineThresholds, Probability, Similarity};
use canonry_github::Clock;
use canonry_retrieval::{RankedFix, RetrievalMode};
use canonry_store::{
    ClusterFilter, ClusterRow, FindingEntry, FindingFilter, ItemLine, Repo, Representation, Store, StoreError,
};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::corpus::item_summary::ItemSummary;
use crate::judge::canonicalize::cluster_of;
use crate::judge::judge_case::Judge;
use crate::online::check_draft::{CheckError, CheckOptions, Draft, DraftCheck, check_draft};
use crate::online::detector_source::DetectorSource;
use crate::online::draft_report::{DraftReport, FixSummary, LikelyFix};
use crate::online::known_fixes::{change_text, fixes_of, reverted_among};
use crate::online::likely_fixes::FixIndexes;
use crate::retrieval::embed::EmbedSource;
use crate::retrieval::search::{FoundItem, SearchError, SearchFor, SearchOptions, search};

/// The defaults of `canonry check`.
const CHECK_MIN_SCORE: f64 = 0.75;
const CHECK_MIN_CONFIDENCE: f64 = 0.85;
/// From this confidence on, a match is stated without "probably"; as `detect-new` does.
const CHECK_SURE: f64 = 0.92;
/// Findings that are read at most.
const FINDINGS: u32 = 200;
/// Clusters, and items, that are listed at most.
const LISTED: u32 = 200;
/// Pull requests that are named as likely fixes.
const LIKELY: usize = 3;

pub struct Lookup {
    pub store: Store,
    pub detectors: Arc<dyn DetectorSource>,
    pub clock: Arc<dyn Clock>,
    pub mode: RetrievalMode,
    pub fixes: FixIndexes,
    /// Comparisons that run at once; others wait.
    pub places: Semaphore,
}

/// Comparisons of a service that run at once: each takes a core for a while.
pub const LOOKUPS_AT_ONCE: usize = 4;
/// A comparison that waits longer than this is refused.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a query, or of a draft with its change.
const LONGEST: usize = 1 << 20;

/// The pull requests for an issue.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownFixes {
    pub issue: ItemSummary,
    /// Those that say that they fix the issue or one of its duplicates, the oldest first.
    pub fixes: Vec<FixSummary>,
    /// Merged ones that do not name it, the likeliest first; empty where an open or merged one names it.
    pub likely: Vec<LikelyFix>,
}

/// An item with what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownItem {
    pub item: Item,
    /// The item to follow instead, if this one is a duplicate.
    pub canonical: Option<ItemSummary>,
    pub duplicates: Vec<ItemSummary>,
    /// The pull requests that say that they fix the issue.
    pub fixes: Vec<FixSummary>,
    /// The issues that the pull request says it fixes.
    pub fixed_issues: Vec<ItemNumber>,
}

#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error("there is no item #{number} in {repo}, or it was not fetched yet")]
    UnknownItem { repo: String, number: ItemNumber },
    #[error("#{number} is a pull request, not an issue")]
    NotAnIssue { number: ItemNumber },
    #[error("pull request #{number} was not reviewed yet")]
    NotReviewed { number: ItemNumber },
    #[error("the text is larger than 1 MiB; shorten it")]
    TooLong,
    #[error("too many drafts are being compared; try again later")]
    Busy,
    // Strangers read these messages: the details are only logged.
    #[error("the texts could not be compared; try again later")]
    Check(#[from] CheckError),
    #[error("the items could not be searched; try again later")]
    Search(#[from] SearchError),
    #[error("the database does not answer; try again later")]
    Store(#[from] StoreError),
}

/// The thresholds of a check with these limits; a match is never stated as sure below `CHECK_SURE`.
pub fn check_thresholds(min_score: Similarity, min_confidence: Probability) -> OnlineThresholds {
    let sure = Probability::new(CHECK_SURE).expect("invariant: the constant is in range");
    OnlineThresholds { min_score, maybe: min_confidence, duplicate: sure.max(min_confidence) }
}

#[boxed]
impl Lookup {
    /// Compares a draft with the stored items. A repository without vectors of these texts is compared by its words.
    pub async fn check(&self, repo: &Repo, draft: &Draft, k: usize) -> Result<DraftReport, LookupError> {
        if draft.bytes() > LONGEST {
            return Err(LookupError::TooLong);
        }
        let _place = self.place().await?;
        let min_score = Similarity::new(CHECK_MIN_SCORE).expect("invariant: the constant is in range");
        let min_confidence = Probability::new(CHECK_MIN_CONFIDENCE).expect("invariant: the constant is in range");
        let thresholds = check_thresholds(min_score, min_confidence);
        let with = crate::Detectors { github: None, judge: Judge::Local, ..self.detectors.detectors() };
        let now = self.clock.now();
        let mut options = CheckOptions { k, thresholds, mode: self.mode };
        let mut checked = match check_draft(&self.store, repo, draft, with, &options, now).await {
            Err(CheckError::NotEmbedded { .. }) => {
                options.mode = RetrievalMode::Lexical;
                let checked = check_draft(&self.store, repo, draft, with, &options, now).await?;
                DraftCheck { embedded: 0, ..checked }
            }
            checked => checked?,
        };
        self.fixes.explain(&self.store, repo, &mut checked, now).await?;
        let synced_at = self.store.corpus().sync_progress(repo.id).await?.finished_at;
        Ok(DraftReport::new(&checked, synced_at))
    }

    /// Finds items by meaning and words, the best first.
    pub async fn search(
        &self,
        repo: &Repo,
        text: &str,
        item_type: Option<ItemType>,
        state: Option<ItemState>,
        limit: usize,
    ) -> Result<Vec<FoundItem>, LookupError> {
        if text.len() > LONGEST {
            return Err(LookupError::TooLong);
        }
        let _place = self.place().await?;
        let detectors = self.detectors.detectors();
        let mut neighbourhoods = Vec::new();
        for item_type in ItemType::one_or_all(item_type) {
            let near = detectors.neighbourhood(&self.store, repo, item_type, EmbedSource::Raw).await;
            neighbourhoods.push(near.map_err(SearchError::from)?);
        }
        let has_vectors = neighbourhoods.iter().any(|near| near.embedded() > 0);
        let options = SearchOptions {
            mode: if has_vectors { self.mode } else { RetrievalMode::Lexical },
            state,
            limit,
            min_score: Similarity::ZERO,
            include: Vec::new(),
            exclude: Vec::new(),
        };
        let search_for = SearchFor::Text(text.to_owned());
        Ok(search(&self.store, repo, detectors.embedder, &neighbourhoods, &search_for, &options).await?)
    }

    pub async fn item(&self, repo: &Repo, number: ItemNumber) -> Result<KnownItem, LookupError> {
        let item = self.find(repo, number).await?;
        let mut cluster = None;
        for representation in [Representation::Raw, Representation::Intent] {
            if cluster.is_none() {
                cluster = cluster_of(&self.store, repo, item.item_type, number, representation).await?;
            }
        }
        let canonical = cluster.as_ref().map(|cluster| cluster.canonical).or(item.duplicate_of);
        let members = cluster.map(|cluster| cluster.members).unwrap_or_default();
        let others: Vec<ItemNumber> = members.iter().map(|member| member.number).chain(canonical).collect();
        let others = self.store.corpus().items_by_number(repo.id, item.item_type, &others).await?;
        let (canonicals, duplicates): (Vec<&Item>, Vec<&Item>) = others
            .iter()
            .filter(|other| other.number != number && other.gone.is_none())
            .partition(|other| Some(other.number) == canonical);
        let is_issue = item.item_type == ItemType::Issue;
        let fixes = match is_issue {
            true => fixes_of(&self.store, repo, [number].into()).await?.iter().map(FixSummary::from).collect(),
            false => Vec::new(),
        };
        let fixed_issues = match is_issue {
            true => Vec::new(),
            false => change_text(repo, &item).fixed_issues().iter().copied().collect(),
        };
        Ok(KnownItem {
            canonical: canonicals.first().map(|canonical| ItemSummary::from(*canonical)),
            duplicates: duplicates.into_iter().map(ItemSummary::from).collect(),
            fixes,
            fixed_issues,
            item,
        })
    }

    pub async fn fixes(&self, repo: &Repo, number: ItemNumber) -> Result<KnownFixes, LookupError> {
        let known = self.item(repo, number).await?;
        if known.item.item_type == ItemType::Pr {
            return Err(LookupError::NotAnIssue { number });
        }
        let same = known.canonical.iter().chain(&known.duplicates).map(|item| item.number);
        let numbers = same.chain([number]).collect();
        let fixes: Vec<FixSummary> = fixes_of(&self.store, repo, numbers).await?.iter().map(FixSummary::from).collect();
        let is_explained = fixes.iter().any(|fix| fix.merged || fix.state == ItemState::Open);
        let likely = if is_explained { Vec::new() } else { self.likely_fixes(repo, &known.item).await? };
        Ok(KnownFixes { issue: ItemSummary::from(&known.item), fixes, likely })
    }

    /// The findings of a pull request that are open after its last review, the most severe first.
    pub async fn open_findings(&self, repo: &Repo, pull: ItemNumber) -> Result<Vec<FindingEntry>, LookupError> {
        let subject = ReviewSubject::Pull(pull);
        if self.store.review().list_before(repo.id, Some(&subject), None, 1).await?.is_empty() {
            return Err(LookupError::NotReviewed { number: pull });
        }
        let filter = FindingFilter { subject: Some(&subject), ..FindingFilter::default() };
        let mut findings = self.store.findings().pages(repo.id, filter, None, FINDINGS).await?;
        findings.retain(|entry| {
            let found = &entry.found;
            !found.fixed && found.shown != ShownAs::Suppressed && found.status != FindingStatus::Dismissed
        });
        findings.sort_by_key(|entry| std::cmp::Reverse((entry.found.finding.severity, entry.found.id)));
        Ok(findings)
    }

    /// What can be read without knowing a number: the largest clusters, and the items that changed last.
    pub async fn listed(&self, repo: &Repo) -> Result<(Vec<ClusterRow>, Vec<ItemLine>), LookupError> {
        let filter = ClusterFilter::all(Representation::Raw);
        let clusters = self.store.duplicates().cluster_pages(repo.id, filter, None, LISTED).await?;
        Ok((clusters, self.store.console().recently_updated(repo.id, LISTED).await?))
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, LookupError> {
        let waiting = tokio::time::timeout(PATIENCE, self.places.acquire()).await;
        waiting.ok().and_then(Result::ok).ok_or(LookupError::Busy)
    }

    async fn likely_fixes(&self, repo: &Repo, issue: &Item) -> Result<Vec<LikelyFix>, LookupError> {
        let ranked = self.fixes.rank(&self.store, repo, issue, LIKELY).await?;
        let numbers: Vec<ItemNumber> = ranked.iter().map(|fix| fix.number).collect();
        let pulls = self.store.corpus().items_by_number(repo.id, ItemType::Pr, &numbers).await?;
        let default_branch = self.store.repos().default_branch(repo.id).await?;
        let reverted = reverted_among(&self.store, repo, pulls.iter(), default_branch.as_deref()).await?;
        let of = |fix: RankedFix| {
            let pull = pulls.iter().find(|pull| pull.number == fix.number && !reverted.contains(&pull.number))?;
            Some(LikelyFix {
                number: fix.number,
                title: pull.title.clone(),
                merged_at: pull.closed_at,
                url: pull.url.clone(),
                confidence: fix.confidence.map(|confidence| confidence.get()),
                evidence: fix.evidence.iter().map(ToString::to_string).collect(),
            })
        };
        // The first is the best of whatever was merged: without evidence it means nothing.
        Ok(ranked.into_iter().filter(|fix| !fix.evidence.is_empty()).filter_map(of).collect())
    }

    /// Finds an item by its number alone: GitHub numbers issues and pull requests together.
    async fn find(&self, repo: &Repo, number: ItemNumber) -> Result<Item, LookupError> {
        for item_type in ItemType::ALL {
            // Texts of items that are gone from GitHub are for maintainers: people delete what should not be read.
            let item = self.store.corpus().item(repo.id, *item_type, number).await?;
            if let Some(item) = item.filter(|item| item.gone.is_none()) {
                return Ok(item);
            }
        }
        Err(LookupError::UnknownItem { repo: repo.name.to_string(), number })
    }
}
