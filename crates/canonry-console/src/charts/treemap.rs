//! Groups as tiles of one rectangle: the larger the group, the larger its tile.

use std::fmt::Write as _;

use canonry_charts::chart_text;

use super::Svg;

#[derive(Debug, Clone)]
pub(crate) struct TreemapTile {
    pub(crate) weight: u64,
    /// The shortest label, for a tile that is too small for its name.
    pub(crate) number: String,
    pub(crate) name: String,
    /// The meaning of its colour, in words.
    pub(crate) confidence: String,
    /// A stranger's text, shown as far as it fits.
    pub(crate) words: String,
    /// Read by screen readers and shown on hovering.
    pub(crate) description: String,
    /// The CSS class of its colour.
    pub(crate) class: &'static str,
    /// Drawn hatched.
    pub(crate) is_closed: bool,
    /// Drawn with a strong frame.
    pub(crate) is_planned: bool,
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
/// The height of the strip for the omitted groups. It states their number and is not to scale.
const STRIP: f64 = 34.0;
/// The width of a letter in the font of names and words.
const LETTER: f64 = 7.0;
const LINE: f64 = 16.0;

/// How many of these groups, the largest first, leave room for a label on each of their tiles.
pub(crate) fn tiles_with_labels(tiles: &[TreemapTile]) -> usize {
    let mut count = tiles.len();
    while count > 1 {
        let weights: Vec<u64> = tiles[..count].iter().map(|tile| tile.weight).collect();
        let places = squarified(&weights, WIDTH, HEIGHT - STRIP - 4.0);
        if tiles.iter().zip(&places).all(|(tile, place)| TileRoom::of(place).label(tile).is_some()) {
            break;
        }
        count -= (count / 8).max(1);
    }
    count
}

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
    // A gap between tiles, if they are larger than it.
    let gap = if place.width > 6.0 && place.height > 6.0 { 1.0 } else { 0.0 };
    let (x, y) = (place.x + gap, place.y + gap);
    let (width, height) = (place.width - 2.0 * gap, place.height - 2.0 * gap);
    let room = TileRoom::of(&place);
    let description = chart_text(&tile.description);
    // For screen readers, the text in a tile is its name; another name would contradict what others see.
    let named = room.label(tile);
    let label = if named.is_some() { String::new() } else { format!(r#" aria-label="{description}""#) };
    write!(
        svg,
        r#"<a class="tile {}{}" href="{}"{label}><title>{description}</title><rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="{}"/>"#,
        tile.class,
        if tile.is_planned { " planned" } else { "" },
        chart_text(&tile.href),
        if gap > 0.0 { 4 } else { 0 },
    )
    .expect(TAKES);
    if tile.is_closed {
        write!(svg, r#"<rect class="hatched" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="url(#hatch)"/>"#)
            .expect(TAKES);
    }
    if let Some(name) = named {
        let mut line = |at: usize, class: &str, words: &str| {
            let below = y + LINE * at as f64;
            write!(svg, r#"<text{class} x="{:.1}" y="{below:.1}">{}</text>"#, x + 6.0, chart_text(words)).expect(TAKES);
        };
        line(1, r#" class="tile-name""#, name);
        if room.lines >= 2 && room.letters >= tile.confidence.chars().count() {
            line(2, "", &tile.confidence);
        }
        // Three letters say nothing.
        for (at, words) in (3..=room.lines).zip(wrapped(&tile.words, room.letters)).filter(|_| room.letters >= 8) {
            line(at, "", &words);
        }
    }
    svg.push_str("</a>");
}

/// How much text fits into a tile.
struct TileRoom {
    letters: usize,
    lines: usize,
}

impl TileRoom {
    fn of(place: &TreemapRect) -> Self {
        Self {
            letters: ((place.width - 14.0) / LETTER).floor().max(0.0) as usize,
            lines: ((place.height - 8.0) / LINE).floor().max(0.0) as usize,
        }
    }

    /// The longest label that fits.
    fn label<'a>(&self, tile: &'a TreemapTile) -> Option<&'a str> {
        let labels = [&tile.name, &tile.number];
        let fits = |label: &&String| self.lines >= 1 && self.letters >= label.chars().count();
        labels.into_iter().find(fits).map(String::as_str)
    }
}

/// Lines of at most `letters` characters, broken between words; a longer word is cut.
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

/// A rectangle for each weight, with proportional area: rows along the shorter side, each extended while its tiles
/// become more square (Bruls, Huizing, van Wijk: "Squarified treemaps"). Weights come the largest first.
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

/// The aspect ratio of the least square tile of a row; 1 is a square.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let (least, most) =
        row.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), area| (least.min(*area), most.max(*area)));
    let square = side * side;
    // A weight of zero makes no tile.
    if least <= 0.0 {
        return if most <= 0.0 { 1.0 } else { f64::INFINITY };
    }
    (square * most / (sum * sum)).max(sum * sum / (square * least))
}

