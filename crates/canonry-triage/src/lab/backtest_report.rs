//! Renders a backtest as one self-contained HTML page: no script, no other file, no network.

use std::fmt::Write as _;

use canonry_charts::{LineChart, LinePoint, LineSeries, SeriesMark, escaped};
use canonry_domain::{Interval, Verdict};
use canonry_retrieval::RetrievalMeasures;
use jiff::Timestamp;

use crate::lab::backtest::{Backtest, Miss, NamedItem};
use crate::lab::replay_verdicts::{LEVELS, VerdictReplay};

/// The scores at which gates decide.
pub const GATES: [f64; 4] = [0.75, 0.85, 0.90, 0.95];

/// The precision that scores promise among items that have an earlier duplicate: .90 is even odds, .95 is four in
/// five.
const PROMISES: [(f64, f64); 2] = [(0.90, 0.5), (0.95, 0.8)];

/// The lowest score that a threshold can be set to; axes of scores begin here.
const LOWEST: f64 = 0.5;

/// The page of a backtest: with the tables of scores, or with the verdicts of a judge instead.
pub fn backtest_html(backtest: &Backtest, judged: Option<&VerdictReplay>, now: Timestamp) -> String {
    let mut page = String::new();
    write_page(&mut page, backtest, judged, now).expect("invariant: a String takes everything");
    page
}

fn write_page(
    page: &mut String,
    backtest: &Backtest,
    judged: Option<&VerdictReplay>,
    now: Timestamp,
) -> std::fmt::Result {
    let repo = escaped(&backtest.repo.to_string());
    let by = match &backtest.model {
        Some(model) => format!("{} retrieval, vectors of {}", backtest.options.mode, escaped(model)),
        None => format!("{} retrieval", backtest.options.mode),
    };
    page.push_str(&page_head(&format!("Backtest of {repo}"), STYLE, "Canonry backtest", &repo));
    writeln!(
        page,
        "<p>{} past duplicates replayed as if they were new, against only what existed then; {by}. {}.</p>\n</header>",
        backtest.counts.duplicates_replayed,
        now.strftime("%-d %B %Y, %H:%M UTC"),
    )?;
    write_cautions(page, backtest)?;
    write_retrieval(page, backtest)?;
    match judged {
        Some(judged) => write_verdicts(page, judged)?,
        None => {
            write_thresholds(page, backtest)?;
            write_reliability(page, backtest)?;
        }
    }
    write_misses(page, &backtest.misses)?;
    page.push_str("<section class=\"advice\" aria-labelledby=\"advice\">\n<h2 id=\"advice\">What to do now</h2>\n");
    let advice = match judged {
        Some(judged) => judged.recommendation(&backtest.repo, backtest.options.wanted_precision, None),
        None => backtest.recommendation(),
    };
    for sentence in advice {
        writeln!(page, "<p>{}</p>", with_code(&sentence))?;
    }
    writeln!(
        page,
        "</section>\n<footer><h2>How this was measured</h2>\n<p>{}</p>\n<p>{:.1} seconds; half of the searches took at most {:.1} ms, 95 % at most {:.1} ms.</p></footer>\n</main>\n</body>\n</html>",
        with_code(&judged.map_or_else(|| backtest.method(), VerdictReplay::method)),
        backtest.timing.replay_seconds,
        backtest.timing.search_ms_p50,
        backtest.timing.search_ms_p95,
    )
}

/// The beginning of a page, up to its heading.
pub(crate) fn page_head(title: &str, style: &str, kicker: &str, heading: &str) -> String {
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<p class="kicker">{kicker}</p>
<h1>{heading}</h1>
"#
    )
}

fn write_cautions(page: &mut String, backtest: &Backtest) -> std::fmt::Result {
    let cautions = backtest.cautions();
    if cautions.is_empty() {
        return Ok(());
    }
    page.push_str("<section class=\"caution\" aria-label=\"Before you believe the figures\">\n<ul>\n");
    for caution in cautions {
        writeln!(page, "<li>{}</li>", with_code(&caution))?;
    }
    page.push_str("</ul>\n</section>\n");
    Ok(())
}

