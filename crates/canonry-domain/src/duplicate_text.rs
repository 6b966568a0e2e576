//! "Duplicate of #12" in a comment, unless negated or quoted.

use std::sync::LazyLock;

use regex::Regex;

use crate::item::ItemNumber;
use crate::repo_name::RepoName;

/// The number that a text by a person names as the original of a duplicate.
///
/// Counted are "duplicate of #N", "dup of #N", "dupe of #N", "duped by #N" and "dup #N", also with
/// `owner/name#N` or the item's address when they mean `repo` itself. Quoted lines and code are
/// somebody else's words; "not a duplicate of #N" says the opposite.
pub fn named_duplicate(repo: &RepoName, text: &str) -> Option<ItemNumber> {
    let own_words = own_words(text);
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

static NEGATION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)(?:\b(?:not|never|no|nor|isn['’]?t|wasn['’]?t|aren['’]?t|doesn['’]?t|don['’]?t|cannot|can['’]?t|hardly|without)\b)(?:\s+[\w'’*_-]+){0,4}\s*[*_]*$";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// Looks back within the sentence only: "No. Duplicate of #3" is a yes.
fn is_negated(before: &str) -> bool {
    let sentence = before.rsplit(['.', '!', '?', ';', '\n', ',', ':', '—']).next().unwrap_or(before);
    NEGATION.is_match(sentence)
}

/// The text without quoted lines, code blocks, code spans and HTML comments.
pub(crate) fn own_words(text: &str) -> String {
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?s)<!--.*?-->|```.*?(?:```|\z)|~~~.*?(?:~~~|\z)|`[^`\n]*`")
            .expect("invariant: the pattern is constant")
    });
    let unquoted: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('>')).collect();
    CODE.replace_all(&unquoted.join("\n"), " ").into_owned()
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
