//! The JSON Schema of the settings file, which the parser also uses.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::RepoConfig;

/// The JSON Schema (draft 2020-12) of the settings file, for editors.
///
/// The parser reads keys, ranges, allowed values and lengths from this schema, so that an editor and Canonry never
/// disagree. Two marks go beyond the draft: `x-entries: independent` on lists whose bad entries are dropped one by
/// one, and `format: canonry-pattern` and `canonry-path-glob` on texts that must be valid patterns and globs.
pub fn json_schema() -> Value {
    SCHEMA.clone()
}

pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        // Without references, each key contains its whole schema.
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<RepoConfig>().to_value();
    schema["title"] = Value::from(".canonry.yml");
    schema
});

/// The values that a text may have, if the schema lists them.
pub(crate) fn allowed_values(schema: &Value) -> Option<Vec<&str>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().filter_map(Value::as_str).collect());
    }
    let choices = schema.get("oneOf")?.as_array()?;
    choices.iter().map(|choice| choice.get("const").and_then(Value::as_str)).collect()
}

/// The alternative schemas of a value, if there are several.
pub(crate) fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").and_then(Value::as_array)
}

/// The names of the JSON types that a value may have.
pub(crate) fn type_names(schema: &Value) -> Vec<&str> {
    if let Some(choices) = alternatives(schema) {
        return choices.iter().flat_map(type_names).collect();
    }
    if allowed_values(schema).is_some() {
        return vec!["string"];
    }
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the path of the first key with that name anywhere below, without lists.
pub(crate) fn path_of_key(schema: &Value, name: &str) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    properties.iter().find_map(|(key, below)| {
        if key == name {
            return Some(key.clone());
        }
        path_of_key(below, name).map(|rest| format!("{key}.{rest}"))
    })
}

/// Formats a number without `.0`.
pub(crate) fn plain_number(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{json_schema, type_names};

    #[test]
    fn every_key_has_a_description_and_a_default_and_no_mapping_is_open() {
        let schema = json_schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        let mut keys = 0;
        visit(&schema, "", true, &mut keys);
        assert_eq!(keys, 74);
    }

    fn visit(schema: &Value, path: &str, optional: bool, keys: &mut usize) {
        assert!(!type_names(schema).is_empty(), "{path} has no type");
        let shapes = match schema.get("anyOf").and_then(Value::as_array) {
            Some(shapes) => shapes.clone(),
            None => vec![schema.clone()],
        };
        for shape in shapes {
            if let Some(items) = shape.get("items") {
                visit(items, &format!("{path}[]"), false, keys);
            }
            let Some(properties) = shape.get("properties").and_then(Value::as_object) else {
                continue;
            };
            assert_eq!(shape["additionalProperties"], false, "{path}");
            for (key, below) in properties {
                *keys += 1;
                let path = format!("{path}.{key}");
                let described = below.get("description").and_then(Value::as_str);
                assert!(described.is_some_and(|text| text.ends_with('.')), "{path}");
                if optional {
                    assert!(below.get("default").is_some(), "{path} has no default");
                }
                visit(below, &path, optional, keys);
            }
        }
    }

    #[test]
    fn ranges_of_the_types_are_in_the_schema() {
        let schema = json_schema();
        let comments = &schema["properties"]["review"]["properties"]["maxComments"];
        assert_eq!(
            (&comments["minimum"], &comments["maximum"], &comments["default"]),
            (&json!(1), &json!(25), &json!(7))
        );
    }
}
