//! A plot's place in a picture: where shares of its width and height are, and its axes.

use std::fmt::Write as _;

use crate::charts::text;

/// The width of a picture in its own units; the page scales it.
pub(crate) const WIDTH: f64 = 560.0;

/// A rectangle that something is plotted in. Places on both axes are from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plot {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Plot {
    /// A plot over the whole width, with room for the words of its axes, and of its level lines at the right.
    pub(crate) const fn at(top: f64, height: f64) -> Self {
        Self { left: 52.0, top, width: WIDTH - 52.0 - 68.0, height }
    }

    /// From the left; what lies outside is drawn at the edge.
    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + inside(share) * self.width
    }

    pub(crate) fn y(&self, share: f64) -> f64 {
        self.top + (1.0 - inside(share)) * self.height
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Lines across with their words on the left.
    pub(crate) fn rows(&self, svg: &mut String, marks: &[(f64, String)]) {
        for (share, words) in marks {
            let (y, right) = (self.y(*share), self.left + self.width);
            put(svg, format_args!(r#"<path class="grid" d="M{:.1} {y:.1}H{right:.1}"/>"#, self.left));
            self.words(svg, self.left - 7.0, y + 4.0, "end", words);
        }
    }

    pub(crate) fn columns(&self, svg: &mut String, marks: &[(f64, String)]) {
        let (right, bottom) = (self.left + self.width, self.bottom());
        put(svg, format_args!(r#"<path class="axis" d="M{:.1} {bottom:.1}H{right:.1}"/>"#, self.left));
        for (share, words) in marks {
            let x = self.x(*share);
            put(svg, format_args!(r#"<path class="axis" d="M{x:.1} {bottom:.1}v5"/>"#));
            self.words(svg, x, bottom + 18.0, "middle", words);
        }
    }

    /// What the plot is about, above it.
    pub(crate) fn heading(&self, svg: &mut String, words: &str) {
        put(
            svg,
            format_args!(
                r#"<text class="strong-text" x="{:.1}" y="{:.1}">{}</text>"#,
                self.left,
                self.top - 9.0,
                text(words)
            ),
        );
    }

    /// Words at a place of the picture.
    pub(crate) fn words(&self, svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
        put(svg, format_args!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#, text(words)));
    }

    /// A level line across with its words behind it.
    pub(crate) fn level(&self, svg: &mut String, class: &str, share: f64, words: &str) {
        let (y, right) = (self.y(share), self.left + self.width);
        put(svg, format_args!(r#"<path class="{class}" d="M{:.1} {y:.1}H{right:.1}"/>"#, self.left));
        self.words(svg, right + 5.0, y + 4.0, "start", words);
    }
}

/// A number between 0 and 1; what is none counts as 0.
pub(crate) fn inside(share: f64) -> f64 {
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

/// Opens a picture that is told by `words` to those who do not see it.
pub(crate) fn open(height: f64, words: &str) -> String {
    format!(r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{}">"#, text(words))
}

/// Adds markup of which every text went through [`text`].
pub(crate) fn put(svg: &mut String, markup: std::fmt::Arguments<'_>) {
    svg.write_fmt(markup).expect("invariant: a String takes everything");
}

/// The words that stand where a picture would, as there is nothing to draw.
pub(crate) fn nothing(words: &str) -> crate::charts::Svg {
    crate::charts::Svg::new(format!(r#"<p class="empty">{}</p>"#, text(words)))
}

/// `0 %` to `100 %`, for the side of a plot of shares.
pub(crate) fn percent_marks() -> Vec<(f64, String)> {
    [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| (share, format!("{:.0} %", share * 100.0))).to_vec()
}

/// Checks of what every picture must be.
#[cfg(test)]
pub(crate) mod checks {
    use super::WIDTH;

    /// Every coordinate is a number inside of the picture, and every element is closed.
    pub(crate) fn assert_drawn(svg: &str, height: f64) {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("style="), "{svg}");
        for (name, most) in [("x", WIDTH), ("cx", WIDTH), ("y", height), ("cy", height)] {
            for value in values(svg, name) {
                assert!((0.0..=most).contains(&value), "{name} = {value} in {svg}");
            }
        }
        for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()) {
            for command in path
                .split_inclusive(['M', 'L', 'H', 'V', 'Z', 'v', 'h'])
                .map(|part| part.trim_end_matches(char::is_alphabetic))
            {
                let numbers: Vec<f64> = command.split([' ', ',']).filter_map(|number| number.parse().ok()).collect();
                for number in numbers {
                    assert!((-WIDTH..=WIDTH).contains(&number), "{number} in {path}");
                }
            }
        }
    }

    fn values(svg: &str, name: &str) -> Vec<f64> {
        svg.split(&format!(" {name}=\""))
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or_default().parse().expect("a number"))
            .collect()
    }
}
