//! Contains a reviewer's answer, before its findings are matched with the code.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::redact;
use canonry_domain::review::{
    Category, CodeHash, Finding, Fingerprint, LineRange, PatternKey, RepoPath, ReviewerName, Severity, Witness, around,
    flagged, merge_witnesses,
};

use crate::change::head_texts::HeadTexts;
use crate::findings::severity_limits::SeverityLimits;

const TITLE: usize = 200;
const MESSAGE: usize = 8_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFinding {
    pub reviewer: ReviewerName,
    pub rule: Option<String>,
    pub title: String,
    pub message: String,
    pub path: RepoPath,
    pub lines: Option<LineRange>,
    pub severity: Severity,
    pub category: Category,
    pub partial: BTreeMap<String, String>,
    pub tags: BTreeSet<String>,
    pub fix: Option<SuggestedFix>,
    /// What no ceiling of the settings may lower, such as a security score of 7 or more.
    pub is_serious: bool,
    /// The flagged code, for a line that is not in the file any more.
    pub removed_code: Option<CodeHash>,
}

/// A proposed fix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuggestedFix {
    /// In words or as code, for people to read.
    pub words: Option<String>,
    /// Code that replaces the finding's lines as a whole.
    pub replacement: Option<String>,
}

impl From<String> for SuggestedFix {
    fn from(words: String) -> Self {
        Self { words: Some(words), replacement: None }
    }
}

/// The tag of a model's finding that a second reading did not confirm.
pub(crate) const UNPROVEN: &str = "unproven";

/// How the paragraph begins that a second reading appends to the message of a model's finding.
pub(crate) const NOT_READ_AGAIN: &str = "It was not read a second time: ";
pub(crate) const NOT_CONFIRMED: &str = "A second reading did not confirm this: ";
pub(crate) const DISPUTED: &str = "Reported as critical. A second reading disputes this: ";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewerAnswer {
    pub reported: Vec<RawFinding>,
    /// Problems that leave a gap in the review, as sentences for the details.
    pub problems: Vec<String>,
    /// Notes for the details that leave no gap.
    pub notes: Vec<String>,
    /// Which reviewers read which files; `None` stands for all files.
    pub read: Vec<(ReviewerName, Option<BTreeSet<RepoPath>>)>,
    /// The commits that the tools of a report read, as the report itself names them.
    pub linted: BTreeMap<ReviewerName, String>,
}

/// Splits a text into its title, the first line that is not empty, and the rest.
pub(crate) fn title_and_rest(text: &str) -> (String, String) {
    // Redact before anything is cut: no rule recognizes half a secret.
    let text = redact(&printable(text));
    let text = text.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.trim();
    match first.char_indices().nth(TITLE) {
        // Cut at a space, so that the title ends with a whole word.
        Some((cut, _)) => {
            let cut = first[..cut].rfind(' ').filter(|space| *space > 0).unwrap_or(cut);
            (format!("{}…", &first[..cut]), bounded(text))
        }
        None => (first.to_owned(), bounded(rest.trim())),
    }
}

/// The text, cut to a limit, without characters that control a terminal or reverse the reading order: reports repeat
/// text from the code of strangers.
fn printable(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let kept = text.trim_start().chars().filter(|c| matches!(c, '\n' | '\t') || !steers(*c));
    // The limit is far above what is shown: redaction shortens the text, and half a secret at the end must not move
    // into the shown part.
    kept.take(16 * MESSAGE).collect()
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MESSAGE) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

impl RawFinding {
    /// The finding with the code that it is about. `file` contains the present lines of the file, if they are known.
    ///
    /// Secrets are redacted: findings are stored, printed into public logs and repeated in comments, and a tool or a
    /// model that reports a leak may quote it.
    pub fn into_finding(mut self, file: Option<&[&str]>) -> Finding {
        let unproven = self.reviewer.is_model() && self.tags.remove(UNPROVEN);
        let code = |hash: fn(&[&str], LineRange) -> _| self.lines.zip(file).and_then(|(lines, file)| hash(file, lines));
        let (flagged, around) = (code(flagged), code(around));
        let title = redact(&self.title);
        let key = match &self.rule {
            Some(rule) => PatternKey::of_rule(self.reviewer.as_str(), rule),
            None => PatternKey::of_title(&title),
        };
        Finding {
            fingerprint: Fingerprint::of_title(&title),
            title,
            message: redact(&self.message),
            path: self.path,
            lines: self.lines,
            severity: self.severity,
            category: self.category,
            code: flagged.or(self.removed_code),
            around,
            witnesses: vec![Witness { reviewer: self.reviewer, rule: self.rule, key }],
            partial: self.partial.into_iter().map(|(name, value)| (name, redact(&value))).collect(),
            tags: self.tags,
            fix: self.fix.as_ref().and_then(|fix| fix.words.as_deref()).map(redact),
            replacement: self.fix.and_then(|fix| fix.replacement),
            unproven,
        }
    }
}

