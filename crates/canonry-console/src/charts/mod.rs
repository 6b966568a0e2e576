//! SVG charts, made on the server: numbers and escaped text, classes for colours, no inline styles.

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
use canonry_charts::chart_text;

#[derive(Debug, Clone, Default)]
pub(crate) struct Svg(String);

impl Svg {
    /// From finished markup; every text in it must have gone through [`chart_text`].
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

/// A sentence in place of a chart without data.
pub(crate) fn nothing_to_draw(words: &str) -> Svg {
    Svg::new(format!(r#"<p class="empty">{}</p>"#, chart_text(words)))
}

#[cfg(test)]
pub(crate) mod checks {
    use canonry_charts::CHART_WIDTH as WIDTH;

    /// Asserts that every coordinate is a number inside the picture and every element is closed.
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
