//! Evidence: code, error lines, stack frames, versions and quotes that two items share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use canonry_domain::{PairFact, TEXT_LIMIT};
use regex::Regex;

use crate::bag::{Bag, first_chars, term_hash};
use crate::item_index::is_common;

/// Facts of one kind that are kept per text; logs of thousands of lines repeat themselves.
const FACTS_PER_KIND: usize = 64;
/// Characters of a fact that are kept.
const FACT_LIMIT: usize = 160;
/// Shared facts that are shown: a person reads only a few.
const TOLD: usize = 8;

/// The kind of a fact, the strongest evidence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FactKind {
    /// A line that reports an error, without its numbers and paths.
    Error,
    /// A function or location in a stack trace.
    Frame,
    Quote,
    Code,
    Version,
}

/// The facts of a text: the normalised form for comparison, and how the text writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextFacts {
    facts: BTreeMap<(FactKind, String), String>,
}

/// A fact that two texts share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFact {
    pub kind: FactKind,
    /// How the first text writes it.
    pub text: String,
    /// How the second text writes it.
    pub other_text: String,
    pub(crate) compared: String,
}

/// A fact at its position in a text.
pub struct FoundFact<'a> {
    pub kind: FactKind,
    /// The normalised form for comparison.
    pub compared: String,
    pub text: &'a str,
    pub line: &'a str,
    /// Below a line that says where a program panicked: what the program said.
    pub is_headed: bool,
    /// In a code block, or indented like one.
    pub is_code: bool,
    pub(crate) range: Range<usize>,
}

/// Facts that many items of a repository contain, by the hash of their term.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommonFacts {
    terms: BTreeSet<u64>,
}

impl FoundFact<'_> {
    /// Whether this is a name that programmers gave to something, such as `client.reconnect` or `read_all`, or an error
    /// code. In a code block every word is code: `const` and `return` too.
    pub fn is_structured_name(&self) -> bool {
        // A digit behind the dot is a version: `python3.11`.
        let has_member = self.text.as_bytes().windows(2).any(|pair| pair[0] == b'.' && !pair[1].is_ascii_digit());
        self.kind == FactKind::Code && (has_member || is_name(self.text))
    }
}

impl CommonFacts {
    pub fn contains(&self, found: &FoundFact<'_>) -> bool {
        !self.terms.is_empty() && self.terms.contains(&term_hash(&found.kind.term(&found.compared)))
    }

    /// Those that a text contains.
    pub fn among(&self, facts: &TextFacts) -> Self {
        facts.common(|term| self.terms.contains(&term))
    }

    /// The hashes of their terms, sorted. They never change, so they can be stored.
    pub fn terms(&self) -> impl Iterator<Item = u64> + '_ {
        self.terms.iter().copied()
    }
}

/// Counts how many items contain a fact.
#[derive(Debug, Clone, Default)]
pub struct FactCounter {
    holders: HashMap<u64, u32>,
    items: usize,
    counts_all: bool,
}

impl FactCounter {
    /// Counts every fact of every item: 16 bytes for each fact of the repository.
    pub fn of_all() -> Self {
        Self { counts_all: true, ..Self::default() }
    }

    /// Counts these facts too.
    pub fn add(&mut self, facts: &TextFacts) {
        self.holders.extend(facts.terms().map(|term| (term, 0)));
    }

    /// Whether there is nothing to count.
    pub fn is_empty(&self) -> bool {
        !self.counts_all && self.holders.is_empty()
    }

    /// Counts one item with these facts.
    pub fn count(&mut self, facts: &TextFacts) {
        self.items += 1;
        for term in facts.terms() {
            match self.counts_all {
                true => *self.holders.entry(term).or_default() += 1,
                false => {
                    if let Some(holders) = self.holders.get_mut(&term) {
                        *holders += 1;
                    }
                }
            }
        }
    }

