//! Checks a value of the file against its part of the schema.

use std::borrow::Cow;

use regex::Regex;
use serde_json::{Map, Number, Value};

use crate::document::{Position, YamlContent, YamlKey, YamlNode};
use crate::nearest::nearest;
use crate::quoting::quoted;
use crate::schema::{SCHEMA, allowed_values, alternatives, path_of_key, plain_number, type_names};
use crate::{PathGlob, Pattern};

#[derive(Debug)]
pub(crate) struct SettingFault {
    pub(crate) path: String,
    pub(crate) at: Position,
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
}

/// Returns the valid JSON of a value, and its faults. Dropped list entries are left out; with any other fault there
/// is no JSON.
pub(crate) fn check(schema: &Value, node: &YamlNode, path: &str) -> (Option<Value>, Vec<SettingFault>) {
    let mut checker = Checker { faults: Vec::new() };
    let value = checker.value(schema, node, path);
    (value, checker.faults)
}

/// The fault of a key that is unknown at its position.
pub(crate) fn unknown_key(schema: &Value, key: &YamlKey, parent: &str) -> SettingFault {
    let siblings = schema.get("properties").and_then(Value::as_object);
    let near = siblings.and_then(|keys| nearest(&key.text, keys.keys().map(String::as_str)));
    let suggestion = match near {
        Some(near) => Some(near.to_owned()),
        None => path_of_key(&SCHEMA, &key.text),
    };
    SettingFault {
        message: match parent {
            "" => format!("{} is not a known section", quoted(&key.text)),
            _ => format!("{} is not a known key of `{parent}`", quoted(&key.text)),
        },
        path: join(parent, &key.text),
        at: key.at,
        suggestion,
    }
}

/// The fault of a key that is written twice.
pub(crate) fn duplicate_key(key: &YamlKey, first: Position, parent: &str) -> SettingFault {
    let path = join(parent, &key.text);
    SettingFault {
        message: format!("`{path}` is written twice, first in line {}, column {}", first.line, first.column),
        path,
        at: key.at,
        suggestion: None,
    }
}

/// The message about a value that must be a mapping and is not.
pub(crate) fn no_mapping(node: &YamlNode) -> String {
    format!("must be a mapping of keys, but is {}", found(&node.content))
}

/// The number of faults that are reported for a section. People fix the first ones and check again; a file full of
/// mistakes must not fill a page or a log.
const MAX_FAULTS: usize = 50;

struct Checker {
    faults: Vec<SettingFault>,
}

impl Checker {
    fn value(&mut self, schema: &Value, node: &YamlNode, path: &str) -> Option<Value> {
        if let Some(choices) = alternatives(schema) {
            let fitting = choices.iter().find(|choice| has_type(&type_names(choice), &node.content));
            return match fitting {
                Some(choice) => self.value(choice, node, path),
                None => self.wrong_type(schema, node, path),
            };
        }
        if !has_type(&type_names(schema), &node.content) {
            return self.wrong_type(schema, node, path);
        }
        match node.content.as_ref() {
            YamlContent::Null => Some(Value::Null),
            YamlContent::Bool(value) => Some(Value::Bool(*value)),
            YamlContent::Integer(value) => self.number(schema, node, path, Number::from(*value)),
            YamlContent::Float(value) => self.float(schema, node, path, *value),
            YamlContent::Text(text) => self.text(schema, node, path, text),
            YamlContent::List(items) => self.list(schema, node, path, items),
            YamlContent::Map(entries) => self.mapping(schema, node, path, entries),
        }
    }

    fn float(&mut self, schema: &Value, node: &YamlNode, path: &str, value: f64) -> Option<Value> {
        let integer = type_names(schema).contains(&"integer");
        // In JSON Schema 7.0 is an integer; a value that is too large for an integer is out of any range.
        let number = if integer && value.abs() < 1e15 {
            Some(Number::from(value as i64))
        } else {
            // Adding zero turns −0 into 0, which would otherwise be a different configuration.
            Number::from_f64(value + 0.0)
        };
        match number {
            Some(number) => self.number(schema, node, path, number),
            None => self.fault(path, node.at, "must be a finite number", None),
        }
    }

