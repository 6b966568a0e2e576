//! Learns the text that many items of a repository share: its issue templates. Shared text is not an item's own
//! content.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::intent::sections::{COMMENT, TAG};
use crate::intent::text_evidence::{first_chars, is_error_in_code, is_error_in_prose, is_frame};
use crate::text::fences::{FenceLine, FenceReader};
use crate::text::template_text::{is_template, written_lines};
use crate::{Item, ItemNumber, ItemType, Login, normalise_text, raw_text};

/// The shared lines and titles of one type of item in one repository. Only hashes are stored, no text of other people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boilerplate {
    lines: BTreeSet<u64>,
    titles: BTreeSet<u64>,
    /// Lines and titles of the repository's template files, including former versions.
    #[serde(default)]
    files: BTreeSet<u64>,
}

/// Learns the [`Boilerplate`] of a repository from its items.
#[derive(Debug, Default)]
pub struct BoilerplateLearner {
    items: Vec<ItemDigest>,
    /// How often each line was seen, as long as the count matters.
    seen: HashMap<u64, usize>,
    /// Lines that may be learnt by repetition. A pasted error may not.
    teaching: HashSet<u64>,
    /// Headings, labels and check-boxes among them. They belong to a template even if they are its only line.
    structure: HashSet<u64>,
}

#[derive(Debug)]
struct ItemDigest {
    number: ItemNumber,
    author: Option<u64>,
    title: u64,
    lines: Vec<u64>,
    has_comment: bool,
}

/// The maximum number of characters of a body that are read. It is five times the length that is compared, so that a
/// long template leaves room for the report. Beyond that there are only logs of megabytes.
const READ_LIMIT: usize = 40_000;
/// The number of items in one period, in the order of their numbers. A former template is learnt from the period in
/// which it was used.
const PERIOD: usize = 200;
/// The threshold within one period: so many items by so many people. People who report the same problem write their
/// own sentences, and the errors that they paste are not learnt.
const SHARED_IN_PERIOD: Shared = Shared { items: 5, people: 4 };
/// The threshold over all periods together: a template that one in two hundred items uses.
const SHARED_IN_ALL: Shared = Shared { items: 20, people: 15 };
/// The threshold for titles of items that have content: "App crashes on startup" may be the same problem five times.
const SHARED_TITLE: Shared = Shared { items: 12, people: 8 };
/// A template has several lines. A single line that is a whole body is a text that several people sent.
const LINES_OF_TEMPLATE: usize = 2;

#[derive(Debug, Clone, Copy)]
struct Shared {
    items: usize,
    people: usize,
}

impl BoilerplateLearner {
    /// Reads one item. Items must come in the order of their numbers. An unknown author does not count as a person;
    /// such an item is never closed.
    pub fn read(&mut self, number: ItemNumber, author: Option<&Login>, title: &str, body: &str) {
        let text = normalise_lines(first_chars(body, READ_LIMIT));
        let body = COMMENT.replace_all(&text, "");
        let mut lines = Vec::new();
        for line in body_lines(&body) {
            let Some(key) = line.key() else { continue };
            let seen = self.seen.entry(key).or_default();
            *seen += 1;
            // The checks run once per line, and only when the count reaches the threshold: most lines occur only once.
            if *seen == SHARED_IN_PERIOD.items && line.teaches() {
                self.teaching.insert(key);
                if is_template(line.text.trim()) {
                    self.structure.insert(key);
                }
            }
            lines.push(key);
        }
        lines.sort_unstable();
        lines.dedup();
        let author = author.map(|author| hash("", &author.as_str().to_lowercase()));
        let has_comment = matches!(body, Cow::Owned(_));
        self.items.push(ItemDigest { number, author, title: title_key(title), lines, has_comment });
    }

