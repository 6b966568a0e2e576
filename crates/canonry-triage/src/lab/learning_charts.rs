//! Charts of what became of many repositories under each rule, as SVG: thin lines for each, thick ones for all.

use std::fmt::Write as _;

use canonry_domain::ThresholdRule;

use crate::lab::backtest_report::escaped;

/// A chart; places on both axes are from 0 to 1.
pub(crate) struct RuleChart<'a> {
    /// Tells its parts' ids from those of other charts on the page.
    pub(crate) id: &'a str,
    pub(crate) title: String,
    /// What can be seen in it, for those who cannot.
    pub(crate) description: String,
    pub(crate) x_label: &'a str,
    pub(crate) x_marks: Vec<(f64, String)>,
    pub(crate) y_marks: Vec<(f64, String)>,
    /// A level that everything is compared with, drawn as a dotted line; the title names it.
    pub(crate) reference: f64,
    pub(crate) lines: Vec<RuleLines>,
}

/// The lines of one rule. A place that is `None` interrupts a line.
pub(crate) struct RuleLines {
    pub(crate) rule: ThresholdRule,
    pub(crate) each: Vec<Vec<(f64, Option<f64>)>>,
    pub(crate) all: Vec<(f64, Option<f64>)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 42.0;
const BOTTOM: f64 = 48.0;

impl RuleChart<'_> {
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
            escaped(&self.title),
            escaped(&self.description)
        )?;
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (place, label) in &self.y_marks {
            let y = down(*place);
            writeln!(
                svg,
                r#"<line class="grid" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
                left - 8.0,
                y + 4.0,
                escaped(label),
            )?;
        }
        for (place, label) in &self.x_marks {
            let x = across(*place);
            writeln!(
                svg,
                r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="{bottom}" y2="{}"/><text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"#,
                bottom + 5.0,
                bottom + 19.0,
                escaped(label),
            )?;
        }
        writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            (left + right) / 2.0,
            HEIGHT - 8.0,
            escaped(self.x_label)
        )?;
        let y = down(self.reference);
        writeln!(svg, r#"<line class="reference" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#)?;
        for lines in &self.lines {
            lines.draw(svg)?;
        }
        svg.push_str("</svg>\n");
        Ok(())
    }
}

impl RuleLines {
    fn draw(&self, svg: &mut String) -> std::fmt::Result {
        let (class, place) = match self.rule {
            ThresholdRule::PrecisionTarget => ("rule-target", 0.0),
            ThresholdRule::BetaMean => ("rule-mean", 1.0),
            ThresholdRule::BetaComplement => ("rule-complement", 2.0),
        };
        writeln!(svg, r#"<g class="{class}">"#)?;
        for line in &self.each {
            draw_line(svg, line, " class=\"each\"")?;
        }
        draw_line(svg, &self.all, "")?;
        for (x, y) in &self.all {
            if let Some(y) = y {
                self.mark(svg, across(*x), down(*y))?;
            }
        }
        // The legend stands above the chart, where no line runs through it.
        let left = LEFT + 8.0 + place * 190.0;
        writeln!(svg, r#"<polyline points="{left:.1},16 {:.1},16"/>"#, left + 28.0)?;
        self.mark(svg, left + 14.0, 16.0)?;
        writeln!(svg, r#"<text x="{:.1}" y="20">{}</text></g>"#, left + 36.0, self.rule)
    }

    /// No two rules differ by colour alone.
    fn mark(&self, svg: &mut String, x: f64, y: f64) -> std::fmt::Result {
        match self.rule {
            ThresholdRule::PrecisionTarget => writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#),
            ThresholdRule::BetaMean => {
                writeln!(svg, r#"<rect x="{:.1}" y="{:.1}" width="6" height="6"/>"#, x - 3.0, y - 3.0)
            }
            ThresholdRule::BetaComplement => writeln!(
                svg,
                r#"<path d="M{x:.1} {:.1} L{:.1} {low:.1} L{:.1} {low:.1} Z"/>"#,
                y - 4.0,
                x + 4.0,
                x - 4.0,
                low = y + 3.0
            ),
        }
    }
}

fn draw_line(svg: &mut String, line: &[(f64, Option<f64>)], attributes: &str) -> std::fmt::Result {
    for stretch in line.split(|(_, y)| y.is_none()) {
        let place = |(x, y): &(f64, Option<f64>)| y.map(|y| format!("{:.1},{:.1}", across(*x), down(y)));
        let places: Vec<String> = stretch.iter().filter_map(place).collect();
        if places.len() > 1 {
            writeln!(svg, r#"<polyline{attributes} points="{}"/>"#, places.join(" "))?;
        }
    }
    Ok(())
}

fn across(place: f64) -> f64 {
    LEFT + place.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

fn down(place: f64) -> f64 {
    HEIGHT - BOTTOM - place.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
}

#[cfg(test)]
mod tests {
    use canonry_domain::ThresholdRule;

    use super::{RuleChart, RuleLines};

    #[test]
    fn a_gap_interrupts_a_line_and_every_rule_has_its_own_mark() {
        let all = vec![(0.0, Some(0.0)), (0.25, Some(1.0)), (0.5, None), (0.75, Some(1.0)), (1.0, Some(2.0))];
        let lines = |rule: &ThresholdRule| RuleLines { rule: *rule, each: vec![all.clone()], all: all.clone() };
        let chart = RuleChart {
            id: "c",
            title: "A <b> title".to_owned(),
            description: "Rises & falls".to_owned(),
            x_label: "x",
            x_marks: vec![(0.0, "1".to_owned())],
            y_marks: vec![(1.0, "silent".to_owned())],
            reference: 0.5,
            lines: ThresholdRule::ALL.iter().map(lines).collect(),
        };
        let svg = chart.svg();
        assert!(
            svg.contains(r#"<title id="c-title">A &lt;b&gt; title</title><desc id="c-desc">Rises &amp; falls</desc>"#)
        );
        assert!(svg.contains(r#"<polyline class="each" points="56.0,272.0 197.0,42.0"/>"#), "{svg}");
        assert!(svg.contains(r#"<polyline points="479.0,42.0 620.0,42.0"/>"#), "{svg}");
        for mark in ["<circle", "<rect", "<path"] {
            // Four places and the legend.
            assert_eq!(svg.matches(mark).count(), 5, "{mark}");
        }
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
