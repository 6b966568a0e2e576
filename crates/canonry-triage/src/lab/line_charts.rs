//! Line charts as SVG, readable without colour and by screen readers.

use std::fmt::Write as _;

use crate::lab::backtest_report::escaped;

/// A chart whose y axis is a share from 0 to 1.
pub(crate) struct Chart<'a> {
    /// Tells its parts' ids from those of other charts on the page.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// What can be seen in it, for those who cannot.
    pub(crate) description: String,
    pub(crate) x_label: &'a str,
    /// Where the x axis is marked, as places from 0 to 1.
    pub(crate) x_marks: Vec<(f64, String)>,
    pub(crate) series: Vec<Series<'a>>,
}

/// Points that belong together.
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    pub(crate) style: Style,
    pub(crate) points: Vec<Point>,
}

/// How a series is drawn. No two differ by colour alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Solid,
    Dashed,
    /// Large hollow circles on a thin dotted line: what should be.
    Promise,
}

/// A point, and the interval that its share lies in.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    /// The place on the x axis, 0 to 1.
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 48.0;

impl Chart<'_> {
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("invariant: a String takes everything");
        svg
    }

    fn draw(&self, svg: &mut String) -> std::fmt::Result {
        let id = self.id;
        writeln!(
            svg,
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{id}-title {id}-desc">
<title id="{id}-title">{}</title><desc id="{id}-desc">{}</desc>"#,
            escaped(self.title),
            escaped(&self.description)
        )?;
        for fifth in 0..=5 {
            let share = f64::from(fifth) / 5.0;
            writeln!(
                svg,
                r#"<line class="grid" x1="{LEFT}" x2="{}" y1="{y:.1}" y2="{y:.1}"/><text x="{}" y="{:.1}" text-anchor="end">{:.0} %</text>"#,
                WIDTH - RIGHT,
                LEFT - 8.0,
                down(share) + 4.0,
                share * 100.0,
                y = down(share),
            )?;
        }
        for (place, label) in &self.x_marks {
            let bottom = HEIGHT - BOTTOM;
            writeln!(
                svg,
                r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="{bottom}" y2="{}"/><text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"#,
                bottom + 5.0,
                bottom + 19.0,
                escaped(label),
                x = across(*place),
            )?;
        }
        writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 8.0,
            escaped(self.x_label)
        )?;
        for (place, series) in self.series.iter().enumerate() {
            series.draw(svg, place)?;
        }
        svg.push_str("</svg>\n");
        Ok(())
    }
}

impl Series<'_> {
    fn draw(&self, svg: &mut String, place: usize) -> std::fmt::Result {
        let class = match self.style {
            Style::Solid => "solid",
            Style::Dashed => "dashed",
            Style::Promise => "promise",
        };
        writeln!(svg, r#"<g class="{class}">"#)?;
        for point in &self.points {
            if let Some((low, high)) = point.interval {
                let x = across(point.x);
                writeln!(
                    svg,
                    r#"<line class="interval" x1="{x:.1}" x2="{x:.1}" y1="{:.1}" y2="{:.1}"/>"#,
                    down(low),
                    down(high)
                )?;
            }
        }
        let line: Vec<String> =
            self.points.iter().map(|point| format!("{:.1},{:.1}", across(point.x), down(point.y))).collect();
        writeln!(svg, r#"<polyline points="{}"/>"#, line.join(" "))?;
        for point in &self.points {
            self.mark(svg, across(point.x), down(point.y))?;
        }
        // The legend stands above the chart, where no line runs through it.
        let left = LEFT + 8.0 + place as f64 * 190.0;
        writeln!(svg, r#"<polyline points="{left:.1},16 {:.1},16"/>"#, left + 28.0)?;
        self.mark(svg, left + 14.0, 16.0)?;
        writeln!(svg, r#"<text x="{:.1}" y="20">{}</text></g>"#, left + 36.0, escaped(self.name))
    }

    fn mark(&self, svg: &mut String, x: f64, y: f64) -> std::fmt::Result {
        match self.style {
            Style::Solid => writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#),
            Style::Dashed => writeln!(svg, r#"<rect x="{:.1}" y="{:.1}" width="6" height="6"/>"#, x - 3.0, y - 3.0),
            Style::Promise => writeln!(svg, r#"<circle class="hollow" cx="{x:.1}" cy="{y:.1}" r="6"/>"#),
        }
    }
}

fn across(place: f64) -> f64 {
    LEFT + place.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

fn down(share: f64) -> f64 {
    HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
}

#[cfg(test)]
mod tests {
    use super::{Chart, Point, Series, Style};

    #[test]
    fn a_chart_says_what_it_shows_and_keeps_within_its_frame() {
        let chart = Chart {
            id: "c",
            title: "A <b> title",
            description: "Rises & falls".to_owned(),
            x_label: "x",
            x_marks: vec![(0.0, "1".to_owned()), (1.0, "2".to_owned())],
            series: vec![Series {
                name: "share",
                style: Style::Solid,
                points: vec![
                    Point { x: 0.0, y: 0.0, interval: None },
                    Point { x: 1.0, y: 1.0, interval: Some((0.5, 7.0)) },
                ],
            }],
        };
        let svg = chart.svg();
        assert!(
            svg.contains(r#"<title id="c-title">A &lt;b&gt; title</title><desc id="c-desc">Rises &amp; falls</desc>"#)
        );
        assert!(svg.contains(r#"<polyline points="52.0,272.0 620.0,38.0"/>"#), "{svg}");
        assert!(svg.contains(r#"y1="155.0" y2="38.0""#), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
