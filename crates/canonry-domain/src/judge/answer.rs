//! Parses a judge's answer strictly, and defines the schema of the answer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::intent::card_answer::clean;
use crate::text::answer_fence::unwrap_answer;
use crate::text::answer_fields::{AnswerFields, number, string, whole_number};
use crate::{
    Certainty, ItemNumber, PathMatch, Probability, Relation, RootCauseMatch, ScopeRelation, Structure, text_enum,
};

/// The maximum number of code points of the reasoning.
pub const REASONING_LIMIT: usize = 240;
/// The version of the judge's prompt. It increases whenever the old prompt could give another answer.
pub const JUDGE_PROMPT_VERSION: i64 = 3;

/// A judge's answer about a source and its candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeAnswer {
    pub is_duplicate: bool,
    /// `None` if the source is not a duplicate.
    pub duplicate_of: Option<ItemNumber>,
    pub confidence: Probability,
    pub reasoning: String,
    #[serde(flatten)]
    pub structure: Structure,
}

text_enum! {
    /// Why a text is not a valid answer.
    pub enum InvalidAnswer: "a kind of invalid answer" {
        /// The text is not JSON, or there is text before the JSON.
        NotJson = "not_json",
        TrailingText = "trailing_text",
        UnknownKey = "unknown_key",
        MissingKey = "missing_key",
        /// A value has the wrong type, a word is not one of the allowed words, or a key is duplicated.
        BadType = "bad_type",
        OutOfRange = "out_of_range",
        TargetNotInSet = "target_not_in_set",
        NoTarget = "no_target",
        /// What the answer quotes is not in the texts.
        QuoteNotFound = "quote_not_found",
        Refusal = "refusal",
        Empty = "empty",
    }
}

/// Parses an answer about these candidates.
///
/// One fenced block around the JSON is removed. Any other text around it is an error, because it would be unclear
/// which part is the answer. `is_duplicate`, `confidence` and `reasoning` are required. If the answer is no, a target
/// is dropped: models then name the nearest candidate, or 0, or -1. Quotes are checked by the caller, who has the texts
/// ([`crate::is_quoted`]).
pub fn parse_judge_answer(answer: &str, candidates: &[ItemNumber]) -> Result<JudgeAnswer, InvalidAnswer> {
    let text = unwrap_answer(answer);
    if text.is_empty() {
        return Err(InvalidAnswer::Empty);
    }
    let fields = AnswerFields::read(text, &KEYS)?;
    let is_duplicate = fields.required("is_duplicate")?;
    let confidence = fields.required("confidence")?;
    let reasoning = fields.required("reasoning")?;

    let is_duplicate: bool = serde_json::from_str(is_duplicate).map_err(|_| InvalidAnswer::BadType)?;
    let confidence = Probability::new(number(confidence)?).map_err(|_| InvalidAnswer::OutOfRange)?;
    let reasoning = clean(&string(reasoning)?).chars().take(REASONING_LIMIT).collect();
    for key in QUOTE_KEYS {
        fields.optional(key).map_or(Ok(String::new()), string)?;
    }
    let structure = Structure {
        relation: fields.word("relation")?,
        root_cause_match: fields.word("root_cause_match")?,
        scope_relation: fields.word("scope_relation")?,
        path_match: fields.word("path_match")?,
        certainty: fields.word("certainty")?,
    };
    let named = fields.optional("duplicate_of").map_or(Ok(0), whole_number);
    let duplicate_of = if is_duplicate {
        let target = match named? {
            0 => return Err(InvalidAnswer::NoTarget),
            named => ItemNumber::new(named).map_err(|_| InvalidAnswer::OutOfRange)?,
        };
        Some(target).filter(|target| candidates.contains(target)).ok_or(InvalidAnswer::TargetNotInSet)?.into()
    } else if named == Err(InvalidAnswer::BadType) {
        return Err(InvalidAnswer::BadType);
    } else {
        None
    };
    Ok(JudgeAnswer { is_duplicate, duplicate_of, confidence, reasoning, structure })
}

