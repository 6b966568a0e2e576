//! Parses a model's answer into an intent card, strictly, and defines the schema of the answer.

use serde_json::{Value, json};

use crate::text::answer_fence::unwrap_answer;
use crate::{ChangeIntent, EvidenceFact, EvidenceSource, IntentCard, ItemType};

/// The maximum number of code points of one text field; the prompt asks for far fewer.
pub const CARD_TEXT_LIMIT: usize = 2_000;
/// The maximum number of entries of one list.
pub const CARD_LIST_LIMIT: usize = 40;
/// The maximum number of code points of one entry.
pub const CARD_ENTRY_LIMIT: usize = 600;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    #[error("the answer is empty")]
    Empty,
    /// The answer is not one JSON value, alone or in one fenced block.
    #[error("the answer is not one JSON object: {0}")]
    NotJson(String),
    /// A key is unknown, missing or duplicated, or a value has the wrong type or is out of range.
    #[error("the answer is not a card: {0}")]
    NotACard(String),
    /// A field is longer than any plausible answer.
    #[error("the answer's {field} is too long: {length} where {limit} is the most")]
    TooLong {
        field: &'static str,
        /// The length in code points or entries.
        length: usize,
        limit: usize,
    },
    /// An issue's answer contains `change`, or a pull request's answer does not.
    #[error("the answer's key \"change\" belongs to pull requests and only to them")]
    WrongKind,
}

/// Parses a card from a model's answer.
///
/// One fenced block around the JSON is removed. Any other text around it is an error, because it would be unclear
/// which part is the answer. Control characters are removed: PostgreSQL cannot store all of them.
pub fn parse_intent_card(answer: &str, item_type: ItemType) -> Result<IntentCard, CardError> {
    let text = unwrap_answer(answer);
    if text.is_empty() {
        return Err(CardError::Empty);
    }
    // Serde would accept an array as the fields in their order.
    if !text.starts_with('{') {
        return Err(CardError::NotJson(format!("it begins with {:?}", text.chars().take(20).collect::<String>())));
    }
    let card: IntentCard = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => CardError::NotACard(error.to_string()),
        _ => CardError::NotJson(error.to_string()),
    })?;
    if card.change.is_some() != (item_type == ItemType::Pr) {
        return Err(CardError::WrongKind);
    }
    let card = cleaned(card);
    check_limits(&card)?;
    Ok(card)
}

/// The JSON schema of a card, in the subset that every provider's strict mode accepts: all keys are required, no
/// others are allowed, and length limits are given only in words.
pub fn intent_card_schema(item_type: ItemType) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let list = |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    let sources: Vec<&str> = EvidenceSource::ALL.iter().map(|source| source.as_str()).collect();
    let fact = object(&[("fact", text("One fact")), ("source", json!({"type": "string", "enum": sources}))]);
    let mut fields = vec![
        ("problem_statement", text("What is wrong or wanted, in one to three sentences")),
        ("desired_outcome", text("What should be the case instead; empty when it is not told")),
        ("important_signals", list("Error messages, stack frames, identifiers, verbatim")),
        ("scope_boundaries", list("What the item is and is not about: versions, systems, features")),
        (
            "evidence_facts",
            json!({"type": "array", "items": fact, "description": "Facts with the place they stand in"}),
        ),
        ("reported_claims", list("What the author says happened")),
        ("inference", list("What you conclude beyond the text")),
        ("unknowns", list("What the author says they do not know")),
        ("missing_info", list("What a maintainer would have to ask for")),
        (
            "insufficient_context",
            json!({"type": "boolean", "description": "Whether the item says too little to be compared"}),
        ),
        ("extraction_confidence", json!({"type": "number", "description": "How far you trust this card, from 0 to 1"})),
    ];
    if item_type == ItemType::Pr {
        let change = object(&[
            ("key_changed_components", list("The parts of the project that are touched")),
            ("behavioural_intent", text("How the program should behave afterwards")),
            ("change_summary", text("What was changed, in one to three sentences")),
            ("risk_notes", list("What a reviewer should look at")),
        ]);
        fields.push(("change", change));
    }
    object(&fields)
}

