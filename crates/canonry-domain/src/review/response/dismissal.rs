//! Dismissals: a person rejects a finding, and the rule for how long that holds.

use jiff::Timestamp;

use crate::review::{CodeHash, Finding, is_protected};
use crate::{Login, Maintainers, text_enum};

text_enum! {
    /// How a person dismissed a finding.
    pub enum DismissalKind: "a kind of dismissal" {
        WontFix = "wont_fix",
        Resolved = "resolved",
        NotUseful = "not_useful",
    }
}

text_enum! {
    /// The role in which a person dismisses a finding.
    pub enum Dismisser: "a person who may dismiss" {
        /// The author of the pull request. The dismissal holds there and does not count as feedback about the pattern.
        Author = "author",
        Maintainer = "maintainer",
    }
}

impl Dismisser {
    /// The role in which an account may dismiss findings of a pull request; `None` if it may not, or if it is a bot.
    pub fn of(by: &Login, author: Option<&Login>, maintainers: &Maintainers) -> Option<Self> {
        if by.is_bot() {
            None
        } else if maintainers.contains(by) {
            Some(Self::Maintainer)
        } else {
            (author == Some(by)).then_some(Self::Author)
        }
    }

    /// Whether the dismissal counts as feedback about the pattern beyond its pull request.
    pub fn teaches(self) -> bool {
        self == Self::Maintainer
    }
}

/// A person's dismissal of one finding of a pull request, bound to the code that it was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dismissal {
    pub kind: DismissalKind,
    pub by: Dismisser,
    /// The flagged code at that time; `None` for a finding about a whole file.
    pub code: Option<CodeHash>,
    /// Whether feedback was not allowed to hide the finding at that time.
    pub protected: bool,
    pub at: Timestamp,
}

impl Dismissal {
    /// Whether the dismissal still holds for the current version of the finding. It holds while the flagged code is
    /// the same. For a protected finding it holds only if a maintainer dismissed it while it was protected. Without
    /// code a change cannot be detected, so a protected finding is never hidden then.
    pub fn holds(&self, now: &Finding) -> bool {
        let is_grave = is_protected(now.severity, now.category);
        match (&self.code, &now.code) {
            (Some(then), Some(now)) => {
                then == now && (!is_grave || (self.by == Dismisser::Maintainer && self.protected))
            }
            (None, None) => !is_grave,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dismissal, DismissalKind, Dismisser};
    use crate::Login;
    use crate::review::finding::tests::finding;
    use crate::review::{Category, CodeHash, Finding, ReviewerName, Severity, is_protected};

    fn no(by: Dismisser, now: &Finding) -> Dismissal {
        let (kind, at) = (DismissalKind::NotUseful, jiff::Timestamp::UNIX_EPOCH);
        Dismissal { kind, by, code: now.code.clone(), protected: is_protected(now.severity, now.category), at }
    }

    #[test]
    fn it_holds_while_the_code_is_the_same() {
        let now = finding("a.rs", 3, ReviewerName::builtin(), "x");
        let dismissal = no(Dismisser::Author, &now);
        assert!(dismissal.holds(&now));
        assert!(!dismissal.holds(&Finding { code: Some(CodeHash::of(["other"])), ..now.clone() }));
        assert!(!dismissal.holds(&Finding { code: None, ..now }));
    }

    #[test]
    fn grave_findings_are_silenced_by_a_maintainer_only() {
        for severity in Severity::ALL {
            for category in Category::ALL {
                let plain = finding("a.rs", 3, ReviewerName::builtin(), "x");
                let now = Finding { severity: *severity, category: *category, ..plain };
                assert!(no(Dismisser::Maintainer, &now).holds(&now));
                let grave = *severity == Severity::Critical
                    || (*severity == Severity::Major && matches!(category, Category::Security | Category::Correctness));
                assert_eq!(no(Dismisser::Author, &now).holds(&now), !grave, "{severity} {category}");
            }
        }
    }

    #[test]
    fn a_no_to_something_mild_does_not_silence_something_grave() {
        let mild = finding("a.rs", 3, ReviewerName::builtin(), "x");
        let grave = Finding { severity: Severity::Critical, ..mild.clone() };
        for by in [Dismisser::Author, Dismisser::Maintainer] {
            assert!(no(by, &mild).holds(&mild) && !no(by, &mild).holds(&grave), "{by}");
            assert!(no(by, &grave).holds(&mild), "{by}");
        }
        assert!(no(Dismisser::Maintainer, &grave).holds(&grave));
    }

    #[test]
    fn without_code_only_what_is_not_grave_stays_silent() {
        let mild = Finding { code: None, lines: None, ..finding("a.bin", 1, ReviewerName::builtin(), "x") };
        let grave = Finding { severity: Severity::Major, category: Category::Security, ..mild.clone() };
        for by in [Dismisser::Author, Dismisser::Maintainer] {
            assert!(no(by, &mild).holds(&mild) && !no(by, &grave).holds(&grave), "{by}");
        }
        let with_code = Finding { code: Some(CodeHash::of(["x"])), ..mild.clone() };
        assert!(!no(Dismisser::Maintainer, &mild).holds(&with_code));
    }

    #[test]
    fn who_may_say_no() {
        let login = |name: &str| name.parse::<Login>().expect("a login");
        let (ada, bob) = (login("ada"), login("bob"));
        let maintainers = [bob.clone()].into_iter().collect();
        assert_eq!(Dismisser::of(&ada, Some(&ada), &maintainers), Some(Dismisser::Author));
        assert_eq!(Dismisser::of(&bob, Some(&bob), &maintainers), Some(Dismisser::Maintainer));
        assert_eq!(Dismisser::of(&login("eve"), Some(&ada), &maintainers), None);
        assert_eq!(Dismisser::of(&login("canonry[bot]"), None, &maintainers), None);
        assert!(Dismisser::Maintainer.teaches() && !Dismisser::Author.teaches());
    }
}
