//! Renders a simulation of learning as one self-contained HTML page: no script, no other file, no network.

use std::fmt::Write as _;

use canonry_charts::{LineChart, LinePoint, LineSeries, SeriesMark, escaped};
use canonry_domain::{CurrentThreshold, Threshold, ThresholdRule};

use crate::lab::backtest_report::{STYLE, fifths, figure, page_head};
use crate::lab::simulate_learning::{EARLY, LearningCurve, LearningSimulation, RuleSummary, mean, median, share};
use crate::lab::synthetic_repository::RepositoryKind;

/// The position of the highest threshold on the axis; silence is above it, at 1.
const HIGHEST_PLACE: f64 = 0.88;

pub fn learning_html(simulation: &LearningSimulation) -> String {
    let mut page = String::new();
    write_page(&mut page, simulation).expect("invariant: a String takes everything");
    page
}

fn write_page(page: &mut String, simulation: &LearningSimulation) -> std::fmt::Result {
    let options = simulation.options;
    let (heading, style) = ("How each learning rule moves the threshold", format!("{STYLE}{MORE_STYLE}"));
    page.push_str(&page_head(heading, &style, "Canonry simulate-learning", heading));
    writeln!(
        page,
        "<p>{} simulated repositories with {} outcomes each. Their true precision is known at every threshold. Every repository begins at {} %; {} of suggestions should be right.</p>\n</header>",
        options.repositories,
        options.outcomes,
        simulation.configured,
        share(Some(simulation.wanted.get())),
    )?;
    page.push_str("<section class=\"advice\" aria-labelledby=\"found\">\n<h2 id=\"found\">What was found</h2>\n<ul>\n");
    for sentence in simulation.conclusions() {
        writeln!(page, "<li>{}</li>", escaped(&sentence))?;
    }
    page.push_str("</ul>\n</section>\n");
    let summary = simulation.summary();
    for kind in RepositoryKind::ALL {
        let rows: Vec<&RuleSummary> = summary.iter().filter(|row| row.kind == kind).collect();
        if !rows.is_empty() {
            write_kind(page, simulation, kind, &rows)?;
        }
    }
    writeln!(
        page,
        "<footer><h2>How this was made</h2>\n<p>Half of a repository's triage records predict a duplicate, with scores from 60 to 100 that are most frequent at 80. A thin line is one repository; a thick one is the median threshold, or the mean precision of those that suggest. Old outcomes count as much as new ones, so a repository that turns bad is noticed late. Reproduce it with <code>canonry simulate-learning --repositories {} --outcomes {} --seed {}</code></p></footer>\n</main>\n</body>\n</html>",
        options.repositories, options.outcomes, options.seed,
    )
}

fn write_kind(
    page: &mut String,
    simulation: &LearningSimulation,
    kind: RepositoryKind,
    rows: &[&RuleSummary],
) -> std::fmt::Result {
    let (heading, description) = match kind {
        RepositoryKind::Good => {
            ("Good repositories", "Nine in ten predictions or more are right, whatever their score.")
        }
        RepositoryKind::Crossing => (
            "Repositories whose precision crosses the wanted one",
            "High scores are right, low ones are not; the threshold to find lies between 65 and 93.",
        ),
        RepositoryKind::Bad => {
            ("Bad repositories", "At most a third of the predictions is right, whatever their score.")
        }
        RepositoryKind::Drifting => {
            ("Drifting repositories", "Good in the first third of the outcomes, bad in the last.")
        }
    };
    writeln!(page, "<section>\n<h2>{heading}</h2>\n<p>{description}</p>")?;
    page.push_str(&figure(&threshold_chart(simulation, kind, rows)));
    page.push_str(&figure(&precision_chart(simulation, kind, rows)));
    writeln!(
        page,
        "<table>\n<caption>{} repositories in the end</caption>\n<thead><tr><th scope=\"col\">rule</th><th scope=\"col\">median threshold</th><th scope=\"col\">right suggestions</th><th scope=\"col\">near the wanted precision</th><th scope=\"col\">silent after {EARLY} outcomes</th><th scope=\"col\">silent</th></tr></thead>\n<tbody>",
        rows.first().map_or(0, |row| row.repositories),
    )?;
    for row in rows {
        writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.rule,
            row.median_threshold,
            share(row.mean_precision),
            row.near_wanted,
            row.silent_early.map_or_else(|| "–".to_owned(), |count| count.to_string()),
            row.silent,
        )?;
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
    Ok(())
}

