//! Parses a GraphQL document, as far as queries about pull requests need it: no named fragments, no directives.

use serde_json::{Map, Value};

/// A query or a mutation, with its variables filled in.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) mutation: bool,
    pub(crate) fields: Vec<Selection>,
}

/// A field, or with `on` a part that only objects of one type have.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) on: Option<String>,
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) fields: Vec<Selection>,
}

/// Parses a document; the error is a sentence.
pub(crate) fn parse(text: &str, variables: &Value) -> Result<Operation, String> {
    let mut reader =
        Reader { tokens: tokens(text)?, place: 0, variables: variables.as_object().cloned().unwrap_or_default() };
    let mut mutation = false;
    if let Token::Name(word) = reader.peek() {
        mutation = match word.as_str() {
            "query" => false,
            "mutation" => true,
            other => return Err(format!("Expected one of query, mutation, got {other:?}")),
        };
        reader.next();
        if matches!(reader.peek(), Token::Name(_)) {
            reader.next();
        }
        reader.variable_definitions()?;
    }
    let fields = reader.selections()?;
    match reader.peek() {
        Token::End => Ok(Operation { mutation, fields }),
        other => Err(format!("The emulator reads one operation, got {other:?} after it")),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number(String),
    Sign(char),
    Spread,
    End,
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '#' => while rest.next_if(|next| *next != '\n').is_some() {},
            '"' => {
                let mut value = String::new();
                loop {
                    match rest.next() {
                        Some('"') => break,
                        Some('\\') => value.extend(rest.next()),
                        Some(other) => value.push(other),
                        None => return Err(String::from("Unterminated string")),
                    }
                }
                found.push(Token::Text(value));
            }
            '.' if rest.next_if_eq(&'.').is_some() && rest.next_if_eq(&'.').is_some() => found.push(Token::Spread),
            '!' | '$' | '(' | ')' | ':' | '=' | '[' | ']' | '{' | '}' => found.push(Token::Sign(character)),
            _ if character.is_ascii_alphabetic() || character == '_' => {
                let mut word = String::from(character);
                while let Some(next) = rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '_') {
                    word.push(next);
                }
                found.push(Token::Name(word));
            }
            _ if character.is_ascii_digit() || character == '-' => {
                let mut digits = String::from(character);
                while let Some(next) = rest.next_if(char::is_ascii_digit) {
                    digits.push(next);
                }
                found.push(Token::Number(digits));
            }
            _ if character.is_whitespace() || character == ',' => {}
            other => return Err(format!("Unexpected character {other:?}")),
        }
    }
    Ok(found)
}

struct Reader {
    tokens: Vec<Token>,
    place: usize,
    variables: Map<String, Value>,
}

impl Reader {
    fn peek(&self) -> Token {
        self.tokens.get(self.place).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.place += 1;
        token
    }

    fn took(&mut self, sign: char) -> bool {
        let there = self.peek() == Token::Sign(sign);
        self.place += usize::from(there);
        there
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        if self.took(sign) { Ok(()) } else { Err(format!("Expected {sign:?}, got {:?}", self.peek())) }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next() {
            Token::Name(name) => Ok(name),
            other => Err(format!("Expected a name, got {other:?}")),
        }
    }

    /// Variables must be declared and may have a default. Without one they must be given if their type requires it.
    fn variable_definitions(&mut self) -> Result<(), String> {
        if !self.took('(') {
            return Ok(());
        }
        while !self.took(')') {
            self.expect('$')?;
            let name = self.name()?;
            self.expect(':')?;
            let mut required = false;
            while matches!(self.peek(), Token::Name(_) | Token::Sign('[' | ']' | '!')) {
                required = self.next() == Token::Sign('!');
            }
            let default = if self.took('=') { self.value()? } else { Value::Null };
            let given = self.variables.entry(name.clone()).or_insert(default);
            if required && given.is_null() {
                return Err(format!("Variable ${name} was provided invalid value"));
            }
        }
        Ok(())
    }

    fn selections(&mut self) -> Result<Vec<Selection>, String> {
        self.expect('{')?;
        let mut fields = Vec::new();
        while !self.took('}') {
            fields.push(self.selection()?);
        }
        Ok(fields)
    }

    fn selection(&mut self) -> Result<Selection, String> {
        let mut selection =
            Selection { on: None, key: String::new(), name: String::new(), arguments: Map::new(), fields: Vec::new() };
        if self.peek() == Token::Spread {
            self.next();
            if self.name()? != "on" {
                return Err(String::from("The emulator knows no named fragments"));
            }
            selection.on = Some(self.name()?);
            selection.fields = self.selections()?;
            return Ok(selection);
        }
        selection.key = self.name()?;
        selection.name = if self.took(':') { self.name()? } else { selection.key.clone() };
        if self.took('(') {
            while !self.took(')') {
                let name = self.name()?;
                self.expect(':')?;
                let value = self.value()?;
                selection.arguments.insert(name, value);
            }
        }
        if self.peek() == Token::Sign('{') {
            selection.fields = self.selections()?;
        }
        Ok(selection)
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.next() {
            Token::Text(text) => Ok(Value::String(text)),
            Token::Number(digits) => {
                digits.parse::<i64>().map(Value::from).map_err(|_| format!("{digits} is no whole number"))
            }
            Token::Name(word) => Ok(match word.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "null" => Value::Null,
                _ => Value::String(word),
            }),
            Token::Sign('$') => {
                let name = self.name()?;
                let value = self.variables.get(&name).cloned();
                value.ok_or_else(|| format!("Variable ${name} is used but not declared"))
            }
            Token::Sign('[') => {
                let mut entries = Vec::new();
                while !self.took(']') {
                    entries.push(self.value()?);
                }
                Ok(Value::Array(entries))
            }
            Token::Sign('{') => {
                let mut fields = Map::new();
                while !self.took('}') {
                    let name = self.name()?;
                    self.expect(':')?;
                    let value = self.value()?;
                    fields.insert(name, value);
                }
                Ok(Value::Object(fields))
            }
            other => Err(format!("Expected a value, got {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_read_with_its_variables() {
        let text = "query Threads($owner: String!, $after: String, $size: Int = 50) {\n  # a comment\n  repository(owner: $owner, name: \"wid\\\"gets\") { \
            all: reviewThreads(first: $size, after: $after) { nodes { ... on Bot { login } } } } }";
        let operation = parse(text, &json!({ "owner": "acme" })).expect("it is read");
        assert!(!operation.mutation);
        let repository = &operation.fields[0];
        assert_eq!(Value::Object(repository.arguments.clone()), json!({ "owner": "acme", "name": "wid\"gets" }));
        let threads = &repository.fields[0];
        assert_eq!((threads.key.as_str(), threads.name.as_str()), ("all", "reviewThreads"));
        assert_eq!(Value::Object(threads.arguments.clone()), json!({ "first": 50, "after": null }));
        assert_eq!(threads.fields[0].fields[0].on.as_deref(), Some("Bot"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("query($a: String!) { viewer { login } }", "Variable $a was provided invalid value"),
            ("{ node(id: $id) { id } }", "Variable $id is used but not declared"),
            ("{ viewer { login }", "Expected a name, got End"),
            ("subscription { x }", "Expected one of query, mutation, got \"subscription\""),
        ] {
            assert_eq!(parse(text, &json!({})).expect_err(text), said);
        }
    }
}