    fn number(&mut self, schema: &Value, node: &YamlNode, path: &str, number: Number) -> Option<Value> {
        let value = number.as_f64()?;
        let minimum = schema.get("minimum").and_then(Value::as_f64);
        let maximum = schema.get("maximum").and_then(Value::as_f64);
        let too_small = minimum.is_some_and(|minimum| value < minimum);
        let too_large = maximum.is_some_and(|maximum| value > maximum);
        if too_small || too_large {
            let message = format!("must be {}, but is {number}", range_words(minimum, maximum));
            return self.fault(path, node.at, &message, None);
        }
        Some(Value::Number(number))
    }

    fn text(&mut self, schema: &Value, node: &YamlNode, path: &str, text: &str) -> Option<Value> {
        if let Some(allowed) = allowed_values(schema) {
            if allowed.contains(&text) {
                return Some(Value::from(text));
            }
            let message = format!("must be one of {}, but is {}", value_words(&allowed), quoted(text));
            let suggestion = nearest(text, allowed.iter().copied()).map(str::to_owned);
            return self.fault(path, node.at, &message, suggestion);
        }
        if let Some(message) = text_fault(schema, text) {
            return self.fault(path, node.at, &message, None);
        }
        Some(Value::from(text))
    }

    fn list(&mut self, schema: &Value, node: &YamlNode, path: &str, items: &[YamlNode]) -> Option<Value> {
        let count = items.len();
        let minimum = limit(schema, "minItems");
        let maximum = limit(schema, "maxItems");
        if minimum.is_some_and(|minimum| count < minimum) || maximum.is_some_and(|maximum| count > maximum) {
            let message = format!("must have {}, but has {count}", count_words(minimum, maximum, "entries"));
            return self.fault(path, node.at, &message, None);
        }
        let independent = schema.get("x-entries").is_some_and(|x| x == "independent");
        let item_schema = schema.get("items").unwrap_or(&Value::Null);
        let mut values = Vec::with_capacity(count);
        let mut complete = true;
        for (index, item) in items.iter().enumerate() {
            match self.value(item_schema, item, &format!("{path}[{index}]")) {
                Some(value) => values.push(value),
                None => complete &= independent,
            }
        }
        complete.then_some(Value::Array(values))
    }

    fn mapping(
        &mut self,
        schema: &Value,
        node: &YamlNode,
        path: &str,
        entries: &[(YamlKey, YamlNode)],
    ) -> Option<Value> {
        let faults_before = self.faults.len();
        let mut values = Map::new();
        let mut complete = true;
        for (index, (key, value)) in entries.iter().enumerate() {
            let known = schema.get("properties").and_then(|properties| properties.get(&key.text));
            let Some(known) = known else {
                self.note(|| unknown_key(schema, key, path));
                complete = false;
                continue;
            };
            if let Some((first, _)) = entries[..index].iter().find(|(k, _)| k.text == key.text) {
                self.note(|| duplicate_key(key, first.at, path));
                complete = false;
                continue;
            }
            match self.value(known, value, &join(path, &key.text)) {
                Some(value) => {
                    values.insert(key.text.clone(), value);
                }
                None => complete = false,
            }
        }
        // A misspelt required key is one mistake, not two.
        if self.faults.len() == faults_before {
            let required = schema.get("required").and_then(Value::as_array);
            for key in required.into_iter().flatten().filter_map(Value::as_str) {
                if !values.contains_key(key) {
                    complete = false;
                    self.fault(path, node.at, &format!("needs the key `{key}`"), None);
                }
            }
        }
        complete.then_some(Value::Object(values))
    }

    fn wrong_type(&mut self, schema: &Value, node: &YamlNode, path: &str) -> Option<Value> {
        let names = type_names(schema);
        let expected = match allowed_values(schema) {
            Some(allowed) => format!("one of {}", value_words(&allowed)),
            None => type_words(&names),
        };
        let mut message = format!("must be {expected}, but is {}", found(&node.content));
        let is_scalar =
            matches!(node.content.as_ref(), YamlContent::Bool(_) | YamlContent::Integer(_) | YamlContent::Float(_));
        if is_scalar && names.contains(&"string") && allowed_values(schema).is_none() {
            message.push_str("; put it in quotes");
        }
        let suggestion = match node.content.as_ref() {
            YamlContent::Text(text) if names.contains(&"boolean") => boolean_meant(text),
            _ => None,
        };
        self.fault(path, node.at, &message, suggestion)
    }

    /// Records a fault of the value at a path; the message says what is wrong.
    fn fault(&mut self, path: &str, at: Position, message: &str, suggestion: Option<String>) -> Option<Value> {
        self.note(|| SettingFault { path: path.to_owned(), at, message: format!("`{path}` {message}"), suggestion });
        None
    }

