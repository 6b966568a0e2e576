//! What a review says on GitHub: a comment for each finding at its line, one summary, and the words of the check run.
//!
//! Titles, messages, places, names and notes are put in as they are: the caller has taken every mention, reference,
//! link, marker and mark-up out of them.

use std::collections::BTreeMap;

use crate::review::{
    Category, CommitSha, Confidence, DismissalKind, FindingStatus, ReviewCounts, ReviewGaps, ScopeReason, Severity,
    coverage_in_words, earlier_findings_text, gaps_in_words, review_headline, scope_in_words,
    suppressed_patterns_in_words,
};

/// Entries of one list: more is no longer read, and is told by `canonry review` and the console.
const MOST_LISTED: usize = 50;

// GitHub takes 65,536 characters. These are the characters that each list may have; together with everything that has
// no list they stay below 60,000, so that there is room above them for why a later review could not be completed.
const ROOM_ON_TOP: usize = 18_000;
const ROOM_FOR_RESOLVED: usize = 4_000;
const ROOM_FOR_EARLIER: usize = 12_000;
const ROOM_FOR_FURTHER: usize = 8_000;
const ROOM_FOR_UNSURE: usize = 4_000;
const ROOM_FOR_TROUBLE: usize = 3_000;

/// The sentence above the comments of one review. It counts nothing: GitHub may take fewer of them, and the summary counts.
pub const REVIEW_BODY: &str = "New findings, each at its line.";

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingComment<'a> {
    pub title: &'a str,
    /// The rest of what there is to say; may be empty.
    pub message: &'a str,
    pub severity: Severity,
    pub category: Category,
    pub confidence: Confidence,
    /// What became of earlier findings of its pattern, such as "fixed 27 of 38 here".
    pub history: Option<&'a str>,
    pub reviewers: &'a str,
    /// What became of it since it was first said.
    pub status: FindingStatus,
    /// Whether an earlier comment says it about the code as it was.
    pub said_of_other_code: bool,
    /// What could be done: words, or code that [`fenced`] has fenced.
    pub fix: Option<&'a str>,
    pub handle: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ListedFinding {
    pub severity: Severity,
    pub confidence: Confidence,
    pub place: String,
    pub title: String,
    /// The rest in one line; may be empty.
    pub message: String,
    /// The first seven digits of the commit whose review first told of it, where that is an earlier one.
    pub since: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EarlierFinding {
    pub status: FindingStatus,
    pub code_unchanged: bool,
    /// Where it is now, or was last.
    pub place: String,
    /// Where it was before, if it moved.
    pub moved_from: Option<String>,
    pub title: String,
    /// The first seven digits of the commit whose review first told of it.
    pub since: Option<String>,
    pub dismissed: Option<(String, DismissalKind)>,
}

/// Everything that the summary of a review tells.
#[derive(Debug, Clone, PartialEq)]
pub struct PostedSummary<'a> {
    pub head: &'a CommitSha,
    pub reason: &'a ScopeReason,
    pub counts: &'a ReviewCounts,
    /// Those that are hidden, by how much they matter.
    pub suppressed: &'a BTreeMap<Severity, usize>,
    pub gaps: &'a ReviewGaps,
    /// Findings that belong at a line and do not stand there.
    pub on_top: &'a [ListedFinding],
    /// Why nothing could be posted at any line; `None` where GitHub takes no comment at their lines.
    pub unposted: Option<&'a str>,
    /// Findings that stand at their lines, in threads that somebody resolved who cannot dismiss them.
    pub resolved: &'a [ListedFinding],
    /// What became of the earlier findings that no other list tells of.
    pub earlier: &'a [EarlierFinding],
    /// Findings off the diff, and those for which there was no more room.
    pub further: &'a [ListedFinding],
    pub low_confidence: &'a [ListedFinding],
    /// Files that the change touches, those of them that were read, and the changed lines in these.
    pub read: (usize, usize, u64),
    /// Files that were not read, and why: `place: why`.
    pub skipped: &'a [String],
    pub hidden: Option<&'a str>,
    /// How many patterns are hidden because people keep rejecting them.
    pub hidden_patterns: usize,
    pub reviewers: &'a str,
    pub model: Option<&'a str>,
    pub problems: &'a [String],
    pub notes: &'a [String],
    pub handle: &'a str,
}

/// How the check run of a review ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckConclusion {
    Success,
    /// Something stands, and none of it is critical.
    Neutral,
    Failure,
    /// The review is not whole: whatever it says is no approval.
    ActionRequired,
}

