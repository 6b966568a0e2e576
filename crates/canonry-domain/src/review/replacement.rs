//! Decides whether a model's code may be offered as a replacement of the lines that a finding is about.

use crate::{is_hidden, redact};

/// The most lines that are replaced, and that replace them: a longer suggestion is a rewrite that nobody checks at a
/// glance.
pub const MOST_REPLACED_LINES: usize = 25;
const MOST_CHARACTERS: usize = 4_000;

/// The code without its last line end, if applying it with one click puts exactly this code in the place of the present
/// lines: whole lines at the same indentation, without secrets and without characters that nobody sees. `None` if it
/// changes nothing, or may not be what was meant.
pub fn checked_replacement(code: &str, present: &[&str]) -> Option<String> {
    let code = code.replace("\r\n", "\n");
    let code = code.strip_suffix('\n').unwrap_or(&code);
    let (lines, present_text): (Vec<&str>, String) = (code.split('\n').collect(), present.join("\n"));
    let is_seen = |text: &str| text.chars().all(|c| matches!(c, '\n' | '\t') || !is_hidden(c));
    let has_no_secret = |text: &str| redact(text) == *text && !text.contains("[redacted ");
    let is_applicable = !present.is_empty()
        && present.len().max(lines.len()) <= MOST_REPLACED_LINES
        && code.chars().count() <= MOST_CHARACTERS
        && code != present_text
        && indentation(&lines)? == indentation(present)?
        // Applying it must not bring a line end into a file with others.
        && !present_text.contains('\r')
        && is_seen(code)
        && has_no_secret(code)
        && has_no_secret(&present_text)
        // A marker of Canonry's own may not be in any text but Canonry's.
        && !code.contains("canonry:v1:")
        && (!is_wrapped(&lines) || is_wrapped(present))
        && (!is_numbered(&lines) || is_numbered(present));
    is_applicable.then(|| code.to_owned())
}

/// The white space before the first line that has more than that.
fn indentation<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let first = lines.iter().find(|line| !line.trim().is_empty())?;
    Some(&first[..first.len() - first.trim_start().len()])
}

/// Whether a model put the code into a block, which would become part of the file.
fn is_wrapped(lines: &[&str]) -> bool {
    lines.first().is_some_and(|line| line.trim_start().starts_with("```"))
}

/// Whether a model repeated the numbers before the lines that it was shown.
fn is_numbered(lines: &[&str]) -> bool {
    let is_number = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or("0");
        word.chars().all(|c| c.is_ascii_digit())
    };
    lines.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::{MOST_REPLACED_LINES, checked_replacement};
    use crate::review::applicable_suggestion;

    const PRESENT: [&str; 2] = ["    let last = list[list.len()];", "    use_it(last);"];

    #[test]
    fn whole_lines_at_the_same_indentation_are_taken() {
        let code = "    let last = list[list.len() - 1];\n    use_it(last);";
        for written in [code.to_owned(), format!("{code}\n"), code.replace('\n', "\r\n")] {
            assert_eq!(checked_replacement(&written, &PRESENT).as_deref(), Some(code));
        }
    }

    #[test]
    fn what_may_not_be_what_was_meant_is_not() {
        let token = format!("    let key = \"ghp_{}\";", "a1B2".repeat(9));
        for code in [
            "",
            "\n \n",
            "    let last = list[list.len()];\n    use_it(last);",
            "let last = list[list.len() - 1];",
            "    let \u{202e}last = 1;",
            "    let key = \"[redacted GitHub token]\";",
            token.as_str(),
            "    <!-- canonry:v1:x -->",
            "    ```rust\n    let last = 1;\n    ```",
            "    12   let last = 1;",
            &"    x();\n".repeat(MOST_REPLACED_LINES + 1),
            &format!("    {}", "x".repeat(5_000)),
        ] {
            assert_eq!(checked_replacement(code, &PRESENT), None, "{code}");
        }
        assert_eq!(checked_replacement("    x", &["    y\r"]), None);
        assert_eq!(checked_replacement("x", &[]), None);
        assert_eq!(checked_replacement("    x", &["    [redacted GitHub token]"]), None);
    }

    proptest! {
        /// Nothing in a suggestion ends its block: the first line that could is the last one.
        #[test]
        fn a_suggestion_cannot_end_its_block(parts in proptest::collection::vec("[`a\n ~]{0,8}", 0..6)) {
            let code = parts.join("\n");
            let block = applicable_suggestion(&code);
            let fence: String = block.chars().take_while(|c| *c == '`').collect();
            let ends = |line: &&str| line.trim_start().starts_with(&fence);
            let lines: Vec<&str> = block.split('\n').collect();
            prop_assert!(lines[1..lines.len() - 1].iter().all(|line| !ends(line)), "{}", block);
            prop_assert!(ends(&lines[lines.len() - 1]));
        }
    }
}
