//! Facts that two items share, as people see them: one fact in a plan or a list, one or two sentences in a comment.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::code_span::code_span;

/// A fact that two items share. The text was written by a stranger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairFact {
    /// The text of an error or a quoted message.
    Message(String),
    /// The place where both fail, as `file:line:column`.
    Place(String),
    /// A function or file in both stack traces.
    Frame(String),
    /// An identifier, an option, an error code.
    Name(String),
    Version(String),
}

/// The maximum number of facts in one comment: more would hide how to object.
const FACTS_SHOWN: usize = 3;
/// The maximum number of words and characters of a message, so that people still read the longest comment.
const MESSAGE_WORDS: usize = 12;
const MESSAGE_CHARACTERS: usize = 110;
/// The maximum number of characters of a name, a frame or a place.
const NAME_CHARACTERS: usize = 60;

impl PairFact {
    /// The facts in an error line that two texts contain: the words that are the same in both, and the place if both
    /// name the same one. Words that every failing program prints prove nothing.
    pub fn of_error(one: &str, other: &str) -> Vec<Self> {
        let [one, other] = [one, other].map(|line| line.trim_start_matches(LIST_MARKS));
        let place = shared_place(one, other);
        let mut words = alike_words(one, other);
        if let Some(place) = &place {
            words.retain(|word| !word.contains(place));
        }
        let message = trimmed(&words.join(" "));
        let message = is_telling(&message).then_some(Self::Message(message));
        message.into_iter().chain(place.map(|place| Self::Place(place.to_owned()))).collect()
    }

    /// Parses the text that [`PairFact`] displays, also in the form of earlier versions.
    pub fn parse(shown: &str) -> Option<Self> {
        SHAPES.iter().find_map(|(before, after, fact)| {
            let text = shown.strip_prefix(before)?.strip_suffix(after)?;
            (!text.is_empty()).then(|| fact(text.to_owned()))
        })
    }

    fn text(&self) -> &str {
        match self {
            Self::Message(text) | Self::Place(text) | Self::Frame(text) | Self::Name(text) | Self::Version(text) => {
                text
            }
        }
    }

    fn as_code(&self) -> Option<String> {
        match self {
            Self::Message(text) => code_span(text, MESSAGE_WORDS, MESSAGE_CHARACTERS),
            // The beginning of a name is another name.
            fact if fact.text().chars().count() > NAME_CHARACTERS || fact.text().contains(char::is_whitespace) => None,
            fact => code_span(fact.text(), 1, NAME_CHARACTERS),
        }
    }
}

type Shape = (&'static str, &'static str, fn(String) -> PairFact);

/// The text around each kind of fact; the first entry of a kind is the one that is displayed.
const SHAPES: [Shape; 9] = [
    ("both show `", "`", PairFact::Message),
    ("both fail at `", "`", PairFact::Place),
    ("both stack traces contain `", "`", PairFact::Frame),
    ("both mention version ", "", PairFact::Version),
    ("both mention `", "`", PairFact::Name),
    ("both quote \"", "\"", PairFact::Message),
    ("both stacks go through `", "`", PairFact::Frame),
    ("both name version ", "", PairFact::Version),
    ("both name `", "`", PairFact::Name),
];

impl fmt::Display for PairFact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = match self {
            Self::Message(_) => ("both show `", "`"),
            Self::Place(_) => ("both fail at `", "`"),
            Self::Frame(_) => ("both stack traces contain `", "`"),
            Self::Name(_) => ("both mention `", "`"),
            Self::Version(_) => ("both mention version ", ""),
        };
        write!(formatter, "{before}{}{after}", self.text())
    }
}

