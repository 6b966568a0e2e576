//! One review: its scope, its reviewers and its findings.

use askama::Template;
use axum::extract::{Path, Query};
use canonry_domain::review::{
    CheckConclusion, CommitSha, Finding, FindingStatus, HiddenBy, ReviewSubject, ShownAs, coverage_in_words,
};
use canonry_domain::{ItemNumber, RepoName, is_loopback_host};
use canonry_github::api::CheckState;
use canonry_github::web_address;
use canonry_review::output::model_in_words;
use canonry_review::{ReviewerRun, SkippedFile, StoredDetails, WrittenCheck, written_check};
use canonry_store::{FindingId, ReviewId, SightingCount, StoredReview, StoredSighting};
use url::Url;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{PathFields, QueryFields};
use crate::layout::formatting::{
    Badge, TimeLabel, capital, check_badge, counted, hidden_by_in_words, is_plain, severity_badge, shown_in_words,
    status_badge, subject_in_words, when,
};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut, link, number, number_in};
use crate::reviews::list::{dollars, subject_value};
use crate::sign_in::visit::ReaderOf;

#[derive(Template)]
#[template(path = "reviews/review_page.html")]
struct ReviewPage {
    page: PageFrame,
    base: String,
    review: StoredReview,
    subject: String,
    subject_href: String,
    github: Option<String>,
    at: TimeLabel,
    scope: String,
    coverage: String,
    check: Option<ReviewCheckLine>,
    reviewers: Vec<ReviewerRun>,
    model: String,
    hidden_patterns: usize,
    /// One page of the files that were not read: a change of a generated folder has thousands.
    skipped: Vec<SkippedFile>,
    skipped_pager: Pager,
    groups: Vec<FindingGroup>,
    is_first: bool,
    pager: Pager,
}

struct ReviewCheckLine {
    badge: Badge,
    words: String,
}

struct FindingGroup {
    title: String,
    /// The number in the review; the page may list only some of them.
    count: u64,
    findings: Vec<ReviewedFindingLine>,
}

struct ReviewedFindingLine {
    href: String,
    title: String,
    place: String,
    severity: Badge,
    category: &'static str,
    status: Badge,
    confidence: String,
    note: String,
}

pub(crate) async fn show(ReaderOf(at): ReaderOf, Path(path): PathFields, Query(query): QueryFields) -> PageResult {
    let id = ReviewId::new(number_in(&path, "id")?);
    let review = at.console.store.review().get_of_repo(at.repo.id, id).await?.ok_or(PageError::NotFound)?;
    let (after, files) = (number(&query, "after"), number(&query, "files"));
    let mut sightings = at.console.store.review().sightings_page(id, after.map(FindingId::new), PAGE + 1).await?;
    let has_more = cut(&mut sightings, PAGE);
    let counts = at.console.store.review().sighting_counts(id).await?;
    let details = StoredDetails::of(&review, &counts);
    let written = match review.subject.pull() {
        Some(pull) => written_check(&at.console.store, &at.repo, pull, id).await?,
        None => None,
    };
    let base = repo_path(&at.repo);
    let title = format!("Review {id} of {}", subject_in_words(&review.subject));
    let command = format!("canonry why PATH --repo {}{}", at.repo.name, subject_option(&review.subject));
    let page = at.page(&title, NavSection::Reviews).cli(command);
    let web = web(&at.console);
    let check = check(written.as_ref(), details.as_ref(), review.subject.pull());
    let (coverage, reviewers, hidden_patterns, mut skipped, model) = match details.as_ref() {
        Some(details) => {
            let skipped = &details.coverage.skipped;
            let read = &details.coverage;
            (
                coverage_in_words(
                    read.files_changed,
                    read.files_read,
                    read.lines_read,
                    read.files_unlisted,
                    skipped.len(),
                ),
                details.reviewers.clone(),
                details.hidden_patterns,
                skipped.clone(),
                details.model.as_ref().map(model_in_words),
            )
        }
        None => (counted(review.files_read, "file") + " read.", Vec::new(), 0, Vec::new(), None),
    };
    skipped.sort_by(|one, other| (!one.gap, &one.path).cmp(&(!other.gap, &other.path)));
    // A stored review never changes, so a position in the list stays valid.
    let begin = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(0).min(skipped.len());
    let mut skipped = skipped.split_off(begin);
    let files_follow = cut(&mut skipped, PAGE);
    let here = format!("{base}/reviews/{id}");
    let (after_word, files_word) = (words_of(after), words_of(files));
    let next = sightings.last().filter(|_| has_more).map(|last| ("after", last.id.to_string()));
    let pager = Pager::new("Pages of findings", &here, &[("files", &files_word)], after.is_none(), next);
    let next = files_follow.then(|| ("files", (begin + skipped.len()).to_string()));
    let files_pager = Pager::new("Pages of files", &here, &[("after", &after_word)], begin == 0, next);
    html(&ReviewPage {
        page,
        subject: subject_in_words(&review.subject),
        subject_href: link(&format!("{base}/reviews"), &[("pull", &subject_value(Some(&review.subject)))]),
        github: web.and_then(|web| commit_address(web, &at.repo.name, &review.subject, &review.head)),
        at: when(review.completed_at, at.console.now()),
        scope: details.and_then(|details| details.scope).unwrap_or_else(|| review.reason.clone()),
        coverage,
        check,
        reviewers,
        model: model.unwrap_or_else(|| plain_model(&review)),
        hidden_patterns,
        skipped,
        skipped_pager: files_pager.of_section("skipped"),
        groups: groups(&sightings, &counts, &base),
        is_first: after.is_none(),
        pager: pager.in_section("findings"),
        base,
        review,
    })
}

