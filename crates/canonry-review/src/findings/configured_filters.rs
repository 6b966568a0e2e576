//! Applies the repository's settings that skip files and hide findings.

use canonry_config::{PathGlob, ReviewSettings, SuppressionRule};
use canonry_domain::review::{Category, Finding, HiddenBy, RepoPath, Severity};
use regex::Regex;

use crate::findings::reviewer_answer::{DISPUTED, NOT_CONFIRMED, NOT_READ_AGAIN};

#[derive(Debug, Clone)]
pub struct ConfiguredFilters {
    skipped: Vec<Regex>,
    suppressions: Vec<CompiledSuppression>,
    focus: Vec<Category>,
    ignored: Vec<Category>,
    least: Severity,
}

#[derive(Debug, Clone)]
struct CompiledSuppression {
    written: String,
    pattern: Regex,
    severities: Vec<Severity>,
    categories: Vec<Category>,
    paths: Vec<Regex>,
}

impl ConfiguredFilters {
    pub fn new(settings: &ReviewSettings) -> Self {
        Self {
            skipped: settings.skip_paths.iter().map(PathGlob::matcher).collect(),
            suppressions: settings.suppressions.iter().map(CompiledSuppression::new).collect(),
            focus: settings.focus_areas.clone(),
            ignored: settings.ignored_areas.clone(),
            least: settings.severity.min_level,
        }
    }

    /// Whether a file is excluded from the review.
    pub fn skips(&self, path: &RepoPath) -> bool {
        self.skipped.iter().any(|glob| glob.is_match(path.as_str()))
    }

    /// What hides a finding, if anything; the finding has its raised severity. A CRITICAL finding is never hidden.
    pub fn hides(&self, finding: &Finding) -> Option<HiddenBy> {
        if finding.severity == Severity::Critical {
            return None;
        }
        if let Some(suppression) = self.suppressions.iter().find(|one| one.matches(finding)) {
            return Some(HiddenBy::Pattern(suppression.written.clone()));
        }
        let is_wanted = self.focus.is_empty() || self.focus.contains(&finding.category);
        if !is_wanted || self.ignored.contains(&finding.category) {
            return Some(HiddenBy::Area);
        }
        (finding.severity < self.least).then_some(HiddenBy::Severity)
    }
}

impl CompiledSuppression {
    fn new(written: &SuppressionRule) -> Self {
        Self {
            written: written.pattern.as_str().to_owned(),
            pattern: written.pattern.matcher(),
            severities: written.severity.clone(),
            categories: written.category.clone(),
            paths: written.paths.iter().map(PathGlob::matcher).collect(),
        }
    }

    fn matches(&self, finding: &Finding) -> bool {
        (self.severities.is_empty() || self.severities.contains(&finding.severity))
            && (self.categories.is_empty() || self.categories.contains(&finding.category))
            && (self.paths.is_empty() || self.paths.iter().any(|glob| glob.is_match(finding.path.as_str())))
            && is_about(&self.pattern, finding)
    }
}

pub(crate) fn is_about(pattern: &Regex, finding: &Finding) -> bool {
    pattern.is_match(&finding.title) || pattern.is_match(own_message(finding))
}

