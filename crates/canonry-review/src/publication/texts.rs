//! A report in the words that go to GitHub, with everything from reviewers and people quoted.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{
    CommitSha, DismissalKind, Dismisser, EarlierFinding, Finding, FindingComment, FindingStatus, ListedFinding,
    PostedSummary, Severity, ShownAs, check_output, finding_comment, hidden_in_words, history_in_words, is_protected,
    summary_comment,
};
use canonry_store::{FindingId, PostedFinding, RepoId, Store, StoreError};

use super::publish::stands_at_its_line;
use super::quoted::{self, code, line, place, prose};
use crate::output::{counts, gaps, model_in_words, notes, reviewers_in_words, skipped_files};
use crate::run::report::{ReportedFinding, ReviewReport};

/// Characters of a title in a list and above a comment.
const TITLE: usize = 200;
/// Characters of a message in a comment, and in a list.
const MESSAGE: usize = 3_000;
const SHORT_MESSAGE: usize = 400;
/// Characters of a problem, a note, or the names of all reviewers.
const NOTE: usize = 400;

pub(super) fn comment_of(one: &ReportedFinding, posted: &[PostedFinding], handle: &str) -> String {
    let finding = &one.sighting.finding;
    let said_of_other_code = posted.iter().any(|row| Some(row.finding) == one.id && row.said.code != finding.code);
    let history = one.history.and_then(|history| history_in_words(history.fixed, history.total));
    finding_comment(&FindingComment {
        title: &line(&finding.title, TITLE),
        message: &prose(&finding.message, MESSAGE),
        severity: finding.severity,
        category: finding.category,
        confidence: one.confidence,
        history: history.as_deref(),
        reviewers: &witnesses(finding),
        status: one.sighting.status,
        said_of_other_code,
        fix: finding.fix.as_deref().and_then(quoted::fix).as_deref(),
        handle,
    })
}

/// What the summary and the check run tell, quoted.
pub(super) struct SummaryParts {
    on_top: Vec<ListedFinding>,
    unposted: Option<String>,
    resolved: Vec<ListedFinding>,
    earlier: Vec<EarlierFinding>,
    further: Vec<ListedFinding>,
    low_confidence: Vec<ListedFinding>,
    suppressed: BTreeMap<Severity, usize>,
    skipped: Vec<String>,
    problems: Vec<String>,
    notes: Vec<String>,
    hidden: Option<String>,
    reviewers: String,
    model: Option<String>,
}

impl SummaryParts {
    /// Gathers them. A finding that belongs at its line and does not stand there is told on top; `unposted` is why
    /// nothing could be posted.
    pub(super) async fn read(
        store: &Store,
        repo: RepoId,
        report: &ReviewReport,
        posted: &[PostedFinding],
        unposted: Option<&str>,
    ) -> Result<Self, StoreError> {
        // First: an iterator that is held while somebody waits keeps a service from going on elsewhere.
        let since = store.review().first_heads(repo, &report.subject).await?;
        let earlier = earlier_findings(store, report, posted, &since).await?;
        let resolved = resolved_by_authors(store, report, posted).await?;
        let listed = |one: &ReportedFinding| listed(one, &since);
        let shown_as = |shown| report.standing().filter(move |one| one.shown == shown);
        let on_top = report.standing().filter(|one| is_on_top(one, posted));
        let mut suppressed: BTreeMap<Severity, usize> = BTreeMap::new();
        for one in report.hidden() {
            *suppressed.entry(one.sighting.finding.severity).or_default() += 1;
        }
        let reasons = |why: BTreeSet<&str>| why.into_iter().collect::<Vec<&str>>().join("; ");
        let skipped = skipped_files(report).into_iter();
        let problems = report.reviewers.iter();
        let problems =
            problems.flat_map(|one| one.problems.iter().map(move |problem| format!("{}: {problem}", one.name)));
        Ok(Self {
            on_top: on_top.map(&listed).collect(),
            unposted: unposted.map(|why| line(why, NOTE)),
            resolved: resolved.into_iter().map(&listed).collect(),
            earlier,
            further: shown_as(ShownAs::Details).filter(|one| !is_on_top(one, posted)).map(&listed).collect(),
            low_confidence: shown_as(ShownAs::LowConfidence)
                .filter(|one| !is_on_top(one, posted))
                .map(&listed)
                .collect(),
            suppressed,
            skipped: skipped
                .map(|(path, why)| format!("{}: {}", place(path, None), line(&reasons(why), NOTE)))
                .collect(),
            problems: problems.map(|problem| line(&problem, NOTE)).collect(),
            notes: notes(report).map(|note| line(&note, NOTE)).collect(),
            hidden: hidden_in_words(&counts(report)).map(|hidden| line(&hidden, NOTE)),
            reviewers: line(&reviewers_in_words(&report.reviewers), NOTE),
            model: report.model.as_ref().map(|model| line(&model_in_words(model), NOTE)),
        })
    }

    pub(super) fn comment(&self, report: &ReviewReport, handle: &str) -> String {
        self.with_summary(report, handle, summary_comment)
    }

    /// The title and the text of the check run; `untold` is why the conversation does not tell of the review.
    pub(super) fn check_output(&self, report: &ReviewReport, handle: &str, untold: Option<&str>) -> (String, String) {
        let untold = untold.map(|why| line(why, NOTE));
        self.with_summary(report, handle, |summary| check_output(summary, untold.as_deref()))
    }

