//! Compares the titles of two items as those of a series: the same words around another number, date or name.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::{JudgedItem, PullChanges};

/// Whether the titles are the same except for their numbers, and the rest of the items says that each number stands for
/// a thing of its own: a title about releases or updates, another text, or one author at different times.
///
/// A number in an error's title is a line, an index or an address, so only dates count there. One exception: an
/// automatic build numbers its runs.
pub(crate) fn is_number_series(one: &JudgedItem<'_>, other: &JudgedItem<'_>) -> bool {
    let [left, right] = [one, other].map(|item| title_words(item.title));
    let (left, right) = (SeriesTitle::of(&left, &right), SeriesTitle::of(&right, &left));
    if left.words != right.words || left.words.is_empty() || left.numbers == right.numbers {
        return false;
    }
    let is_counted = left.numbers.len().min(right.numbers.len()) > 0 || left.is_part || right.is_part;
    let is_failure = FAILURE.is_match(one.title) && !BUILD.is_match(one.title);
    let is_dated = left.dates != right.dates && !left.dates.is_empty() && !right.dates.is_empty();
    let is_versioned = left.is_versioned || right.is_versioned;
    // "Item 1" and "Item 2" may be anything.
    let is_telling = is_versioned || left.is_part || right.is_part || BUILD.is_match(one.title);
    is_counted
        && (!is_failure || is_dated)
        && (is_dated
            || RECURRING.is_match(one.title)
            || is_telling && texts_differ(one, other)
            || is_versioned && is_by_one_author(one, other))
}

/// Whether both titles and a third one are the same except for the name of something, such as a test or a module, and
/// all three names differ. Two such titles may still be about one problem; three or more are a list.
pub(crate) fn is_name_series<'a>(one: &str, other: &str, others: impl Iterator<Item = &'a str>) -> bool {
    let (Some(left), Some(right)) = (NamedTitle::of(one), NamedTitle::of(other)) else { return false };
    left.is_sibling_of(&right)
        && others.filter_map(NamedTitle::of).any(|third| third.is_sibling_of(&left) && third.is_sibling_of(&right))
}

#[derive(Debug, PartialEq, Eq)]
struct SeriesTitle {
    words: Vec<String>,
    numbers: Vec<String>,
    dates: Vec<String>,
    /// The number follows a word such as "part".
    is_part: bool,
    /// A number is a version, a date or a reference, not only digits.
    is_versioned: bool,
}

impl SeriesTitle {
    /// `others` are the words of the title that it is compared with.
    fn of(all: &[String], others: &[String]) -> Self {
        let (mut words, mut numbers, mut dates, mut is_part) = (Vec::new(), Vec::new(), Vec::new(), false);
        let mut before = "";
        for (at, word) in all.iter().map(String::as_str).enumerate() {
            let is_beside_date = || is_day_or_year(before) || all.get(at + 1).is_some_and(|next| is_day_or_year(next));
            let is_month = MONTHS.contains(&word)
                || MONTHS_OR_WORDS.contains(&word)
                    && (is_beside_date() || others.get(at).is_some_and(|other| MONTHS.contains(&other.as_str())));
            if is_month || DATE.is_match(word) || EASTERN_DATE.is_match(word) {
                dates.push(word.to_owned());
            } else if NUMBERED.is_match(word) {
                numbers.push(word.trim_start_matches('v').to_owned());
                is_part |= PARTS.contains(&before);
            } else if !COUNTERS.contains(&word) && !PARTS.contains(&word) {
                words.push(word.to_owned());
            }
            before = word;
        }
        let is_versioned =
            !dates.is_empty() || numbers.iter().any(|number| !number.bytes().all(|byte| byte.is_ascii_digit()));
        numbers.extend(dates.iter().cloned());
        Self { words, numbers, dates, is_part, is_versioned }
    }
}

pub(super) fn title_words(title: &str) -> Vec<String> {
    let lower = title.to_lowercase();
    // Where words are not spaced, a date is written as `2025年3月`.
    let lower = EASTERN_DATE.replace_all(&lower, " $0 ");
    WORD.find_iter(&lower).map(|found| found.as_str().trim_matches(['.', '-', '/', ':']).to_owned()).collect()
}

/// Whether a word is a day of a month or a year; a port or a size is neither.
fn is_day_or_year(word: &str) -> bool {
    let digits = ["st", "nd", "rd", "th"].into_iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    digits.parse::<u32>().is_ok_and(|number| matches!(number, 1..=31 | 1990..=2099))
}

