//! Counts per period, stacked by kind.

use crate::charts::{Svg, nothing_to_draw};
use crate::layout::formatting::thousands;
use canonry_charts::{Plot, open_chart, push_markup};

/// One period.
pub(crate) struct Bar {
    pub(crate) label: String,
    /// The count of each kind, from the bottom up.
    pub(crate) counts: Vec<u64>,
}

/// Bars with the classes of their kinds, from the bottom up; `empty` is shown if there is nothing to count.
pub(crate) struct Bars<'a> {
    pub(crate) heading: &'a str,
    /// The CSS classes that colour the kinds.
    pub(crate) kinds: &'a [&'static str],
    pub(crate) bars: &'a [Bar],
    pub(crate) empty: &'a str,
}

const HEIGHT: f64 = 254.0;

/// The chart, or a sentence if nothing was counted.
pub(crate) fn bars(chart: &Bars<'_>) -> Svg {
    let most = chart.bars.iter().map(|bar| bar.counts.iter().sum::<u64>()).max().unwrap_or(0);
    if most == 0 {
        return nothing_to_draw(chart.empty);
    }
    let top = round_up(most);
    let all: u64 = chart.bars.iter().flat_map(|bar| &bar.counts).sum();
    let words = format!("{}: {} in {} periods, at most {most} in one.", chart.heading, all, chart.bars.len());
    let mut svg = open_chart(HEIGHT, &words);
    let area = Plot::at(30.0, 184.0);
    area.heading(&mut svg, chart.heading);
    // A mark at the half only if the half is a whole number.
    let halves = if top.is_multiple_of(2) { vec![0, top / 2, top] } else { vec![0, top] };
    let marks: Vec<(f64, String)> =
        halves.into_iter().map(|count| (count as f64 / top as f64, thousands(count))).collect();
    area.rows(&mut svg, &marks);
    let slot = 1.0 / chart.bars.len() as f64;
    // As many labels as fit side by side.
    let every = chart.bars.len().div_ceil(3);
    let labels: Vec<(f64, String)> = chart
        .bars
        .iter()
        .enumerate()
        .step_by(every)
        .map(|(index, bar)| ((index as f64 + 0.5) * slot, bar.label.clone()))
        .collect();
    area.columns(&mut svg, &labels);
    for (index, bar) in chart.bars.iter().enumerate() {
        let width = (area.width * slot * 0.78).min(46.0);
        let x = area.x((index as f64 + 0.5) * slot) - width / 2.0;
        let mut below = 0;
        for (count, class) in bar.counts.iter().zip(chart.kinds) {
            let (from, to) = (area.y(below as f64 / top as f64), area.y((below + count) as f64 / top as f64));
            below += count;
            if *count > 0 {
                let height = from - to;
                push_markup(
                    &mut svg,
                    format_args!(
                        r#"<rect class="{class}" x="{x:.1}" y="{to:.1}" width="{width:.1}" height="{height:.1}"/>"#
                    ),
                );
            }
        }
    }
    svg.push_str("</svg>");
    Svg::new(svg)
}

/// The next of 1, 2, 5, 10, 20, 50 …
fn round_up(most: u64) -> u64 {
    let mut scale = 1_u64;
    loop {
        for step in [1, 2, 5] {
            let top = scale.saturating_mul(step);
            if top >= most {
                return top;
            }
        }
        scale = scale.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, proptest};

    use super::{Bar, Bars, HEIGHT, bars, round_up};
    use crate::charts::checks::assert_drawn;

    fn drawn(counts: Vec<Vec<u64>>) -> String {
        let stretches: Vec<Bar> =
            counts.into_iter().map(|counts| Bar { label: "<Jan 4>".to_owned(), counts }).collect();
        let chart =
            Bars { heading: "Outcomes", kinds: &["good", "bad", "mute"], bars: &stretches, empty: "Nothing yet." };
        bars(&chart).as_str().to_owned()
    }

    #[test]
    fn kinds_are_stacked_and_words_are_escaped() {
        let svg = drawn(vec![vec![3, 1, 0], vec![0, 0, 0], vec![0, 2, 4]]);
        assert_drawn(&svg, HEIGHT);
        assert_eq!(svg.matches("<rect").count(), 4);
        assert!(svg.contains("&lt;Jan 4&gt;") && !svg.contains("<Jan"), "{svg}");
        assert_eq!([1, 2, 3, 6, 11, 99, 501].map(round_up), [1, 2, 5, 10, 20, 100, 1_000]);
    }

    #[test]
    fn an_empty_chart_is_a_sentence() {
        assert_eq!(drawn(vec![vec![0, 0, 0]]), r#"<p class="empty">Nothing yet.</p>"#);
        assert_eq!(drawn(Vec::new()), r#"<p class="empty">Nothing yet.</p>"#);
    }

    proptest! {
        #[test]
        fn whatever_comes_stays_inside(counts in vec(vec(0_u64..1_000_000, 3), 1..60), most in 1_u64..u64::MAX / 20) {
            let svg = drawn(counts);
            if svg.starts_with("<svg") {
                assert_drawn(&svg, HEIGHT);
            }
            prop_assert!(round_up(most) >= most);
        }
    }
}
