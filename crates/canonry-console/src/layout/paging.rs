//! Addresses of pages: links that keep filters, and paths that never lead to another host.

use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use url::form_urlencoded::Serializer;

use crate::layout::errors::PageError;
use crate::layout::formatting::thousands;

pub(crate) const PAGE: u32 = 50;

/// The most words of a search that count, as in the store: each word is compared with every row that is read.
const MOST_WORDS: usize = 8;

/// The most bytes of a parameter, for the same reason. SQLite accepts no pattern of more than 50,000.
const LONGEST_WORD: usize = 500;

/// A path with these parameters; empty ones are omitted.
pub(crate) fn link(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Truncates rows that were read with one extra row; returns whether more follow.
pub(crate) fn cut<T>(rows: &mut Vec<T>, most: u32) -> bool {
    let follow = rows.len() > most as usize;
    rows.truncate(most as usize);
    follow
}

/// Truncates rows to a page; returns where the next page begins, if more follow.
pub(crate) fn cut_page<T, K>(rows: &mut Vec<T>, most: u32, key: impl FnOnce(&T) -> K) -> Option<K> {
    if cut(rows, most) { rows.last().map(key) } else { None }
}

/// Links between the pages of a list, rendered by `parts/pager.html`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pager {
    /// For screen readers: `Pages of jobs`.
    pub(crate) label: &'static str,
    /// The first page, unless this is it.
    pub(crate) first: Option<String>,
    /// The next page, if there is one.
    pub(crate) next: Option<String>,
    /// The number of rows that were read, in words, if the page stopped before it was full.
    pub(crate) stopped_after: Option<String>,
    /// Whether the keys `p` and `n` press it: one list of a page has them.
    pub(crate) has_keys: bool,
}

impl Pager {
    /// For the list at `path` with the filters `kept`; `next` is the parameter of its next page.
    pub(crate) fn new(
        label: &'static str,
        path: &str,
        kept: &[(&str, &str)],
        is_first: bool,
        next: Option<(&str, String)>,
    ) -> Self {
        Self {
            label,
            first: (!is_first).then(|| link(path, kept)),
            next: next.map(|(name, value)| link(path, &[kept, &[(name, value.as_str())]].concat())),
            stopped_after: None,
            has_keys: true,
        }
    }

    /// Shows that only this many rows were read, so that the page is not taken for the complete list.
    pub(crate) fn stopped(self, after: Option<u32>) -> Self {
        Self { stopped_after: after.map(|rows| thousands(u64::from(rows))), ..self }
    }

    /// For a list in the section with this id, to which its links lead back.
    pub(crate) fn in_section(self, id: &str) -> Self {
        let there = |link: String| format!("{link}#{id}");
        Self { first: self.first.map(there), next: self.next.map(there), ..self }
    }

    /// The same for a list without the page's keys.
    pub(crate) fn of_section(self, id: &str) -> Self {
        Self { has_keys: false, ..self.in_section(id) }
    }

    pub(crate) const fn is_needed(&self) -> bool {
        self.first.is_some() || self.next.is_some()
    }
}

pub(crate) struct FilteredPage<T, P> {
    pub(crate) rows: Vec<T>,
    /// The row after which the next page begins.
    pub(crate) next: Option<P>,
    /// The number of rows that were read, if the page stopped before it was full: later rows were not read.
    pub(crate) stopped_after: Option<u32>,
}

/// Keeps the rows that match, at most one page. One row more than `looked_at` means that there are more rows.
pub(crate) fn filter_rows<T, P>(
    mut rows: Vec<T>,
    looked_at: u32,
    page: u32,
    fits: impl FnMut(&T) -> bool,
    place: impl Fn(&T) -> P,
) -> FilteredPage<T, P> {
    let last = cut_page(&mut rows, looked_at, &place);
    rows.retain(fits);
    if cut(&mut rows, page) {
        return FilteredPage { next: rows.last().map(place), rows, stopped_after: None };
    }
    // Only as many rows as a page has were read: that is not a search.
    let stopped_after = last.is_some().then_some(looked_at).filter(|_| looked_at > page);
    FilteredPage { rows, next: last, stopped_after }
}

/// Whether a text contains each word of a search, ignoring case.
pub(crate) fn contains_words(text: &str, search: &str) -> bool {
    let text = text.to_lowercase();
    search.split_whitespace().take(MOST_WORDS).all(|word| text.contains(&word.to_lowercase()))
}

/// A position in a list ordered by time and id: `1800000000000000-12`.
pub(crate) fn place(at: Timestamp, id: impl Display) -> String {
    format!("{}-{id}", at.as_microsecond())
}

pub(crate) fn place_in<T: FromStr>(word: &str) -> Option<(Timestamp, T)> {
    let (micros, id) = word.split_once('-')?;
    Some((Timestamp::from_microsecond(micros.parse().ok()?).ok()?, id.parse().ok()?))
}

/// A parameter, trimmed and limited in length; empty if it is missing.
pub(crate) fn word<'a>(query: &'a HashMap<String, String>, name: &str) -> &'a str {
    let word = query.get(name).map(|word| word.trim()).unwrap_or_default();
    &word[..word.floor_char_boundary(LONGEST_WORD)]
}

/// A numeric parameter. Other values are ignored, so that an old link still opens a list.
pub(crate) fn number(query: &HashMap<String, String>, name: &str) -> Option<i64> {
    word(query, name).parse().ok()
}

/// A number in the path; without it there is no page.
pub(crate) fn number_in(path: &HashMap<String, String>, name: &str) -> Result<i64, PageError> {
    part_in(path, name)
}

