//! Builds the texts for GitHub from a report; everything by reviewers and people is quoted.

use std::collections::{BTreeMap, BTreeSet};

use canonry_config::Pattern;
use canonry_domain::review::{
    CommitSha, DismissalKind, Dismisser, EarlierFinding, Finding, FindingComment, FindingStatus, ListedFinding,
    PostedSummary, Severity, ShownAs, check_output, finding_comment, hidden_in_words, is_protected, review_body,
    status_comment,
};
use canonry_store::{FindingId, PostedFinding, RepoId, Store, StoreError};

use super::quoted::{self, code, line, place, prose};
use super::referee_text::{pointer, referee_section};
use super::said_findings::SaidFindings;
use crate::output::{counts, gaps, model_in_words, notes, reviewers_in_words, skipped_files};
use crate::run::report::{ReportedFinding, ReviewReport};

/// The limit in characters of a title in a list and above an inline comment.
const TITLE: usize = 200;
/// The limits in characters of a message in an inline comment, and in a list.
const MESSAGE: usize = 3_000;
const SHORT_MESSAGE: usize = 400;
/// The limit in characters of a problem, a note, or the names of all reviewers.
const NOTE: usize = 400;
/// The rules that an inline comment lists.
const RULES: usize = 3;

/// The text of an inline comment. `covers_lines` says whether the comment is placed at exactly the finding's lines: only
/// there its replacement can be applied.
pub(super) fn comment_of(
    one: &ReportedFinding,
    posted: &[PostedFinding],
    covers_lines: bool,
    handle: Option<&str>,
) -> String {
    let finding = &one.sighting.finding;
    let said_of_other_code = posted.iter().any(|row| Some(row.finding) == one.id && row.said.code != finding.code);
    let message = prose(&finding.message, MESSAGE);
    let (first, more) = message.split_once("\n\n").unwrap_or((&message, ""));
    finding_comment(&FindingComment {
        title: &line(&finding.title, TITLE),
        message: first,
        more,
        severity: finding.severity,
        rules: &rules(finding),
        status: one.sighting.status,
        said_of_other_code,
        fix: suggested(finding, covers_lines).as_deref(),
        suppression: suppression(finding).as_deref(),
        handle,
    })
}

/// The entry for `review.suppressions` that hides the finding; `None` if its title cannot be shown as it is in one line,
/// or is a pattern that matches something else.
fn suppression(finding: &Finding) -> Option<String> {
    let title = finding.title.trim();
    let hides = Pattern::new(title).is_ok_and(|pattern| pattern.matcher().is_match(&finding.title));
    let entry = serde_json::to_string(title).ok()?;
    let shown = format!("`{entry}`");
    (hides && quoted::is_plain_code(&entry) && code(&entry) == shown).then_some(shown)
}

/// The proposed fix: its words, and the code that can be applied. Code that cannot be applied is shown if there are no
/// words.
fn suggested(finding: &Finding, covers_lines: bool) -> Option<String> {
    let words = finding.fix.as_deref().and_then(quoted::fix);
    let replacement = finding.replacement.as_deref();
    match replacement.filter(|_| covers_lines).and_then(quoted::suggestion) {
        Some(code) => Some(words.into_iter().chain([code]).collect::<Vec<String>>().join("\n\n")),
        None => words.or_else(|| replacement.and_then(quoted::fix)),
    }
}

/// Whether the summary of a review lists a finding: it is new, or it has no inline comment.
pub(super) fn is_listed(one: &ReportedFinding, said: &SaidFindings, placed: &BTreeSet<FindingId>) -> bool {
    is_off_lines(one, said, placed) || (one.shown == ShownAs::Inline && !said.is_said_before(one))
}

/// The quoted texts of the review, the status comment and the check run.
pub(super) struct SummaryParts {
    listed: Vec<ListedFinding>,
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
    others: Option<String>,
}

