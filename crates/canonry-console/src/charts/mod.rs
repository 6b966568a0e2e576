//! Pictures as SVG, made on the server: numbers and escaped words, classes for colours, no styles of their own.

pub(crate) mod axes;
pub(crate) mod bars;
pub(crate) mod days;
pub(crate) mod edge_graph;
pub(crate) mod lifeline;
pub(crate) mod reliability;
pub(crate) mod step_line;
pub(crate) mod sweep;
pub(crate) mod treemap;

use std::fmt;

use askama::filters::HtmlSafe;

/// A picture, ready for a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Svg(String);

impl Svg {
    /// From finished markup; every text in it went through [`text`].
    pub(crate) const fn new(markup: String) -> Self {
        Self(markup)
    }

    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl HtmlSafe for Svg {}

/// A stranger's text inside of a picture or one of its attributes.
pub(crate) fn text(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len());
    escape(&mut safe, &canonry_domain::printable::one_line(raw));
    safe
}

/// Adds a text to HTML that no template escapes, for elements and for attributes in quotes.
pub(crate) fn escape(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
}
