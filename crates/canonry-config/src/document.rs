//! Reads YAML text into a tree in which every key and value has its line and column.
//!
//! The parser's events are read directly, because serde loses the positions of keys, and of values in lists of
//! several types.

use std::collections::HashMap;
use std::rc::Rc;

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, ScanError, Span};

use crate::quoting::harmless_text;

/// The deepest nesting. The settings need five levels; the limit prevents a stack overflow by recursion.
const MAX_DEPTH: usize = 32;

/// How many bytes of text and nodes all aliases of a file may repeat. Without the limit nine lines of aliases can
/// mean a billion nodes.
const MAX_ALIASED_WEIGHT: usize = 64 * 1024;

/// A position in the file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A value with its position. Clones share their content, so an anchor costs nothing.
#[derive(Debug, Clone)]
pub(crate) struct YamlNode {
    pub(crate) at: Position,
    pub(crate) content: Rc<YamlContent>,
    depth: usize,
    weight: usize,
}

/// A value by the core schema of YAML 1.2: `yes` and `off` are text.
#[derive(Debug)]
pub(crate) enum YamlContent {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(YamlKey, YamlNode)>),
}

#[derive(Debug)]
pub(crate) struct YamlKey {
    pub(crate) at: Position,
    pub(crate) text: String,
}

/// Why a text cannot be read.
#[derive(Debug)]
pub(crate) struct DocumentError {
    pub(crate) at: Position,
    pub(crate) message: String,
}

/// Reads the only document of a text; a text without a document is null.
pub(crate) fn read_document(text: &str) -> Result<YamlNode, DocumentError> {
    let options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        emit_comments: false,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax_error(&error))?;
        builder.take(event, &span)?;
    }
    Ok(builder.root.unwrap_or_else(|| YamlNode::scalar(Position { line: 1, column: 1 }, YamlContent::Null)))
}

impl YamlNode {
    fn scalar(at: Position, content: YamlContent) -> Self {
        let weight = match &content {
            YamlContent::Text(text) => 1 + text.len(),
            _ => 1,
        };
        Self { at, content: Rc::new(content), depth: 1, weight }
    }
}

#[derive(Default)]
struct Builder {
    root: Option<YamlNode>,
    documents: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, YamlNode>,
    aliased_weight: usize,
}

/// A list or a mapping whose end was not read yet.
struct Open {
    at: Position,
    anchor: usize,
    items: Items,
    depth: usize,
    weight: usize,
}

enum Items {
    List(Vec<YamlNode>),
    Map(Vec<(YamlKey, YamlNode)>, Option<YamlKey>),
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), DocumentError> {
        let at = position(span.start.line(), span.start.col());
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return refuse(at, "a second YAML document begins; only the first is read");
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let content = match tag {
                    Some(tag) if tag.is_yaml_core_schema_tag("str") => YamlContent::Text(text.into_owned()),
                    Some(_) => return refuse(tag_position(span), TAGS_REFUSED),
                    None if style == ScalarStyle::Plain => resolve_plain(&text),
                    None => YamlContent::Text(text.into_owned()),
                };
                self.complete(YamlNode::scalar(at, content), anchor);
                Ok(())
            }
            Event::SequenceStart(_, _, Some(_)) | Event::MappingStart(_, _, Some(_)) => refuse(at, TAGS_REFUSED),
            Event::SequenceStart(_, anchor, None) => {
                self.begin(at, anchor, Items::List(Vec::new()));
                Ok(())
            }
            Event::MappingStart(_, anchor, None) => {
                self.begin(at, anchor, Items::Map(Vec::new(), None));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.repeat(at, anchor),
            // The remaining events contain no value: document ends, comments and anchor names, which were not
            // requested.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: Position, anchor: usize, items: Items) {
        self.open.push(Open { at, anchor, items, depth: 1, weight: 1 });
    }

    fn end(&mut self) -> Result<(), DocumentError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        if open.depth > MAX_DEPTH {
            return refuse(open.at, "values are nested too deeply");
        }
        let content = match open.items {
            Items::List(items) => YamlContent::List(items),
            Items::Map(entries, _) => YamlContent::Map(entries),
        };
        let node = YamlNode { at: open.at, content: Rc::new(content), depth: open.depth, weight: open.weight };
        self.complete(node, open.anchor);
        Ok(())
    }

    fn repeat(&mut self, at: Position, anchor: usize) -> Result<(), DocumentError> {
        let Some(target) = self.anchors.get(&anchor) else {
            return refuse(at, "an alias (`*…`) stands inside the value that it repeats");
        };
        let node = YamlNode { at, ..target.clone() };
        self.aliased_weight = self.aliased_weight.saturating_add(node.weight);
        if self.aliased_weight > MAX_ALIASED_WEIGHT {
            return refuse(at, "aliases (`*…`) repeat too much");
        }
        self.complete(node, 0);
        Ok(())
    }

    /// Adds a complete value to its parent; anchor 0 means no anchor.
    fn complete(&mut self, node: YamlNode, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        open.depth = open.depth.max(node.depth + 1);
        open.weight = open.weight.saturating_add(node.weight);
        match &mut open.items {
            Items::List(items) => items.push(node),
            Items::Map(entries, pending) => match pending.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    *pending = Some(YamlKey { at: node.at, text: key_text(&node.content) });
                }
            },
        }
    }
}