/// The JSON schema of an answer, in the subset that every provider's strict mode accepts: all keys are required, and
/// no others are allowed. The structural keys may be null, so that a model need not guess.
pub fn judge_answer_schema() -> Value {
    fn word(words: &[&str], description: &str) -> Value {
        json!({"anyOf": [{"type": "string", "enum": words}, {"type": "null"}], "description": description})
    }
    let text = |description: &str| json!({"type": ["string", "null"], "description": description});
    macro_rules! word {
        ($name:ident, $description:literal) => {
            word(&$name::ALL.iter().map(|value| value.as_str()).collect::<Vec<_>>(), $description)
        };
    }
    json!({
        "type": "object",
        "properties": {
            "fix": text("The one change that would settle both, in at most 200 characters; null when there is none"),
            "source_quote": text("The words of the source that state the problem, copied exactly; null without a fix"),
            "candidate_quote": text("The words of the candidate that state it, copied exactly; null without a fix"),
            "relation": word!(Relation, "What the source is to the candidate"),
            "root_cause_match": word!(RootCauseMatch, "Whether one change would settle both"),
            "scope_relation": word!(ScopeRelation, "How far the source reaches, measured by the candidate"),
            "path_match": word!(PathMatch, "Whether both take the same way through the program"),
            "certainty": word!(Certainty, "Whether the texts are enough to be sure"),
            "is_duplicate": {"type": "boolean", "description": "Whether the source is a duplicate of one candidate"},
            "duplicate_of": {"type": "integer", "description": "That candidate's number; 0 when it is a duplicate of none"},
            "confidence": {"type": "number", "description": "How likely is_duplicate is right, from 0 to 1"},
            "reasoning": {"type": "string", "description": "Why, in at most 240 characters"},
        },
        "required": KEYS,
        "additionalProperties": false,
    })
}

/// The keys that the prompt asks for since its version 2. An answer without them is valid.
const QUOTE_KEYS: [&str; 3] = ["fix", "source_quote", "candidate_quote"];