impl SummaryParts {
    /// Collects the texts. `placed` are the findings that get inline comments with this review; `unposted` is the
    /// reason why the review could not be posted.
    pub(super) async fn read(
        store: &Store,
        repo: RepoId,
        report: &ReviewReport,
        said: &SaidFindings,
        placed: &BTreeSet<FindingId>,
        unposted: Option<&str>,
    ) -> Result<Self, StoreError> {
        // Loaded before the iterators below exist: an iterator that lives across an await keeps the future from moving
        // to another thread.
        let since = store.review().first_heads(repo, &report.subject).await?;
        let earlier = earlier_findings(store, report, said, placed, &since).await?;
        let resolved = resolved_by_authors(store, report, said, placed).await?;
        let listed = |one: &ReportedFinding| {
            let is_off_lines = is_off_lines(one, said, placed);
            let listed = listed(one, is_off_lines, &since);
            let thread = report.referee.as_ref().filter(|_| is_off_lines).and_then(|referee| referee.thread_of(one));
            match thread.and_then(pointer) {
                Some(message) => ListedFinding { message, ..listed },
                None => listed,
            }
        };
        let is_unlisted = |one: &&ReportedFinding| !is_listed(one, said, placed);
        let shown_as = |shown| report.standing().filter(is_unlisted).filter(move |one| one.shown == shown);
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
            listed: report.standing().filter(|one| is_listed(one, said, placed)).map(&listed).collect(),
            unposted: unposted.map(|why| line(why.trim_end_matches('.'), NOTE)),
            resolved: resolved.into_iter().map(&listed).collect(),
            earlier,
            further: shown_as(ShownAs::Details).map(&listed).collect(),
            low_confidence: shown_as(ShownAs::LowConfidence).map(&listed).collect(),
            suppressed,
            skipped: skipped
                .map(|(path, why)| format!("{}: {}", place(path, None), line(&reasons(why), NOTE)))
                .collect(),
            problems: problems.map(|problem| line(&problem, NOTE)).collect(),
            notes: notes(report).map(|note| line(&note, NOTE)).collect(),
            hidden: hidden_in_words(&counts(report)).map(|hidden| line(&hidden, NOTE)),
            reviewers: line(&reviewers_in_words(&report.reviewers), NOTE),
            model: report.model.as_ref().map(|model| line(&model_in_words(model), NOTE)),
            others: report.referee.as_ref().and_then(referee_section),
        })
    }

    pub(super) fn body(&self, report: &ReviewReport, handle: Option<&str>) -> String {
        self.with_summary(report, handle, review_body)
    }

    /// The status comment. It does not repeat what a posted review contains.
    pub(super) fn status(&self, report: &ReviewReport, handle: Option<&str>, is_posted: bool) -> String {
        self.with_summary(report, handle, |summary| match is_posted {
            true => status_comment(&PostedSummary { listed: &[], further: &[], ..summary.clone() }),
            false => status_comment(summary),
        })
    }

    pub(super) fn check_output(&self, report: &ReviewReport, handle: Option<&str>) -> (String, String) {
        self.with_summary(report, handle, check_output)
    }

    fn with_summary<T>(
        &self,
        report: &ReviewReport,
        handle: Option<&str>,
        tell: impl Fn(&PostedSummary<'_>) -> T,
    ) -> T {
        let coverage = &report.coverage;
        tell(&PostedSummary {
            head: &report.head,
            reason: &report.reason,
            counts: &counts(report),
            suppressed: &self.suppressed,
            gaps: &gaps(report),
            listed: &self.listed,
            unposted: self.unposted.as_deref(),
            resolved: &self.resolved,
            earlier: &self.earlier,
            further: &self.further,
            low_confidence: &self.low_confidence,
            read: (coverage.files_changed, coverage.files_read, coverage.lines_read),
            unlisted: coverage.files_unlisted,
            skipped: &self.skipped,
            hidden: self.hidden.as_deref(),
            hidden_patterns: report.hidden_patterns,
            reviewers: &self.reviewers,
            model: self.model.as_deref(),
            problems: &self.problems,
            notes: &self.notes,
            others: self.others.as_deref(),
            handle,
        })
    }
}

/// Whether a finding belongs at a line and has no inline comment, or is a credential that was removed from the code and
/// still has to be revoked.
fn is_off_lines(one: &ReportedFinding, said: &SaidFindings, placed: &BTreeSet<FindingId>) -> bool {
    let is_placed = said.stands_at_its_line(one) || one.id.is_some_and(|id| placed.contains(&id));
    (one.shown == ShownAs::Inline && !is_placed) || one.sighting.finding.is_removed_credential()
}

/// The heads of the reviews that first reported the findings.
type FirstHeads = BTreeMap<FindingId, CommitSha>;

fn listed(one: &ReportedFinding, is_off_lines: bool, since: &FirstHeads) -> ListedFinding {
    let finding = &one.sighting.finding;
    let status = one.sighting.status;
    let is_outside = !one.grounded && finding.lines.is_some();
    ListedFinding {
        severity: finding.severity,
        place: place(&finding.path, finding.lines),
        title: line(&finding.title, TITLE),
        message: if is_off_lines { line(&finding.message, SHORT_MESSAGE) } else { String::new() },
        note: match status {
            FindingStatus::Reopened => Some("back again"),
            FindingStatus::Same | FindingStatus::Moved if !one.sighting.code_unchanged => Some("code changed"),
            _ if is_outside => Some("outside the diff"),
            _ => None,
        },
        since: one
            .id
            .filter(|_| status != FindingStatus::New)
            .and_then(|id| since.get(&id))
            .map(|head| head.short().to_owned()),
    }
}

