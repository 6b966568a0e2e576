//! Which lines of a comment its author says to somebody: no quotations, no code, nothing hidden.

use std::collections::HashMap;

/// The lines of a Markdown text that are neither quoted nor code nor hidden nor inside a link, without the blanks before
/// them.
///
/// This is not all of Markdown. Where it is in doubt, a line is not live: a command that is missed can be said again.
pub(super) fn live_lines(text: &str) -> Vec<&str> {
    let mut reader = Reader::default();
    // Markdown ends lines with any of the three.
    for line in text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r')) {
        reader.read(line);
    }
    reader.end_paragraph();
    reader.live
}

#[derive(Default)]
struct Reader<'a> {
    live: Vec<&'a str>,
    paragraph: Vec<&'a str>,
    inside: Inside,
}

/// What a line stands in.
#[derive(Default, Clone, Copy, PartialEq)]
enum Inside {
    #[default]
    Nothing,
    /// A quotation goes on until a blank line, with or without `>`.
    Quotation,
    /// Code between fences; `indent` is where the list item stands that holds them.
    Fence { mark: char, length: usize, indent: usize },
    /// Something that ends with this text.
    Until(&'static str),
}

impl<'a> Reader<'a> {
    fn read(&mut self, line: &'a str) {
        match self.inside {
            Inside::Fence { indent, .. } if indent > 0 && !is_blank(line) && indent_of(line) < indent => {
                // The list item has ended, and what was in it.
                self.inside = Inside::Nothing;
            }
            Inside::Fence { mark, length, .. } => {
                if closes(line, mark, length) {
                    self.inside = Inside::Nothing;
                }
                return;
            }
            Inside::Until(end) => {
                if let Some(at) = find_ignoring_case(line, end) {
                    self.inside = left_open(&line[at + end.len()..]);
                }
                return;
            }
            Inside::Quotation if !is_blank(line) && !is_quotation(line) => return,
            Inside::Quotation | Inside::Nothing => {}
        }
        if is_blank(line) {
            self.inside = Inside::Nothing;
            self.end_paragraph();
        } else if is_quotation(line) {
            self.end_paragraph();
            self.inside = Inside::Quotation;
        } else if let Some(fence) = opened_fence(line) {
            self.end_paragraph();
            self.inside = fence;
        } else {
            self.paragraph.push(line);
            self.inside = left_open(line);
            if self.inside != Inside::Nothing {
                self.end_paragraph();
            }
        }
    }

