//! A finding of a reviewer about a diff, and the rules by which several reports are merged into one finding.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::review::{Category, CodeHash, Fingerprint, MISPLACED, PatternKey, RepoPath, Severity, is_protected};
use crate::text::text_newtype::text_newtype;

/// A range of lines of a file, from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineRange {
    pub first: u32,
    pub last: u32,
}

impl LineRange {
    /// `None` for line 0 or an end before the start.
    pub fn new(first: u32, last: u32) -> Option<Self> {
        (first >= 1 && last >= first).then_some(Self { first, last })
    }

    /// Whether the two ranges have a line in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The name of a reviewer: a model, a tool, or Canonry's own rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReviewerName(String);

text_newtype!(ReviewerName);

impl ReviewerName {
    pub fn model() -> Self {
        Self("llm".to_owned())
    }

    pub fn builtin() -> Self {
        Self("builtin".to_owned())
    }

    /// A tool, by the name that it gives itself. A tool cannot use the name of the model or of the built-in rules.
    pub fn tool(name: &str) -> Self {
        let name = name.trim().to_lowercase();
        match name.as_str() {
            "" => Self("tool".to_owned()),
            "llm" | "builtin" => Self(format!("tool {name}")),
            _ => Self(name),
        }
    }

    /// Wraps a name that was read from the store.
    pub fn stored(name: String) -> Self {
        Self(name)
    }

    /// Whether this is a model, whose answers to the same input may differ.
    pub fn is_model(&self) -> bool {
        self.0 == "llm"
    }
}

/// A reviewer that reports a finding, and the rule by which it does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Witness {
    pub reviewer: ReviewerName,
    /// `None` for a model.
    pub rule: Option<String>,
    /// The pattern under which feedback about the finding is pooled.
    pub key: PatternKey,
}

/// One finding about a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub title: String,
    /// The details; may be empty.
    pub message: String,
    pub path: RepoPath,
    /// The lines in the new version; `None` for a finding about the whole file.
    pub lines: Option<LineRange>,
    pub severity: Severity,
    pub category: Category,
    pub fingerprint: Fingerprint,
    pub code: Option<CodeHash>,
    pub around: Option<CodeHash>,
    /// The reviewers that report it, at least one.
    pub witnesses: Vec<Witness>,
    /// The tool's own fingerprints, by name.
    pub partial: BTreeMap<String, String>,
    /// Names of the weakness that it is an instance of, such as `cwe-89`, in lower case.
    pub tags: BTreeSet<String>,
    /// A proposed fix, in words or as code.
    pub fix: Option<String>,
    /// Code that replaces the finding's lines as a whole; see [`checked_replacement`](crate::review::checked_replacement).
    #[serde(default)]
    pub replacement: Option<String>,
    /// Whether a second reading did not confirm it.
    #[serde(default)]
    pub unproven: bool,
}

impl Finding {
    /// The pattern of the reviewer that reported the finding first.
    pub fn key(&self) -> &PatternKey {
        &self.witnesses.first().expect("invariant: a finding has a witness").key
    }

    /// Adopts the severity and category of another report of the same problem if they weigh more: a greater severity,
    /// or the same severity with a category that protects the finding.
    pub(super) fn take_graver(&mut self, severity: Severity, category: Category) {
        let guarded = |severity, category| (severity, is_protected(severity, category));
        if guarded(severity, category) > guarded(self.severity, self.category) {
            self.severity = severity;
            self.category = category;
        }
    }
}

/// Merges findings that several reviewers, or one reviewer twice, report about the same code.
///
/// Two findings are the same if their lines in one file overlap and one of these is true: their titles are the same,
/// they have a weakness name such as `cwe-89` in common, or they have the same category and at least half of the words
/// of their titles in common. The greater severity is used, with the category of the same report. The texts and the
/// order are those of the first report, so that a second reviewer does not rename a finding. What a second reading
/// dropped stays apart: it neither confirms a finding of another reviewer nor changes it.
pub fn merge_witnesses(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::with_capacity(findings.len());
    let mut by_path: BTreeMap<RepoPath, Vec<usize>> = BTreeMap::new();
    for finding in findings {
        let places = by_path.entry(finding.path.clone()).or_default();
        match places.iter().find(|place| is_one(&merged[**place], &finding)) {
            Some(place) => merge(&mut merged[*place], finding),
            None => {
                places.push(merged.len());
                merged.push(finding);
            }
        }
    }
    merged
}

fn is_one(one: &Finding, other: &Finding) -> bool {
    if one.unproven != other.unproven {
        return false;
    }
    let same_lines = one.lines == other.lines;
    let near = same_lines || matches!((one.lines, other.lines), (Some(a), Some(b)) if a.overlaps(b));
    if !near {
        return false;
    }
    let shared_witness =
        one.witnesses.iter().any(|witness| other.witnesses.iter().any(|own| own.reviewer == witness.reviewer));
    if shared_witness {
        // Two reports of one reviewer about one line are two findings, unless they are identical.
        return same_lines && one.fingerprint == other.fingerprint && one.key() == other.key();
    }
    one.fingerprint == other.fingerprint
        || !one.tags.is_disjoint(&other.tags)
        || (one.category == other.category && titles_agree(&one.title, &other.title))
}