    pub fn learn(&self) -> Boilerplate {
        let teaching = |item: &ItemDigest| -> Vec<u64> {
            item.lines.iter().copied().filter(|line| self.teaching.contains(line)).collect()
        };
        let items: Vec<&ItemDigest> = self.items.iter().collect();
        let repeated = shared_keys(&items, SHARED_IN_PERIOD, Some(SHARED_IN_ALL), teaching);
        let of_template = |item: &ItemDigest| -> Vec<u64> {
            let is_repeated = |line: &&u64| repeated.contains(line) || BUILT_IN.contains(line);
            let mut lines: Vec<u64> = item.lines.iter().filter(is_repeated).copied().collect();
            if lines.len() + usize::from(item.has_comment) < LINES_OF_TEMPLATE {
                lines.retain(|line| self.structure.contains(line));
            }
            lines
        };
        let lines = shared_keys(&items, SHARED_IN_PERIOD, Some(SHARED_IN_ALL), of_template);
        let is_shared = |line: &u64| lines.contains(line) || BUILT_IN.contains(line);
        let empty: Vec<&ItemDigest> = self.items.iter().filter(|item| item.lines.iter().all(is_shared)).collect();
        let title = |item: &ItemDigest| vec![item.title];
        let mut titles = shared_keys(&empty, SHARED_IN_PERIOD, None, title);
        titles.extend(shared_keys(&items, SHARED_TITLE, None, title));
        Boilerplate { lines, titles, files: BTreeSet::new() }
    }

    /// The items whose own text differs between `before` and `now`. Without `before`, the whole text counted as the
    /// item's own.
    pub fn changed(&self, before: Option<&Boilerplate>, now: &Boilerplate) -> Vec<ItemNumber> {
        let differs = |item: &&ItemDigest| match before {
            None => {
                item.has_comment
                    || now.is_shared_title(item.title)
                    || item.lines.iter().any(|line| now.is_shared(*line))
            }
            Some(before) => {
                before.is_shared_title(item.title) != now.is_shared_title(item.title)
                    || item.lines.iter().any(|line| before.is_shared(*line) != now.is_shared(*line))
            }
        };
        self.items.iter().filter(differs).map(|item| item.number).collect()
    }
}

impl Boilerplate {
    /// The item with only its own text. All other fields, including the content hash, stay the same.
    pub fn own(&self, item: &Item) -> Item {
        Item { title: self.own_title(&item.title), body: self.own_body(&item.body), ..item.clone() }
    }

    /// Whether an item has content of its own. A pull request always has: its changes.
    pub fn leaves_content(&self, item: &Item) -> bool {
        item.item_type == ItemType::Pr || has_content(&self.own_title(&item.title), &self.own_body(&item.body))
    }

    /// The title, or an empty text if many items have the same title.
    pub fn own_title(&self, title: &str) -> String {
        if self.is_shared_title(title_key(title)) { String::new() } else { title.to_owned() }
    }

    /// The beginning of the body without HTML comments and shared lines. Code blocks that become empty are removed
    /// too.
    pub fn own_body(&self, body: &str) -> String {
        let body = without_comments(body);
        let mut own: Vec<&str> = Vec::new();
        let mut fence_at = None;
        for line in body_lines(&body) {
            match (line.kind, fence_at) {
                (FenceLine::Begins, _) => fence_at = Some(own.len()),
                (FenceLine::Ends, Some(begins)) => {
                    fence_at = None;
                    if own[begins + 1..].iter().all(|line| line.is_empty()) {
                        own.truncate(begins);
                        continue;
                    }
                }
                _ if line.key().is_some_and(|key| self.is_shared(key)) => continue,
                _ => {}
            }
            let text = line.text.trim_end();
            if !text.is_empty() || own.last().is_some_and(|before| !before.is_empty()) {
                own.push(text);
            }
        }
        if let Some(begins) = fence_at.filter(|begins| own[begins + 1..].iter().all(|line| line.is_empty())) {
            own.truncate(begins);
        }
        own.join("\n").trim_matches('\n').trim_end().to_owned()
    }

    /// The text of an item that is embedded: its own text, or only its title if it has no content of its own.
    pub fn embedded_text(&self, title: &str, body: &str) -> String {
        let (own_title, own_body) = (self.own_title(title), self.own_body(body));
        if has_content(&own_title, &own_body) { raw_text(&own_title, &own_body) } else { raw_text(title, "") }
    }

    /// Adds a Markdown template file: its lines, and the default title from its front matter.
    pub fn add_template(&mut self, text: &str) {
        let text = normalise_lines(text);
        let (front, body) = match FRONT_MATTER.captures(&text) {
            Some(found) => (found.get(1).map_or("", |front| front.as_str()), &text[found[0].len()..]),
            None => ("", text.as_str()),
        };
        let title = front.lines().find_map(|line| line.trim().strip_prefix("title:"));
        if let Some(title) = title.map(|title| title.trim().trim_matches(['\'', '"'])) {
            self.add_title(title);
        }
        self.files.extend(body_lines(&COMMENT.replace_all(body, "")).filter_map(|line| line.key()));
    }

