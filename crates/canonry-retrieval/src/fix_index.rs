//! Ranks merged pull requests as fixes of an issue that none of them names, by words, paths, code and time.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use canonry_domain::{ItemNumber, Login, Probability, PullChanges};
use jiff::Timestamp;

use crate::bag::first_chars;
use crate::field_index::{FieldIndex, TermCounts};
use crate::postings::TermHasher;
use crate::tokens::for_each_token;

/// Characters of a body that are read.
const BODY_LIMIT: usize = 20_000;
/// Pull requests that each of three searches puts on the short list.
const SHORT: usize = 100;
/// Shorter lines, without white space, are shared by chance.
const LINE_MINIMUM: usize = 10;
/// Candidates that are needed to be sure of one of them.
const FEWEST: usize = 5;
/// Characters of a line that is shown as evidence.
const LINE_SHOWN: usize = 120;
/// Pieces of evidence that are named.
const EVIDENCE: usize = 4;

/// How many features a pull request has.
pub const FIX_FEATURES: usize = 12;

/// The weights of the features, in their order, fitted by `training/fit_fixes.py` on the earlier half of 1,531 issues whose
/// pull request names them, with the names hidden.
const WEIGHTS: [f64; FIX_FEATURES] =
    [2.103, 1.636, 1.49, 3.135, 1.9, 2.621, 1.162, 1.187, 0.964, -2.431, -0.659, 0.319];

/// A merged pull request.
#[derive(Debug, Clone, Copy)]
pub struct MergedPull<'a> {
    pub number: ItemNumber,
    pub title: &'a str,
    pub body: &'a str,
    pub author: Option<&'a Login>,
    pub changes: Option<&'a PullChanges>,
    pub created_at: Timestamp,
    pub merged_at: Timestamp,
}

/// An issue whose fix is searched.
#[derive(Debug, Clone, Copy)]
pub struct FixQuery<'a> {
    pub title: &'a str,
    pub body: &'a str,
    pub author: Option<&'a Login>,
    pub created_at: Timestamp,
}

/// A pull request that may have fixed an issue.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedFix {
    pub number: ItemNumber,
    pub score: f64,
    /// Whether it is the fix, given that one of the pull requests is. Only the first has one.
    pub confidence: Option<Probability>,
    pub evidence: Vec<FixEvidence>,
}

/// What an issue and a pull request have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixEvidence {
    /// The issue names a file that the pull request changes.
    File(String),
    /// The issue contains a line that the pull request changes.
    Line(String),
    /// Both titles have these words.
    Title(Vec<String>),
    /// The reporter wrote the pull request.
    Author,
}

/// The merged pull requests of a repository.
#[derive(Debug, Default)]
pub struct FixIndex {
    pulls: Vec<IndexedPull>,
    /// When each was opened, in ascending order.
    opened: Vec<Timestamp>,
    titles: FieldIndex,
    texts: FieldIndex,
    everything: FieldIndex,
    paths: FieldIndex,
    title_pieces: FieldIndex,
}

#[derive(Debug)]
struct IndexedPull {
    number: ItemNumber,
    author: Option<Login>,
    created_at: Timestamp,
    merged_at: Timestamp,
    title: String,
    files: Vec<String>,
    diff: String,
}

type Terms = HashSet<u64, BuildHasherDefault<TermHasher>>;

