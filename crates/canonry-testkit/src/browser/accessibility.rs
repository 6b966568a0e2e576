//! Checks a page against axe-core's rules.

use std::fs;
use std::sync::OnceLock;

use serde_json::Value;

/// The variable with the path of axe-core's file.
pub const AXE_VARIABLE: &str = "CANONRY_TEST_AXE";

/// A rule that a page violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: String,
    /// The severity: minor, moderate, serious or critical.
    pub impact: String,
    pub help: String,
    /// The elements by their selectors, each with its problem.
    pub elements: Vec<String>,
}

/// The program to run in a page.
///
/// # Panics
/// If the variable is not set or the file cannot be read.
pub(super) fn source() -> &'static str {
    static SOURCE: OnceLock<String> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let path = std::env::var(AXE_VARIABLE)
            .unwrap_or_else(|_| panic!("{AXE_VARIABLE} is not set: run through `cargo xtask test`"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
    })
}

/// The expression that returns the violated rules, with elements as text.
pub(super) const QUESTION: &str = "axe.run(document, {resultTypes: ['violations']}).then(found => \
    found.violations.map(one => ({id: one.id, impact: one.impact, help: one.help, nodes: one.nodes.map(node => \
    node.target.join(' ') + ': ' + (node.failureSummary || '').replace(/\\s+/g, ' '))})))";

pub(super) fn violations(answer: &Value) -> Vec<Violation> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = answer.as_array().expect("axe-core answers with a list");
    list.iter()
        .map(|one| Violation {
            rule: word(&one["id"]),
            impact: word(&one["impact"]),
            help: word(&one["help"]),
            elements: one["nodes"].as_array().map(|nodes| nodes.iter().map(word).collect()).unwrap_or_default(),
        })
        .collect()
}