    /// Adds the default title of an issue form.
    pub fn add_title(&mut self, title: &str) {
        self.files.insert(title_key(title));
    }

    /// Adds the lines and titles of the template files of `other`.
    #[must_use]
    pub fn with_files_of(mut self, other: &Self) -> Self {
        self.files.extend(&other.files);
        self
    }

    fn is_shared(&self, line: u64) -> bool {
        self.lines.contains(&line) || self.files.contains(&line) || BUILT_IN.contains(&line)
    }

    fn is_shared_title(&self, title: u64) -> bool {
        self.titles.contains(&title) || self.files.contains(&title)
    }

    /// A checksum that changes when the set changes.
    pub fn stamp(&self) -> u64 {
        let all = self.lines.iter().chain(&[0]).chain(&self.titles).chain(&[0]).chain(&self.files);
        all.fold(FNV_BASIS, |stamp, key| (stamp ^ key).wrapping_mul(FNV_PRIME))
    }

    /// The number of shared lines and titles that were learnt or read from files.
    pub fn len(&self) -> usize {
        self.lines.len() + self.titles.len() + self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether an item's own text has content: a word in the title other than tags and generic words, or a word in the
/// body outside headings, check-boxes, links and pictures.
pub fn has_content(title: &str, body: &str) -> bool {
    let title = LINK.replace_all(title, " ").to_lowercase();
    let title = LEADING_TAGS.replace(&title, "");
    // A number counts: "Issue 12" names something.
    let is_number = |word: &str| word.chars().any(|character| character.is_ascii_digit());
    let said = |word: &str| is_number(word) || is_word(word) && !GENERIC_TITLE.contains(&word);
    let in_title = title.split(|character: char| !character.is_alphanumeric()).any(said);
    in_title
        || written_lines(body).iter().any(|(_, line)| {
            let line = LINK.replace_all(line, " ");
            line.split(|character: char| !character.is_alphanumeric()).any(is_word)
        })
}

/// Two letters, or one letter of a script in which one letter is a word.
fn is_word(word: &str) -> bool {
    word.chars().filter(|character| character.is_alphabetic()).count() >= 2
        || word.chars().any(|character| character.is_alphabetic() && character >= '\u{2e80}')
}

/// The keys that are shared within a period, or in all periods together.
fn shared_keys(
    items: &[&ItemDigest],
    in_period: Shared,
    in_all: Option<Shared>,
    keys_of: impl Fn(&ItemDigest) -> Vec<u64>,
) -> BTreeSet<u64> {
    let mut shared = BTreeSet::new();
    let mut learn = |items: &[&ItemDigest], needed: Shared| {
        let mut seen: HashMap<u64, (usize, HashSet<u64>)> = HashMap::new();
        for item in items {
            let keys: BTreeSet<u64> = keys_of(item).into_iter().collect();
            for key in keys {
                let (count, people) = seen.entry(key).or_default();
                *count += 1;
                // More people are not needed, and the tracker of a compiler has 50,000 items.
                if people.len() < needed.people {
                    people.extend(item.author);
                }
            }
        }
        let is_shared =
            |(count, people): &(usize, HashSet<u64>)| *count >= needed.items && people.len() >= needed.people;
        shared.extend(seen.into_iter().filter(|(_, seen)| is_shared(seen)).map(|(key, _)| key));
    };
    items.chunks(PERIOD).for_each(|period| learn(period, in_period));
    if let Some(in_all) = in_all {
        learn(items, in_all);
    }
    shared
}

struct BodyLine<'a> {
    text: &'a str,
    kind: FenceLine,
}

impl BodyLine<'_> {
    /// The hash of the line's words; `None` for a line without letters and digits, and for a fence.
    fn key(&self) -> Option<u64> {
        let (kind, words) = match self.kind {
            FenceLine::Outside => ("", key_words(&self.bare())),
            FenceLine::Code => ("code", key_words(self.text)),
            FenceLine::Begins | FenceLine::Ends => return None,
        };
        (!words.is_empty()).then(|| hash(kind, &words))
    }

