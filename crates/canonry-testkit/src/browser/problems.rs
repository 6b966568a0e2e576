//! Problems that a browser reports: errors of scripts, blocked resources, error answers.

use serde_json::Value;

/// The problem in an event, as one line.
pub(super) fn problem(event: &Value) -> Option<String> {
    let parameters = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => {
            let details = &parameters["exceptionDetails"];
            let words = details["exception"]["description"].as_str().or(details["text"].as_str());
            Some(format!("a script failed: {}", words.unwrap_or_default()))
        }
        "Runtime.consoleAPICalled" if ["error", "assert", "warning"].contains(&parameters["type"].as_str()?) => {
            let words: Vec<String> = parameters["args"].as_array()?.iter().map(argument).collect();
            Some(format!("console.{}: {}", parameters["type"].as_str()?, words.join(" ")))
        }
        // These events report resources that a policy blocks, and 404 answers.
        "Log.entryAdded" if ["error", "warning"].contains(&parameters["entry"]["level"].as_str()?) => {
            let entry = &parameters["entry"];
            Some(format!("{} ({})", entry["text"].as_str()?, entry["url"].as_str().unwrap_or_default()))
        }
        "Network.loadingFailed" if parameters["canceled"] != true => {
            Some(format!("not loaded: {}", parameters["errorText"].as_str().unwrap_or_default()))
        }
        _ => None,
    }
}

fn argument(value: &Value) -> String {
    match value["value"].as_str().or(value["description"].as_str()) {
        Some(words) => words.to_owned(),
        None => value["value"].to_string(),
    }
}
