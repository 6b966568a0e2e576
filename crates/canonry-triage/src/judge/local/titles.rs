//! Compares two titles: the same, the next of a series, or siblings that differ by one name.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use canonry_domain::TITLE_LIMIT;
use canonry_retrieval::tokens;
use regex::Regex;

use crate::judge::local::features::overlap;
use crate::judge::local::item_facts::first_chars;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Title {
    /// The words, in order.
    pub(crate) words: Vec<String>,
    /// The numbers, in order. A word for a small number counts as one.
    numbers: Vec<String>,
    names: BTreeSet<String>,
}

/// The result of comparing two titles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Titles {
    /// The words in both divided by those in either.
    pub(crate) overlap: f64,
    /// The same words and numbers in the same order.
    pub(crate) same: bool,
    pub(crate) shortest: usize,
    /// The same except for numbers: the next of a series, or another version.
    pub(crate) numbers_differ: bool,
    /// The same except for one word in the same place.
    pub(crate) one_word_differs: bool,
    /// Each contains words that the other does not.
    pub(crate) each_own: bool,
    /// Each names code that the other does not.
    pub(crate) names_differ: bool,
}

impl Title {
    pub(crate) fn of(title: &str) -> Self {
        let title = first_chars(title, TITLE_LIMIT);
        let number = |word: &str| word.parse::<u64>().map_or_else(|_| word.to_owned(), |number| number.to_string());
        let lower = title.to_lowercase();
        let spoken = lower.split(|character: char| !character.is_alphanumeric());
        let numbers = spoken.filter(|word| SMALL.contains(word) || word.bytes().any(|byte| byte.is_ascii_digit()));
        Self { words: tokens(title), numbers: numbers.map(number).collect(), names: names(title) }
    }
}

impl Titles {
    pub(crate) fn of(own: &Title, other: &Title) -> Self {
        let [one, two]: [HashSet<&String>; 2] = [own, other].map(|title| title.words.iter().collect());
        let [one_bare, two_bare]: [HashSet<&String>; 2] = [own, other].map(|title| {
            title.words.iter().filter(|word| !is_counted(word) && !COUNTERS.contains(&word.as_str())).collect()
        });
        let replaced = own.words.iter().zip(&other.words).filter(|(one, two)| one != two).count();
        Self {
            overlap: overlap(&one, &two),
            same: own.words == other.words && own.numbers == other.numbers && own.words.len() > 1,
            shortest: own.words.len().min(other.words.len()),
            numbers_differ: own.numbers != other.numbers
                && (one_bare == two_bare || overlap(&one_bare, &two_bare) >= SERIES),
            one_word_differs: own.words.len() == other.words.len() && own.words.len() > 2 && replaced == 1,
            each_own: !one.is_subset(&two) && !two.is_subset(&one),
            names_differ: !own.names.is_subset(&other.names) && !other.names.is_subset(&own.names),
        }
    }
}

/// Titles of one series have at least this overlap of words.
const SERIES: f64 = 0.8;
/// Words for numbers.
const SMALL: [&str; 14] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "ii", "iii", "iv", "vi"];
/// Words that only introduce a number.
const COUNTERS: [&str; 10] =
    ["part", "phase", "step", "round", "week", "episode", "volume", "version", "release", "milestone"];

fn is_counted(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit()) || SMALL.contains(&word)
}

/// Names of code: quoted text, and words in the form of code.
fn names(title: &str) -> BTreeSet<String> {
    let quoted = title.split(['`', '"']).skip(1).step_by(2).map(str::trim);
    let found = NAME.find_iter(title).map(|found| found.as_str());
    quoted.chain(found).filter(|name| !name.is_empty()).map(str::to_lowercase).collect()
}

/// `snake_case`, `CamelCase`, `a::b`, `a.b`, `E0308`, `--flag`.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x)\b[A-Za-z]\w*(?:(?:::|\.|/|->)\w+)+ | \b[A-Za-z0-9]+_\w+ | \b[a-z]+[A-Z]\w* | \b[A-Z][a-z0-9]+[A-Z]\w*
        | \b[A-Z]{1,3}[0-9]{2,}\b | \B--?[a-z][\w-]{1,}";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

#[cfg(test)]
mod tests {
    use super::{Title, Titles, names};

    fn compared(one: &str, other: &str) -> Titles {
        Titles::of(&Title::of(one), &Title::of(other))
    }

    #[test]
    fn the_next_of_a_series_differs_by_its_number() {
        for (one, other) in [
            ("Tracking issue for lifetimes 1/5", "Tracking issue for lifetimes 2/5"),
            ("Wrong code in a match", "Wrong code in a match, part 2"),
            ("Release 1.2.0", "Release 1.3.0"),
            ("Dockerfile for building on Centos 7", "Dockerfile for building on Centos 8"),
            ("Phase two of the move", "Phase three of the move"),
        ] {
            let titles = compared(one, other);
            assert!(titles.numbers_differ && !titles.same, "{one}: {titles:?}");
        }
        assert!(!compared("Crash in 1.2.0", "crash in 1.2.0").numbers_differ);
        assert!(!compared("Crash in parser on 32 bit", "Window too small on 64 bit").numbers_differ);
    }

    #[test]
    fn siblings_differ_by_a_word_or_a_name() {
        let siblings = compared("Implement Clone for Foo", "Implement Clone for Bar");
        assert!(siblings.one_word_differs && siblings.each_own);
        let more = compared("Menu is broken", "Menu is broken on resize");
        assert!(!more.each_own && !more.one_word_differs);
        assert!(compared("`a_b` fails", "`c_d` fails").names_differ);
        assert!(compared("Typos in tutorial", "typo in Tutorial").same);
    }

    #[test]
    fn names_in_titles_are_those_of_code() {
        let found = names("`Vec<T>` and HashMap::entry fail with my_value, E0308 and --test on Windows");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["--test", "e0308", "hashmap::entry", "my_value", "vec<t>"]);
    }
}
