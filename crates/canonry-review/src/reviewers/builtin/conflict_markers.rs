//! Finds committed merge conflicts.

use canonry_domain::review::{Category, LineRange, Severity};

use super::reading::{BuiltinRule, ReadFile, Remark};

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "conflict-marker", check };

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().flat_map(conflicts).collect()
}

/// The marks of a conflict in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConflictMark {
    Ours,
    Middle,
    Theirs,
}

/// A conflict has marks in order, each at the start of its line: a line of equal signs is a heading in many texts, and a
/// single mark is a quotation. In code a single mark of a side is a conflict that was resolved in part.
fn conflicts(file: &ReadFile<'_>) -> Vec<Remark> {
    let mut groups: Vec<Vec<(u32, ConflictMark)>> = Vec::new();
    for (number, mark) in marks(file) {
        match groups.last_mut().filter(|group| group.last().is_some_and(|(_, last)| follows(*last, mark))) {
            Some(group) => group.push((number, mark)),
            None => groups.push(vec![(number, mark)]),
        }
    }
    let is_conflict = |group: &&Vec<(u32, ConflictMark)>| {
        let (first, last) = (group[0], group[group.len() - 1]);
        let is_side_in_code = group.iter().any(|(_, mark)| *mark != ConflictMark::Middle) && !file.code.is_empty();
        let has_two_marks = first.1 == ConflictMark::Ours && group.len() > 1;
        (has_two_marks || is_side_in_code) && file.added.range(first.0..=last.0).next().is_some()
    };
    let remark = |group: &Vec<(u32, ConflictMark)>| {
        let is_whole = group.last().is_some_and(|(_, mark)| *mark == ConflictMark::Theirs) && group.len() > 1;
        let message = if is_whole {
            "Both sides of the conflict are still here. Decide for one, and remove the markers."
        } else {
            "A part of a conflict is still here. Compare both sides again, and remove the marker."
        };
        Remark {
            path: file.path().clone(),
            lines: LineRange::new(group[0].0, group[group.len() - 1].0),
            title: "Merge conflict markers are committed",
            message: message.to_owned(),
            severity: Severity::Major,
            category: Category::Correctness,
        }
    };
    groups.iter().filter(is_conflict).map(remark).collect()
}

fn follows(last: ConflictMark, next: ConflictMark) -> bool {
    matches!(
        (last, next),
        (ConflictMark::Ours, ConflictMark::Middle) | (ConflictMark::Ours | ConflictMark::Middle, ConflictMark::Theirs)
    )
}

/// The marks of a file outside of fences, strings and comments.
fn marks(file: &ReadFile<'_>) -> Vec<(u32, ConflictMark)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (number, line) in (1_u32..).zip(&file.lines) {
        let line = line.trim_end();
        if file.place.is_sample && (line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")) {
            in_fence = !in_fence;
        }
        let is_text = file.code_at(number).is_some_and(|code| !code.code.starts_with(['<', '=', '>']));
        let mark = match line {
            _ if in_fence || is_text => None,
            "=======" => Some(ConflictMark::Middle),
            _ if is_mark(line, "<<<<<<<") => Some(ConflictMark::Ours),
            _ if is_mark(line, ">>>>>>>") => Some(ConflictMark::Theirs),
            _ => None,
        };
        found.extend(mark.map(|mark| (number, mark)));
    }
    found
}

/// Git writes the mark, a space and a name.
fn is_mark(line: &str, mark: &str) -> bool {
    line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || (rest.starts_with(' ') && !rest.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check_table;
    use super::RULE;

    #[test]
    fn what_is_a_conflict() {
        let conflict = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> topic\nd\n";
        check_table(
            &RULE,
            &[
                ("a.rs", conflict, &[2]),
                ("README.md", conflict, &[2]),
                ("a.rs", "<<<<<<< ours\r\nb\r\n||||||| base\r\nx\r\n=======\r\nc\r\n>>>>>>> theirs\r\n", &[1]),
                ("a.txt", &conflict.repeat(2), &[2, 9]),
                // Resolved in part.
                ("a.txt", "<<<<<<< HEAD\nb\n=======\nc\n", &[1]),
                ("a.rs", "<<<<<<< HEAD\nb\n", &[1]),
                ("a.rb", "a\n=======\nb\n>>>>>>> topic\n", &[2]),
                ("a.py", "x = 1\n<<<<<<< HEAD\na\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n", &[2, 4]),
                ("a.py", "\"\"\"\n<<<<<<< HEAD\n=======\n>>>>>>> x\n\"\"\"\n", &[]),
                // Headings, rulers, quotations, shifts.
                ("a.rst", "Title\n=======\ntext\n", &[]),
                ("a.md", "```\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> topic\n```\n", &[]),
                ("a.rs", "    <<<<<<< HEAD\n    =======\n    >>>>>>> topic\n", &[]),
                ("a.rs", "// <<<<<<< HEAD\n=======\n// >>>>>>> topic\n", &[]),
                ("a.txt", "<<<<<<< HEAD\nonly the start\n", &[]),
                ("a.txt", ">>>>>>> quoted mail\n=======\n<<<<<<< x\n", &[]),
                ("a.txt", "<<<<<<<<<< ten\n=======\n>>>>>>>>>> ten\n", &[]),
                ("a.cpp", "cout\n<<<<<<<x;\n=======\n>>>>>>>x;\n", &[]),
            ],
        );
    }

    #[test]
    fn a_conflict_that_was_there_before_is_not_the_changes() {
        use super::super::reading::{FileToRead, ReadFile, tests::new_file};
        let text = "<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> topic\nd\n";
        let mut change = new_file("a.rs", text);
        change.added.retain(|(line, _)| *line == 6);
        let file = FileToRead { change: &change, text: Some(text), bytes: None };
        assert_eq!((RULE.check)(&[ReadFile::of(file)]), []);
    }
}
