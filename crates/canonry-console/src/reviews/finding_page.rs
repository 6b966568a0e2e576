//! A finding across pushes: its code and status at each, people's answers, and why it is or is not repeated.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::{Path, Query};
use canonry_domain::RepoName;
use canonry_domain::review::{
    CommitSha, ConfidenceParts, DismissalKind, Finding, FindingStatus, ShownAs, history_in_words,
};
use canonry_review::FindingLife;
use canonry_store::{
    FindingId, PostedFinding, PostedThreadState, ReviewId, StoredDismissal, StoredReaction, StoredRemark, StoredReview,
    StoredSighting,
};
use jiff::Timestamp;
use url::Url;

use crate::admin::repo_settings::settings_of;
use crate::charts::Svg;
use crate::charts::lifeline::{LifePoint, MOST, lifeline};
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{PathFields, QueryFields};
use crate::layout::formatting::{
    Badge, TimeLabel, hidden_by_in_words, is_plain, severity_badge, shown_in_words, status_badge, subject_in_words,
    when,
};
use crate::layout::markdown::markdown;
use crate::layout::marked_text::MarkedText;
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, link, number, number_in};
use crate::reviews::code_excerpt::ExcerptView;
use crate::reviews::finding_verdict::{FindingVerdict, FindingVerdictFacts, note, said_in, verdict};
use crate::reviews::list::subject_value;
use crate::reviews::review_page::{place, subject_option, web};
use crate::sign_in::visit::ReaderOf;

/// Reviews of a subject that are read to find those without the finding.
const REVIEWS_READ: u32 = 200;

#[derive(Template)]
#[template(path = "reviews/finding_page.html")]
struct FindingPage {
    page: PageFrame,
    base: String,
    finding: Finding,
    message: MarkedText,
    place: String,
    severity: Badge,
    status: Badge,
    subject: String,
    subject_href: String,
    pattern_href: String,
    verdict: FindingVerdict,
    chart: Svg,
    left_out: usize,
    has_gaps: bool,
    rows: Vec<SightingLine>,
    codes: Vec<PushCode>,
    pager: Pager,
    confidence: String,
    parts: Vec<ConfidencePartRow>,
    history: Option<String>,
    comments: Vec<PostedCommentLine>,
    remarks: Vec<RemarkLine>,
    dismissals: Vec<DismissalLine>,
    reactions: Vec<ReactionLine>,
    first_seen: TimeLabel,
    last_seen: TimeLabel,
}

struct SightingLine {
    review: ReviewId,
    href: String,
    at: TimeLabel,
    commit: String,
    blob: Option<String>,
    place: String,
    status: Badge,
    shown: String,
    confidence: String,
    notes: String,
}

/// The flagged code at one push.
struct PushCode {
    href: String,
    name: String,
    status: Badge,
    at: TimeLabel,
    excerpt: Option<ExcerptView>,
    /// Why there is no code, or none for this push.
    without: &'static str,
}

struct ConfidencePartRow {
    points: String,
    why: String,
}

struct PostedCommentLine {
    href: Option<String>,
    review: ReviewId,
    at: TimeLabel,
    became: &'static str,
}

/// Who else named the problem.
struct RemarkLine {
    by: String,
    href: Option<String>,
    at: Option<TimeLabel>,
}

struct DismissalLine {
    by: String,
    role: &'static str,
    what: &'static str,
    at: TimeLabel,
    state: Badge,
}

struct ReactionLine {
    by: String,
    up: bool,
    at: TimeLabel,
    state: &'static str,
}

