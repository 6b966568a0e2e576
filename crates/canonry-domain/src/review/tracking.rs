//! Matches the findings of a run with earlier findings, and decides what happened to the earlier ones without a match.
//!
//! The surest criteria come first: each step sees only what the steps before it did not match. Each finding is matched
//! once.

use std::collections::{BTreeMap, BTreeSet};

use crate::review::{CodeIndex, Dismissal, Finding, LineMap, LineRange, PatternKey, RepoPath, ReviewerName};
use crate::text_enum;

#[derive(Debug, Clone, PartialEq)]
pub struct TrackedFinding {
    /// The finding as it was last reported.
    pub finding: Finding,
    /// Whether it was fixed since. Then it matters only if it comes back.
    pub fixed: bool,
    pub dismissals: Vec<Dismissal>,
}

/// What happened to the files since the earlier findings were reported, and which files were read now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileMaps {
    /// The new path of a file, by its old path; a file that is missing here kept its path.
    pub renamed: BTreeMap<RepoPath, RepoPath>,
    /// The line maps, by the old path; a file that is missing here is unchanged.
    pub lines: BTreeMap<RepoPath, LineMap>,
    /// The old paths of files that were deleted, or that the change no longer touches.
    pub gone: BTreeSet<RepoPath>,
    pub read: BTreeSet<(ReviewerName, RepoPath)>,
    /// Whether the code of the earlier findings was public, as the commits of a pull request are.
    pub was_pushed: bool,
}

text_enum! {
    /// How a finding was recognised.
    pub enum FindingMatch: "a way to recognise a finding" {
        SameLine = "same_line",
        SameCode = "same_code",
        SamePlace = "same_place",
        OtherFile = "other_file",
        ToolsFingerprint = "tools_fingerprint",
        ChangedLine = "changed_line",
    }
}

/// An earlier finding and the current finding that matches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedFinding {
    pub earlier: usize,
    pub now: usize,
    pub found: FindingMatch,
    /// Whether the flagged code is unchanged, or for a finding without code, its file.
    pub code_unchanged: bool,
}

/// What happened to an earlier finding that no reviewer reports now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnseenFinding {
    Fixed,
    /// No reviewer read its file, or only a model did, whose answers vary. The finding stays, at the current place of
    /// its code.
    Stands {
        path: RepoPath,
        /// The current lines; `None` if the finding has none.
        lines: Option<LineRange>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrackedFindings {
    /// The recognised findings, in the order of the current ones.
    pub followed: Vec<FollowedFinding>,
    /// The earlier findings that are not fixed and that no reviewer reports now.
    pub unseen: Vec<(usize, UnseenFinding)>,
    pub new: Vec<usize>,
}

/// Matches the current findings with the earlier ones.
pub fn track(
    earlier: &[TrackedFinding],
    now: &[Finding],
    files: &FileMaps,
    code_now: &mut CodeIndex<'_>,
) -> TrackedFindings {
    let mut matching = FindingMatcher {
        places: earlier.iter().map(|one| files.place_of(&one.finding, code_now)).collect(),
        keys_before: earlier.iter().map(|one| keys_of(&one.finding)).collect(),
        keys_now: now.iter().map(keys_of).collect(),
        earlier,
        now,
        of_earlier: vec![None; earlier.len()],
        of_now: vec![None; now.len()],
    };
    // Findings that are not fixed are matched before fixed ones.
    for fixed in [false, true] {
        matching.recognise(fixed);
    }
    let FindingMatcher { of_earlier, of_now, places, .. } = matching;
    let followed = of_now.iter().enumerate().filter_map(|(at, found)| {
        let (before, found) = (*found)?;
        let code_unchanged = files.is_unchanged(&earlier[before].finding, &now[at]);
        Some(FollowedFinding { earlier: before, now: at, found, code_unchanged })
    });
    let unseen = (0..earlier.len()).filter(|at| of_earlier[*at].is_none() && !earlier[*at].fixed);
    TrackedFindings {
        followed: followed.collect(),
        unseen: unseen.map(|at| (at, files.fate(&earlier[at].finding, &places[at], code_now))).collect(),
        new: (0..now.len()).filter(|at| of_now[*at].is_none()).collect(),
    }
}

fn keys_of(finding: &Finding) -> BTreeSet<&PatternKey> {
    finding.witnesses.iter().map(|witness| &witness.key).collect()
}

/// The expected current place of an earlier finding.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    path: RepoPath,
    file_is_gone: bool,
    /// The lines where its code was found in the file.
    located: Option<LineRange>,
    /// Whether its code is known to have left the file: only then can it be in another file.
    has_left: bool,
    /// The current number of its first line, if that line survived.
    exact: Option<u32>,
    /// The line nearest to its former first line.
    nearest: u32,
}

