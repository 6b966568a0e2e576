//! Precision against recall with many gates, and with the chosen ones.

use canonry_charts::{Plot, open_chart, percent_marks, push_markup};
use canonry_domain::{AuditTally, Share};

use crate::charts::{Svg, nothing_to_draw};
use crate::layout::formatting::percent;

/// The tallies of an audit: as stored, with many gates, and with the chosen ones.
pub(crate) struct GateSweep<'a> {
    pub(crate) others: &'a [AuditTally],
    pub(crate) stored: AuditTally,
    pub(crate) chosen: AuditTally,
}

const HEIGHT: f64 = 330.0;

/// The chart, or a sentence if there is nothing to compare.
pub(crate) fn sweep(plot: &GateSweep<'_>) -> Svg {
    let Some(stored) = place(&plot.stored) else {
        return nothing_to_draw("Neither judge found a duplicate in this sample, so there is no precision or recall.");
    };
    let area = Plot::at(30.0, 236.0);
    let chosen = place(&plot.chosen);
    let words = chosen.map_or_else(
        || "Precision and recall. These gates accept nothing.".to_owned(),
        |(recall, precision)| {
            format!(
                "Precision and recall. With these gates {} of the accepted are right, and {} of the duplicates are found.",
                percent(precision),
                percent(recall)
            )
        },
    );
    let mut svg = open_chart(HEIGHT, &words);
    area.heading(&mut svg, "Precision");
    area.rows(&mut svg, &percent_marks());
    area.columns(&mut svg, &percent_marks());
    area.words(&mut svg, area.left + area.width / 2.0, HEIGHT - 6.0, "middle", "recall");
    for (recall, precision) in plot.others.iter().filter_map(place) {
        push_markup(
            &mut svg,
            format_args!(r#"<circle class="other" cx="{:.1}" cy="{:.1}" r="4"/>"#, area.x(recall), area.y(precision)),
        );
    }
    let (x, y) = (area.x(stored.0), area.y(stored.1));
    push_markup(&mut svg, format_args!(r#"<circle class="ring" cx="{x:.1}" cy="{y:.1}" r="7"/>"#));
    if let Some((recall, precision)) = chosen {
        let (x, y) = (area.x(recall), area.y(precision));
        let (found, right) = (recall_of(&plot.chosen).interval(), precision_of(&plot.chosen).interval());
        push_markup(
            &mut svg,
            format_args!(
                r#"<path class="whisker" d="M{:.1} {y:.1}H{:.1}M{x:.1} {:.1}V{:.1}"/>"#,
                area.x(found.low),
                area.x(found.high),
                area.y(right.low),
                area.y(right.high)
            ),
        );
        push_markup(&mut svg, format_args!(r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="6"/>"#));
    }
    svg.push_str("</svg>");
    Svg::new(svg)
}

/// The share of accepted items that are right.
pub(crate) fn precision_of(tally: &AuditTally) -> Share {
    Share { right: tally.tp, wrong: tally.fp }
}

pub(crate) fn recall_of(tally: &AuditTally) -> Share {
    Share { right: tally.tp, wrong: tally.missed }
}

fn place(tally: &AuditTally) -> Option<(f64, f64)> {
    tally.recall.zip(tally.precision)
}

#[cfg(test)]
mod tests {
    use canonry_domain::{AuditClass, AuditTally};
    use proptest::collection::vec;
    use proptest::prelude::proptest;
    use proptest::sample::select;

    use super::{GateSweep, HEIGHT, sweep};
    use crate::charts::checks::assert_drawn;

    fn tally(classes: &[AuditClass]) -> AuditTally {
        classes.iter().copied().collect()
    }

    #[test]
    fn the_chosen_point_stands_out_and_has_its_intervals() {
        use AuditClass::{Fn, Fp, Tn, Tp};
        let stored = tally(&[Tp, Tp, Fp, Fn]);
        let others = [stored, tally(&[Tp, Fn, Fn, Tn]), tally(&[Fn, Fn, Tn])];
        let svg = sweep(&GateSweep { others: &others, stored, chosen: others[1] }).as_str().to_owned();
        assert_drawn(&svg, HEIGHT);
        assert_eq!(svg.matches(r#"class="other""#).count(), 2, "one of them has no precision");
        assert_eq!((svg.matches(r#"class="ring""#).count(), svg.matches(r#"class="dot""#).count()), (1, 1));
        let told = "100\u{a0}% of the accepted are right, and 33\u{a0}% of the duplicates are found";
        assert!(svg.contains(told), "{svg}");
        let nearly = tally(&[vec![Tp; 399], vec![Fp]].concat());
        let svg = sweep(&GateSweep { others: &[], stored, chosen: nearly }).as_str().to_owned();
        assert!(svg.contains("over 99\u{a0}% of the accepted are right"), "as the page beside it says: {svg}");
        let none = sweep(&GateSweep { others: &[], stored, chosen: others[2] }).as_str().to_owned();
        assert!(none.contains("accept nothing") && !none.contains(r#"class="dot""#), "{none}");
    }

    #[test]
    fn an_empty_chart_is_a_sentence() {
        let stored = tally(&[AuditClass::Tn]);
        let svg = sweep(&GateSweep { others: &[], stored, chosen: stored });
        assert!(svg.as_str().contains("Neither judge found a duplicate"));
    }

    proptest! {
        #[test]
        fn whatever_comes_stays_inside(classes in vec(select(AuditClass::ALL), 0..40), fewer in 0_usize..40) {
            let (stored, chosen) = (tally(&classes), tally(&classes[..fewer.min(classes.len())]));
            let svg = sweep(&GateSweep { others: &[stored, chosen], stored, chosen });
            if svg.as_str().starts_with("<svg") {
                assert_drawn(svg.as_str(), HEIGHT);
            }
        }
    }
}
