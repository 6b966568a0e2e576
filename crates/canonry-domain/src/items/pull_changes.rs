//! The changes of a pull request: its paths and its changed lines.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The changes of a pull request, from an import file or from GitHub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullChanges {
    /// The changed paths, in the order of the source.
    pub files: Vec<String>,
    /// The changed lines, each after `+` or `-`.
    pub diff: String,
}

/// How much of a change that was sent again is known to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentAgain {
    Whole,
    /// The change is so large that the rest may differ.
    Beginning,
}

/// How many changed files a judge sees, and how many characters of each and of all.
const FILES_READ: usize = 30;
const FILE_READ: usize = 2_000;
const CHANGES_READ: usize = 12_000;
/// The fewest lines by which a change is recognised, and the fewest letters of such a line. Chosen, not measured.
const SHARED_LINES: usize = 3;
const TELLING_LETTERS: usize = 8;
/// The fewest lines of a change that another contains, and how many times as many lines that other must have.
const CONTAINED_LINES: usize = 10;
const CONTAINED_TIMES: usize = 5;
/// A change with so many shared lines may be stored only in part, or its branch may carry other commits.
const MANY_LINES: usize = 50;

impl PullChanges {
    /// The paths of these files, and the changed lines of the first ones. Each file has its path and its patch.
    pub fn of_patches<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut paths, mut diff, mut left) = (Vec::new(), String::new(), CHANGES_READ);
        for (at, (path, patch)) in files.enumerate() {
            paths.push(path.to_owned());
            if at >= FILES_READ {
                continue;
            }
            let changed = patch.lines().filter(|line| line.starts_with(['+', '-']));
            let lines: String = changed.flat_map(|line| [line, "\n"]).collect();
            let shown: String = lines.chars().take(FILE_READ.min(left)).collect();
            left -= shown.chars().count();
            diff.push_str(&shown);
            if !shown.is_empty() && !shown.ends_with('\n') {
                diff.push('\n');
            }
        }
        Self { files: paths, diff }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.diff.is_empty()
    }

    /// Whether two changes are the same change: four in five of the lines of both are in both. A few lines prove
    /// nothing, nor do lines without words, which every change has.
    pub fn is_same_change(&self, other: &Self) -> bool {
        let (own, others) = (self.telling_lines(), other.telling_lines());
        let shared = own.intersection(&others).count();
        shared >= SHARED_LINES && shared * 5 >= own.union(&others).count() * 4
    }

    /// Whether one change was sent twice: the same lines of the same files, or, of a change of a line or two, exactly
    /// the same, if all of it is known. Of a change to many files only the first files are stored, which proves nothing; a
    /// branch with other people's commits begins with those.
    pub fn is_sent_again(&self, other: &Self) -> Option<SentAgain> {
        let [own, others]: [BTreeSet<&String>; 2] = [self, other].map(|changes| changes.files.iter().collect());
        let is_known = |files: &BTreeSet<&String>| (1..=FILES_READ).contains(&files.len());
        let same_files = own.intersection(&others).count() * 5 >= own.union(&others).count() * 4;
        let is_equal =
            own == others && self.diff == other.diff && self.is_known_whole() && !self.telling_lines().is_empty();
        if !is_known(&own) || !is_known(&others) || !same_files || !(is_equal || self.is_same_change(other)) {
            return None;
        }
        let is_whole = self.shared_lines(other).0 < MANY_LINES;
        Some(if is_whole { SentAgain::Whole } else { SentAgain::Beginning })
    }

    /// Whether every changed line is certainly stored. The diff does not say where a file begins, so of several files one
    /// may be an image, whose patch has no lines, or cut at the limit.
    fn is_known_whole(&self) -> bool {
        self.files.len() == 1 && !self.diff.is_empty() && self.diff.chars().count() < FILE_READ
    }

    /// How many changed lines both have, and how many the smaller change has. Lines without words do not count.
    pub fn shared_lines(&self, other: &Self) -> (usize, usize) {
        let (own, others) = (self.telling_lines(), other.telling_lines());
        (own.intersection(&others).count(), own.len().min(others.len()))
    }

    /// Whether one change removes what the other adds and adds what it removes, by the same measure.
    pub(crate) fn is_inverse_of(&self, other: &Self) -> bool {
        let inverse = |(sign, text): (char, &'_ str)| (if sign == '+' { '-' } else { '+' }, text.to_owned());
        let own: BTreeSet<(char, String)> = self.telling_lines().into_iter().map(inverse).collect();
        let others: BTreeSet<(char, String)> =
            other.telling_lines().into_iter().map(|(sign, text)| (sign, text.to_owned())).collect();
        let shared = own.intersection(&others).count();
        // Lines that only moved are both removed and added.
        shared >= SHARED_LINES && shared * 5 >= own.union(&others).count() * 4 && !self.is_same_change(other)
    }

    /// Whether this change contains the other and several times as many lines of its own: a collection of changes, or
    /// one that was made on top of the other. Duplicates contain each other too, but with fewer lines of their own: of
    /// 12 such pairs that people linked in rust and rails, one has five times the lines, and then only of six lines.
    pub(crate) fn contains_change(&self, other: &Self) -> bool {
        let (own, others) = (self.telling_lines(), other.telling_lines());
        let shared = own.intersection(&others).count();
        others.len() >= CONTAINED_LINES
            && shared * 10 >= others.len() * 9
            && own.len() >= others.len() * CONTAINED_TIMES
    }

    fn telling_lines(&self) -> BTreeSet<(char, &str)> {
        let lines = self.diff.lines().filter_map(|line| {
            let sign = line.chars().next()?;
            let text = line.strip_prefix(['+', '-'])?.trim();
            (text.chars().filter(|letter| letter.is_alphanumeric()).count() >= TELLING_LETTERS).then_some((sign, text))
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{FILES_READ, MANY_LINES, PullChanges, SentAgain};

    #[test]
    fn the_same_change_is_recognised_by_most_of_its_lines() {
        let change = |diff: &str| PullChanges { files: Vec::new(), diff: diff.to_owned() };
        let lines = "-    return glyphs.get(letter)\n+    found = glyphs.get(letter)\n+    if found is None:\n+    }\n\
            +        found = fallback_font.glyph_of(letter)\n+    return found_or_box\n";
        let whole = change(lines);
        assert!(whole.is_same_change(&whole));
        assert!(whole.is_same_change(&change(&lines.replace("+    }\n", ""))), "a line without words");
        assert!(!whole.is_same_change(&change(&lines.replace('+', "-"))), "the opposite change");
        let other = lines.replace("found_or_box", "nothing_at_all").replace("glyph_of", "box_of");
        assert!(!whole.is_same_change(&change(&other)), "half of the lines");
        let short = change("+    found = glyphs.get(letter)\n+    return found_or_box\n");
        assert!(!short.is_same_change(&short), "two lines prove nothing");
        assert!(!change("").is_same_change(&change("")));
        assert_eq!(whole.shared_lines(&short), (2, 2));
        assert_eq!((whole.shared_lines(&change(&other)), whole.shared_lines(&change(""))), ((3, 5), (0, 0)));
    }

    #[test]
    fn a_change_sent_again_touches_the_same_files() {
        let lines =
            |count: usize| (0..count).map(|at| format!("+let column_{at} = measured(at);\n")).collect::<String>();
        let files = |count: usize| (0..count).map(|at| format!("src/pane_{at}.rs")).collect::<Vec<_>>();
        let change = |count, diff: &str| PullChanges { files: files(count), diff: diff.to_owned() };
        let first = change(5, &lines(8));
        for (again, expected) in [
            (change(5, &lines(8)), Some(SentAgain::Whole)),
            (change(4, &lines(7)), Some(SentAgain::Whole)),
            (change(3, &lines(8)), None),
            (change(0, &lines(8)), None),
            (change(5, &lines(4)), None),
            (change(5, "+let other = nothing(at);\n"), None),
        ] {
            assert_eq!(first.is_sent_again(&again), expected, "{again:?}");
            assert_eq!(again.is_sent_again(&first), expected, "{again:?}");
        }
        let large = change(5, &lines(MANY_LINES));
        assert_eq!(large.is_sent_again(&large), Some(SentAgain::Beginning));
        let tree = change(FILES_READ + 1, &lines(8));
        assert_eq!(tree.is_sent_again(&tree), None, "only the first files are known");
        let short = change(1, "+let column = measured(at);\n");
        assert_eq!(short.is_sent_again(&short), Some(SentAgain::Whole), "exactly the same");
        assert_eq!(short.is_sent_again(&change(2, &short.diff)), None, "the same line elsewhere");
    }

    #[test]
    fn a_change_that_is_known_in_part_is_not_exactly_the_same() {
        let bundle = |added: &str| format!("@@ -1 +1 @@\n-{}\n+{added}", "!function(e){}".repeat(200));
        let (one, other) = (bundle("let a=first();"), bundle("let b=second();"));
        let [one, other] =
            [one, other].map(|patch| PullChanges::of_patches([("dist/app.min.js", patch.as_str())].into_iter()));
        assert_eq!(one, other, "only the beginning is stored");
        assert_eq!(one.is_sent_again(&other), None);
        // Of an image GitHub sends no patch.
        let line = "@@ -3,0 +4 @@\n+- The logo is sharper on small screens.";
        let with_image = PullChanges::of_patches([("logo.png", ""), ("CHANGELOG.md", line)].into_iter());
        assert_eq!(with_image.is_sent_again(&with_image), None);
        let alone = PullChanges::of_patches([("CHANGELOG.md", line)].into_iter());
        assert_eq!(alone.is_sent_again(&alone), Some(SentAgain::Whole));
        let three = "@@ -3,0 +4,3 @@\n+- The logo is sharper.\n+- The menu is wider.\n+- The table is faster.";
        let with_image = PullChanges::of_patches([("logo.png", ""), ("CHANGELOG.md", three)].into_iter());
        assert_eq!(with_image.is_sent_again(&with_image), Some(SentAgain::Whole), "three lines are enough");
    }

    #[test]
    fn changed_lines_are_read_within_their_limits() {
        let files = [("a.rs", "@@ -1,2 +1,2 @@\n context\n-old\n+new"), ("b.rs", "")];
        let changes = PullChanges::of_patches(files.into_iter());
        assert_eq!((changes.files.len(), changes.diff.as_str()), (2, "-old\n+new\n"));
        let long = format!("+{}", "x".repeat(5_000));
        let changes = PullChanges::of_patches(std::iter::repeat_n(("a.rs", long.as_str()), 40));
        assert_eq!(changes.files.len(), 40);
        assert!((12_000..12_040).contains(&changes.diff.chars().count()), "{}", changes.diff.len());
    }
}