    /// Takes the lines of a paragraph that do not begin inside of something.
    fn end_paragraph(&mut self) {
        let lines = std::mem::take(&mut self.paragraph);
        let text = lines.join("\n");
        let covered = Covered::of(&text);
        let mut start = 0;
        for line in lines {
            let begins = start + (line.len() - line.trim_start().len());
            start += line.len() + 1;
            if indent_of(line) <= 3 && !covered.holds(begins) {
                self.live.push(line.trim_start());
            }
        }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn is_quotation(line: &str) -> bool {
    indent_of(line) <= 3 && line.trim_start().starts_with('>')
}

/// The columns of white space before a line's text; a tab is as wide as code needs.
fn indent_of(line: &str) -> usize {
    let blanks = line.chars().take_while(|character| character.is_whitespace());
    blanks.map(|blank| if blank == ' ' { 1 } else { 4 }).sum()
}

/// The fence that a line begins, in a list item or not.
fn opened_fence(line: &str) -> Option<Inside> {
    let mut rest = line.trim_start();
    let mut indent = 0;
    while let Some(behind) = without_list_mark(rest) {
        rest = behind;
        indent = line.len() - rest.len();
    }
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = rest.chars().take_while(|character| *character == mark).count();
    let is_fence = length >= 3 && !(mark == '`' && rest[length..].contains('`'));
    is_fence.then_some(Inside::Fence { mark, length, indent })
}

/// What stands behind `- `, `* `, `+ `, `1. ` or `1) `.
fn without_list_mark(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let behind = match digits {
        0 => line.strip_prefix(['-', '*', '+'])?,
        1..=9 => line[digits..].strip_prefix(['.', ')'])?,
        _ => return None,
    };
    behind.starts_with([' ', '\t']).then(|| behind.trim_start())
}

fn closes(line: &str, mark: char, length: usize) -> bool {
    let line = line.trim();
    line.chars().all(|character| character == mark) && line.chars().count() >= length
}

/// What a line begins and does not end: a comment, or an element whose text is not said to anybody.
fn left_open(line: &str) -> Inside {
    const HIDDEN: [(&str, &str); 7] = [
        ("<!--", "-->"),
        ("<pre", "</pre"),
        ("<code", "</code"),
        ("<script", "</script"),
        ("<style", "</style"),
        ("<textarea", "</textarea"),
        ("<blockquote", "</blockquote"),
    ];
    let code = Covered::sorted(code_spans(line));
    let mut from = 0;
    while let Some(at) = line[from..].find('<').map(|at| from + at) {
        let begun = HIDDEN.iter().find(|(begin, _)| begins_ignoring_case(&line.as_bytes()[at..], begin));
        let Some((begin, end)) = begun.filter(|_| !code.holds(at)) else {
            from = at + 1;
            continue;
        };
        let behind = at + begin.len();
        match find_ignoring_case(&line[behind..], end) {
            Some(ended) => from = behind + ended + end.len(),
            None => return Inside::Until(end),
        }
    }
    Inside::Nothing
}

fn begins_ignoring_case(text: &[u8], ascii: &str) -> bool {
    text.get(..ascii.len()).is_some_and(|found| found.eq_ignore_ascii_case(ascii.as_bytes()))
}

fn find_ignoring_case(text: &str, ascii: &str) -> Option<usize> {
    text.as_bytes().windows(ascii.len()).position(|found| found.eq_ignore_ascii_case(ascii.as_bytes()))
}

/// The parts of a paragraph that are code, a link or a tag, by where they begin; each with the furthest end of those
/// before it.
struct Covered(Vec<(usize, usize)>);

impl Covered {
    fn of(text: &str) -> Self {
        let mut ranges = code_spans(text);
        ranges.extend(links(text));
        ranges.extend(tags(text));
        Self::sorted(ranges)
    }

    fn sorted(mut ranges: Vec<(usize, usize)>) -> Self {
        ranges.sort_unstable();
        let mut furthest = 0;
        for (_, end) in &mut ranges {
            furthest = furthest.max(*end);
            *end = furthest;
        }
        Self(ranges)
    }

    /// Whether a place is inside of one, not where it begins.
    fn holds(&self, at: usize) -> bool {
        let begun = self.0.partition_point(|(from, _)| *from < at);
        begun.checked_sub(1).and_then(|last| self.0.get(last)).is_some_and(|(_, end)| at < *end)
    }
}

/// Code between two runs of as many backticks.
fn code_spans(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut escaped = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'`' {
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
        let slashes = bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        escaped.push(slashes % 2 == 1);
        runs.push((at, length));
        at += length;
    }
    // Where the last run of each length is, so that nobody looks for what does not come.
    let last: HashMap<usize, usize> = runs.iter().enumerate().map(|(index, (_, length))| (*length, index)).collect();
    let mut spans = Vec::new();
    let mut next = 0;
    while next < runs.len() {
        let (open, length) = runs[next];
        // The first backtick of an escaped run is a plain character.
        let opening = if escaped[next] { length - 1 } else { length };
        let comes = last.get(&opening).is_some_and(|last| *last > next);
        let closing = if comes { (next + 1..runs.len()).find(|later| runs[*later].1 == opening) } else { None };
        match closing {
            Some(later) => {
                spans.push((open, runs[later].0 + opening));
                next = later + 1;
            }
            None => next += 1,
        }
    }
    spans
}

/// Characters of a link's address: a longer one is none, and looking for its end again and again takes time.
const ADDRESS: usize = 2_048;

/// From `[` to the end of what makes it a link.
fn links(text: &str) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    let mut links = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '[' => open.push(at),
            ']' => {
                let Some(begun) = open.pop() else { continue };
                let behind = &text[at + 1..];
                let end = match behind.chars().next() {
                    Some('(') => Some(')'),
                    Some('[') => Some(']'),
                    _ => None,
                };
                let end = end.and_then(|end| behind.char_indices().take(ADDRESS).find(|(_, found)| *found == end));
                links.extend(end.map(|(end, _)| (begun, at + 1 + end)));
            }
            _ => {}
        }
    }
    links
}

