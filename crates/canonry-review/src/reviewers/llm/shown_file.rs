//! Shows a changed file to a model: the changed lines of the new version with their numbers and the lines around them.

use std::ops::RangeInclusive;

use canonry_domain::review::{Hunk, LineRange, RepoPath};
use canonry_domain::{redact, visible};

use super::readable::happened;
use super::safe_text::{first_chars, lines_without_secrets};
use crate::change::file_change::{ChangeKind, FileChange};
use crate::reviewers::Outline;

/// Unchanged lines on each side of a change: usually enough to see its function.
const CONTEXT: u32 = 12;
/// A changed function of at most so many lines is shown whole; of a longer one, its head.
const WHOLE_FUNCTION: u32 = 60;
const HEAD_LINES: u32 = 3;
/// The changed definitions of a file that its outline names.
const MOST_NAMES: usize = 12;
/// Longer lines are cut: they are not written by hand.
const LONGEST_LINE: usize = 1_000;
/// The limits in lines and characters for a deleted file: enough to see its purpose. Deleted code needs no more, and
/// must not take the room of new code.
const DELETED_LINES: usize = 150;
const DELETED_CHARACTERS: usize = 6_000;

#[derive(Debug, Clone)]
pub(super) struct ShownFile<'a> {
    pub(super) path: &'a RepoPath,
    pub(super) path_before: &'a RepoPath,
    /// The shown path, by which the model names the file.
    pub(super) name: String,
    happened: String,
    is_deleted: bool,
    lines: Vec<String>,
    /// Whether its lines end with a carriage return, which no line here has.
    has_carriage_returns: bool,
    outline: Outline,
    added: usize,
    removed: u32,
    before: Option<Vec<String>>,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) file: usize,
    pub(super) text: String,
    pub(super) characters: usize,
    pub(super) lines: RangeInclusive<u32>,
    /// Whether a changed line was too long to be shown whole.
    pub(super) has_cut_line: bool,
}

impl Piece {
    fn push(&mut self, row: &ShownRow) {
        self.text.push_str(&row.text);
        self.text.push('\n');
        self.characters += row.characters;
        self.lines = *self.lines.start()..=row.line.max(*self.lines.start());
        self.has_cut_line |= row.is_cut;
    }
}

impl<'a> ShownFile<'a> {
    /// A changed file with its text, and with its text before the change, if that is known.
    pub(super) fn new(change: &'a FileChange, text: &str, before: Option<&str>) -> Self {
        let mut hunks = change.hunks.clone();
        hunks.sort_unstable_by_key(|hunk| (first_line(hunk), hunk.old_start));
        let lines = lines_without_secrets(text);
        Self {
            path: &change.path,
            path_before: change.path_before(),
            name: visible(&redact(change.path.as_str())),
            happened: happened(change, lines.len()),
            is_deleted: change.kind == ChangeKind::Deleted,
            outline: Outline::of(&lines.iter().map(String::as_str).collect::<Vec<_>>()),
            lines,
            added: change.added.len(),
            removed: change.removed,
            has_carriage_returns: text.contains('\r'),
            before: before.map(lines_without_secrets),
            hunks,
        }
    }

    /// One line about the change of this file: its name, its size, and the definitions with changed lines.
    pub(super) fn outline(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for name in
            self.hunks.iter().filter_map(|hunk| self.outline.innermost(first_line(hunk))).map(|one| one.name.as_str())
        {
            if !names.contains(&name) && names.len() < MOST_NAMES {
                names.push(name);
            }
        }
        let places = if names.is_empty() { String::new() } else { format!(", in {}", names.join(", ")) };
        format!("{} (+{} -{}){places}", self.name, self.added, self.removed)
    }

    /// Whether only the beginning of a long deleted file is shown.
    pub(super) fn is_abridged(&self) -> bool {
        self.is_deleted && self.hunks.iter().any(|hunk| hunk.old as usize > self.deleted_shown(hunk))
    }

