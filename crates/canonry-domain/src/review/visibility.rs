//! Decides which findings are shown, and where.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::review::{Category, Confidence, Severity, is_protected};
use crate::text_enum;

text_enum! {
    pub enum ShownAs: "a place of a finding" {
        /// At its line, or at the top of the summary if its line is not in the diff.
        Inline = "inline",
        /// In the details: its line is not in the diff, or there was no room.
        Details = "details",
        /// Folded, with the other findings of low confidence.
        LowConfidence = "low_confidence",
        /// Not shown; it is counted and recorded.
        Suppressed = "suppressed",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenBy {
    /// A person dismissed the finding, and its code is unchanged.
    Dismissal,
    Feedback,
    /// A suppression from the configuration, as it is written there.
    Pattern(String),
    Area,
    Severity,
    /// The finding is off the changed lines, or the base has it too: the change is not answerable for it.
    Scope,
    /// A second reading of a model's finding refuted it, could not quote the line or could not say how it fails.
    SecondReading,
}

impl HiddenBy {
    /// The text that scripts read.
    pub fn as_text(&self) -> String {
        match self {
            Self::Dismissal => "dismissal".to_owned(),
            Self::Feedback => "feedback".to_owned(),
            Self::Pattern(pattern) => format!("pattern:{pattern}"),
            Self::Area => "area".to_owned(),
            Self::Severity => "severity".to_owned(),
            Self::Scope => "scope".to_owned(),
            Self::SecondReading => "second-reading".to_owned(),
        }
    }

    /// Whether this may hide a finding of this severity and category at all. For a dismissal the caller has checked
    /// who made it, and for the scope where the finding is.
    pub fn may_hide(&self, severity: Severity, category: Category) -> bool {
        match self {
            Self::Dismissal | Self::Scope => true,
            Self::Feedback => !is_protected(severity, category),
            Self::Pattern(_) | Self::Area | Self::Severity | Self::SecondReading => severity != Severity::Critical,
        }
    }
}

/// The facts about a finding that decide where it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visibility {
    pub severity: Severity,
    pub category: Category,
    pub confidence: Confidence,
    pub grounded: bool,
    /// Whether the finding may lead the summary although its line is not in the diff: the scope is everything, or it is a
    /// credential that was pushed and removed.
    pub leads_anywhere: bool,
    /// Whether an existing comment at its line already reports it.
    pub said_inline: bool,
    pub hidden_by: Option<HiddenBy>,
}

/// Sorts findings and decides where each is shown. Returns `(index in the input, where)`.
///
/// The order is by severity, then by confidence, then as given. Findings that nothing may hide are inline if the change
/// is answerable for them: neither folded nor capped. A finding that a comment at its line already reports stays inline and does not count
/// against the limit.
pub fn arrange(findings: &[Visibility], min_confidence: u8, max_comments: usize) -> Vec<(usize, ShownAs)> {
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by_key(|at| (Reverse(findings[*at].severity), Reverse(findings[*at].confidence), *at));
    let mut inline = 0;
    order
        .into_iter()
        .map(|at| {
            let one = &findings[at];
            let hidden = one.hidden_by.as_ref().is_some_and(|by| by.may_hide(one.severity, one.category));
            let shown = if hidden {
                ShownAs::Suppressed
            } else if is_protected(one.severity, one.category) && (one.grounded || one.leads_anywhere) {
                inline += usize::from(!one.said_inline);
                ShownAs::Inline
            } else if one.confidence.get() < min_confidence {
                ShownAs::LowConfidence
            } else if one.said_inline {
                ShownAs::Inline
            } else if !one.grounded || inline >= max_comments {
                ShownAs::Details
            } else {
                inline += 1;
                ShownAs::Inline
            };
            (at, shown)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{HiddenBy, ShownAs, Visibility, arrange};
    use crate::review::confidence;
    use crate::review::{Category, ConfidenceSigns, PatternFeedback, Severity};

    fn one(severity: Severity, category: Category, hidden_by: Option<HiddenBy>) -> Visibility {
        let signs = ConfidenceSigns { severity, category, confirmed: false, feedback: PatternFeedback::default() };
        Visibility {
            severity,
            category,
            confidence: confidence(signs),
            grounded: true,
            leads_anywhere: false,
            said_inline: false,
            hidden_by,
        }
    }

    #[test]
    fn nothing_hides_a_critical_finding_but_a_dismissal() {
        for hidden_by in [
            HiddenBy::Feedback,
            HiddenBy::Pattern("x".into()),
            HiddenBy::Area,
            HiddenBy::Severity,
            HiddenBy::SecondReading,
        ] {
            let critical = one(Severity::Critical, Category::Documentation, Some(hidden_by));
            assert_eq!(arrange(&[critical], 100, 0), [(0, ShownAs::Inline)]);
        }
        let dismissed = one(Severity::Critical, Category::Security, Some(HiddenBy::Dismissal));
        assert_eq!(arrange(&[dismissed], 0, 7), [(0, ShownAs::Suppressed)]);
    }

    #[test]
    fn off_the_changed_lines_nothing_leads_unless_the_scope_is_everything() {
        let outside = Visibility { grounded: false, ..one(Severity::Critical, Category::Security, None) };
        assert_eq!(arrange(std::slice::from_ref(&outside), 0, 7), [(0, ShownAs::Details)]);
        let anywhere = Visibility { leads_anywhere: true, ..outside.clone() };
        assert_eq!(arrange(&[anywhere], 0, 7), [(0, ShownAs::Inline)]);
        let scoped = Visibility { hidden_by: Some(HiddenBy::Scope), ..outside };
        assert_eq!(arrange(&[scoped], 0, 7), [(0, ShownAs::Suppressed)]);
    }

    #[test]
    fn feedback_hides_no_major_finding_about_security_or_correctness() {
        let shown = |category, by| arrange(&[one(Severity::Major, category, Some(by))], 0, 7)[0].1;
        assert_eq!(shown(Category::Security, HiddenBy::Feedback), ShownAs::Inline);
        assert_eq!(shown(Category::Correctness, HiddenBy::Feedback), ShownAs::Inline);
        assert_eq!(shown(Category::Style, HiddenBy::Feedback), ShownAs::Suppressed);
        assert_eq!(shown(Category::Security, HiddenBy::Pattern("x".into())), ShownAs::Suppressed);
    }

    #[test]
    fn what_is_said_already_takes_no_room() {
        let said = Visibility { said_inline: true, ..one(Severity::Major, Category::Security, None) };
        let also = Visibility { said_inline: true, ..one(Severity::Minor, Category::Style, None) };
        let fresh = one(Severity::Medium, Category::Style, None);
        let shown = arrange(&[said, also, fresh.clone(), fresh], 0, 1);
        let expected = [(0, ShownAs::Inline), (2, ShownAs::Inline), (3, ShownAs::Details), (1, ShownAs::Inline)];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_gravest_come_first_and_the_rest_goes_to_the_details() {
        let all = [
            one(Severity::Minor, Category::Style, None),
            one(Severity::Medium, Category::Security, None),
            one(Severity::Critical, Category::Security, None),
            Visibility { grounded: false, ..one(Severity::Major, Category::Performance, None) },
            one(Severity::Medium, Category::Style, None),
        ];
        let expected = [
            (2, ShownAs::Inline),
            (3, ShownAs::Details),
            (1, ShownAs::Inline),
            (4, ShownAs::Details),
            (0, ShownAs::LowConfidence),
        ];
        assert_eq!(arrange(&all, 50, 2), expected);
    }
}