    fn with_summary<T>(&self, report: &ReviewReport, handle: &str, tell: impl Fn(&PostedSummary<'_>) -> T) -> T {
        let coverage = &report.coverage;
        tell(&PostedSummary {
            head: &report.head,
            reason: &report.reason,
            counts: &counts(report),
            suppressed: &self.suppressed,
            gaps: &gaps(report),
            on_top: &self.on_top,
            unposted: self.unposted.as_deref(),
            resolved: &self.resolved,
            earlier: &self.earlier,
            further: &self.further,
            low_confidence: &self.low_confidence,
            read: (coverage.files_changed, coverage.files_read, coverage.lines_read),
            skipped: &self.skipped,
            hidden: self.hidden.as_deref(),
            hidden_patterns: report.hidden_patterns,
            reviewers: &self.reviewers,
            model: self.model.as_deref(),
            problems: &self.problems,
            notes: &self.notes,
            handle,
        })
    }
}

/// Whether a finding is told on top: it belongs at a line and does not stand there, or it is a credential that the code
/// no longer has, and that is still to be revoked.
fn is_on_top(one: &ReportedFinding, posted: &[PostedFinding]) -> bool {
    let is_unplaced = one.shown == ShownAs::Inline && !stands_at_its_line(one, posted);
    is_unplaced || one.sighting.finding.is_removed_credential()
}

/// The heads of the reviews that first told of findings.
type FirstHeads = BTreeMap<FindingId, CommitSha>;

fn listed(one: &ReportedFinding, since: &FirstHeads) -> ListedFinding {
    let finding = &one.sighting.finding;
    let is_new = one.sighting.status == FindingStatus::New;
    ListedFinding {
        severity: finding.severity,
        confidence: one.confidence,
        place: place(&finding.path, finding.lines),
        title: line(&finding.title, TITLE),
        message: line(&finding.message, SHORT_MESSAGE),
        since: one.id.filter(|_| !is_new).and_then(|id| since.get(&id)).map(|head| head.short().to_owned()),
    }
}

/// The grave findings that stand in threads which their authors resolved: the dismissal does not hold, and the thread is
/// collapsed all the same.
async fn resolved_by_authors<'r>(
    store: &Store,
    report: &'r ReviewReport,
    posted: &[PostedFinding],
) -> Result<Vec<&'r ReportedFinding>, StoreError> {
    let mut resolved = Vec::new();
    for one in &report.findings {
        let finding = &one.sighting.finding;
        let stands = !one.is_fixed() && one.shown == ShownAs::Inline && !is_on_top(one, posted);
        let Some(id) = one.id.filter(|_| stands && is_protected(finding.severity, finding.category)) else { continue };
        let said = store.findings().dismissals_of(id).await?;
        let is_resolved = said.iter().filter(|said| said.withdrawn_at.is_none()).any(|said| {
            let no = &said.dismissal;
            no.kind == DismissalKind::Resolved && no.by == Dismisser::Author && no.code == finding.code
        });
        if is_resolved {
            resolved.push(one);
        }
    }
    Ok(resolved)
}

/// What became of the earlier findings that no other list tells of: the good news first. Those that feedback or settings
/// hide are counted and not named: nobody wants to read of them.
async fn earlier_findings(
    store: &Store,
    report: &ReviewReport,
    posted: &[PostedFinding],
    since: &FirstHeads,
) -> Result<Vec<EarlierFinding>, StoreError> {
    let is_told = |one: &&ReportedFinding| match one.sighting.status {
        FindingStatus::New => false,
        FindingStatus::Fixed | FindingStatus::Dismissed => true,
        FindingStatus::Reopened => one.shown != ShownAs::Suppressed,
        FindingStatus::Same | FindingStatus::Moved => one.shown == ShownAs::Inline && !is_on_top(one, posted),
    };
    let mut earlier: Vec<&ReportedFinding> = report.findings.iter().filter(is_told).collect();
    earlier.sort_by_key(|one| match one.sighting.status {
        FindingStatus::Fixed => 0,
        FindingStatus::Reopened => 1,
        FindingStatus::Moved => 2,
        FindingStatus::Same | FindingStatus::New => 3,
        FindingStatus::Dismissed => 4,
    });
    let mut told = Vec::with_capacity(earlier.len());
    for one in earlier {
        let finding = &one.sighting.finding;
        let mut dismissed = None;
        if let (FindingStatus::Dismissed, Some(id)) = (one.sighting.status, one.id) {
            let said = store.findings().dismissals_of(id).await?;
            let last = said.into_iter().rev().find(|said| said.withdrawn_at.is_none());
            dismissed = last.map(|said| (code(said.login.as_str()), said.dismissal.kind));
        }
        told.push(EarlierFinding {
            status: one.sighting.status,
            code_unchanged: one.sighting.code_unchanged,
            place: place(&finding.path, finding.lines),
            moved_from: one.moved_from.as_ref().map(|(path, lines)| place(path, *lines)),
            title: line(&finding.title, TITLE),
            since: one.id.and_then(|id| since.get(&id)).map(|head| head.short().to_owned()),
            dismissed,
        });
    }
    Ok(told)
}

fn witnesses(finding: &Finding) -> String {
    let name = |rule: &Option<String>, name: &str| match rule {
        Some(rule) => format!("{name} ({rule})"),
        None => name.to_owned(),
    };
    let names: Vec<String> = finding.witnesses.iter().map(|one| name(&one.rule, one.reviewer.as_str())).collect();
    line(&names.join(", "), TITLE)
}
