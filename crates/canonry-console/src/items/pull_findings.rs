//! The findings of a pull request across its pushes, with the code of each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use canonry_domain::ItemNumber;
use canonry_domain::review::{ReviewSubject, ShownAs};
use canonry_review::written_check;
use canonry_store::{FindingEntry, FindingFilter, FindingId, ReviewId, StoredReview, StoredSighting};

use crate::layout::errors::PageError;
use crate::layout::formatting::{
    Badge, TimeLabel, check_badge, counted, hidden_by_in_words, severity_badge, status_badge, when,
};
use crate::layout::page::repo_path;
use crate::layout::paging::link;
use crate::reviews::code_excerpt::ExcerptView;
use crate::reviews::review_page::{place, web};
use crate::sign_in::visit::RepoVisit;

/// The latest reviews in which a finding is shown; its own page has them all.
const PUSHES: u32 = 6;
/// Findings that are read to select the most severe.
const FINDINGS_READ: u32 = 200;
const FINDINGS_SHOWN: usize = 20;

pub(crate) struct PullFindings {
    pub(crate) reviews_href: String,
    pub(crate) findings_href: String,
    /// The checks of the pull request on GitHub.
    pub(crate) checks_href: Option<String>,
    pub(crate) last: Option<LatestReviewView>,
    pub(crate) open: Vec<PullFindingView>,
    /// Fixed and hidden findings.
    pub(crate) settled: Vec<PullFindingView>,
    pub(crate) left_out: usize,
}

pub(crate) struct LatestReviewView {
    pub(crate) href: String,
    pub(crate) commit: String,
    pub(crate) at: TimeLabel,
    pub(crate) counts: String,
    pub(crate) check: Option<Badge>,
}

pub(crate) struct PullFindingView {
    pub(crate) href: String,
    pub(crate) title: String,
    pub(crate) place: String,
    pub(crate) severity: Badge,
    pub(crate) hidden: Option<String>,
    pub(crate) pushes: Vec<PushView>,
    pub(crate) excerpt: Option<ExcerptView>,
}

/// The status of a finding in the review of one push.
pub(crate) struct PushView {
    pub(crate) href: String,
    pub(crate) commit: String,
    pub(crate) status: Badge,
}

pub(crate) async fn pull_findings(at: &RepoVisit, pull: ItemNumber) -> Result<PullFindings, PageError> {
    let (store, repo, base) = (&at.console.store, at.repo.id, repo_path(&at.repo));
    let (subject, number) = (ReviewSubject::Pull(pull), pull.to_string());
    let reviews = store.review().list_before(repo, Some(&subject), None, PUSHES).await?;
    let filter = FindingFilter { subject: Some(&subject), ..FindingFilter::default() };
    let mut findings = match reviews.is_empty() {
        true => Vec::new(),
        false => store.findings().pages(repo, filter, None, FINDINGS_READ).await?,
    };
    findings.sort_by_key(|entry| {
        let found = &entry.found;
        (!is_open(entry), found.fixed, Reverse(found.finding.severity), Reverse(found.id))
    });
    let left_out = findings.len().saturating_sub(FINDINGS_SHOWN);
    findings.truncate(FINDINGS_SHOWN);
    let ids: Vec<FindingId> = findings.iter().map(|entry| entry.found.id).collect();
    let mut sightings: BTreeMap<FindingId, Vec<StoredSighting>> = BTreeMap::new();
    if let Some(oldest) = reviews.last() {
        for sighting in store.findings().histories_since(&ids, oldest.id).await? {
            sightings.entry(sighting.id).or_default().push(sighting);
        }
    }
    let commits: BTreeMap<ReviewId, &str> = reviews.iter().map(|review| (review.id, review.head.short())).collect();
    let view = |entry: &FindingEntry| {
        let seen = sightings.get(&entry.found.id).map(Vec::as_slice).unwrap_or_default();
        finding_view(entry, seen, &commits, &base)
    };
    let (open, settled): (Vec<&FindingEntry>, Vec<&FindingEntry>) = findings.iter().partition(|entry| is_open(entry));
    let last = match reviews.first() {
        Some(review) => Some(latest_review(at, pull, review, &base).await?),
        None => None,
    };
    Ok(PullFindings {
        reviews_href: link(&format!("{base}/reviews"), &[("pull", &number)]),
        findings_href: link(&format!("{base}/findings"), &[("pull", &number)]),
        checks_href: checks_address(at, &number),
        last,
        open: open.into_iter().map(view).collect(),
        settled: settled.into_iter().map(view).collect(),
        left_out,
    })
}

fn is_open(entry: &FindingEntry) -> bool {
    !entry.found.fixed && entry.found.shown != ShownAs::Suppressed
}

async fn latest_review(
    at: &RepoVisit,
    pull: ItemNumber,
    review: &StoredReview,
    base: &str,
) -> Result<LatestReviewView, PageError> {
    let check = written_check(&at.console.store, &at.repo, pull, review.id).await?;
    let mut counts = vec![counted(review.shown, "open finding")];
    counts.extend((review.suppressed > 0).then(|| format!("{} hidden", review.suppressed)));
    counts.extend((review.fixed > 0).then(|| format!("{} fixed by the last push", review.fixed)));
    Ok(LatestReviewView {
        href: format!("{base}/reviews/{}", review.id),
        commit: review.head.short().to_owned(),
        at: when(review.completed_at, at.console.now()),
        counts: counts.join(", "),
        check: check.map(|check| check_badge(check.state)),
    })
}

fn finding_view(
    entry: &FindingEntry,
    sightings: &[StoredSighting],
    commits: &BTreeMap<ReviewId, &str>,
    base: &str,
) -> PullFindingView {
    let found = &entry.found;
    let push = |one: &StoredSighting| PushView {
        href: format!("{base}/reviews/{}", one.review),
        commit: commits
            .get(&one.review)
            .map_or_else(|| format!("review {}", one.review), |commit| (*commit).to_owned()),
        status: status_badge(one.status),
    };
    let code = sightings.iter().rev().find_map(|one| Some((&one.finding.path, one.excerpt.as_ref()?)));
    PullFindingView {
        href: format!("{base}/findings/{}", found.id),
        title: found.finding.title.clone(),
        place: place(&found.finding),
        severity: severity_badge(found.finding.severity),
        hidden: entry
            .hidden_by
            .as_ref()
            .filter(|_| found.shown == ShownAs::Suppressed && !found.fixed)
            .map(hidden_by_in_words),
        pushes: sightings.iter().map(push).collect(),
        excerpt: code.map(|(path, excerpt)| ExcerptView::new(path, excerpt)),
    }
}

fn checks_address(at: &RepoVisit, number: &str) -> Option<String> {
    let mut address = web(&at.console)?;
    let (owner, name) = (at.repo.name.owner(), at.repo.name.name());
    address.path_segments_mut().ok()?.pop_if_empty().extend([owner, name, "pull", number, "checks"]);
    Some(address.into())
}