/// The shared facts in one or two sentences, each fact as code; `None` if no fact proves anything. Two reports of one
/// release share its version, which is not evidence.
pub fn evidence_sentences(facts: &[PairFact]) -> Option<String> {
    let message = first_as_code(facts, |fact| matches!(fact, PairFact::Message(_)));
    let place = first_as_code(facts, |fact| matches!(fact, PairFact::Place(_)));
    let left = FACTS_SHOWN - usize::from(message.is_some()) - usize::from(place.is_some());
    let mut sentences = match (&message, &place) {
        (Some(message), Some(place)) => vec![format!("Both show {message} at {place}.")],
        (Some(message), None) => vec![format!("Both show {message}.")],
        (None, Some(place)) => vec![format!("Both fail at {place}.")],
        (None, None) => Vec::new(),
    };
    let said = sentences.concat().to_lowercase();
    let frames = names(facts, &said, left, |fact| matches!(fact, PairFact::Frame(_)));
    let mentioned = names(facts, &said, left, |fact| matches!(fact, PairFact::Name(_)));
    if !frames.is_empty() {
        sentences.push(format!("Both stack traces contain {}.", listed(&frames)));
    } else if !mentioned.is_empty() {
        sentences.push(format!("Both mention {}.", listed(&mentioned)));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn first_as_code(facts: &[PairFact], is_kind: fn(&PairFact) -> bool) -> Option<String> {
    facts.iter().filter(|fact| is_kind(fact)).find_map(PairFact::as_code)
}

/// The first facts of a kind that add something new.
fn names(facts: &[PairFact], said: &str, most: usize, is_kind: fn(&PairFact) -> bool) -> Vec<String> {
    let mut said = said.to_owned();
    let mut names = Vec::new();
    for fact in facts.iter().filter(|fact| is_kind(fact)) {
        let name = fact.text().to_lowercase();
        if names.len() < most
            && !said.contains(&name)
            && let Some(code) = fact.as_code()
        {
            said.push_str(&format!(" {name}"));
            names.push(code);
        }
    }
    names
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\w.+-]+\.[A-Za-z]{1,5}:\d+(?::\d+)?").expect("invariant: the pattern is constant"));

fn shared_place<'a>(one: &'a str, other: &str) -> Option<&'a str> {
    let place = PLACE.find(one)?.as_str();
    (PLACE.find(other)?.as_str() == place).then_some(place)
}

/// The words that both texts contain in the same order, with `…` for the differences.
fn alike_words<'a>(one: &'a str, other: &str) -> Vec<&'a str> {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.split_whitespace().collect(), other.split_whitespace().collect());
    let is_alike: Vec<bool> = if one.len() == other.len() {
        one.iter().zip(&other).map(|(one, other)| one == other).collect()
    } else {
        let begins = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        let ends = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
        (0..one.len()).map(|at| at < begins || at + ends >= one.len()).collect()
    };
    let mut words = Vec::new();
    for (word, is_alike) in one.into_iter().zip(is_alike) {
        match is_alike {
            true => words.push(word),
            false if words.last() == Some(&"…") => {}
            false => words.push("…"),
        }
    }
    words
}

/// The marks before a line in a list, a quote or a table.
const LIST_MARKS: [char; 8] = ['-', '*', '>', '#', '|', ' ', '…', '`'];

/// A message without list marks around it, and without the words that introduced a place.
fn trimmed(message: &str) -> String {
    let mut text = message.trim_start_matches(LIST_MARKS);
    loop {
        let shorter = text.trim_end_matches([' ', ',', ':', ';', '(', '…', '`']);
        let shorter = [" at", " in", " from"].iter().find_map(|word| shorter.strip_suffix(word)).unwrap_or(shorter);
        if shorter == text {
            return text.to_owned();
        }
        text = shorter;
    }
}

/// Words that occur in the messages of every failing program.
const COMMON_WORDS: [&str; 74] = [
    "a",
    "abort",
    "aborted",
    "aborting",
    "an",
    "and",
    "are",
    "at",
    "backtrace",
    "build",
    "call",
    "called",
    "code",
    "command",
    "compile",
    "core",
    "could",
    "crash",
    "crashed",
    "due",
    "dumped",
    "err",
    "error",
    "errors",
    "exception",
    "exit",
    "exited",
    "exiting",
    "expect",
    "fail",
    "failed",
    "failure",
    "fatal",
    "fault",
    "finished",
    "for",
    "found",
    "from",
    "in",
    "info",
    "is",
    "last",
    "main",
    "most",
    "none",
    "not",
    "note",
    "npm",
    "of",
    "on",
    "option",
    "panic",
    "panicked",
    "previous",
    "process",
    "recent",
    "result",
    "run",
    "segmentation",
    "some",
    "stack",
    "status",
    "stderr",
    "stop",
    "test",
    "the",
    "thread",
    "to",
    "trace",
    "traceback",
    "uncaught",
    "unhandled",
    "unwrap",
    "value",
];

