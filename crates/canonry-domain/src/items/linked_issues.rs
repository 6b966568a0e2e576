//! Finds the issues that a pull request says it fixes.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::markdown::{FoldedText, own_words};
use crate::{ChangeText, ItemNumber, RepoName};

/// The issues of `repo` that a pull request's text says it closes, fixes or resolves.
///
/// GitHub's keywords count, with `#N`, `owner/name#N` or an address; quotes and code do not. In "fixes #1, #2 and #3"
/// all three count although GitHub links only the first: the result keeps duplicates open that somebody works on, so
/// one too many is better than one too few.
pub fn fixed_issues(repo: &RepoName, text: &str) -> BTreeSet<ItemNumber> {
    numbers_after(&FIXING, repo, &own_words(text, FoldedText::Keep))
}

/// The pull requests of `repo` that the author's own words say are reverted, at the beginning of a line: "Reverts #31".
/// What is reverted in part is not among them.
pub fn reverted_pulls(repo: &RepoName, own_words: &str) -> BTreeSet<ItemNumber> {
    numbers_after(&REVERTING, repo, own_words)
}

fn numbers_after(pattern: &Regex, repo: &RepoName, own_words: &str) -> BTreeSet<ItemNumber> {
    let mut numbers = BTreeSet::new();
    for list in pattern.captures_iter(own_words) {
        for reference in REFERENCE.captures_iter(&list["list"]) {
            let elsewhere = reference
                .name("repo")
                .or(reference.name("short"))
                .is_some_and(|named| !named.as_str().eq_ignore_ascii_case(&repo.to_string()));
            let number = reference["number"].parse().ok().and_then(|number| ItemNumber::new(number).ok());
            numbers.extend(number.filter(|_| !elsewhere));
        }
    }
    numbers
}

/// The issues that a commit of the default branch says it fixes. A commit with which GitHub merged a pull request says
/// so for that pull request, which is known by itself. A revert fixes nothing.
pub fn issues_fixed_by_commit(repo: &RepoName, message: &str) -> BTreeSet<ItemNumber> {
    let subject = message.lines().next().unwrap_or_default();
    if MERGING.is_match(subject.trim_end()) {
        return BTreeSet::new();
    }
    ChangeText::of_commit(repo, "", message).fixed_issues().clone()
}

static MERGING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^Merge pull request #\d+ |\(#\d+\)$").expect("invariant: the pattern is constant"));

const REFERENCE_PATTERN: &str = r"(?:https?://(?:www\.)?github\.com/(?<repo>[\w.-]+/[\w.-]+)/(?:issues|pull)/|(?<short>[\w.-]+/[\w.-]+)?\#|GH-)(?<number>\d{1,18})\b";

static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("(?i){REFERENCE_PATTERN}")).expect("invariant: the pattern is constant"));

static FIXING: LazyLock<Regex> =
    LazyLock::new(|| list_after(r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b\s*:?\s*(?:issues?\s+)?"));

static REVERTING: LazyLock<Regex> = LazyLock::new(|| {
    list_after(
        r"(?im)^\W*(?:this\s+(?:pr\s+|pull\s+request\s+|commit\s+|change\s+)?)?reverts?\b\s*:?\s*(?:(?:pr|pull\s+request|merge\s+of|changes?\s+(?:of|in|from))s?\s+)?",
    )
});

/// References, separated by commas or "and", that follow these words.
fn list_after(words: &str) -> Regex {
    // The list pattern has no named groups: a pattern may name a group only once.
    let unnamed = REFERENCE_PATTERN.replace("?<repo>", "?:").replace("?<short>", "?:").replace("?<number>", "?:");
    let pattern = format!(r"{words}(?<list>{unnamed}(?:(?:\s*,\s*|\s+)(?:(?:and|&)\s+)?{unnamed})*)");
    Regex::new(&pattern).expect("invariant: the pattern is constant")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{fixed_issues, issues_fixed_by_commit};

    fn fixed(text: &str) -> Vec<i64> {
        fixed_issues(&"o/n".parse().expect("valid"), text).into_iter().map(|number| number.get()).collect()
    }

    #[test]
    fn a_commit_that_merges_a_pull_request_fixes_nothing_by_itself() {
        for (message, expected) in [
            ("Open it read-only\n\nFixes #12", vec![12]),
            ("Fix #12: open it read-only", vec![12]),
            ("Fix the lock (see #7)\n\nCloses #12, #13", vec![12, 13]),
            ("Open it read-only (#31)\n\nFixes #12", vec![]),
            ("Merge pull request #31 from ann/fix\n\nFixes #12", vec![]),
            ("Mention #12", vec![]),
            ("Revert \"Fix #12: open it read-only\"\n\nThis reverts commit 0123abcd.", vec![]),
            ("Reapply \"Fix #12: open it read-only\"\n\nThis reverts commit 0123abcd.", vec![12]),
            ("", vec![]),
        ] {
            let fixed = issues_fixed_by_commit(&"o/n".parse().expect("valid"), message);
            assert_eq!(fixed.into_iter().map(|number| number.get()).collect::<Vec<_>>(), expected, "{message}");
        }
    }

    #[test]
    fn every_keyword_and_reference_counts() {
        for word in ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "Resolved"] {
            assert_eq!(fixed(&format!("{word} #12")), [12], "{word}");
        }
        for text in [
            "Fixes: #12",
            "This fixes o/n#12.",
            "closes https://github.com/O/N/issues/12",
            "fixes GH-12",
            "Fix issue #12",
            "> fixes #3\n\nfixes #12",
        ] {
            assert_eq!(fixed(text), [12], "{text}");
        }
        assert_eq!(fixed("Fixes #1, #2 and #3; resolves #4"), [1, 2, 3, 4]);
        assert_eq!(fixed("Fixes #1, fixes #2, and closes #3"), [1, 2, 3]);
    }

    #[test]
    fn what_fixes_nothing() {
        for text in [
            "",
            "See #12",
            "prefixes #12",
            "> fixes #12",
            "`fixes #12`",
            "```\nfixes #12\n```",
            "<!-- fixes #12 -->",
            "fixes other/repo#12",
            "fixes https://github.com/other/repo/issues/12",
            "fixes #0",
            "fixes #12abc",
            "fixes the crash of #12",
        ] {
            assert_eq!(fixed(text), [0_i64; 0], "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = fixed(&text);
        }
    }
}
