//! Divides the change into questions for a model.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use canonry_domain::counted;
use canonry_domain::review::RepoPath;

use super::budget::LlmReviewBudget;
use super::file_risk::FileRisk;
use super::readable::Readable;
use super::shown_file::{Piece, ShownFile};
use crate::change::file_change::{ChangeKind, ContentKind};
use crate::reviewers::FileToRead;
use crate::run::report::SkippedFile;

/// With less room left than this, no further file is started.
const LEAST_ROOM: usize = 500;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReadingBatch {
    pub(super) pieces: Vec<Piece>,
}

pub(super) struct ReadingPlan<'a> {
    pub(super) files: Vec<ShownFile<'a>>,
    pub(super) batches: Vec<ReadingBatch>,
    coverage: BatchCoverage,
}

#[derive(Default)]
struct BatchCoverage {
    not_begun: Vec<SkippedFile>,
    parts: Vec<FileParts>,
}

#[derive(Default)]
struct FileParts {
    count: usize,
    unread: Vec<(RangeInclusive<u32>, String)>,
    /// The parts with a line that was not shown whole.
    cut: Vec<RangeInclusive<u32>>,
}

impl<'a> ReadingPlan<'a> {
    /// Divides the change: the files with the highest risk first, and no more than the budget allows.
    pub(super) fn of(
        files: &'a [FileToRead<'a>],
        before: &BTreeMap<RepoPath, String>,
        not_shown: &BTreeMap<RepoPath, &'static str>,
        budget: &LlmReviewBudget,
    ) -> Self {
        let mut plan = Self { files: Vec::new(), batches: Vec::new(), coverage: BatchCoverage::default() };
        let mut ordered: Vec<&FileToRead<'a>> = files.iter().collect();
        // Deleted files, and files of which only the name is shown, come after readable files.
        let last = |file: &FileToRead<'a>| match Readable::of(file) {
            Readable::Name => 2,
            _ => u8::from(file.change.kind == ChangeKind::Deleted),
        };
        ordered.sort_by_key(|file| {
            let (risk, last) = (FileRisk::of(&file.change.path), last(file));
            (last == 2, risk, last, &file.change.path)
        });
        let mut left = budget.characters;
        let room = budget.characters_per_call.max(LEAST_ROOM);
        for file in ordered {
            let path = &file.change.path;
            let used_up = || format!("the model's budget of {} characters was used up", budget.characters);
            let is_full = plan.files.len() >= budget.files;
            // Nobody reads what a program writes, so it leaves no gap; the report names it.
            if let Some(what) = not_shown.get(path) {
                let why = format!("{what}: the model is not shown its content");
                plan.coverage.not_begun.push(SkippedFile::new(path.clone(), why, false));
                continue;
            }
            let text = match Readable::of(file) {
                Readable::Not(why) => {
                    // A file without lines of text leaves no gap.
                    let gap = file.change.content == ContentKind::Text;
                    plan.coverage.not_begun.push(SkippedFile::new(path.clone(), why, gap));
                    continue;
                }
                _ if left < LEAST_ROOM || is_full => {
                    let why = match is_full {
                        true => format!("the model's budget of {} files was used up", budget.files),
                        false => used_up(),
                    };
                    plan.coverage.not_begun.push(SkippedFile::new(path.clone(), why, true));
                    continue;
                }
                Readable::Text(text) => text,
                Readable::Name => "",
            };
            let before = before.get(file.change.path_before()).map(String::as_str);
            let shown = ShownFile::new(file.change, text, before);
            let pieces = shown.pieces(plan.files.len(), room);
            let mut parts = FileParts { count: pieces.len(), ..FileParts::default() };
            for piece in pieces {
                if piece.characters > left {
                    parts.unread.push((piece.lines, used_up()));
                    continue;
                }
                left -= piece.characters;
                if piece.has_cut_line {
                    parts.cut.push(piece.lines.clone());
                }
                plan.put(piece, room);
            }
            plan.files.push(shown);
            plan.coverage.parts.push(parts);
        }
        plan
    }

    fn put(&mut self, piece: Piece, room: usize) {
        let taken = |batch: &ReadingBatch| batch.pieces.iter().map(|piece| piece.characters).sum::<usize>();
        match self.batches.last_mut() {
            Some(last) if taken(last) + piece.characters <= room => last.pieces.push(piece),
            _ => self.batches.push(ReadingBatch { pieces: vec![piece] }),
        }
    }

    /// Records that a question got no answer, so that nothing in it was read.
    pub(super) fn was_not_read(&mut self, batch: usize, why: &str) {
        for piece in &self.batches[batch].pieces {
            self.coverage.parts[piece.file].unread.push((piece.lines.clone(), why.to_owned()));
        }
    }

    /// The files that were read completely: only their findings can count as fixed.
    pub(super) fn read_wholly(&self) -> BTreeSet<RepoPath> {
        let shown = self.files.iter().zip(&self.coverage.parts);
        let read =
            shown.filter(|(_, parts)| parts.unread.is_empty() && parts.cut.is_empty()).map(|(file, _)| file.path);
        read.cloned().collect()
    }

    pub(super) fn is_anything_read(&self) -> bool {
        self.coverage.parts.iter().any(|parts| parts.unread.len() < parts.count)
    }

    /// A note that leaves no gap.
    pub(super) fn note(&self) -> Option<String> {
        let abridged = self.files.iter().filter(|file| file.is_abridged()).count() as u64;
        let files = counted(abridged, "deleted file");
        (abridged > 0).then(|| format!("the model was not shown all lines of {files}"))
    }

    /// The files that were not read or only partly read, with the reason, by path.
    pub(super) fn skipped(&self) -> Vec<SkippedFile> {
        let mut skipped = self.coverage.not_begun.clone();
        for (file, parts) in self.files.iter().zip(&self.coverage.parts) {
            let told = match parts.unread.first() {
                Some((_, reason)) if parts.unread.len() >= parts.count => reason.clone(),
                Some((_, reason)) => {
                    let unread = parts.unread.iter().map(|(lines, _)| lines);
                    format!("read only in part: {} not, because {reason}", in_words(unread))
                }
                None if parts.cut.is_empty() => continue,
                None => format!("read only in part: a line in {} is too long to be shown", in_words(&parts.cut)),
            };
            skipped.push(SkippedFile::new(file.path.clone(), told, true));
        }
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        skipped
    }
}

