//! Extracts from one item what the local judge reads: the author's own words, and the facts in them.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use canonry_domain::{BODY_LIMIT, PullChanges, is_failure_header, is_failure_helper, is_library_code};
use canonry_retrieval::{FactKind, FoundFact, TextFacts, tokens};
use regex::Regex;

use crate::judge::local::answer::LocalText;
use crate::judge::local::titles::Title;

pub(crate) struct LocalFacts {
    pub(crate) title: Title,
    /// The distinct words of the title and of what the author wrote below it.
    pub(crate) words: HashSet<String>,
    /// Hashes of every three words in a row that the author wrote.
    pub(crate) triples: HashSet<u64>,
    /// How many words the author wrote, title included.
    pub(crate) length: usize,
    pub(crate) facts: TextFacts,
    /// Those of the facts that a program printed: frames, and errors in the form that programs write.
    pub(crate) printed: TextFacts,
    /// All versions, also those that many items of the repository name: whether two differ is about the pair.
    pub(crate) versions: TextFacts,
    /// Places in source files, such as `collect.rs:1040`. The first lines of a file are left out: too many items name
    /// them.
    pub(crate) places: BTreeSet<String>,
    /// Changed paths and changed lines of a pull request; empty for issues.
    pub(crate) paths: HashSet<String>,
    pub(crate) lines: HashSet<String>,
}

impl LocalFacts {
    pub(crate) fn of(text: &LocalText<'_>) -> Self {
        let title = Title::of(text.title);
        let body = own_text(first_chars(text.body, BODY_LIMIT));
        let mut all = title.words.clone();
        all.extend(tokens(&body));
        let triples = all.windows(3).map(hash).collect();
        let changes = text.changes;
        let whole = format!("{}\n{body}", text.title);
        let is_rare =
            |found: &FoundFact<'_>| is_telling(found) && !text.common.is_some_and(|common| common.contains(found));
        Self {
            length: all.len(),
            words: all.into_iter().collect(),
            triples,
            title,
            facts: TextFacts::of_which(&whole, is_rare),
            printed: TextFacts::of_which(&whole, |found| is_rare(found) && is_printed(found)),
            versions: TextFacts::of_which(&whole, |found| found.kind == FactKind::Version),
            places: places(&body),
            paths: changes.map(|changes| changes.files.iter().take(PATHS).cloned().collect()).unwrap_or_default(),
            lines: changes.map(changed_lines).unwrap_or_default(),
        }
    }
}

/// Whether a fact says what failed, not only that something did.
pub(crate) fn is_telling(found: &FoundFact<'_>) -> bool {
    let is_helper = matches!(found.kind, FactKind::Frame | FactKind::Code) && is_failure_helper(found.text);
    !is_helper && !is_failure_header(found.line)
}

/// Whether a program printed this. "Paste the error here" is a form, and "the app cannot connect" is a person.
pub(crate) fn is_printed(found: &FoundFact<'_>) -> bool {
    match found.kind {
        FactKind::Frame => !is_library_code(None, found.text, found.line),
        FactKind::Error => {
            MESSAGE.is_match(found.line)
                || PLACE.is_match(found.line)
                || found.is_headed
                || found.is_code && LEVEL.is_match(found.line)
        }
        FactKind::Quote | FactKind::Code | FactKind::Version => false,
    }
}

/// The maximum number of paths that are compared; a larger change touches the whole tree.
const PATHS: usize = 300;
/// The number of characters of a diff that are compared.
const DIFF: usize = 20_000;
/// Shorter changed lines are brackets and `else`: many changes contain those.
const LINE: usize = 8;

fn changed_lines(changes: &PullChanges) -> HashSet<String> {
    let bare = |line: &str| line.split_whitespace().collect::<String>();
    first_chars(&changes.diff, DIFF).lines().map(bare).filter(|line| line.len() > LINE).collect()
}

