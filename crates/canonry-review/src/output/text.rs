//! Writes a report for a terminal.

use std::collections::{BTreeSet, HashMap};

use anstyle::{AnsiColor, Style};
use canonry_domain::counted;
use canonry_domain::printable::one_line;
use canonry_domain::review::{
    CodeExcerpt, Finding, FindingStatus, LineRange, RepoPath, ReviewCounts, ScopeReason, Severity, ShownAs,
    coverage_in_words, gaps_in_words, hidden_in_words, history_in_words, review_headline, scope_in_words,
    since_last_review, suppressed_patterns_in_words,
};

use super::columns::{columns, fitted, wrapped};
use super::counts::{counts, gaps, skipped_files};
use super::run_facts::{model_in_words, notes, reviewers_in_words};
use super::source_links::SourceLinks;
use crate::change::scope::WITHOUT_MERGE_BASE;
use crate::run::report::{ReportedFinding, ReviewReport};

/// The narrowest and the widest page: text that is narrower or wider than this is unreadable.
const WIDTHS: (usize, usize) = (40, 120);
const MESSAGE_LINES: usize = 12;
/// The lines of one folded section that are shown.
const FOLDED: usize = 15;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARNING: Style = AnsiColor::Yellow.on_default();
const GOOD: Style = AnsiColor::Green.on_default();

/// The report as text, at most `width` columns wide. It is coloured; the printer removes the colours if they would not
/// be shown. Nothing in a title, a message, a path or the code can control the terminal.
///
/// Places become links if `links` are given.
pub fn text(report: &ReviewReport, width: usize, links: Option<&SourceLinks>) -> String {
    let counts = counts(report);
    let mut page = Page { text: String::new(), width: width.clamp(WIDTHS.0, WIDTHS.1), links };
    page.opening(report, &counts);
    page.findings_by_file(report);
    page.folded_findings(report, &counts);
    page.other_reviewers(report);
    page.troubles(report);
    page.text
}

struct Page<'l> {
    text: String,
    width: usize,
    links: Option<&'l SourceLinks>,
}