    /// Whether the line can be learnt by repetition. A line of code can only if it asks the author to insert
    /// something.
    fn teaches(&self) -> bool {
        let bare = self.bare();
        if is_error_in_prose(&bare) || is_frame(&bare) {
            return false;
        }
        if self.kind == FenceLine::Code {
            return PLACEHOLDER.is_match(self.text) || INSTRUCTION.is_match(&CODE_COMMENT.replace(self.text, ""));
        }
        let is_evidence = || is_error_in_code(&bare) || TECHNICAL.is_match(&LINK.replace_all(&bare, " "));
        is_template(self.text.trim()) || INSTRUCTION.is_match(&bare) || !is_evidence()
    }

    /// The line without tags, list bullet and check-box.
    fn bare(&self) -> String {
        BULLET.replace(&TAG.replace_all(self.text, " "), "").into_owned()
    }
}

/// The lines of a body whose comments were removed.
fn body_lines(body: &str) -> impl Iterator<Item = BodyLine<'_>> {
    let mut fences = FenceReader::default();
    body.lines().map(move |text| BodyLine { text, kind: fences.read(text) })
}

fn without_comments(body: &str) -> String {
    COMMENT.replace_all(&normalise_lines(first_chars(body, READ_LIMIT)), "").into_owned()
}

fn normalise_lines(body: &str) -> String {
    body.replace("\r\n", "\n").replace('\r', "\n")
}

fn title_key(title: &str) -> u64 {
    hash("title", &key_words(&normalise_text(title)))
}

/// The words in lower case; decoration of a line does not matter.
fn key_words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(word.chars().flat_map(char::to_lowercase));
    }
    words
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a. A person who constructs a collision can only hide their own lines.
fn hash(kind: &str, words: &str) -> u64 {
    let bytes = kind.bytes().chain([0]).chain(words.bytes());
    bytes.fold(FNV_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static FRONT_MATTER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)^\s*---\n(.*?)\n---\s*(?:\n|\z)"));
static LEADING_TAGS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?:[^\w\[【]*[\[【][^\[\]【】]{1,40}[\]】]\s*[:：-]?\s*)+"));
static LINK: LazyLock<Regex> = LazyLock::new(|| pattern(r"!\[[^\]]*\]\([^)]*\)|https?://\S+"));
/// A list's bullet and a check-box, ticked or not.
static BULLET: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:[-*+]\s+)?(?:\[[\sxX]?\]\s+)?"));
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*<[^<>]{1,80}>\s*$"));
static CODE_COMMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:#+|//+|--+|;+|%+|/\*+)\s*"));
/// Text that gives instructions to the author. It may contain the names of errors.
static INSTRUCTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) ^\W* (?: please | describe | paste | provide | include | insert | attach | explain | list | tell\ us | add
            | write | enter | put | give | copy | fill | delete | remove | replace | run | use | make\ sure | let\ us | note\ that
            | if\ (?: applicable | possible | relevant | any | there | this | the | you ) | a\ (?: clear | short | brief | concise )
            | what | which | how | where | when | who | why | steps\ to | is\ (?: this | there | your | it ) | have\ you | did\ you
            | do\ you | are\ you | can\ you | before\ you | e\.?g\b | for\ example | example | your ) \b
            | \(e\.g\. | \be\.g\.\s | \byour\ (?: issue | bug | report | problem | log | logs | output | version | code | system )\b",
    )
});
/// Names in code, and versions. They distinguish reports from each other.
static TECHNICAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"::|\w\(\)|=>|->|[{}]|;\s*$|\b0x[0-9a-fA-F]+|[A-Za-z0-9]_[A-Za-z0-9]|[A-Za-z]:\\|\w=\w|[0-9]\.[0-9]")
});

/// Words of a generic title, which says nothing about the report.
const GENERIC_TITLE: [&str; 44] = [
    "a",
    "an",
    "and",
    "brief",
    "bug",
    "bugs",
    "comment",
    "default",
    "describe",
    "description",
    "enhancement",
    "enter",
    "feature",
    "fill",
    "fix",
    "for",
    "help",
    "here",
    "hello",
    "hi",
    "idea",
    "in",
    "insert",
    "issue",
    "issues",
    "me",
    "my",
    "new",
    "of",
    "please",
    "problem",
    "question",
    "replace",
    "report",
    "request",
    "short",
    "suggestion",
    "summary",
    "test",
    "the",
    "this",
    "title",
    "untitled",
    "your",
];

/// The lines of the templates that GitHub offers to every repository.
static BUILT_IN: LazyLock<BTreeSet<u64>> = LazyLock::new(|| {
    let text = include_str!("github_templates.md");
    body_lines(text).filter_map(|line| line.key()).collect()
});
