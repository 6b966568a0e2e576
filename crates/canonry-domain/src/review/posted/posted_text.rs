//! Writes the texts of a review on GitHub: a comment for each finding at its line, the body of the review, and the
//! check run.
//!
//! Titles, messages, places, names and notes are inserted as they are: the caller has removed every mention,
//! reference, link, marker and markup from them.

use std::collections::BTreeMap;

use crate::review::{
    CommitSha, DismissalKind, FindingStatus, ReviewCounts, ReviewGaps, ScopeReason, Severity, coverage_in_words,
    gaps_in_words, review_headline, scope_in_words, since_last_review, suppressed_patterns_in_words,
};

/// The maximum number of entries in one list; `canonry review` and the console show the rest.
const MOST_LISTED: usize = 50;

// GitHub accepts 65,536 characters. These are the maximum characters of each list. Together with the text outside
// lists they stay below 60,000, so that there is room above them for the reason why a later review could not be
// completed.
const ROOM_FOR_LISTED: usize = 18_000;
const ROOM_FOR_RESOLVED: usize = 4_000;
const ROOM_FOR_EARLIER: usize = 12_000;
const ROOM_FOR_FURTHER: usize = 8_000;
const ROOM_FOR_UNSURE: usize = 4_000;
const ROOM_FOR_TROUBLE: usize = 3_000;

/// Replaces the summary comment that an earlier version kept beside its reviews.
pub const RETIRED_SUMMARY: &str =
    "This summary is no longer updated: each Canonry review now carries its own, and the check has the details.";

/// The setting that hides findings where nobody hears commands.
const SUPPRESSIONS: &str = "`review.suppressions` in `.canonry.yml`";

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingComment<'a> {
    pub title: &'a str,
    /// The first paragraph of the details; may be empty.
    pub message: &'a str,
    /// The further paragraphs, which are folded; may be empty.
    pub more: &'a str,
    pub severity: Severity,
    pub rules: &'a str,
    /// What happened to the finding since it was first posted.
    pub status: FindingStatus,
    /// Whether an earlier comment is about a former version of the code.
    pub said_of_other_code: bool,
    /// A proposed fix: words, or code that [`fenced`] has fenced.
    pub fix: Option<&'a str>,
    /// The entry for `review.suppressions` that hides the finding, as code.
    pub suppression: Option<&'a str>,
    /// The name that commands begin with; `None` if no process listens to commands.
    pub handle: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ListedFinding {
    pub severity: Severity,
    pub place: String,
    pub title: String,
    /// The details in one line; empty if a comment at the finding's line contains them.
    pub message: String,
    /// A further fact, such as that the finding is back again.
    pub note: Option<&'static str>,
    /// The first seven digits of the commit in which the finding was first found, if that is an earlier one.
    pub since: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EarlierFinding {
    pub status: FindingStatus,
    /// The current place, or the last known one.
    pub place: String,
    /// The former place, if the finding moved.
    pub moved_from: Option<String>,
    pub title: String,
    /// The first seven digits of the commit in which the finding was first found.
    pub since: Option<String>,
    pub dismissed: Option<(String, DismissalKind)>,
}

/// All data about a review.
#[derive(Debug, Clone, PartialEq)]
pub struct PostedSummary<'a> {
    pub head: &'a CommitSha,
    pub reason: &'a ScopeReason,
    pub counts: &'a ReviewCounts,
    /// The number of hidden findings by severity.
    pub suppressed: &'a BTreeMap<Severity, usize>,
    pub gaps: &'a ReviewGaps,
    /// The findings that this review posts, and those without a line.
    pub listed: &'a [ListedFinding],
    /// Why the review could not be posted; `None` if it was.
    pub unposted: Option<&'a str>,
    /// Findings at their lines whose threads were resolved by a person who may not dismiss them.
    pub resolved: &'a [ListedFinding],
    /// The earlier findings that are in no other list.
    pub earlier: &'a [EarlierFinding],
    /// Findings outside the diff, and those for which there was no room.
    pub further: &'a [ListedFinding],
    pub low_confidence: &'a [ListedFinding],
    /// The number of changed files, of those that were read, and of the changed lines in these.
    pub read: (usize, usize, u64),
    /// The number of files that only a report without a list of its files covers.
    pub unlisted: usize,
    /// The files that were not read, with the reason: `place: why`.
    pub skipped: &'a [String],
    pub hidden: Option<&'a str>,
    /// The number of patterns that are hidden because people keep rejecting them.
    pub hidden_patterns: usize,
    pub reviewers: &'a str,
    pub model: Option<&'a str>,
    pub problems: &'a [String],
    pub notes: &'a [String],
    /// The section about other reviewers, as Markdown.
    pub others: Option<&'a str>,
    /// The name that commands begin with; `None` if no process listens to commands.
    pub handle: Option<&'a str>,
}