impl Page<'_> {
    fn line(&mut self, style: Style, words: &str) {
        // A style around an empty text would only add escape sequences.
        if words.is_empty() {
            self.text.push('\n');
        } else {
            self.text.push_str(&format!("{style}{words}{style:#}\n"));
        }
    }

    fn paragraph(&mut self, style: Style, indent: usize, words: &str, most: usize) {
        for line in wrapped(words, self.width - indent, most) {
            if !line.is_empty() {
                self.text.push_str(&" ".repeat(indent));
            }
            self.line(style, &line);
        }
    }

    /// Writes the headline, then what was read and how much.
    fn opening(&mut self, report: &ReviewReport, counts: &ReviewCounts) {
        let gaps = gaps(report);
        let (known, unknown) = (counts.shown() > 0, gaps_in_words(&gaps));
        let style = if !known && unknown.is_some() { WARNING.bold() } else { BOLD };
        self.paragraph(style, 0, &format!("{}.", review_headline(counts, &gaps, &report.reason)), usize::MAX - 1);
        if let Some(unknown) = unknown.filter(|_| known) {
            self.paragraph(WARNING, 0, &format!("The review is incomplete: {unknown}."), 3);
        }
        for plain in report.notes.iter().filter(|note| note.starts_with(WITHOUT_MERGE_BASE)) {
            self.paragraph(WARNING, 0, &format!("{}.", one_line(plain)), 4);
        }
        if let Some(changed) = since_last_review(counts) {
            self.paragraph(Style::new(), 0, &changed, 3);
        }
        let coverage = &report.coverage;
        let reviewers = match report.reviewers.as_slice() {
            [] => String::new(),
            reviewers => format!(" Reviewers: {}.", reviewers_in_words(reviewers)),
        };
        let facts = format!(
            "{} {}, {}..{}. {} {}{reviewers}",
            report.repo,
            report.subject,
            report.base.short(),
            report.head.short(),
            scope_in_words(&report.reason),
            coverage_in_words(
                coverage.files_changed,
                coverage.files_read,
                coverage.lines_read,
                coverage.files_unlisted,
                skipped_files(report).len()
            ),
        );
        self.paragraph(DIM, 0, &one_line(&facts), 6);
    }

    /// Writes the inline findings file by file; the file with the most severe finding comes first.
    fn findings_by_file(&mut self, report: &ReviewReport) {
        let mut files: Vec<(&RepoPath, Vec<&ReportedFinding>)> = Vec::new();
        let mut places = HashMap::new();
        for one in report.standing().filter(|one| one.shown == ShownAs::Inline) {
            let path = &one.sighting.finding.path;
            let place = *places.entry(path).or_insert_with(|| {
                files.push((path, Vec::new()));
                files.len() - 1
            });
            files[place].1.push(one);
        }
        let first_review = report.reason == ScopeReason::NoPriorReview;
        for (path, findings) in files {
            self.text.push('\n');
            let heading = fitted(&one_line(path.as_str()), self.width);
            self.line(BOLD.underline(), &SourceLinks::linked(self.links, path, None, &heading));
            for (at, one) in findings.into_iter().enumerate() {
                if at > 0 {
                    self.text.push('\n');
                }
                self.finding(one, first_review);
            }
        }
    }

    fn finding(&mut self, one: &ReportedFinding, first_review: bool) {
        let finding = &one.sighting.finding;
        let (severity, style) = (finding.severity, severity_style(finding.severity));
        self.text.push_str(&format!("  {style}{severity:<8}{style:#}  "));
        let title = wrapped(&one_line(&finding.title), self.width - 12, 4);
        self.line(BOLD, title.first().map_or("", String::as_str));
        for line in title.iter().skip(1) {
            self.text.push_str(&" ".repeat(12));
            self.line(BOLD, line);
        }
        let place = lines_in_words(finding);
        for (at, line) in wrapped(&one_line(&facts(one, first_review)), self.width - 4, 4).iter().enumerate() {
            let rest = line.strip_prefix(&place).filter(|_| at == 0);
            let linked = rest.map(|rest| SourceLinks::linked(self.links, &finding.path, finding.lines, &place) + rest);
            self.text.push_str("    ");
            self.line(DIM, linked.as_deref().unwrap_or(line));
        }
        if let Some(excerpt) = &one.excerpt {
            self.excerpt(excerpt, style);
        }
        self.paragraph(Style::new(), 4, &finding.message, MESSAGE_LINES);
        if let Some(fix) = finding.fix.as_deref().filter(|fix| !fix.trim().is_empty()) {
            self.paragraph(GOOD, 4, &format!("Suggested: {}", fix.trim()), MESSAGE_LINES);
        }
        if let Some(code) = &finding.replacement {
            self.line(GOOD, "    Suggested code:");
            for line in code.lines() {
                self.line(GOOD, &format!("      {}", fitted(&one_line(line), self.width.saturating_sub(6))));
            }
        }
    }

    fn excerpt(&mut self, excerpt: &CodeExcerpt, style: Style) {
        let digits = excerpt.flagged.last.saturating_add(2).to_string().len();
        let width = self.width.saturating_sub(digits + 9);
        for (number, flagged, code) in excerpt.numbered() {
            let marker = if flagged { format!("{style}>{style:#}") } else { " ".to_owned() };
            let code = fitted(code, width);
            let space = if code.is_empty() { "" } else { " " };
            self.text.push_str(&format!("    {marker} {DIM}{number:>digits$} │{DIM:#}{space}{code}\n"));
        }
        if excerpt.left_out() > 0 {
            let more = counted(excerpt.left_out().into(), "line");
            self.text.push_str(&format!("      {DIM}{:>digits$} │{DIM:#} {more} more\n", "…"));
        }
    }

    /// Writes one line for each further, low-confidence and fixed finding; suppressed findings are only counted.
    fn folded_findings(&mut self, report: &ReviewReport, counts: &ReviewCounts) {
        let shown_as = |place| report.standing().filter(move |one| one.shown == place);
        self.folded("Further findings", shown_as(ShownAs::Details), counts.details);
        self.folded("Low confidence", shown_as(ShownAs::LowConfidence), counts.low_confidence);
        self.folded("Fixed since the last review", report.fixed(), counts.fixed());
        let suppressed = [
            hidden_in_words(counts),
            suppressed_patterns_in_words(report.hidden_patterns).map(|words| format!("{words}.")),
        ];
        let suppressed: Vec<String> = suppressed.into_iter().flatten().collect();
        if !suppressed.is_empty() {
            self.text.push('\n');
            self.paragraph(DIM, 0, &one_line(&suppressed.join(" ")), 6);
        }
    }

    fn folded<'a>(&mut self, heading: &str, findings: impl Iterator<Item = &'a ReportedFinding>, count: usize) {
        if count == 0 {
            return;
        }
        self.text.push('\n');
        self.line(BOLD, &format!("{heading} ({count})"));
        for one in findings.take(FOLDED) {
            let finding = &one.sighting.finding;
            let (severity, style) = match one.sighting.status {
                FindingStatus::Fixed => ("fixed", GOOD),
                _ => (finding.severity.as_str(), severity_style(finding.severity)),
            };
            let sure = if one.is_fixed() { String::new() } else { format!("  {}", one.confidence) };
            let place = one_line(&place(&finding.path, finding.lines));
            let what = format!("{place}  {}", one_line(&finding.title));
            let what = fitted(&what, self.width.saturating_sub(12 + columns(&sure)));
            let what = match what.strip_prefix(&place) {
                Some(title) => SourceLinks::place(self.links, &finding.path, finding.lines) + title,
                None => what,
            };
            self.text.push_str(&format!("  {style}{severity:<8}{style:#}  {what}{DIM}{sure}{DIM:#}\n"));
        }
        self.and_more(count);
    }

    fn and_more(&mut self, count: usize) {
        if count > FOLDED {
            self.line(DIM, &format!("  … and {} more", count - FOLDED));
        }
    }

    /// Writes what other reviewers say: each problem once, then how often each bot was right.
    fn other_reviewers(&mut self, report: &ReviewReport) {
        let Some(referee) = report.referee.as_ref().filter(|referee| referee.remarks > 0) else { return };
        self.text.push('\n');
        let settled = if referee.settled > 0 { format!(", {} settled", referee.settled) } else { String::new() };
        self.line(BOLD, &format!("Other reviewers ({} open{settled})", referee.problems.len()));
        for one in referee.problems.iter().take(FOLDED) {
            let place = place(&one.path, one.lines);
            let own = if one.findings.is_empty() { "" } else { ", also found by Canonry" };
            let words = format!("{place}  {} ({}{own})", one.text, one.names().join(", "));
            self.paragraph(Style::new(), 2, &one_line(&words), 3);
        }
        self.and_more(referee.problems.len());
        for record in &referee.records {
            let words = format!(
                "{}: {}, {} also named by others; {}",
                record.login,
                counted(record.remarks, "comment"),
                record.agreed,
                record.in_counts()
            );
            self.paragraph(DIM, 2, &one_line(&words), 2);
        }
    }

    fn troubles(&mut self, report: &ReviewReport) {
        let problems: Vec<String> = (report.reviewers.iter())
            .flat_map(|one| one.problems.iter().map(move |problem| format!("{}: {problem}", one.name)))
            .collect();
        let reasons = |why: BTreeSet<&str>| why.into_iter().collect::<Vec<&str>>().join("; ");
        let skipped = skipped_files(report).into_iter().map(|(path, why)| format!("{path}: {}", reasons(why)));
        let has_gap = gaps(report).skipped_files > 0;
        self.list(WARNING.bold(), "Problems", &problems);
        self.list(if has_gap { WARNING.bold() } else { BOLD }, "Not read", &skipped.collect::<Vec<String>>());
        self.list(BOLD, "Notes", &notes(report).collect::<Vec<String>>());
        if let Some(model) = &report.model {
            self.text.push('\n');
            self.paragraph(DIM, 0, &one_line(&model_in_words(model)), 3);
        }
    }

    fn list(&mut self, style: Style, heading: &str, entries: &[String]) {
        if entries.is_empty() {
            return;
        }
        self.text.push('\n');
        self.line(style, &format!("{heading} ({})", entries.len()));
        for entry in entries.iter().take(FOLDED) {
            self.paragraph(Style::new(), 2, &one_line(entry), 4);
        }
        self.and_more(entries.len());
    }
}

fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Critical => AnsiColor::Red.on_default().bold(),
        Severity::Major => AnsiColor::Red.on_default(),
        Severity::Medium => AnsiColor::Yellow.on_default(),
        Severity::Minor => AnsiColor::Cyan.on_default(),
    }
}

fn lines_in_words(finding: &Finding) -> String {
    match finding.lines {
        None => "whole file".to_owned(),
        Some(lines) if lines.first == lines.last => format!("line {}", lines.first),
        Some(lines) => format!("lines {} to {}", lines.first, lines.last),
    }
}

/// The place, category, confidence, reviewers and status of a finding.
fn facts(one: &ReportedFinding, first_review: bool) -> String {
    let finding = &one.sighting.finding;
    let lines = lines_in_words(finding);
    let history = one.history.and_then(|history| history_in_words(history.fixed, history.total));
    let confidence = match history {
        Some(history) => format!("confidence {}, {history}", one.confidence),
        None => format!("confidence {}", one.confidence),
    };
    let outside = (!one.grounded).then(|| "outside the diff".to_owned());
    let parts = [Some(lines), outside, Some(finding.category.to_string()), Some(confidence), Some(witnesses(finding))];
    let status = status_in_words(one).filter(|_| !first_review);
    parts.into_iter().flatten().chain(status).collect::<Vec<String>>().join(" · ")
}

fn witnesses(finding: &Finding) -> String {
    let witness = |rule: &Option<String>, name: &str| match rule {
        Some(rule) => format!("{name} ({rule})"),
        None => name.to_owned(),
    };
    let names: Vec<String> = finding.witnesses.iter().map(|one| witness(&one.rule, one.reviewer.as_str())).collect();
    names.join(", ")
}

fn status_in_words(one: &ReportedFinding) -> Option<String> {
    let words = match one.sighting.status {
        FindingStatus::New => return Some("new".to_owned()),
        FindingStatus::Reopened => return Some("back again".to_owned()),
        FindingStatus::Fixed | FindingStatus::Dismissed => return None,
        FindingStatus::Same => "still open".to_owned(),
        FindingStatus::Moved => match &one.moved_from {
            Some((path, Some(lines))) if *path == one.sighting.finding.path => {
                format!("moved from line {}", lines.first)
            }
            Some((path, lines)) => format!("moved from {}", place(path, *lines)),
            None => "moved".to_owned(),
        },
    };
    Some(if one.sighting.code_unchanged { words } else { format!("{words}, code changed") })
}

fn place(path: &RepoPath, lines: Option<LineRange>) -> String {
    match lines {
        Some(lines) => format!("{path}:{}", lines.first),
        None => path.to_string(),
    }
}