fn merge(kept: &mut Finding, other: Finding) {
    for witness in other.witnesses {
        if !kept.witnesses.contains(&witness) {
            kept.witnesses.push(witness);
        }
    }
    kept.partial.extend(other.partial);
    // If one of the two knows the place, the place is known.
    let is_misplaced = kept.tags.contains(MISPLACED) && other.tags.contains(MISPLACED);
    kept.tags.extend(other.tags);
    if !is_misplaced {
        kept.tags.remove(MISPLACED);
    }
    kept.fix = kept.fix.take().or(other.fix);
    let is_same_place = kept.lines == other.lines;
    kept.replacement = kept.replacement.take().or(other.replacement.filter(|_| is_same_place));
    kept.take_graver(other.severity, other.category);
}

/// Whether two titles have at least half of their words in common.
fn titles_agree(one: &str, other: &str) -> bool {
    let words = |title: &str| -> BTreeSet<String> {
        let parts = title.split(|c: char| !c.is_alphanumeric());
        parts.filter(|word| word.chars().count() > 2).map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    let shared = one.intersection(&other).count();
    shared >= 2 && shared * 2 >= one.union(&other).count()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Finding, LineRange, ReviewerName, Witness, merge_witnesses};
    use crate::review::{Category, CodeHash, Fingerprint, PatternKey, RepoPath, Severity};

    /// A finding of a tool's rule on one line. The code of that line is the title's text.
    pub(crate) fn finding(path: &str, line: u32, reviewer: ReviewerName, title: &str) -> Finding {
        let rule = (!reviewer.is_model()).then(|| title.to_lowercase());
        let key = match &rule {
            Some(rule) => PatternKey::of_rule(reviewer.as_str(), rule),
            None => PatternKey::of_title(title),
        };
        Finding {
            title: title.to_owned(),
            message: String::new(),
            path: RepoPath::new(path).expect("a path"),
            lines: LineRange::new(line, line),
            severity: Severity::Medium,
            category: Category::Correctness,
            fingerprint: Fingerprint::of_title(title),
            code: Some(CodeHash::of([title])),
            around: None,
            witnesses: vec![Witness { reviewer, rule, key }],
            partial: Default::default(),
            tags: Default::default(),
            fix: None,
            replacement: None,
            unproven: false,
        }
    }

    #[test]
    fn two_reviewers_of_one_line_are_two_witnesses() {
        let tool = ReviewerName::tool("semgrep");
        let severe =
            Finding { severity: Severity::Critical, ..finding("a.rs", 7, tool.clone(), "SQL injection in query") };
        let merged = merge_witnesses(vec![
            finding("a.rs", 7, ReviewerName::model(), "Possible SQL injection in query"),
            severe,
            finding("a.rs", 9, tool.clone(), "SQL injection in query"),
            finding("b.rs", 7, tool, "SQL injection in query"),
        ]);
        let shown: Vec<_> = merged.iter().map(|one| (one.path.as_str(), one.witnesses.len(), one.severity)).collect();
        assert_eq!(
            shown,
            [("a.rs", 2, Severity::Critical), ("a.rs", 1, Severity::Medium), ("b.rs", 1, Severity::Medium)]
        );
    }

    #[test]
    fn a_reviewer_that_says_two_things_about_a_line_says_two_things() {
        let tool = ReviewerName::tool("eslint");
        let one = finding("a.js", 3, tool.clone(), "Unused variable x");
        let other = finding("a.js", 3, tool, "Unused variable y");
        assert_eq!(merge_witnesses(vec![one.clone(), other, one]).len(), 2);
        assert_eq!(ReviewerName::tool("LLM").as_str(), "tool llm");
    }

    #[test]
    fn a_second_opinion_never_takes_protection_away() {
        let style = Finding {
            severity: Severity::Major,
            category: Category::Style,
            ..finding("a.py", 3, ReviewerName::tool("a"), "Same title")
        };
        let security =
            Finding { category: Category::Security, ..finding("a.py", 3, ReviewerName::tool("b"), "Same title") };
        let security = Finding { severity: Severity::Major, ..security };
        for both in [vec![style.clone(), security.clone()], vec![security, style]] {
            let merged = merge_witnesses(both);
            assert_eq!(
                (merged.len(), merged[0].severity, merged[0].category),
                (1, Severity::Major, Category::Security)
            );
        }
    }

    #[test]
    fn what_a_second_reading_dropped_neither_confirms_nor_changes_a_finding() {
        let dropped = Finding {
            severity: Severity::Major,
            category: Category::Security,
            unproven: true,
            ..finding("a.py", 3, ReviewerName::model(), "Unused variable total leaks memory")
        };
        let proven = Finding {
            severity: Severity::Minor,
            category: Category::Style,
            ..finding("a.py", 3, ReviewerName::tool("ruff"), "Unused variable total")
        };
        for mut both in [vec![dropped.clone(), proven.clone()], vec![proven, dropped]] {
            for one in &mut both {
                one.tags.insert("cwe-563".into());
            }
            let merged = merge_witnesses(both.clone());
            assert_eq!(merged, both);
        }
    }

    #[test]
    fn a_shared_name_of_the_weakness_is_enough() {
        let mut one = finding("a.py", 3, ReviewerName::tool("bandit"), "Use of exec detected");
        let mut other = finding("a.py", 3, ReviewerName::tool("semgrep"), "Code is run from a string");
        one.tags.insert("cwe-95".into());
        assert_eq!(merge_witnesses(vec![one.clone(), other.clone()]).len(), 2);
        other.tags.insert("cwe-95".into());
        assert_eq!(merge_witnesses(vec![one, other]).len(), 1);
    }
}
