//! Parses HTML in Markdown: the positions of tags, comments and texts, and the elements whose text is not the author's
//! words.

use std::collections::BTreeMap;
use std::ops::Range;

/// A part of raw HTML. Comments are not parts.
#[derive(Debug, PartialEq, Eq)]
pub enum HtmlPart<'a> {
    Text(Range<usize>),
    Tag {
        name: &'a str,
        attributes: &'a str,
        closes: bool,
    },
    /// A tag or a comment without an end: everything after it belongs to it.
    Unfinished,
}

/// Splits raw HTML into parts, as a browser does.
pub fn html_parts(html: &str) -> Vec<HtmlPart<'_>> {
    let mut parts = Vec::new();
    let (mut text, mut at) = (0, 0);
    while let Some(begun) = html[at..].find('<').map(|found| at + found) {
        let Some(end) = markup_end(html, begun) else {
            at = begun + 1;
            continue;
        };
        if text < begun {
            parts.push(HtmlPart::Text(text..begun));
        }
        let Some(end) = end else {
            parts.push(HtmlPart::Unfinished);
            return parts;
        };
        parts.extend(tag(&html[begun + 1..end]));
        (text, at) = (end, end);
    }
    if text < html.len() {
        parts.push(HtmlPart::Text(text..html.len()));
    }
    parts
}

/// The end of the markup that begins with this `<`; `None` if it is only a character, `Some(None)` if the markup has
/// no end.
fn markup_end(html: &str, begun: usize) -> Option<Option<usize>> {
    let behind = &html[begun + 1..];
    let from = begun + 1;
    if let Some(comment) = behind.strip_prefix("!--") {
        // Browsers end a comment at once if it begins with its end.
        let at_once = [">", "->"].into_iter().find(|end| comment.starts_with(end)).map(|end| from + 3 + end.len());
        let ends = ["-->", "--!>"].into_iter().filter_map(|end| comment.find(end).map(|at| from + 3 + at + end.len()));
        return Some(at_once.or_else(|| ends.min()));
    }
    let next = behind.strip_prefix('/').unwrap_or(behind).chars().next();
    if next.is_some_and(|next| next.is_ascii_alphabetic()) {
        return Some(tag_end(html, from));
    }
    behind.starts_with(['!', '?', '/']).then(|| behind.find('>').map(|at| from + at + 1))
}

/// The end of a tag: the first `>` outside a quoted value.
fn tag_end(html: &str, from: usize) -> Option<usize> {
    let bytes = html.as_bytes();
    let (mut at, mut takes_value) = (from, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => return Some(at + 1),
            b'"' | b'\'' if takes_value => {
                at += 1 + bytes[at + 1..].iter().position(|end| *end == byte)?;
                takes_value = false;
            }
            b'=' => takes_value = true,
            _ if byte.is_ascii_whitespace() => {}
            _ => takes_value = false,
        }
        at += 1;
    }
    None
}

fn tag(inside: &str) -> Option<HtmlPart<'_>> {
    let inside = inside.strip_suffix('>').unwrap_or(inside);
    let (closes, inside) = inside.strip_prefix('/').map_or((false, inside), |rest| (true, rest));
    let length = inside.find(|end: char| end.is_ascii_whitespace() || end == '/').unwrap_or(inside.len());
    let (name, attributes) = inside.split_at(length);
    name.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(HtmlPart::Tag { name, attributes, closes })
}

/// Elements whose text is not the author's own words: quoted, struck, code, a link, hidden, or a part of a table.
const NOT_SAID: [&str; 36] = [
    "blockquote",
    "q",
    "cite",
    "del",
    "s",
    "strike",
    "code",
    "pre",
    "kbd",
    "samp",
    "tt",
    "var",
    "xmp",
    "listing",
    "plaintext",
    "a",
    "script",
    "style",
    "template",
    "textarea",
    "title",
    "iframe",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "svg",
    "math",
    "select",
    "option",
    "datalist",
    "audio",
    "video",
    "canvas",
    "summary",
    "table",
];

