//! The answer of a model that confirms every finding in a second reading.

use serde_json::{Value, json};

/// Confirms the findings of a prompt by quoting the first line of each; `None` if the prompt is no second reading.
pub fn confirmed_second_reading(prompt: &str) -> Option<String> {
    let (_, rest) = prompt.split_once("\nThe findings:\n").or_else(|| prompt.split_once("The findings:\n"))?;
    let (findings, code) = rest.split_once("\nThe code:\n")?;
    let code: Vec<(Option<u32>, &str)> = code.lines().filter_map(code_line).collect();
    let readings = findings.lines().filter_map(finding_line).map(|(number, line)| {
        let quoted = code.iter().find(|(at, _)| line.is_none() || *at == line).or_else(|| code.first());
        json!({"finding": number, "quote": quoted.map_or("", |(_, text)| text), "failure": "It does so with every input.",
            "refuted": false, "reason": "It stands."})
    });
    Some(json!({"readings": readings.collect::<Vec<Value>>()}).to_string())
}

/// `| Finding 1 (major, lines 2 to 3): …`, with its first line; `the whole file` has none.
fn finding_line(line: &str) -> Option<(u32, Option<u32>)> {
    let (number, rest) = line.strip_prefix("| Finding ")?.split_once(" (")?;
    let (_, place) = rest.split_once("): ")?.0.split_once(", ")?;
    let first = place.split(' ').find_map(|word| word.parse().ok());
    Some((number.parse().ok()?, first))
}

/// `|      2 + code`, or `|        - removed code`.
fn code_line(line: &str) -> Option<(Option<u32>, &str)> {
    let row = line.strip_prefix("| ")?;
    let (number, text) = (row.get(..6)?, row.get(9..).unwrap_or(""));
    let number = number.trim();
    if number.is_empty() {
        return row.get(7..8).filter(|sign| *sign == "-").map(|_| (None, text));
    }
    Some((Some(number.parse().ok()?), text))
}
