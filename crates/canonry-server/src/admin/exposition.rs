//! Prometheus' text format, version 0.0.4: families with their help, samples with their labels.

use std::fmt::Write as _;

pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone, Copy)]
pub(crate) enum MetricKind {
    /// A counter only grows while the process runs.
    Counter,
    Gauge,
    Histogram,
}

/// A metrics page. Each family begins once.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

pub(crate) struct MetricFamily<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    pub(crate) fn family<'a>(&'a mut self, name: &'a str, kind: MetricKind, help: &str) -> MetricFamily<'a> {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect(INFALLIBLE);
        MetricFamily { text: &mut self.text, name }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl MetricFamily<'_> {
    pub(crate) fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.part("", labels, value);
    }

    /// Adds a histogram: the number of samples up to each bound, the number of all samples, and their sum.
    pub(crate) fn histogram(&mut self, labels: &[(&str, &str)], at_most: &[(f64, u64)], count: u64, sum: f64) {
        let bounds = at_most.iter().map(|(bound, count)| (number(*bound), *count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.part("_bucket", &labels, count as f64);
        }
        self.part("_sum", labels, sum);
        self.part("_count", labels, count as f64);
    }

    fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.text, "{}{suffix}{labels} {}", self.name, number(value)).expect(INFALLIBLE);
    }
}

const INFALLIBLE: &str = "invariant: a String takes everything";

/// Escapes a label's value. Label and repository names come from strangers and must not begin a new line.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

fn number(value: f64) -> String {
    if value == f64::INFINITY {
        "+Inf".to_owned()
    } else if value == f64::NEG_INFINITY {
        "-Inf".to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposition, MetricKind};

    #[test]
    fn a_page_is_what_the_format_says() {
        let mut page = Exposition::default();
        let mut family = page.family("canonry_x", MetricKind::Gauge, "One \\ line\nonly.");
        family.sample(&[], 85.0);
        family.sample(&[("repo", "octo/cat"), ("component", "a\"b\\c\n# TYPE x\u{1f980}")], 0.25);
        family.sample(&[("of", "")], f64::INFINITY);
        page.family("canonry_y", MetricKind::Histogram, "Seconds.").histogram(
            &[("kind", "a")],
            &[(0.1, 1), (5.0, 3)],
            4,
            9.5,
        );
        insta::assert_snapshot!(page.into_text(), @r#"
        # HELP canonry_x One \\ line\nonly.
        # TYPE canonry_x gauge
        canonry_x 85
        canonry_x{repo="octo/cat",component="a\"b\\c\n# TYPE x🦀"} 0.25
        canonry_x{of=""} +Inf
        # HELP canonry_y Seconds.
        # TYPE canonry_y histogram
        canonry_y_bucket{kind="a",le="0.1"} 1
        canonry_y_bucket{kind="a",le="5"} 3
        canonry_y_bucket{kind="a",le="+Inf"} 4
        canonry_y_sum{kind="a"} 9.5
        canonry_y_count{kind="a"} 4
        "#);
    }
}
