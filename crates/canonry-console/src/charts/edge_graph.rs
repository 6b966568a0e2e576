//! A cluster as a picture: its canonical in the middle, the other members around it, and the edges between them.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use canonry_charts::chart_text;

use super::Svg;

/// The most members that a picture shows; with more, the edges are a tangle.
pub(crate) const MOST_NODES: usize = 30;

#[derive(Debug, Clone)]
pub(crate) struct GraphNode {
    pub(crate) name: String,
    /// Read by screen readers and shown on hovering.
    pub(crate) description: String,
    pub(crate) href: String,
    pub(crate) is_open: bool,
}

/// From one node to another, by their index in the list.
#[derive(Debug, Clone)]
pub(crate) struct GraphEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) confidence: f64,
    pub(crate) words: String,
    pub(crate) is_stale: bool,
}

const WIDTH: f64 = 720.0;
const RADIUS: f64 = 22.0;
/// With more edges their numbers would cover each other; the table has them all.
const MOST_NUMBERS: usize = 14;

/// The picture of a cluster, the canonical first; `None` if there are too many members.
pub(crate) fn edge_graph(about: &str, nodes: &[GraphNode], lines: &[GraphEdge]) -> Option<Svg> {
    if nodes.is_empty() || nodes.len() > MOST_NODES {
        return None;
    }
    let (places, height) = around(nodes.len());
    let mut svg = format!(
        r#"<svg class="edge-graph" viewBox="0 0 {WIDTH} {height:.0}" role="group" aria-label="{}">"#,
        chart_text(about)
    );
    svg.push_str(
        r#"<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="11" orient="auto"><path class="arrow" d="M0 0L8 4L0 8Z"/></marker></defs>"#,
    );
    let numbered = lines.len() <= MOST_NUMBERS;
    for line in lines {
        let (Some(from), Some(to)) = (places.get(line.from), places.get(line.to)) else { continue };
        let is_mutual = lines.iter().any(|other| (other.from, other.to) == (line.to, line.from));
        draw_line(&mut svg, line, *from, *to, numbered, is_mutual);
    }
    for (at, (node, (x, y))) in nodes.iter().zip(&places).enumerate() {
        let class = match (at, node.is_open) {
            (0, _) => "node canonical",
            (_, true) => "node open",
            (_, false) => "node closed",
        };
        let size = if at == 0 { RADIUS + 8.0 } else { RADIUS };
        write!(
            svg,
            r#"<a class="{class}" href="{}" aria-label="{description}"><title>{description}</title><circle cx="{x:.1}" cy="{y:.1}" r="{size}"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text></a>"#,
            chart_text(&node.href),
            y + 4.0,
            chart_text(&node.name),
            description = chart_text(&node.description),
        )
        .expect(TAKES);
    }
    svg.push_str("</svg>");
    Some(Svg::new(svg))
}

const TAKES: &str = "invariant: a String takes everything";

/// Positions: the first in the middle, the others on a ring, or on two if one is too narrow; and the picture's
/// height.
fn around(count: usize) -> (Vec<(f64, f64)>, f64) {
    const ON_ONE_RING: usize = 14;
    let others = count.saturating_sub(1);
    let inner = if others > ON_ONE_RING { others / 3 } else { 0 };
    let outer = others - inner;
    let reach = if inner > 0 { 245.0 } else { 120.0 + 6.0 * outer as f64 };
    let height = 2.0 * (reach * 0.8 + RADIUS + 10.0);
    let (x, y) = (WIDTH / 2.0, height / 2.0);
    let mut places = vec![(x, y)];
    for (members, reach, turn) in [(inner, reach * 0.52, 0.5), (outer, reach, 0.0)] {
        for at in 0..members {
            // Clockwise from the top; wider than high, as pages are.
            let angle = TAU * ((at as f64 + turn) / members as f64 - 0.25);
            places.push((x + reach * 1.35 * angle.cos(), y + reach * 0.8 * angle.sin()));
        }
    }
    places.truncate(count);
    (places, height)
}

fn draw_line(svg: &mut String, line: &GraphEdge, from: (f64, f64), to: (f64, f64), numbered: bool, is_mutual: bool) {
    let (across, down) = (to.0 - from.0, to.1 - from.1);
    let length = across.hypot(down).max(1.0);
    let (unit_x, unit_y) = (across / length, down / length);
    // Two nodes that name each other get a line each, side by side.
    let aside = if is_mutual { 5.0 } else { 0.0 };
    let (from, to) =
        ((from.0 - unit_y * aside, from.1 + unit_x * aside), (to.0 - unit_y * aside, to.1 + unit_x * aside));
    let class = if line.is_stale { "edge stale" } else { "edge" };
    // From rim to rim; a higher confidence makes a broader edge.
    let (begin, end) = (RADIUS + 2.0, RADIUS + 11.0);
    write!(
        svg,
        r#"<path class="{class}" d="M{:.1} {:.1}L{:.1} {:.1}" stroke-width="{:.1}" marker-end="url(#arrow)"/>"#,
        from.0 + unit_x * begin,
        from.1 + unit_y * begin,
        to.0 - unit_x * end,
        to.1 - unit_y * end,
        1.0 + 3.0 * ((line.confidence - 0.8) / 0.2).clamp(0.0, 1.0),
    )
    .expect(TAKES);
    if numbered {
        let (x, y) = (from.0 + across * 0.45 - unit_y * 20.0, from.1 + down * 0.45 + unit_x * 14.0 + 4.0);
        write!(
            svg,
            r#"<text class="edge-number" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            chart_text(&line.words)
        )
        .expect(TAKES);
    }
}

#[cfg(test)]
mod tests {
    use super::{GraphEdge, GraphNode, MOST_NODES, RADIUS, WIDTH, around, edge_graph};

    fn node(at: usize) -> GraphNode {
        GraphNode {
            name: format!("#{at}"),
            description: format!("#{at} <b>"),
            href: format!("/r/a/b/issues/{at}"),
            is_open: at.is_multiple_of(2),
        }
    }

    #[test]
    fn members_stay_inside_and_apart() {
        for count in 1..=MOST_NODES {
            let (places, height) = around(count);
            assert_eq!(places.len(), count);
            for (at, (x, y)) in places.iter().enumerate() {
                let inside = *x >= RADIUS && *x <= WIDTH - RADIUS && *y >= RADIUS && *y <= height - RADIUS;
                assert!(inside, "{count}: {x} {y} of {height}");
                for (other_x, other_y) in &places[at + 1..] {
                    assert!((x - other_x).hypot(y - other_y) > 2.0 * RADIUS, "{count}: two members overlap");
                }
            }
        }
    }

    #[test]
    fn a_picture_has_every_member_and_edge_or_is_none() {
        let nodes: Vec<GraphNode> = (1..=4).map(node).collect();
        let line = |from, to| GraphEdge { from, to, confidence: 0.93, words: ".93".to_owned(), is_stale: false };
        let svg =
            edge_graph("a cluster", &nodes, &[line(1, 0), line(2, 0), line(3, 2), line(9, 0)]).expect("a picture");
        let markup = svg.as_str();
        assert_eq!((markup.matches("<circle").count(), markup.matches("class=\"edge\"").count()), (4, 3));
        assert_eq!(markup.matches(">.93<").count(), 3);
        assert!(markup.contains("&lt;b&gt;") && !markup.contains("<b>") && !markup.contains("style="));
        let many: Vec<GraphNode> = (0..=MOST_NODES).map(node).collect();
        assert!(edge_graph("a cluster", &many, &[]).is_none() && edge_graph("nothing", &[], &[]).is_none());
    }
}