/// Months that are also words of their own: a month only beside a day or a year, or where the other title has a month.
const MONTHS_OR_WORDS: [&str; 4] = ["may", "mai", "mei", "sept"];
const MONTHS: [&str; 75] = [
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
    "januar",
    "februar",
    "märz",
    "juni",
    "juli",
    "oktober",
    "dezember",
    "janvier",
    "février",
    "mars",
    "avril",
    "juin",
    "juillet",
    "août",
    "septembre",
    "octobre",
    "novembre",
    "décembre",
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
    "gennaio",
    "febbraio",
    "aprile",
    "maggio",
    "giugno",
    "luglio",
    "settembre",
    "ottobre",
    "dicembre",
    "janeiro",
    "fevereiro",
    "março",
    "maio",
    "junho",
    "julho",
    "setembro",
    "outubro",
    "novembro",
    "dezembro",
    "januari",
    "februari",
    "maart",
    "augustus",
];
/// Words that introduce the number of a part.
const PARTS: [&str; 7] = ["part", "phase", "round", "season", "episode", "volume", "pass"];
/// Words that only introduce a number.
const COUNTERS: [&str; 2] = ["version", "v"];

/// Texts with fewer words prove nothing by being different.
const FEWEST_WORDS: usize = 8;
/// Two texts differ if they share less than this part of their word triples.
const SHARED_TRIPLES: f64 = 0.5;

fn texts_differ(one: &JudgedItem<'_>, other: &JudgedItem<'_>) -> bool {
    if let (Some(one), Some(other)) = (one.origin.changes, other.origin.changes)
        && [one, other].iter().all(|changes| !changes.diff.is_empty())
    {
        return !PullChanges::is_same_change(one, other);
    }
    let [left, right] = [one, other].map(|item| {
        let words: Vec<String> = item
            .body
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        words
    });
    if left.len().min(right.len()) < FEWEST_WORDS {
        return false;
    }
    let [left, right]: [HashSet<&[String]>; 2] = [&left, &right].map(|words| words.windows(3).collect());
    let shared = left.intersection(&right).count();
    (shared as f64) < SHARED_TRIPLES * (left.len() + right.len() - shared) as f64
}

/// A person who sends a text twice by mistake does so within half a day; later it is a check list or a daily report.
pub const SENT_TWICE_HOURS: f64 = 12.0;

/// Whether both are by one author, and so far apart that the second was sent on purpose.
pub(super) fn is_by_one_author(one: &JudgedItem<'_>, other: &JudgedItem<'_>) -> bool {
    let is_same = one.origin.author.is_some() && one.origin.author == other.origin.author;
    let times = one.origin.created_at.zip(other.origin.created_at);
    is_same
        && times.is_some_and(|(one, other)| one.duration_since(other).as_secs_f64().abs() / 3_600.0 >= SENT_TWICE_HOURS)
}

/// A title with the names of code taken out.
#[derive(Debug)]
struct NamedTitle {
    /// The words around the names; a name is an empty word.
    frame: Vec<String>,
    names: Vec<String>,
}

impl NamedTitle {
    /// `None` for a title without a name, or with nothing but names.
    fn of(title: &str) -> Option<Self> {
        let framed = NAME.replace_all(title, " \u{0} ").to_lowercase();
        let frame: Vec<String> = framed
            .split(|character: char| !character.is_alphanumeric() && character != '\u{0}')
            .filter(|word| !word.is_empty())
            .map(|word| word.replace('\u{0}', ""))
            .collect();
        let names: Vec<String> = NAME.find_iter(title).map(|name| bare(name.as_str())).collect();
        // A quoted sentence is a message, not a name.
        let is_message = NAME.find_iter(title).any(|name| name.as_str().contains(' '));
        let is_named = !names.is_empty() && names.iter().all(|name| !name.is_empty());
        (is_named && !is_message && frame.iter().any(|word| !word.is_empty())).then_some(Self { frame, names })
    }

    fn is_sibling_of(&self, other: &Self) -> bool {
        let is_other = |(one, two): (&String, &String)| !one.contains(two.as_str()) && !two.contains(one.as_str());
        self.frame == other.frame && self.names.iter().zip(&other.names).any(is_other)
    }
}

