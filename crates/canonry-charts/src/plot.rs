//! The position of a plot in a picture, its coordinates and its axes.

use std::fmt::Write as _;

use crate::chart_text;

/// The width of a picture in its own units; the page scales it.
pub const CHART_WIDTH: f64 = 560.0;

/// The number of characters of a label that fit under the end of an axis.
const SHORT: usize = 4;

/// The rectangle of a plot. Coordinates on both axes are from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Plot {
    /// A plot over the whole width, with room for axis labels, also on a phone, which shows them larger.
    pub const fn at(top: f64, height: f64) -> Self {
        Self { left: 70.0, top, width: CHART_WIDTH - 70.0 - 16.0, height }
    }

    /// The distance from the left; values outside 0 to 1 are drawn at the edge.
    pub fn x(&self, share: f64) -> f64 {
        self.left + share_within(share) * self.width
    }

    pub fn y(&self, share: f64) -> f64 {
        self.top + (1.0 - share_within(share)) * self.height
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Draws horizontal grid lines with their labels on the left.
    pub fn rows(&self, svg: &mut String, marks: &[(f64, String)]) {
        for (share, words) in marks {
            self.line_across(svg, "grid", *share);
            self.words(svg, self.left - 7.0, self.y(*share) + 4.0, "end", words);
        }
    }

    pub fn columns(&self, svg: &mut String, marks: &[(f64, String)]) {
        let bottom = self.bottom();
        self.line_across(svg, "axis", 0.0);
        for (share, words) in marks {
            let x = self.x(*share);
            push_markup(svg, format_args!(r#"<path class="axis" d="M{x:.1} {bottom:.1}v5"/>"#));
            // A long label at an end would leave the picture.
            let anchor = match share {
                _ if words.chars().count() <= SHORT => "middle",
                share if *share <= 0.0 => "start",
                share if *share >= 1.0 => "end",
                _ => "middle",
            };
            self.words(svg, x, bottom + 22.0, anchor, words);
        }
    }

    /// Draws the plot's heading above it.
    pub fn heading(&self, svg: &mut String, words: &str) {
        push_markup(
            svg,
            format_args!(
                r#"<text class="strong-text" x="{:.1}" y="{:.1}">{}</text>"#,
                self.left,
                self.top - 9.0,
                chart_text(words)
            ),
        );
    }

    pub fn words(&self, svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
        push_markup(
            svg,
            format_args!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#, chart_text(words)),
        );
    }

    /// Draws a horizontal line with its label at its right end: below it if `ends_at`, where another line ends, is not
    /// lower.
    pub fn level(&self, svg: &mut String, class: &str, share: f64, words: &str, ends_at: f64) {
        self.line_across(svg, class, share);
        let distance = if ends_at >= share { 16.0 } else { -6.0 };
        self.words(svg, self.left + self.width - 4.0, self.y(share) + distance, "end", words);
    }

    pub fn line_across(&self, svg: &mut String, class: &str, share: f64) {
        let (left, y, right) = (self.left, self.y(share), self.left + self.width);
        push_markup(svg, format_args!(r#"<path class="{class}" d="M{left:.1} {y:.1}H{right:.1}"/>"#));
    }
}

/// Clamps a number to 0 to 1; NaN becomes 0.
pub fn share_within(share: f64) -> f64 {
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

/// Opens an SVG picture with `words` as its alternative text.
pub fn open_chart(height: f64, words: &str) -> String {
    format!(r#"<svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" aria-label="{}">"#, chart_text(words))
}

/// Appends markup. Every text in it must have gone through [`chart_text`].
pub fn push_markup(svg: &mut String, markup: std::fmt::Arguments<'_>) {
    svg.write_fmt(markup).expect("invariant: a String takes everything");
}

/// `0 %`, `50 %` and `100 %`, for the vertical axis of a plot of shares.
pub fn percent_marks() -> Vec<(f64, String)> {
    [0.0, 0.5, 1.0].map(|share| (share, format!("{:.0} %", share * 100.0))).to_vec()
}
