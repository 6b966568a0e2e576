//! What `git blame` says about the findings of two pushes, and the mistakes of three ways to recognise them.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};

/// A finding as a review of one push reported it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PushFinding {
    /// Canonry's number of the finding.
    pub(crate) id: Option<i64>,
    pub(crate) rule: String,
    pub(crate) path: String,
    pub(crate) line: u32,
    /// Whether Canonry calls it new.
    pub(crate) is_new: bool,
    /// Whether Canonry says that its code is unchanged, so that it is not posted again.
    pub(crate) code_unchanged: bool,
}

/// The findings of one push, and the lines of the files that they may be in.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PushSnapshot {
    pub(crate) commit: String,
    pub(crate) findings: Vec<PushFinding>,
    pub(crate) files: BTreeMap<String, Vec<String>>,
}

/// What git says about the way from one push to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PushTruth {
    /// The paths that differ.
    pub(crate) changed: BTreeSet<String>,
    /// The former paths of renamed files, by their new paths.
    pub(crate) renamed: BTreeMap<String, String>,
    /// For the changed files, the former path and number of each line that the push did not write.
    pub(crate) origins: BTreeMap<(String, u32), (String, u32)>,
}

/// The ways to recognise a finding that are compared.
pub(crate) const METHODS: [&str; 3] = ["Canonry", "line hash", "path and line"];

/// A number of findings, and how many of them each method gets wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MistakeCounts {
    pub(crate) all: usize,
    pub(crate) wrong: [usize; METHODS.len()],
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LedgerCounts {
    /// Findings that persist, and are called new.
    pub(crate) persisting: MistakeCounts,
    /// Those of them in files that the push changed.
    pub(crate) changed: MistakeCounts,
    pub(crate) renamed: MistakeCounts,
    /// Those whose code moved to another file, and whose file was not renamed.
    pub(crate) other_file: MistakeCounts,
    /// Findings on lines whose text is new, and which are not called new.
    pub(crate) written: MistakeCounts,
    /// Those that Canonry calls the same finding with changed code: they are posted again.
    pub(crate) written_followed: usize,
    /// Persisting findings whose code, by Canonry, changed behind their first line: they are posted again.
    pub(crate) persisting_changed: usize,
    /// Persisting findings that Canonry takes for another finding of the same rule.
    pub(crate) swapped: usize,
    /// Canonry's mistakes, to read.
    pub(crate) mistakes: Vec<String>,
}

impl PushTruth {
    /// Where a line was at the push before; `None` if the push wrote it.
    fn origin(&self, path: &str, line: u32) -> Option<(String, u32)> {
        let place = (path.to_owned(), line);
        if self.changed.contains(path) { self.origins.get(&place).cloned() } else { Some(place) }
    }
}

/// The lines that `git blame --porcelain` assigns to a commit: their numbers, with path and number in that commit.
pub(crate) fn lines_of(commit: &str, porcelain: &str) -> Vec<(u32, (String, u32))> {
    let mut paths: BTreeMap<&str, &str> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut at: Option<(&str, u32, u32)> = None;
    for text in porcelain.split('\n') {
        if text.starts_with('\t') {
            if let Some((sha, then, now)) = at.take()
                && sha == commit
                && let Some(path) = paths.get(sha)
            {
                lines.push((now, ((*path).to_owned(), then)));
            }
        } else if let (Some(path), Some((sha, ..))) = (text.strip_prefix("filename "), at) {
            // Git repeats the path only if the commit has lines of several files.
            paths.insert(sha, path);
        } else if at.is_none() {
            let mut words = text.split(' ');
            at = (|| Some((words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?)))();
        }
    }
    lines
}

/// The earlier and the later findings of one rule, by the path and number that their line had before the push.
type FindingGroups<'a> = BTreeMap<(&'a str, String, u32), (Vec<usize>, Vec<usize>)>;

