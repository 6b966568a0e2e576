//! Reviews per day: findings and hidden findings as bars upwards, fixed findings as bars downwards.

use canonry_store::ReviewDay;

use super::Svg;

const TOP: f64 = 18.0;
const UP: f64 = 110.0;
const DOWN: f64 = 52.0;
const LEFT: f64 = 34.0;
/// Room for the dates.
const FOOT: f64 = 20.0;

pub(crate) fn days(days: &[ReviewDay]) -> Svg {
    let column = column(days.len());
    let (most_found, most_fixed) = most(days);
    // One scale for both directions, so that equal counts have equal lengths.
    let unit = (UP / most_found as f64).min(DOWN / most_fixed as f64);
    let (width, height) = (LEFT + column * days.len() as f64 + 8.0, TOP + UP + DOWN + FOOT);
    let base = TOP + UP;
    let mut svg = format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{}"><defs><pattern id="days-hidden" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="days-ground" width="5" height="5"/><path class="days-hatch" d="M0 0V5"/></pattern></defs>"#,
        title(days)
    );
    let (top, bottom) = (base - unit * most_found as f64, base + unit * most_fixed as f64);
    for (class, y, label) in [("grid", top, most_found), ("axis", base, 0), ("grid", bottom, most_fixed)] {
        svg += &format!(
            r#"<path class="{class}" d="M{LEFT} {y:.1}H{width:.0}"/><text x="{:.0}" y="{:.1}" text-anchor="end">{label}</text>"#,
            LEFT - 6.0,
            y + 4.0,
        );
    }
    let every = label_every(days.len());
    for (at, day) in days.iter().enumerate() {
        let (x, bar) = (LEFT + column * at as f64, column * 0.76);
        let tall = |count: u64| unit * count as f64;
        let shown = day.findings.saturating_sub(day.suppressed);
        let (seen, hidden, down) = (tall(shown), tall(day.suppressed), tall(day.fixed));
        for (class, y, tall) in
            [("s0", base - seen, seen), ("days-hidden", base - seen - hidden, hidden), ("good", base, down)]
        {
            if tall > 0.0 {
                let fill = if class == "days-hidden" { r#" fill="url(#days-hidden)""# } else { "" };
                svg += &format!(
                    r#"<rect class="{class}"{fill} x="{x:.1}" y="{y:.1}" width="{bar:.1}" height="{tall:.1}"/>"#
                );
            }
        }
        if (days.len() - 1 - at).is_multiple_of(every) {
            svg += &format!(
                r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                x + bar / 2.0,
                height - 5.0,
                day.date.strftime("%-d %b"),
            );
        }
    }
    Svg::new(svg + "</svg>")
}

/// Wide enough that a quarter is readable on a large screen, and a week fits on a phone.
fn column(days: usize) -> f64 {
    match days {
        0..=10 => 40.0,
        11..=40 => 28.0,
        _ => 10.0,
    }
}

fn label_every(days: usize) -> usize {
    match days {
        0..=10 => 1,
        11..=40 => 5,
        _ => 14,
    }
}

/// The maximum of both scales, at least 1.
fn most(days: &[ReviewDay]) -> (u64, u64) {
    let most = |count: fn(&ReviewDay) -> u64| days.iter().map(count).max().unwrap_or_default().max(1);
    (most(|day| day.findings), most(|day| day.fixed))
}

fn title(days: &[ReviewDay]) -> String {
    let sum = |count: fn(&ReviewDay) -> u64| days.iter().map(count).sum::<u64>();
    format!(
        "{} new findings in {} days, {} of them hidden; {} earlier ones fixed",
        sum(|day| day.findings),
        days.len(),
        sum(|day| day.suppressed),
        sum(|day| day.fixed)
    )
}

#[cfg(test)]
mod tests {
    use canonry_store::ReviewDay;
    use jiff::civil::date;

    use super::days;

    fn day(at: i8, findings: u64, suppressed: u64, fixed: u64) -> ReviewDay {
        ReviewDay { date: date(2026, 11, at), reviews: 1, findings, suppressed, fixed, avg_confidence: None }
    }

    fn heights(svg: &str, class: &str) -> Vec<f64> {
        let bars = svg.split("<rect ").filter(|rect| rect.starts_with(&format!("class=\"{class}\"")));
        let height = |rect: &str| rect.split("height=\"").nth(1)?.split('"').next()?.parse().ok();
        bars.filter_map(height).collect()
    }

    #[test]
    fn bars_stand_in_proportion_and_hidden_ones_on_top() {
        let svg = days(&[day(14, 0, 0, 0), day(15, 4, 1, 0), day(16, 2, 0, 1)]);
        let svg = svg.as_str();
        assert_eq!(heights(svg, "s0"), [82.5, 55.0]);
        assert_eq!(heights(svg, "days-hidden"), [27.5]);
        assert_eq!(heights(svg, "good"), [27.5]);
        assert!(svg.contains("6 new findings in 3 days, 1 of them hidden; 1 earlier ones fixed"), "{svg}");
        assert!(svg.contains(">16 Nov</text>") && svg.contains(">14 Nov</text>"), "{svg}");
    }

    #[test]
    fn a_quarter_has_few_labels_and_no_days_no_bars() {
        let quarter: Vec<ReviewDay> = (0..90).map(|_| day(1, 1, 0, 0)).collect();
        let svg = days(&quarter);
        assert_eq!(svg.as_str().matches("Nov</text>").count(), 7);
        let nothing = days(&[]);
        assert!(!nothing.as_str().contains("NaN") && heights(nothing.as_str(), "s0").is_empty());
    }
}
