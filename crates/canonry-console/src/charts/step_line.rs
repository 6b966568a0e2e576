//! The threshold over time, and below it the share of right predictions with its confidence interval.

use canonry_charts::{Plot, open_chart, percent_marks, push_markup, share_within};
use jiff::{SignedDuration, Timestamp};

use crate::charts::{Svg, nothing_to_draw};
use crate::layout::formatting::{interval, percent};

#[derive(Debug, Clone, Copy)]
pub(crate) struct StepPoint {
    pub(crate) at: Timestamp,
    /// The threshold in percent; `None` if no comments are posted.
    pub(crate) threshold: Option<u8>,
    pub(crate) share: f64,
    /// The lower end of its confidence interval.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

pub(crate) struct StepLine<'a> {
    pub(crate) from: Timestamp,
    pub(crate) points: &'a [StepPoint],
    pub(crate) configured: u8,
    /// The share that should be right; `None` if the rule sets none.
    pub(crate) wanted: Option<f64>,
    /// When the threshold changed by more than 5 percentage points.
    pub(crate) moves: &'a [Timestamp],
}

const HEIGHT: f64 = 396.0;
/// Percent at the lower edge, at the upper edge, and of the line "none": above every threshold.
const LOWEST: f64 = 46.0;
const HIGHEST: f64 = 106.0;
const SILENT: f64 = 102.0;