    pub(super) fn line_count(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// The shown text in parts of at most `room` characters. It is split between changes; a change that does not fit is
    /// split between lines.
    pub(super) fn pieces(&self, file: usize, room: usize) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for stretch in self.stretches() {
            let rows = self.rows(&stretch);
            let total: usize = rows.iter().map(|row| row.characters).sum();
            if pieces.last().is_none_or(|piece| piece.characters + total > room) {
                pieces.push(self.piece(file, *stretch.start()));
            }
            for row in rows {
                let is_full = |piece: &Piece| !piece.lines.is_empty() && piece.characters + row.characters > room;
                if pieces.last().is_some_and(is_full) {
                    pieces.push(self.piece(file, row.line));
                }
                if let Some(piece) = pieces.last_mut() {
                    piece.push(&row);
                }
            }
        }
        // Only the name of the file can be shown.
        if pieces.is_empty() {
            pieces.push(self.piece(file, 1));
        }
        pieces
    }

    /// The present lines of a range, if all of them exist and a replacement can be put in their place.
    pub(super) fn replaceable(&self, lines: LineRange) -> Option<Vec<&str>> {
        let range = lines.first.checked_sub(1)? as usize..lines.last as usize;
        let present = self.lines.get(range).filter(|_| !self.has_carriage_returns)?;
        Some(present.iter().map(String::as_str).collect())
    }

    /// Whether a quote is code of these lines, of those right beside them, or of lines that were removed there. Without
    /// lines, the quote may be any code of the file. A file that has no code to show needs no quote.
    pub(super) fn is_quoted(&self, lines: Option<RangeInclusive<u32>>, quote: &str) -> bool {
        /// A model that is one line off has read the code all the same.
        const BESIDE: u32 = 3;
        let whole = 1..=u32::MAX;
        let near = lines
            .map_or(whole, |lines| lines.start().saturating_sub(BESIDE).max(1)..=lines.end().saturating_add(BESIDE));
        let present = (1..).zip(&self.lines).filter(|(line, _)| near.contains(line)).map(|(_, text)| text);
        let removed = self.hunks.iter().filter(|hunk| {
            let first = first_line(hunk);
            near.contains(&first.max(1)) || (first..first.saturating_add(hunk.new)).any(|line| near.contains(&line))
        });
        let code: Vec<String> = present
            .chain(removed.flat_map(|hunk| self.removed(hunk)))
            .map(|text| plain_words(&visible(text)))
            .collect();
        if code.iter().all(String::is_empty) {
            return true;
        }
        let mut quoted = quote.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        quoted.peek().is_some()
            && quoted.all(|line| [line, without_number(line)].iter().any(|line| is_part(&code, &plain_words(line))))
    }

    /// The lines around some places of the file, for a second reading; without a place, its beginning.
    pub(super) fn around(&self, places: &[Option<RangeInclusive<u32>>], room: usize) -> String {
        let mut places: Vec<&RangeInclusive<u32>> = places.iter().flatten().collect();
        if places.is_empty() {
            return self.pieces(0, room).into_iter().next().map(|piece| piece.text).unwrap_or_default();
        }
        places.sort_by_key(|lines| *lines.start());
        /// A second reading is about few places, and sees more of them.
        const AROUND: u32 = 60;
        let mut around = AROUND;
        loop {
            let mut windows: Vec<RangeInclusive<u32>> = Vec::new();
            for lines in &places {
                let from = lines.start().saturating_sub(around).max(1);
                let to = lines.end().saturating_add(around).min(self.line_count());
                match windows.last_mut() {
                    Some(last) if from <= last.end().saturating_add(1) => *last = *last.start()..=to.max(*last.end()),
                    _ => windows.push(from..=to),
                }
            }
            let rows: Vec<ShownRow> = windows.iter().flat_map(|window| self.rows(window)).collect();
            let mut piece = self.piece(0, *windows[0].start());
            let total: usize = rows.iter().map(|row| row.characters).sum();
            // The places themselves are more important than the lines around them.
            if around > 0 && piece.characters + total > room {
                around /= 2;
                continue;
            }
            for row in &rows {
                if piece.characters + row.characters > room {
                    break;
                }
                piece.push(row);
            }
            return piece.text;
        }
    }

