//! GitHub's own description of its API, to check requests and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

/// The variable with the path of the description.
pub const OPENAPI_VARIABLE: &str = "CANONRY_TEST_GITHUB_OPENAPI";

/// The description, with one validator per schema, compiled on first use.
pub struct OpenApi {
    document: Value,
    validators: Mutex<BTreeMap<String, Arc<Validator>>>,
}

impl OpenApi {
    /// Reads the description from the file that [`OPENAPI_VARIABLE`] names.
    ///
    /// # Panics
    /// If the variable is not set or the file cannot be read.
    pub fn load() -> Self {
        let path = std::env::var(OPENAPI_VARIABLE)
            .unwrap_or_else(|_| panic!("{OPENAPI_VARIABLE} is not set: run through `cargo xtask test`"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
        Self::parse(&text)
    }

    /// Parses a description from JSON text.
    ///
    /// # Panics
    /// If the text is not JSON.
    pub fn parse(text: &str) -> Self {
        let document = serde_json::from_str(text).expect("the description is JSON");
        Self { document, validators: Mutex::new(BTreeMap::new()) }
    }

    /// Whether the description has this method under exactly this path template.
    pub fn describes(&self, method: &str, template: &str) -> bool {
        self.operation_at(method, template).is_some()
    }

    /// The problems of an answer; empty if it matches. A refusal that the operation does not list must still have the
    /// shape of GitHub's errors: any operation may answer 401, 403, 429 and similar.
    pub fn check_answer(&self, method: &str, path: &str, status: u16, body: Option<&Value>) -> Vec<String> {
        let Some((template, operation)) = self.operation(method, path) else {
            return vec![format!("{method} {path} is not described")];
        };
        let described = &operation["responses"][status.to_string()];
        let pointer = if !described.is_null() {
            self.schema_of_answer(&template, method, status)
        } else if status >= 300 {
            Some(String::from("/components/schemas/basic-error"))
        } else {
            return vec![format!("{method} {template} does not describe status {status}")];
        };
        let context = format!("{method} {template} → {status}");
        match (pointer, body) {
            (Some(pointer), Some(body)) => self.validate(&pointer, body, &context),
            (Some(_), None) if status >= 300 => Vec::new(),
            (Some(_), None) => vec![format!("{context}: the answer has no body")],
            (None, Some(body)) if status < 300 => vec![format!("{context}: a body where none is described: {body}")],
            (None, _) => Vec::new(),
        }
    }

    /// The problems of a request; empty if it matches.
    pub fn check_request(
        &self,
        method: &str,
        path: &str,
        query: &[(String, String)],
        body: Option<&Value>,
    ) -> Vec<String> {
        let Some((template, _)) = self.operation(method, path) else {
            return vec![format!("{method} {path} is not described")];
        };
        let context = format!("{method} {template}");
        let mut problems = Vec::new();
        for (name, value) in query {
            problems.extend(self.check_parameter(&template, method, name, value, &context));
        }
        problems.extend(self.check_body(&template, method, body, &context));
        problems
    }

    fn check_parameter(&self, template: &str, method: &str, name: &str, value: &str, context: &str) -> Vec<String> {
        // The cursors in `Link` come from GitHub; not every operation describes their parameter.
        if matches!(name, "after" | "before") {
            return Vec::new();
        }
        let Some(pointer) = self.parameter_pointer(template, method, name) else {
            return vec![format!("{context}: parameter {name} is not described")];
        };
        let pointer = format!("{pointer}/schema");
        let kind = self.at(&pointer).and_then(|schema| schema["type"].as_str());
        let typed = match kind {
            Some("integer") => value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number)),
            Some("boolean") => value.parse::<bool>().map_or_else(|_| json!(value), |truth| json!(truth)),
            _ => json!(value),
        };
        self.validate(&pointer, &typed, &format!("{context} {name}"))
    }

    fn check_body(&self, template: &str, method: &str, body: Option<&Value>, context: &str) -> Vec<String> {
        let request = format!("/paths/{}/{}/requestBody", escape(template), method.to_ascii_lowercase());
        let pointer = format!("{request}/content/application~1json/schema");
        let Some(schema) = self.at(&pointer) else {
            let empty = body.is_none_or(|body| body.as_object().is_some_and(serde_json::Map::is_empty));
            return if empty { Vec::new() } else { vec![format!("{context}: takes no body")] };
        };
        let Some(body) = body else {
            let required = self.at(&request).is_some_and(|request| request["required"] == json!(true));
            return if required { vec![format!("{context}: needs a body")] } else { Vec::new() };
        };
        let mut problems = self.validate(&pointer, body, context);
        // The description allows unknown fields everywhere, but every field that we send must be known.
        if let (Some(known), Some(sent)) = (schema["properties"].as_object(), body.as_object()) {
            let strange = sent.keys().filter(|key| !known.contains_key(*key));
            problems.extend(strange.map(|key| format!("{context}: field {key} is not described")));
        }
        problems
    }

