//! Finds committed merge conflicts.

use canonry_domain::review::{Category, LineRange, Severity};

use super::reading::{BuiltinRule, ReadFile, Remark};

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "conflict-marker", check };

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().flat_map(conflicts).collect()
}

/// A conflict has all three marks in order, each at the start of its line: a line of equal signs is a heading in many
/// texts, and a single mark is a quotation.
fn conflicts(file: &ReadFile<'_>) -> Vec<Remark> {
    let mut found = Vec::new();
    let mut open: Option<(u32, bool)> = None;
    let mut in_fence = false;
    for (number, line) in (1_u32..).zip(&file.lines) {
        let line = line.trim_end();
        if file.place.is_sample && (line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")) {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        open = match open {
            _ if is_mark(line, "<<<<<<<") => Some((number, false)),
            Some((first, _)) if line == "=======" => Some((first, true)),
            Some((first, true)) if is_mark(line, ">>>>>>>") => {
                if file.added.range(first..=number).next().is_some() {
                    found.push(Remark {
                        path: file.path().clone(),
                        lines: LineRange::new(first, number),
                        title: "Merge conflict markers are committed",
                        message: "Both sides of the conflict are still here. Decide for one, and remove the markers."
                            .to_owned(),
                        severity: Severity::Major,
                        category: Category::Correctness,
                    });
                }
                None
            }
            other => other,
        };
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