pub(crate) async fn show(ReaderOf(at): ReaderOf, Path(path): PathFields, Query(query): QueryFields) -> PageResult {
    let (store, now) = (&at.console.store, at.console.now());
    let id = FindingId::new(number_in(&path, "id")?);
    let found = store.findings().get(at.repo.id, id).await?.ok_or(PageError::NotFound)?;
    let key = found.finding.key().clone();
    let pattern = store.findings().pattern(at.repo.id, &key).await?;
    let web = web(&at.console);
    let page = web.as_ref().map(|web| format!("{}/{}", web.as_str().trim_end_matches('/'), at.repo.name));
    let life = FindingLife::read(store, at.repo.id, page.as_deref(), found, pattern.as_slice()).await?;
    let posted = store.findings().posted_of_finding(at.repo.id, id).await?;
    let reactions = store.findings().reactions(at.repo.id, id).await?;
    let cleared_at = store.findings().cleared_at(at.repo.id, &key).await?;
    let history = store.findings().pattern_history(at.repo.id, &[key.clone()].into()).await?;
    let subject = &life.found().subject;
    let reviews = store.review().list_before(at.repo.id, Some(subject), None, REVIEWS_READ).await?;
    let settings = settings_of(&at.console, at.repo.id).await?.config;

    let found = life.found();
    let facts = FindingVerdictFacts {
        found,
        sightings: life.sightings(),
        dismissals: life.dismissals(),
        pattern: life.pattern(),
        posted: &posted,
        min_confidence: settings.review.min_confidence,
    };
    let verdict = verdict(&facts);
    let points = points(&reviews, life.sightings(), &posted);
    let heads: BTreeMap<ReviewId, &CommitSha> = reviews.iter().map(|review| (review.id, &review.head)).collect();
    let base = repo_path(&at.repo);
    let row = |sighting: &StoredSighting| row(sighting, &posted, &heads, web.as_ref(), &at.repo.name, &base, now);
    let title = format!("Finding {id}");
    let page = at.page(&title, NavSection::Findings).cli(format!(
        "canonry why {} --repo {}{}",
        typed(&found.finding),
        at.repo.name,
        subject_option(subject)
    ));
    let before = number(&query, "before").map(ReviewId::new);
    let earlier = life.sightings().iter().rev().filter(|one| before.is_none_or(|before| one.review < before));
    let mut shown: Vec<&StoredSighting> = earlier.take(PAGE as usize + 1).collect();
    let next = cut_page(&mut shown, PAGE, |last| ("before", last.review.to_string()));
    let pager = Pager::new("Pages of reviews", &format!("{base}/findings/{id}"), &[], before.is_none(), next);
    html(&FindingPage {
        page,
        place: place(&found.finding),
        severity: severity_badge(found.finding.severity),
        status: status_badge(found.status),
        subject: subject_in_words(subject),
        subject_href: link(&format!("{base}/reviews"), &[("pull", &subject_value(Some(subject)))]),
        pattern_href: link(&format!("{base}/findings"), &[("pattern", found.finding.fingerprint.as_str())]),
        verdict,
        has_gaps: points.iter().any(|point| point.status.is_none()),
        left_out: points.len().saturating_sub(MOST),
        chart: lifeline(&points),
        codes: codes(&shown, &heads, &base, now),
        rows: shown.into_iter().map(row).collect(),
        pager: pager.in_section("pushes"),
        confidence: life.sightings().last().map(|last| last.confidence.to_string()).unwrap_or_default(),
        parts: parts(&life),
        history: history.get(&key).and_then(|history| history_in_words(history.fixed, history.total)),
        comments: posted.iter().map(|one| comment(one, web.as_ref(), now)).collect(),
        remarks: life.remarks().iter().map(|one| remark(one, now)).collect(),
        dismissals: life.dismissals().iter().map(|one| no(one, &found.finding, now)).collect(),
        reactions: reactions.iter().map(|one| reaction(one, cleared_at, now)).collect(),
        first_seen: when(found.first_seen, now),
        last_seen: when(found.last_seen, now),
        message: markdown(&found.finding.message),
        finding: found.finding.clone(),
        base,
    })
}

/// The place for a command that a reader may copy into a shell; a path with special characters becomes a placeholder.
fn typed(finding: &Finding) -> String {
    if is_plain(finding.path.as_str()) { place(finding) } else { "PATH:LINE".to_owned() }
}