fn object(fields: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn cleaned(card: IntentCard) -> IntentCard {
    IntentCard {
        problem_statement: clean(&card.problem_statement),
        desired_outcome: clean(&card.desired_outcome),
        important_signals: clean_all(&card.important_signals),
        scope_boundaries: clean_all(&card.scope_boundaries),
        evidence_facts: card
            .evidence_facts
            .into_iter()
            .map(|fact| EvidenceFact { fact: clean(&fact.fact), ..fact })
            .filter(|fact| !fact.fact.is_empty())
            .collect(),
        reported_claims: clean_all(&card.reported_claims),
        inference: clean_all(&card.inference),
        unknowns: clean_all(&card.unknowns),
        missing_info: clean_all(&card.missing_info),
        insufficient_context: card.insufficient_context,
        extraction_confidence: card.extraction_confidence,
        change: card.change.map(|change| ChangeIntent {
            key_changed_components: clean_all(&change.key_changed_components),
            behavioural_intent: clean(&change.behavioural_intent),
            change_summary: clean(&change.change_summary),
            risk_notes: clean_all(&change.risk_notes),
        }),
    }
}

fn clean_all(entries: &[String]) -> Vec<String> {
    entries.iter().map(|entry| clean(entry)).filter(|entry| !entry.is_empty()).collect()
}

/// The text on one line, without control characters.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len().min(4 * CARD_TEXT_LIMIT));
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if !word.is_empty() {
            if !cleaned.is_empty() {
                cleaned.push(' ');
            }
            cleaned.push_str(word);
        }
    }
    cleaned
}

fn check_limits(card: &IntentCard) -> Result<(), CardError> {
    let mut texts = vec![("problem_statement", &card.problem_statement), ("desired_outcome", &card.desired_outcome)];
    let facts: Vec<&String> = card.evidence_facts.iter().map(|fact| &fact.fact).collect();
    let mut lists: Vec<(&'static str, Vec<&String>)> = vec![
        ("important_signals", card.important_signals.iter().collect()),
        ("scope_boundaries", card.scope_boundaries.iter().collect()),
        ("evidence_facts", facts),
        ("reported_claims", card.reported_claims.iter().collect()),
        ("inference", card.inference.iter().collect()),
        ("unknowns", card.unknowns.iter().collect()),
        ("missing_info", card.missing_info.iter().collect()),
    ];
    if let Some(change) = &card.change {
        texts.extend([("behavioural_intent", &change.behavioural_intent), ("change_summary", &change.change_summary)]);
        lists.extend([
            ("key_changed_components", change.key_changed_components.iter().collect()),
            ("risk_notes", change.risk_notes.iter().collect()),
        ]);
    }
    for (field, text) in texts {
        within(field, text.chars().count(), CARD_TEXT_LIMIT)?;
    }
    for (field, entries) in lists {
        within(field, entries.len(), CARD_LIST_LIMIT)?;
        for entry in entries {
            within(field, entry.chars().count(), CARD_ENTRY_LIMIT)?;
        }
    }
    Ok(())
}

