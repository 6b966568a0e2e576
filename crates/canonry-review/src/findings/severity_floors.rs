//! Applies the minimum severity of findings that match a pattern.

use canonry_config::SeverityFloor;
use canonry_domain::review::{Finding, Severity};
use regex::Regex;

use crate::findings::configured_filters::is_about;

#[derive(Debug, Clone, Default)]
pub struct SeverityFloors {
    floors: Vec<(Regex, Severity)>,
}

impl SeverityFloors {
    pub fn new(floors: &[SeverityFloor]) -> Self {
        Self { floors: floors.iter().map(|floor| (floor.pattern.matcher(), floor.severity)).collect() }
    }

    /// The severity of a finding, raised by every matching floor; a floor never lowers it.
    pub fn apply(&self, finding: &Finding) -> Severity {
        let floors = self.floors.iter().filter(|(pattern, _)| is_about(pattern, finding)).map(|(_, floor)| *floor);
        floors.fold(finding.severity, Severity::max)
    }
}

#[cfg(test)]
mod tests {
    use canonry_config::{Pattern, SeverityFloor};
    use canonry_domain::review::Severity;

    use super::SeverityFloors;
    use crate::findings::configured_filters::tests::finding;

    #[test]
    fn the_highest_floor_holds_and_none_lowers() {
        let floor =
            |pattern: &str, severity| SeverityFloor { pattern: Pattern::new(pattern).expect("a pattern"), severity };
        let floors = SeverityFloors::new(&[
            floor("regex:sql\\s+injection", Severity::Critical),
            floor("injection", Severity::Major),
            floor("glob:*secret*", Severity::Medium),
        ]);
        for (title, message, severity, expected) in [
            ("Possible SQL  injection", "", Severity::Minor, Severity::Critical),
            ("Header injection", "", Severity::Minor, Severity::Major),
            ("Header injection", "", Severity::Critical, Severity::Critical),
            ("Look here", "a\nSECRET value", Severity::Minor, Severity::Medium),
            ("Look here", "", Severity::Minor, Severity::Minor),
        ] {
            let mut one = finding("a.rs", title, severity);
            one.message = message.to_owned();
            assert_eq!(floors.apply(&one), expected, "{title} {message}");
        }
    }
}
