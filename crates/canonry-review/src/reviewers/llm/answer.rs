//! Defines the schemas of a model's answers, and parses them strictly.

use std::collections::BTreeMap;

use canonry_domain::review::{Category, Severity};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The findings of one answer that are read. A model that reports more about one part of a change is not reading it.
pub(super) const MOST_FINDINGS: usize = 25;
/// The limit of an answer in characters: far more than its tokens allow.
const LONGEST_ANSWER: usize = 400_000;

/// Why a text is not an answer. It reads after "the answer".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    Empty,
    TooLong,
    NotJson,
    TrailingText,
    OtherShape,
}

impl Unusable {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "was empty",
            Self::TooLong => "was too long",
            Self::NotJson => "was not JSON",
            Self::TrailingText => "had text after the JSON",
            Self::OtherShape => "did not match the schema",
        }
    }
}

/// A model's claim in the right form; it has not been checked yet against the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimedFinding {
    pub(super) title: String,
    pub(super) message: String,
    pub(super) path: String,
    pub(super) line: Option<u32>,
    pub(super) end_line: Option<u32>,
    pub(super) severity: Severity,
    pub(super) category: Category,
    pub(super) suggestion: Option<String>,
    /// Code for the lines from `line` to `end_line`.
    pub(super) replacement: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnusableClaim {
    /// Reads after "it".
    pub(super) why: String,
    /// Whether the entry calls itself critical, so that losing it leaves a gap.
    pub(super) is_critical: bool,
}

/// Reads the findings of an answer: each in the right form, or what is wrong with it. At most [`MOST_FINDINGS`] are
/// read; if there are more, the last entry says so.
pub(super) fn read_findings_answer(answer: &str) -> Result<Vec<Result<ClaimedFinding, UnusableClaim>>, Unusable> {
    let document: ClaimsJson<'_> = read_object(answer)?;
    let mut claims: Vec<Result<ClaimedFinding, UnusableClaim>> =
        document.findings.iter().take(MOST_FINDINGS).map(|raw| read_claim(raw.get())).collect();
    let more = document.findings.len().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        let why = format!("and {more} more are beyond the {MOST_FINDINGS} that an answer may have");
        let is_critical = document.findings.iter().skip(MOST_FINDINGS).any(|raw| is_critical(raw.get()));
        claims.push(Err(UnusableClaim { why, is_critical }));
    }
    Ok(claims)
}