    fn piece(&self, file: usize, from: u32) -> Piece {
        // The range is still empty: its end is before its start.
        let lines = from..=from.saturating_sub(1);
        let text = format!("path: {}\nthis file {}\n", self.name, self.happened);
        let characters = text.chars().count();
        Piece { file, text, characters, lines, has_cut_line: false }
    }

    /// The ranges of the new version that are shown; adjacent ranges are merged.
    fn stretches(&self) -> Vec<RangeInclusive<u32>> {
        let mut stretches: Vec<RangeInclusive<u32>> = Vec::new();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for hunk in &self.hunks {
            let first = first_line(hunk);
            let last = first.saturating_add(hunk.new).saturating_sub(1);
            ranges.push((first.saturating_sub(CONTEXT).max(1), last.saturating_add(CONTEXT).min(self.line_count())));
            // The function around the change, and the heads of what it is in.
            for one in self.outline.around(first).filter(|one| one.first < first) {
                let is_whole = one.last - one.first < WHOLE_FUNCTION;
                ranges.push((one.first, if is_whole { one.last } else { one.last.min(one.first + HEAD_LINES - 1) }));
            }
        }
        ranges.sort_unstable();
        for (from, to) in ranges {
            match stretches.last_mut() {
                Some(last) if from <= last.end().saturating_add(1) => {
                    *last = *last.start()..=to.max(*last.end());
                }
                _ => stretches.push(from..=to),
            }
        }
        stretches
    }

    /// The rows of a range: removed lines come before the lines that replaced them.
    fn rows(&self, stretch: &RangeInclusive<u32>) -> Vec<ShownRow> {
        let mut rows = Vec::new();
        let end = *stretch.end();
        let mut hunks = self.hunks.iter().filter(|hunk| first_line(hunk) >= *stretch.start()).peekable();
        let (mut changed_from, mut changed_to) = self
            .hunks
            .iter()
            .map(|hunk| (first_line(hunk), first_line(hunk).saturating_add(hunk.new)))
            .find(|(from, to)| from < stretch.start() && to > stretch.start())
            .unwrap_or((0, 0));
        for line in stretch.clone() {
            while let Some(hunk) = hunks.next_if(|hunk| first_line(hunk) == line) {
                self.push_removed(&mut rows, hunk, line);
                if hunk.new > 0 {
                    (changed_from, changed_to) = (line, line.saturating_add(hunk.new));
                }
            }
            let Some(text) = self.lines.get(line as usize - 1) else { break };
            let mark = if (changed_from..changed_to).contains(&line) { '+' } else { ' ' };
            let (text, is_cut) = shown_line(text);
            rows.push(ShownRow::new(line, format!("{line:>6} {mark} {text}"), is_cut && mark == '+'));
        }
        // Lines removed at the end of the range, such as the last lines of a file.
        while let Some(hunk) = hunks.next_if(|hunk| first_line(hunk) == end.saturating_add(1) && hunk.new == 0) {
            self.push_removed(&mut rows, hunk, end.max(1));
        }
        rows
    }

    fn push_removed(&self, rows: &mut Vec<ShownRow>, hunk: &Hunk, line: u32) {
        if hunk.old == 0 {
            return;
        }
        let removed = self.removed(hunk);
        let shown = if self.is_deleted { &removed[..self.deleted_shown(hunk)] } else { removed };
        rows.extend(shown.iter().map(|text| {
            let (text, is_cut) = shown_line(text);
            ShownRow::new(line, format!("       - {text}"), is_cut && !self.is_deleted)
        }));
        let more = hunk.old as usize - shown.len();
        if more > 0 {
            let text = format!("       - (lines that were taken out here and are not shown: {more})");
            rows.push(ShownRow::new(line, text, false));
        }
    }