pub fn finding_comment(finding: &FindingComment<'_>) -> String {
    let sure = match finding.history {
        Some(history) => format!("{} sure, {history}", finding.confidence),
        None => format!("{} sure", finding.confidence),
    };
    let facts = [capitalised(finding.severity.as_str()), finding.category.to_string(), sure, finding.reviewers.into()];
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    let mut parts = vec![format!("**{}**", finding.title), facts.join(" · ")];
    parts.extend(match finding.status {
        FindingStatus::Reopened => Some("This was fixed before and is back.".to_owned()),
        FindingStatus::Same | FindingStatus::Moved if finding.said_of_other_code => {
            Some("This was said before; its code has changed since.".to_owned())
        }
        _ => None,
    });
    parts.extend((!finding.message.is_empty()).then(|| finding.message.to_owned()));
    parts.extend(finding.fix.map(|fix| format!("Suggested:\n\n{fix}")));
    parts.push(format!(
        "<sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/{} not useful`.</sub>",
        finding.handle
    ));
    parts.join("\n\n")
}

/// A comment whose finding is gone, where its thread could not be resolved.
pub fn fixed_comment(comment: &str, fixed_in: &CommitSha) -> String {
    format!("Fixed in `{}`.\n\n{comment}", fixed_in.short())
}

/// A comment whose finding is said again in another one, where its thread could not be resolved.
pub fn repeated_finding_comment(comment: &str, said_at: &CommitSha) -> String {
    format!("The code has changed; a newer comment says this about `{}`.\n\n{comment}", said_at.short())
}

/// The one summary of a pull request, which is edited from review to review.
pub fn summary_comment(summary: &PostedSummary<'_>) -> String {
    let mut parts = vec![format!(
        "**{}.** Last reviewed commit: `{}`.",
        review_headline(summary.counts, summary.gaps, summary.reason),
        summary.head.short()
    )];
    if summary.counts.shown() > 0
        && let Some(gaps) = gaps_in_words(summary.gaps)
    {
        parts.push(format!("The review is incomplete: {gaps}. The details below say more."));
    }
    if !summary.on_top.is_empty() {
        let entries = listed(summary.on_top.iter().map(on_top), summary.on_top.len(), ROOM_ON_TOP);
        parts.push(match summary.unposted {
            Some(why) => format!("These could not be posted at their lines ({why}):\n\n{entries}"),
            None => format!("These could not be placed at a line of the diff:\n\n{entries}"),
        });
    }
    if !summary.resolved.is_empty() {
        let entries = listed(summary.resolved.iter().map(on_top), summary.resolved.len(), ROOM_FOR_RESOLVED);
        parts.push(format!(
            "These stand although their threads are resolved, since only a maintainer can dismiss them:\n\n{entries}"
        ));
    }
    if let Some(became) = earlier_findings_text(summary.counts) {
        let entries = summary.earlier.iter().map(|one| earlier(one, summary.head));
        let entries = listed(entries, summary.earlier.len(), ROOM_FOR_EARLIER);
        parts.push(if entries.is_empty() { became } else { format!("{became}\n\n{entries}") });
    }
    parts.extend(folded_findings("Further findings", summary.further, ROOM_FOR_FURTHER));
    parts.extend(folded_findings("Low confidence", summary.low_confidence, ROOM_FOR_UNSURE));
    let help = format!("`/{} help` tells what can be asked for here.", summary.handle);
    parts.push(folded("Review details", &format!("{}\n\n{help}", details(summary))));
    parts.join("\n\n")
}

/// What the summary says when a review could not be completed; `last` is what the last review said, which stands.
pub fn incomplete_comment(head: &CommitSha, why: &str, handle: &str, last: Option<&str>) -> String {
    let failed = format!(
        "**The review of `{}` could not be completed**, so that nothing is known about it yet.\n\n{why}\n\n\
         It is tried again by itself where that can help; `/{handle} review` asks for it.",
        head.short()
    );
    match last {
        Some(last) => format!("{failed}\n\n---\n\nThe last review said:\n\n{last}"),
        None => failed,
    }
}

/// How the check run of a review ends.
pub fn check_conclusion(counts: &ReviewCounts, gaps: &ReviewGaps, reason: &ScopeReason) -> CheckConclusion {
    let nobody_asked = gaps.reviewers == 0 && !matches!(reason, ScopeReason::NoChangesSince(_));
    if nobody_asked || gaps_in_words(gaps).is_some() {
        CheckConclusion::ActionRequired
    } else if counts.with_severity(Severity::Critical) > 0 {
        CheckConclusion::Failure
    } else if counts.shown() > 0 {
        CheckConclusion::Neutral
    } else {
        CheckConclusion::Success
    }
}

/// The title and the text of a finished check run. `untold` is why the conversation does not tell of this review, if it
/// does not.
pub fn check_output(summary: &PostedSummary<'_>, untold: Option<&str>) -> (String, String) {
    let mut parts = Vec::new();
    if let Some(gaps) = gaps_in_words(summary.gaps) {
        parts.push(format!("The review is incomplete: {gaps}. A check that is not whole does not pass."));
    }
    parts.extend(match untold {
        Some(why) => Some(format!("The conversation of the pull request does not tell of this review: {why}")),
        None if summary.counts.shown() > 0 => {
            Some("The findings are told in the conversation of the pull request.".to_owned())
        }
        None => None,
    });
    parts.extend(earlier_findings_text(summary.counts));
    parts.push(details(summary));
    (review_headline(summary.counts, summary.gaps, summary.reason), parts.join("\n\n"))
}

