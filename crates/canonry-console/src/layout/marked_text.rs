//! A stranger's text with the evidence marked that another text shares: escaped, and hidden characters made visible.

use std::fmt::{self, Write as _};
use std::ops::Range;

use askama::filters::HtmlSafe;
use canonry_charts::escape;
use canonry_domain::printable::block;
use canonry_retrieval::FactSpan;

/// Colours of marks; with more facts they repeat.
const COLOURS: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkedText(pub(super) String);

impl fmt::Display for MarkedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// Every part of the text went through `push`, and the elements around it are ours.
impl HtmlSafe for MarkedText {}

/// A part of a text with its marks, each with the texts of its facts.
pub(crate) fn marked_text(text: &str, part: Range<usize>, spans: &[FactSpan], words: &[String]) -> MarkedText {
    let mut html = String::with_capacity(part.len() + 64 * spans.len());
    MarkPen::new(spans, words).write(&mut html, &text[part.clone()], part.start);
    MarkedText(html)
}

pub(crate) fn colour(fact: usize) -> &'static str {
    ["e0", "e1", "e2", "e3", "e4", "e5"][fact % COLOURS]
}

/// Writes consecutive parts of a text, with the marks inside each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MarkPen<'a> {
    spans: &'a [FactSpan],
    words: &'a [String],
    last: Option<&'a FactSpan>,
}

impl<'a> MarkPen<'a> {
    pub(super) const fn new(spans: &'a [FactSpan], words: &'a [String]) -> Self {
        Self { spans, words, last: None }
    }

    /// Writes a part that begins at offset `place` of the text.
    pub(super) fn write(&mut self, html: &mut String, part: &str, place: usize) {
        let mut at = place;
        for span in self.spans_within(place..place + part.len()) {
            let (from, to) = (span.range.start.max(place), span.range.end.min(place + part.len()));
            push(html, &part[at - place..from - place]);
            self.mark(html, &part[from - place..to - place], span);
            at = to;
        }
        push(html, &part[at - place..]);
    }

    /// Writes the replacement of a part, such as the character of an entity: it is marked as a whole, or not at all.
    pub(super) fn write_instead(&mut self, html: &mut String, shown: &str, of: Range<usize>) {
        match self.spans_within(of).first() {
            Some(span) => self.mark(html, shown, span),
            None => push(html, shown),
        }
    }

    fn spans_within(&self, part: Range<usize>) -> &'a [FactSpan] {
        let first = self.spans.partition_point(|span| span.range.end <= part.start);
        let last = self.spans.partition_point(|span| span.range.start < part.end);
        self.spans.get(first..last).unwrap_or_default()
    }

    fn mark(&mut self, html: &mut String, text: &str, span: &'a FactSpan) {
        let Some(&fact) = span.facts.first() else { return push(html, text) };
        let told: Vec<&str> = span.facts.iter().filter_map(|fact| self.words.get(*fact)).map(String::as_str).collect();
        // A fact that continues after a nested one or in the next element already has its number.
        let goes_on = |fact: &usize| {
            self.last.is_some_and(|last| {
                last.range == span.range || (last.range.end == span.range.start && last.facts.contains(fact))
            })
        };
        let mut begun: Vec<usize> = span.facts.iter().filter(|fact| !goes_on(fact)).map(|fact| fact + 1).collect();
        begun.sort_unstable();
        let number = match begun.iter().map(usize::to_string).collect::<Vec<_>>().join(",") {
            none if none.is_empty() => none,
            numbers => format!(" data-fact=\"{numbers}\""),
        };
        write!(html, "<mark class=\"{}\"{number} title=\"", colour(fact))
            .expect("invariant: a String takes everything");
        push(html, &told.join("; "));
        html.push_str("\">");
        push(html, text);
        html.push_str("</mark>");
        self.last = Some(span);
    }
}

/// Escapes a stranger's text and adds it to the HTML.
pub(super) fn push(html: &mut String, text: &str) {
    escape(html, &block(text));
}
#[cfg(test)]
mod tests {
    use canonry_retrieval::{FactSpan, TextFacts, marked, shared_facts};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::marked_text;

    const RIGHT_TO_LEFT: char = '\u{202e}';

    #[test]
    fn marks_are_right_in_a_hostile_text() {
        let text = "error: `<b>open_file</b>` failed\u{202e} & \"so\"";
        let spans = vec![
            FactSpan { range: 0..8, facts: vec![0] },
            FactSpan { range: 8..24, facts: vec![1, 0] },
            FactSpan { range: 24..32, facts: vec![0] },
        ];
        let words = vec!["both show `\"><script>`".to_owned(), "both name it".to_owned()];
        let html = marked_text(text, 0..text.len(), &spans, &words).to_string();
        assert_eq!(
            html,
            "<mark class=\"e0\" data-fact=\"1\" title=\"both show `&quot;&gt;&lt;script&gt;`\">error: `</mark>\
             <mark class=\"e1\" data-fact=\"2\" title=\"both name it; both show `&quot;&gt;&lt;script&gt;`\">&lt;b&gt;open_file&lt;/b&gt;</mark>\
             <mark class=\"e0\" title=\"both show `&quot;&gt;&lt;script&gt;`\">` failed</mark>\\u{202e} &amp; &quot;so&quot;"
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_an_element_of_its_own(one in "[ -~\n\u{202e}ü]{0,200}", other in "[ -~\n]{0,200}") {
            let facts = shared_facts(&TextFacts::of(&one), &TextFacts::of(&other));
            let words: Vec<String> = facts.iter().map(ToString::to_string).collect();
            let spans = marked(&one, &facts);
            let html = marked_text(&one, 0..one.len(), &spans, &words).to_string();
            let tags: Vec<&str> = html.split('<').skip(1).collect();
            prop_assert_eq!(tags.len(), 2 * spans.len());
            prop_assert!(tags.iter().all(|tag| tag.starts_with("mark class=\"e") || tag.starts_with("/mark>")));
            prop_assert!(!html.contains(RIGHT_TO_LEFT));
        }
    }
}
