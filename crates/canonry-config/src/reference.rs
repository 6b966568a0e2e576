//! The reference page of the settings file, made from its schema.

use serde_json::Value;

use crate::check::type_words;
use crate::pattern::MAX_PATTERN_CHARS;
use crate::schema::{SCHEMA, allowed_values, alternatives, plain_number, type_names};

/// The reference page: every key with its type, default, range and meaning, in Markdown.
pub fn reference_markdown() -> String {
    let mut page = String::from("# `.canonry.yml`\n\n");
    page.push_str(description(&SCHEMA));
    page.push_str(
        "\n\nEvery key may be left out. Each section is read by itself: one with a mistake has its \
         defaults, and the others stand. In lists marked *entry by entry* a bad entry is dropped \
         alone.\n\n\
         An editor with YAML's language server completes and checks the file while you write, once its first line is\n\n\
         ```yaml\n\
         # yaml-language-server: $schema=https://raw.githubusercontent.com/canonry/canonry/main/docs/canonry.schema.json\n\
         ```\n\n\
         or names a file that `canonry config schema` wrote, which is that of your version.\n",
    );
    for (name, section) in properties(&SCHEMA) {
        page.push_str(&format!("\n## `{name}`\n\n{}\n\n", description(section)));
        page.push_str("| Key | Type | Default | Range | Meaning |\n|---|---|---|---|---|\n");
        add_rows(&mut page, section, name);
    }
    page
}

fn add_rows(page: &mut String, schema: &Value, parent: &str) {
    for (key, schema) in properties(schema) {
        let path = format!("{parent}.{key}");
        let is_group = schema.get("properties").is_some();
        if !is_group {
            let cells = [
                format!("`{path}`"),
                type_cell(schema),
                default_cell(schema),
                range_cell(schema),
                description(schema).to_owned(),
            ];
            let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
            page.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        add_rows(page, schema, &path);
        if let Some(items) = schema.get("items") {
            for shape in shapes(items) {
                add_rows(page, shape, &format!("{path}[]"));
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
        let each = if schema.get("x-entries").is_some() { ", entry by entry" } else { "" };
        return format!("list of {}{each}", type_cell(items));
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