/// One point for each review of the subject since the finding was first reported, the oldest first.
fn points(reviews: &[StoredReview], sightings: &[StoredSighting], posted: &[PostedFinding]) -> Vec<LifePoint> {
    let Some(first) = sightings.first().map(|one| one.review) else { return Vec::new() };
    let mut known: BTreeMap<ReviewId, (Option<&StoredReview>, Option<&StoredSighting>)> = BTreeMap::new();
    for review in reviews.iter().filter(|review| review.id >= first) {
        known.entry(review.id).or_default().0 = Some(review);
    }
    for sighting in sightings {
        known.entry(sighting.review).or_default().1 = Some(sighting);
    }
    let mut is_gone = false;
    let point = |(id, (review, sighting)): (ReviewId, (Option<&StoredReview>, Option<&StoredSighting>))| {
        let at = sighting.map(|one| one.at).or_else(|| review.map(|one| one.completed_at)).unwrap_or_default();
        let is_said = said_in(posted, id);
        let note = match sighting {
            Some(one) => note(one, is_said),
            None if is_gone => "still fixed",
            None => "not reviewed",
        };
        is_gone = sighting.map_or(is_gone, |one| one.status == FindingStatus::Fixed);
        LifePoint {
            status: sighting.map(|one| one.status),
            is_hidden: sighting.is_some_and(|one| one.shown == ShownAs::Suppressed && !is_gone),
            is_said,
            note,
            commit: review.map_or_else(|| format!("review {id}"), |review| review.head.short().to_owned()),
            day: at.strftime("%-d %b").to_string(),
        }
    };
    known.into_iter().map(point).collect()
}

fn row(
    sighting: &StoredSighting,
    posted: &[PostedFinding],
    heads: &BTreeMap<ReviewId, &CommitSha>,
    web: Option<&Url>,
    repo: &RepoName,
    base: &str,
    now: Timestamp,
) -> SightingLine {
    let hides = sighting.hidden_by.as_ref().filter(|_| sighting.shown == ShownAs::Suppressed);
    let is_fixed = sighting.status == FindingStatus::Fixed;
    let shown = match hides {
        _ if is_fixed => "fixed".to_owned(),
        Some(by) => format!("hidden: {}", hidden_by_in_words(by)),
        None => shown_in_words(sighting.shown).to_owned(),
    };
    let said = note(sighting, said_in(posted, sighting.review));
    let mut notes: Vec<&str> = matches!(said, "commented" | "not repeated").then_some(said).into_iter().collect();
    notes.extend((!sighting.grounded).then_some("outside the diff"));
    notes.extend((!sighting.reported && !is_fixed).then_some("not reported this time; its code is unchanged"));
    let head = heads.get(&sighting.review).copied();
    SightingLine {
        review: sighting.review,
        href: format!("{base}/reviews/{}", sighting.review),
        at: when(sighting.at, now),
        commit: head.map(|head| head.short().to_owned()).unwrap_or_default(),
        blob: head
            .filter(|_| !is_fixed)
            .zip(web)
            .and_then(|(head, web)| blob_address(web, repo, head, &sighting.finding)),
        place: place(&sighting.finding),
        status: status_badge(sighting.status),
        shown,
        confidence: sighting.confidence.to_string(),
        notes: notes.join("; "),
    }
}

/// The code at each push, the newest first; unchanged code is shown at the first push that has it.
fn codes(
    newest_first: &[&StoredSighting],
    heads: &BTreeMap<ReviewId, &CommitSha>,
    base: &str,
    now: Timestamp,
) -> Vec<PushCode> {
    let code = |(at, sighting): (usize, &&StoredSighting)| {
        let lines = |one: &StoredSighting| one.excerpt.as_ref().map(|excerpt| excerpt.lines.clone());
        let before = newest_first.get(at + 1).and_then(|before| lines(before));
        let is_same = before.is_some() && lines(sighting) == before;
        let without = match (sighting.status, &sighting.excerpt) {
            (FindingStatus::Fixed, _) => "Fixed: the flagged code is gone.",
            (_, Some(_)) if is_same => "Same code as at the push before.",
            (_, Some(_)) => "",
            (_, None) => "No code was stored for this push.",
        };
        let excerpt = sighting.excerpt.as_ref().filter(|_| without.is_empty());
        PushCode {
            href: format!("{base}/reviews/{}", sighting.review),
            name: heads
                .get(&sighting.review)
                .map_or_else(|| format!("review {}", sighting.review), |head| head.short().to_owned()),
            status: status_badge(sighting.status),
            at: when(sighting.at, now),
            excerpt: excerpt.map(|excerpt| ExcerptView::new(&sighting.finding.path, excerpt)),
            without,
        }
    };
    newest_first.iter().enumerate().map(code).collect()
}