/// The conclusion of a review's check run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckConclusion {
    Success,
    /// There are findings, and none of them is critical.
    Neutral,
    Failure,
    /// The review is incomplete, so its result is not an approval.
    ActionRequired,
}

pub fn finding_comment(finding: &FindingComment<'_>) -> String {
    let mut parts = vec![format!("**{}**", finding.title)];
    parts.extend(match finding.status {
        FindingStatus::Reopened => Some("This was fixed before and is back.".to_owned()),
        FindingStatus::Same | FindingStatus::Moved if finding.said_of_other_code => {
            Some("This was posted before; its code has changed since.".to_owned())
        }
        _ => None,
    });
    parts.extend((!finding.message.is_empty()).then(|| finding.message.to_owned()));
    parts.extend((!finding.more.is_empty()).then(|| folded("More", finding.more)));
    parts.extend(finding.fix.map(|fix| format!("Suggested:\n\n{fix}")));
    let mut footer = vec![capitalised(finding.severity.as_str()), finding.rules.to_owned()];
    footer.extend(if_not_useful(finding));
    parts.push(format!("<sub>{}</sub>", footer.join(" · ")));
    parts.join("\n\n")
}

/// How to silence a finding; `None` if nobody hears commands and no setting can hide it.
fn if_not_useful(finding: &FindingComment<'_>) -> Option<String> {
    match finding.handle {
        Some(handle) => Some(format!("Not useful? Reply `/{handle} not useful`.")),
        None if finding.severity == Severity::Critical => None,
        None => {
            let entry = finding.suppression.unwrap_or("a pattern for its title");
            Some(format!("Not useful? Add {entry} to {SUPPRESSIONS}."))
        }
    }
}

/// The comment of a fixed finding, if its thread could not be resolved.
pub fn fixed_comment(comment: &str, fixed_in: &CommitSha) -> String {
    format!("Fixed in `{}`.\n\n{comment}", fixed_in.short())
}

/// The comment of a finding that a newer comment replaces, if its thread could not be resolved.
pub fn repeated_finding_comment(comment: &str, said_at: &CommitSha) -> String {
    format!("The code has changed; a newer comment on `{}` replaces this one.\n\n{comment}", said_at.short())
}

/// The body of a review: the headline first, then a line for each finding, and the rest folded.
pub fn review_body(summary: &PostedSummary<'_>) -> String {
    let mut parts = vec![opening(summary)];
    parts.extend(incomplete(summary).filter(|_| summary.counts.shown() > 0));
    parts.extend(lists(summary));
    parts.push(folded_details(summary));
    parts.join("\n\n")
}

/// The comment that replaces the check run if there is none; it is edited with each review.
pub fn status_comment(summary: &PostedSummary<'_>) -> String {
    let mut parts = vec![format!("{} Last reviewed commit: `{}`.", opening(summary), summary.head.short())];
    parts.extend(incomplete(summary).filter(|_| summary.counts.shown() > 0));
    parts.extend(not_posted(summary));
    parts.extend(lists(summary));
    parts.push(folded_details(summary));
    parts.join("\n\n")
}

/// The status comment if a commit could not be reviewed. `last` is the text of the last review, which stays in it.
pub fn not_reviewed_comment(head: &CommitSha, why: &str, handle: Option<&str>, last: Option<&str>) -> String {
    let failed = format!("**Not reviewed**: `{}`. {why}\n\n{}", head.short(), how_to_retry(handle));
    match last {
        Some(last) => format!("{failed}\n\n---\n\nThe last review:\n\n{last}"),
        None => failed,
    }
}

/// How to repeat a review that failed.
pub fn how_to_retry(handle: Option<&str>) -> String {
    handle.map_or_else(|| "Run the review again.".to_owned(), |handle| format!("`/{handle} review` tries again."))
}