fn threshold_chart<'a>(simulation: &LearningSimulation, kind: RepositoryKind, rows: &[&RuleSummary]) -> LineChart<'a> {
    let told: Vec<String> = rows.iter().map(|row| format!("{} ends at {}", row.rule, row.median_threshold)).collect();
    let marks = [50, 60, 70, 80, 90].map(|points| (threshold_points_place(points), points.to_string()));
    let configured = simulation.configured;
    LineChart {
        id: match kind {
            RepositoryKind::Good => "good-thresholds",
            RepositoryKind::Crossing => "crossing-thresholds",
            RepositoryKind::Bad => "bad-thresholds",
            RepositoryKind::Drifting => "drifting-thresholds",
        },
        title: format!("Threshold by number of outcomes (dotted: the configured {configured} %)"),
        description: format!("Of the middle repository, {}.", told.join(", ")),
        x_label: "outcomes",
        x_marks: x_marks(simulation, kind),
        y_marks: marks.into_iter().chain([(1.0, "silent".to_owned())]).collect(),
        reference: Some(threshold_points_place(configured.get())),
        series: series(
            simulation,
            kind,
            |curve, at| curve.points.get(at).map(|point| threshold_place(point.threshold)),
            |curves, at| {
                let there = curves.iter().filter_map(|curve| curve.points.get(at));
                median(there.map(|point| point.threshold)).map(threshold_place)
            },
        ),
    }
}

fn precision_chart<'a>(simulation: &LearningSimulation, kind: RepositoryKind, rows: &[&RuleSummary]) -> LineChart<'a> {
    let told = |row: &&RuleSummary| match row.mean_precision {
        Some(precision) => format!("with {} {} is right in the end", row.rule, share(Some(precision))),
        None => format!("with {} there are no suggestions in the end", row.rule),
    };
    let told: Vec<String> = rows.iter().map(told).collect();
    let wanted = simulation.wanted.get();
    LineChart {
        id: match kind {
            RepositoryKind::Good => "good-precision",
            RepositoryKind::Crossing => "crossing-precision",
            RepositoryKind::Bad => "bad-precision",
            RepositoryKind::Drifting => "drifting-precision",
        },
        title: format!(
            "True precision of suggestions; no line without suggestions (dotted: the wanted {})",
            share(Some(wanted))
        ),
        description: format!("{}.", told.join(", ")),
        x_label: "outcomes",
        x_marks: x_marks(simulation, kind),
        y_marks: fifths(),
        reference: Some(wanted),
        series: series(
            simulation,
            kind,
            |curve, at| curve.points.get(at).and_then(|point| point.precision),
            |curves, at| {
                let there = curves.iter().filter_map(|curve| curve.points.get(at)?.precision);
                mean(&there.collect::<Vec<_>>())
            },
        ),
    }
}

