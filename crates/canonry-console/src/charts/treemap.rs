//! Groups as tiles of one rectangle: the larger the group, the larger its tile.

use std::fmt::Write as _;

use canonry_charts::chart_text;

use super::Svg;

#[derive(Debug, Clone)]
pub(crate) struct TreemapTile {
    pub(crate) weight: u64,
    pub(crate) name: String,
    /// A stranger's text, shown as far as it fits.
    pub(crate) words: String,
    /// What is read out and shown on hovering.
    pub(crate) told: String,
    pub(crate) class: &'static str,
    /// Whether a plan is about it, which its frame tells.
    pub(crate) is_planned: bool,
    /// How much of the band at its foot is filled, 0 to 1.
    pub(crate) band: f64,
    pub(crate) href: String,
}

#[derive(Debug, Clone)]
pub(crate) struct TreemapRest {
    pub(crate) words: String,
    pub(crate) href: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TreemapRect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The picture's size; it is scaled to the page.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
/// The height of the strip for what is left out: it says how much that is, and is not to scale.
const STRIP: f64 = 34.0;
/// The room that a letter takes at the size that names and words are written in.
const LETTER: f64 = 7.0;
const LINE: f64 = 16.0;

/// The picture of these groups, the largest first.
pub(crate) fn treemap(about: &str, tiles: &[TreemapTile], rest: Option<&TreemapRest>) -> Svg {
    let mut svg = format!(
        r#"<svg class="treemap" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{}">"#,
        chart_text(about)
    );
    svg.push_str(
        r#"<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch-line" d="M0 0V7"/></pattern></defs>"#,
    );
    let weights: Vec<u64> = tiles.iter().map(|tile| tile.weight).collect();
    let height = if rest.is_some() { HEIGHT - STRIP - 4.0 } else { HEIGHT };
    for (tile, place) in tiles.iter().zip(squarified(&weights, WIDTH, height)) {
        draw(&mut svg, tile, place);
    }
    if let Some(rest) = rest {
        let (y, middle) = (HEIGHT - STRIP, HEIGHT - STRIP / 2.0 + 4.0);
        write!(
            svg,
            r#"<a class="tile rest" href="{}"><rect x="1" y="{y}" width="{}" height="{}" rx="5"/><text x="{}" y="{middle}" text-anchor="middle">{}</text></a>"#,
            chart_text(&rest.href),
            WIDTH - 2.0,
            STRIP - 1.0,
            WIDTH / 2.0,
            chart_text(&rest.words),
        )
        .expect(TAKES);
    }
    svg.push_str("</svg>");
    Svg::new(svg)
}

const TAKES: &str = "invariant: a String takes everything";

fn draw(svg: &mut String, tile: &TreemapTile, place: TreemapRect) {
    // A gap between tiles, as long as they are larger than that.
    let gap = if place.width > 6.0 && place.height > 6.0 { 1.0 } else { 0.0 };
    let (x, y) = (place.x + gap, place.y + gap);
    let (width, height) = (place.width - 2.0 * gap, place.height - 2.0 * gap);
    let letters = ((width - 12.0) / LETTER).floor().max(0.0) as usize;
    let lines = ((height - 14.0) / LINE).floor().max(0.0) as usize;
    let is_named = lines >= 1 && letters >= tile.name.chars().count();
    let told = chart_text(&tile.told);
    // What is written in a tile is its name to those who hear it; another one would contradict what others see.
    let label = if is_named { String::new() } else { format!(r#" aria-label="{told}""#) };
    write!(
        svg,
        r#"<a class="tile {}{}" href="{}"{label}><title>{told}</title><rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="{}"/>"#,
        tile.class,
        if tile.is_planned { " planned" } else { "" },
        chart_text(&tile.href),
        if gap > 0.0 { 4 } else { 0 },
    )
    .expect(TAKES);
    if tile.class.contains("closed") {
        write!(svg, r#"<rect class="hatched" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="url(#hatch)"/>"#)
            .expect(TAKES);
    }
    if width > 12.0 && height > 14.0 {
        let (left, room, foot) = (x + 4.0, width - 8.0, y + height - 7.0);
        write!(svg, r#"<path class="band-track" d="M{left:.1} {foot:.1}h{room:.1}"/>"#).expect(TAKES);
        write!(svg, r#"<path class="band-fill" d="M{left:.1} {foot:.1}h{:.1}"/>"#, room * tile.band.clamp(0.0, 1.0))
            .expect(TAKES);
    }
    if is_named {
        write!(
            svg,
            r#"<text class="tile-name" x="{:.1}" y="{:.1}">{}</text>"#,
            x + 6.0,
            y + LINE,
            chart_text(&tile.name)
        )
        .expect(TAKES);
        // Three letters say nothing.
        for (at, line) in (2..=lines).zip(wrapped(&tile.words, letters).into_iter().filter(|_| letters >= 8)) {
            let below = y + LINE * at as f64;
            write!(svg, r#"<text x="{:.1}" y="{below:.1}">{}</text>"#, x + 6.0, chart_text(&line)).expect(TAKES);
        }
    }
    svg.push_str("</a>");
}

/// Lines of at most so many letters, broken between words; a longer word is cut.
fn wrapped(words: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        let word: String = if word.chars().count() > letters {
            word.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
        } else {
            word.to_owned()
        };
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// A place for each weight, its area in proportion: rows along the shorter side, each as long as its tiles become more
/// square by it (Bruls, Huizing, van Wijk: "Squarified treemaps"). Weights come the largest first.
pub(crate) fn squarified(weights: &[u64], width: f64, height: f64) -> Vec<TreemapRect> {
    let sum: u64 = weights.iter().sum();
    if sum == 0 {
        return vec![TreemapRect { x: 0.0, y: 0.0, width: 0.0, height: 0.0 }; weights.len()];
    }
    let scale = width * height / sum as f64;
    let areas: Vec<f64> = weights.iter().map(|weight| *weight as f64 * scale).collect();
    let mut places = Vec::with_capacity(areas.len());
    let mut free = TreemapRect { x: 0.0, y: 0.0, width, height };
    let mut from = 0;
    while from < areas.len() {
        let side = free.width.min(free.height);
        let mut to = from + 1;
        while to < areas.len() && worst(&areas[from..=to], side) <= worst(&areas[from..to], side) {
            to += 1;
        }
        lay(&areas[from..to], &mut free, &mut places);
        from = to;
    }
    places
}

/// How far the least square tile of a row is from a square; 1 is one.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let (least, most) =
        row.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), area| (least.min(*area), most.max(*area)));
    let square = side * side;
    // A weight of nothing is no tile that could be square.
    if least <= 0.0 {
        return if most <= 0.0 { 1.0 } else { f64::INFINITY };
    }
    (square * most / (sum * sum)).max(sum * sum / (square * least))
}

/// Lays a row along the shorter side of what is free, and takes its room.
fn lay(row: &[f64], free: &mut TreemapRect, places: &mut Vec<TreemapRect>) {
    let sum: f64 = row.iter().sum();
    let upright = free.width >= free.height;
    let side = if upright { free.height } else { free.width };
    let depth = if side > 0.0 { sum / side } else { 0.0 };
    let mut along = 0.0;
    for area in row {
        let length = if depth > 0.0 { area / depth } else { 0.0 };
        places.push(match upright {
            true => TreemapRect { x: free.x, y: free.y + along, width: depth, height: length },
            false => TreemapRect { x: free.x + along, y: free.y, width: length, height: depth },
        });
        along += length;
    }
    if upright {
        free.x += depth;
        free.width = (free.width - depth).max(0.0);
    } else {
        free.y += depth;
        free.height = (free.height - depth).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::{HEIGHT, TreemapRect, TreemapRest, TreemapTile, WIDTH, squarified, treemap, wrapped};

    fn overlap(one: &TreemapRect, other: &TreemapRect) -> f64 {
        let across = (one.x + one.width).min(other.x + other.width) - one.x.max(other.x);
        let down = (one.y + one.height).min(other.y + other.height) - one.y.max(other.y);
        across.max(0.0) * down.max(0.0)
    }

    proptest! {
        #[test]
        fn tiles_fill_the_picture_and_never_overlap(mut weights in prop::collection::vec(1_u64..400, 1..200)) {
            weights.sort_unstable_by(|one, other| other.cmp(one));
            let places = squarified(&weights, WIDTH, HEIGHT);
            let sum: u64 = weights.iter().sum();
            let whole = WIDTH * HEIGHT;
            for (weight, place) in weights.iter().zip(&places) {
                let share = place.width * place.height / whole;
                prop_assert!((share - *weight as f64 / sum as f64).abs() < 1e-9, "{place:?} for {weight}");
                let inside = place.x >= -1e-6 && place.y >= -1e-6 && place.x + place.width <= WIDTH + 1e-6 && place.y + place.height <= HEIGHT + 1e-6;
                prop_assert!(inside, "{place:?} leaves the picture");
            }
            for (at, one) in places.iter().enumerate() {
                for other in &places[at + 1..] {
                    prop_assert!(overlap(one, other) < 1e-6, "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_no_tile() {
        assert!(squarified(&[], WIDTH, HEIGHT).is_empty());
        assert_eq!(squarified(&[0, 0], WIDTH, HEIGHT).len(), 2);
        let half = squarified(&[3, 0], 10.0, 10.0);
        assert_eq!((half[0].width * half[0].height, half[1].width * half[1].height), (100.0, 0.0));
    }

    #[test]
    fn words_of_strangers_are_escaped_and_only_where_they_fit() {
        let tile = |weight, name: &str| TreemapTile {
            weight,
            name: name.to_owned(),
            words: "<script>alert(1)</script> the tide table".to_owned(),
            told: "#7 \"quoted\" & more".to_owned(),
            class: "open",
            is_planned: weight == 1,
            band: 0.5,
            href: "/r/a/b?x=1&y=2".to_owned(),
        };
        let tiles = [tile(5_000, "#7"), tile(1, "#8")];
        let rest = TreemapRest { words: "and 4,800 more".to_owned(), href: "/r/a/b/clusters".to_owned() };
        let svg = treemap("clusters", &tiles, Some(&rest));
        let markup = svg.as_str();
        assert!(!markup.contains("<script") && markup.contains("&lt;script&gt;"));
        assert!(markup.contains("and 4,800 more") && markup.contains("&amp;y=2"));
        assert!(markup.contains(">#7</text>") && !markup.contains(">#8</text>"));
        assert!(!markup.contains("style="));
        assert_eq!((markup.matches("tile open\"").count(), markup.matches("tile open planned\"").count()), (1, 1));
        // Only a tile without words has a name that nobody sees.
        assert_eq!(markup.matches("aria-label=\"#7").count(), 1);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("the tide table stops", 9), ["the tide", "table", "stops"]);
        assert_eq!(wrapped("unbelievable", 5), ["unbe…"]);
    }
}