/// Compares two pushes. A finding persists if its line was there before with a finding of the same rule on it.
pub(crate) fn compare(before: &PushSnapshot, now: &PushSnapshot, truth: &PushTruth) -> LedgerCounts {
    let known = known_by_method(before, now);
    let mut counts = LedgerCounts::default();
    let mut groups = FindingGroups::new();
    for (at, one) in before.findings.iter().enumerate() {
        groups.entry((&one.rule, one.path.clone(), one.line)).or_default().0.push(at);
    }
    let texts: BTreeSet<String> = before.files.values().flatten().map(|line| squeezed(line)).collect();
    for (at, one) in now.findings.iter().enumerate() {
        if let Some((path, line)) = truth.origin(&one.path, one.line) {
            groups.entry((&one.rule, path, line)).or_default().1.push(at);
        } else if now.text(one).is_some_and(|text| !texts.contains(&squeezed(text))) {
            let held_back = known.each_ref().map(|method| method[at]);
            let followed = held_back[0] && !one.code_unchanged;
            counts.written.add([held_back[0] && !followed, held_back[1], held_back[2]].map(usize::from), 1);
            counts.written_followed += usize::from(followed);
            if held_back[0] && !followed {
                counts.mistakes.push(format!("wrongly known: {} {}", &now.commit, one.place()));
            }
        }
    }
    for ((_, path, _), (earlier, mut later)) in groups {
        // A copy is not the finding, as long as the original is there.
        if later.iter().any(|at| now.findings[*at].path == path) {
            later.retain(|at| now.findings[*at].path == path);
        }
        let Some(first) = later.first().map(|at| &now.findings[*at]) else { continue };
        let persisting = earlier.len().min(later.len());
        let recognised = known.each_ref().map(|method| later.iter().filter(|at| method[**at]).count());
        let is_changed = |at: &&usize| !now.findings[**at].is_new && !now.findings[**at].code_unchanged;
        counts.persisting_changed += later.iter().filter(is_changed).count().min(persisting);
        let wrong = recognised.map(|count| persisting.saturating_sub(count));
        counts.persisting.add(wrong, persisting);
        if truth.changed.contains(&first.path) {
            counts.changed.add(wrong, persisting);
        }
        if truth.renamed.get(&first.path) == Some(&path) {
            counts.renamed.add(wrong, persisting);
        } else if first.path != path {
            counts.other_file.add(wrong, persisting);
        }
        let ids = |all: &[PushFinding], at: &[usize]| at.iter().filter_map(|at| all[*at].id).collect::<BTreeSet<i64>>();
        let (ids_before, ids_now) = (ids(&before.findings, &earlier), ids(&now.findings, &later));
        let same = ids_before.intersection(&ids_now).count();
        let swapped = persisting.min(recognised[0]).saturating_sub(same);
        counts.swapped += swapped;
        let kind = if wrong[0] > 0 { "wrongly new" } else { "another finding" };
        if wrong[0] > 0 || swapped > 0 {
            let place = earlier.first().map(|at| before.findings[*at].place()).unwrap_or_default();
            let line = now.text(first).unwrap_or_default().trim();
            counts.mistakes.push(format!("{kind}: {} {}, was {place}: {line}", now.commit, first.place()));
        }
    }
    counts
}

/// For each present finding, whether the methods call it known.
fn known_by_method(before: &PushSnapshot, now: &PushSnapshot) -> [Vec<bool>; METHODS.len()] {
    let (hashes_before, hashes_now) = (hashes(before), hashes(now));
    let by_hash = |hashes: &BTreeMap<&str, Vec<(u64, usize)>>, one: &PushFinding| {
        hashes.get(one.path.as_str())?.get(one.line as usize - 1).copied()
    };
    [
        now.findings.iter().map(|one| !one.is_new).collect(),
        known(before, now, |one| by_hash(&hashes_before, one), |one| by_hash(&hashes_now, one)),
        known(before, now, |one| Some(one.line), |one| Some(one.line)),
    ]
}