/// From `<` to `>`, where the two enclose a tag or an address.
fn tags(text: &str) -> Vec<(usize, usize)> {
    let mut tags = Vec::new();
    let mut from = 0;
    while let Some(begun) = text[from..].find('<').map(|at| from + at) {
        let behind = &text[begun + 1..];
        let is_tag = behind.starts_with(|next: char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
        let Some(length) = behind.find('>') else { break };
        if is_tag {
            tags.push((begun, begun + 1 + length));
            from = begun + 1 + length;
        } else {
            from = begun + 1;
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::live_lines;

    #[test]
    fn what_is_said_is_live() {
        for (text, live) in [
            ("one\ntwo", vec!["one", "two"]),
            ("one\r\ntwo\rthree", vec!["one", "two", "three"]),
            ("> one\ntwo\n\nthree", vec!["three"]),
            ("one\n> two", vec!["one"]),
            ("```\none\n```\ntwo", vec!["two"]),
            ("````\n```\none\n````\ntwo", vec!["two"]),
            ("~~~ rust\none\n```\ntwo", vec![]),
            ("``` a`b\none", vec!["``` a`b", "one"]),
            ("> ```\n> one\n\ntwo", vec!["two"]),
            ("- ```\n  one\n\ntwo", vec!["two"]),
            ("1. ~~~\n   one\n   ~~~\n\ntwo", vec!["two"]),
            ("- ```\none\n```\ntwo", vec!["one"]),
            ("    one\n\ttwo\n   three", vec!["three"]),
            ("a `one\ntwo\nthree` b", vec!["a `one"]),
            ("a `one\ntwo\nthree b", vec!["a `one", "two", "three b"]),
            (r"a \`one\`", vec![r"a \`one\`"]),
            ("a `one\n\ntwo` b", vec!["a `one", "two` b"]),
            ("<!-- one\n\ntwo --> three\nfour", vec!["<!-- one", "four"]),
            ("`<!--` one\ntwo", vec!["`<!--` one", "two"]),
            ("a [one\ntwo](x) b\nthree", vec!["a [one", "three"]),
            ("a [one\ntwo] b\nthree", vec!["a [one", "two] b", "three"]),
            ("<a href='x'\ntwo>three", vec!["<a href='x'"]),
            ("<details>\n\none\n</details>", vec!["<details>", "one", "</details>"]),
            ("<PRE>one\n\ntwo\n</pre>\nthree", vec!["<PRE>one", "three"]),
            ("<blockquote>\n\none\n\n</blockquote>\n\ntwo", vec!["<blockquote>", "two"]),
        ] {
            assert_eq!(live_lines(text), live, "{text:?}");
        }
    }

    #[test]
    fn long_texts_of_markup_end_soon() {
        for mark in ["`", "[", "]", "<", "<a", "![", "](", "``", "<!--", "> ", "\\`"] {
            let text = mark.repeat(65_536 / mark.len());
            assert!(live_lines(&text).len() <= 1, "{mark}");
        }
        let runs: String = (1..350).map(|length| "`".repeat(length) + " ").collect();
        assert_eq!(live_lines(&runs).len(), 1);
    }
}