/// The message of a finding without the paragraph that a second reading appended: "the model's answer was not JSON" makes
/// no finding one about JSON.
fn own_message(finding: &Finding) -> &str {
    let message = finding.message.as_str();
    let (before, last) = message.rsplit_once("\n\n").unwrap_or(("", message));
    let is_by_model = finding.witnesses.iter().any(|one| one.reviewer.is_model());
    let is_appended = [NOT_READ_AGAIN, NOT_CONFIRMED, DISPUTED].into_iter().any(|begin| last.starts_with(begin));
    if is_by_model && is_appended { before } else { message }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use canonry_config::{PathGlob, Pattern, ReviewSettings, SuppressionRule};
    use canonry_domain::review::{Category, Finding, HiddenBy, RepoPath, ReviewerName, Severity};

    use super::ConfiguredFilters;
    use crate::findings::reviewer_answer::RawFinding;

    pub(crate) fn finding(path: &str, title: &str, severity: Severity) -> Finding {
        let reported = RawFinding {
            reviewer: ReviewerName::tool("linter"),
            rule: None,
            title: title.to_owned(),
            message: "What there is to say.".to_owned(),
            path: RepoPath::new(path).expect("a path"),
            lines: None,
            severity,
            category: Category::Style,
            partial: BTreeMap::new(),
            tags: BTreeSet::new(),
            fix: None,
            is_serious: false,
            removed_code: None,
        };
        reported.into_finding(None)
    }

    fn suppression(pattern: &str) -> SuppressionRule {
        SuppressionRule {
            pattern: Pattern::new(pattern).expect("a pattern"),
            severity: vec![],
            category: vec![],
            paths: vec![],
        }
    }

    fn hides(settings: &ReviewSettings, finding: &Finding) -> Option<String> {
        ConfiguredFilters::new(settings).hides(finding).map(|by| by.as_text())
    }

    #[test]
    fn suppressions_match_title_or_message_within_their_limits() {
        let one = finding("src/gen/a.rs", "Unused import of x", Severity::Minor);
        let limited = SuppressionRule {
            severity: vec![Severity::Minor],
            category: vec![Category::Style],
            paths: vec![PathGlob::new("src/*/*.rs").expect("a glob")],
            ..suppression("unused import")
        };
        for (suppression, expected) in [
            (suppression("UNUSED import"), Some("pattern:UNUSED import")),
            (suppression("there is to say"), Some("pattern:there is to say")),
            (suppression("glob:unused*"), Some("pattern:glob:unused*")),
            (suppression("glob:unused"), None),
            (suppression("regex:^of"), None),
            (limited.clone(), Some("pattern:unused import")),
            (SuppressionRule { severity: vec![Severity::Major], ..limited.clone() }, None),
            (SuppressionRule { category: vec![Category::Security], ..limited.clone() }, None),
            (SuppressionRule { paths: vec![PathGlob::new("src/*.rs").expect("a glob")], ..limited }, None),
        ] {
            let settings = ReviewSettings { suppressions: vec![suppression.clone()], ..ReviewSettings::default() };
            assert_eq!(hides(&settings, &one).as_deref(), expected, "{suppression:?}");
        }
    }

    #[test]
    fn what_a_second_reading_appends_matches_nothing() {
        let hidden = |by: &ReviewerName, message: &str| {
            let mut one = finding("a.rs", "It divides by zero", Severity::Major);
            one.witnesses[0].reviewer = by.clone();
            one.message = message.to_owned();
            let settings = ReviewSettings { suppressions: vec![suppression("json")], ..ReviewSettings::default() };
            hides(&settings, &one).is_some()
        };
        let (model, tool) = (ReviewerName::model(), ReviewerName::tool("linter"));
        let unread = "It was not read a second time: the model's answer was not JSON.";
        for (by, message, expected) in [
            (&model, format!("The count may be 0.\n\n{unread}"), false),
            (&model, unread.to_owned(), false),
            (&model, "Why?\n\nReported as critical. A second reading disputes this: JSON has none.".to_owned(), false),
            (&model, format!("The JSON may be empty.\n\n{unread}"), true),
            (&model, "It reads\n\nJSON.".to_owned(), true),
            (&tool, unread.to_owned(), true),
        ] {
            assert_eq!(hidden(by, &message), expected, "{by} {message}");
        }
    }

    #[test]
    fn a_critical_finding_passes_everything_but_skipped_paths() {
        let all = ReviewSettings {
            suppressions: vec![
                suppression("glob:*"),
                SuppressionRule { severity: vec![Severity::Critical], ..suppression("x") },
            ],
            focus_areas: vec![Category::Security],
            ignored_areas: vec![Category::Style],
            skip_paths: vec![PathGlob::new("gen/**").expect("a glob")],
            ..ReviewSettings::default()
        };
        assert_eq!(hides(&all, &finding("a.rs", "x", Severity::Critical)), None);
        assert_eq!(hides(&all, &finding("a.rs", "x", Severity::Major)).as_deref(), Some("pattern:glob:*"));
        let filters = ConfiguredFilters::new(&all);
        assert!(filters.skips(&RepoPath::new("gen/a/b.rs").expect("a path")));
        assert!(!filters.skips(&RepoPath::new("src/gen/a.rs").expect("a path")));
    }

    #[test]
    fn areas_and_severities_stack() {
        let one = |severity| finding("a.rs", "x", severity);
        let plain = ReviewSettings::default();
        assert_eq!(hides(&plain, &one(Severity::Minor)), None);
        let focused = ReviewSettings { focus_areas: vec![Category::Security], ..plain.clone() };
        assert_eq!(hides(&focused, &one(Severity::Major)).as_deref(), Some("area"));
        let ignored = ReviewSettings { ignored_areas: vec![Category::Style], ..plain.clone() };
        assert_eq!(hides(&ignored, &one(Severity::Major)).as_deref(), Some("area"));
        let mut grave = plain;
        grave.severity.min_level = Severity::Major;
        assert_eq!(ConfiguredFilters::new(&grave).hides(&one(Severity::Medium)), Some(HiddenBy::Severity));
        assert_eq!(hides(&grave, &one(Severity::Major)), None);
    }
}
