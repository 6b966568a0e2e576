//! Reads a TOML file as a list of values with their keys and lines.
//!
//! It knows the syntax and not the rules behind it: a key may be set twice. What it cannot read makes the whole file
//! unreadable.

/// Deeper keys and values are not read: no manifest has them.
const DEEPEST: usize = 16;

/// What a file may have at most: the values, and the bytes of the keys of one value. Each value keeps its keys.
const MOST_VALUES: usize = 10_000;
const LONGEST_PATH: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TomlValue {
    Text(String),
    /// All texts in a list, at any depth.
    Texts(Vec<String>),
    /// A number, a date, `true` or `false`, as it is written.
    Bare(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TomlEntry {
    /// The keys of the header, the statement and the inline tables around the value.
    pub(super) path: Vec<String>,
    pub(super) value: TomlValue,
    /// The first line of the statement.
    pub(super) line: u32,
    header_keys: usize,
    header_line: u32,
}

impl TomlEntry {
    /// The line that names the key at this place of the path: the header's or the statement's.
    pub(super) fn line_of_key(&self, at: usize) -> u32 {
        if at < self.header_keys { self.header_line } else { self.line }
    }

    pub(super) fn keys(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// The text, or the texts of the list.
    pub(super) fn texts(&self) -> &[String] {
        match &self.value {
            TomlValue::Text(text) => std::slice::from_ref(text),
            TomlValue::Texts(texts) => texts,
            TomlValue::Bare(_) => &[],
        }
    }
}

/// The values of a file in their order; `None` if it cannot be read.
pub(super) fn toml_entries(text: &str) -> Option<Vec<TomlEntry>> {
    let mut reader = TomlReader { rest: text, line: 1, values_left: MOST_VALUES };
    let (mut entries, mut header, mut header_line) = (Vec::new(), Vec::new(), 0);
    loop {
        reader.skip_blank();
        if reader.rest.is_empty() {
            return Some(entries);
        }
        let line = reader.line;
        if reader.take_if("[") {
            let is_list = reader.take_if("[");
            header = reader.path(&[])?;
            header_line = line;
            (reader.take_if("]") && (!is_list || reader.take_if("]"))).then_some(())?;
        } else {
            let path = reader.path(&header)?;
            let mut values = Vec::new();
            reader.take_if("=").then_some(())?;
            reader.skip_spaces();
            reader.value(path, DEEPEST, &mut values)?;
            let entry = |(path, value)| TomlEntry { path, value, line, header_keys: header.len(), header_line };
            entries.extend(values.into_iter().map(entry));
        }
        reader.end_of_line()?;
    }
}

struct TomlReader<'t> {
    rest: &'t str,
    line: u32,
    values_left: usize,
}

impl<'t> TomlReader<'t> {
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.line += u32::try_from(taken.matches('\n').count()).unwrap_or(u32::MAX);
        taken
    }

    fn take_if(&mut self, mark: &str) -> bool {
        let is_there = self.rest.starts_with(mark);
        if is_there {
            self.take(mark.len());
        }
        is_there
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        self.take(self.rest.find(|character| !is_part(character)).unwrap_or(self.rest.len()))
    }

    fn skip_spaces(&mut self) {
        self.take_while(|character| matches!(character, ' ' | '\t' | '\r'));
    }

    /// Skips spaces, line breaks and comments.
    fn skip_blank(&mut self) {
        loop {
            self.take_while(|character| matches!(character, ' ' | '\t' | '\r' | '\n'));
            if !self.rest.starts_with('#') {
                return;
            }
            self.take_while(|character| character != '\n');
        }
    }

    fn end_of_line(&mut self) -> Option<()> {
        self.skip_spaces();
        if self.rest.starts_with('#') {
            self.take_while(|character| character != '\n');
        }
        (self.rest.is_empty() || self.take_if("\n")).then_some(())
    }

    /// A key with its parts, appended to the keys around it.
    fn path(&mut self, around: &[String]) -> Option<Vec<String>> {
        let mut path = around.to_vec();
        loop {
            self.skip_spaces();
            path.push(match self.rest.starts_with(['"', '\'']) {
                true => self.text()?,
                false => self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-').to_owned(),
            });
            self.skip_spaces();
            let bytes: usize = path.iter().map(String::len).sum();
            if path.last().is_some_and(String::is_empty) || path.len() > DEEPEST || bytes > LONGEST_PATH {
                return None;
            }
            if !self.take_if(".") {
                return Some(path);
            }
        }
    }

    fn value(&mut self, path: Vec<String>, deep: usize, values: &mut Vec<(Vec<String>, TomlValue)>) -> Option<()> {
        let deep = deep.checked_sub(1)?;
        self.values_left = self.values_left.checked_sub(1)?;
        let value = if self.rest.starts_with(['"', '\'']) {
            TomlValue::Text(self.text()?)
        } else if self.take_if("[") {
            TomlValue::Texts(self.list(deep)?)
        } else if self.take_if("{") {
            return self.table(&path, deep, values);
        } else {
            let bare = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | ':' | '_'));
            TomlValue::Bare((!bare.is_empty()).then(|| bare.to_owned())?)
        };
        values.push((path, value));
        Some(())
    }

    fn list(&mut self, deep: usize) -> Option<Vec<String>> {
        let mut values = Vec::new();
        loop {
            self.skip_blank();
            if self.take_if("]") {
                break;
            }
            self.value(Vec::new(), deep, &mut values)?;
            self.skip_blank();
            if !self.take_if(",") && !self.rest.starts_with(']') {
                return None;
            }
        }
        let texts = values.into_iter().flat_map(|(_, value)| match value {
            TomlValue::Text(text) => vec![text],
            TomlValue::Texts(texts) => texts,
            TomlValue::Bare(_) => Vec::new(),
        });
        Some(texts.collect())
    }

    fn table(&mut self, path: &[String], deep: usize, values: &mut Vec<(Vec<String>, TomlValue)>) -> Option<()> {
        loop {
            self.skip_blank();
            if self.take_if("}") {
                return Some(());
            }
            let path = self.path(path)?;
            self.take_if("=").then_some(())?;
            self.skip_spaces();
            self.value(path, deep, values)?;
            self.skip_blank();
            if !self.take_if(",") && !self.rest.starts_with('}') {
                return None;
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let marks = ["\"\"\"", "'''", "\"", "'"];
        let mark = marks.into_iter().find(|mark| self.rest.starts_with(mark))?;
        let (is_long, has_escapes) = (mark.len() == 3, mark.starts_with('"'));
        self.take(mark.len());
        let mut end = 0;
        loop {
            let rest = &self.rest[end..];
            if rest.starts_with(mark) {
                break;
            }
            let character = rest.chars().next().filter(|character| is_long || *character != '\n')?;
            end += character.len_utf8();
            if has_escapes && character == '\\' {
                end += self.rest[end..].chars().next()?.len_utf8();
            }
        }
        let text = self.take(end);
        self.take(mark.len());
        // A long text may end with quotes of its own; they are left out.
        while is_long && self.take_if(&mark[..1]) {}
        if has_escapes { unescaped(text) } else { Some(text.to_owned()) }
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        let kind = characters.next()?;
        plain.push(match kind {
            'n' => '\n',
            't' => '\t',
            'u' | 'U' => {
                let count = if kind == 'u' { 4 } else { 8 };
                let digits: String = characters.by_ref().take(count).collect();
                (digits.len() == count).then_some(())?;
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
            }
            other => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::{TomlValue, toml_entries};

    /// `line keys value` of each entry.
    fn read(text: &str) -> Option<Vec<String>> {
        let entries = toml_entries(text)?;
        let shown = entries.iter().map(|entry| {
            let value = match &entry.value {
                TomlValue::Text(text) => format!("{text:?}"),
                TomlValue::Texts(texts) => format!("{texts:?}"),
                TomlValue::Bare(bare) => bare.clone(),
            };
            format!("{} {} {value}", entry.line, entry.path.join("/"))
        });
        Some(shown.collect())
    }

    #[test]
    fn values_have_keys_and_lines() {
        let text = "\u{20}# a\r\nname = 'x' # y\r\n[dependencies] # z\nserde.version = \"1\"\n\"a.b\" = {version = \"2\", \
            features = [\n  \"std\", # why\n  ['in']\n], default-features = false,}\n\n[[bin]]\npath='../a.rs'\n\
            long = \"\"\"\n# no comment\n\\\"\"\" quoted\"\"\"\"\nlast = 1979-05-27T07:32:00Z\nu = \"\\u0041\\\\\"";
        assert_eq!(
            read(text).expect("TOML"),
            [
                "2 name \"x\"",
                "4 dependencies/serde/version \"1\"",
                "5 dependencies/a.b/version \"2\"",
                "5 dependencies/a.b/features [\"std\", \"in\"]",
                "5 dependencies/a.b/default-features false",
                "11 bin/path \"../a.rs\"",
                "12 bin/long \"\\n# no comment\\n\\\"\\\"\\\" quoted\"",
                "15 bin/last 1979-05-27T07:32:00Z",
                "16 bin/u \"A\\\\\"",
            ]
        );
        let entries = toml_entries("[dependencies.serde]\nversion = '1'\n").expect("TOML");
        assert_eq!([0, 1, 2].map(|at| entries[0].line_of_key(at)), [1, 1, 2]);
        assert_eq!(read(""), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_toml_is_not_read() {
        let deep = format!("a = {}{}", "[".repeat(200_000), "]".repeat(200_000));
        let long = format!("{} = 1", vec!["a"; 100].join("."));
        let (wide, many) = (format!("{} = 1", "a".repeat(3_000)), "a = 1\n".repeat(10_001));
        for text in [
            "a",
            "a =",
            "a = \n1",
            "= 1",
            "[a",
            "[a]]",
            "[[a]",
            "a = 'x",
            "a = \"x\ny\"",
            "a = [1",
            "a = {b = 1",
            "a = 1 2",
            "a = {{b}} = 1",
            "{% if x %}",
            "a = \"\\u12\"",
            "<<<<<<< HEAD",
            &deep,
            &long,
            &wide,
            &many,
        ] {
            assert_eq!(read(text), None, "{}", &text[..text.len().min(40)]);
        }
    }
}