/// The flagged line on GitHub, at the reviewed commit.
fn blob_address(web: &Url, repo: &RepoName, head: &CommitSha, finding: &Finding) -> Option<String> {
    let mut address = web.clone();
    address.path_segments_mut().ok()?.pop_if_empty().extend([repo.owner(), repo.name(), "blob", head.as_str()]);
    address.path_segments_mut().ok()?.extend(finding.path.as_str().split('/'));
    address.set_fragment(finding.lines.map(|lines| format!("L{}", lines.first)).as_deref());
    Some(address.into())
}

fn comment(posted: &PostedFinding, web: Option<&Url>, now: Timestamp) -> PostedCommentLine {
    PostedCommentLine {
        href: web.and_then(|web| comment_address(web, posted)),
        review: posted.run,
        at: when(posted.posted_at, now),
        became: match posted.settled {
            None => "open",
            Some(PostedThreadState::Resolved) => "thread resolved",
            Some(PostedThreadState::Edited) => "edited: settled",
            Some(PostedThreadState::Left) => "left open: people wrote in it",
        },
    }
}

fn remark(one: &StoredRemark, now: Timestamp) -> RemarkLine {
    RemarkLine { by: one.author.to_string(), href: one.link.clone(), at: one.said_at.map(|at| when(at, now)) }
}

fn comment_address(web: &Url, posted: &PostedFinding) -> Option<String> {
    let (mut address, name) = (web.clone(), &posted.repo.name);
    let number = posted.number.to_string();
    address.path_segments_mut().ok()?.pop_if_empty().extend([name.owner(), name.name(), "pull", &number]);
    address.set_fragment(Some(&format!("discussion_r{}", posted.comment.0)));
    Some(address.into())
}

fn parts(life: &FindingLife) -> Vec<ConfidencePartRow> {
    let (finding, parts) = (&life.found().finding, life.confidence_parts());
    let mut rows = vec![ConfidencePartRow { points: ConfidenceParts::START.to_string(), why: "base".to_owned() }];
    let signs = [
        (parts.severity, format!("severity: {}", finding.severity)),
        (parts.category, format!("category: {}", finding.category)),
        (parts.confirmed, "confirmed by a second reviewer".to_owned()),
        (parts.feedback, "reactions to its pattern, as of now".to_owned()),
        (life.other_points(), "what has changed since that review, and the limits of the scale".to_owned()),
    ];
    let signs = signs.into_iter().filter(|(points, _)| *points != 0);
    rows.extend(signs.map(|(points, why)| ConfidencePartRow { points: format!("{points:+}"), why }));
    rows
}

fn no(one: &StoredDismissal, finding: &Finding, now: Timestamp) -> DismissalLine {
    DismissalLine {
        by: one.login.to_string(),
        role: one.dismissal.by.as_str(),
        what: match one.dismissal.kind {
            DismissalKind::WontFix => "won’t fix it",
            DismissalKind::Resolved => "resolved its thread",
            DismissalKind::NotUseful => "called it not useful",
        },
        at: when(one.dismissal.at, now),
        state: match one.withdrawn_at {
            Some(_) => Badge::new("", "withdrawn"),
            None if one.dismissal.holds(finding) => Badge::new("info", "in force"),
            None => Badge::new("", "not in force: the code changed"),
        },
    }
}

fn reaction(one: &StoredReaction, cleared_at: Option<Timestamp>, now: Timestamp) -> ReactionLine {
    ReactionLine {
        by: one.by.to_string(),
        up: one.up,
        at: when(one.at, now),
        state: if one.removed_at.is_some() {
            "removed"
        } else if cleared_at.is_some_and(|cleared| one.at <= cleared) {
            "cleared"
        } else if one.teaches {
            "counts"
        } else {
            "does not count: the author's own"
        },
    }
}