/// The elements that are open at a position. An element that is never closed stays open to the end: browsers disagree,
/// and if in doubt the text is not the author's words.
#[derive(Debug, Default)]
pub(super) struct OpenElements {
    /// The number of open elements by name; `all` is their sum.
    counts: BTreeMap<&'static str, usize>,
    all: usize,
    /// Each open `<details>`, and whether a reader must unfold it.
    details: Vec<bool>,
    folded: usize,
    unfinished: bool,
}

impl OpenElements {
    pub(super) fn read(&mut self, part: &HtmlPart<'_>) {
        match part {
            HtmlPart::Text(_) => {}
            HtmlPart::Unfinished => self.unfinished = true,
            HtmlPart::Tag { name, attributes, closes } if name.eq_ignore_ascii_case("details") => {
                if !closes {
                    let is_open = attributes.split_ascii_whitespace().any(|word| {
                        word.trim_end_matches('/')
                            .split('=')
                            .next()
                            .is_some_and(|name| name.eq_ignore_ascii_case("open"))
                    });
                    self.details.push(!is_open);
                    self.folded += usize::from(!is_open);
                } else if let Some(folded) = self.details.pop() {
                    self.folded -= usize::from(folded);
                }
            }
            HtmlPart::Tag { name, closes, .. } => {
                let Some(known) = NOT_SAID.iter().find(|known| name.eq_ignore_ascii_case(known)) else { return };
                let count = self.counts.entry(known).or_default();
                if !closes {
                    *count += 1;
                    self.all += 1;
                } else if *count > 0 {
                    *count -= 1;
                    self.all -= 1;
                }
            }
        }
    }

    /// Whether no open element excludes the text from the author's words.
    pub(super) const fn is_said(&self) -> bool {
        self.all == 0 && !self.unfinished
    }

    pub(super) const fn is_folded(&self) -> bool {
        self.folded > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{HtmlPart, html_parts};

    fn shown(html: &str) -> Vec<String> {
        let parts = html_parts(html).into_iter();
        parts
            .map(|part| match part {
                HtmlPart::Text(range) => html[range].to_owned(),
                HtmlPart::Tag { name, closes, .. } => format!("<{}{name}>", if closes { "/" } else { "" }),
                HtmlPart::Unfinished => "<…".to_owned(),
            })
            .collect()
    }

    #[test]
    fn tags_comments_and_texts_are_parted() {
        for (html, parts) in [
            ("a<b>c</b >d", vec!["a", "<b>", "c", "</b>", "d"]),
            ("<a title=\">\" x='>'>y", vec!["<a>", "y"]),
            ("<a title = \"x>", vec!["<…"]),
            ("<a \">y", vec!["<a>", "y"]),
            ("<br/>x", vec!["<br>", "x"]),
            ("1 < 2 <3", vec!["1 < 2 <3"]),
            ("<!-- a > b --> c", vec![" c"]),
            ("<!-->c", vec!["c"]),
            ("<!--->c", vec!["c"]),
            ("<!-- a --!>c", vec!["c"]),
            ("x<!-- a", vec!["x", "<…"]),
            ("<?php a ?>b", vec!["b"]),
            ("<![CDATA[ a > b ]]>", vec![" b ]]>"]),
            ("</>x", vec!["x"]),
            ("<div\n", vec!["<…"]),
        ] {
            assert_eq!(shown(html), parts, "{html:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_in_order(html in "[<>!/a\"'= -]{0,60}", more in any::<String>()) {
            let html = html + &more;
            let mut last = 0;
            for part in html_parts(&html) {
                if let HtmlPart::Text(range) = part {
                    prop_assert!(last <= range.start && range.start < range.end);
                    last = range.end;
                }
            }
        }
    }
}
