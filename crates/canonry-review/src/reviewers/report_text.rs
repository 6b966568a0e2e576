//! Decodes the text of a report, and limits the values in it.

use std::borrow::Cow;

use canonry_domain::review::LineRange;

/// Longer names of rules and tools are cut: they are stored with each finding.
const LONGEST_NAME: usize = 200;

const LONGEST_FIX: usize = 8_000;

/// The highest line number that is accepted, so that adding a few to a line number never overflows.
const MOST_LINES: i64 = 1 << 30;

/// The text of a report. Some shells write UTF-16. Code in another encoding must not cost the whole report: bytes that
/// are not UTF-8 are replaced, and a problem says so.
pub(super) fn report_text<'a>(name: &str, bytes: &'a [u8], problems: &mut Vec<String>) -> Cow<'a, str> {
    let wide = |bytes: &[u8], number: fn([u8; 2]) -> u16| -> String {
        let numbers = bytes.chunks_exact(2).map(|two| number([two[0], two[1]]));
        char::decode_utf16(numbers).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(wide(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(wide(rest, u16::from_be_bytes)),
        _ => {
            let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
            if matches!(text, Cow::Owned(_)) {
                problems.push(format!("{name} contains invalid UTF-8, which is read as \u{fffd}"));
            }
            text
        }
    }
}

pub(super) fn short_name(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect()
}

pub(super) fn short_fix(text: &str) -> String {
    text.chars().take(LONGEST_FIX).collect()
}

/// The lines that a tool means; `None`, which stands for the whole file, if it names no possible line.
pub(super) fn tool_lines(first: Option<i64>, last: Option<i64>) -> Option<LineRange> {
    let line = |number: i64| u32::try_from(number).ok().filter(|_| (1..=MOST_LINES).contains(&number));
    let first = line(first?)?;
    LineRange::new(first, last.and_then(line).unwrap_or(first).max(first))
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::LineRange;

    use super::{report_text, short_name, tool_lines};

    #[test]
    fn every_encoding_that_tools_write() {
        let wide = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            mark.into_iter().chain("{\"é\"}".encode_utf16().flat_map(bytes)).collect()
        };
        let mut problems = Vec::new();
        for bytes in [
            "{\"é\"}".into(),
            "\u{feff}{\"é\"}".into(),
            wide([0xff, 0xfe], u16::to_le_bytes),
            wide([0xfe, 0xff], u16::to_be_bytes),
        ] {
            assert_eq!(report_text("r", &bytes, &mut problems), "{\"é\"}");
        }
        assert!(problems.is_empty());
        assert_eq!(report_text("r", b"a\xe9b", &mut problems), "a\u{fffd}b");
        assert_eq!(problems, ["r contains invalid UTF-8, which is read as \u{fffd}"]);
    }

    #[test]
    fn names_and_lines_are_bounded() {
        assert_eq!(short_name("no\u{1b}[31m-eval\n"), "no[31m-eval");
        assert_eq!(short_name(&"x".repeat(10_000)).len(), 200);
        for (first, last, expected) in [
            (Some(3), Some(5), LineRange::new(3, 5)),
            (Some(3), Some(1), LineRange::new(3, 3)),
            (Some(3), Some(i64::MAX), LineRange::new(3, 3)),
            (Some(0), Some(5), None),
            (Some(-1), None, None),
            (Some(i64::MAX), None, None),
            (None, Some(5), None),
        ] {
            assert_eq!(tool_lines(first, last), expected, "{first:?}..{last:?}");
        }
    }
}
