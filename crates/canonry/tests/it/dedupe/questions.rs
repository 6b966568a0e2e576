//! The questions to the judge, and its scripted answers.

use canonry_testkit::models::ModelRequest;
use serde_json::{Value, json};

/// One question to a judge, as read from its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) model: String,
    pub(crate) source: i64,
    /// The items of which it may be a duplicate, in the order of the prompt.
    pub(crate) candidates: Vec<i64>,
}

impl Question {
    /// Finds the items by their titles, the source first; `None` if the prompt contains no known title.
    pub(crate) fn read(request: &ModelRequest, titles: &[(i64, String)]) -> Option<Self> {
        let prompt = request.prompt();
        let mut told: Vec<(usize, i64)> =
            titles.iter().filter_map(|(number, title)| Some((prompt.find(title.as_str())?, *number))).collect();
        told.sort_unstable();
        let mut numbers = told.into_iter().map(|(_, number)| number);
        let source = numbers.next()?;
        Some(Self { model: request.model().to_owned(), source, candidates: numbers.collect() })
    }
}

pub(crate) fn no() -> String {
    json!({"is_duplicate": false, "duplicate_of": 0, "confidence": 0.2, "reasoning": "Different root cause."})
        .to_string()
}

pub(crate) fn yes(of: i64, confidence: f64) -> String {
    yes_with(of, confidence, &full_structure())
}

/// A duplicate, without any structure.
pub(crate) fn bare_yes(of: i64, confidence: f64) -> String {
    yes_with(of, confidence, &json!({}))
}

pub(crate) fn yes_with(of: i64, confidence: f64, structure: &Value) -> String {
    let mut answer = json!({
        "is_duplicate": true, "duplicate_of": of, "confidence": confidence,
        "reasoning": "Both tell of the same summary that is written twice.",
    });
    let keys = structure.as_object().expect("structure is an object");
    answer.as_object_mut().expect("an answer is an object").extend(keys.clone());
    answer.to_string()
}

pub(crate) fn full_structure() -> Value {
    json!({
        "relation": "same_instance", "root_cause_match": "same", "scope_relation": "same_scope",
        "path_match": "same", "certainty": "sure",
    })
}

/// Full structure with some keys changed; `null` removes a key.
pub(crate) fn structure_with(changed: &Value) -> Value {
    let mut structure = full_structure();
    let keys = structure.as_object_mut().expect("structure is an object");
    for (key, value) in changed.as_object().expect("changes are an object") {
        keys.insert(key.clone(), value.clone());
    }
    keys.retain(|_, value| !value.is_null());
    structure
}