const TAGS_REFUSED: &str = "tags (`!…`) have no meaning in this file";

fn refuse<T>(at: Position, message: &str) -> Result<T, DocumentError> {
    Err(DocumentError { at, message: message.to_owned() })
}

fn syntax_error(error: &ScanError) -> DocumentError {
    DocumentError {
        at: position(error.marker().line(), error.marker().col()),
        message: format!("the file is not valid YAML: {}", harmless_text(&error.kind().to_string())),
    }
}

/// The parser counts lines from 1 and columns from 0.
fn position(line: usize, column: usize) -> Position {
    Position { line: line.max(1), column: column + 1 }
}

/// The position of a value's tag; the value comes after it.
fn tag_position(span: &Span) -> Position {
    let mark = span.tag_start().unwrap_or(span.start);
    position(mark.line(), mark.col())
}

/// A key that is not text cannot be a known key; its text is only for the message.
fn key_text(content: &YamlContent) -> String {
    match content {
        YamlContent::Null => String::new(),
        YamlContent::Bool(value) => value.to_string(),
        YamlContent::Integer(value) => value.to_string(),
        YamlContent::Float(value) => value.to_string(),
        YamlContent::Text(text) => text.clone(),
        YamlContent::List(_) => "[…]".to_owned(),
        YamlContent::Map(_) => "{…}".to_owned(),
    }
}

fn resolve_plain(text: &str) -> YamlContent {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => YamlContent::Null,
        "true" | "True" | "TRUE" => YamlContent::Bool(true),
        "false" | "False" | "FALSE" => YamlContent::Bool(false),
        ".nan" | ".NaN" | ".NAN" => YamlContent::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => YamlContent::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => YamlContent::Float(f64::NEG_INFINITY),
        _ => resolve_number(text).unwrap_or_else(|| YamlContent::Text(text.to_owned())),
    }
}

fn resolve_number(text: &str) -> Option<YamlContent> {
    let based = text
        .strip_prefix("0x")
        .map(|digits| (digits, 16))
        .or_else(|| text.strip_prefix("0o").map(|digits| (digits, 8)));
    if let Some((digits, base)) = based {
        // `from_str_radix` accepts a sign here, YAML does not.
        let all_digits = digits.chars().all(|c| c.is_digit(base));
        return all_digits.then(|| i64::from_str_radix(digits, base).ok().map(YamlContent::Integer)).flatten();
    }
    // Rust also reads `inf`, `nan` and `infinity` as numbers, which are text in YAML.
    let looks_numeric = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    if !looks_numeric {
        return None;
    }
    if let Ok(value) = text.parse() {
        return Some(YamlContent::Integer(value));
    }
    text.parse().ok().map(YamlContent::Float)
}

#[cfg(test)]
mod tests {
    use super::{YamlContent, resolve_plain};

    #[test]
    fn plain_words_are_what_yaml_1_2_says() {
        for (text, expected) in [
            ("", "Null"),
            ("~", "Null"),
            ("true", "Bool(true)"),
            ("yes", "Text(\"yes\")"),
            ("off", "Text(\"off\")"),
            ("007", "Integer(7)"),
            ("+7", "Integer(7)"),
            ("-7", "Integer(-7)"),
            ("0x1F", "Integer(31)"),
            ("0o17", "Integer(15)"),
            ("0x-1", "Text(\"0x-1\")"),
            ("0x", "Text(\"0x\")"),
            (".5", "Float(0.5)"),
            ("5.", "Float(5.0)"),
            ("1e3", "Float(1000.0)"),
            ("1e999", "Float(inf)"),
            ("-.inf", "Float(-inf)"),
            (".nan", "Float(NaN)"),
            ("nan", "Text(\"nan\")"),
            ("infinity", "Text(\"infinity\")"),
            ("99999999999999999999", "Float(1e20)"),
            ("1.2.3", "Text(\"1.2.3\")"),
            ("-", "Text(\"-\")"),
            ("1_000", "Text(\"1_000\")"),
        ] {
            let content: YamlContent = resolve_plain(text);
            assert_eq!(format!("{content:?}"), expected, "{text}");
        }
    }
}