    fn operation(&self, method: &str, path: &str) -> Option<(String, &Value)> {
        let path = by_name(path);
        let paths = self.document["paths"].as_object()?;
        let matching = paths.keys().filter(|template| template_matches(template, &path));
        // Fixed words win over parameters.
        let best = matching
            .filter(|template| self.operation_at(method, template).is_some())
            .min_by_key(|template| template.matches('{').count())?;
        Some((best.clone(), self.operation_at(method, best)?))
    }

    fn operation_at(&self, method: &str, template: &str) -> Option<&Value> {
        self.document["paths"].get(template)?.get(method.to_ascii_lowercase())
    }

    /// The pointer to the schema of an answer; `None` if it has no body.
    fn schema_of_answer(&self, template: &str, method: &str, status: u16) -> Option<String> {
        let method = method.to_ascii_lowercase();
        let pointer = self.follow(format!("/paths/{}/{method}/responses/{status}", escape(template)));
        let schema = format!("{pointer}/content/application~1json/schema");
        self.at(&schema).map(|_| schema)
    }

    fn parameter_pointer(&self, template: &str, method: &str, name: &str) -> Option<String> {
        let item = format!("/paths/{}", escape(template));
        for place in [format!("{item}/{}/parameters", method.to_ascii_lowercase()), format!("{item}/parameters")] {
            let count = self.at(&place).and_then(Value::as_array).map_or(0, Vec::len);
            for index in 0..count {
                let pointer = self.follow(format!("{place}/{index}"));
                let found = self.at(&pointer)?;
                if found["name"] == json!(name) && found["in"] == json!("query") {
                    return Some(pointer);
                }
            }
        }
        None
    }

    /// The target of a `$ref`, or the pointer itself.
    fn follow(&self, pointer: String) -> String {
        let target = self.at(&pointer).and_then(|value| value["$ref"].as_str());
        target.and_then(|target| target.strip_prefix('#')).map_or(pointer, str::to_owned)
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.document.pointer(pointer)
    }

    fn validate(&self, pointer: &str, value: &Value, context: &str) -> Vec<String> {
        let validator = self.validator(pointer);
        let describe = |error: jsonschema::ValidationError<'_>| {
            let mut text = error.to_string();
            // The message of an `anyOf` repeats the whole instance.
            if text.len() > 600 {
                text.truncate(text.floor_char_boundary(600));
            }
            format!("{context}, at `{}`: {text}", error.instance_path())
        };
        validator.iter_errors(value).map(describe).collect()
    }

    /// A validator of the schema at a pointer, compiled with only the schemas to which it refers.
    fn validator(&self, pointer: &str) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = validators.get(pointer) {
            return Arc::clone(known);
        }
        let schema = self.at(pointer).expect("invariant: callers looked it up");
        let mut root = as_json_schema(schema);
        let mut schemas = serde_json::Map::new();
        let mut waiting = references(schema);
        while let Some(name) = waiting.pop_first() {
            if schemas.contains_key(&name) {
                continue;
            }
            let target = &self.document["components"]["schemas"][&name];
            waiting.extend(references(target));
            schemas.insert(name, as_json_schema(target));
        }
        if root.get("$ref").is_some() {
            // Siblings of `$ref` are ignored, and the components must be reachable from the root.
            root = json!({ "allOf": [root] });
        }
        root["components"] = json!({ "schemas": schemas });
        let options = jsonschema::options().with_draft(Draft::Draft7).should_validate_formats(false);
        let validator = options.build(&root).unwrap_or_else(|error| panic!("the schema at {pointer}: {error}"));
        let validator = Arc::new(validator);
        validators.insert(pointer.to_owned(), Arc::clone(&validator));
        validator
    }
}

