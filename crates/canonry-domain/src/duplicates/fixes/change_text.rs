//! What a change says about itself: which issues it fixes, and which other change it reverts.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::duplicates::relations::pull_relation::ChangeTitle;
use crate::text::markdown::{FoldedText, own_words};
use crate::{ItemNumber, RepoName, fixed_issues, reverted_pulls};

/// A pull request or a commit, by its texts.
#[derive(Debug)]
pub struct ChangeText {
    title: ChangeTitle,
    /// `#N` in the title.
    named: BTreeSet<ItemNumber>,
    is_revert: bool,
    fixed: BTreeSet<ItemNumber>,
    reverted: BTreeSet<ItemNumber>,
    reverted_commits: Vec<String>,
    /// It says that it takes back only a part of a change.
    is_partial: bool,
    number: Option<ItemNumber>,
    sha: Option<String>,
}

impl ChangeText {
    /// A pull request.
    pub fn of_pull(repo: &RepoName, number: ItemNumber, title: &str, body: &str) -> Self {
        Self { number: Some(number), ..Self::new(repo, title, body) }
    }

    /// The same with the commit of the base branch that merged it.
    #[must_use]
    pub fn merged_as(self, sha: &str) -> Self {
        Self { sha: Some(sha.to_owned()), ..self }
    }

    /// A commit, with its whole message.
    pub fn of_commit(repo: &RepoName, sha: &str, message: &str) -> Self {
        let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
        Self { sha: Some(sha.to_owned()), ..Self::new(repo, subject, rest) }
    }

    fn new(repo: &RepoName, title: &str, body: &str) -> Self {
        let words = own_words(body, FoldedText::Omit);
        let reverted = reverted_pulls(repo, &words);
        let reverted_commits: Vec<String> =
            REVERTED_COMMIT.captures_iter(&words).map(|found| found["sha"].to_lowercase()).collect();
        let said = ChangeTitle::of(&REAPPLY.replace_all(title, "Revert \"Revert \""));
        // "Revert selection on Escape" is a change of its own.
        let names_another = REVERT_OF.is_match(title) || !reverted.is_empty() || !reverted_commits.is_empty();
        let is_revert = said.reverts % 2 == 1 && names_another;
        Self {
            named: NUMBER.captures_iter(title).filter_map(|found| number(&found["number"])).collect(),
            fixed: if is_revert { BTreeSet::new() } else { fixed_issues(repo, &format!("{title}\n\n{body}")) },
            title: said,
            is_revert,
            reverted,
            reverted_commits,
            is_partial: PARTIAL_REVERT.is_match(&words),
            number: None,
            sha: None,
        }
    }

    /// The issues that it says it fixes. A revert quotes what it reverts, and fixes nothing.
    pub fn fixed_issues(&self) -> &BTreeSet<ItemNumber> {
        &self.fixed
    }

    /// Whether it only takes another change back. A revert of a revert does not: it applies the change again.
    pub fn is_revert(&self) -> bool {
        self.is_revert
    }

    /// Whether it reverts this other change: by its number, its commit, or its quoted title. A title alone proves
    /// nothing if the text names another change, or takes back only a part.
    pub fn reverts(&self, other: &Self) -> bool {
        if self.number.is_some() && self.number == other.number {
            return false;
        }
        let cites = other.number.is_some_and(|number| self.reverted.contains(&number))
            || other.sha.as_ref().is_some_and(|sha| self.reverted_commits.iter().any(|cited| sha.starts_with(cited)));
        cites || (!self.cites_another(other) && !self.is_partial && self.quotes(other))
    }

    /// Whether it names what it reverts, and that is another change. A cited commit may be this change if the commit of
    /// this change is unknown.
    fn cites_another(&self, other: &Self) -> bool {
        !self.reverted.is_empty() || (!self.reverted_commits.is_empty() && other.sha.is_some())
    }

    /// Whether its title is that of a revert of this other change.
    fn quotes(&self, other: &Self) -> bool {
        let names = || other.number.is_some_and(|number| self.named.contains(&number));
        self.title.reverts == other.title.reverts + 1
            && self.title.marks == other.title.marks
            && (self.title.is_same_change_as(&other.title) || names())
    }

    /// Whether it can revert any change at all.
    fn is_any_revert(&self) -> bool {
        self.title.reverts > 0 || !self.reverted.is_empty() || !self.reverted_commits.is_empty()
    }
}

/// For each of these changes, in the order in which they were made, whether it is still in place: no later one that is
/// in place itself reverts it.
pub fn changes_in_place(changes: &[ChangeText]) -> Vec<bool> {
    let mut in_place = vec![true; changes.len()];
    // The later reverts that are in place; among all changes they are few.
    let mut reverts: Vec<&ChangeText> = Vec::new();
    for (change, in_place) in changes.iter().zip(&mut in_place).rev() {
        *in_place = !reverts.iter().any(|later| later.reverts(change));
        if *in_place && change.is_any_revert() {
            reverts.push(change);
        }
    }
    in_place
}

fn number(digits: &str) -> Option<ItemNumber> {
    digits.parse().ok().and_then(|number| ItemNumber::new(number).ok())
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

/// Git calls the revert of a revert so.
static REAPPLY: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?i)\bre-?apply\s+["'“]"#));

/// A title that says what it reverts, and not only that something is reverted: `Revert "…"`, `revert: …`, `Revert #12`.
static REVERT_OF: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)^\s*(?:\[[^\]]*\]\s*)*revert(?:s|ed|ing)?(?:\([^)]*\))?(?:\s*:|\s*["'“]|\s+(?:(?:pr|pull\s+request|merge\s+of|commit)\s+)?(?:#\d|[0-9a-f]{7,40}\b))"#,
    )
});