    pub fn common(self) -> CommonFacts {
        let items = self.items;
        let common = self.holders.into_iter().filter(|(_, holders)| is_common(*holders as usize, items));
        CommonFacts { terms: common.map(|(term, _)| term).collect() }
    }
}

impl TextFacts {
    /// Finds the facts of a text, within the limit of its raw representation.
    pub fn of(text: &str) -> Self {
        Self::of_which(text, |_| true)
    }

    /// Finds those facts of a text for which `is_wanted` returns true.
    pub fn of_which(text: &str, is_wanted: impl Fn(&FoundFact<'_>) -> bool) -> Self {
        let mut facts = Self::default();
        for_each_fact(text, |found| {
            if is_wanted(&found) {
                facts.add(found);
            }
        });
        facts
    }

    /// The facts whose term is common, by its hash.
    pub(crate) fn common(&self, is_common: impl Fn(u64) -> bool) -> CommonFacts {
        CommonFacts { terms: self.terms().filter(|term| is_common(*term)).collect() }
    }

    fn terms(&self) -> impl Iterator<Item = u64> + '_ {
        self.facts.keys().map(|(kind, compared)| term_hash(&kind.term(compared)))
    }

    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// The facts that another text lacks, as this text writes them: the strongest kind first, in each kind the longest.
    pub fn missing_in(&self, other: &Self) -> Vec<&str> {
        let missing = self.facts.iter().filter(|(fact, _)| !other.facts.contains_key(*fact));
        let mut missing: Vec<(FactKind, &str)> = missing.map(|((kind, _), text)| (*kind, text.as_str())).collect();
        missing.sort_by_key(|(kind, text)| (*kind, std::cmp::Reverse(text.len())));
        missing.into_iter().map(|(_, text)| text).collect()
    }

    /// Whether both texts contain a fact of this kind. [`shared_facts`] lists only the most telling ones.
    pub fn shares(&self, kind: FactKind, other: &Self) -> bool {
        self.facts.keys().any(|fact| fact.0 == kind && other.facts.contains_key(fact))
    }

    /// The facts as terms. An error line also counts by every three consecutive words, because two reports seldom
    /// write the same error identically.
    pub fn bag(&self) -> Bag {
        let mut terms = Vec::new();
        for (kind, compared) in self.facts.keys() {
            terms.push(kind.term(compared));
            if *kind == FactKind::Error {
                let words: Vec<&str> = compared.split(' ').collect();
                terms.extend(words.windows(3).map(|three| format!("3:{}", three.join(" "))));
            }
        }
        Bag::of_terms(terms.iter().map(String::as_str))
    }

    fn add(&mut self, FoundFact { kind, compared, text, .. }: FoundFact<'_>) {
        let of_kind = self.facts.range((kind, String::new())..).take_while(|((other, _), _)| *other == kind).count();
        if of_kind < FACTS_PER_KIND {
            self.facts.entry((kind, compared)).or_insert_with(|| first_chars(text, FACT_LIMIT).to_owned());
        }
    }
}

/// Calls `found` for every fact of a text with its position, within the limit of its raw representation.
pub(crate) fn for_each_fact<'a>(text: &'a str, mut found: impl FnMut(FoundFact<'a>)) {
    let (mut fenced, mut is_headed) = (false, false);
    for line in first_chars(text, TEXT_LIMIT).lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            is_headed = false;
            continue;
        }
        let is_code = fenced || line.starts_with("    ") || line.starts_with('\t');
        facts_of_line(line, is_code, is_headed, |kind, compared, shown| {
            // Every shown text is a slice of `text`.
            let start = shown.as_ptr() as usize - text.as_ptr() as usize;
            let compared = first_chars(compared, FACT_LIMIT).to_owned();
            let range = start..start + shown.len();
            found(FoundFact { kind, compared, text: &text[range.clone()], line, is_headed, is_code, range });
        });
        is_headed = PANIC_PLACE.is_match(line);
    }
}