pub fn check_conclusion(counts: &ReviewCounts, gaps: &ReviewGaps, reason: &ScopeReason) -> CheckConclusion {
    let nobody_asked = gaps.reviewers == 0 && !matches!(reason, ScopeReason::NoChangesSince(_));
    if nobody_asked || gaps_in_words(gaps).is_some() {
        CheckConclusion::ActionRequired
    } else if counts.with_severity(Severity::Critical) > 0 {
        CheckConclusion::Failure
    } else if counts.shown() > 0 || gaps.none_listed {
        CheckConclusion::Neutral
    } else {
        CheckConclusion::Success
    }
}

/// The title and the text of a completed check run.
pub fn check_output(summary: &PostedSummary<'_>) -> (String, String) {
    let mut title = review_headline(summary.counts, summary.gaps, summary.reason);
    if summary.counts.shown() > 0 && gaps_in_words(summary.gaps).is_some() {
        title.push_str("; the review is incomplete");
    }
    let mut parts: Vec<String> = incomplete(summary).into_iter().chain(not_posted(summary)).collect();
    parts.extend(since_last_review(summary.counts));
    parts.extend(lists(summary));
    parts.push(details(summary));
    (title, parts.join("\n\n"))
}

/// A code block that nothing in the text can close.
pub fn fenced(text: &str) -> String {
    fenced_as("", text.trim_end().trim_start_matches('\n'))
}

/// Code that GitHub offers to apply to the comment's lines. The caller has checked it: see
/// [`checked_replacement`](crate::review::checked_replacement).
pub fn applicable_suggestion(code: &str) -> String {
    fenced_as("suggestion", code)
}

fn fenced_as(kind: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{kind}\n{text}\n{fence}")
}

