//! A complete line chart, readable without colour and by screen readers.

use crate::plot::{Plot, push_markup};
use crate::{chart_text, escaped};

/// Coordinates on both axes are from 0 to 1.
pub struct LineChart<'a> {
    /// Keeps the ids of the chart's elements different from those of other charts on the page.
    pub id: &'a str,
    pub title: String,
    /// The alternative text for screen readers.
    pub description: String,
    pub x_label: &'a str,
    pub x_marks: Vec<(f64, String)>,
    pub y_marks: Vec<(f64, String)>,
    /// A reference level, drawn as a dotted line; the title names it.
    pub reference: Option<f64>,
    pub series: Vec<LineSeries<'a>>,
}

pub struct LineSeries<'a> {
    pub name: &'a str,
    /// The CSS class, which sets colour and dashes.
    pub class: &'a str,
    pub mark: SeriesMark,
    pub points: Vec<LinePoint>,
    /// Thin lines in the background, such as the single cases behind an average.
    pub background: Vec<Vec<LinePoint>>,
}

impl<'a> LineSeries<'a> {
    pub fn new(name: &'a str, class: &'a str, mark: SeriesMark, points: Vec<LinePoint>) -> Self {
        Self { name, class, mark, points, background: Vec::new() }
    }
}

/// The shape of a series' points: no two series of a chart differ by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesMark {
    Circle,
    Square,
    Triangle,
    /// Large and hollow, for the expected values.
    Ring,
}

#[derive(Debug, Clone, Copy)]
pub struct LinePoint {
    pub x: f64,
    /// `None` interrupts the line.
    pub y: Option<f64>,
    pub interval: Option<(f64, f64)>,
}

impl LinePoint {
    pub fn new(x: f64, y: impl Into<Option<f64>>) -> Self {
        Self { x, y: y.into(), interval: None }
    }

    fn place(&self, plot: &Plot) -> Option<(f64, f64)> {
        self.y.map(|y| (plot.x(self.x), plot.y(y)))
    }
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const PLOT: Plot = Plot { left: 56.0, top: 42.0, width: WIDTH - 56.0 - 20.0, height: HEIGHT - 42.0 - 48.0 };

impl LineChart<'_> {
    pub fn svg(&self) -> String {
        let id = self.id;
        let mut svg = format!(
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{id}-title {id}-desc">
<title id="{id}-title">{}</title><desc id="{id}-desc">{}</desc>"#,
            escaped(&self.title),
            escaped(&self.description)
        );
        PLOT.rows(&mut svg, &self.y_marks);
        PLOT.columns(&mut svg, &self.x_marks);
        PLOT.words(&mut svg, PLOT.left + PLOT.width / 2.0, HEIGHT - 8.0, "middle", self.x_label);
        if let Some(reference) = self.reference {
            PLOT.line_across(&mut svg, "reference", reference);
        }
        for (index, series) in self.series.iter().enumerate() {
            series.draw(&mut svg, index);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl LineSeries<'_> {
    fn draw(&self, svg: &mut String, index: usize) {
        push_markup(svg, format_args!(r#"<g class="{}">"#, self.class));
        for line in &self.background {
            draw_line(svg, line, r#" class="each""#);
        }
        for point in &self.points {
            if let Some((low, high)) = point.interval {
                let (x, low, high) = (PLOT.x(point.x), PLOT.y(low), PLOT.y(high));
                push_markup(svg, format_args!(r#"<path class="interval" d="M{x:.1} {low:.1}V{high:.1}"/>"#));
            }
        }
        draw_line(svg, &self.points, "");
        for (x, y) in self.points.iter().filter_map(|point| point.place(&PLOT)) {
            self.mark.draw(svg, x, y);
        }
        // The legend is above the chart, where no line crosses it.
        let left = PLOT.left + 8.0 + index as f64 * 190.0;
        push_markup(svg, format_args!(r#"<polyline points="{left:.1},16 {:.1},16"/>"#, left + 28.0));
        self.mark.draw(svg, left + 14.0, 16.0);
        push_markup(svg, format_args!(r#"<text x="{:.1}" y="20">{}</text></g>"#, left + 36.0, chart_text(self.name)));
    }
}

impl SeriesMark {
    fn draw(self, svg: &mut String, x: f64, y: f64) {
        match self {
            Self::Circle => push_markup(svg, format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#)),
            Self::Ring => push_markup(svg, format_args!(r#"<circle class="hollow" cx="{x:.1}" cy="{y:.1}" r="6"/>"#)),
            Self::Square => {
                let (left, top) = (x - 3.0, y - 3.0);
                push_markup(svg, format_args!(r#"<rect x="{left:.1}" y="{top:.1}" width="6" height="6"/>"#));
            }
            Self::Triangle => {
                let (top, low, left, right) = (y - 4.0, y + 3.0, x - 4.0, x + 4.0);
                let path = format_args!(
                    r#"<path class="mark" d="M{x:.1} {top:.1} L{right:.1} {low:.1} L{left:.1} {low:.1} Z"/>"#
                );
                push_markup(svg, path);
            }
        }
    }
}

fn draw_line(svg: &mut String, line: &[LinePoint], attributes: &str) {
    for stretch in line.split(|point| point.y.is_none()) {
        let places = stretch.iter().filter_map(|point| point.place(&PLOT));
        let places: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        if places.len() > 1 {
            push_markup(svg, format_args!(r#"<polyline{attributes} points="{}"/>"#, places.join(" ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LineChart, LinePoint, LineSeries, SeriesMark};

    #[test]
    fn a_chart_says_what_it_shows_keeps_within_its_frame_and_interrupts_lines_at_gaps() {
        let places = [(0.0, Some(0.0)), (0.25, Some(1.0)), (0.5, None), (0.75, Some(1.0)), (1.0, Some(2.0))];
        let points = places.map(|(x, y)| LinePoint { interval: y.map(|_| (0.5, 7.0)), ..LinePoint::new(x, y) });
        let series = |mark| LineSeries {
            name: "share",
            class: "solid",
            mark,
            points: points.to_vec(),
            background: vec![points.to_vec()],
        };
        let chart = LineChart {
            id: "c",
            title: "A <b> title".to_owned(),
            description: "Rises & falls".to_owned(),
            x_label: "x",
            x_marks: vec![(0.0, "1".to_owned())],
            y_marks: vec![(1.0, "silent".to_owned())],
            reference: Some(0.5),
            series: [SeriesMark::Circle, SeriesMark::Square, SeriesMark::Triangle].map(series).into(),
        };
        let svg = chart.svg();
        for part in [
            r#"<title id="c-title">A &lt;b&gt; title</title><desc id="c-desc">Rises &amp; falls</desc>"#,
            r#"<polyline class="each" points="56.0,272.0 197.0,42.0"/>"#,
            r#"<polyline points="479.0,42.0 620.0,42.0"/>"#,
            r#"<path class="interval" d="M56.0 157.0V42.0"/>"#,
            r#"<path class="reference" d="M56.0 157.0H620.0"/>"#,
        ] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        for mark in ["<circle", "<rect", r#"<path class="mark""#] {
            assert_eq!(svg.matches(mark).count(), 5, "four places and the legend: {mark}");
        }
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