fn facts_of_line(line: &str, is_code: bool, is_headed: bool, mut found: impl FnMut(FactKind, &str, &str)) {
    if let Some(frame) = frame(line) {
        found(FactKind::Frame, &frame.to_lowercase(), frame);
        return;
    }
    if is_headed || ERROR.is_match(line) {
        let shown = line.trim().trim_matches('`');
        // Every panic of a thread says the same but for the place.
        let compared = match PANIC_PLACE.captures(line) {
            Some(place) => format!("panicked at {}", place[1].to_lowercase()),
            None => error_words(shown),
        };
        if compared.contains(' ') && compared.len() >= 12 {
            found(FactKind::Error, &compared, shown);
        }
    }
    let mut spans = line.split('`').enumerate();
    for (_, span) in spans.by_ref().filter(|(at, _)| is_code || at % 2 == 1) {
        for identifier in IDENTIFIER.find_iter(span) {
            found(FactKind::Code, &identifier.as_str().to_lowercase(), identifier.as_str());
        }
    }
    if !is_code {
        for identifier in IDENTIFIER.find_iter(line).filter(|found| is_structured(found.as_str())) {
            found(FactKind::Code, &identifier.as_str().to_lowercase(), identifier.as_str());
        }
        for quote in QUOTE.captures_iter(line).filter_map(|quote| quote.get(1)) {
            found(FactKind::Quote, &quote.as_str().to_lowercase(), quote.as_str());
        }
    }
    for version in VERSION.find_iter(line) {
        found(FactKind::Version, version.as_str().trim_start_matches('v'), version.as_str());
    }
}

/// The facts that two texts share, the strongest first: by kind, then by length.
pub fn shared_facts(one: &TextFacts, other: &TextFacts) -> Vec<SharedFact> {
    let mut shared: Vec<SharedFact> = one
        .facts
        .iter()
        .filter_map(|(key, text)| {
            let ((kind, compared), other_text) = (key.clone(), other.facts.get(key)?.clone());
            Some(SharedFact { kind, text: text.clone(), other_text, compared })
        })
        .collect();
    shared.sort_by(|one, other| {
        one.kind.cmp(&other.kind).then(other.text.len().cmp(&one.text.len())).then(one.text.cmp(&other.text))
    });
    shared.truncate(TOLD);
    shared
}

impl fmt::Display for SharedFact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fact = match self.kind {
            FactKind::Error | FactKind::Quote => PairFact::Message,
            FactKind::Frame => PairFact::Frame,
            FactKind::Code => PairFact::Name,
            FactKind::Version => PairFact::Version,
        };
        fact(self.text.clone()).fmt(formatter)
    }
}

impl FactKind {
    /// The term that a fact is indexed by.
    fn term(self, compared: &str) -> String {
        let letter = match self {
            Self::Error => 'e',
            Self::Frame => 'f',
            Self::Quote => 'q',
            Self::Code => 'c',
            Self::Version => 'v',
        };
        format!("{letter}:{compared}")
    }
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static ERROR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\berror\b|error[:\[]|panicked|\bpanic\b|exception|\bfail(?:ed|ure|s)?\b|assert|segfault|\bfault\b|\babort(?:ed)?\b|\bwarning:|cannot|undefined|unexpected|denied|not found|overflow|deadlock|traceback|fatal",
    )
});

/// A line that says where a program panicked; what it said is in the next line: `thread 'main' panicked at src/a.rs:88:40:`.
static PANIC_PLACE: LazyLock<Regex> = LazyLock::new(|| pattern(r"panicked at (?:\S*[/\\])?([^\s/\\]+:\d+:\d+):\s*$"));

