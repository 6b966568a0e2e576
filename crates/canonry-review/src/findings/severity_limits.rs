//! Applies the least and the greatest severity of findings that match a pattern.

use canonry_config::{ReviewSettings, SeverityCeiling, SeverityFloor};
use canonry_domain::review::{Finding, Severity};
use regex::Regex;

use crate::findings::configured_filters::is_about;

#[derive(Debug, Clone, Default)]
pub struct SeverityLimits {
    floors: Vec<(Regex, Severity)>,
    ceilings: Vec<(Regex, Severity)>,
}

impl SeverityLimits {
    pub fn new(settings: &ReviewSettings) -> Self {
        let floor = |one: &SeverityFloor| (one.pattern.matcher(), one.severity);
        let ceiling = |one: &SeverityCeiling| (one.pattern.matcher(), one.severity);
        Self {
            floors: settings.severity_floors.iter().map(floor).collect(),
            ceilings: settings.severity_ceilings.iter().map(ceiling).collect(),
        }
    }

    /// The severity of a finding, lowered by every matching ceiling and then raised by every matching floor. No ceiling
    /// lowers what is serious: a critical finding, a credential, or what the caller calls so.
    pub fn apply(&self, finding: &Finding, is_serious: bool) -> Severity {
        let is_serious = is_serious || finding.severity == Severity::Critical || finding.leaks_credential();
        let lowered = match is_serious {
            true => finding.severity,
            false => matching(&self.ceilings, finding).fold(finding.severity, Severity::min),
        };
        self.raise(finding, lowered)
    }

    /// A severity of a finding, raised by every matching floor.
    pub(crate) fn raise(&self, finding: &Finding, severity: Severity) -> Severity {
        matching(&self.floors, finding).fold(severity, Severity::max)
    }
}

fn matching(limits: &[(Regex, Severity)], finding: &Finding) -> impl Iterator<Item = Severity> {
    let limits = limits.iter().filter(|(pattern, _)| is_about(pattern, finding) || is_by(pattern, finding));
    limits.map(|(_, severity)| *severity)
}

/// Whether a pattern matches the rule of a finding, as `tool/rule`.
fn is_by(pattern: &Regex, finding: &Finding) -> bool {
    finding.witnesses.iter().any(|one| {
        let rule = one.rule.as_deref().unwrap_or_default();
        pattern.is_match(&format!("{}/{rule}", one.reviewer))
    })
}

#[cfg(test)]
mod tests {
    use canonry_config::{Pattern, ReviewSettings, SeverityCeiling, SeverityFloor};
    use canonry_domain::review::{ReviewerName, Severity};

    use super::SeverityLimits;
    use crate::findings::configured_filters::tests::finding;

    fn floor(pattern: &str, severity: Severity) -> SeverityFloor {
        SeverityFloor { pattern: Pattern::new(pattern).expect("a pattern"), severity }
    }

    fn ceiling(pattern: &str, severity: Severity) -> SeverityCeiling {
        SeverityCeiling { pattern: Pattern::new(pattern).expect("a pattern"), severity }
    }

    #[test]
    fn the_highest_floor_holds_and_none_lowers() {
        let limits = SeverityLimits::new(&ReviewSettings {
            severity_floors: vec![
                floor("regex:sql\\s+injection", Severity::Critical),
                floor("injection", Severity::Major),
                floor("glob:*secret*", Severity::Medium),
            ],
            ..ReviewSettings::default()
        });
        for (title, message, severity, expected) in [
            ("Possible SQL  injection", "", Severity::Minor, Severity::Critical),
            ("Header injection", "", Severity::Minor, Severity::Major),
            ("Header injection", "", Severity::Critical, Severity::Critical),
            ("Look here", "a\nSECRET value", Severity::Minor, Severity::Medium),
            ("Look here", "", Severity::Minor, Severity::Minor),
        ] {
            let mut one = finding("a.rs", title, severity);
            one.message = message.to_owned();
            assert_eq!(limits.apply(&one, false), expected, "{title} {message}");
        }
    }

    #[test]
    fn a_ceiling_lowers_a_rule_and_nothing_serious() {
        let limits = SeverityLimits::new(&ReviewSettings {
            severity_floors: vec![floor("linter/bug-7", Severity::Medium)],
            severity_ceilings: vec![ceiling("glob:linter/bug-*", Severity::Minor), ceiling("key", Severity::Minor)],
            ..ReviewSettings::default()
        });
        let by = |tool: &str, rule: &str, severity| {
            let mut one = finding("a.rs", "A key", severity);
            (one.witnesses[0].reviewer, one.witnesses[0].rule) = (ReviewerName::tool(tool), Some(rule.to_owned()));
            one
        };
        assert_eq!(limits.apply(&by("linter", "bug-1", Severity::Major), false), Severity::Minor);
        assert_eq!(limits.apply(&by("linter", "bug-7", Severity::Major), false), Severity::Medium);
        assert_eq!(limits.apply(&by("linter", "bug-1", Severity::Major), true), Severity::Major);
        assert_eq!(limits.apply(&by("linter", "bug-1", Severity::Critical), false), Severity::Critical);
        assert_eq!(limits.apply(&by("gitleaks", "jwt", Severity::Major), false), Severity::Major);
    }
}
