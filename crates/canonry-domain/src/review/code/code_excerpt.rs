//! The code that a finding is about, with a few lines around it; reports show it and reviews store it.

use serde::{Deserialize, Serialize};

use crate::review::LineRange;
use crate::text::secrets::scan::scan_secrets;

/// The number of context lines before and after the flagged lines.
const AROUND: u32 = 2;
/// The maximum number of flagged lines in an excerpt; the rest is omitted.
const FLAGGED: u32 = 6;
/// The maximum number of characters of a line: generated code has lines of megabytes.
const LINE: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeExcerpt {
    /// The number of the first line.
    pub first: u32,
    pub lines: Vec<String>,
    /// The range of flagged lines, including those that are omitted.
    pub flagged: LineRange,
}

impl CodeExcerpt {
    /// The flagged lines of a file with context; `None` if the file does not have them. The text must be [without its
    /// secrets](without_secrets).
    pub fn around(text: &str, flagged: LineRange) -> Option<Self> {
        let kept = last_kept(flagged);
        let after = if kept == flagged.last { AROUND } else { 0 };
        let (first, last) = (flagged.first.saturating_sub(AROUND).max(1), kept.saturating_add(after));
        let numbered = (first..=last).zip(text.lines().skip(first as usize - 1));
        let lines: Vec<String> = numbered.map(|(_, line)| line.chars().take(LINE).collect()).collect();
        // The file has changed since the report: the code around would be about something else.
        (lines.len() > (flagged.first - first) as usize).then_some(Self { first, lines, flagged })
    }

    /// The lines, each with its number and whether it is flagged.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, bool, &str)> {
        let is_flagged = |number| self.flagged.first <= number && number <= self.flagged.last;
        (self.first..).zip(&self.lines).map(move |(number, line)| (number, is_flagged(number), line.as_str()))
    }

    /// The number of flagged lines that were omitted.
    pub fn left_out(&self) -> u32 {
        let kept = last_kept(self.flagged);
        let is_whole = self.lines.len() > kept.saturating_sub(self.first) as usize;
        if is_whole { self.flagged.last - kept } else { 0 }
    }
}

fn last_kept(flagged: LineRange) -> u32 {
    flagged.last.min(flagged.first.saturating_add(FLAGGED - 1))
}

/// The text with each secret replaced by its kind and with the same number of lines: many people read reports.
pub fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for secret in scan_secrets(text) {
        shown.push_str(&text[end..secret.range.start]);
        shown.push_str(&format!("[redacted {}]", secret.kind));
        shown.extend(text[secret.range.clone()].matches('\n'));
        end = secret.range.end;
    }
    shown.push_str(&text[end..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::{CodeExcerpt, without_secrets};
    use crate::review::LineRange;

    fn shown(text: &str, first: u32, last: u32) -> Vec<String> {
        let lines = LineRange::new(first, last).expect("lines");
        let Some(excerpt) = CodeExcerpt::around(&without_secrets(text), lines) else { return Vec::new() };
        let line = |(number, flagged, code)| format!("{}{number} {code}", if flagged { ">" } else { "" });
        let left_out = Some(excerpt.left_out()).filter(|more| *more > 0).map(|more| format!("+{more}"));
        excerpt.numbered().map(line).chain(left_out).collect()
    }

    #[test]
    fn the_flagged_lines_stand_among_others() {
        let text = "one\r\ntwo\r\n\tthree\r\nfour\r\nfive\r\nsix";
        assert_eq!(shown(text, 3, 3), ["1 one", "2 two", ">3 \tthree", "4 four", "5 five"]);
        assert_eq!(shown(text, 1, 1), [">1 one", "2 two", "3 \tthree"]);
        assert_eq!(shown(text, 6, 6), ["4 four", "5 five", ">6 six"]);
    }

    #[test]
    fn a_secret_is_not_repeated_and_moves_no_line() {
        let token = ["gh", "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
        let body = "MIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi";
        let kind = ["PRIVATE", " KEY"].concat();
        let key = format!("-----BEGIN RSA {kind}-----\n{body}{body}\n-----END RSA {kind}-----");
        let text = format!("let t = '{token}';\n{key}\nlast();\n");
        assert_eq!(shown(&text, 1, 1)[0], ">1 let t = '[redacted GitHub token]';");
        assert_eq!(shown(&text, 5, 5), ["3 ", "4 ", ">5 last();"]);
    }

    #[test]
    fn what_is_not_there_is_not_shown() {
        assert_eq!(shown("one\ntwo\n", 3, 3), [""; 0]);
        assert_eq!(shown("one\ntwo\n", 4_000_000_000, u32::MAX), [""; 0]);
        assert_eq!(shown("", 1, 1), [""; 0]);
        assert_eq!(shown("one\ntwo\n", 2, 9), ["1 one", ">2 two"]);
    }

    #[test]
    fn many_lines_and_long_ones_are_cut() {
        let text: String = (1..=50).map(|line| format!("{line}\n")).collect();
        let lines = shown(&text, 10, 40);
        assert_eq!((lines.len(), lines[0].as_str(), lines[8].as_str()), (9, "8 8", "+25"));
        assert_eq!(shown(&"x".repeat(9_000), 1, 1)[0].len(), 403);
    }
}