/// A model fills the fields in this order: what it bases its answer on comes before the answer. The sentence comes last:
/// a small model wants to end there, and where the schema forbade that, it wrote on until its limit.
const KEYS: [&str; 12] = [
    "fix",
    "source_quote",
    "candidate_quote",
    "relation",
    "root_cause_match",
    "scope_relation",
    "path_match",
    "certainty",
    "is_duplicate",
    "duplicate_of",
    "confidence",
    "reasoning",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use serde_json::{Value, json};

    use super::{InvalidAnswer, JudgeAnswer, KEYS, REASONING_LIMIT, judge_answer_schema, parse_judge_answer};
    use crate::{Certainty, ItemNumber, PathMatch, Relation, RootCauseMatch, ScopeRelation, Structure};

    fn parse(answer: &str) -> Result<JudgeAnswer, InvalidAnswer> {
        parse_judge_answer(answer, &[9_001, 9_002].map(|number| ItemNumber::new(number).expect("positive")))
    }

    fn yes() -> Value {
        json!({"is_duplicate": true, "duplicate_of": 9_001, "confidence": 0.93, "reasoning": "Same error."})
    }

    fn with(key: &str, value: Value) -> String {
        let mut answer = yes();
        answer[key] = value;
        answer.to_string()
    }

    /// The answer with `value` inserted as raw JSON.
    fn raw(key: &str, value: &str) -> String {
        with(key, json!("RAW")).replace("\"RAW\"", value)
    }

    fn without(key: &str) -> String {
        let mut answer = yes();
        answer.as_object_mut().expect("an object").remove(key);
        answer.to_string()
    }

    #[test]
    fn a_yes_and_a_no_are_read() {
        let answer = parse(&yes().to_string()).expect("an answer");
        assert_eq!((answer.is_duplicate, answer.duplicate_of.map(ItemNumber::get)), (true, Some(9_001)));
        assert_eq!((answer.confidence.get(), answer.reasoning.as_str()), (0.93, "Same error."));
        assert_eq!(answer.structure, Structure::default());
        for duplicate_of in ["0", "null", "-1", "9001", "77", "0.0", "1e300", "99999999999999999999"] {
            let no = raw("duplicate_of", duplicate_of).replace("true", "false");
            let answer = parse(&no).expect(duplicate_of);
            assert_eq!((answer.is_duplicate, answer.duplicate_of), (false, None), "{duplicate_of}");
        }
        let no = parse(&without("duplicate_of").replace("true", "false")).expect("a no");
        assert_eq!(no.duplicate_of, None);
        for same in ["9001.0", "9.001e3"] {
            let answer = parse(&raw("duplicate_of", same)).expect(same);
            assert_eq!(answer.duplicate_of.map(ItemNumber::get), Some(9_001), "{same}");
        }
    }

    #[test]
    fn the_five_structural_keys_are_read() {
        let mut answer = yes();
        for (key, word) in [
            ("relation", "related_followup"),
            ("root_cause_match", "adjacent"),
            ("scope_relation", "source_superset"),
            ("path_match", "unknown"),
            ("certainty", "unsure"),
        ] {
            answer[key] = json!(word);
        }
        let read = parse(&answer.to_string()).expect("an answer");
        assert_eq!(
            read.structure,
            Structure {
                relation: Some(Relation::RelatedFollowup),
                root_cause_match: Some(RootCauseMatch::Adjacent),
                scope_relation: Some(ScopeRelation::SourceSuperset),
                path_match: Some(PathMatch::Unknown),
                certainty: Some(Certainty::Unsure),
            }
        );
        let stored = serde_json::to_value(&read).expect("serialises");
        assert_eq!(stored, answer, "what is stored has the shape of what was asked for");
        assert_eq!(serde_json::from_value::<JudgeAnswer>(stored).expect("reads back"), read);
        let nulls = with("relation", json!(null));
        assert_eq!(parse(&nulls).expect("an answer").structure, Structure::default());
    }

    #[test]
    fn only_habits_around_the_answer_are_forgiven() {
        let bare = parse(&yes().to_string());
        for around in ["```json\n{}\n```", "```\n{}\n```\n", " \u{feff}{}\r\n", "```JSON\r\n{}\r\n```"] {
            assert_eq!(parse(&around.replace("{}", &yes().to_string())), bare, "{around}");
        }
        for (around, expected) in [
            ("{} That is all.", InvalidAnswer::TrailingText),
            ("{}{}", InvalidAnswer::TrailingText),
            ("```json\n{}\n```\nHope this helps!", InvalidAnswer::TrailingText),
            ("```json\n{}\n```\n```json\n{}\n```", InvalidAnswer::TrailingText),
            ("```json\n{}", InvalidAnswer::NotJson),
            ("Here it is: {}", InvalidAnswer::NotJson),
            ("I'm sorry for the wait: {}", InvalidAnswer::NotJson),
            ("Sure.\n```json\n{}\n```", InvalidAnswer::NotJson),
            ("[{}]", InvalidAnswer::BadType),
        ] {
            assert_eq!(parse(&around.replace("{}", &yes().to_string())), Err(expected), "{around}");
        }
    }

    #[test]
    fn every_kind_of_invalid_answer() {
        for (text, expected) in [
            ("", InvalidAnswer::Empty),
            (" \u{feff}\n", InvalidAnswer::Empty),
            ("```json\n```", InvalidAnswer::Empty),
            ("{", InvalidAnswer::NotJson),
            ("Yes, a duplicate of #9001", InvalidAnswer::NotJson),
            ("The author says: I can't log in", InvalidAnswer::NotJson),
            ("null", InvalidAnswer::BadType),
            ("\"no\"", InvalidAnswer::BadType),
            ("{}", InvalidAnswer::MissingKey),
            ("I can't help with that.", InvalidAnswer::Refusal),
            ("I cannot judge these.", InvalidAnswer::Refusal),
            ("I’m sorry, but I can’t assist with that request.", InvalidAnswer::Refusal),
            ("I am unable to compare them.", InvalidAnswer::Refusal),
            ("Sorry, that is not possible.", InvalidAnswer::Refusal),
            ("Unfortunately, I won't do that.", InvalidAnswer::Refusal),
        ] {
            assert_eq!(parse(text), Err(expected), "{text}");
        }
        for (answer, expected) in [
            (with("mood", json!("good")), InvalidAnswer::UnknownKey),
            (with("Confidence", json!(0.9)), InvalidAnswer::UnknownKey),
            (without("is_duplicate"), InvalidAnswer::MissingKey),
            (without("confidence"), InvalidAnswer::MissingKey),
            (without("reasoning"), InvalidAnswer::MissingKey),
            (without("duplicate_of"), InvalidAnswer::NoTarget),
            (raw("duplicate_of", "0"), InvalidAnswer::NoTarget),
            (raw("duplicate_of", "null"), InvalidAnswer::NoTarget),
            (raw("duplicate_of", "9003"), InvalidAnswer::TargetNotInSet),
            (raw("duplicate_of", "9223372036854775807"), InvalidAnswer::TargetNotInSet),
            (raw("duplicate_of", "-9001"), InvalidAnswer::OutOfRange),
            (raw("duplicate_of", "99999999999999999999"), InvalidAnswer::OutOfRange),
            (raw("duplicate_of", "1e999"), InvalidAnswer::OutOfRange),
            (raw("duplicate_of", "9001.5"), InvalidAnswer::BadType),
            (raw("duplicate_of", "\"9001\""), InvalidAnswer::BadType),
            (raw("duplicate_of", "true"), InvalidAnswer::BadType),
            (raw("duplicate_of", "[9001]"), InvalidAnswer::BadType),
            (raw("duplicate_of", "9001.5").replace("true", "false"), InvalidAnswer::BadType),
            (raw("is_duplicate", "\"true\""), InvalidAnswer::BadType),
            (raw("is_duplicate", "1"), InvalidAnswer::BadType),
            (raw("is_duplicate", "null"), InvalidAnswer::BadType),
            (raw("confidence", "\"0.9\""), InvalidAnswer::BadType),
            (raw("confidence", "\"NaN\""), InvalidAnswer::BadType),
            (raw("confidence", "null"), InvalidAnswer::BadType),
            (raw("confidence", "NaN"), InvalidAnswer::NotJson),
            (raw("confidence", "Infinity"), InvalidAnswer::NotJson),
            (raw("confidence", "-Infinity"), InvalidAnswer::NotJson),
            (raw("confidence", ".9"), InvalidAnswer::NotJson),
            (raw("confidence", "1.2"), InvalidAnswer::OutOfRange),
            (raw("confidence", "-0.1"), InvalidAnswer::OutOfRange),
            (raw("confidence", "95"), InvalidAnswer::OutOfRange),
            (raw("confidence", "1e999"), InvalidAnswer::OutOfRange),
            (raw("confidence", "123456789012345678901234567890"), InvalidAnswer::OutOfRange),
            (raw("reasoning", "null"), InvalidAnswer::BadType),
            (raw("reasoning", "[\"a\"]"), InvalidAnswer::BadType),
            (raw("reasoning", r#""\ud800""#), InvalidAnswer::NotJson),
            (with("relation", json!("identical")), InvalidAnswer::BadType),
            (with("relation", json!("Same_Instance")), InvalidAnswer::BadType),
            (with("relation", json!("")), InvalidAnswer::BadType),
            (with("certainty", json!(1)), InvalidAnswer::BadType),
            (with("path_match", json!(["same"])), InvalidAnswer::BadType),
            (yes().to_string().replacen('{', "{\"confidence\":0.1,", 1), InvalidAnswer::BadType),
            (raw("relation", &"[".repeat(100_000)), InvalidAnswer::NotJson),
            (raw("relation", &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), InvalidAnswer::BadType),
        ] {
            assert_eq!(parse(&answer), Err(expected), "{}", answer.chars().take(300).collect::<String>());
        }
    }

    #[test]
    fn reasoning_is_cut_by_code_points_and_has_no_control_characters() {
        let long = parse(&with("reasoning", json!("ä".repeat(400)))).expect("an answer");
        assert_eq!(long.reasoning, "ä".repeat(REASONING_LIMIT));
        let hostile = parse(&with("reasoning", json!("a\u{0}b\r\n\tc\u{1b}[31m"))).expect("an answer");
        assert_eq!(hostile.reasoning, "a b c [31m");
        assert_eq!(parse(&with("reasoning", json!(""))).expect("an answer").reasoning, "");
    }

    #[test]
    fn the_schema_asks_for_exactly_what_is_read() {
        let schema = judge_answer_schema();
        let properties = schema["properties"].as_object().expect("properties");
        assert_eq!(properties.keys().map(String::as_str).collect::<Vec<_>>(), KEYS);
        assert_eq!(schema["required"], json!(KEYS));
        assert_eq!(schema["additionalProperties"], false);
        for key in &KEYS[3..8] {
            let words = properties[*key]["anyOf"][0]["enum"].as_array().expect("words");
            assert_eq!(properties[*key]["anyOf"][1]["type"], "null");
            for word in words {
                assert!(parse(&with(key, word.clone())).is_ok(), "{key} {word}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused(text in any::<String>()) {
            prop_assert!(parse(&text).is_err());
        }

        #[test]
        fn anything_put_into_an_answer_is_refused_or_in_bounds(at in 0_usize..200, put in "[\\PC{}\\[\\]\",:0-9.eE+-]{0,12}") {
            let mut answer = yes().to_string();
            let at = (0..=at.min(answer.len())).rev().find(|at| answer.is_char_boundary(*at)).expect("0 is one");
            answer.insert_str(at, &put);
            if let Ok(read) = parse(&answer) {
                prop_assert!((0.0..=1.0).contains(&read.confidence.get()));
                prop_assert_eq!(read.is_duplicate, read.duplicate_of.is_some());
                prop_assert!(read.duplicate_of.is_none_or(|target| [9_001, 9_002].contains(&target.get())));
                prop_assert!(read.reasoning.chars().count() <= REASONING_LIMIT);
            }
        }

        #[test]
        fn any_number_is_a_confidence_in_range_or_refused(confidence in any::<f64>()) {
            let read = parse(&raw("confidence", &format!("{confidence:e}")));
            if (0.0..=1.0).contains(&confidence) {
                prop_assert!((read.expect("in range").confidence.get() - confidence).abs() <= 0.000_050_001);
            } else if confidence.is_finite() {
                prop_assert_eq!(read, Err(InvalidAnswer::OutOfRange));
            } else {
                prop_assert_eq!(read, Err(InvalidAnswer::NotJson));
            }
        }
    }
}