/// Reads the verdicts of a second reading. Of several about one finding the first counts.
pub(super) fn read_verdicts(answer: &str) -> Result<BTreeMap<usize, SecondVerdict>, Unusable> {
    let document: VerdictsJson = read_object(answer)?;
    let mut verdicts = BTreeMap::new();
    for verdict in document.readings {
        verdicts.entry(verdict.finding).or_insert(verdict);
    }
    Ok(verdicts)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerdictsJson {
    readings: Vec<SecondVerdict>,
}

/// What a second reading says about one finding.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecondVerdict {
    /// The number of the finding in the question.
    pub(super) finding: usize,
    /// The line that the finding is about.
    pub(super) quote: String,
    /// How it fails; empty if the code does not show it.
    pub(super) failure: String,
    pub(super) refuted: bool,
    pub(super) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimsJson<'a> {
    /// Parsed one by one, so that an invalid finding does not spoil the others.
    #[serde(borrow)]
    findings: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimJson {
    title: String,
    message: String,
    path: String,
    line: Option<u32>,
    end_line: Option<u32>,
    severity: String,
    category: String,
    suggestion: Option<String>,
    replacement: Option<String>,
}

fn read_claim(text: &str) -> Result<ClaimedFinding, UnusableClaim> {
    claim(text).map_err(|why| UnusableClaim { why, is_critical: is_critical(text) })
}

/// Whether an entry calls itself critical, whatever else is wrong with it.
fn is_critical(text: &str) -> bool {
    let entry: Option<Value> = serde_json::from_str(text).ok();
    let severity = entry.as_ref().and_then(|entry| entry.get("severity")?.as_str());
    severity.is_some_and(|word| word.trim().eq_ignore_ascii_case(Severity::Critical.as_str()))
}

fn claim(text: &str) -> Result<ClaimedFinding, String> {
    // Serde would accept a list as the values in their order.
    if !text.starts_with('{') {
        return Err("is no object".to_owned());
    }
    let written: ClaimJson = serde_json::from_str(text).map_err(|_| "does not match the schema".to_owned())?;
    let severity = written.severity.trim().to_ascii_lowercase().parse().map_err(|_| "has no severity".to_owned())?;
    let category = written.category.trim().to_ascii_lowercase().parse().map_err(|_| "has no category".to_owned())?;
    Ok(ClaimedFinding {
        title: written.title,
        message: written.message,
        path: written.path,
        line: written.line,
        end_line: written.end_line,
        severity,
        category,
        suggestion: written.suggestion,
        replacement: written.replacement,
    })
}

pub(super) fn read_object<'a, T: Deserialize<'a>>(answer: &'a str) -> Result<T, Unusable> {
    if answer.len() > LONGEST_ANSWER {
        return Err(Unusable::TooLong);
    }
    let text = unwrapped(answer);
    if text.is_empty() {
        return Err(Unusable::Empty);
    }
    if !text.starts_with('{') {
        let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
        return Err(if is_json { Unusable::OtherShape } else { Unusable::NotJson });
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let raw = <&RawValue>::deserialize(&mut reader).map_err(|_| Unusable::NotJson)?;
    reader.end().map_err(|_| Unusable::TrailingText)?;
    serde_json::from_str(raw.get()).map_err(|_| Unusable::OtherShape)
}

/// The answer without white space and without one fenced block around it, which models often add. Any other text beside
/// it makes the answer invalid later: nobody knows which part is the answer.
fn unwrapped(answer: &str) -> &str {
    let text = answer.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inside.and_then(|inside| inside.split_once('\n')) {
        Some((info, content)) if info.trim().chars().all(|character| character.is_ascii_alphanumeric()) => {
            content.trim()
        }
        _ => text,
    }
}

/// The schema of findings, in the subset that every provider's strict mode accepts: all keys required, no other keys.
pub(super) fn findings_schema() -> Value {
    let severities: Vec<&str> = Severity::ALL.iter().map(|one| one.as_str()).collect();
    let categories: Vec<&str> = Category::ALL.iter().map(|one| one.as_str()).collect();
    let or_null = |kind: &str, description: &str| json!({"anyOf": [{"type": kind}, {"type": "null"}], "description": description});
    json!({
        "type": "object",
        "properties": {
            "findings": {
                "type": "array",
                "description": "What is wrong with the change; empty when nothing is",
                "items": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string", "description": "The problem in at most 12 words, without names of variables or numbers of lines"},
                        "message": {"type": "string", "description": "What goes wrong, when, and why"},
                        "path": {"type": "string", "description": "The file, exactly as its `path:` says"},
                        "line": or_null("integer", "The line in the new version; null when it is about the whole file"),
                        "end_line": or_null("integer", "The last line, when there are several"),
                        "severity": {"type": "string", "enum": severities},
                        "category": {"type": "string", "enum": categories},
                        "suggestion": or_null("string", "What to do instead, in words"),
                        "replacement": or_null("string", "The lines from `line` to `end_line` as they should be, whole, with their indentation; null if that is not the whole fix"),
                    },
                    "required": ["title", "message", "path", "line", "end_line", "severity", "category", "suggestion", "replacement"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["findings"],
        "additionalProperties": false,
    })
}

pub(super) fn verdict_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "readings": {
                "type": "array",
                "description": "One for each finding",
                "items": {
                    "type": "object",
                    "properties": {
                        "finding": {"type": "integer", "description": "The number of the finding"},
                        "quote": {"type": "string", "description": "The line that the finding is about, copied from the code; empty when no line is"},
                        "failure": {"type": "string", "description": "Which input or order of events leads to which wrong result; empty when the code does not show one"},
                        "refuted": {"type": "boolean", "description": "Whether the code shows that the finding is wrong"},
                        "reason": {"type": "string", "description": "What decides it, in at most three sentences"},
                    },
                    "required": ["finding", "quote", "failure", "refuted", "reason"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["readings"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{Category, Severity};
    use proptest::prelude::{any, prop_assert, proptest};
    use serde_json::{Value, json};

    use super::{MOST_FINDINGS, Unusable, UnusableClaim, read_findings_answer, read_verdicts};

    fn finding() -> Value {
        json!({"title": "Off by one", "message": "The last one is left out.", "path": "src/a.rs", "line": 3, "end_line": null,
            "severity": "major", "category": "correctness", "suggestion": null})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut changed = finding();
        changed[key] = value;
        changed
    }

    #[test]
    fn an_answer_is_one_object_and_nothing_else() {
        let good = json!({"findings": [finding()]}).to_string();
        for text in [good.clone(), format!("```json\n{good}\n```"), format!("\u{feff} {good}\n")] {
            let claims = read_findings_answer(&text).expect("an answer");
            let claim = claims[0].as_ref().expect("a finding");
            assert_eq!((claim.severity, claim.category, claim.line), (Severity::Major, Category::Correctness, Some(3)));
        }
        for (text, expected) in [
            (String::new(), Unusable::Empty),
            ("I found nothing wrong with this change.".to_owned(), Unusable::NotJson),
            (format!("Here you are:\n```json\n{good}\n```"), Unusable::NotJson),
            (format!("{good}\nLet me know if you need more!"), Unusable::TrailingText),
            (format!("{good}{good}"), Unusable::TrailingText),
            (good[..good.len() - 2].to_owned(), Unusable::NotJson),
            ("[]".to_owned(), Unusable::OtherShape),
            ("[[]]".to_owned(), Unusable::OtherShape),
            ("{}".to_owned(), Unusable::OtherShape),
            (r#"{"findings": null}"#.to_owned(), Unusable::OtherShape),
            (r#"{"findings": [], "approved": true}"#.to_owned(), Unusable::OtherShape),
            (format!("{{\"findings\": [{}]}}", " ".repeat(500_000)), Unusable::TooLong),
        ] {
            assert_eq!(read_findings_answer(&text), Err(expected), "{text:.80}");
        }
    }

    #[test]
    fn a_finding_in_another_form_costs_only_itself() {
        for (bad, expected) in [
            (json!("x"), "is no object"),
            (json!(["t", "m", "p", 1, 1, "minor", "style", null]), "is no object"),
            (with("line", json!("3")), "does not match the schema"),
            (with("line", json!(3.5)), "does not match the schema"),
            (with("line", json!(-1)), "does not match the schema"),
            (with("line", json!(99_999_999_999_u64)), "does not match the schema"),
            (with("title", json!(null)), "does not match the schema"),
            (with("confidence", json!(1)), "does not match the schema"),
            (with("severity", json!("blocker")), "has no severity"),
            (with("category", json!("nit")), "has no category"),
        ] {
            let claims =
                read_findings_answer(&json!({"findings": [bad.clone(), finding()]}).to_string()).expect("read");
            assert_eq!(claims[0].as_ref().map_err(|no| no.why.as_str()).err(), Some(expected), "{bad}");
            assert!(claims[1].is_ok());
        }
        let mut grave = with("line", json!("3"));
        grave["severity"] = json!(" Critical");
        let claims = read_findings_answer(&json!({"findings": [grave]}).to_string()).expect("read");
        assert!(claims[0].as_ref().is_err_and(|no| no.is_critical), "{claims:?}");
        let infinite = r#"{"findings": [{"title": 1e999}]}"#;
        assert!(read_findings_answer(infinite).expect("an answer")[0].is_err());
    }

    #[test]
    fn too_many_findings_are_cut_and_told() {
        let many = vec![finding(); MOST_FINDINGS + 3];
        let claims = read_findings_answer(&json!({"findings": many}).to_string()).expect("an answer");
        assert_eq!(claims.len(), MOST_FINDINGS + 1);
        let why = "and 3 more are beyond the 25 that an answer may have".to_owned();
        assert_eq!(claims[MOST_FINDINGS], Err(UnusableClaim { why, is_critical: false }));
    }

    #[test]
    fn verdicts() {
        let entry = |finding: Value, reason: &str| json!({"finding": finding, "quote": "", "failure": "", "refuted": true, "reason": reason});
        let answer =
            json!({"readings": [entry(json!(2), "Line 3 checks it."), entry(json!(2), "No."), entry(json!(7), "")]});
        let verdicts = read_verdicts(&answer.to_string()).expect("verdicts");
        assert_eq!(verdicts.keys().copied().collect::<Vec<_>>(), [2, 7]);
        assert_eq!(verdicts[&2].reason, "Line 3 checks it.");
        let mut more = entry(json!(1), "");
        more["sure"] = json!(true);
        for bad in [
            json!("yes"),
            json!({}),
            json!({"readings": [entry(json!("1"), "")]}),
            json!({"readings": [more]}),
            json!([true]),
        ] {
            assert!(read_verdicts(&bad.to_string()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_within_bounds(text in any::<String>(), keys in proptest::collection::vec("(title|message|path|line|severity|x)", 0..6), entries in 0_usize..40) {
            let object: serde_json::Map<String, Value> = keys.into_iter().map(|key| (key, json!(text))).collect();
            let shaped = json!({"findings": vec![Value::Object(object); entries]}).to_string();
            for answer in [text.clone(), shaped, format!("```json\n{text}\n```"), format!("{{\"findings\": [{text}]}}")] {
                if let Ok(claims) = read_findings_answer(&answer) {
                    prop_assert!(claims.len() <= MOST_FINDINGS + 1);
                }
                let _ = read_verdicts(&answer);
            }
        }

        #[test]
        fn a_finding_cut_anywhere_is_never_half_read(cut in 0_usize..200) {
            let whole = json!({"findings": [finding()]}).to_string();
            if let Some(part) = whole.get(..cut).filter(|part| part.len() < whole.len()) {
                prop_assert!(read_findings_answer(part).is_err());
            }
        }
    }
}