    /// The lines that a hunk removed; empty if they are unknown.
    fn removed(&self, hunk: &Hunk) -> &[String] {
        let old = hunk.old_start.saturating_sub(1) as usize;
        let removed = self.before.as_ref().and_then(|before| before.get(old..old.checked_add(hunk.old as usize)?));
        removed.unwrap_or_default()
    }

    /// How many lines of this hunk are shown if the file is deleted.
    fn deleted_shown(&self, hunk: &Hunk) -> usize {
        let mut characters = 0;
        let fits = |text: &&String| {
            characters += shown_line(text).0.chars().count();
            characters <= DELETED_CHARACTERS
        };
        self.removed(hunk).iter().take(DELETED_LINES).take_while(fits).count()
    }
}

struct ShownRow {
    /// The line of the new version, or the line before which lines were removed.
    line: u32,
    text: String,
    characters: usize,
    is_cut: bool,
}

impl ShownRow {
    fn new(line: u32, text: String, is_cut: bool) -> Self {
        let characters = text.chars().count() + 1;
        Self { line, text, characters, is_cut }
    }
}

/// The first line of the new version that a hunk is about; if it only removes lines, the line after them.
fn first_line(hunk: &Hunk) -> u32 {
    if hunk.new == 0 { hunk.new_start.saturating_add(1) } else { hunk.new_start.max(1) }
}

/// The words of a line with one space between them: models do not repeat white space faithfully.
fn plain_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A quoted line without the mark, the number and the sign that it was shown with.
fn without_number(line: &str) -> &str {
    let line = line.strip_prefix('|').unwrap_or(line).trim_start();
    let line = line.trim_start_matches(|character: char| character.is_ascii_digit()).trim_start();
    line.strip_prefix(['+', '-']).unwrap_or(line)
}

/// Whether a quote is one of the lines, or so long a part of one that it can be no other.
fn is_part(code: &[String], quote: &str) -> bool {
    /// Shorter parts, such as `return`, are in many lines.
    const LEAST_PART: usize = 8;
    let is_long = quote.chars().count() >= LEAST_PART;
    !quote.is_empty() && code.iter().any(|line| line == quote || (is_long && line.contains(quote)))
}

fn shown_line(text: &str) -> (String, bool) {
    let shown = visible(text);
    let (kept, is_cut) = first_chars(&shown, LONGEST_LINE);
    if is_cut { (format!("{kept} … (the rest of this line is not shown)"), true) } else { (shown, false) }
}

#[cfg(test)]
pub(super) mod tests {
    use canonry_domain::review::{Hunk, RepoPath};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::ShownFile;
    use crate::change::file_change::{ChangeKind, ContentKind, FileChange};

    /// A changed file with these hunks, as `(old_start, old, new_start, new)`.
    pub(in crate::reviewers::llm) fn change(path: &str, hunks: &[(u32, u32, u32, u32)]) -> FileChange {
        let hunk = |&(old_start, old, new_start, new)| Hunk { old_start, old, new_start, new };
        FileChange {
            kind: ChangeKind::Modified,
            path: RepoPath::exact(path).expect("a path"),
            old_path: None,
            content: ContentKind::Text,
            blob: None,
            hunks: hunks.iter().map(hunk).collect(),
            added: Vec::new(),
            removed: hunks.iter().map(|hunk| hunk.1).sum(),
        }
    }

    pub(in crate::reviewers::llm) fn new_file(path: &str, text: &str) -> FileChange {
        let lines = u32::try_from(text.lines().count()).expect("few");
        FileChange { kind: ChangeKind::Added, ..change(path, &[(0, 0, 1, lines)]) }
    }