impl FileMaps {
    /// Whether the code of a finding is unchanged. A finding without code is about its file: it is unchanged as long
    /// as the file is not changed at all.
    fn is_unchanged(&self, before: &Finding, now: &Finding) -> bool {
        match (&before.code, &now.code) {
            (None, None) => {
                let path = &before.path;
                *path == now.path && !self.lines.contains_key(path) && !self.renamed.contains_key(path)
            }
            (then, now) => then == now,
        }
    }

    fn place_of(&self, finding: &Finding, code_now: &mut CodeIndex<'_>) -> Place {
        let path = self.renamed.get(&finding.path).unwrap_or(&finding.path).clone();
        let line = finding.lines.map_or(0, |lines| lines.first);
        let (exact, nearest) = match self.lines.get(&finding.path) {
            Some(map) if line > 0 => (map.line(line), map.nearest(line)),
            _ => (Some(line), line),
        };
        let file_is_gone = self.gone.contains(&finding.path);
        let expected = expected_lines(finding, nearest).zip(finding.code.as_ref());
        let located = expected.and_then(|(lines, code)| code_now.nearest(&path, lines, code));
        let has_left = file_is_gone || (expected.is_some() && located.is_none() && code_now.lines(&path).is_some());
        Place { path, file_is_gone, located, has_left, exact, nearest }
    }

    fn fate(&self, finding: &Finding, place: &Place, code_now: &CodeIndex<'_>) -> UnseenFinding {
        if self.was_pushed && finding.leaks_credential() {
            // Everybody who read the branch has the credential: a later commit does not make it secret again.
            let lines = if place.has_left { None } else { place.lines(finding) };
            return UnseenFinding::Stands { path: place.path.clone(), lines };
        }
        if place.file_is_gone {
            return UnseenFinding::Fixed;
        }
        let lines = place.lines(finding);
        let stands = UnseenFinding::Stands { path: place.path.clone(), lines };
        let read_by = |reviewer: &ReviewerName| self.read.contains(&(reviewer.clone(), place.path.clone()));
        if !finding.witnesses.iter().all(|witness| read_by(&witness.reviewer)) {
            return stands;
        }
        let is_models_alone = finding.witnesses.iter().all(|witness| witness.reviewer.is_model());
        // A model that does not report the same code again has not seen it fixed.
        let may_stand = place.located.is_some() || finding.code.is_none() || code_now.lines(&place.path).is_none();
        if is_models_alone && may_stand { stands } else { UnseenFinding::Fixed }
    }
}

impl Place {
    /// The current lines of the finding's code, or the expected ones.
    fn lines(&self, finding: &Finding) -> Option<LineRange> {
        self.located.or_else(|| expected_lines(finding, self.nearest))
    }
}

/// The lines of an earlier finding if its first line is `first` now.
fn expected_lines(finding: &Finding, first: u32) -> Option<LineRange> {
    let length = finding.lines?.last.saturating_sub(finding.lines?.first);
    LineRange::new(first, first.saturating_add(length))
}