/// Whether a message has two specific words, or one that nobody writes in prose.
fn is_telling(message: &str) -> bool {
    let words = message.split(|character: char| !(character.is_alphanumeric() || character == '_'));
    let own: Vec<&str> = words
        .filter(|word| word.chars().count() > 2 && word.contains(char::is_alphabetic))
        .filter(|word| !COMMON_WORDS.contains(&word.to_lowercase().as_str()))
        .collect();
    own.len() >= 2 || own.iter().any(|word| word.contains('_') || word.contains(|one: char| one.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{PairFact, evidence_sentences};

    fn fact(shown: &str) -> PairFact {
        PairFact::parse(shown).unwrap_or_else(|| panic!("{shown}"))
    }

    fn said(facts: &[&str]) -> Option<String> {
        evidence_sentences(&facts.iter().map(|shown| fact(shown)).collect::<Vec<_>>())
    }

    fn of_error(one: &str, other: &str) -> Vec<String> {
        PairFact::of_error(one, other).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_fact_is_read_back_as_it_is_displayed() {
        let text = || "a `b` \"c\"".to_owned();
        for fact in [
            PairFact::Message(text()),
            PairFact::Place("a.rs:1:2".into()),
            PairFact::Frame(text()),
            PairFact::Name(text()),
            PairFact::Version("1.2.3".into()),
        ] {
            assert_eq!(PairFact::parse(&fact.to_string()), Some(fact));
        }
        assert_eq!(fact("both name `lock_file`"), PairFact::Name("lock_file".into()));
        assert_eq!(fact("both quote \"it stops\""), PairFact::Message("it stops".into()));
        assert_eq!(fact("both stacks go through `a::b`"), PairFact::Frame("a::b".into()));
        for other in ["", "both show ``", "the error `E0599`", "both show it"] {
            assert_eq!(PairFact::parse(other), None, "{other}");
        }
    }

    #[test]
    fn an_error_is_shown_as_both_write_it() {
        let panic = "panic: read-only database handle cannot begin an immediate transaction, src/sqlite.rs:88:40";
        assert_eq!(
            of_error(panic, panic),
            [
                "both show `panic: read-only database handle cannot begin an immediate transaction`",
                "both fail at `sqlite.rs:88:40`"
            ]
        );
        assert_eq!(
            of_error("index out of bounds: the len is 3 but", "index out of bounds: the len is 12 but"),
            ["both show `index out of bounds: the len is … but`"]
        );
        assert_eq!(
            of_error("- error: lock_file is gone (12)", "error: lock_file is gone"),
            ["both show `error: lock_file is gone`"]
        );
    }

    #[test]
    fn what_every_failing_program_prints_is_no_evidence() {
        for (one, other) in [
            ("thread 'main' panicked at src/a.rs:7:1:", "thread 'main' panicked at src/b.rs:9:2:"),
            ("error: aborting due to previous error", "error: aborting due to previous error"),
            ("Traceback (most recent call last):", "Traceback (most recent call last):"),
            ("Process exited with exit code 1", "Process exited with exit code 101"),
            ("npm ERR! code 1", "npm ERR! code 1"),
        ] {
            assert_eq!(of_error(one, other), [""; 0], "{one}");
        }
        let here = "thread 'main' panicked at crates/core/src/keyring.rs:118:37:";
        assert_eq!(of_error(here, here), ["both fail at `keyring.rs:118:37`"]);
    }

    #[test]
    fn three_facts_make_one_or_two_sentences() {
        assert_eq!(said(&[]), None);
        assert_eq!(said(&["both mention version 1.2.3"]), None);
        let message = "both show `panic: read-only database handle`";
        let place = "both fail at `sqlite.rs:88:40`";
        let name = "both mention `begin_immediate`";
        insta::assert_snapshot!(said(&[message, place, name]).expect("said"), @"Both show `panic: read-only database handle` at `sqlite.rs:88:40`. Both mention `begin_immediate`.");
        insta::assert_snapshot!(said(&[place]).expect("said"), @"Both fail at `sqlite.rs:88:40`.");
        let frames = ["both stack traces contain `store::begin`", "both stack traces contain `store::open`", name];
        insta::assert_snapshot!(said(&frames).expect("said"), @"Both stack traces contain `store::begin` and `store::open`.");
        let names = ["a.reconnect", "a.state", "a.sta", "b.c", "d.e"].map(|name| format!("both mention `{name}`"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        insta::assert_snapshot!(said(&names).expect("said"), @"Both mention `a.reconnect`, `a.state` and `b.c`.");
        // A name that the message contains adds nothing.
        insta::assert_snapshot!(said(&["both show `lock_file is gone`", "both mention `lock_file`"]).expect("said"), @"Both show `lock_file is gone`.");
    }
}