/// A part of the path; if it cannot be parsed, there is no page.
pub(crate) fn part_in<T: FromStr>(path: &HashMap<String, String>, name: &str) -> Result<T, PageError> {
    path.get(name).and_then(|text| text.parse().ok()).ok_or(PageError::NotFound)
}

pub(crate) fn in_path(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The path if it is one of ours, else the overview: a parameter must not redirect to another host.
pub(crate) fn own_path(told: Option<&str>) -> &str {
    // Browsers read `//host` and `/\host` as another host.
    let is_own = |path: &&str| {
        path.starts_with('/')
            && !path[1..].starts_with(['/', '\\'])
            && path.bytes().all(|byte| (0x21..0x7f).contains(&byte))
    };
    told.filter(is_own).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use jiff::Timestamp;

    use super::{Pager, contains_words, cut, filter_rows, link, own_path, place, place_in, word};

    #[test]
    fn a_search_says_where_it_goes_on_and_whether_it_stopped() {
        let sifted = |rows: i64, divisor: i64| {
            let sifted = filter_rows((1..=rows).collect(), 6, 2, |row| row % divisor == 0, |row| *row);
            (sifted.rows, sifted.next, sifted.stopped_after)
        };
        assert_eq!(sifted(7, 1), (vec![1, 2], Some(2), None), "the page is full");
        assert_eq!(sifted(7, 5), (vec![5], Some(6), Some(6)), "six were looked at, and there are more");
        assert_eq!(sifted(7, 9), (vec![], Some(6), Some(6)));
        assert_eq!(sifted(6, 5), (vec![5], None, None), "all were looked at");
        assert_eq!(sifted(6, 3), (vec![3, 6], None, None));
        let plain = filter_rows(vec![1, 2, 3], 2, 2, |_| true, |row| *row);
        assert_eq!((plain.rows, plain.next, plain.stopped_after), (vec![1, 2], Some(2), None), "that was no search");
    }

    #[test]
    fn a_text_holds_every_word_in_any_case() {
        assert!(contains_words("one two", "one two one two one two one two nothing"), "eight words count");
        let query = HashMap::from([("text".to_owned(), format!(" a{}", "ä".repeat(900)))]);
        assert_eq!(word(&query, "text").len(), 499);
        assert!(
            contains_words("Über den CRASH", "crash über")
                && contains_words("anything", " ")
                && !contains_words("crash", "crash reader")
        );
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let at = Timestamp::from_microsecond(7).expect("in range");
        assert_eq!((place(at, 12), place_in::<i64>("7-12")), ("7-12".to_owned(), Some((at, 12))));
        assert_eq!(place_in::<String>(&place(at, "a-b")), Some((at, "a-b".to_owned())));
        assert_eq!([place_in::<i64>(""), place_in("7"), place_in("a-1"), place_in("7-a")], [None; 4]);
    }

    #[test]
    fn a_pager_keeps_filters_and_leads_back_to_the_first_page() {
        let kept = [("state", "dead"), ("kind", "")];
        let first = Pager::new("Pages of jobs", "/jobs", &kept, true, Some(("before", "7".to_owned())));
        assert_eq!((first.first.as_deref(), first.next.as_deref()), (None, Some("/jobs?state=dead&before=7")));
        assert_eq!(first.clone().stopped(Some(20_000)).stopped_after.as_deref(), Some("20,000"));
        let last = Pager::new("Pages of jobs", "/jobs", &kept, false, None).of_section("all");
        assert_eq!((last.first.as_deref(), last.next.as_deref()), (Some("/jobs?state=dead#all"), None));
        assert!(first.has_keys && !last.has_keys && first.is_needed() && last.is_needed());
        assert!(!Pager::new("Pages of jobs", "/jobs", &kept, true, None).is_needed());
    }

    #[derive(askama::Template)]
    #[template(path = "layout/pager.html")]
    struct Shown {
        pager: Pager,
    }

    #[test]
    fn a_search_that_stopped_is_never_taken_for_all_there_is() {
        let pager = |stopped| {
            let next = Some(("before", "7".to_owned()));
            let pager = Pager::new("Pages of activity", "/activity", &[("text", "a")], true, next).stopped(stopped);
            askama::Template::render(&Shown { pager }).expect("written")
        };
        let stopped = pager(Some(5_000));
        assert!(stopped.contains("Searched 5,000 rows; there are more."), "{stopped}");
        assert!(stopped.contains(r#"<a href="/activity?text=a&#38;before=7">Continue the search</a>"#), "{stopped}");
        assert!(!pager(None).contains("Searched"));
    }

    #[test]
    fn one_row_more_than_fits_says_that_others_follow() {
        let (mut full, mut more) = (vec![1, 2], vec![1, 2, 3]);
        assert_eq!((cut(&mut full, 2), cut(&mut more, 2)), (false, true));
        assert_eq!((full, more), (vec![1, 2], vec![1, 2]));
    }

    #[test]
    fn links_escape_and_leave_empty_values_out() {
        assert_eq!(
            link("/r/a/b/items", &[("state", "open"), ("label", ""), ("q", "a&b=c")]),
            "/r/a/b/items?state=open&q=a%26b%3Dc"
        );
        assert_eq!(link("/jobs", &[("state", "")]), "/jobs");
    }

    #[test]
    fn nobody_is_led_elsewhere() {
        assert_eq!(own_path(Some("/r/a/b/plans/3?row=2")), "/r/a/b/plans/3?row=2");
        for path in ["//evil.example", "/\\evil.example", "https://evil.example", "evil", "", "/a\r\nb", "/a\tb"] {
            assert_eq!(own_path(Some(path)), "/", "{path:?}");
        }
        assert_eq!(own_path(None), "/");
    }
}