/// "No-Op" and "NoOp" are one name.
fn bare(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"#?\w[\w'’]*(?:[.\-/:]\w+)*"));
static NUMBERED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:\#?v?\d+(?:[.\-/:]\w+)*(?:st|nd|rd|th|\w)?|q[1-4]|rc\d*|i{2,3}|iv|vi{1,3})$"));
/// A year alone is no date: "Report 1900" may be anything.
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:(?:19|20)\d\d[-./]\d{1,2}(?:[-./]\d{1,2})?|\d{1,2}[-./]\d{1,2}[-./](?:19|20)\d\d)$")
});

static EASTERN_DATE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:\d+[年月日号號년월일])+"));

/// Titles of failures. Their numbers are lines, indexes, ids and addresses.
pub(super) static FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) \b (?: errors? | ice | panic\w* | fail(?:s|ed|ing|ure|ures)? | crash\w* | assert\w* | exceptions? | segfaults? | broken
            | breaks | bug | wrong | out \s+ of \s+ bounds | not \s+ found | overflow\w* | abort\w* | cannot | can['’]t | undefined | unexpected
            | regress\w* | doesn['’]?t | hangs? | leaks? | incorrect\w* | invalid | missing | slow | timeouts? ) \b",
    )
});
pub(super) static BUILD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:ci|nightly|workflow|pipeline|scheduled|cron|buildbot)\b"));

/// Titles of what comes again with every release, month or update.
pub(super) static RECURRING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) \b (?: releas\w* | bump\w* | upgrad\w* | updat\w* | roll[-\ ]?ups? | rolling \s+ up | weekly | monthly | daily | nightly
            | quarterly | yearly | annual | changelog | check-?list | milestone | sprint | prepar\w+ \s+ for | tracking \s+ issue
            | (?: status | progress | test ) \s+ reports? | meeting | agenda | minutes | roadmap | stabiliz\w+ ) \b",
    )
});

