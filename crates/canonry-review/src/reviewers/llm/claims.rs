//! Whether what a model claims can be about what it was shown.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::counted;
use canonry_domain::review::{LineRange, RepoPath, ReviewerName};

use super::answer::Claim;
use super::fence::{first_chars, harmless};
use super::shown_file::ShownFile;
use crate::reported::Reported;

/// The longest title: beyond this it is no title, and its fingerprint never comes again.
const TITLE: usize = 200;
/// The longest message and the longest suggestion that are kept.
const MESSAGE: usize = 8_000;

/// What the model reports about these files; otherwise why it cannot be used. Reasons hold nothing that the model wrote.
pub(super) fn reported(claim: &Claim, files: &[&ShownFile<'_>]) -> Result<Reported, String> {
    let title = harmless(&claim.title).split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() {
        return Err("has no title".to_owned());
    }
    if first_chars(&title, TITLE).1 {
        return Err(format!("has a title of more than {TITLE} characters"));
    }
    let file = find(&claim.path, files).ok_or("is about a file that was not shown")?;
    let last = file.line_count();
    let lines = match claim.line {
        None => None,
        // Where the file is empty now, all that can be said is about the whole of it.
        Some(_) if last == 0 => None,
        Some(line) if line == 0 || line > last => {
            let lines = counted(u64::from(last), "line");
            return Err(format!("is about line {line} of {}, which has {lines}", file.name));
        }
        // An end before the start is a slip; the start was meant.
        Some(line) => LineRange::new(line, claim.end_line.unwrap_or(line).clamp(line, last)),
    };
    let bounded = |text: &str| {
        let text = harmless(text);
        let (kept, is_cut) = first_chars(&text, MESSAGE);
        if is_cut { format!("{kept}…") } else { text }
    };
    Ok(Reported {
        reviewer: ReviewerName::model(),
        rule: None,
        title,
        message: bounded(&claim.message),
        path: file.path.clone(),
        lines,
        severity: claim.severity,
        category: claim.category,
        partial: BTreeMap::new(),
        tags: BTreeSet::new(),
        fix: claim.suggestion.as_deref().map(bounded).filter(|text| !text.is_empty()),
    })
}

/// The file that the model names: as it was shown, or as the path is written elsewhere.
fn find<'a, 'b>(written: &str, files: &[&'b ShownFile<'a>]) -> Option<&'b ShownFile<'a>> {
    let named = files.iter().find(|file| file.name == written || file.path.as_str() == written);
    let path = RepoPath::new(written.trim()).ok();
    named.or_else(|| files.iter().find(|file| Some(file.path) == path.as_ref())).copied()
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{Category, LineRange, Severity};
    use proptest::prelude::{any, prop_assert, proptest};

    use super::super::answer::Claim;
    use super::super::shown_file::ShownFile;
    use super::super::shown_file::tests::new_file;
    use super::reported;

    const TEXT: &str = "one\ntwo\nthree\n";

    fn claim(path: &str, line: Option<u32>, end_line: Option<u32>) -> Claim {
        Claim {
            title: "Off by one".to_owned(),
            message: "The last one is left out.".to_owned(),
            path: path.to_owned(),
            line,
            end_line,
            severity: Severity::Major,
            category: Category::Correctness,
            suggestion: Some("  ".to_owned()),
        }
    }

    fn check(claim: &Claim) -> Result<crate::Reported, String> {
        let change = new_file("src/a.rs", TEXT);
        reported(claim, &[&ShownFile::new(&change, TEXT, None)])
    }

    #[test]
    fn places_that_are_there_and_places_that_are_not() {
        for (path, line, end, expected) in [
            ("src/a.rs", Some(2), None, Ok(LineRange::new(2, 2))),
            ("./src/a.rs", Some(2), Some(3), Ok(LineRange::new(2, 3))),
            ("src/a.rs", Some(2), Some(900), Ok(LineRange::new(2, 3))),
            ("src/a.rs", Some(2), Some(1), Ok(LineRange::new(2, 2))),
            ("src/a.rs", None, Some(7), Ok(None)),
            ("src/a.rs", Some(4), None, Err("is about line 4 of src/a.rs, which has 3 lines")),
            ("src/a.rs", Some(0), None, Err("is about line 0 of src/a.rs, which has 3 lines")),
            ("src/b.rs", Some(1), None, Err("is about a file that was not shown")),
            ("/etc/passwd", Some(1), None, Err("is about a file that was not shown")),
            ("../src/a.rs", Some(1), None, Err("is about a file that was not shown")),
        ] {
            let lines = check(&claim(path, line, end)).map(|one| one.lines);
            assert_eq!(lines, expected.map_err(str::to_owned), "{path} {line:?}");
        }
        assert_eq!(check(&claim("src/a.rs", Some(1), None)).expect("a finding").fix, None);
        let short = new_file("src/a.rs", "one\n");
        let why = reported(&claim("src/a.rs", Some(2), None), &[&ShownFile::new(&short, "one\n", None)]);
        assert_eq!(why.err().as_deref(), Some("is about line 2 of src/a.rs, which has 1 line"));
    }

    #[test]
    fn titles_are_lines_of_a_sane_length() {
        let titled = |title: &str| check(&Claim { title: title.to_owned(), ..claim("src/a.rs", Some(1), None) });
        assert_eq!(titled(" Off\n by \u{202e}one ").expect("a finding").title, "Off by one");
        assert_eq!(titled(" \u{200b}\n").err().as_deref(), Some("has no title"));
        assert_eq!(titled(&"x".repeat(201)).err().as_deref(), Some("has a title of more than 200 characters"));
    }

    #[test]
    fn what_a_model_repeats_of_a_secret_is_taken_out() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let leaky = Claim { message: format!("It holds {token}."), ..claim("src/a.rs", Some(1), None) };
        assert_eq!(check(&leaky).expect("a finding").message, "It holds [redacted GitHub token].");
    }

    proptest! {
        #[test]
        fn what_is_used_is_within_the_file(title in any::<String>(), message in any::<String>(), path in "(src/a.rs|\\PC{0,10})", line in any::<Option<u32>>(), end_line in any::<Option<u32>>()) {
            let one = Claim { title, message, line, end_line, ..claim(&path, None, None) };
            if let Ok(one) = check(&one) {
                prop_assert!(one.path.as_str() == "src/a.rs");
                prop_assert!(one.lines.is_none_or(|lines| lines.first >= 1 && lines.first <= lines.last && lines.last <= 3));
                prop_assert!(!one.title.is_empty() && one.title.chars().count() <= 220 && !one.title.contains('\n'));
            }
        }
    }
}
