//! Checks whether a model's claims can be about what it was shown.

use std::collections::BTreeMap;

use canonry_domain::review::{LineRange, MISPLACED, RepoPath, ReviewerName, checked_replacement};
use canonry_domain::{counted, visible};

use super::answer::ClaimedFinding;
use super::safe_text::{first_chars, harmless};
use super::shown_file::ShownFile;
use crate::findings::reviewer_answer::{RawFinding, SuggestedFix};

/// The limit of a title in characters; a longer title is repeated in the message.
const TITLE: usize = 200;
const MESSAGE: usize = 8_000;
/// The longest path that a model may name beyond those it was shown.
const PATH: usize = 300;

/// The finding that a model reports about these files, or why it is unusable. Reasons contain nothing that the model
/// wrote.
///
/// A place that does not exist costs a finding its line, not the finding: it is tagged as misplaced, and its message
/// says which place the model named.
pub(super) fn reported(claim: &ClaimedFinding, files: &[&ShownFile<'_>]) -> Result<RawFinding, String> {
    let (title, mut message) = title_and_message(claim)?;
    let place = place(claim, files)?;
    if let Some(named) = &place.instead_of {
        let named = format!("The model places this {named}.");
        message = if message.is_empty() { named } else { format!("{message}\n\n{named}") };
    }
    let is_misplaced = place.instead_of.is_some();
    let replacement =
        place.lines.filter(|_| !is_misplaced).and_then(|lines| replacement(claim, &place.path, lines, files));
    let bounded_text = |text: Option<&str>| text.map(bounded).filter(|text| !text.is_empty());
    // Code that cannot be applied is still shown, if there are no words.
    let code = claim.replacement.as_deref().filter(|_| replacement.is_none());
    let words = bounded_text(claim.suggestion.as_deref()).or_else(|| bounded_text(code));
    let fix = SuggestedFix { words, replacement };
    Ok(RawFinding {
        reviewer: ReviewerName::model(),
        rule: None,
        title,
        message,
        path: place.path,
        lines: place.lines,
        severity: claim.severity,
        category: claim.category,
        partial: BTreeMap::new(),
        tags: is_misplaced.then(|| MISPLACED.to_owned()).into_iter().collect(),
        fix: Some(fix).filter(|fix| *fix != SuggestedFix::default()),
        is_serious: false,
        removed_code: None,
    })
}

/// The code that can be put in the place of the finding's lines.
fn replacement(claim: &ClaimedFinding, path: &RepoPath, lines: LineRange, files: &[&ShownFile<'_>]) -> Option<String> {
    let file = files.iter().find(|file| file.path == path)?;
    checked_replacement(claim.replacement.as_deref()?, &file.replaceable(lines)?)
}

/// A title of one line; an empty title is replaced by the first line of the message.
fn title_and_message(claim: &ClaimedFinding) -> Result<(String, String), String> {
    let one_line = |text: &str| harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let message = bounded(&claim.message);
    let title = [one_line(&claim.title), one_line(claim.message.lines().next().unwrap_or_default())];
    let title = title.into_iter().find(|title| !title.is_empty()).ok_or("says nothing")?;
    match first_chars(&title, TITLE) {
        (kept, true) => Ok((format!("{kept}…"), bounded(&format!("{title}\n\n{message}")))),
        (_, false) => Ok((title, message)),
    }
}

fn bounded(text: &str) -> String {
    let text = harmless(text);
    let (kept, is_cut) = first_chars(&text, MESSAGE);
    if is_cut { format!("{kept}…") } else { text }
}

struct ClaimedPlace {
    path: RepoPath,
    lines: Option<LineRange>,
    /// The place that the model named, if it does not exist; reads after "places this".
    instead_of: Option<String>,
}

fn place(claim: &ClaimedFinding, files: &[&ShownFile<'_>]) -> Result<ClaimedPlace, String> {
    let Some(file) = find(&claim.path, files) else { return elsewhere(claim, files) };
    let (path, last) = (file.path.clone(), file.line_count());
    let Some(line) = claim.line.filter(|_| last > 0) else {
        // If the file is empty now, a finding can only be about the whole file.
        return Ok(ClaimedPlace { path, lines: None, instead_of: None });
    };
    let is_there = (1..=last).contains(&line);
    let instead_of = (!is_there).then(|| {
        let (name, lines) = (visible(file.path.as_str()), counted(u64::from(last), "line"));
        format!("at line {line} of {name}, which has {lines}")
    });
    let first = line.clamp(1, last);
    // An end before the start is a slip; the start was meant.
    let lines = LineRange::new(first, claim.end_line.unwrap_or(first).clamp(first, last));
    Ok(ClaimedPlace { path, lines, instead_of })
}

/// The place of a finding about a file that was not shown. A path outside of the repository is replaced by the first
/// shown file.
fn elsewhere(claim: &ClaimedFinding, files: &[&ShownFile<'_>]) -> Result<ClaimedPlace, String> {
    let written = harmless(&claim.path).split_whitespace().collect::<Vec<_>>().join(" ");
    let named = RepoPath::new(first_chars(&written, PATH).0).ok();
    let instead_of = Some(match &named {
        Some(path) => format!("in {}, which it was not shown", visible(path.as_str())),
        None => "in a file that is not in the repository".to_owned(),
    });
    match named {
        Some(path) => {
            let lines = claim.line.and_then(|line| LineRange::new(line, claim.end_line.unwrap_or(line).max(line)));
            Ok(ClaimedPlace { path, lines, instead_of })
        }
        None => {
            let path = files.first().ok_or("is about a file that was not shown")?.path.clone();
            Ok(ClaimedPlace { path, lines: None, instead_of })
        }
    }
}

/// The file that the model names: by its shown name, or by its path as diffs write it, with `a/` or `b/` before it.
fn find<'a, 'b>(written: &str, files: &[&'b ShownFile<'a>]) -> Option<&'b ShownFile<'a>> {
    let written = written.trim();
    let is_named = |file: &&&'b ShownFile<'a>| file.name == written || file.path.as_str() == written;
    let at = |text: &str| {
        let path = RepoPath::new(text).ok()?;
        files.iter().find(|file| *file.path == path).copied()
    };
    let bare =
        ["a/", "b/"].into_iter().find_map(|side| written.strip_prefix("./").unwrap_or(written).strip_prefix(side));
    files.iter().find(is_named).copied().or_else(|| at(written)).or_else(|| at(bare?))
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{Category, LineRange, Severity};
    use proptest::prelude::{any, prop_assert, proptest};

    use super::super::answer::ClaimedFinding;
    use super::super::shown_file::ShownFile;
    use super::super::shown_file::tests::new_file;
    use super::reported;

    const TEXT: &str = "one\ntwo\nthree\n";

    fn claim(path: &str, line: Option<u32>, end_line: Option<u32>) -> ClaimedFinding {
        ClaimedFinding {
            title: "Off by one".to_owned(),
            message: "The last one is left out.".to_owned(),
            path: path.to_owned(),
            line,
            end_line,
            severity: Severity::Major,
            category: Category::Correctness,
            suggestion: Some("  ".to_owned()),
            replacement: None,
        }
    }

    fn check(claim: &ClaimedFinding) -> Result<crate::RawFinding, String> {
        let change = new_file("src/a.rs", TEXT);
        reported(claim, &[&ShownFile::new(&change, TEXT, None)])
    }

    #[test]
    fn places_that_are_there() {
        for (path, line, end, expected) in [
            ("src/a.rs", Some(2), None, LineRange::new(2, 2)),
            ("./src/a.rs", Some(2), Some(3), LineRange::new(2, 3)),
            ("b/src/a.rs", Some(2), None, LineRange::new(2, 2)),
            (" ./a/src/a.rs", Some(2), None, LineRange::new(2, 2)),
            ("src/a.rs", Some(2), Some(900), LineRange::new(2, 3)),
            ("src/a.rs", Some(2), Some(1), LineRange::new(2, 2)),
            ("src/a.rs", None, Some(7), None),
        ] {
            let one = check(&claim(path, line, end)).expect("a finding");
            assert_eq!((one.path.as_str(), one.lines, one.tags.len()), ("src/a.rs", expected, 0), "{path} {line:?}");
            assert_eq!(one.message, "The last one is left out.");
        }
        assert_eq!(check(&claim("src/a.rs", Some(1), None)).expect("a finding").fix, None);
    }

    #[test]
    fn a_replacement_is_for_lines_that_are_there() {
        let with = |path: &str, line, end, code: &str| {
            let one = check(&ClaimedFinding { replacement: Some(code.to_owned()), ..claim(path, line, end) });
            let fix = one.expect("a finding").fix.expect("a fix");
            (fix.words, fix.replacement)
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(with("src/a.rs", Some(2), Some(3), "TWO\nTHREE\n"), (None, text("TWO\nTHREE")));
        // What cannot be applied is shown instead.
        assert_eq!(with("src/a.rs", Some(9), None, "2"), (text("2"), None));
        assert_eq!(with("src/a.rs", None, None, "2"), (text("2"), None));
        assert_eq!(with("src/b.rs", Some(1), None, "2"), (text("2"), None));
        assert_eq!(with("src/a.rs", Some(2), None, "  2"), (text("2"), None));
    }

    #[test]
    fn a_place_that_is_not_there_is_told_and_costs_no_finding() {
        for (path, line, end, at, lines, told) in [
            ("src/a.rs", Some(4), None, "src/a.rs", LineRange::new(3, 3), "at line 4 of src/a.rs, which has 3 lines"),
            (
                "b/src/a.rs",
                Some(900),
                Some(910),
                "src/a.rs",
                LineRange::new(3, 3),
                "at line 900 of src/a.rs, which has 3 lines",
            ),
            ("src/a.rs", Some(0), None, "src/a.rs", LineRange::new(1, 1), "at line 0 of src/a.rs, which has 3 lines"),
            ("src/b.rs", Some(7), None, "src/b.rs", LineRange::new(7, 7), "in src/b.rs, which it was not shown"),
            ("b/src/b.rs", None, None, "b/src/b.rs", None, "in b/src/b.rs, which it was not shown"),
            ("/etc/passwd", Some(1), None, "src/a.rs", None, "in a file that is not in the repository"),
            ("../src/a.rs", Some(1), None, "src/a.rs", None, "in a file that is not in the repository"),
            ("", Some(1), None, "src/a.rs", None, "in a file that is not in the repository"),
        ] {
            let one = check(&claim(path, line, end)).expect("a finding");
            assert_eq!((one.path.as_str(), one.lines), (at, lines), "{path} {line:?}");
            assert_eq!(one.message, format!("The last one is left out.\n\nThe model places this {told}."));
            assert!(one.tags.contains("misplaced"), "{path} {line:?}");
        }
    }

    #[test]
    fn titles_are_lines_of_a_sane_length() {
        let titled =
            |title: &str| check(&ClaimedFinding { title: title.to_owned(), ..claim("src/a.rs", Some(1), None) });
        assert_eq!(titled(" Off\n by \u{202e}one ").expect("a finding").title, "Off by one");
        assert_eq!(titled(" \u{200b}\n").expect("a finding").title, "The last one is left out.");
        let long = titled(&"x".repeat(201)).expect("a finding");
        assert_eq!(long.title, format!("{}…", "x".repeat(200)));
        assert!(long.message.starts_with(&"x".repeat(201)), "{}", long.message);
        let nothing =
            ClaimedFinding { title: String::new(), message: " ".to_owned(), ..claim("src/a.rs", Some(1), None) };
        assert_eq!(check(&nothing).err().as_deref(), Some("says nothing"));
    }

    #[test]
    fn what_a_model_repeats_of_a_secret_is_taken_out() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let leaky = ClaimedFinding { message: format!("It holds {token}."), ..claim("src/a.rs", Some(1), None) };
        assert_eq!(check(&leaky).expect("a finding").message, "It holds [redacted GitHub token].");
    }

    proptest! {
        #[test]
        fn what_is_used_is_marked_or_within_the_file(title in any::<String>(), message in any::<String>(), path in "(src/a.rs|\\PC{0,10})", line in any::<Option<u32>>(), end_line in any::<Option<u32>>()) {
            let one = ClaimedFinding { title, message, line, end_line, ..claim(&path, None, None) };
            if let Ok(one) = check(&one) {
                prop_assert!(one.path.as_str() == "src/a.rs" || one.tags.contains("misplaced"));
                prop_assert!(one.path.as_str() != "src/a.rs" || one.lines.is_none_or(|lines| lines.first >= 1 && lines.first <= lines.last && lines.last <= 3));
                prop_assert!(!one.title.is_empty() && one.title.chars().count() <= 201 + "[redacted GitHub token]".len() && !one.title.contains('\n'));
            }
        }
    }
}