/// An identifier of at least three characters, with its qualifying path.
static IDENTIFIER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[A-Za-z_][A-Za-z0-9_]{2,}(?:(?:::|[./#-])[A-Za-z0-9_]+)*[!?]?"));

static QUOTE: LazyLock<Regex> = LazyLock::new(|| pattern("[\"“]([^\"“”]{8,120})[\"”]"));

static VERSION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\bv?[0-9]{1,4}\.[0-9]{1,5}(?:\.[0-9]{1,6})+(?:-[A-Za-z0-9.]{1,20})?\b"));

/// Paths, addresses and numbers, which differ between two reports of one error.
static VARIES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\S*[/\\]\S*|0x[0-9A-Fa-f]+|\b[0-9a-fA-F]{8,}\b|[0-9]+"));

/// The function or file of a stack frame, in the notations of the common languages.
static FRAMES: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    [
        // Java, JavaScript, .NET: at a.b.C.method(File.java:12), at f (file.js:1:2)
        r"^\s*at\s+(?:new\s+|async\s+)?([\w$.<>/\[\]]+)\s*\(",
        // Python: File "a/b.py", line 12, in f
        r#"^\s*File ".*?([^/\\"]+)", line \d+(?:, in \S+)?"#,
        // Rust: 4: 0x7f… - std::rt::main, or 4: std::rt::main
        r"^\s*\d+:\s+(?:0x[0-9a-f]+\s+-\s+)?([A-Za-z_<][\w:<>$&]*::[\w:<>$&{}]+)",
        // gdb and lldb: #3 0x… in f () from …
        r"^\s*#\d+:?\s+(?:0x[0-9a-f]+\s+in\s+)?([A-Za-z_~][\w:~<>]*)\s*\(",
        // Ruby, Go: a/b.rb:12:in `f'
        r"^\s*(?:from\s+)?\S*?([\w-]+\.(?:rb|go|php|ex|pl)):\d+",
    ]
    .map(pattern)
});

fn frame(line: &str) -> Option<&str> {
    FRAMES.iter().find_map(|frame| frame.captures(line)?.get(1)).map(|found| found.as_str())
}

/// The words of an error line that do not vary from report to report.
fn error_words(line: &str) -> String {
    let stable = VARIES.replace_all(line, " ");
    let words: Vec<String> = stable
        .split(|character: char| !character.is_alphabetic() && character != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

/// Whether a word in prose is an identifier, a path or an error code, not a word of natural language.
fn is_structured(word: &str) -> bool {
    is_name(word) || word.contains('/')
}

/// Whether a word is written like an identifier of several words, or is an error code.
fn is_name(word: &str) -> bool {
    let bytes = word.as_bytes();
    let camel = bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let error_code = digits >= 3
        && bytes[0].is_ascii_uppercase()
        && bytes.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'-');
    camel || error_code || word.contains("::") || word.trim_matches('_').contains('_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{FactKind, TextFacts, shared_facts};

    fn shared(one: &str, other: &str) -> Vec<String> {
        shared_facts(&TextFacts::of(one), &TextFacts::of(other)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_same_error_is_told_without_its_numbers() {
        let one = "It dies:\n```\nthread 'main' panicked at 'index out of bounds: the len is 3', src/a.rs:7\n```";
        let other = "thread 'main' panicked at 'index out of bounds: the len is 12', lib/b.rs:9";
        assert_eq!(
            shared(one, other),
            ["both show `thread 'main' panicked at 'index out of bounds: the len is 3', src/a.rs:7`"]
        );
    }

    #[test]
    fn code_codes_versions_and_quotes_are_found() {
        let one = "`HashMap::entry` gives E0308 on v1.30.0, it says \"expected struct, found enum\" for my_value";
        let other =
            "error with HashMap::entry:\nE0308\n\n    my_value\n\nseen on 1.30.0: \"expected struct, found enum\"";
        assert_eq!(
            shared(one, other),
            [
                "both show `expected struct, found enum`",
                "both mention `HashMap::entry`",
                "both mention `my_value`",
                "both mention `E0308`",
                "both mention version v1.30.0",
            ]
        );
    }

    #[test]
    fn frames_of_the_common_languages_are_found() {
        for (line, expected) in [
            ("    at org.apache.hadoop.fs.FileSystem.get(FileSystem.java:372)", "org.apache.hadoop.fs.FileSystem.get"),
            ("    at Object.parse (native)", "Object.parse"),
            ("  File \"/usr/lib/python3/site.py\", line 12, in main", "site.py"),
            ("   4:     0x7f8a - std::panicking::begin_panic", "std::panicking::begin_panic"),
            ("#3  0x00007f in rust_begin_unwind () from /lib/x.so", "rust_begin_unwind"),
            ("/app/models/user.rb:12:in `save'", "user.rb"),
        ] {
            assert_eq!(shared(line, line), [format!("both stack traces contain `{expected}`")], "{line}");
        }
    }

    #[test]
    fn unwanted_facts_are_left_out_by_their_lines() {
        let text = "  File \"/usr/lib/python3/site.py\", line 12, in main\n  File \"/app/run.py\", line 3, in main";
        let own = TextFacts::of_which(text, |found| !found.line.contains("/usr/lib/"));
        let shared: Vec<String> = shared_facts(&own, &TextFacts::of(text)).into_iter().map(|fact| fact.text).collect();
        assert_eq!(shared, ["run.py"]);
    }

    #[test]
    fn names_in_code_are_told_from_its_words() {
        let code = "```\nconst rows = client.reconnect(read_all);\nreturn std::fs E0308 rowCount python3.11 value\n```\n\
            \"expected struct, found enum\" and/or src/main";
        let names = TextFacts::of_which(code, |found| found.is_structured_name());
        let mut shared: Vec<String> = shared_facts(&names, &names).into_iter().map(|fact| fact.text).collect();
        shared.sort();
        assert_eq!(shared, ["E0308", "client.reconnect", "read_all", "rowCount", "std::fs"]);
    }

    #[test]
    fn a_panic_is_its_place_and_the_line_below() {
        let panic = |place: &str, message: &str| format!("```\nthread 'loader' panicked at {place}:\n{message}\n```");
        let message = "the table is shorter than the highest index a cell refers to";
        let one = TextFacts::of(&panic("src/xlsx/strings.rs:58:21", message));
        let told = |other: &str| {
            shared_facts(&one, &TextFacts::of(other)).into_iter().map(|fact| (fact.kind, fact.text)).collect::<Vec<_>>()
        };
        let errors = |found: &[(FactKind, String)]| found.iter().filter(|(kind, _)| *kind == FactKind::Error).count();
        assert_eq!(errors(&told(&panic("C:\\b\\strings.rs:58:21", message))), 2);
        assert_eq!(errors(&told(&panic("src/sort.rs:9:4", message))), 1);
        assert_eq!(errors(&told(&panic("src/sort.rs:9:4", "a row has no key to sort by"))), 0);
        // Without the line above it is a sentence like any other.
        assert_eq!(errors(&told(message)), 0);
    }

    #[test]
    fn prose_is_no_evidence() {
        assert!(TextFacts::of("When I open the window, it is too small. Please make it larger.").is_empty());
        assert!(TextFacts::of("").is_empty());
    }

    #[test]
    fn long_logs_are_bounded() {
        let log: String = (0..5_000).map(|n| format!("error: the thing_{n} failed here\n")).collect();
        assert!(TextFacts::of(&log).facts.len() <= 3 * super::FACTS_PER_KIND);
    }

    proptest! {
        #[test]
        fn any_text_shares_its_own_facts_and_nothing_panics(one in any::<String>(), other in "[ -~\n`\"]{0,200}") {
            let (first, second) = (TextFacts::of(&one), TextFacts::of(&other));
            prop_assert!(shared_facts(&first, &second).len() <= super::TOLD);
            prop_assert_eq!(shared_facts(&second, &second).is_empty(), second.is_empty());
        }
    }
}