/// The protected findings in threads that the pull request's author resolved: the dismissal does not apply, but the
/// thread is collapsed.
async fn resolved_by_authors<'r>(
    store: &Store,
    report: &'r ReviewReport,
    said: &SaidFindings,
    placed: &BTreeSet<FindingId>,
) -> Result<Vec<&'r ReportedFinding>, StoreError> {
    let mut resolved = Vec::new();
    for one in &report.findings {
        let finding = &one.sighting.finding;
        let stands = !one.is_fixed() && one.shown == ShownAs::Inline && !is_listed(one, said, placed);
        let Some(id) = one.id.filter(|_| stands && is_protected(finding.severity, finding.category)) else { continue };
        let dismissals = store.findings().dismissals_of(id).await?;
        let is_resolved = dismissals.iter().filter(|said| said.withdrawn_at.is_none()).any(|said| {
            let no = &said.dismissal;
            no.kind == DismissalKind::Resolved && no.by == Dismisser::Author && no.code == finding.code
        });
        if is_resolved {
            resolved.push(one);
        }
    }
    Ok(resolved)
}

/// The earlier findings that no other list contains, with their outcome: the good news first. Findings that feedback or
/// settings hide are counted and not listed.
async fn earlier_findings(
    store: &Store,
    report: &ReviewReport,
    said: &SaidFindings,
    placed: &BTreeSet<FindingId>,
    since: &FirstHeads,
) -> Result<Vec<EarlierFinding>, StoreError> {
    let is_named = |one: &&ReportedFinding| match one.sighting.status {
        FindingStatus::New => false,
        FindingStatus::Fixed => one.shown != ShownAs::Suppressed,
        FindingStatus::Dismissed => true,
        FindingStatus::Same | FindingStatus::Moved | FindingStatus::Reopened => {
            one.shown == ShownAs::Inline && !is_listed(one, said, placed)
        }
    };
    let mut earlier: Vec<&ReportedFinding> = report.findings.iter().filter(is_named).collect();
    earlier.sort_by_key(|one| match one.sighting.status {
        FindingStatus::Fixed => 0,
        FindingStatus::Dismissed => 2,
        _ => 1,
    });
    let mut told = Vec::with_capacity(earlier.len());
    for one in earlier {
        let finding = &one.sighting.finding;
        let mut dismissed = None;
        if let (FindingStatus::Dismissed, Some(id)) = (one.sighting.status, one.id) {
            let dismissals = store.findings().dismissals_of(id).await?;
            let last = dismissals.into_iter().rev().find(|said| said.withdrawn_at.is_none());
            dismissed = last.map(|said| (code(said.login.as_str()), said.dismissal.kind));
        }
        told.push(EarlierFinding {
            status: one.sighting.status,
            place: place(&finding.path, finding.lines),
            moved_from: one.moved_from.as_ref().map(|(path, lines)| place(path, *lines)),
            title: line(&finding.title, TITLE),
            since: one.id.and_then(|id| since.get(&id)).map(|head| head.short().to_owned()),
            dismissed,
        });
    }
    Ok(told)
}

/// The rules that report a finding, as `tool/rule`.
fn rules(finding: &Finding) -> String {
    let name = |rule: &Option<String>, reviewer: &str| match rule {
        Some(rule) => code(&format!("{reviewer}/{rule}")),
        None => code(reviewer),
    };
    let names = finding.witnesses.iter().take(RULES).map(|one| name(&one.rule, one.reviewer.as_str()));
    names.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::Severity;

    use super::suppression;
    use crate::findings::configured_filters::tests::finding;

    #[test]
    fn an_entry_is_offered_if_it_hides_the_finding() {
        for (title, expected) in [
            ("Unused import of `x`", None),
            ("Unused \"import\"", Some("`\"Unused \\\"import\\\"\"`")),
            (" Unused import ", Some("`\"Unused import\"`")),
            ("Unused  import", None),
            ("regex: a(b is not closed", None),
            ("regex:x+ is greedy", None),
            ("glob: [ab] is a class", None),
            ("glob pattern matches nothing", Some("`\"glob pattern matches nothing\"`")),
            ("a\u{a0}b", None),
        ] {
            let entry = suppression(&finding("a.rs", title, Severity::Minor));
            assert_eq!(entry.as_deref(), expected, "{title}");
        }
        assert_eq!(suppression(&finding("a.rs", &"x ".repeat(150), Severity::Minor)), None);
    }
}