/// One series for every rule. `of_each` and `of_all` give the value at an observation, by its index.
fn series<'a>(
    simulation: &LearningSimulation,
    kind: RepositoryKind,
    of_each: impl Fn(&LearningCurve, usize) -> Option<f64>,
    of_all: impl Fn(&[&LearningCurve], usize) -> Option<f64>,
) -> Vec<LineSeries<'a>> {
    let of_rule = |rule: &ThresholdRule| {
        let curves: Vec<&LearningCurve> = simulation.curves_of(kind, *rule).collect();
        let looks = curves.first().map_or(0, |curve| curve.points.len());
        let places = |place: &dyn Fn(usize) -> Option<f64>| -> Vec<LinePoint> {
            (0..looks).map(|at| LinePoint::new(look_place(at, looks), place(at))).collect()
        };
        let (class, mark) = match rule {
            ThresholdRule::PrecisionTarget => ("rule-target", SeriesMark::Circle),
            ThresholdRule::BetaMean => ("rule-mean", SeriesMark::Square),
            ThresholdRule::BetaComplement => ("rule-complement", SeriesMark::Triangle),
        };
        LineSeries {
            name: rule.as_str(),
            class,
            mark,
            points: places(&|at| of_all(&curves, at)),
            background: curves.iter().map(|curve| places(&|at| of_each(curve, at))).collect(),
        }
    };
    ThresholdRule::ALL.iter().map(of_rule).collect()
}

/// Observations are evenly spaced: each adds about as much to what was known.
fn look_place(at: usize, looks: usize) -> f64 {
    at as f64 / (looks.max(2) - 1) as f64
}

fn x_marks(simulation: &LearningSimulation, kind: RepositoryKind) -> Vec<(f64, String)> {
    let Some(curve) = simulation.curves.iter().find(|curve| curve.kind == kind) else { return Vec::new() };
    let looks = curve.points.len();
    curve.points.iter().enumerate().map(|(at, point)| (look_place(at, looks), point.outcomes.to_string())).collect()
}

fn threshold_place(current: CurrentThreshold) -> f64 {
    current.threshold().map_or(1.0, |threshold| threshold_points_place(threshold.get()))
}

fn threshold_points_place(points: u8) -> f64 {
    let (lowest, highest) = (f64::from(Threshold::LOWEST.get()), f64::from(Threshold::HIGHEST.get()));
    HIGHEST_PLACE * (f64::from(points) - lowest) / (highest - lowest)
}

const MORE_STYLE: &str = "
th[scope=row] { white-space: nowrap; }
:root { --three: #2f6f3e; }
@media (prefers-color-scheme: dark) { :root { --three: #7fd08f; } }
svg .each { stroke-width: 1; opacity: .18; }
svg .reference { stroke: var(--promise); stroke-dasharray: 2 4; }
svg .rule-target { stroke: var(--one); } svg .rule-target circle { fill: var(--one); }
svg .rule-mean { stroke: var(--two); } svg .rule-mean polyline { stroke-dasharray: 6 4; } svg .rule-mean rect { fill: var(--two); }
svg .rule-complement { stroke: var(--three); } svg .rule-complement polyline { stroke-dasharray: 2 3; } svg .rule-complement path { fill: var(--three); }
";

#[cfg(test)]
mod tests {
    use super::learning_html;
    use crate::lab::simulate_learning::{SimulationOptions, simulate_learning};

    #[test]
    fn the_page_needs_nothing_else_and_shows_every_kind() {
        let page = learning_html(&simulate_learning(SimulationOptions { repositories: 8, outcomes: 60, seed: 1 }));
        assert_eq!(page.matches("<svg ").count(), 8);
        for absent in ["<script", "src=", "href=", "http://", "https://", "NaN", "inf"] {
            assert!(!page.contains(absent), "{absent}");
        }
        for id in ["good", "crossing", "bad", "drifting"] {
            assert_eq!(page.matches(&format!("id=\"{id}-thresholds-title\"")).count(), 1);
        }
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.contains("--repositories 8 --outcomes 60 --seed 1"));
    }

    #[test]
    fn one_repository_is_enough_for_a_page() {
        let page = learning_html(&simulate_learning(SimulationOptions { repositories: 1, outcomes: 1, seed: 1 }));
        assert_eq!(page.matches("<svg ").count(), 2);
        assert!(!page.contains("NaN"));
    }
}