/// The chart, or a sentence if there is nothing to draw.
pub(crate) fn step_line(line: &StepLine<'_>) -> Svg {
    let (Some(first), Some(last)) = (line.points.first(), line.points.last()) else {
        return nothing_to_draw(
            "No outcome yet. The chart begins when people close the first issue that Canonry compared.",
        );
    };
    let span = TimeSpan { from: line.from.min(first.at), until: last.at };
    let now = last.threshold.map_or_else(|| "none".to_owned(), |threshold| format!("{threshold} %"));
    let mut svg = open_chart(
        HEIGHT,
        &format!(
            "Threshold over time: {now} now, {} % configured. {} of predictions were right (95 % CI {}).",
            line.configured,
            percent(share_within(last.share)),
            interval(share_within(last.low), share_within(last.high))
        ),
    );
    let above = Plot::at(30.0, 140.0);
    above.heading(&mut svg, "Threshold");
    let mut marks: Vec<(f64, String)> =
        [50.0, 70.0, 90.0].map(|percent| (height(percent), format!("{percent:.0} %"))).to_vec();
    marks.push((height(SILENT), "none".to_owned()));
    above.rows(&mut svg, &marks);
    above.columns(&mut svg, &[]);
    let drawn = |point: &StepPoint| height(point.threshold.map_or(SILENT, f64::from));
    above.level(&mut svg, "line-soft", height(f64::from(line.configured)), "configured", drawn(last));
    push_markup(&mut svg, format_args!(r#"<path class="line" d="{}"/>"#, steps(&above, &span, line.points, drawn)));
    for at in line.moves.iter().filter(|at| (span.from..=span.until).contains(at)) {
        let held = line.points.iter().find(|point| point.at >= *at).unwrap_or(last);
        let (x, y) = (above.x(span.share(*at)), above.y(drawn(held)));
        push_markup(&mut svg, format_args!(r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="5"/>"#));
    }
    let below = Plot::at(234.0, 130.0);
    below.heading(&mut svg, "Share right at the threshold and above");
    below.rows(&mut svg, &percent_marks());
    below.columns(&mut svg, &span.marks());
    push_markup(&mut svg, format_args!(r#"<path class="band" d="{}"/>"#, band(&below, &span, line.points)));
    if let Some(wanted) = line.wanted {
        below.level(&mut svg, "line-wanted", wanted, "target", last.share);
    }
    push_markup(
        &mut svg,
        format_args!(
            r#"<path class="line" d="{}"/>"#,
            steps(&below, &span, line.points, |point: &StepPoint| point.share)
        ),
    );
    svg.push_str("</svg>");
    Svg::new(svg)
}

fn height(percent: f64) -> f64 {
    (percent - LOWEST) / (HIGHEST - LOWEST)
}

/// A line of steps: the value at a moment was valid since the moment before it.
fn steps(plot: &Plot, span: &TimeSpan, points: &[StepPoint], drawn: impl Fn(&StepPoint) -> f64) -> String {
    let mut path = String::new();
    for (index, point) in points.iter().enumerate() {
        let y = plot.y(drawn(point));
        if index == 0 {
            push_markup(&mut path, format_args!("M{:.1} {y:.1}", plot.x(0.0)));
        } else {
            push_markup(&mut path, format_args!("V{y:.1}"));
        }
        push_markup(&mut path, format_args!("H{:.1}", plot.x(span.share(point.at))));
    }
    path
}

/// The area between both ends, forward along the upper and back along the lower.
fn band(plot: &Plot, span: &TimeSpan, points: &[StepPoint]) -> String {
    let mut path = steps(plot, span, points, |point| point.high);
    for (index, point) in points.iter().enumerate().rev() {
        let begins = index.checked_sub(1).map_or(0.0, |before| span.share(points[before].at));
        push_markup(&mut path, format_args!("V{:.1}H{:.1}", plot.y(point.low), plot.x(begins)));
    }
    path.push('Z');
    path
}

struct TimeSpan {
    from: Timestamp,
    until: Timestamp,
}

impl TimeSpan {
    fn share(&self, at: Timestamp) -> f64 {
        let whole = self.from.duration_until(self.until).as_secs_f64();
        if whole <= 0.0 { 1.0 } else { self.from.duration_until(at).as_secs_f64() / whole }
    }

    /// Marks at the beginning, at the end and between, in units that fit the length of the span.
    fn marks(&self) -> Vec<(f64, String)> {
        let whole = self.from.duration_until(self.until);
        let format = if whole <= SignedDuration::from_hours(48) {
            "%b %-d, %H:%M"
        } else if whole <= SignedDuration::from_hours(24 * 400) {
            "%b %-d"
        } else {
            "%b %Y"
        };
        [0, 1, 2]
            .map(|half| {
                let at = self.from + whole * half / 2;
                (f64::from(half) / 2.0, at.strftime(format).to_string())
            })
            .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::{HEIGHT, StepLine, StepPoint, step_line};
    use crate::charts::checks::assert_drawn;

    fn hour(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn line(points: &[StepPoint]) -> String {
        let line =
            StepLine { from: hour(0), points, configured: 85, wanted: Some(0.8), moves: &[hour(2), hour(9_999_999)] };
        step_line(&line).as_str().to_owned()
    }

    #[test]
    fn a_line_of_steps_with_its_band() {
        let point = |hours, threshold| StepPoint { at: hour(hours), threshold, share: 0.8, low: 0.6, high: 0.9 };
        let svg = line(&[point(1, Some(85)), point(2, Some(90)), point(3, None)]);
        assert_drawn(&svg, HEIGHT);
        assert!(svg.contains("none now, 85 % configured.") && svg.contains(">none</text>"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 1, "the move that is in the picture");
        assert_eq!(svg.matches(r#"class="band""#).count(), 1);
    }

    #[test]
    fn an_empty_chart_says_when_it_begins() {
        let svg = line(&[]);
        assert!(svg.starts_with(r#"<p class="empty">"#) && svg.contains("No outcome yet"), "{svg}");
    }

    proptest! {
        #[test]
        fn whatever_comes_stays_inside(points in vec((0_i64..90_000, any::<Option<u8>>(), -1.0..2.0_f64), 1..60)) {
            let mut points: Vec<StepPoint> = points
                .into_iter()
                .map(|(hours, threshold, share)| StepPoint { at: hour(hours), threshold, share, low: f64::NAN, high: share + 1.0 })
                .collect();
            points.sort_by_key(|point| point.at);
            assert_drawn(&line(&points), HEIGHT);
        }
    }
}