struct FindingMatcher<'a> {
    earlier: &'a [TrackedFinding],
    now: &'a [Finding],
    keys_before: Vec<BTreeSet<&'a PatternKey>>,
    keys_now: Vec<BTreeSet<&'a PatternKey>>,
    places: Vec<Place>,
    of_earlier: Vec<Option<usize>>,
    of_now: Vec<Option<(usize, FindingMatch)>>,
}

/// The maximum number of pairs in one bucket that are compared one by one; a larger bucket is matched in line order.
const PAIRS: usize = 10_000;

impl FindingMatcher<'_> {
    fn recognise(&mut self, fixed: bool) {
        self.step(
            fixed,
            FindingMatch::SameLine,
            |one, place| Some((place.path.clone(), place.exact?, one.code.clone())),
            |one| Some((one.path.clone(), one.lines.map_or(0, |lines| lines.first), one.code.clone())),
        );
        self.step(
            fixed,
            FindingMatch::SameCode,
            |one, place| Some((place.path.clone(), one.code.clone()?)),
            |one| Some((one.path.clone(), one.code.clone()?)),
        );
        self.step(
            fixed,
            FindingMatch::SamePlace,
            |one, place| Some((place.path.clone(), one.around.clone()?)),
            |one| Some((one.path.clone(), one.around.clone()?)),
        );
        // The same words in another file are often another problem. They count only if the finding's own file was
        // deleted, or if the code left that file together with the code around it.
        let with_around = |one: &Finding| Some((one.code.clone()?, one.around.clone()?));
        self.step(fixed, FindingMatch::OtherFile, |one, at| with_around(one).filter(|_| at.file_is_gone), with_around);
        self.step(
            fixed,
            FindingMatch::OtherFile,
            |one, at| one.code.clone().filter(|_| at.file_is_gone),
            |one| one.code.clone(),
        );
        self.step(fixed, FindingMatch::OtherFile, |one, at| with_around(one).filter(|_| at.has_left), with_around);
        self.by_tools_fingerprint(fixed);
        self.step(
            fixed,
            FindingMatch::ChangedLine,
            |_, place| Some((place.path.clone(), place.nearest)),
            |one| Some((one.path.clone(), one.lines.map_or(0, |lines| lines.first))),
        );
    }

    /// Matches the remaining findings that have the same mark, the nearest first. Findings with exactly the same
    /// reviewers are matched first, then those that have a reviewer in common. Otherwise a finding of two reviewers
    /// could be matched with a finding of one of them.
    fn step<Mark: Ord>(
        &mut self,
        fixed: bool,
        found: FindingMatch,
        mark_before: impl Fn(&Finding, &Place) -> Option<Mark>,
        mark_now: impl Fn(&Finding) -> Option<Mark>,
    ) {
        self.bucketed(fixed, found, &mark_before, &mark_now, |keys| vec![keys.clone()]);
        if self.keys_before.iter().chain(&self.keys_now).any(|keys| keys.len() > 1) {
            self.bucketed(fixed, found, &mark_before, &mark_now, |keys| keys.iter().copied().collect());
        }
    }

    fn bucketed<'k, Key: Ord, Mark: Ord>(
        &'k mut self,
        fixed: bool,
        found: FindingMatch,
        mark_before: impl Fn(&Finding, &Place) -> Option<Mark>,
        mark_now: impl Fn(&Finding) -> Option<Mark>,
        keys: impl Fn(&BTreeSet<&'k PatternKey>) -> Vec<Key>,
    ) {
        let mut buckets: BTreeMap<(Key, Mark), (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (at, one) in self.earlier.iter().enumerate() {
            if one.fixed != fixed || self.of_earlier[at].is_some() {
                continue;
            }
            for key in keys(&self.keys_before[at]) {
                if let Some(mark) = mark_before(&one.finding, &self.places[at]) {
                    buckets.entry((key, mark)).or_default().0.push(at);
                }
            }
        }
        for (at, one) in self.now.iter().enumerate() {
            if self.of_now[at].is_some() {
                continue;
            }
            for key in keys(&self.keys_now[at]) {
                if let Some(mark) = mark_now(one)
                    && let Some(bucket) = buckets.get_mut(&(key, mark))
                {
                    bucket.1.push(at);
                }
            }
        }
        let buckets: Vec<(Vec<usize>, Vec<usize>)> = buckets.into_values().collect();
        for (before, now) in buckets {
            self.pair_up(&before, &now, found);
        }
    }

    /// Matches by the tool's own fingerprint. It is a hash of lines, so identical code in another file has the same
    /// one: another file counts only if the earlier finding left its own.
    fn by_tools_fingerprint(&mut self, fixed: bool) {
        for same_file in [true, false] {
            // A tool may write the same fingerprint for everything: all findings that share one form a single bucket,
            // instead of every pair being compared.
            type Mark<'a> = (&'a PatternKey, &'a str, &'a str, Option<&'a RepoPath>);
            let mut buckets: BTreeMap<Mark<'_>, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
            for (at, one) in self.earlier.iter().enumerate() {
                let place = &self.places[at];
                if one.fixed == fixed && self.of_earlier[at].is_none() && (same_file || place.has_left) {
                    for (name, value) in &one.finding.partial {
                        let mark = (one.finding.key(), name.as_str(), value.as_str(), same_file.then_some(&place.path));
                        buckets.entry(mark).or_default().0.push(at);
                    }
                }
            }
            for (at, one) in self.now.iter().enumerate().filter(|(at, _)| self.of_now[*at].is_none()) {
                for (name, value) in &one.partial {
                    let mark = (one.key(), name.as_str(), value.as_str(), same_file.then_some(&one.path));
                    if let Some(bucket) = buckets.get_mut(&mark) {
                        bucket.1.push(at);
                    }
                }
            }
            let buckets: Vec<(Vec<usize>, Vec<usize>)> = buckets.into_values().collect();
            for (before, now) in buckets {
                self.pair_up(&before, &now, FindingMatch::ToolsFingerprint);
            }
        }
    }

    fn pair_up(&mut self, before: &[usize], now: &[usize], found: FindingMatch) {
        let line_now = |at: usize| self.now[at].lines.map_or(0, |lines| lines.first);
        let mut pairs: Vec<(u32, usize, usize)> = if before.len().saturating_mul(now.len()) <= PAIRS {
            let all = before.iter().flat_map(|one| now.iter().map(move |other| (*one, *other)));
            all.map(|(one, other)| (self.places[one].nearest.abs_diff(line_now(other)), one, other)).collect()
        } else {
            let (mut before, mut now) = (before.to_vec(), now.to_vec());
            before.sort_by_key(|at| (self.places[*at].nearest, *at));
            now.sort_by_key(|at| (line_now(*at), *at));
            before.into_iter().zip(now).map(|(one, other)| (0, one, other)).collect()
        };
        pairs.sort_unstable();
        for (_, one, other) in pairs {
            if self.of_earlier[one].is_none() && self.of_now[other].is_none() {
                self.of_earlier[one] = Some(other);
                self.of_now[other] = Some((one, found));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{FileMaps, FindingMatch, TrackedFinding, TrackedFindings, UnseenFinding, track};
    use crate::review::finding::tests::finding;
    use crate::review::{CodeHash, CodeIndex, Finding, Hunk, LineMap, LineRange, RepoPath, ReviewerName};

    fn path(text: &str) -> RepoPath {
        RepoPath::new(text).expect("a path")
    }

    fn eslint() -> ReviewerName {
        ReviewerName::tool("eslint")
    }

    fn was(finding: Finding) -> TrackedFinding {
        TrackedFinding { finding, fixed: false, dismissals: Vec::new() }
    }

    fn tracked(earlier: &[TrackedFinding], now: &[Finding], files: &FileMaps) -> TrackedFindings {
        track(earlier, now, files, &mut CodeIndex::default())
    }

    #[test]
    fn a_finding_is_followed_through_a_rename_and_inserted_lines() {
        let files = FileMaps {
            renamed: [(path("old.js"), path("new.js"))].into(),
            lines: [(path("old.js"), LineMap::new(vec![Hunk { old_start: 0, old: 0, new_start: 1, new: 200 }]))].into(),
            ..FileMaps::default()
        };
        let earlier = [was(finding("old.js", 7, eslint(), "No eval"))];
        let now = [finding("new.js", 7, eslint(), "No eval"), finding("new.js", 207, eslint(), "No eval")];
        let tracked = tracked(&earlier, &now, &files);
        assert_eq!(tracked.followed.len(), 1);
        assert_eq!((tracked.followed[0].now, tracked.followed[0].found), (1, FindingMatch::SameLine));
        assert!(tracked.followed[0].code_unchanged);
        assert_eq!(tracked.new, [0]);
    }

    #[test]
    fn moved_code_is_found_in_its_file_and_in_another() {
        let with_around = |finding: Finding, around: &str| Finding { around: Some(CodeHash::of([around])), ..finding };
        let earlier = [
            was(finding("a.js", 7, eslint(), "No eval")),
            was(finding("gone.js", 9, eslint(), "No alert")),
            was(with_around(finding("a.js", 11, eslint(), "No with"), "same")),
            was(with_around(finding("a.js", 13, eslint(), "No void"), "one")),
        ];
        let now = [
            finding("a.js", 70, eslint(), "No eval"),
            finding("b.js", 1, eslint(), "No alert"),
            with_around(finding("b.js", 3, eslint(), "No with"), "same"),
            // The same words elsewhere, and nothing else in common.
            with_around(finding("b.js", 5, eslint(), "No void"), "other"),
        ];
        let (files, file) = (FileMaps { gone: [path("gone.js")].into(), ..FileMaps::default() }, path("a.js"));
        let tracked = track(&earlier, &now, &files, &mut CodeIndex::new([(&file, "rewritten();")]));
        let found: Vec<_> = tracked.followed.iter().map(|one| (one.earlier, one.now, one.found)).collect();
        assert_eq!(
            found,
            [(0, 0, FindingMatch::SameCode), (1, 1, FindingMatch::OtherFile), (2, 2, FindingMatch::OtherFile)]
        );
        assert_eq!(tracked.new, [3]);
    }

    #[test]
    fn code_that_stands_where_it_was_has_not_moved_elsewhere() {
        let twin = |path: &str| {
            let code = Some(CodeHash::of(["eval(x);"]));
            Finding { code, around: Some(CodeHash::of(["same"])), ..finding(path, 1, eslint(), "No eval") }
        };
        let (kept, earlier, file) = (path("kept.js"), [was(twin("kept.js"))], "eval(x);\n");
        let tracked = track(&earlier, &[twin("new.js")], &FileMaps::default(), &mut CodeIndex::new([(&kept, file)]));
        assert_eq!((tracked.followed.len(), tracked.unseen.len(), tracked.new.as_slice()), (0, 1, &[0][..]));
    }

    #[test]
    fn of_twins_the_nearest_is_the_same() {
        let at = |line| finding("a.js", line, eslint(), "No eval");
        let earlier = [was(at(100)), was(at(10)), was(at(50))];
        let tracked = tracked(&earlier, &[at(12), at(98)], &FileMaps::default());
        let found: Vec<_> = tracked.followed.iter().map(|one| (one.earlier, one.now)).collect();
        assert_eq!(found, [(1, 0), (0, 1)]);
    }

    #[test]
    fn a_tools_own_fingerprint_follows_changed_code() {
        let marked = |path: &str, line, code: &str| Finding {
            code: Some(CodeHash::of([code])),
            partial: [("hash".to_owned(), "abc:1".to_owned())].into(),
            ..finding(path, line, eslint(), "No eval")
        };
        let earlier = [was(marked("a.js", 7, "eval(x)"))];
        let same_file = tracked(&earlier, &[marked("a.js", 70, "eval(y)")], &FileMaps::default());
        assert_eq!(
            same_file.followed.iter().map(|one| one.found).collect::<Vec<_>>(),
            [FindingMatch::ToolsFingerprint]
        );
        assert!(!same_file.followed[0].code_unchanged);
        assert_eq!(tracked(&earlier, &[marked("b.js", 70, "eval(y)")], &FileMaps::default()).new, [0]);
    }

    #[test]
    fn a_finding_of_a_file_that_is_gone_comes_before_one_that_was_fixed() {
        let twin = |path: &str, line| Finding {
            around: Some(CodeHash::of(["same"])),
            ..finding(path, line, eslint(), "No eval")
        };
        let earlier = [was(twin("fixed.js", 3)), was(twin("old.js", 3))];
        let files = FileMaps {
            gone: [path("old.js")].into(),
            read: [(eslint(), path("fixed.js"))].into(),
            ..FileMaps::default()
        };
        let tracked = tracked(&earlier, &[twin("new.js", 203)], &files);
        assert_eq!(tracked.followed.iter().map(|one| (one.earlier, one.now)).collect::<Vec<_>>(), [(1, 0)]);
        assert_eq!(tracked.unseen, [(0, UnseenFinding::Fixed)]);
    }

    #[test]
    fn what_nobody_reports_is_fixed_only_if_somebody_looked() {
        let earlier = [was(finding("a.js", 7, eslint(), "No eval"))];
        let unread = tracked(&earlier, &[], &FileMaps::default());
        let stands = UnseenFinding::Stands { path: path("a.js"), lines: LineRange::new(7, 7) };
        assert_eq!(unread.unseen, [(0, stands)]);
        let files = FileMaps { read: [(eslint(), path("a.js"))].into(), ..FileMaps::default() };
        assert_eq!(tracked(&earlier, &[], &files).unseen, [(0, UnseenFinding::Fixed)]);
        let gone = FileMaps { gone: [path("a.js")].into(), ..FileMaps::default() };
        assert_eq!(tracked(&earlier, &[], &gone).unseen, [(0, UnseenFinding::Fixed)]);
    }

    #[test]
    fn a_pushed_credential_is_never_fixed() {
        let mut key = finding("a.js", 2, ReviewerName::builtin(), "A credential is committed");
        key.code = Some(CodeHash::of(["key = 1;"]));
        key.witnesses[0].rule = Some("leaked-credential".to_owned());
        let read: BTreeSet<_> = [(ReviewerName::builtin(), path("a.js"))].into();
        let pushed = FileMaps { read, was_pushed: true, ..FileMaps::default() };
        let (earlier, file) = ([was(key.clone())], path("a.js"));
        let fate = |maps: &FileMaps, text: &str| {
            track(&earlier, &[], maps, &mut CodeIndex::new([(&file, text)])).unseen[0].1.clone()
        };
        let stands = |lines| UnseenFinding::Stands { path: path("a.js"), lines };
        assert_eq!(fate(&pushed, "a();\nb();\n"), stands(None));
        assert_eq!(fate(&pushed, "a();\nb();\nkey = 1;\n"), stands(LineRange::new(3, 3)));
        let gone = FileMaps { gone: [path("a.js")].into(), ..pushed.clone() };
        assert_eq!(tracked(&earlier, &[], &gone).unseen, [(0, stands(None))]);
        // Once the line is removed, the finding stays without a line until the code is back.
        let removed = [was(Finding { lines: None, ..key.clone() })];
        assert_eq!(tracked(&removed, &[], &pushed).unseen, [(0, stands(None))]);
        let back = Finding { lines: LineRange::new(9, 9), ..key };
        assert_eq!(tracked(&removed, &[back], &pushed).followed[0].found, FindingMatch::SameCode);
        // Code that nobody else could read is not leaked.
        let local = FileMaps { was_pushed: false, ..pushed };
        assert_eq!(fate(&local, "a();\nb();\n"), UnseenFinding::Fixed);
    }

    #[test]
    fn a_models_silence_about_the_same_code_fixes_nothing() {
        let mut model = finding("a.js", 2, ReviewerName::model(), "Race");
        model.code = Some(CodeHash::of(["share();"]));
        let files = FileMaps { read: [(ReviewerName::model(), path("a.js"))].into(), ..FileMaps::default() };
        let (earlier, file) = ([was(model)], path("a.js"));
        let fate = |text: &str| track(&earlier, &[], &files, &mut CodeIndex::new([(&file, text)])).unseen[0].1.clone();
        let stands = |line| UnseenFinding::Stands { path: path("a.js"), lines: LineRange::new(line, line) };
        assert_eq!(fate("a();\nshare();\n"), stands(2));
        assert_eq!(fate("a();\nb();\nc();\n  share();\n"), stands(4));
        assert_eq!(fate("a();\nlock().share();\n"), UnseenFinding::Fixed);
    }

    #[test]
    fn a_remark_on_a_whole_file_is_the_same_while_the_file_is() {
        let remark = |path: &str| Finding { code: None, lines: None, ..finding(path, 1, eslint(), "Too large") };
        let earlier = [was(remark("a.bin"))];
        let follow = |to: &str, files: &FileMaps| {
            let followed = tracked(&earlier, &[remark(to)], files).followed;
            followed.iter().map(|one| one.code_unchanged).collect::<Vec<_>>()
        };
        assert_eq!(follow("a.bin", &FileMaps::default()), [true]);
        // Git reports no lines for a binary file, only that it differs.
        let lines = [(path("a.bin"), LineMap::default())].into();
        assert_eq!(follow("a.bin", &FileMaps { lines, ..FileMaps::default() }), [false]);
        let renamed = [(path("a.bin"), path("b.bin"))].into();
        assert_eq!(follow("b.bin", &FileMaps { renamed, ..FileMaps::default() }), [false]);
    }

    #[test]
    fn a_finding_of_two_reviewers_takes_nobodys_place() {
        let of = |reviewers: &[&str]| {
            let mut all = reviewers.iter().map(|name| finding("a.js", 7, ReviewerName::tool(name), "No eval"));
            let mut one = all.next().expect("one");
            one.witnesses.extend(all.flat_map(|other| other.witnesses));
            one
        };
        // The order of the two does not matter.
        for (shared, alone) in [("a", "b"), ("b", "a")] {
            let earlier = [was(of(&[alone, shared])), was(of(&[shared]))];
            let tracked = tracked(&earlier, &[of(&[alone]), of(&[shared])], &FileMaps::default());
            let found: Vec<_> = tracked.followed.iter().map(|one| (one.earlier, one.now)).collect();
            assert_eq!(found, [(0, 0), (1, 1)]);
        }
    }

    #[test]
    fn a_fixed_one_that_comes_back_gives_way_to_one_that_was_not() {
        let again = finding("a.js", 7, eslint(), "No eval");
        let earlier = [TrackedFinding { fixed: true, ..was(again.clone()) }, was(again.clone())];
        let one = tracked(&earlier, std::slice::from_ref(&again), &FileMaps::default());
        assert_eq!(one.followed.iter().map(|one| one.earlier).collect::<Vec<_>>(), [1]);
        let two = tracked(&earlier, &[again.clone(), again], &FileMaps::default());
        assert_eq!(two.followed.iter().map(|one| one.earlier).collect::<BTreeSet<_>>(), [0, 1].into());
    }
}