/// OpenAPI 3.0 has `nullable`, but JSON Schema lists `null` among the types.
fn as_json_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "example" | "examples" | "nullable"));
            let mut converted: serde_json::Map<String, Value> =
                kept.map(|(key, value)| (key.clone(), as_json_schema(value))).collect();
            if fields.get("nullable") != Some(&Value::Bool(true)) {
                return Value::Object(converted);
            }
            if let Some(Value::Array(values)) = converted.get_mut("enum") {
                values.push(Value::Null);
            }
            match converted.get("type").cloned() {
                Some(kind @ Value::String(_)) => {
                    converted.insert(String::from("type"), json!([kind, "null"]));
                    Value::Object(converted)
                }
                _ => json!({ "anyOf": [converted, { "type": "null" }] }),
            }
        }
        Value::Array(entries) => entries.iter().map(as_json_schema).collect(),
        other => other.clone(),
    }
}

/// Names of the component schemas to which a schema refers.
fn references(schema: &Value) -> BTreeSet<String> {
    match schema {
        Value::Object(fields) => {
            let mut names: BTreeSet<String> = fields.values().flat_map(references).collect();
            let target = fields.get("$ref").and_then(Value::as_str);
            names.extend(target.and_then(|target| target.strip_prefix("#/components/schemas/")).map(str::to_owned));
            names
        }
        Value::Array(entries) => entries.iter().flat_map(references).collect(),
        _ => BTreeSet::new(),
    }
}

fn template_matches(template: &str, path: &str) -> bool {
    let mut parts = template.split('/');
    let mut segments = path.split('/');
    loop {
        match (parts.next(), segments.next()) {
            (None, None) => return true,
            (Some("{path}"), Some(_)) => return true,
            (Some(part), Some(segment)) if part == segment => {}
            (Some(part), Some(segment)) if part.starts_with('{') && !segment.is_empty() => {}
            _ => return false,
        }
    }
}

/// The description lists repository paths by name only, not by id.
fn by_name(path: &str) -> String {
    let Some(rest) = path.strip_prefix("/repositories/") else { return path.to_owned() };
    match rest.split_once('/') {
        Some((_, tail)) => format!("/repos/owner/name/{tail}"),
        None => String::from("/repos/owner/name"),
    }
}

/// A path as one step of a JSON pointer.
fn escape(template: &str) -> String {
    template.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> OpenApi {
        OpenApi::parse(
            r##"{
            "paths": { "/things/{id}": {
                "get": {
                    "parameters": [{ "$ref": "#/components/parameters/size" }],
                    "responses": { "200": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/thing" } } } } }
                },
                "patch": {
                    "requestBody": { "required": true, "content": { "application/json": { "schema": {
                        "type": "object", "properties": { "name": { "type": "string" } } } } } },
                    "responses": { "204": {} }
                }
            } },
            "components": {
                "parameters": { "size": { "name": "size", "in": "query", "schema": { "type": "integer" } } },
                "schemas": {
                    "thing": { "type": "object", "required": ["name", "owner"], "properties": {
                        "name": { "type": "string", "nullable": true }, "owner": { "$ref": "#/components/schemas/owner" } } },
                    "owner": { "type": "object", "nullable": true, "required": ["login"] },
                    "basic-error": { "type": "object", "properties": { "message": { "type": "string" } } }
                }
            } }"##,
        )
    }

    #[test]
    fn answers_are_held_against_their_schema() {
        let api = description();
        let check = |status, body: Value| api.check_answer("GET", "/things/1", status, Some(&body));
        assert_eq!(check(200, json!({ "name": null, "owner": null })), [""; 0]);
        assert_eq!(check(200, json!({ "name": 1, "owner": { "login": "a" } })).len(), 1);
        assert_eq!(check(200, json!({ "name": "a", "owner": {} })).len(), 1);
        assert_eq!(check(403, json!({ "message": "no" })), [""; 0]);
        assert_eq!(check(403, json!({ "message": 1 })).len(), 1);
        assert_eq!(check(201, json!({})), ["GET /things/{id} does not describe status 201"]);
    }

    #[test]
    fn requests_are_held_against_parameters_and_body() {
        let api = description();
        let query = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        assert_eq!(api.check_request("GET", "/things/1", &query("size", "3"), None), [""; 0]);
        assert_eq!(api.check_request("GET", "/things/1", &query("size", "big"), None).len(), 1);
        assert_eq!(api.check_request("GET", "/things/1", &query("colour", "red"), None).len(), 1);
        assert_eq!(api.check_request("PATCH", "/things/1", &[], None), ["PATCH /things/{id}: needs a body"]);
        let strange = json!({ "nmae": "x" });
        let problems = api.check_request("PATCH", "/things/1", &[], Some(&strange));
        assert_eq!(problems, ["PATCH /things/{id}: field nmae is not described"]);
    }
}
