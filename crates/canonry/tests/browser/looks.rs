//! Finds problems of a page on a desktop and on a phone, in light and in dark mode.

use std::path::{Path, PathBuf};

use canonry_testkit::browser::{Page, Scheme, Viewport};

/// The path of a screenshot.
pub(crate) fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots").join(format!("{name}.png"))
}

/// The visible texts of charts that are less than 12 pixels high on the screen, each with its height.
const SMALL_CHART_TEXTS: &str = "[...document.querySelectorAll('svg text')] \
    .filter(one => one.checkVisibility() && one.textContent.trim()) \
    .map(one => [one.textContent.trim(), parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a]) \
    .filter(([, height]) => height < 11.95).map(([text, height]) => `${text} (${height.toFixed(1)} px)`)";

/// Opens a page once per look, saves a screenshot of each, and returns its problems: an unexpected status, a problem
/// that the browser reports, a page too wide for a phone, small text in a chart, an accessibility problem of any impact.
pub(crate) fn faults(page: &Page, name: &str, status: u16, open: impl Fn(&Page) -> u16) -> Vec<String> {
    let mut wrong = Vec::new();
    for (viewport, scheme, look) in [
        (Viewport::Desktop, Scheme::Light, "light"),
        (Viewport::Desktop, Scheme::Dark, "dark"),
        (Viewport::Phone, Scheme::Light, "phone"),
        (Viewport::Phone, Scheme::Dark, "phone-dark"),
    ] {
        page.look_as(viewport, scheme);
        if scheme == Scheme::Light {
            let answered = open(page);
            if answered != status {
                wrong.push(format!("{name} ({look}): answered with {answered}"));
            }
        }
        // Not `innerWidth`: on a phone that grows with content that is too wide.
        let too_wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        let too_wide = page.eval(too_wide).as_i64().unwrap_or_default();
        if too_wide > 1 {
            wrong.push(format!("{name} ({look}): {too_wide} pixels too wide"));
        }
        let small = page.eval(SMALL_CHART_TEXTS);
        let small = small.as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
        wrong.extend(small.map(|text| format!("{name} ({look}): small text in a chart: {text}")));
        // The browser reports every page with an error status.
        let expected = format!("status of {status} ");
        let told = page.problems().into_iter().filter(|told| status == 200 || !told.contains(&expected));
        wrong.extend(told.map(|problem| format!("{name} ({look}): {problem}")));
        page.screenshot(&picture(&format!("{name}-{look}")));
        wrong.extend(page.violations().into_iter().map(|one| {
            let first: Vec<&String> = one.elements.iter().take(3).collect();
            format!("{name} ({look}): {} ({}): {first:?}", one.help, one.rule)
        }));
    }
    wrong
}