static REVERTED_COMMIT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?im)^\W*(?:this\s+)?reverts?\s+(?:commits?\s+)?(?<sha>[0-9a-f]{7,40})\b"));

static PARTIAL_REVERT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(?:partially|partly)\s+reverts?\b"));

static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"#(?<number>\d{1,18})\b"));

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{ChangeText, changes_in_place};
    use crate::{ItemNumber, RepoName};

    fn repo() -> RepoName {
        "octo/cat".parse().expect("valid")
    }

    fn pull(number: i64, title: &str, body: &str) -> ChangeText {
        ChangeText::of_pull(&repo(), ItemNumber::new(number).expect("positive"), title, body)
    }

    #[test]
    fn a_revert_fixes_nothing() {
        for (title, body, expected) in [
            ("Fix crash, fixes #12", "", &[12][..]),
            ("Revert \"Fix crash, fixes #12\"", "Reverts octo/cat#31", &[]),
            ("Revert \"Fix crash\"", "Reverts #31, which fixed #12", &[]),
            ("[1.x] Revert \"Fix crash, fixes #12\"", "", &[]),
            ("revert: fix crash, fixes #12", "", &[]),
            ("Revert #31 (fixes #12)", "", &[]),
            ("Revert Fix crash, fixes #12", "This reverts commit 0123abcd.", &[]),
            // A revert of a revert applies the change again.
            ("Revert \"Revert \"Fix crash, fixes #12\"\"", "Reverts octo/cat#40", &[12]),
            ("Reapply \"Fix crash, fixes #12\"", "This reverts commit 0123abcd.", &[12]),
            ("Revert \"Reapply \"Fix crash, fixes #12\"\"", "", &[]),
            // Not about another change.
            ("Revert selection on Escape, fixes #12", "", &[12]),
            ("Reverting a commit crashes: fixes #12", "", &[12]),
        ] {
            let text = pull(50, title, body);
            let fixed: Vec<i64> = text.fixed_issues().iter().map(|number| number.get()).collect();
            assert_eq!(fixed, expected, "{title}: {body}");
        }
    }

    #[test]
    fn a_revert_names_a_change_by_its_number_its_commit_or_its_title() {
        let fix = || pull(31, "Open it read-only", "Fixes #12");
        for (title, body, expected) in [
            ("Revert \"Open it read-only\"", "", true),
            ("Revert \"Open it read-only\"", "Reverts octo/cat#31", true),
            ("Revert \"Open it read-only (#31)\"", "", true),
            ("Revert \"Merge pull request #31 from ann/fix\"", "", true),
            ("Back out the new mode", "It broke Windows.\n\nReverts #30 and #31.", true),
            ("Back out the new mode", "This PR reverts https://github.com/octo/cat/pull/31", true),
            ("Back out the new mode", "> Reverts #31", false),
            ("Back out the new mode", "It does not revert #31.", false),
            ("Revert \"Open it\"", "Reverts other/cat#31", false),
            ("Revert \"Draw boxes\"", "Reverts #3", false),
            // Another change of the same title.
            ("Revert \"Open it read-only\"", "Reverts octo/cat#90", false),
            ("Revert \"Open it read-only\"", "This reverts commit 0123abcd.", true),
            ("Back out the new mode", "This partially reverts #31.", false),
            ("Revert \"Open it read-only\"", "Partially reverts #31", false),
            ("Back out the new mode", "Partly reverts #30.\n\nReverts #31.", true),
            // It reverts the backport, or the revert.
            ("Revert \"[1.x] Open it read-only\"", "", false),
            ("Revert \"Revert \"Open it read-only (#31)\"\"", "Reverts #40", false),
        ] {
            assert_eq!(pull(50, title, body).reverts(&fix()), expected, "{title}: {body}");
        }
        let sha = "0123abcd0123abcd0123abcd0123abcd0123abcd";
        let fix = ChangeText::of_commit(&repo(), sha, "Open it read-only\n\nFixes #12");
        let by = |message: &str| ChangeText::of_commit(&repo(), "ff", message).reverts(&fix);
        assert!(by(&format!("Revert \"Open it\"\n\nThis reverts commit {sha}.")));
        assert!(by("Back it out\n\nThis reverts commit 0123abcd, because it crashes."));
        assert!(!by("Back it out\n\nThis reverts commit 0123abce."));
        assert!(by("Revert \"Open it read-only\""));
        assert!(!by("Revert \"Open it read-only\"\n\nThis reverts commit 0123abce."));
        assert!(!by("Revert \"Open it read-only\"\n\nThis partially reverts commit 0123abcd."));
    }

    #[test]
    fn a_revert_of_a_revert_puts_a_change_back() {
        let fix = || pull(31, "Open it read-only", "Fixes #12");
        let revert = || pull(40, "Revert \"Open it read-only\"", "Reverts octo/cat#31");
        let again = |title| pull(41, title, "Reverts octo/cat#40");
        assert_eq!(changes_in_place(&[fix(), revert()]), [false, true]);
        for title in ["Revert \"Revert \"Open it read-only\"\"", "Reapply \"Open it read-only\"", "Open it again"] {
            assert_eq!(changes_in_place(&[fix(), revert(), again(title)]), [true, false, true], "{title}");
        }
        // What came before a change cannot revert it.
        assert_eq!(changes_in_place(&[revert(), fix()]), [true, true]);
        assert_eq!(changes_in_place(&[]), [false; 0]);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(title in any::<String>(), body in any::<String>()) {
            let text = pull(1, &title, &body);
            prop_assert!(!text.reverts(&text));
        }
    }
}