fn within(field: &'static str, length: usize, limit: usize) -> Result<(), CardError> {
    if length <= limit { Ok(()) } else { Err(CardError::TooLong { field, length, limit }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use serde_json::{Value, json};

    use super::{CARD_LIST_LIMIT, CARD_TEXT_LIMIT, CardError, intent_card_schema, parse_intent_card};
    use crate::ItemType;

    fn answer() -> Value {
        json!({
            "problem_statement": "It\u{0} stops\n here", "desired_outcome": "", "important_signals": ["E1", " "],
            "scope_boundaries": [], "evidence_facts": [{"fact": "1.2", "source": "file_context"}],
            "reported_claims": [], "inference": [], "unknowns": [], "missing_info": [],
            "insufficient_context": false, "extraction_confidence": 0.75,
        })
    }

    fn pull_answer() -> Value {
        let mut answer = answer();
        answer["change"] = json!({"key_changed_components": ["a"], "behavioural_intent": "b", "change_summary": "c", "risk_notes": []});
        answer
    }

    fn with(key: &str, value: Value) -> String {
        let mut answer = answer();
        answer[key] = value;
        answer.to_string()
    }

    fn refused(answer: &str) -> String {
        parse_intent_card(answer, ItemType::Issue).expect_err(answer).to_string()
    }

    #[test]
    fn an_answer_is_read_bare_or_in_one_block() {
        let bare = parse_intent_card(&answer().to_string(), ItemType::Issue).expect("a card");
        assert_eq!((bare.problem_statement.as_str(), bare.important_signals.len()), ("It stops here", 1));
        for fenced in ["```json\n{}\n```", "```\n{}\n```\n", " \u{feff}{}\n", "```JSON\r\n{}\r\n```"] {
            let fenced = fenced.replace("{}", &answer().to_string());
            assert_eq!(parse_intent_card(&fenced, ItemType::Issue).as_ref(), Ok(&bare), "{fenced}");
        }
        let pull = parse_intent_card(&pull_answer().to_string(), ItemType::Pr).expect("a card");
        assert_eq!(pull.change.expect("of a pull request").change_summary, "c");
    }

    #[test]
    fn what_is_not_exactly_a_card_is_refused() {
        assert_eq!(refused(" \n"), "the answer is empty");
        assert_eq!(refused("```json\n```"), "the answer is empty");
        for text in ["I cannot help with that.", "{", "NaN", "Here it is:\n```json\n{}\n```"] {
            assert!(refused(text).starts_with("the answer is not one JSON object: "), "{text}");
        }
        let trailing = format!("{} and that is all", answer());
        assert!(refused(&trailing).contains("trailing characters"));
        let nan = with("extraction_confidence", json!(0.5)).replace("0.5", "NaN");
        assert!(refused(&nan).starts_with("the answer is not one JSON object: "), "{nan}");
        for (key, value, expected) in [
            ("extraction_confidence", json!(1.5), "1.5 is not a probability"),
            ("extraction_confidence", json!("NaN"), "invalid type: string \"NaN\""),
            ("extraction_confidence", json!(null), "invalid type: null"),
            ("mood", json!("bad"), "unknown field `mood`"),
            ("evidence_facts", json!([{"fact": "a", "source": "comments"}]), "unknown variant `comments`"),
            ("evidence_facts", json!([{"fact": "a", "source": "body", "line": 1}]), "unknown field `line`"),
            ("important_signals", json!("one"), "invalid type: string"),
            ("insufficient_context", json!("no"), "invalid type: string"),
        ] {
            let refused = refused(&with(key, value));
            assert!(refused.starts_with("the answer is not a card: ") && refused.contains(expected), "{refused}");
        }
        let mut without = answer();
        without.as_object_mut().expect("an object").remove("unknowns");
        assert!(refused(&without.to_string()).contains("missing field `unknowns`"));
        let twice = answer().to_string().replacen('{', "{\"unknowns\":[],", 1);
        assert!(refused(&twice).contains("duplicate field `unknowns`"));
        assert_eq!(refused("[]"), "the answer is not one JSON object: it begins with \"[]\"");
        let deep =
            with("unknowns", json!(0)).replace("\"unknowns\":0", &format!("\"unknowns\":{}", "[".repeat(10_000)));
        assert!(refused(&deep).starts_with("the answer is not "));
    }

    #[test]
    fn issues_change_nothing_and_pull_requests_something() {
        assert_eq!(parse_intent_card(&pull_answer().to_string(), ItemType::Issue), Err(CardError::WrongKind));
        assert_eq!(parse_intent_card(&answer().to_string(), ItemType::Pr), Err(CardError::WrongKind));
    }

    #[test]
    fn lengths_are_generous_and_end() {
        let card = parse_intent_card(&with("problem_statement", json!("ä".repeat(CARD_TEXT_LIMIT))), ItemType::Issue);
        assert_eq!(card.expect("as long as it may be").problem_statement.chars().count(), CARD_TEXT_LIMIT);
        for (key, value, expected) in [
            ("desired_outcome", json!("a".repeat(2_001)), "desired_outcome is too long: 2001 where 2000"),
            ("unknowns", json!(vec!["a"; CARD_LIST_LIMIT + 1]), "unknowns is too long: 41 where 40"),
            ("inference", json!(["a".repeat(601)]), "inference is too long: 601 where 600"),
        ] {
            assert!(refused(&with(key, value)).contains(expected), "{key}");
        }
    }

    /// The schema that a provider enforces and the parser must agree on every key.
    #[test]
    fn the_schema_asks_for_exactly_what_is_read() {
        for (item_type, answer) in [(ItemType::Issue, answer()), (ItemType::Pr, pull_answer())] {
            let schema = intent_card_schema(item_type);
            same_keys(&schema, &answer);
        }
    }

    fn same_keys(schema: &Value, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut wanted: Vec<&str> = schema["required"]
                    .as_array()
                    .expect("a list")
                    .iter()
                    .map(|key| key.as_str().expect("a key"))
                    .collect();
                wanted.sort_unstable();
                let mut have: Vec<&str> = fields.keys().map(String::as_str).collect();
                have.sort_unstable();
                assert_eq!(wanted, have);
                assert_eq!(schema["additionalProperties"], false);
                fields.iter().for_each(|(key, value)| same_keys(&schema["properties"][key], value));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| same_keys(&schema["items"], entry)),
            Value::String(_) => assert_eq!(schema["type"], "string"),
            Value::Number(_) => assert_eq!(schema["type"], "number"),
            Value::Bool(_) => assert_eq!(schema["type"], "boolean"),
            Value::Null => panic!("an answer has no null"),
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_card_or_refused(text in any::<String>()) {
            prop_assert!(parse_intent_card(&text, ItemType::Issue).is_err());
        }

        #[test]
        fn any_words_come_through_on_one_line(words in any::<String>()) {
            let card = parse_intent_card(&with("problem_statement", json!(words)), ItemType::Issue).expect("short enough");
            prop_assert!(!card.problem_statement.chars().any(char::is_control));
            let again = parse_intent_card(&with("problem_statement", json!(card.problem_statement)), ItemType::Issue);
            prop_assert_eq!(again.expect("short enough"), card);
        }
    }
}