/// Matches the findings of all reviewers with the code, and merges those that several reviewers report.
pub fn merge_findings(heard: Vec<ReviewerAnswer>, texts: &HeadTexts) -> Vec<Finding> {
    merge_limited_findings(heard, texts, &SeverityLimits::default())
}

/// Merges findings after applying the limits of severity to each reviewer's finding: a merged finding keeps only the
/// text of the first.
pub(crate) fn merge_limited_findings(
    heard: Vec<ReviewerAnswer>,
    texts: &HeadTexts,
    limits: &SeverityLimits,
) -> Vec<Finding> {
    let reported: Vec<RawFinding> = heard.into_iter().flat_map(|heard| heard.reported).collect();
    let paths: BTreeSet<&RepoPath> = reported.iter().map(|one| &one.path).collect();
    let lines: BTreeMap<RepoPath, Vec<&str>> =
        (paths.into_iter()).filter_map(|path| Some((path.clone(), texts.get(path)?.lines().collect()))).collect();
    let finding = |one: RawFinding| {
        let file = lines.get(&one.path).map(Vec::as_slice);
        let is_serious = one.is_serious;
        let finding = one.into_finding(file);
        Finding { severity: limits.apply(&finding, is_serious), ..finding }
    };
    merge_witnesses(reported.into_iter().map(finding).collect())
}

pub fn reviewers_by_file(heard: &[ReviewerAnswer], files: &BTreeSet<RepoPath>) -> BTreeSet<(ReviewerName, RepoPath)> {
    let mut read = BTreeSet::new();
    for (reviewer, paths) in heard.iter().flat_map(|heard| &heard.read) {
        let paths = paths.as_ref().unwrap_or(files);
        read.extend(paths.iter().map(|path| (reviewer.clone(), path.clone())));
    }
    read
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use canonry_domain::review::{Category, RepoPath, ReviewerName, Severity};

    use super::{RawFinding, title_and_rest};

    #[test]
    fn the_first_line_is_the_title() {
        assert_eq!(title_and_rest("\n One line \n\n the rest\n"), ("One line".to_owned(), "the rest".to_owned()));
        let long = "word ".repeat(100);
        let (title, rest) = title_and_rest(&long);
        assert!(title.ends_with("word…") && title.chars().count() <= 201, "{title}");
        assert_eq!(rest, long.trim());
    }

    #[test]
    fn nothing_steers_a_terminal() {
        let (title, rest) = title_and_rest("\u{1b}[2JAll \u{202e}good\r\n\tcode\u{7}\u{9b}31m\r\n");
        assert_eq!((title.as_str(), rest.as_str()), ("[2JAll good", "code31m"));
        assert_eq!(title_and_rest(&"x\n".repeat(1_000_000)).1.chars().count(), 8_001);
    }

    #[test]
    fn a_tools_own_words_leak_nothing() {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let (token, aws) = (["gh", "p_", body].concat(), ["AKIA", "J7Q2ZLM4N8PXR5TV"].concat());
        let said = |title: &str, rest: &str| RawFinding {
            reviewer: ReviewerName::tool("leaks"),
            rule: None,
            title: title.to_owned(),
            message: rest.to_owned(),
            path: RepoPath::new("a.js").expect("a path"),
            lines: None,
            severity: Severity::Major,
            category: Category::Security,
            partial: BTreeMap::from([("match".to_owned(), token.clone())]),
            tags: BTreeSet::new(),
            fix: Some(format!("revoke {token}").into()),
            is_serious: false,
            removed_code: None,
        };
        let finding = said(&format!("Found key {aws}"), &format!("const t = '{token}';")).into_finding(None);
        assert_eq!(
            (
                finding.title.as_str(),
                finding.message.as_str(),
                finding.fix.as_deref(),
                finding.partial["match"].as_str()
            ),
            (
                "Found key [redacted AWS key]",
                "const t = '[redacted GitHub token]';",
                Some("revoke [redacted GitHub token]"),
                "[redacted GitHub token]"
            )
        );
        // The pattern key contains no secret either, and another secret gives the same finding.
        let other = said(&format!("Found key {}", ["AKIA", "Q8W3ERT5Y6UI7OPZ"].concat()), "").into_finding(None);
        assert_eq!((&other.fingerprint, other.key()), (&finding.fingerprint, finding.key()));
    }

    #[test]
    fn a_secret_is_gone_before_anything_is_cut() {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let token = ["gh", "p_", body].concat();
        let cut = title_and_rest(&format!("{}={token}", "x".repeat(180)));
        assert!(!cut.0.contains("a1B2") && !cut.1.contains("a1B2"), "{cut:?}");
        let kind = ["PRIVATE", " KEY"].concat();
        let key = format!("-----BEGIN RSA {kind}-----\n{body}{body}\n-----END RSA {kind}-----");
        assert_eq!(title_and_rest(&key), ("[redacted private key]".to_owned(), String::new()));
    }
}