impl FixIndex {
    pub fn new<'a>(pulls: impl Iterator<Item = MergedPull<'a>>) -> Self {
        let mut index = Self::default();
        for pull in pulls {
            index.add(pull);
        }
        index.opened = index.pulls.iter().map(|pull| pull.created_at).collect();
        index.opened.sort_unstable();
        index
    }

    pub fn len(&self) -> usize {
        self.pulls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pulls.is_empty()
    }

    fn add(&mut self, pull: MergedPull<'_>) {
        let none = PullChanges::default();
        let changes = pull.changes.unwrap_or(&none);
        let (title, body) = (words(pull.title), words(first_chars(pull.body, BODY_LIMIT)));
        let (files, diff) = (path_terms(&changes.files), words(&without_signs(&changes.diff)));
        self.titles.add(&title);
        self.texts.add(&title.times(2).and(&body));
        self.everything.add(&title.times(3).and(&body).and(&files).and(&diff));
        self.paths.add(&files);
        self.title_pieces.add(&pieces(pull.title));
        self.pulls.push(IndexedPull {
            number: pull.number,
            author: pull.author.cloned(),
            created_at: pull.created_at,
            merged_at: pull.merged_at,
            title: pull.title.to_owned(),
            files: changes.files.clone(),
            diff: changes.diff.clone(),
        });
    }

    /// The pull requests that were merged after the issue was opened, the likeliest fix first.
    pub fn rank(&self, issue: &FixQuery<'_>, limit: usize) -> Vec<RankedFix> {
        let weighted =
            |features: &[f64; FIX_FEATURES]| features.iter().zip(WEIGHTS).map(|(of, by)| of * by).sum::<f64>();
        let candidates = self.candidates(issue);
        let mut ranked: Vec<(usize, f64)> = candidates.iter().map(|(pull, of)| (*pull, weighted(of))).collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        let confidence = confidence(&ranked);
        let found = ranked.into_iter().take(limit).enumerate();
        found
            .map(|(place, (pull, score))| RankedFix {
                number: self.pulls[pull].number,
                score,
                confidence: confidence.filter(|_| place == 0),
                evidence: self.evidence(issue, pull),
            })
            .collect()
    }

    /// The features of each pull request on the short list, for fitting the weights.
    pub fn features(&self, issue: &FixQuery<'_>) -> Vec<(ItemNumber, [f64; FIX_FEATURES])> {
        self.candidates(issue).into_iter().map(|(pull, features)| (self.pulls[pull].number, features)).collect()
    }

    fn candidates(&self, issue: &FixQuery<'_>) -> Vec<(usize, [f64; FIX_FEATURES])> {
        let body = first_chars(issue.body, BODY_LIMIT);
        let title = words(issue.title);
        let all = title.times(2).and(&words(body));
        let merged_later = |pull: usize| self.pulls[pull].merged_at >= issue.created_at;
        let shares = [
            self.texts.shares(&title, 1, merged_later),
            self.everything.shares(&title, 1, merged_later),
            self.titles.shares(&all, 1, merged_later),
            self.everything.shares(&all, 2, merged_later),
        ];
        let mut shortlist: Vec<usize> = Vec::new();
        for scores in [&shares[0], &shares[1], &shares[3]] {
            shortlist.extend(best(scores, SHORT));
        }
        shortlist.sort_unstable();
        shortlist.dedup();
        let whole = format!("{}\n{body}", issue.title);
        let of_code = self.code_shares(&whole, &shortlist);
        let rest = [
            self.title_pieces.shares(&pieces(issue.title), 1, merged_later),
            self.paths.shares(&title, 1, merged_later),
            self.paths.shares(&path_terms(&paths_in(&whole)), 1, merged_later),
        ];
        let opened_before = |at: Timestamp| self.opened.partition_point(|other| *other < at) as f64;
        let of = |(pull, [runs, lines]): (&usize, [f64; 2])| {
            let known = &self.pulls[*pull];
            let features = [
                shares[0][*pull],
                shares[1][*pull],
                shares[2][*pull],
                shares[3][*pull],
                runs,
                lines,
                rest[0][*pull],
                rest[1][*pull],
                rest[2][*pull],
                f64::from(u8::from(known.created_at < issue.created_at)),
                (opened_before(known.created_at) - opened_before(issue.created_at)).max(0.0).ln_1p(),
                f64::from(u8::from(issue.author.is_some() && known.author.as_ref() == issue.author)),
            ];
            (*pull, features)
        };
        shortlist.iter().zip(of_code).map(of).collect()
    }

    /// How much of the issue each of these changes contains: its runs of three words, and its lines. Only the short
    /// list is read: an index of all runs would be larger than everything else together.
    fn code_shares(&self, whole: &str, shortlist: &[usize]) -> Vec<[f64; 2]> {
        let asked = [trigrams(whole), lines(whole)];
        let mut fields = [FieldIndex::default(), FieldIndex::default()];
        for pull in shortlist {
            let diff = without_signs(&self.pulls[*pull].diff);
            fields[0].add(&trigrams(&diff).kept(&asked[0]));
            fields[1].add(&lines(&diff).kept(&asked[1]));
        }
        let [runs, lines] = [0, 1].map(|field| fields[field].shares(&asked[field], 1, |_| true));
        runs.into_iter().zip(lines).map(|(runs, lines)| [runs, lines]).collect()
    }

    fn evidence(&self, issue: &FixQuery<'_>, pull: usize) -> Vec<FixEvidence> {
        let pull = &self.pulls[pull];
        let whole = format!("{}\n{}", issue.title, first_chars(issue.body, BODY_LIMIT));
        let named = paths_in(&whole);
        let is_named = |file: &&String| named.iter().any(|path| names_file(path, file));
        let mut evidence: Vec<FixEvidence> =
            pull.files.iter().filter(is_named).map(|file| FixEvidence::File(file.clone())).collect();
        let own: HashSet<String> = whole.lines().map(bare).filter(|line| line.len() >= LINE_MINIMUM).collect();
        let mut seen = HashSet::new();
        for line in pull.diff.lines().map(without_sign) {
            let bare = bare(line);
            if own.contains(&bare) && seen.insert(bare) {
                evidence.push(FixEvidence::Line(first_chars(line.trim(), LINE_SHOWN).to_owned()));
            }
        }
        let mut own_words: Vec<String> = Vec::new();
        for_each_token(issue.title, |word| own_words.push(word.to_owned()));
        let mut shared: Vec<String> = Vec::new();
        for_each_token(&pull.title, |word| {
            if word.len() > 3 && own_words.iter().any(|own| own == word) && !shared.iter().any(|one| one == word) {
                shared.push(word.to_owned());
            }
        });
        if shared.len() > 1 {
            evidence.push(FixEvidence::Title(shared));
        }
        if issue.author.is_some() && pull.author.as_ref() == issue.author {
            evidence.push(FixEvidence::Author);
        }
        evidence.truncate(EVIDENCE);
        evidence
    }
}