/// The number of findings, and what changed since the last review.
fn opening(summary: &PostedSummary<'_>) -> String {
    let headline = review_headline(summary.counts, summary.gaps, summary.reason);
    let bold = match headline.split_once(": ") {
        Some((result, rest)) => format!("**{result}**: {rest}."),
        None => format!("**{headline}.**"),
    };
    [Some(bold), since_last_review(summary.counts)].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

fn incomplete(summary: &PostedSummary<'_>) -> Option<String> {
    gaps_in_words(summary.gaps).map(|gaps| format!("The review is incomplete: {gaps}."))
}

fn not_posted(summary: &PostedSummary<'_>) -> Option<String> {
    summary.unposted.map(|why| format!("The review could not be posted: {why}."))
}

/// The lists of findings: new ones visible, the rest folded.
fn lists(summary: &PostedSummary<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    if !summary.listed.is_empty() {
        parts.push(bounded_list(summary.listed.iter().map(listed), summary.listed.len(), ROOM_FOR_LISTED));
    }
    if !summary.resolved.is_empty() {
        let entries = bounded_list(summary.resolved.iter().map(listed), summary.resolved.len(), ROOM_FOR_RESOLVED);
        parts.push(format!(
            "Still open, although their threads are resolved; only a maintainer can dismiss these:\n\n{entries}"
        ));
    }
    let folds = [
        ("Further findings", summary.further, ROOM_FOR_FURTHER),
        ("Low confidence", summary.low_confidence, ROOM_FOR_UNSURE),
    ];
    for (heading, findings, room) in folds.into_iter().filter(|(_, findings, _)| !findings.is_empty()) {
        let entries = bounded_list(findings.iter().map(listed), findings.len(), room);
        parts.push(folded(&format!("{heading} ({})", findings.len()), &entries));
    }
    if !summary.earlier.is_empty() {
        let entries = bounded_list(summary.earlier.iter().map(earlier), summary.earlier.len(), ROOM_FOR_EARLIER);
        parts.push(folded(&format!("Earlier findings ({})", summary.earlier.len()), &entries));
    }
    parts.extend(summary.others.map(str::to_owned));
    parts
}

fn folded_details(summary: &PostedSummary<'_>) -> String {
    let help = match summary.handle {
        Some(handle) => format!("`/{handle} help` lists the commands."),
        None => format!("To hide a finding, add its title to {SUPPRESSIONS}."),
    };
    folded("Review details", &format!("{}\n\n{help}", details(summary)))
}

fn details(summary: &PostedSummary<'_>) -> String {
    let (changed, read, lines) = summary.read;
    let scope = match summary.reason {
        ScopeReason::IncrementalFrom(sha) | ScopeReason::NoChangesSince(sha) => {
            scope_in_words(summary.reason).replace(sha.short(), &format!("`{}`", sha.short()))
        }
        reason => scope_in_words(reason),
    };
    let mut facts = vec![scope, coverage_in_words(changed, read, lines, summary.unlisted, summary.skipped.len())];
    let is_over = matches!(summary.reason, ScopeReason::NoChangesSince(_));
    facts.extend(match summary.reviewers {
        // No reviewer ran because there was nothing to read.
        "" if is_over => None,
        "" => Some("Reviewers: none.".to_owned()),
        reviewers => Some(format!("Reviewers: {reviewers}.")),
    });
    facts.extend(summary.model.map(|model| format!("Model: {model}.")));
    facts.extend(summary.hidden.map(str::to_owned));
    facts.extend(suppressed_patterns_in_words(summary.hidden_patterns).map(|words| format!("{words}.")));
    let facts: Vec<String> = facts.into_iter().map(|fact| format!("- {fact}")).collect();
    let mut parts = vec![facts.join("\n")];
    parts.extend(severity_table(summary));
    for (heading, entries) in [("Problems", summary.problems), ("Not read", summary.skipped), ("Notes", summary.notes)]
    {
        if !entries.is_empty() {
            let lines = bounded_list(entries.iter().map(|entry| format!("- {entry}")), entries.len(), ROOM_FOR_TROUBLE);
            parts.push(format!("{heading}:\n\n{lines}"));
        }
    }
    parts.join("\n\n")
}

/// The number of findings by severity; `None` if there are none.
fn severity_table(summary: &PostedSummary<'_>) -> Option<String> {
    let suppressed = |severity| summary.suppressed.get(&severity).copied().unwrap_or_default();
    let rows: Vec<String> = [Severity::Critical, Severity::Major, Severity::Medium, Severity::Minor]
        .into_iter()
        .map(|severity| (severity, summary.counts.with_severity(severity), suppressed(severity)))
        .filter(|(_, shown, hidden)| shown + hidden > 0)
        .map(|(severity, shown, hidden)| format!("| {severity} | {shown} | {hidden} |"))
        .collect();
    (!rows.is_empty()).then(|| format!("| severity | shown | hidden |\n|---|--:|--:|\n{}", rows.join("\n")))
}

fn listed(one: &ListedFinding) -> String {
    let mut facts = vec![format!("**{}**: {}", capitalised(one.severity.as_str()), one.title), one.place.clone()];
    facts.extend(one.note.map(str::to_owned));
    facts.extend(since(one.since.as_deref()));
    let message = if one.message.is_empty() { String::new() } else { format!("\n  {}", one.message) };
    format!("- {}{message}", facts.join(" · "))
}

fn earlier(one: &EarlierFinding) -> String {
    let became = match (one.status, &one.dismissed) {
        (FindingStatus::Fixed, _) => "**Fixed**".to_owned(),
        (FindingStatus::Dismissed, None) => "**Dismissed**".to_owned(),
        (FindingStatus::Dismissed, Some((who, kind))) => {
            let how = match kind {
                DismissalKind::WontFix => "won't fix",
                DismissalKind::Resolved => "thread resolved",
                DismissalKind::NotUseful => "not useful",
            };
            format!("**Dismissed** by {who} ({how})")
        }
        _ => "**Still open**".to_owned(),
    };
    let place = match &one.moved_from {
        Some(before) => format!("{before} → {}", one.place),
        None => one.place.clone(),
    };
    let facts: Vec<String> =
        [Some(one.title.clone()), Some(place), since(one.since.as_deref())].into_iter().flatten().collect();
    format!("- {became}: {}", facts.join(" · "))
}

fn since(commit: Option<&str>) -> Option<String> {
    commit.map(|commit| format!("since `{commit}`"))
}

/// Without the blank lines GitHub renders nothing inside.
fn folded(heading: &str, content: &str) -> String {
    format!("<details>\n<summary>{heading}</summary>\n\n{content}\n\n</details>")
}

/// As many whole entries as fit into the room, and the number of the remaining ones.
fn bounded_list(entries: impl Iterator<Item = String>, all: usize, room: usize) -> String {
    let (mut lines, mut used) = (Vec::new(), 0);
    for entry in entries.take(MOST_LISTED) {
        used += entry.chars().count() + 1;
        if used > room {
            break;
        }
        lines.push(entry);
    }
    if lines.len() < all {
        lines.push(format!("- … and {} more", all - lines.len()));
    }
    lines.join("\n")
}

fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests;