/// A body without what a template contains: comments, headings, check lists, labels without an answer, and the
/// sentences of GitHub's default forms.
pub(crate) fn own_text(body: &str) -> String {
    let body = COMMENT.replace_all(body, " ");
    let mut own = String::with_capacity(body.len());
    let mut fenced = false;
    for line in body.lines() {
        let bare = line.trim();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && FORM.is_match(bare) {
            continue;
        }
        own.push_str(line);
        own.push('\n');
    }
    own
}

/// The maximum for one text: a trace of thousands of frames repeats itself.
const KEPT: usize = 64;
/// Every small example fails at lines before this one.
const FIRST_LINE: u32 = 30;

fn places(body: &str) -> BTreeSet<String> {
    let place = |found: regex::Captures<'_>| {
        let line: u32 = found[2].parse().ok()?;
        (line >= FIRST_LINE).then(|| format!("{}:{line}", &found[1]))
    };
    // Every failure of a project runs through the same lines of its test framework.
    let own_lines = first_chars(body, BODY_LIMIT).lines().filter(|line| !is_library_code(None, "", line));
    own_lines.flat_map(|line| PLACE.captures_iter(line)).filter_map(place).take(KEPT).collect()
}

fn hash(words: &[String]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in words.iter().flat_map(|word| word.bytes().chain([b' '])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

pub(crate) fn first_chars(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\b([\w-]+\.(?:rs|c|cc|cpp|h|hpp|go|py|rb|js|ts|tsx|java|kt|cs|swift|php|ex|m)):(\d{1,6})\b")
});
/// A form that only programs write, also where nobody marked it as code.
static MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)^[\s>*`-]*(?:(?:\S+\s+){0,3}[\w.]*[A-Za-z](?:Error|Exception)|[Pp]anic|[Ff]atal(?:\serror)?|[Ee]rror\[\w+\]):\s
        | panicked\ at | \bSIG(?:SEGV|ABRT|KILL|BUS|ILL)\b | [Ss]egmentation\ fault",
    )
});
/// The level before a message. In prose it may be the label of a form; without a colon or capitals it may be a word of the
/// form in a code block.
static LEVEL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\W*(?:\S+\s+){0,3}(?:(?i:error|fatal|panic|failed)(?:\]?:|\])\s|(?:ERROR|FATAL|PANIC|FAILED)\s)")
});
static COMMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)<!--.*?(?:-->|$)"));
static FORM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?ix)^\#{1,6}\s | ^\*\*[^*]{1,80}\*\*:?$ | ^__[^_]{1,80}__:?$ | ^[-*+]?\s*\[[\sx]\]\s | ^[-*+]?\s*[^:\s](?:[^:]{0,60}):$
        | ^(?:no\ response|_no\ response_|n/a|none)\.?$
        | ^(?:a\ clear\ and\ concise|if\ applicable,|add\ any\ other|please\ (?:complete|fill|describe|provide)|is\ your\ feature\ request\ related|steps\ to\ reproduce\ the\ behavior)",
    )
});

#[cfg(test)]
mod tests {
    use super::{own_text, places};

    #[test]
    fn places_in_libraries_are_left_out() {
        let trace = "/usr/lib/python3.11/unittest/case.py:633: in run\n\
            .venv/lib/python3.11/site-packages/flask/app.py:1478: in wsgi_app\ntests/test_export.py:88: AssertionError\n\
            at Module._load (node:internal/modules/loader.js:822:12)";
        assert_eq!(places(trace).into_iter().collect::<Vec<_>>(), ["test_export.py:88"]);
    }

    #[test]
    fn what_a_form_put_there_is_not_the_authors() {
        let body = "<!-- Fill this in -->\n## Describe the bug\nA clear and concise description of what the bug is.\n\
            **Steps**\n- [x] I searched\n- OS:\n- Version: 1.2\nIt crashes.\n```\n# not a heading\n```\n_No response_\n";
        assert_eq!(own_text(body), " \n- Version: 1.2\nIt crashes.\n```\n# not a heading\n```\n");
    }
}