impl std::fmt::Display for FixEvidence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "it changes `{path}`, which the issue names"),
            Self::Line(line) => write!(formatter, "it changes the line `{line}`, which the issue contains"),
            Self::Title(words) => write!(formatter, "both titles have the words {}", words.join(", ")),
            Self::Author => formatter.write_str("the reporter wrote it"),
        }
    }
}

/// From the first score and its lead over the second. Fitted among issues that have a fix; from .7 on, more than nine
/// in ten are right.
fn confidence(ranked: &[(usize, f64)]) -> Option<Probability> {
    // Scores are shares of the best candidate: among a few, every one of them looks good.
    if ranked.len() < FEWEST {
        return None;
    }
    let (first, second) = (ranked[0].1, ranked[1].1);
    let odds = 0.223 * first + 0.553 * (first - second) - 2.105;
    Probability::new(1.0 / (1.0 + (-odds).exp())).ok()
}

/// The places of the highest scores above 0.
fn best(scores: &[f64], count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).filter(|place| scores[*place] > 0.0).collect();
    places.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other)));
    places.truncate(count);
    places
}

fn words(text: &str) -> TermCounts {
    let mut terms = TermCounts::default();
    for_each_token(text, |token| terms.add(token));
    terms
}

/// Runs of four characters of a title: they match words in other forms.
fn pieces(title: &str) -> TermCounts {
    let mut spaced = String::from(" ");
    for_each_token(title, |token| {
        spaced.push_str(token);
        spaced.push(' ');
    });
    let letters: Vec<char> = spaced.chars().collect();
    let mut terms = TermCounts::default();
    for run in letters.windows(4) {
        terms.add(&run.iter().collect::<String>());
    }
    terms
}

fn trigrams(text: &str) -> TermCounts {
    let mut terms = TermCounts::default();
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let words: Vec<String> = text
        .split(|character: char| !is_part(character))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    for run in words.windows(3) {
        terms.add(&run.join(" "));
    }
    terms
}

fn lines(text: &str) -> TermCounts {
    let mut terms = TermCounts::default();
    for line in text.lines().map(bare).filter(|line| line.len() >= LINE_MINIMUM) {
        terms.add(&line);
    }
    terms
}

fn bare(line: &str) -> String {
    line.split_whitespace().collect()
}

fn without_sign(line: &str) -> &str {
    line.strip_prefix(['+', '-']).unwrap_or(line)
}

fn without_signs(diff: &str) -> String {
    diff.lines().flat_map(|line| [without_sign(line), "\n"]).collect()
}

/// Each folder and file name of the paths, and their words.
fn path_terms(paths: &[String]) -> TermCounts {
    let mut terms = TermCounts::default();
    for path in paths {
        for part in path.split('/').filter(|part| !part.is_empty() && *part != "." && *part != "..") {
            let part = part.to_lowercase();
            let stem =
                part.rsplit_once('.').map_or(part.as_str(), |(stem, _)| if stem.is_empty() { &part } else { stem });
            terms.add(stem);
            for word in stem.split(|character: char| !character.is_alphanumeric()) {
                if word != stem && !word.is_empty() && !word.bytes().all(|byte| byte.is_ascii_digit()) {
                    terms.add(word);
                }
            }
        }
    }
    terms
}