fn words_of(number: Option<i64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// The option that limits a command to the reviewed subject; a name with special characters becomes a placeholder.
pub(crate) fn subject_option(subject: &ReviewSubject) -> String {
    match subject {
        ReviewSubject::Pull(number) => format!(" --pr {number}"),
        ReviewSubject::Branch(name) if is_plain(name) => format!(" --branch {name}"),
        ReviewSubject::Branch(_) => " --branch BRANCH".to_owned(),
    }
}

fn plain_model(review: &StoredReview) -> String {
    review.model.as_ref().map_or_else(String::new, |model| format!("{model} {}", dollars(review.cost_usd)))
}

/// The check on GitHub, or what it would be.
fn check(
    written: Option<&WrittenCheck>,
    details: Option<&StoredDetails>,
    pull: Option<ItemNumber>,
) -> Option<ReviewCheckLine> {
    if let Some(written) = written {
        let words = if written.is_sent { "on GitHub" } else { "queued for GitHub" };
        return Some(ReviewCheckLine { badge: check_badge(written.state), words: words.to_owned() });
    }
    pull?;
    let state = match details?.conclusion? {
        CheckConclusion::Success => CheckState::Success,
        CheckConclusion::Neutral => CheckState::Neutral,
        CheckConclusion::Failure => CheckState::Failure,
        CheckConclusion::ActionRequired => CheckState::ActionRequired,
    };
    let words = "not on GitHub: no check run was written";
    Some(ReviewCheckLine { badge: check_badge(state), words: words.to_owned() })
}

/// GitHub's web address; `None` for an emulated GitHub, which has no pages.
pub(crate) fn web(console: &Console) -> Option<Url> {
    let is_here = is_loopback_host(console.github_api.host_str()?);
    (!is_here).then(|| web_address(&console.github_api))
}

/// The commit on GitHub: in its pull request, or on its own.
fn commit_address(mut address: Url, repo: &RepoName, subject: &ReviewSubject, head: &CommitSha) -> Option<String> {
    let mut parts = address.path_segments_mut().ok()?;
    parts.pop_if_empty().extend([repo.owner(), repo.name()]);
    match subject {
        ReviewSubject::Pull(number) => parts.extend(["pull", &number.to_string(), "commits", head.as_str()]),
        ReviewSubject::Branch(_) => parts.extend(["commit", head.as_str()]),
    };
    drop(parts);
    Some(address.into())
}

/// The findings of a page, in order, grouped by where they were shown or what hid them.
fn groups(sightings: &[StoredSighting], counts: &[SightingCount], base: &str) -> Vec<FindingGroup> {
    let mut groups: Vec<FindingGroup> = Vec::new();
    for one in sightings {
        let title = group_title(one.status, one.shown, one.hidden_by.as_ref());
        let line = line(one, base);
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.findings.push(line),
            None => {
                let is_of_it =
                    |alike: &&SightingCount| group_title(alike.status, alike.shown, alike.hidden_by.as_ref()) == title;
                let count = counts.iter().filter(is_of_it).map(|alike| alike.times).sum();
                groups.push(FindingGroup { title, count, findings: vec![line] });
            }
        }
    }
    groups
}

fn group_title(status: FindingStatus, shown: ShownAs, hidden_by: Option<&HiddenBy>) -> String {
    match (status, shown, hidden_by) {
        (FindingStatus::Fixed, _, _) => "Fixed since the last review".to_owned(),
        (_, ShownAs::Suppressed, Some(by)) => format!("Hidden: {}", hidden_by_in_words(by)),
        (_, ShownAs::Suppressed, None) => "Hidden".to_owned(),
        (_, shown, _) => capital(shown_in_words(shown)),
    }
}

fn line(one: &StoredSighting, base: &str) -> ReviewedFindingLine {
    let mut notes = Vec::new();
    if !one.grounded {
        notes.push("outside the diff");
    }
    if !one.reported && one.status != FindingStatus::Fixed {
        notes.push("not reported this time; its code is unchanged");
    }
    if one.shown == ShownAs::Inline && one.said_inline && one.status != FindingStatus::Fixed {
        notes.push("not repeated: the comment on this code stands");
    }
    ReviewedFindingLine {
        href: format!("{base}/findings/{}", one.id),
        title: one.finding.title.clone(),
        place: place(&one.finding),
        severity: severity_badge(one.finding.severity),
        category: one.finding.category.as_str(),
        status: status_badge(one.status),
        confidence: one.confidence.to_string(),
        note: notes.join("; "),
    }
}

/// `src/main.rs:41`.
pub(crate) fn place(finding: &Finding) -> String {
    finding.lines.map_or_else(|| finding.path.to_string(), |lines| format!("{}:{}", finding.path, lines.first))
}