fn in_words<'a>(ranges: impl IntoIterator<Item = &'a RangeInclusive<u32>>) -> String {
    let mut ranges: Vec<(u32, u32)> = ranges.into_iter().map(|lines| (*lines.start(), *lines.end())).collect();
    ranges.sort_unstable();
    let words = ranges.into_iter().map(|(first, last)| match last > first {
        true => format!("lines {first} to {last}"),
        false => format!("line {first}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::super::budget::LlmReviewBudget;
    use super::super::shown_file::tests::{change, new_file};
    use super::ReadingPlan;
    use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
    use crate::reviewers::FileToRead;

    fn text(lines: usize) -> String {
        (1..=lines).map(|line| format!("let value = call({line});\n")).collect()
    }

    fn budget(characters: usize, characters_per_call: usize) -> LlmReviewBudget {
        LlmReviewBudget { characters, characters_per_call, ..LlmReviewBudget::default() }
    }

    fn with_plan<T>(files: &[(&str, usize)], budget: LlmReviewBudget, check: impl FnOnce(ReadingPlan<'_>) -> T) -> T {
        let texts: Vec<String> = files.iter().map(|(_, lines)| text(*lines)).collect();
        let changes: Vec<FileChange> = files.iter().zip(&texts).map(|((path, _), text)| new_file(path, text)).collect();
        let files: Vec<FileToRead<'_>> = changes
            .iter()
            .zip(&texts)
            .map(|(change, text)| FileToRead { change, text: Some(text), bytes: None })
            .collect();
        check(ReadingPlan::of(&files, &BTreeMap::new(), &BTreeMap::new(), &budget))
    }

    fn told(plan: &ReadingPlan<'_>) -> Vec<(String, String)> {
        plan.skipped().into_iter().map(|one| (one.path.to_string(), one.why)).collect()
    }

    #[test]
    fn what_can_do_most_harm_is_read_first() {
        let files = [("Cargo.lock", 5), ("README.md", 5), ("src/b.rs", 5), ("tests/a.rs", 5), ("src/auth.rs", 5)];
        with_plan(&files, budget(100_000, 10_000), |plan| {
            let names: Vec<&str> = plan.files.iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names, ["src/auth.rs", "src/b.rs", "tests/a.rs", "README.md", "Cargo.lock"]);
            assert_eq!((plan.batches.len(), plan.read_wholly().len(), plan.skipped().len()), (1, 5, 0));
        });
    }

    #[test]
    fn what_programs_write_is_named_and_leaves_no_gap() {
        let (lock, kept) = (new_file("Cargo.lock", "x\n"), new_file("src/kept.rs", "x\n"));
        let files = [&lock, &kept].map(|change| FileToRead { change, text: Some("x\n"), bytes: None });
        let not_shown = BTreeMap::from([(lock.path.clone(), "a lock file")]);
        let plan = ReadingPlan::of(&files, &BTreeMap::new(), &not_shown, &LlmReviewBudget::default());
        assert_eq!(
            told(&plan),
            [("Cargo.lock".to_owned(), "a lock file: the model is not shown its content".to_owned())]
        );
        assert!(!plan.skipped()[0].gap && plan.is_anything_read());
        assert_eq!(plan.read_wholly().len(), 1);
    }

    #[test]
    fn a_large_file_is_divided_and_small_ones_share() {
        with_plan(&[("src/large.rs", 400), ("src/x.rs", 5), ("src/y.rs", 5)], budget(100_000, 5_000), |mut plan| {
            let shared: Vec<usize> = plan.batches.iter().map(|batch| batch.pieces.len()).collect();
            assert_eq!(shared, [1, 1, 3]);
            assert!(told(&plan).is_empty());
            plan.was_not_read(1, "the model said nothing");
            let told = told(&plan);
            assert_eq!(told.len(), 1);
            assert!(
                told[0].1.starts_with("read only in part: lines ")
                    && told[0].1.ends_with(" not, because the model said nothing"),
                "{told:?}"
            );
            assert_eq!(plan.read_wholly().len(), 2);
        });
    }

    #[test]
    fn what_is_beyond_the_budget_is_told_file_by_file() {
        let files = [("src/a.rs", 100), ("src/b.rs", 100), ("src/c.rs", 100)];
        with_plan(&files, budget(4_000, 10_000), |plan| {
            let why = "the model's budget of 4000 characters was used up".to_owned();
            assert_eq!(told(&plan), [("src/b.rs".to_owned(), why.clone()), ("src/c.rs".to_owned(), why)]);
            assert_eq!(plan.read_wholly().iter().map(|path| path.as_str()).collect::<Vec<_>>(), ["src/a.rs"]);
        });
        with_plan(&files, LlmReviewBudget { files: 2, ..LlmReviewBudget::default() }, |plan| {
            let why = "the model's budget of 2 files was used up".to_owned();
            assert_eq!(told(&plan), [("src/c.rs".to_owned(), why)]);
        });
    }

    #[test]
    fn what_has_no_lines_is_told_and_what_has_no_text_is_named() {
        let image = FileChange { content: ContentKind::Binary, ..new_file("logo.png", "") };
        let moved = FileChange { hunks: Vec::new(), ..new_file("auth.rs", "") };
        let gone = FileChange { kind: ChangeKind::Deleted, ..change("src/gone.rs", &[(1, 300, 0, 0)]) };
        let kept = new_file("src/kept.rs", "x\n");
        let files = [(&image, None), (&moved, None), (&gone, None), (&kept, Some("x\n"))];
        let files = files.map(|(change, text)| FileToRead { change, text, bytes: None });
        let before = BTreeMap::from([(gone.path.clone(), text(300))]);
        let mut plan = ReadingPlan::of(&files, &before, &BTreeMap::new(), &LlmReviewBudget::default());
        assert_eq!(told(&plan), [("logo.png".to_owned(), "it is not text".to_owned())]);
        assert!(!plan.skipped()[0].gap);
        let names: Vec<&str> = plan.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["src/kept.rs", "src/gone.rs", "auth.rs"]);
        assert_eq!((plan.batches.len(), plan.batches[0].pieces.len(), plan.read_wholly().len()), (1, 3, 3));
        assert_eq!(plan.note().as_deref(), Some("the model was not shown all lines of 1 deleted file"));
        assert!(plan.is_anything_read());
        // A file that no answer is about does not count as read.
        plan.was_not_read(0, "it failed");
        assert_eq!((plan.read_wholly().len(), plan.skipped().len(), plan.is_anything_read()), (0, 4, false));
        assert_eq!(plan.skipped().iter().filter(|one| one.gap).count(), 3);
    }

    proptest! {
        #[test]
        fn every_file_is_read_or_told(sizes in proptest::collection::vec(1_usize..200, 1..12), characters in 0_usize..20_000, per_call in 0_usize..5_000, lost in 0_usize..5) {
            let names: Vec<String> = (0..sizes.len()).map(|at| format!("src/file{at}.rs")).collect();
            let files: Vec<(&str, usize)> = names.iter().map(String::as_str).zip(sizes.iter().copied()).collect();
            with_plan(&files, budget(characters, per_call), |mut plan| {
                if lost < plan.batches.len() {
                    plan.was_not_read(lost, "it failed");
                }
                let (read, skipped) = (plan.read_wholly(), plan.skipped());
                prop_assert_eq!(read.len() + skipped.len(), files.len());
                prop_assert!(skipped.iter().all(|one| !read.contains(&one.path)));
                let shown: usize = plan.batches.iter().flat_map(|batch| &batch.pieces).map(|piece| piece.characters).sum();
                prop_assert!(shown <= characters);
                for batch in &plan.batches {
                    let taken: usize = batch.pieces.iter().map(|piece| piece.characters).sum();
                    prop_assert!(taken <= per_call.max(500), "{}", taken);
                }
                Ok(())
            })?;
        }
    }
}
