//! A small line without axes beside a number, which shows whether it rises or falls.

use crate::escaped;
use crate::plot::push_markup;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 32.0;
/// Keeps the ends of the line from being cut off.
const MARGIN: f64 = 2.0;

/// Draws counts from the oldest to the newest, with a description for screen readers. The page scales it to any
/// width.
pub fn trend_line(counts: &[u64], description: &str) -> String {
    let mut svg = format!(
        r#"<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{}">"#,
        escaped(description)
    );
    let most = counts.iter().copied().max().unwrap_or_default().max(1) as f64;
    let step = (WIDTH - 2.0 * MARGIN) / (counts.len().max(2) - 1) as f64;
    let place = |(at, count): (usize, &u64)| {
        let (x, share) = (MARGIN + step * at as f64, *count as f64 / most);
        format!("{x:.1},{:.1}", HEIGHT - MARGIN - share * (HEIGHT - 2.0 * MARGIN))
    };
    let line = counts.iter().enumerate().map(place).collect::<Vec<_>>().join(" ");
    if !line.is_empty() {
        let (right, bottom) = (MARGIN + step * (counts.len() - 1) as f64, HEIGHT - MARGIN);
        push_markup(
            &mut svg,
            format_args!(
                r#"<polygon class="band" points="{MARGIN:.1},{bottom:.1} {line} {right:.1},{bottom:.1}"/><polyline class="line" points="{line}"/>"#
            ),
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::trend_line;

    #[test]
    fn a_trend_spans_its_frame_and_says_what_it_shows() {
        let svg = trend_line(&[0, 2, 4], "4 <today>");
        assert!(svg.contains(r#"<polyline class="line" points="2.0,30.0 60.0,16.0 118.0,2.0"/>"#), "{svg}");
        assert!(svg.contains(r#"aria-label="4 &lt;today&gt;""#), "{svg}");
        assert!(svg.contains(r#"points="2.0,30.0 2.0,30.0 60.0,16.0 118.0,2.0 118.0,30.0""#), "{svg}");
    }

    #[test]
    fn nothing_is_a_flat_line_or_none() {
        assert!(trend_line(&[0, 0], "none").contains(r#"<polyline class="line" points="2.0,30.0 118.0,30.0"/>"#));
        let none = trend_line(&[], "none");
        assert!(!none.contains("polyline") && !none.contains("NaN"), "{none}");
    }
}
