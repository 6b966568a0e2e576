#![doc = include_str!("../README.md")]

mod line_chart;
mod plot;
mod trend_line;

pub use line_chart::{LineChart, LinePoint, LineSeries, SeriesMark};
pub use plot::{CHART_WIDTH, Plot, open_chart, percent_marks, push_markup, share_within};
pub use trend_line::trend_line;

/// Formats untrusted text on one line and escapes it for SVG content and attributes.
pub fn chart_text(raw: &str) -> String {
    escaped(&canonry_domain::printable::one_line(raw))
}

/// Escapes text for HTML content and quoted attributes.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    escape(&mut html, text);
    html
}

/// Appends escaped text to HTML that no template escapes.
pub fn escape(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            // HTML cannot contain control characters, not even escaped.
            other if other.is_control() && !other.is_whitespace() => html.push('\u{fffd}'),
            other => html.push(other),
        }
    }
}
