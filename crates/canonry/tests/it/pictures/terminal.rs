//! The output of commands, as an SVG that shows them one after the other.

use super::github_page::escaped;

pub(crate) struct Scene {
    pub(crate) command: String,
    /// The output with the colours of a terminal.
    pub(crate) output: String,
}

/// The style of a piece of a line.
#[derive(Debug, Default, Clone, PartialEq)]
struct Look {
    is_bold: bool,
    is_dim: bool,
    colour: Option<usize>,
}

const COLUMN: f64 = 8.43;
const LINE: usize = 20;
const LEFT: usize = 20;
const TOP: usize = 58;
const COLUMNS: usize = 100;
const SECONDS_EACH: usize = 8;

/// The sixteen colours of a terminal, readable on the dark background.
const COLOURS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4", "#6e7681", "#ffa198",
    "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
];

/// The scenes in turn; a reader who prefers reduced motion sees the first.
pub(crate) fn recording(scenes: &[Scene]) -> String {
    let longest = scenes.iter().map(|scene| scene.output.trim_end().lines().count()).max().unwrap_or_default();
    let (width, height) = (LEFT * 2 + (COLUMN * COLUMNS as f64) as usize, TOP + (longest + 1) * LINE + 8);
    let total = scenes.len() * SECONDS_EACH;
    let share = 100.0 / scenes.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\n\
         text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;white-space:pre}}\n\
         .b{{font-weight:700}}.d{{fill-opacity:.65}}.p{{fill:#3fb950}}\n\
         g{{visibility:hidden;animation:turn {total}s step-end infinite}}\n\
         @keyframes turn{{0%{{visibility:visible}}{share:.3}%{{visibility:hidden}}}}\n",
        scenes.iter().map(|scene| escaped(&scene.command)).collect::<Vec<_>>().join("; ")
    );
    for number in 1..=scenes.len() {
        svg += &format!("#s{number}{{animation-delay:{}s}}", (number - 1) * SECONDS_EACH);
    }
    svg += "\n@media(prefers-reduced-motion:reduce){g{animation:none}#s1{visibility:visible}}\n</style>\n";
    svg += &format!("<rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#0d1117\"/>\n");
    for (x, colour) in [(22, "#ff5f57"), (42, "#febc2e"), (62, "#28c840")] {
        svg += &format!("<circle cx=\"{x}\" cy=\"22\" r=\"6\" fill=\"{colour}\"/>\n");
    }
    for (number, scene) in scenes.iter().enumerate() {
        svg += &format!("<g id=\"s{}\">\n{}</g>\n", number + 1, lines(scene));
    }
    svg + "</svg>\n"
}

fn lines(scene: &Scene) -> String {
    let mut svg =
        format!("<text x=\"{LEFT}\" y=\"{TOP}\"><tspan class=\"p\">$ </tspan>{}</text>\n", escaped(&scene.command));
    let mut look = Look::default();
    for (number, line) in scene.output.trim_end().lines().enumerate() {
        let pieces = pieces(line, &mut look);
        let y = TOP + (number + 1) * LINE;
        let mut column = 0;
        for (look, text) in pieces {
            let x = LEFT as f64 + COLUMN * column as f64;
            column += text.chars().count();
            if !text.trim().is_empty() {
                svg += &format!("<text x=\"{x:.1}\" y=\"{y}\"{}>{}</text>\n", look.attributes(), escaped(&text));
            }
        }
        assert!(column <= COLUMNS, "{column} columns are too many for the picture: {line}");
    }
    svg
}

impl Look {
    fn attributes(&self) -> String {
        let classes = [(self.is_bold, "b"), (self.is_dim, "d")]
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, class)| *class)
            .collect::<Vec<_>>();
        let class = if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
        class + &self.colour.map(|colour| format!(" style=\"fill:{}\"", COLOURS[colour])).unwrap_or_default()
    }

    /// Applies the numbers of one `ESC [ … m`.
    fn apply(&mut self, codes: &str) {
        for code in codes.split(';') {
            match code.parse::<usize>().unwrap_or_default() {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                colour @ 30..=37 => self.colour = Some(colour - 30),
                colour @ 90..=97 => self.colour = Some(colour - 82),
                39 => self.colour = None,
                _ => {}
            }
        }
    }
}

/// Splits a line into pieces of one style each; other escape sequences (links) are left out.
fn pieces(line: &str, look: &mut Look) -> Vec<(Look, String)> {
    let mut pieces = Vec::new();
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some((codes, rest)) = part.strip_prefix('[').and_then(|part| part.split_once('m')) {
            pieces.push((look.clone(), std::mem::take(&mut text)));
            look.apply(codes);
            text.push_str(rest);
        } else if let Some(rest) = part.strip_prefix('\\') {
            text.push_str(rest);
        }
    }
    pieces.push((look.clone(), text));
    pieces
}

#[test]
fn colours_are_read_and_links_left_out() {
    let mut look = Look::default();
    let line = "a\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;https://example.org\u{1b}\\link\u{1b}]8;;\u{1b}\\<";
    let red = Look { is_bold: true, is_dim: false, colour: Some(1) };
    let plain = Look::default();
    assert_eq!(
        pieces(line, &mut look),
        [(plain.clone(), "a".to_owned()), (red, "red".to_owned()), (plain, " link<".to_owned())]
    );
}
