//! A finding across pushes: one mark for each review, with its shape, its label, and whether a comment was posted.

use canonry_domain::review::FindingStatus;

use canonry_charts::chart_text;

use super::Svg;
use crate::layout::formatting::finding_status_in_words;

/// The most reviews that the picture shows, the newest ones; the table beside it has the others too.
pub(crate) const MOST: usize = 40;

/// Wide enough for the longest note in the smallest readable font.
const COLUMN: usize = 96;
const EDGE: usize = 10;
const HEIGHT: usize = 122;
/// The height of the line.
const LEVEL: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LifePoint {
    /// The status of the finding; `None` if the review did not report it.
    pub(crate) status: Option<FindingStatus>,
    pub(crate) is_hidden: bool,
    pub(crate) is_said: bool,
    /// What happened to the finding, in two words.
    pub(crate) note: &'static str,
    pub(crate) commit: String,
    pub(crate) day: String,
}

/// The reviews of a subject since the first one that reported the finding, the oldest first.
pub(crate) fn lifeline(points: &[LifePoint]) -> Svg {
    let shown = &points[points.len().saturating_sub(MOST)..];
    let (width, left_out) = (EDGE * 2 + COLUMN * shown.len().max(1), points.len() - shown.len());
    let title = title(points);
    let mut svg = format!(
        r#"<svg viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img" aria-label="{}">"#,
        chart_text(&title)
    );
    for (at, pair) in shown.windows(2).enumerate() {
        let (from, to) = (middle(at), middle(at + 1));
        let class = stretch(shown[..=at].iter().rev().find_map(|point| point.status), &pair[1]);
        svg += &format!(r#"<path class="{class}" d="M{from} {LEVEL}H{to}"/>"#);
    }
    if left_out > 0 {
        svg += &format!(r#"<path class="life-gap" d="M0 {LEVEL}H{}"/>"#, middle(0));
    }
    for (at, point) in shown.iter().enumerate() {
        svg += &mark(point, middle(at));
    }
    Svg::new(svg + "</svg>")
}

/// The whole lifeline as a sentence, for screen readers.
fn title(points: &[LifePoint]) -> String {
    let told = points.iter().filter_map(|point| Some((point.status?, point)));
    let words: Vec<String> = told
        .map(|(status, point)| format!("{} at {} ({})", finding_status_in_words(status), point.commit, point.note))
        .collect();
    if words.is_empty() { "no review mentions it".to_owned() } else { words.join(", ") }
}

fn middle(at: usize) -> usize {
    EDGE + COLUMN * at + COLUMN / 2
}

/// The style of the line before a review: the finding is open, fixed, or was not reviewed.
fn stretch(last: Option<FindingStatus>, next: &LifePoint) -> &'static str {
    match (last, next.status) {
        (Some(FindingStatus::Fixed), _) => "life-gone",
        (_, None) => "life-gap",
        _ => "life-line",
    }
}

fn mark(point: &LifePoint, x: usize) -> String {
    let (class, shape) = match point.status {
        None => ("mute", format!(r#"<path class="life-tick" d="M{x} {}v14"/>"#, LEVEL - 7)),
        Some(status) => shape(status, point.is_hidden, x),
    };
    let word = point.status.map_or("–", finding_status_in_words);
    let said = if point.is_said { said(x) } else { String::new() };
    format!(
        r#"<g class="life-{class}">{said}<text x="{x}" y="{}" text-anchor="middle" class="strong-text">{word}</text>{shape}<text x="{x}" y="{}" text-anchor="middle">{}</text><text x="{x}" y="{}" text-anchor="middle" class="mono">{}</text><text x="{x}" y="{}" text-anchor="middle">{}</text></g>"#,
        LEVEL - 18,
        LEVEL + 26,
        chart_text(point.note),
        LEVEL + 42,
        chart_text(&point.commit),
        LEVEL + 57,
        chart_text(&point.day),
    )
}

/// A small speech bubble above the label.
fn said(x: usize) -> String {
    let (left, top) = (x - 9, 8);
    format!(
        r#"<path class="life-said" d="M{left} {top}h18a3 3 0 0 1 3 3v8a3 3 0 0 1-3 3h-10l-5 5v-5h-3a3 3 0 0 1-3-3v-8a3 3 0 0 1 3-3z"/>"#
    )
}

/// The shapes differ as well as the colours.
fn shape(status: FindingStatus, is_hidden: bool, x: usize) -> (&'static str, String) {
    let y = LEVEL;
    let ring = if is_hidden { " life-hidden" } else { "" };
    match status {
        FindingStatus::New => ("new", format!(r#"<circle class="life-mark{ring}" cx="{x}" cy="{y}" r="9"/>"#)),
        FindingStatus::Same => ("same", format!(r#"<circle class="life-mark{ring}" cx="{x}" cy="{y}" r="6"/>"#)),
        FindingStatus::Moved => (
            "moved",
            format!(r#"<path class="life-mark{ring}" d="M{x} {}L{} {y}L{x} {}L{} {y}Z"/>"#, y - 9, x + 9, y + 9, x - 9),
        ),
        FindingStatus::Fixed => (
            "fixed",
            format!(
                r#"<circle class="life-mark" cx="{x}" cy="{y}" r="9"/><path class="life-sign" d="M{} {y}l3 4l6-8"/>"#,
                x - 4
            ),
        ),
        FindingStatus::Reopened => (
            "reopened",
            format!(r#"<path class="life-mark{ring}" d="M{x} {}L{} {}H{}Z"/>"#, y - 10, x + 10, y + 8, x - 10),
        ),
        FindingStatus::Dismissed => (
            "dismissed",
            format!(
                r#"<circle class="life-mark{ring}" cx="{x}" cy="{y}" r="9"/><path class="life-sign" d="M{} {y}h8"/>"#,
                x - 4
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::FindingStatus;
    use proptest::prelude::{Just, Strategy as _, prop_assert_eq, prop_oneof, proptest};

    use super::{COLUMN, LifePoint, MOST, lifeline};

    fn point(status: Option<FindingStatus>) -> LifePoint {
        LifePoint {
            status,
            is_hidden: false,
            is_said: false,
            note: "not repeated",
            commit: "abc1234".into(),
            day: "Nov 16".into(),
        }
    }

    fn count(svg: &str, part: &str) -> usize {
        svg.matches(part).count()
    }

    #[test]
    fn each_status_has_its_own_shape_and_word() {
        let mut shapes = Vec::new();
        for status in FindingStatus::ALL {
            let svg = lifeline(&[point(Some(*status))]);
            assert!(
                svg.as_str()
                    .contains(&format!(">{}</text>", crate::layout::formatting::finding_status_in_words(*status))),
                "{status}"
            );
            let shape = svg.as_str().split("life-mark").nth(1).expect("a mark").to_owned();
            shapes.push(shape.split("<text").next().unwrap_or_default().to_owned());
        }
        let different: std::collections::BTreeSet<_> = shapes.iter().collect();
        assert_eq!(different.len(), FindingStatus::ALL.len(), "{shapes:#?}");
    }

    #[test]
    fn gaps_and_what_is_gone_are_not_drawn_as_standing() {
        let told = [
            Some(FindingStatus::New),
            None,
            Some(FindingStatus::Same),
            Some(FindingStatus::Fixed),
            None,
            Some(FindingStatus::Reopened),
        ];
        let svg = lifeline(&told.map(point));
        let svg = svg.as_str();
        assert_eq!((count(svg, "life-line"), count(svg, "life-gap"), count(svg, "life-gone")), (2, 1, 2));
        assert_eq!(count(svg, "life-tick"), 2);
        assert!(svg.contains("new at abc1234 (not repeated), still open at"), "{svg}");
    }

    #[test]
    fn a_comment_and_a_hidden_one_are_marked() {
        let new = LifePoint { is_said: true, ..point(Some(FindingStatus::New)) };
        let hidden = LifePoint { is_hidden: true, ..point(Some(FindingStatus::Same)) };
        let svg = lifeline(&[new, hidden]);
        assert_eq!((count(svg.as_str(), "life-said"), count(svg.as_str(), "life-hidden")), (1, 1));
    }

    #[test]
    fn nothing_that_is_given_becomes_markup() {
        let nasty = LifePoint { commit: "\"><script>".into(), day: "<b>&'".into(), ..point(Some(FindingStatus::New)) };
        let svg = lifeline(&[nasty]);
        assert!(!svg.as_str().contains("<script") && !svg.as_str().contains("<b>"), "{}", svg.as_str());
    }

    proptest! {
        #[test]
        fn as_wide_as_what_it_shows(
            points in proptest::collection::vec(
                prop_oneof![Just(None), proptest::sample::select(FindingStatus::ALL).prop_map(Some)].prop_map(point), 0..60),
        ) {
            let svg = lifeline(&points);
            let shown = points.len().min(MOST);
            prop_assert_eq!(count(svg.as_str(), "class=\"mono\""), shown);
            let width = format!("width=\"{}\"", 20 + COLUMN * shown.max(1));
            prop_assert_eq!(count(svg.as_str(), &width), 1);
        }
    }
}
