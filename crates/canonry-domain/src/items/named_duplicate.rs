//! Finds "Duplicate of #12" in a comment, unless it is negated or quoted.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::markdown::{FoldedText, own_words};
use crate::{ItemNumber, RepoName};

/// The number that a person's text names as the original of a duplicate.
///
/// These forms count: "duplicate of #N", "dup of #N", "dupe of #N", "duped by #N" and "dup #N", also with
/// `owner/name#N` or the item's address if they mean `repo` itself. Text that GitHub shows as quoted, struck, code or
/// folded, or hides, is not the author's words. "not a duplicate of #N" says the opposite.
pub fn named_duplicate(repo: &RepoName, text: &str) -> Option<ItemNumber> {
    let own_words = own_words(text, FoldedText::Omit);
    NAMED.captures_iter(&own_words).find_map(|captures| {
        let named = captures.get(0).expect("invariant: group 0 is the match");
        if is_negated(&own_words[..named.start()]) {
            return None;
        }
        let elsewhere = captures
            .name("repo")
            .or(captures.name("short"))
            .is_some_and(|named| !named.as_str().eq_ignore_ascii_case(&repo.to_string()));
        if elsewhere {
            return None;
        }
        captures["number"].parse().ok().and_then(|number| ItemNumber::new(number).ok())
    })
}

static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi)
        \b (?: duplicate \s+ of | dupe? \s+ of | duped \s+ by | dup )
        \s* :? \s* (?: issue \s+ | pr \s+ | pull \s+ request \s+ )?
        (?: https?://(?:www\.)?github\.com/ (?<repo>[\w.-]+/[\w.-]+) /(?:issues|pull)/
          | (?<short>[\w.-]+/[\w.-]+)? \# )
        (?<number>\d{1,18}) \b";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// A negation up to ten words before the name: "I do not really think that this one here is a duplicate of #3".
static NEGATION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi)
        \b (?: not | never | no | nor | neither | cannot | hardly | without | doubt | unlikely | rather \s+ than | instead \s+ of
            | \w+ n['’]t | (?: is | was | are | were | do | does | did | would | could | should | has | have | ca | wo ) nt ) \b
        (?: \s+ \S+ ){0,10} \s* $";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// The end of a negated clause: "not a bug but a duplicate", "won't fix because it is one". After "as" only a subject
/// begins a new clause: "I would not close it as a duplicate" is a negation.
static CLAUSE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi) [.!?;\n,:—–(] | \s-\s | \b (?: but | because | since | and | though | although ) \b
        | \b (?: as | so ) \s+ (?: it | this | that | i | we ) \b";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// Text that is neither a part of a clause nor a negation.
static ASIDE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)\([^()\n]*\)|[*_~]|\bno doubt\b|\bwithout (?:a |any )?doubt\b|\bnot only\b";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// Only the same clause counts: "No. Duplicate of #3" is not negated.
fn is_negated(before: &str) -> bool {
    let before = ASIDE.replace_all(before, "");
    let clause = CLAUSE.split(&before).last().unwrap_or_default();
    NEGATION.is_match(clause)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::named_duplicate;

    fn named(text: &str) -> Option<i64> {
        named_duplicate(&"o/n".parse().expect("valid"), text).map(|number| number.get())
    }

    #[test]
    fn what_names_a_duplicate() {
        for text in [
            "Duplicate of #12",
            "duplicate of #12.",
            "Closing as a dup of #12, thanks!",
            "dupe of  #12",
            "duped by #12",
            "dup #12",
            "**Duplicate of** nothing… duplicate of: #12",
            "Duplicate of o/n#12",
            "Duplicate of https://github.com/O/N/issues/12",
            "No. Duplicate of #12",
            "> is this a duplicate of #3?\n\nYes, duplicate of #12",
            "Not sure it matters, but it is a duplicate of #12",
            "Not a bug but a duplicate of #12",
            "Not a bug (duplicate of #12)",
            "I won't fix this because it is a duplicate of #12",
            "I can't reproduce it and this is a dup of #12",
            "No need to keep this open as it is a duplicate of #12",
            "Wontfix - duplicate of #12",
            "This is without doubt a duplicate of #12",
            "I want this closed as a duplicate of #12",
        ] {
            assert_eq!(named(text), Some(12), "{text}");
        }
    }

    #[test]
    fn what_does_not() {
        for text in [
            "",
            "See #12",
            "This is not a duplicate of #12",
            "It isn't really a duplicate of #12",
            "I don't think this is a dup of #12",
            "I do not think that this is a duplicate of #12",
            "I don't believe this issue is really a duplicate of #12",
            "I don’t believe this issue is really a duplicate of #12",
            "I wouldn't call this a duplicate of #12",
            "I would not close this as a duplicate of #12",
            "It is neither fixed nor a duplicate of #12",
            "A regression rather than a duplicate of #12",
            "Please keep it open instead of calling it a duplicate of #12",
            "This is **not** a duplicate of #12",
            "This is _not_ a duplicate of #12",
            "I don't think #14 is a duplicate of #12",
            "It is not (as far as I can see) a duplicate of #12",
            "I doubt that this is a duplicate of #12",
            "This isnt a duplicate of #12",
            "> duplicate of #12",
            "`duplicate of #12`",
            "```\nduplicate of #12\n```",
            "duplicate of #0",
            "Duplicate of other/repo#12x",
            "Duplicate of https://github.com/other/repo/issues/12",
            "dupes #12",
            "duplicate of 12",
            "<!-- duplicate of #12 -->",
            "duplicate of #999999999999999999999",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = named(&text);
        }
    }
}