fn write_retrieval(page: &mut String, backtest: &Backtest) -> std::fmt::Result {
    page.push_str("<section>\n<h2>Is the right earlier item found?</h2>\n");
    // From each step of the curve to the next, the additional reading grows by about the same factor.
    let last = (backtest.recall_curve.len().max(2) - 1) as f64;
    let place = |at: usize| at as f64 / last;
    let curve = &backtest.recall_curve;
    let told: Vec<String> = curve.iter().map(|(k, share)| format!("{:.0} % in {k}", share * 100.0)).collect();
    let chart = LineChart {
        id: "recall",
        title: "Duplicates whose earlier item is among the first neighbours".to_owned(),
        description: format!("The share rises with the number of neighbours looked at: {}.", told.join(", ")),
        x_label: "neighbours looked at",
        x_marks: curve.iter().enumerate().map(|(at, (k, _))| (place(at), k.to_string())).collect(),
        y_marks: fifths(),
        reference: None,
        series: vec![LineSeries::new(
            "found",
            "solid",
            SeriesMark::Circle,
            curve
                .iter()
                .enumerate()
                .map(|(at, (k, share))| LinePoint {
                    interval: interval_at(&backtest.retrieval, *k),
                    ..LinePoint::new(place(at), *share)
                })
                .collect(),
        )],
    };
    page.push_str(&figure(&chart));
    page.push_str("<table>\n<caption>Found among the first neighbours, with 95 % intervals</caption>\n<thead><tr><th scope=\"col\">replayed</th><th scope=\"col\">first</th><th scope=\"col\">first 5</th><th scope=\"col\">first 10</th><th scope=\"col\">first 20</th><th scope=\"col\">MRR</th></tr></thead>\n<tbody>\n");
    write_measures(page, "all", &backtest.retrieval)?;
    if backtest.by_type.len() > 1 {
        for (item_type, measures) in &backtest.by_type {
            write_measures(page, &format!("{}s", item_type.in_words()), measures)?;
        }
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
    Ok(())
}

fn write_measures(page: &mut String, name: &str, measures: &RetrievalMeasures) -> std::fmt::Result {
    let recalls = [measures.recall_at_1, measures.recall_at_5, measures.recall_at_10, measures.recall_at_20];
    write!(page, "<tr><th scope=\"row\">{name}: {}</th>", measures.queries)?;
    for share in recalls {
        write!(page, "<td>{}</td>", share_cell(share))?;
    }
    let mrr = measures.mrr;
    writeln!(page, "<td>{:.3} <small>{:.3}–{:.3}</small></td></tr>", mrr.value, mrr.low, mrr.high)
}

fn interval_at(measures: &RetrievalMeasures, k: usize) -> Option<(f64, f64)> {
    let interval = match k {
        1 => measures.recall_at_1,
        5 => measures.recall_at_5,
        10 => measures.recall_at_10,
        20 => measures.recall_at_20,
        _ => return None,
    };
    Some((interval.low, interval.high))
}

fn write_verdicts(page: &mut String, judged: &VerdictReplay) -> std::fmt::Result {
    page.push_str("<section>\n<h2>What would the judge have said?</h2>\n<table>\n<caption>Right: links and readings together, with 95 % intervals</caption>\n<thead><tr><th scope=\"col\">verdict</th><th scope=\"col\">given</th><th scope=\"col\">linked</th><th scope=\"col\">read: same</th><th scope=\"col\">read: different</th><th scope=\"col\">right</th><th scope=\"col\">duplicates found</th></tr></thead>\n<tbody>\n");
    let kinds = [
        ("duplicate".to_owned(), judged.of_kind(Verdict::Duplicate)),
        ("maybe a duplicate".to_owned(), judged.of_kind(Verdict::MaybeDuplicate)),
    ];
    let levels = LEVELS.map(|level| (format!("confidence {level:.2} and above"), judged.at_confidence(level)));
    for (name, share) in kinds.into_iter().chain(levels) {
        let of = &share.estimate;
        let right = match (of.combined, of.by_links) {
            (Some(share), _) => share_cell(share),
            (None, Some(links)) => format!("at least {:.0} %", links.low * 100.0),
            (None, None) => "–".to_owned(),
        };
        writeln!(
            page,
            "<tr><th scope=\"row\">{name}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{right}</td><td>{}</td></tr>",
            of.given,
            of.linked,
            of.read_same,
            of.read_different,
            share_cell(share.recall),
        )?;
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
    Ok(())
}

fn write_thresholds(page: &mut String, backtest: &Backtest) -> std::fmt::Result {
    let verdicts = &backtest.verdicts;
    page.push_str("<section>\n<h2>Would it have been right to speak?</h2>\n");
    let points = |share: &dyn Fn(&crate::VerdictPoint) -> Option<f64>| -> Vec<LinePoint> {
        let every_fifth = verdicts.levels.iter().filter(|level| is_drawn(level.threshold.get()));
        let point = |level| {
            let level: &crate::VerdictPoint = level;
            Some(LinePoint::new(place(level.threshold.get()), share(level)?))
        };
        every_fifth.filter_map(point).collect()
    };
    let told: Vec<String> = GATES
        .iter()
        .map(|gate| {
            let point = verdicts.at(*gate);
            let precision =
                point.precision.map_or("no answers".to_owned(), |share| format!("{:.0} % right", share.value * 100.0));
            format!("at {gate:.2}, {precision} and {:.0} % of duplicates answered", point.recall.value * 100.0)
        })
        .collect();
    let chart = LineChart {
        id: "thresholds",
        title: "Precision and recall by threshold".to_owned(),
        description: format!("{}.", told.join("; ")),
        x_label: "threshold",
        x_marks: tenths(),
        y_marks: fifths(),
        reference: None,
        series: vec![
            LineSeries::new(
                "answers that are right",
                "solid",
                SeriesMark::Circle,
                points(&|level| level.precision.map(|share| share.value)),
            ),
            LineSeries::new(
                "duplicates answered rightly",
                "dashed",
                SeriesMark::Square,
                points(&|level| Some(level.recall.value)),
            ),
        ],
    };
    page.push_str(&figure(&chart));
    page.push_str("<table>\n<caption>If it spoke whenever the first neighbour's score is at least the threshold</caption>\n<thead><tr><th scope=\"col\">threshold</th><th scope=\"col\">answers per 1,000 new items</th><th scope=\"col\">right</th><th scope=\"col\">duplicates answered rightly</th></tr></thead>\n<tbody>\n");
    for gate in GATES {
        let point = verdicts.at(gate);
        writeln!(
            page,
            "<tr><th scope=\"row\">{gate:.2}</th><td>{:.1}</td><td>{}</td><td>{}</td></tr>",
            point.per_thousand,
            point.precision.map_or("no answers".to_owned(), share_cell),
            share_cell(point.recall),
        )?;
    }
    page.push_str("</tbody>\n</table>\n");
    let wanted = verdicts.wanted_precision * 100.0;
    match &verdicts.meets_wanted {
        Some(point) => {
            let precision = point.precision.map(share_cell).unwrap_or_default();
            writeln!(
                page,
                "<p>The lowest threshold with at least {wanted:.0} % right: <strong>{:.2}</strong>, right {precision}, with {} answers in the replay.</p>",
                point.threshold, point.given
            )?;
        }
        None => writeln!(page, "<p>No threshold would have been right at least {wanted:.0} times in 100.</p>")?,
    }
    page.push_str("</section>\n");
    Ok(())
}

/// Draws every second hundredth from .80 on, and every fifth below, where nothing is decided.
fn is_drawn(threshold: f64) -> bool {
    let hundredth = (threshold * 100.0).round() as u32;
    hundredth.is_multiple_of(5) || (hundredth > 80 && hundredth.is_multiple_of(2)) || hundredth == 99
}

fn write_reliability(page: &mut String, backtest: &Backtest) -> std::fmt::Result {
    let bands = &backtest.verdicts.reliability;
    page.push_str("<section>\n<h2>Do scores mean what they say?</h2>\n<p>Among items that have an earlier duplicate the scale promises even odds at .90 and four in five at .95. Measured is among all new items, most of which have none, so expect less.</p>\n");
    let told: Vec<String> = bands
        .iter()
        .map(|band| format!("{:.0} % right from {:.2} to {:.2}", band.right.value * 100.0, band.from, band.to))
        .collect();
    let chart = LineChart {
        id: "reliability",
        title: "Share of first neighbours that is right, by score".to_owned(),
        description: format!("{}.", told.join(", ")),
        x_label: "score of the first neighbour",
        x_marks: tenths(),
        y_marks: fifths(),
        reference: None,
        series: vec![
            LineSeries::new(
                "measured",
                "solid",
                SeriesMark::Circle,
                bands
                    .iter()
                    .filter(|band| band.from >= LOWEST)
                    .map(|band| LinePoint {
                        interval: Some((band.right.low, band.right.high)),
                        ..LinePoint::new(place((band.from + band.to) / 2.0), band.right.value)
                    })
                    .collect(),
            ),
            LineSeries::new(
                "promised",
                "promise",
                SeriesMark::Ring,
                PROMISES.iter().map(|&(x, y)| LinePoint::new(place(x), y)).collect(),
            ),
        ],
    };
    page.push_str(&figure(&chart));
    page.push_str("<table>\n<caption>First neighbours by score</caption>\n<thead><tr><th scope=\"col\">score</th><th scope=\"col\">replayed items</th><th scope=\"col\">right</th></tr></thead>\n<tbody>\n");
    for band in bands {
        writeln!(
            page,
            "<tr><th scope=\"row\">{:.2}–{:.2}</th><td>{}</td><td>{}</td></tr>",
            band.from,
            band.to,
            band.answers,
            share_cell(band.right)
        )?;
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
    Ok(())
}

fn write_misses(page: &mut String, misses: &[Miss]) -> std::fmt::Result {
    page.push_str("<section>\n<h2>Worst misses</h2>\n");
    if misses.is_empty() {
        page.push_str("<p>None: the right item came first every time.</p>\n</section>\n");
        return Ok(());
    }
    page.push_str("<table class=\"misses\">\n<caption>Duplicates whose right item was ranked worst</caption>\n<thead><tr><th scope=\"col\">duplicate</th><th scope=\"col\">of</th><th scope=\"col\">rank</th><th scope=\"col\">came first instead</th></tr></thead>\n<tbody>\n");
    for miss in misses {
        let rank = miss.rank.map_or("not in 100".to_owned(), |rank| rank.to_string());
        let first = match (&miss.first, miss.first_score) {
            (Some(first), Some(score)) => format!("{} <small>{:.2}</small>", link(first), score),
            _ => "nothing".to_owned(),
        };
        writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{rank}</td><td>{first}</td></tr>",
            link(&miss.duplicate),
            link(&miss.expected)
        )?;
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
    Ok(())
}

/// The position of a score on an axis of the scores that can be set.
fn place(score: f64) -> f64 {
    (score - LOWEST) / (1.0 - LOWEST)
}

/// The marks of an axis of shares.
pub(crate) fn fifths() -> Vec<(f64, String)> {
    (0..=5).map(|fifth| f64::from(fifth) / 5.0).map(|share| (share, format!("{:.0} %", share * 100.0))).collect()
}

fn tenths() -> Vec<(f64, String)> {
    (5..=10).map(|tenth| f64::from(tenth) / 10.0).map(|score| (place(score), format!("{score:.2}"))).collect()
}

pub(crate) fn figure(chart: &LineChart<'_>) -> String {
    format!("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", chart.svg(), escaped(&chart.title))
}

fn share_cell(share: Interval) -> String {
    format!("{:.0} % <small>{:.0}–{:.0}</small>", share.value * 100.0, share.low * 100.0, share.high * 100.0)
}

/// An item with its title, as a link if its address is safe for a browser. The address comes from the corpus, and may
/// be a `javascript:` one.
fn link(item: &NamedItem) -> String {
    let shown = format!("#{} <bdi>{}</bdi>", item.number, escaped(&item.title));
    match item.url.as_deref().filter(|url| url.starts_with("https://") || url.starts_with("http://")) {
        Some(url) => format!("<a href=\"{}\" rel=\"noreferrer\">{shown}</a>", escaped(url)),
        None => shown,
    }
}

/// Text with its `code` parts marked up.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let marked = |(at, part): (usize, &str)| {
        if at % 2 == 1 { format!("<code>{}</code>", escaped(part)) } else { escaped(part) }
    };
    parts.map(marked).collect()
}

/// The style of the pages, light and dark.
pub(crate) const STYLE: &str = "
:root { --ink: #1b2430; --quiet: #55606e; --paper: #ffffff; --card: #f4f6f9; --line: #d5dbe3; --one: #0b5cad; --two: #a8470a; --promise: #5b6472; --warn: #fff4d6; --warn-ink: #5c4300; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --quiet: #a5b0be; --paper: #12161c; --card: #1b212a; --line: #36404d; --one: #74b3f7; --two: #f2a56b; --promise: #aab4c2; --warn: #3a2f10; --warn-ink: #f3dfa6; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { margin: 0; font-size: 2rem; overflow-wrap: anywhere; }
h2 { margin: 2.5rem 0 .5rem; font-size: 1.25rem; }
.kicker, footer, figcaption, caption, small { color: var(--quiet); }
.kicker { margin: 0; }
small { white-space: nowrap; }
figure { margin: 1rem 0; padding: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
figcaption { font-size: .875rem; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .grid, svg .axis { stroke: var(--line); }
svg polyline { fill: none; stroke-width: 2; }
svg .interval { stroke-width: 2; opacity: .45; }
svg .solid { stroke: var(--one); } svg .solid circle { fill: var(--one); }
svg .dashed { stroke: var(--two); } svg .dashed polyline { stroke-dasharray: 6 4; } svg .dashed rect { fill: var(--two); }
svg .promise { stroke: var(--promise); } svg .promise polyline { stroke-width: 1; stroke-dasharray: 2 4; } svg .hollow { fill: var(--card); stroke-width: 2; }
svg g text { stroke: none; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: .875rem; padding-bottom: .25rem; }
th, td { padding: .375rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, .misses th, .misses td { text-align: left; }
.misses td { overflow-wrap: anywhere; }
a { color: var(--one); }
code { background: var(--card); border-radius: 4px; padding: 0 .25rem; }
.caution { background: var(--warn); color: var(--warn-ink); border-radius: 8px; padding: .25rem 1rem; }
.caution code { background: transparent; padding: 0; font-weight: 600; }
.advice { margin-top: 2.5rem; padding: .25rem 1rem; border: 2px solid var(--one); border-radius: 8px; }
.advice h2 { margin-top: .75rem; }
footer { font-size: .875rem; } footer h2 { font-size: 1rem; }
";

#[cfg(test)]
mod tests {
    use canonry_domain::ItemNumber;

    use super::{escaped, link, with_code};
    use crate::lab::backtest::NamedItem;

    fn item(title: &str, url: Option<&str>) -> NamedItem {
        let number = ItemNumber::new(7).expect("a number");
        NamedItem { number, title: title.to_owned(), url: url.map(str::to_owned) }
    }

    #[test]
    fn nothing_from_the_corpus_becomes_markup() {
        assert_eq!(
            escaped("<a b='c' d=\"e\">&\u{0}\u{1b}"),
            "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;\u{fffd}\u{fffd}"
        );
        assert_eq!(link(&item("</td><script>", None)), "#7 <bdi>&lt;/td&gt;&lt;script&gt;</bdi>");
        assert_eq!(link(&item("t", Some("javascript:alert(1)"))), "#7 <bdi>t</bdi>");
        assert_eq!(
            link(&item("t", Some("https://h/\"><script>"))),
            "<a href=\"https://h/&quot;&gt;&lt;script&gt;\" rel=\"noreferrer\">#7 <bdi>t</bdi></a>"
        );
        assert_eq!(with_code("run `a <b>` now"), "run <code>a &lt;b&gt;</code> now");
    }
}
