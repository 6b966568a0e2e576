//! How often predictions were right, by score.

use canonry_charts::{Plot, open_chart, percent_marks, push_markup};
use canonry_domain::LevelShare;

use crate::charts::{Svg, nothing_to_draw};

pub(crate) struct ReliabilityPlot<'a> {
    /// Score levels, lowest first.
    pub(crate) levels: &'a [LevelShare],
    pub(crate) configured: u8,
    /// The current threshold; `None` if no comments are posted.
    pub(crate) current: Option<u8>,
    /// The share that should be right; `None` if the rule sets none.
    pub(crate) wanted: Option<f64>,
}

const HEIGHT: f64 = 330.0;

/// The chart, or a sentence if there is nothing to draw.
pub(crate) fn reliability_plot(plot: &ReliabilityPlot<'_>) -> Svg {
    let (Some(first), Some(_)) = (plot.levels.first(), plot.levels.last()) else {
        return nothing_to_draw("No prediction has an outcome yet. Each one appears here at its score.");
    };
    let lowest = f64::from(first.from.min(50));
    let across = |points: f64| (points - lowest) / (100.0 - lowest);
    let all: u64 = plot.levels.iter().map(|level| level.share.all()).sum();
    let mut svg = open_chart(
        HEIGHT,
        &format!(
            "How often predictions were right, by their score, in {} levels with {all} predictions.",
            plot.levels.len()
        ),
    );
    let area = Plot::at(30.0, 216.0);
    area.heading(&mut svg, "Share right");
    area.rows(&mut svg, &percent_marks());
    let tens = (lowest as u8 / 10..=10).map(|ten| f64::from(ten) * 10.0).filter(|points| *points >= lowest);
    area.columns(&mut svg, &tens.map(|points| (across(points), format!("{points:.0} %"))).collect::<Vec<_>>());
    area.words(&mut svg, area.left + area.width / 2.0, HEIGHT - 6.0, "middle", "score (n: predictions)");
    push_markup(
        &mut svg,
        format_args!(
            r#"<path class="diagonal" d="M{:.1} {:.1}L{:.1} {:.1}"/>"#,
            area.x(0.0),
            area.y(lowest / 100.0),
            area.x(1.0),
            area.y(1.0)
        ),
    );
    if let Some(wanted) = plot.wanted {
        area.level(&mut svg, "line-wanted", wanted, "target", 0.0);
    }
    let configured = area.x(across(f64::from(plot.configured)));
    push_markup(
        &mut svg,
        format_args!(r#"<path class="line-soft" d="M{configured:.1} {:.1}V{:.1}"/>"#, area.top, area.bottom()),
    );
    if let Some(current) = plot.current.filter(|current| *current != plot.configured) {
        let x = area.x(across(f64::from(current)));
        push_markup(
            &mut svg,
            format_args!(r#"<path class="line-now" d="M{x:.1} {:.1}V{:.1}"/>"#, area.top, area.bottom()),
        );
    }
    for level in plot.levels {
        let Some(value) = level.share.value() else { continue };
        let interval = level.share.interval();
        let x = area.x(across(f64::midpoint(f64::from(level.from), f64::from(level.to) + 1.0)));
        push_markup(
            &mut svg,
            format_args!(
                r#"<path class="whisker" d="M{x:.1} {:.1}V{:.1}"/>"#,
                area.y(interval.low),
                area.y(interval.high)
            ),
        );
        push_markup(&mut svg, format_args!(r#"<circle class="dot" cx="{x:.1}" cy="{:.1}" r="5.5"/>"#, area.y(value)));
        area.words(&mut svg, x, area.bottom() + 44.0, "middle", &level.share.all().to_string());
    }
    svg.push_str("</svg>");
    Svg::new(svg)
}

#[cfg(test)]
mod tests {
    use canonry_domain::{LevelShare, Share};
    use proptest::collection::vec;
    use proptest::prelude::proptest;

    use super::{HEIGHT, ReliabilityPlot, reliability_plot};
    use crate::charts::checks::assert_drawn;

    fn drawn(levels: &[LevelShare], current: Option<u8>) -> String {
        reliability_plot(&ReliabilityPlot { levels, configured: 85, current, wanted: Some(0.8) }).as_str().to_owned()
    }

    #[test]
    fn each_level_has_its_interval_and_its_count() {
        let level = |from, right, wrong| LevelShare { from, to: from + 4, share: Share { right, wrong } };
        let svg = drawn(&[level(80, 3, 7), level(90, 1_200, 5)], Some(90));
        assert_drawn(&svg, HEIGHT);
        assert_eq!((svg.matches("<circle").count(), svg.matches(r#"class="whisker""#).count()), (2, 2));
        assert!(svg.contains(">10<") && svg.contains(">1205<") && svg.contains("1215 predictions"), "{svg}");
        assert_eq!(svg.matches(r#"class="line-now""#).count(), 1);
        assert_eq!(
            drawn(&[level(80, 3, 7)], None).matches(r#"class="line-now""#).count(),
            0,
            "without comments there is no threshold"
        );
    }

    #[test]
    fn an_empty_chart_says_what_will_appear() {
        assert!(drawn(&[], Some(85)).contains("No prediction has an outcome yet"));
    }

    proptest! {
        #[test]
        fn whatever_comes_stays_inside(levels in vec((0_u8..=95, 0_u64..9_000, 0_u64..9_000), 1..20), current in 50_u8..=95) {
            let mut levels: Vec<LevelShare> = levels
                .into_iter()
                .map(|(from, right, wrong)| LevelShare { from, to: from + 4, share: Share { right, wrong } })
                .collect();
            levels.sort_by_key(|level| level.from);
            assert_drawn(&drawn(&levels, Some(current)), HEIGHT);
        }
    }
}