/// A text as a code block that nothing in it can end.
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end().trim_start_matches('\n'))
}

fn details(summary: &PostedSummary<'_>) -> String {
    let (changed, read, lines) = summary.read;
    let scope = match summary.reason {
        ScopeReason::IncrementalFrom(sha) | ScopeReason::NoChangesSince(sha) => {
            scope_in_words(summary.reason).replace(sha.short(), &format!("`{}`", sha.short()))
        }
        reason => scope_in_words(reason),
    };
    let mut facts = vec![scope, coverage_in_words(changed, read, lines, summary.skipped.len())];
    let is_over = matches!(summary.reason, ScopeReason::NoChangesSince(_));
    facts.extend(match summary.reviewers {
        // Nobody was asked because there was nothing to read.
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
            let lines = listed(entries.iter().map(|entry| format!("- {entry}")), entries.len(), ROOM_FOR_TROUBLE);
            parts.push(format!("{heading}:\n\n{lines}"));
        }
    }
    parts.join("\n\n")
}

/// The findings by how much they matter; nothing where there are none.
fn severity_table(summary: &PostedSummary<'_>) -> Option<String> {
    let suppressed = |severity| summary.suppressed.get(&severity).copied().unwrap_or_default();
    let rows: Vec<String> = [Severity::Critical, Severity::Major, Severity::Medium, Severity::Minor]
        .into_iter()
        .map(|severity| (severity, summary.counts.with_severity(severity), suppressed(severity)))
        .filter(|(_, shown, hidden)| shown + hidden > 0)
        .map(|(severity, shown, hidden)| format!("| {severity} | {shown} | {hidden} |"))
        .collect();
    (!rows.is_empty()).then(|| format!("| severity | shown | suppressed |\n|---|--:|--:|\n{}", rows.join("\n")))
}

fn on_top(one: &ListedFinding) -> String {
    let message = if one.message.is_empty() { String::new() } else { format!("\n  {}", one.message) };
    format!("- **{}**: {} · {}{}{message}", capitalised(one.severity.as_str()), one.title, one.place, since(one))
}

fn since(one: &ListedFinding) -> String {
    one.since.as_ref().map_or_else(String::new, |since| format!(" · since `{since}`"))
}

fn earlier(one: &EarlierFinding, head: &CommitSha) -> String {
    let became = match (one.status, &one.dismissed) {
        (FindingStatus::Fixed, _) => format!("**Fixed** in `{}`", head.short()),
        (FindingStatus::Moved, _) => "**Moved**".to_owned(),
        (FindingStatus::Reopened, _) => "**Back again**".to_owned(),
        (FindingStatus::Same | FindingStatus::New, _) => "**Still there**".to_owned(),
        (FindingStatus::Dismissed, None) => "**Dismissed**".to_owned(),
        (FindingStatus::Dismissed, Some((who, kind))) => {
            let how = match kind {
                DismissalKind::WontFix => "will not be fixed",
                DismissalKind::Resolved => "thread resolved",
                DismissalKind::NotUseful => "not useful",
            };
            format!("**Dismissed** by {who} ({how})")
        }
    };
    let place = match &one.moved_from {
        Some(from) => format!("{from} → {}", one.place),
        None => one.place.clone(),
    };
    let mut facts = vec![one.title.clone(), place];
    facts.extend((!one.code_unchanged).then(|| "its code changed".to_owned()));
    facts.extend(one.since.as_ref().map(|since| format!("since `{since}`")));
    format!("- {became}: {}", facts.join(" · "))
}

fn folded_findings(heading: &str, findings: &[ListedFinding], room: usize) -> Option<String> {
    if findings.is_empty() {
        return None;
    }
    let entry = |one: &ListedFinding| {
        let severity = capitalised(one.severity.as_str());
        format!("- {severity}: {} · {} · {} sure{}", one.title, one.place, one.confidence, since(one))
    };
    let entries = listed(findings.iter().map(entry), findings.len(), room);
    Some(folded(&format!("{heading} ({})", findings.len()), &entries))
}

/// The blank lines are GitHub's: without them nothing inside is rendered.
fn folded(heading: &str, content: &str) -> String {
    format!("<details>\n<summary>{heading}</summary>\n\n{content}\n\n</details>")
}

/// As many entries as there is room for, each of them whole, and how many more there are.
fn listed(entries: impl Iterator<Item = String>, all: usize, room: usize) -> String {
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