/// `code`, `a::b`, `a.b`, `a-b`, `snake_case`, `CamelCase`.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?x) `[^`]+` | "[^"]+" | \b[A-Za-z_]\w*(?:(?:::|\.|/|->|-|\#)\w+)+(?:!|\(\))? | \b[A-Za-z0-9]+_\w+ | \b[a-z]+[A-Z]\w*
            | \b[A-Z][a-z0-9]+[A-Z]\w*"#,
    )
});

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{is_name_series, is_number_series};
    use crate::{ItemNumber, ItemOrigin, ItemState, ItemType, JudgedItem, Login, parse_moment};

    fn item<'a>(title: &'a str, body: &'a str) -> JudgedItem<'a> {
        JudgedItem {
            number: ItemNumber::new(1).expect("positive"),
            state: ItemState::Open,
            item_type: ItemType::Issue,
            title,
            body,
            labels: &[],
            origin: ItemOrigin::default(),
        }
    }

    const ONE: &str = "The first of these is about the gate in the harbour and about nothing else at all.";
    const TWO: &str = "Here somebody describes how lamps on the pier are painted green before winter comes.";

    fn differs(one: &str, other: &str) -> bool {
        is_number_series(&item(one, ONE), &item(other, TWO))
    }

    #[test]
    fn a_number_a_date_or_a_month_is_a_series_number() {
        for (one, other) in [
            ("Release checklist 1.2.0", "Release checklist 1.3.0"),
            ("Upgrade ZooKeeper to 3.8.2", "Upgrade Zookeeper to version 3.8.3"),
            ("Bump lodash from 4.17.20 to 4.17.21", "Bump lodash from 4.17.19 to 4.17.20"),
            ("Monthly report May 2024", "Monthly report May 2023"),
            ("Monatsbericht März 2025", "Monatsbericht Januar 2025"),
            ("Réunion de février", "Réunion de mars"),
            ("2025年3月月报", "2025年4月月报"),
            ("3월 보고서", "4월 보고서"),
            ("Report for January", "Report for February"),
            ("Monthly report May 2025", "Monthly report June 2025"),
            ("Report for May", "Report for April"),
            ("5 May: what we did", "12 June: what we did"),
            ("What we did on May 1st", "What we did on May 22nd"),
            ("Compte rendu de la réunion de mai", "Compte rendu de la réunion de juin"),
            ("Verslag mei 2025", "Verslag juni 2025"),
            ("Minutes of Sept 12", "Minutes of Oct 10"),
            ("Tracking issue for lifetimes 1/5", "Tracking issue for lifetimes 2/5"),
            ("Rollup of 8 pull requests", "Rollup of 22 pull requests"),
            ("Fixes #26449", "fixes #28696"),
            ("CI failure in run 1234", "CI failure in run 1240"),
            ("Nightly build failed 2024-05-01", "Nightly build failed 2024-05-02"),
            ("Support for Java 17.0", "Support for Java 11.0"),
            ("Removed mocha, part 2", "Removed mocha"),
        ] {
            assert!(differs(one, other) && differs(other, one), "{one}");
        }
    }

    #[test]
    fn a_number_of_an_error_is_none() {
        for (one, other) in [
            (
                "ICE: index out of bounds: the len is 1 but the index is 1",
                "ICE: index out of bounds: the len is 0 but the index is 0",
            ),
            ("internal compiler error: no type for node 207", "internal compiler error: no type for node 81"),
            ("Crash in 1.2.0", "Crash in 1.3.0"),
            ("Fix two typos", "Fix typos"),
            ("Setup CI for Windows", "Setup CI for Windows 10"),
            ("The same title", "The same title"),
            ("Release 1.2.0", "Release 1.2.0"),
            ("12", "13"),
            ("Item 1", "Item 2"),
            ("Report 1: the summary is written twice", "Report 2: the summary is written twice"),
            ("Report 1900: the summary is written twice", "Report 1901: the summary is written twice"),
            ("Window 1 flickers", "Sound 2 is gone"),
            ("Uploads may fail", "Uploads will fail"),
            ("Port 8080 may be blocked", "Port 9090 may be blocked"),
            ("Limit 100 may be too low", "Limit 4096 may be too low"),
            ("Sept fichiers sont perdus", "Les fichiers sont perdus"),
        ] {
            assert!(!differs(one, other), "{one}");
        }
    }

    #[test]
    fn without_another_text_a_plain_number_proves_nothing() {
        let (one, other) = (item("Grey menu of 4.1", ONE), item("Grey menu of 4.2", ONE));
        assert!(!is_number_series(&one, &other));
        assert!(!is_number_series(&item(one.title, ""), &item(other.title, "")));
        let author: Login = "robot".parse().expect("a login");
        let at = |time: &str| ItemOrigin {
            author: Some(&author),
            created_at: Some(parse_moment(time).expect("a time")),
            ..ItemOrigin::default()
        };
        let first = JudgedItem { origin: at("2024-05-01T10:00:00Z"), ..one };
        for (time, is_series) in [
            ("2024-05-01T12:00:00Z", false),
            ("2024-05-01T21:59:00Z", false),
            ("2024-05-01T22:00:00Z", true),
            ("2024-05-09T10:00:00Z", true),
        ] {
            assert_eq!(is_number_series(&first, &JudgedItem { origin: at(time), ..other }), is_series, "{time}");
        }
    }

    #[test]
    fn three_names_in_one_place_are_a_list() {
        let three = |titles: [&str; 3]| is_name_series(titles[0], titles[1], std::iter::once(titles[2]));
        for titles in [
            ["Tracking issue for `enumset`", "Tracking issue for Read::chars", "Tracking issue for `as_unsafe_cell`"],
            ["CI failure of test_one_thing", "CI failure of test_that", "CI failure of net.TestThis"],
            ["Replace Sets in hadoop-tools", "Replace Sets in hadoop-yarn", "Replace Sets in hadoop-common"],
        ] {
            assert!(three(titles), "{titles:?}");
        }
        for titles in [
            ["Panic in Vec::push", "Panic in `push`", "Panic in `pop_all`"],
            ["Replace it with NoOp-tracer", "Replace it with No-Op-tracer", "Replace it with my-tracer"],
            ["failed at \"index is out\"", "failed at \"length is out\"", "failed at \"nothing is left\""],
            ["`a_b`", "`c_d`", "`e_f`"],
            ["Menu is grey", "Menu is green", "Menu is gone"],
        ] {
            assert!(!three(titles), "{titles:?}");
        }
    }

    proptest! {
        #[test]
        fn the_same_title_is_no_series(title in any::<String>(), third in any::<String>()) {
            prop_assert!(!is_number_series(&item(&title, ONE), &item(&title, TWO)));
            prop_assert!(!is_name_series(&title, &title, std::iter::once(third.as_str())));
        }
    }
}