/// Whether a finding of the same rule with the same mark was in the same file before; each counts once.
fn known<Mark: Ord>(
    before: &PushSnapshot,
    now: &PushSnapshot,
    mark_before: impl Fn(&PushFinding) -> Option<Mark>,
    mark_now: impl Fn(&PushFinding) -> Option<Mark>,
) -> Vec<bool> {
    let mut left: BTreeMap<(&str, &str, Mark), usize> = BTreeMap::new();
    for one in &before.findings {
        if let Some(mark) = mark_before(one) {
            *left.entry((&one.rule, &one.path, mark)).or_default() += 1;
        }
    }
    let mut known = Vec::with_capacity(now.findings.len());
    for one in &now.findings {
        let mark = mark_now(one).map(|mark| (one.rule.as_str(), one.path.as_str(), mark));
        let left = mark.and_then(|mark| left.get_mut(&mark)).filter(|left| **left > 0);
        known.push(left.is_some());
        if let Some(left) = left {
            *left -= 1;
        }
    }
    known
}

/// The length of GitHub's window.
const WINDOW: usize = 100;

/// For each line, a hash of the next characters without white space, and how often it occurred above in the file.
fn line_hashes(lines: &[String]) -> Vec<(u64, usize)> {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    (0..lines.len())
        .map(|first| {
            let characters = lines[first..].iter().flat_map(|line| line.chars()).filter(|c| !c.is_whitespace());
            let mut hasher = DefaultHasher::new();
            characters.take(WINDOW).for_each(|c| c.hash(&mut hasher));
            let hash = hasher.finish();
            let nth = seen.entry(hash).or_default();
            *nth += 1;
            (hash, *nth)
        })
        .collect()
}