    fn note(&mut self, fault: impl FnOnce() -> SettingFault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault());
        }
    }
}

fn has_type(names: &[&str], content: &YamlContent) -> bool {
    let has = |name| names.contains(&name);
    match content {
        YamlContent::Null => has("null"),
        YamlContent::Bool(_) => has("boolean"),
        YamlContent::Integer(_) => has("integer") || has("number"),
        YamlContent::Float(value) => has("number") || (has("integer") && value.fract() == 0.0),
        YamlContent::Text(_) => has("string"),
        YamlContent::List(_) => has("array"),
        YamlContent::Map(_) => has("object"),
    }
}

/// What is wrong with a text that has no list of allowed values.
fn text_fault(schema: &Value, text: &str) -> Option<String> {
    // Patterns and globs check their own length, with a better message than the schema's expression.
    let usable = match schema.get("format").and_then(Value::as_str) {
        Some("canonry-pattern") => Some(Pattern::new(text).map(drop)),
        Some("canonry-path-glob") => Some(PathGlob::new(text).map(drop)),
        _ => None,
    };
    if let Some(usable) = usable {
        return usable.err().map(|error| format!("is not a usable pattern: {error}"));
    }
    let count = text.chars().count();
    let minimum = limit(schema, "minLength");
    let maximum = limit(schema, "maxLength");
    if minimum.is_some_and(|minimum| count < minimum) || maximum.is_some_and(|maximum| count > maximum) {
        return Some(format!("must have {}, but has {count}", count_words(minimum, maximum, "characters")));
    }
    let pattern = schema.get("pattern").and_then(Value::as_str)?;
    let pattern = Regex::new(pattern).expect("invariant: patterns of the schema compile");
    if pattern.is_match(text) {
        return None;
    }
    let reason = schema.get("patternErrorMessage").and_then(Value::as_str);
    Some(format!("{}, but is {}", reason.unwrap_or("has the wrong form"), quoted(text)))
}

fn limit(schema: &Value, keyword: &str) -> Option<usize> {
    schema.get(keyword).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
}

fn range_words(minimum: Option<f64>, maximum: Option<f64>) -> String {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) => format!("between {} and {}", plain_number(minimum), plain_number(maximum)),
        (Some(minimum), None) => format!("at least {}", plain_number(minimum)),
        (None, Some(maximum)) => format!("at most {}", plain_number(maximum)),
        (None, None) => "a number".to_owned(),
    }
}

fn count_words(minimum: Option<usize>, maximum: Option<usize>, of: &str) -> String {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) => format!("{minimum} to {maximum} {of}"),
        (Some(minimum), None) => format!("at least {minimum} {of}"),
        (None, maximum) => format!("at most {} {of}", maximum.unwrap_or(usize::MAX)),
    }
}

fn value_words(allowed: &[&str]) -> String {
    let quoted: Vec<String> = allowed.iter().map(|value| format!("`{value}`")).collect();
    quoted.join(", ")
}

/// Names the types for "must be …".
pub(crate) fn type_words(names: &[&str]) -> String {
    let words: Vec<&str> = names
        .iter()
        .map(|name| match *name {
            "string" => "text",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "a mapping of keys",
            other => other,
        })
        .collect();
    words.join(" or ")
}

fn found(content: &YamlContent) -> Cow<'static, str> {
    match content {
        YamlContent::Null => "empty".into(),
        YamlContent::Bool(value) => value.to_string().into(),
        YamlContent::Integer(value) => format!("the number {value}").into(),
        YamlContent::Float(value) if value.is_nan() => "not a number (.nan)".into(),
        YamlContent::Float(value) => format!("the number {value}").into(),
        YamlContent::Text(text) => format!("the text {}", quoted(text)).into(),
        YamlContent::List(_) => "a list".into(),
        YamlContent::Map(_) => "a mapping".into(),
    }
}

fn boolean_meant(text: &str) -> Option<String> {
    match text.to_lowercase().as_str() {
        "yes" | "on" | "y" | "true" => Some("true".to_owned()),
        "no" | "off" | "n" | "false" => Some("false".to_owned()),
        _ => None,
    }
}

fn join(parent: &str, key: &str) -> String {
    let key = quoted(key);
    let key = key.trim_matches('`');
    match parent {
        "" => key.to_owned(),
        _ => format!("{parent}.{key}"),
    }
}