/// Whether a path in a text means this file: its last folders and name. A name without a folder may be any file's.
fn names_file(path: &str, file: &str) -> bool {
    let path = path.trim_start_matches('/');
    let before = file.strip_suffix(path).filter(|_| path.contains('/'));
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// What looks like a path, a file name or a name with a path in a text.
fn paths_in(text: &str) -> Vec<String> {
    let is_part = |character: char| character.is_alphanumeric() || "_.+-/:".contains(character);
    let mut paths: Vec<String> = Vec::new();
    for word in text.split(|character: char| !is_part(character)) {
        let word = word.trim_matches(['.', ':', '-', '+']);
        // A place in a file: `src/lib.rs:12:3`.
        let word = word.split_once(":").filter(|_| !word.contains("::")).map_or(word, |(path, _)| path);
        let is_file = word.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty() && (1..=4).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_lowercase())
        });
        if (word.contains('/') && !word.contains("//")) || word.contains("::") || is_file {
            paths.push(word.replace("::", "/"));
        }
    }
    let mut seen = Terms::default();
    paths.retain(|path| seen.insert(crate::field_index::term(path)));
    paths
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ItemNumber, PullChanges};
    use jiff::{SignedDuration, Timestamp};

    use super::{FixEvidence, FixIndex, FixQuery, MergedPull, names_file, paths_in};

    fn day(day: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * day)
    }

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    #[test]
    fn paths_are_found_in_a_text() {
        let text =
            "panicked at src/store/sqlite.rs:88:40 in store::sqlite::begin, see config.toml and https://x.y/z. Done.";
        assert_eq!(paths_in(text), ["src/store/sqlite.rs", "store/sqlite/begin", "config.toml"]);
    }

    #[test]
    fn a_path_means_a_file_with_the_same_last_folders() {
        for (path, file, expected) in [
            ("src/gui/app.rs", "src/gui/app.rs", true),
            ("gui/app.rs", "src/gui/app.rs", true),
            ("/gui/app.rs", "src/gui/app.rs", true),
            ("ui/app.rs", "src/gui/app.rs", false),
            ("app.rs", "src/gui/app.rs", false),
            ("/app.rs", "src/gui/app.rs", false),
            ("src/gui/app.rs", "app.rs", false),
        ] {
            assert_eq!(names_file(path, file), expected, "{path} {file}");
        }
    }

    #[test]
    fn the_change_that_touches_the_named_file_and_line_is_first() {
        let changes = |file: &str, diff: &str| PullChanges { files: vec![file.to_owned()], diff: diff.to_owned() };
        let fix =
            changes("src/store/sqlite.rs", "-let handle = open_write(path)?;\n+let handle = open(path, mode)?;\n");
        let other = changes("src/ui/theme.rs", "+fn dark() -> Theme { Theme::Dark }\n");
        let pull = |of, title, changes, merged| MergedPull {
            number: number(of),
            title,
            body: "",
            author: None,
            changes: Some(changes),
            created_at: day(merged - 1),
            merged_at: day(merged),
        };
        let index = FixIndex::new(
            [
                pull(7, "Add a dark theme", &other, 12),
                pull(8, "Respect the mode of the handle", &fix, 13),
                // Merged before the issue was opened: it cannot be its fix.
                pull(9, "Opening a read-only database panics", &fix, 3),
            ]
            .into_iter(),
        );
        let issue = FixQuery {
            title: "Opening a read-only database panics",
            body: "At src/store/sqlite.rs:88:\n```\nlet handle = open_write(path)?;\n```",
            author: None,
            created_at: day(10),
        };
        let ranked = index.rank(&issue, 5);
        assert_eq!(ranked[0].number, number(8), "{ranked:?}");
        assert!(ranked.iter().all(|fix| fix.number != number(9)), "{ranked:?}");
        let line = "let handle = open_write(path)?;".to_owned();
        let expected = [FixEvidence::File("src/store/sqlite.rs".to_owned()), FixEvidence::Line(line)];
        assert_eq!(ranked[0].evidence, expected);
        assert_eq!(ranked[0].confidence, None, "two candidates are too few to be sure");
    }

    #[test]
    fn without_pull_requests_nothing_is_ranked() {
        let issue = FixQuery { title: "It stops", body: "", author: None, created_at: day(1) };
        assert!(FixIndex::default().rank(&issue, 5).is_empty());
    }
}
