//! Generates the reference page of the settings file from its schema.

use serde_json::Value;

use crate::check::type_words;
use crate::pattern::MAX_PATTERN_CHARS;
use crate::schema::{SCHEMA, allowed_values, alternatives, plain_number, type_names};

/// Returns the reference page in Markdown: every key with its type, default, range and meaning.
pub fn reference_markdown() -> String {
    let mut page = String::from("# `.canonry.yml`\n\n");
    page.push_str(description(&SCHEMA));
    page.push_str(
        "\n\nEvery key may be left out. Each section is read by itself: a section with a mistake \
         gets its defaults, and the others still count. In lists marked *entry by entry* only the bad entry is \
         dropped.\n\n\
         An editor with YAML's language server completes and checks the file while you write, once its first line is\n\n\
         ```yaml\n\
         # yaml-language-server: $schema=https://raw.githubusercontent.com/canonry/canonry/main/docs/canonry.schema.json\n\
         ```\n\n\
         or names a file that `canonry config schema` wrote, which is that of your version.\n",
    );
    for section in settings_reference() {
        page.push_str(&format!("\n## `{}`\n\n{}\n\n", section.name, section.meaning));
        page.push_str("| Key | Type | Default | Range | Meaning |\n|---|---|---|---|---|\n");
        for key in section.keys {
            let cells = [format!("`{}`", key.path), key.kind, key.default, key.range, key.meaning];
            let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
            page.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    page
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionReference {
    pub name: String,
    pub meaning: String,
    pub keys: Vec<KeyReference>,
}

/// A key of the settings file. The type and the default are Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReference {
    /// `triage.mode`; `[]` stands for an entry of a list.
    pub path: String,
    pub kind: String,
    pub default: String,
    pub range: String,
    pub meaning: String,
    /// The allowed values, if the schema lists them.
    pub choices: Vec<String>,
}

pub fn settings_reference() -> Vec<SectionReference> {
    let section = |(name, schema): (&String, &Value)| {
        let mut keys = Vec::new();
        add_keys(&mut keys, schema, name);
        SectionReference { name: name.clone(), meaning: description(schema).to_owned(), keys }
    };
    properties(&SCHEMA).map(section).collect()
}

fn add_keys(keys: &mut Vec<KeyReference>, schema: &Value, parent: &str) {
    for (key, schema) in properties(schema) {
        let path = format!("{parent}.{key}");
        let is_group = schema.get("properties").is_some();
        if !is_group {
            keys.push(KeyReference {
                path: path.clone(),
                kind: type_cell(schema),
                default: default_cell(schema),
                range: range_cell(schema),
                meaning: description(schema).to_owned(),
                choices: allowed_values(schema).unwrap_or_default().into_iter().map(str::to_owned).collect(),
            });
        }
        add_keys(keys, schema, &path);
        if let Some(items) = schema.get("items") {
            for shape in shapes(items) {
                add_keys(keys, shape, &format!("{path}[]"));
            }
        }
    }
}

fn shapes(schema: &Value) -> Vec<&Value> {
    match alternatives(schema) {
        Some(shapes) => shapes.iter().collect(),
        None => vec![schema],
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

fn description(schema: &Value) -> &str {
    let description = schema.get("description").and_then(Value::as_str);
    description.unwrap_or_default()
}

fn type_cell(schema: &Value) -> String {
    if let Some(items) = schema.get("items") {
        if schema.get("x-entries").is_none() {
            return format!("list of {}", type_cell(items));
        }
        let each: Vec<&str> = shapes(items).into_iter().map(entry_words).collect();
        return format!("list; each entry is {}", each.join(" or "));
    }
    if let Some(allowed) = allowed_values(schema) {
        let allowed: Vec<String> = allowed.iter().map(|value| format!("`{value}`")).collect();
        return allowed.join(", ");
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("canonry-pattern") => "pattern".to_owned(),
        Some("canonry-path-glob") => "path glob".to_owned(),
        _ if alternatives(schema).is_some() => {
            let shapes: Vec<String> = shapes(schema).into_iter().map(type_cell).collect();
            shapes.join(" or ")
        }
        _ => type_words(&type_names(schema)),
    }
}

/// An entry that is ignored alone if it is wrong.
fn entry_words(schema: &Value) -> &'static str {
    match schema.get("format").and_then(Value::as_str) {
        Some("canonry-pattern") => "a pattern",
        Some("canonry-path-glob") => "a path glob",
        _ => "a mapping",
    }
}

fn default_cell(schema: &Value) -> String {
    match schema.get("default") {
        None => "required".to_owned(),
        Some(Value::Number(number)) => match number.as_f64() {
            Some(value) => format!("`{}`", plain_number(value)),
            None => format!("`{number}`"),
        },
        Some(Value::String(text)) => format!("`{text}`"),
        Some(Value::Array(items)) => {
            let items: Vec<String> =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect();
            format!("`[{}]`", items.join(", "))
        }
        Some(other) => format!("`{other}`"),
    }
}

fn range_cell(schema: &Value) -> String {
    let bounds = |low: &str, high: &str, unit: &str| {
        let low = schema.get(low).and_then(Value::as_f64).map(plain_number);
        let high = schema.get(high).and_then(Value::as_f64).map(plain_number);
        match (low, high) {
            (Some(low), Some(high)) => Some(format!("{low}–{high}{unit}")),
            (None, Some(high)) => Some(format!("at most {high}{unit}")),
            (Some(low), None) => Some(format!("at least {low}{unit}")),
            (None, None) => None,
        }
    };
    let is_pattern = schema.get("format").is_some_and(|f| f == "canonry-pattern");
    bounds("minimum", "maximum", "")
        .or_else(|| bounds("minItems", "maxItems", " entries"))
        .or_else(|| bounds("minLength", "maxLength", " characters"))
        .or_else(|| is_pattern.then(|| format!("1–{MAX_PATTERN_CHARS} characters")))
        .unwrap_or_default()
}
