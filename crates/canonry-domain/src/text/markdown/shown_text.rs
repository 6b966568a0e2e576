//! Extracts the text that a reader of Markdown sees, with the source position of each part.

use std::ops::Range;

use pulldown_cmark::{Event, Parser};

use super::raw_html::{HtmlPart, html_parts};
use super::{github_options, is_too_deep};
use crate::text::printable::is_invisible;

/// A text that was derived from a source, with the source position of each byte.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ShownText {
    text: String,
    /// The source range of each byte.
    from: Vec<(usize, usize)>,
}

impl ShownText {
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Adds a character with its source range, unless it is invisible.
    pub(crate) fn push(&mut self, character: char, source: Range<usize>) {
        if is_invisible(character) {
            return;
        }
        self.text.push(character);
        self.from.resize(self.text.len(), (source.start, source.end));
    }

    /// The source range of a part of the text.
    pub(crate) fn source_of(&self, range: Range<usize>) -> Range<usize> {
        let from = &self.from[range];
        let start = from.iter().map(|(start, _)| *start).min().unwrap_or_default();
        start..from.iter().map(|(_, end)| *end).max().unwrap_or(start)
    }

    /// Adds a text. Each character gets its own position if the source contains the text unchanged.
    fn push_text(&mut self, text: &str, source: &str, range: Range<usize>) {
        let is_same = source.get(range.clone()) == Some(text);
        for (at, character) in text.char_indices() {
            let place = range.start + at;
            self.push(character, if is_same { place..place + character.len_utf8() } else { range.clone() });
        }
    }
}

/// The text that a reader of Markdown sees: without marks, tags and comments, and with entities decoded. It is empty
/// if the source is nested too deeply.
pub(crate) fn shown_text(source: &str) -> ShownText {
    let mut shown = ShownText::default();
    if is_too_deep(source) {
        return shown;
    }
    for (event, range) in Parser::new_ext(source, github_options()).into_offset_iter() {
        match event {
            Event::Text(text) => shown.push_text(&text, source, range),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                // The position behind the backticks, if the code is in the source unchanged.
                let inside = source.get(range.clone()).and_then(|whole| whole.find(&*text));
                let place = inside.map_or(range.clone(), |at| range.start + at..range.start + at + text.len());
                shown.push_text(&text, source, place);
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for part in html_parts(&html) {
                    if let HtmlPart::Text(text) = part {
                        let place = range.start + text.start..range.start + text.end;
                        shown.push_text(&html[text], source, place);
                    }
                }
            }
            Event::SoftBreak | Event::HardBreak | Event::Rule => shown.push('\n', range),
            Event::Start(tag) if !is_inline(&tag.to_end()) => shown.push('\n', range.start..range.start),
            Event::End(tag) if !is_inline(&tag) => shown.push('\n', range.end..range.end),
            Event::Start(_) | Event::End(_) | Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
        }
    }
    shown
}

fn is_inline(tag: &pulldown_cmark::TagEnd) -> bool {
    use pulldown_cmark::TagEnd::{Emphasis, Image, Link, Strikethrough, Strong, Subscript, Superscript};
    matches!(tag, Emphasis | Image | Link | Strikethrough | Strong | Subscript | Superscript)
}

#[cfg(test)]
mod tests {
    use super::shown_text;

    #[test]
    fn what_a_reader_sees_and_where_it_stands() {
        for (source, seen) in [
            (r"a\_b `c\d` **e** &lt;f&gt;", r"a_b c\d e <f>"),
            ("> a\n> b", "a\nb"),
            ("x<!-- y -->z <b>w</b>", "xz w"),
            ("[t](u \"v\") ![w](x)", "t w"),
            ("```sh\na\n```", "a"),
            ("a&#47;b", "a/b"),
        ] {
            assert_eq!(shown_text(source).as_str().trim(), seen, "{source:?}");
        }
        let source = r"x a\_b `c` y";
        let shown = shown_text(source);
        let at = shown.as_str().find("a_b c").expect("seen");
        assert_eq!(&source[shown.source_of(at..at + 5)], r"a\_b `c");
    }
}