/// Lays a row along the shorter side of the free rectangle and shrinks it.
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

    use super::{
        HEIGHT, TreemapRect, TreemapRest, TreemapTile, WIDTH, squarified, tiles_with_labels, treemap, wrapped,
    };

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

    fn tile(weight: u64, number: &str) -> TreemapTile {
        TreemapTile {
            weight,
            number: number.to_owned(),
            name: format!("{number} ×{weight}"),
            confidence: "97 %".to_owned(),
            words: "<script>alert(1)</script> the tide table".to_owned(),
            description: format!("{number} \"quoted\" & more"),
            class: "conf-high",
            is_closed: weight == 2,
            is_planned: weight == 1,
            href: "/r/a/b?x=1&y=2".to_owned(),
        }
    }

    #[test]
    fn words_of_strangers_are_escaped_and_only_where_they_fit() {
        let tiles = [tile(5_000, "#7"), tile(1, "#8")];
        let rest = TreemapRest { words: "4,800 smaller clusters".to_owned(), href: "/r/a/b/clusters".to_owned() };
        let svg = treemap("clusters", &tiles, Some(&rest));
        let markup = svg.as_str();
        assert!(!markup.contains("<script") && markup.contains("&lt;script&gt;"));
        assert!(markup.contains("4,800 smaller clusters") && markup.contains("&amp;y=2"));
        assert!(
            markup.contains(">#7 ×5000</text>") && markup.contains(">97 %</text>") && !markup.contains(">#8</text>")
        );
        assert!(!markup.contains("style="));
        assert_eq!(
            (markup.matches("tile conf-high\"").count(), markup.matches("tile conf-high planned\"").count()),
            (1, 1)
        );
        // Only a tile without text has an invisible name.
        assert_eq!((markup.matches("aria-label=\"#8").count(), markup.matches("aria-label=\"#7").count()), (1, 0));
    }

    #[test]
    fn every_tile_that_is_kept_has_a_label() {
        for weights in [vec![5_000, 1], vec![400, 40, 4, 2, 2, 2, 2], vec![2; 120], vec![900, 3, 3, 3, 3, 3, 2, 2]] {
            let tiles: Vec<TreemapTile> =
                (1_000..).zip(&weights).map(|(at, weight)| tile(*weight, &format!("#{at}"))).collect();
            let kept = tiles_with_labels(&tiles);
            assert!(kept >= 1 && kept <= tiles.len());
            let rest = TreemapRest { words: "more".to_owned(), href: "/".to_owned() };
            let svg = treemap("clusters", &tiles[..kept], Some(&rest));
            assert_eq!(svg.as_str().matches("class=\"tile-name\"").count(), kept, "{weights:?}");
            assert!(!svg.as_str().contains("<a class=\"tile conf-high\" href=\"/r/a/b?x=1&amp;y=2\" aria-label"));
        }
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("the tide table stops", 9), ["the tide", "table", "stops"]);
        assert_eq!(wrapped("unbelievable", 5), ["unbe…"]);
    }
}