fn hashes(push: &PushSnapshot) -> BTreeMap<&str, Vec<(u64, usize)>> {
    let paths: BTreeSet<&str> = push.findings.iter().map(|one| one.path.as_str()).collect();
    paths.into_iter().filter_map(|path| Some((path, line_hashes(push.files.get(path)?)))).collect()
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl PushSnapshot {
    fn text(&self, one: &PushFinding) -> Option<&str> {
        self.files.get(&one.path)?.get(one.line as usize - 1).map(String::as_str)
    }
}

impl PushFinding {
    fn place(&self) -> String {
        format!("{}:{} {}", self.path, self.line, self.rule)
    }
}

impl MistakeCounts {
    pub(crate) fn add(&mut self, wrong: [usize; METHODS.len()], all: usize) {
        self.all += all;
        for (sum, wrong) in self.wrong.iter_mut().zip(wrong) {
            *sum += wrong;
        }
    }
}

impl LedgerCounts {
    pub(crate) fn add(&mut self, other: Self) {
        for (sum, one) in [
            (&mut self.persisting, other.persisting),
            (&mut self.changed, other.changed),
            (&mut self.renamed, other.renamed),
            (&mut self.other_file, other.other_file),
            (&mut self.written, other.written),
        ] {
            sum.add(one.wrong, one.all);
        }
        self.written_followed += other.written_followed;
        self.persisting_changed += other.persisting_changed;
        self.swapped += other.swapped;
        self.mistakes.extend(other.mistakes);
    }
}

#[cfg(test)]
mod tests {
    use super::{LedgerCounts, MistakeCounts, PushFinding, PushSnapshot, PushTruth, compare, line_hashes, lines_of};

    fn finding(path: &str, line: u32, is_new: bool) -> PushFinding {
        PushFinding {
            id: Some(i64::from(line)),
            rule: "no-eval".to_owned(),
            path: path.to_owned(),
            line,
            is_new,
            code_unchanged: !is_new,
        }
    }

    fn push(path: &str, text: &str, findings: Vec<PushFinding>) -> PushSnapshot {
        let files = [(path.to_owned(), text.lines().map(str::to_owned).collect())].into();
        PushSnapshot { commit: "c".to_owned(), findings, files }
    }

    #[test]
    fn the_lines_of_one_commit_are_read() {
        let porcelain = "aaa 3 1 1\nauthor A\nfilename old name.rs\n\teval(x);\nbbb 1 2 1\nauthor B\nfilename new.rs\n\tbbb 4 5\n\
                         aaa 9 3 2\nfilename other.rs\n\ttwo\naaa 10 4\n\tthree\n";
        let other = |line: u32| ("other.rs".to_owned(), line);
        assert_eq!(lines_of("aaa", porcelain), [(1, ("old name.rs".to_owned(), 3)), (3, other(9)), (4, other(10))]);
    }

    #[test]
    fn a_hash_ignores_white_space_and_counts_equal_lines() {
        let lines = |text: &str| line_hashes(&text.lines().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(lines("a( b )\nc")[0], lines("  a(b)\n  c")[0]);
        assert_ne!(lines("a\nb")[0], lines("a\nc")[0]);
        let long = format!("{}\n", "x".repeat(200)).repeat(2);
        let hashes = lines(&long);
        assert_eq!((hashes[0].0 == hashes[1].0, hashes[0].1, hashes[1].1), (true, 1, 2));
    }

    #[test]
    fn each_way_is_counted_by_its_own_mistakes() {
        let before = push("a.js", "one\neval(x)\n", vec![finding("a.js", 2, true)]);
        let later = |is_new, unchanged| {
            let shifted = PushFinding { id: Some(2), ..finding("a.js", 3, is_new) };
            let written = PushFinding { code_unchanged: unchanged, ..finding("a.js", 4, false) };
            push("a.js", "top\none\neval(x)\neval(y)\n", vec![shifted, written])
        };
        let origins = [(("a.js".to_owned(), 3), ("a.js".to_owned(), 2))].into();
        let truth = PushTruth { changed: ["a.js".to_owned()].into(), origins, ..PushTruth::default() };
        let counts = compare(&before, &later(false, false), &truth);
        let one = |wrong| MistakeCounts { all: 1, wrong };
        // The line below the finding is new, and is part of its hash.
        assert_eq!((counts.persisting, counts.changed), (one([0, 1, 1]), one([0, 1, 1])));
        assert_eq!((counts.written, counts.written_followed, counts.swapped), (one([0, 0, 0]), 1, 0));
        let counts = compare(&before, &later(true, true), &truth);
        assert_eq!((counts.persisting, counts.written), (one([1, 1, 1]), one([1, 0, 0])));
        assert_eq!(counts.mistakes.len(), 2, "{:?}", counts.mistakes);
    }

    #[test]
    fn a_renamed_file_and_a_copy_are_told_apart() {
        let before = push("old.js", "eval(x)\n", vec![finding("old.js", 1, true)]);
        let now = push("new.js", "eval(x)\n", vec![finding("new.js", 1, false)]);
        let truth = PushTruth {
            changed: ["old.js".to_owned(), "new.js".to_owned()].into(),
            renamed: [("new.js".to_owned(), "old.js".to_owned())].into(),
            origins: [(("new.js".to_owned(), 1), ("old.js".to_owned(), 1))].into(),
        };
        let wrong = MistakeCounts { all: 1, wrong: [0, 1, 1] };
        assert_eq!(compare(&before, &now, &truth).renamed, wrong);
        let truth = PushTruth { renamed: [].into(), ..truth };
        assert_eq!(compare(&before, &now, &truth).other_file, wrong);
        let kept = PushTruth { changed: ["new.js".to_owned()].into(), ..truth };
        let mut both = now;
        both.findings.push(finding("old.js", 1, false));
        let counts: LedgerCounts = compare(&before, &both, &kept);
        assert_eq!((counts.persisting.all, counts.other_file.all), (1, 0));
    }
}