    fn numbered(lines: u32) -> String {
        (1..=lines).map(|line| format!("line {line}\n")).collect()
    }

    fn shown<'a>(change: &'a FileChange, text: &str, before: Option<&str>) -> ShownFile<'a> {
        ShownFile::new(change, text, before)
    }

    #[test]
    fn changed_lines_have_numbers_and_removed_ones_stand_before_them() {
        let change = change("a.rs", &[(50, 2, 50, 1), (90, 3, 88, 0)]);
        let before: String = (1..=102).map(|line| format!("old {line}\n")).collect();
        let text = numbered(98);
        let pieces = shown(&change, &text, Some(&before)).pieces(0, 100_000);
        assert_eq!((pieces.len(), pieces[0].lines.clone()), (1, 38..=98));
        let text = &pieces[0].text;
        assert!(
            text.starts_with("path: a.rs\nthis file is changed and has 98 lines now\n    38   line 38\n"),
            "{text}"
        );
        assert!(
            text.contains("    49   line 49\n       - old 50\n       - old 51\n    50 + line 50\n    51   line 51\n")
        );
        assert!(text.contains("    62   line 62\n    77   line 77\n"), "{text}");
        assert!(
            text.contains("    88   line 88\n       - old 90\n       - old 91\n       - old 92\n    89   line 89\n")
        );
        let unknown = shown(&change, &numbered(98), None).pieces(0, 100_000);
        assert!(unknown[0].text.contains("       - (lines that were taken out here and are not shown: 3)\n"));
    }

    #[test]
    fn the_ends_of_a_file() {
        let emptied = change("a.rs", &[(1, 2, 0, 0)]);
        let pieces = shown(&emptied, "", Some("one\ntwo\n")).pieces(0, 1_000);
        assert!(pieces[0].text.ends_with("       - one\n       - two\n"), "{pieces:?}");
        let shorter = change("a.rs", &[(3, 1, 2, 0)]);
        let pieces = shown(&shorter, "one\ntwo\n", Some("one\ntwo\nthree\n")).pieces(0, 1_000);
        assert!(pieces[0].text.ends_with("     2   two\n       - three\n"), "{pieces:?}");
    }

    #[test]
    fn a_deleted_file_is_shown_by_what_it_had() {
        let gone = FileChange { kind: ChangeKind::Deleted, ..change("a.rs", &[(1, 2, 0, 0)]) };
        let short = shown(&gone, "", Some("check();\nlet x = 1;\n"));
        assert_eq!(
            short.pieces(0, 1_000)[0].text,
            "path: a.rs\nthis file is deleted and had 2 lines\n       - check();\n       - let x = 1;\n"
        );
        assert!(!short.is_abridged());
        let unknown = shown(&gone, "", None);
        assert!(
            unknown.pieces(0, 1_000)[0]
                .text
                .ends_with("       - (lines that were taken out here and are not shown: 2)\n")
        );
        assert!(unknown.is_abridged());

        let gone = FileChange { kind: ChangeKind::Deleted, ..change("a.rs", &[(1, 900, 0, 0)]) };
        for before in [numbered(900), (0..900).map(|line| format!("{line} {}\n", "x".repeat(2_000))).collect()] {
            let long = shown(&gone, "", Some(&before));
            let pieces = long.pieces(0, 60_000);
            assert!(long.is_abridged() && pieces.len() == 1 && pieces[0].characters < 7_500, "{pieces:?}");
            assert!(!pieces[0].has_cut_line);
            let taken = pieces[0].text.lines().filter(|line| line.starts_with("       - ")).count() - 1;
            let rest = format!("       - (lines that were taken out here and are not shown: {})\n", 900 - taken);
            assert!(taken > 0 && pieces[0].text.ends_with(&rest), "{pieces:?}");
        }
    }

    #[test]
    fn what_has_no_text_to_show_is_named() {
        let plain = change("b.rs", &[]);
        let old_path = Some(RepoPath::exact("a.rs").expect("a path"));
        for (change, expected) in [
            (
                FileChange { kind: ChangeKind::Renamed, old_path, ..plain.clone() },
                "was named a.rs, and its text is as it was",
            ),
            (plain.clone(), "has another mode, and its text is as it was"),
            (FileChange { kind: ChangeKind::Deleted, content: ContentKind::Binary, ..plain.clone() }, "is deleted"),
            (FileChange { kind: ChangeKind::Added, ..plain }, "is new and empty"),
        ] {
            let pieces = shown(&change, "", None).pieces(3, 1_000);
            assert_eq!((pieces.len(), pieces[0].file), (1, 3));
            assert_eq!(pieces[0].text, format!("path: b.rs\nthis file {expected}\n"));
        }
        let one = new_file("c.rs", "x\n");
        assert!(
            shown(&one, "x\n", None).pieces(0, 1_000)[0]
                .text
                .starts_with("path: c.rs\nthis file is new and has 1 line now\n")
        );
    }

    #[test]
    fn long_lines_are_cut_and_it_is_known() {
        let text = format!("short\n{}\n", "x".repeat(5_000));
        let both = new_file("a.js", &text);
        let pieces = shown(&both, &text, None).pieces(0, 100_000);
        assert!(pieces[0].has_cut_line && pieces[0].characters < 1_300, "{pieces:?}");
        let only_short = change("a.js", &[(1, 1, 1, 1)]);
        assert!(!shown(&only_short, &text, None).pieces(0, 100_000)[0].has_cut_line);
    }

    #[test]
    fn a_second_reading_sees_more_of_one_place() {
        let change = change("a.rs", &[(50, 0, 50, 1)]);
        let text = numbered(300);
        let around = shown(&change, &text, None).around(&[Some(100..=101)], 100_000);
        assert!(around.contains("    40   line 40\n") && around.contains("   161   line 161\n"), "{around}");
        assert!(around.contains("    50 + line 50\n") && !around.contains("line 162"), "{around}");
        let tail = shown(&new_file("b.rs", &text), &text, None).around(&[Some(200..=200)], 2_000);
        assert!(tail.contains("   170 + line 170\n") && tail.contains("   230 + line 230\n"), "{tail}");
        let wide: String = (1..=300).map(|line| format!("{line} {}\n", "x".repeat(900))).collect();
        let tight = shown(&new_file("c.rs", &wide), &wide, None).around(&[Some(200..=200)], 4_000);
        assert!(tight.contains("   200 + 200 x") && tight.chars().count() <= 4_000, "{tight}");
    }

    proptest! {
        #[test]
        fn pieces_fit_and_lose_no_changed_line(starts in proptest::collection::btree_set(1_u32..300, 1..8), news in proptest::collection::vec(0_u32..30, 8), room in 300_usize..3_000) {
            let text = numbered(350);
            let mut hunks: Vec<(u32, u32, u32, u32)> = Vec::new();
            for (start, new) in starts.into_iter().zip(news) {
                if hunks.last().is_none_or(|last| last.2 + last.3 < start) {
                    hunks.push((1, 1, start, new));
                }
            }
            let change = change("a.rs", &hunks);
            let pieces = shown(&change, &text, None).pieces(0, room);
            let all: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            for (_, _, start, new) in &hunks {
                for line in *start..start + new {
                    let row = format!("{line:>6} + line {line}\n");
                    prop_assert_eq!(all.matches(row.as_str()).count(), 1, "{}", row);
                }
            }
            prop_assert_eq!(all.matches("are not shown").count(), hunks.len());
            for piece in &pieces {
                prop_assert!(piece.characters <= room.max(400), "{}", piece.characters);
                prop_assert!(!piece.lines.is_empty());
            }
        }
    }
}
