//! Separates the code of each line of a file from its strings and comments.

use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::Regex;

use super::syntax::Language;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CodeLine {
    /// The code; strings and comments are blanked, so that columns stay the same.
    pub(super) code: String,
    pub(super) comment: String,
}

/// What the text at a position is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Within {
    Code,
    LineComment,
    BlockComment,
    String(OpenString),
    Regex { in_class: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenString {
    /// What begins it in the code.
    begin: String,
    end: String,
    /// The bracket that must be closed once more for each time it occurs, as in `%q(a (b))`.
    nests: Option<char>,
    depth: usize,
    over_lines: bool,
    has_escapes: bool,
}

impl OpenString {
    fn new(begin: &str, end: String) -> Self {
        Self { begin: begin.to_owned(), end, nests: None, depth: 0, over_lines: true, has_escapes: false }
    }
}

/// Splits a file into lines of code. This is not a parser: a mistake, such as a quote in a regular expression, ends
/// with its line in most languages.
pub(super) fn code_lines(text: &str, language: Language) -> Vec<CodeLine> {
    let lines: Vec<&str> = text.lines().collect();
    let mut within = Within::Code;
    let mut heredocs: VecDeque<String> = VecDeque::new();
    let mut read = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        if let Some(end) = heredocs.front() {
            if ends_heredoc(line, end) {
                heredocs.pop_front();
            }
            read.push(CodeLine { code: " ".repeat(line.chars().count()), comment: String::new() });
            continue;
        }
        let was_code = within == Within::Code;
        let code = code_line(line, language, &mut within);
        if was_code {
            // Without its end it is something else, such as a shift.
            let begun = heredocs_begun(line, &code.code, language).into_iter();
            heredocs.extend(begun.filter(|end| lines[at + 1..].iter().any(|line| ends_heredoc(line, end))));
        }
        read.push(code);
    }
    read
}

static HEREDOC: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"<<(?:[~-]?["'`]?([A-Z_][A-Za-z0-9_]*)|<\s*["']?([A-Za-z_][A-Za-z0-9_]*))"#)
        .expect("invariant: a constant pattern")
});

/// The words that end the heredocs that a line begins.
fn heredocs_begun(line: &str, code: &str, language: Language) -> Vec<String> {
    if !matches!(language, Language::Ruby | Language::Php) || !code.contains("<<") {
        return Vec::new();
    }
    let is_code = |at: usize| code.chars().nth(line[..at].chars().count()) == Some('<');
    let begun = HEREDOC.captures_iter(line).filter(|found| found.get(0).is_some_and(|whole| is_code(whole.start())));
    let word = |found: regex::Captures<'_>| {
        let group = if language == Language::Php { 2 } else { 1 };
        found.get(group).map(|word| word.as_str().to_owned())
    };
    begun.filter_map(word).collect()
}

fn ends_heredoc(line: &str, end: &str) -> bool {
    let rest = line.trim_start().strip_prefix(end);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

fn code_line(line: &str, language: Language, within: &mut Within) -> CodeLine {
    let mut read = CodeLine::default();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match within {
            Within::LineComment => read.comment.push(c),
            Within::BlockComment if rest.starts_with("*/") => {
                *within = Within::Code;
                taken = 2;
            }
            Within::BlockComment => read.comment.push(c),
            Within::Regex { .. } if c == '\\' => taken += next_length(&rest[taken..]),
            Within::String(open) if open.has_escapes && c == '\\' => taken += next_length(&rest[taken..]),
            Within::String(open) if open.depth > 0 && rest.starts_with(&open.end) => open.depth -= 1,
            Within::String(open) if rest.starts_with(&open.end) => {
                let end = std::mem::take(&mut open.end);
                *within = Within::Code;
                read.code.push_str(&end);
                rest = &rest[end.len()..];
                continue;
            }
            Within::String(open) if open.nests == Some(c) => open.depth += 1,
            Within::String(_) => {}
            Within::Regex { in_class } => {
                *within = match c {
                    '/' if !*in_class => Within::Code,
                    '[' => Within::Regex { in_class: true },
                    ']' => Within::Regex { in_class: false },
                    _ => Within::Regex { in_class: *in_class },
                };
            }
            Within::Code => {
                *within = begins(rest, &read.code, language);
                match within {
                    Within::Code => {
                        read.code.push(c);
                        rest = &rest[taken..];
                        continue;
                    }
                    Within::String(open) => {
                        read.code.push_str(&open.begin);
                        rest = &rest[open.begin.len()..];
                        continue;
                    }
                    Within::BlockComment => taken = 2,
                    Within::LineComment | Within::Regex { .. } => {}
                }
            }
        }
        read.code.extend(std::iter::repeat_n(' ', rest[..taken].chars().count()));
        rest = &rest[taken..];
    }
    match within {
        Within::BlockComment => {}
        Within::String(open) if open.over_lines => {}
        _ => *within = Within::Code,
    }
    read
}

fn next_length(rest: &str) -> usize {
    rest.chars().next().map_or(0, char::len_utf8)
}

/// What begins here. `before` is the code before it in the same line.
fn begins(rest: &str, before: &str, language: Language) -> Within {
    if language.line_comments().iter().any(|mark| rest.starts_with(mark)) {
        // `#{…}` in Ruby and `#[…]` in PHP are code.
        let is_code = (language == Language::Php && rest.starts_with("#["))
            || (language == Language::Ruby && rest.starts_with("#{"));
        return if is_code { Within::Code } else { Within::LineComment };
    }
    if language.has_block_comments() && rest.starts_with("/*") {
        return Within::BlockComment;
    }
    if let Some(open) = raw_string(rest, before, language) {
        return Within::String(open);
    }
    if let Some((quote, over_lines)) = language.quotes().iter().find(|(quote, _)| rest.starts_with(quote)) {
        // `'"'` and `'\"'` are character literals in most of these languages.
        let opens_character = before.ends_with('\'') || before.ends_with("'\\");
        let is_character = *quote == "\"" && opens_character && rest[1..].starts_with('\'');
        let has_escapes = !(language == Language::Go && *quote == "`");
        let open = OpenString { over_lines: *over_lines, has_escapes, ..OpenString::new(quote, (*quote).to_owned()) };
        return if is_character { Within::Code } else { Within::String(open) };
    }
    let begins_regex = || {
        let before = before.trim_end();
        before.is_empty()
            || before.ends_with(['(', ',', '=', ':', '[', '!', '&', '|', '?', '{', '}', ';'])
            || before.ends_with("return")
    };
    if language.has_regex_literals() && rest.starts_with('/') && begins_regex() {
        return Within::Regex { in_class: false };
    }
    Within::Code
}

/// A string with marks of its own: `r#"…"#`, `R"x(…)x"`, `@"…"`, `%q(…)`.
fn raw_string(rest: &str, before: &str, language: Language) -> Option<OpenString> {
    let follows_word = |before: &str| before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    match language {
        Language::Rust => {
            let before = before.strip_suffix(['b', 'c']).unwrap_or(before);
            let marks = rest.strip_prefix('r').filter(|_| !follows_word(before))?;
            let hashes = marks.len() - marks.trim_start_matches('#').len();
            marks[hashes..]
                .starts_with('"')
                .then(|| OpenString::new(&rest[..hashes + 2], format!("\"{}", "#".repeat(hashes))))
        }
        Language::C => {
            let before = ["u8", "u", "U", "L"].iter().find_map(|kind| before.strip_suffix(kind)).unwrap_or(before);
            let (word, _) = rest.strip_prefix("R\"").filter(|_| !follows_word(before))?.split_once('(')?;
            (word.len() <= 16 && !word.contains([' ', ')', '\\', '"']))
                .then(|| OpenString::new(&rest[..word.len() + 3], format!("){word}\"")))
        }
        Language::CSharp => rest.starts_with("@\"").then(|| OpenString::new("@\"", "\"".to_owned())),
        Language::Ruby | Language::Elixir => {
            let (sign, kinds) = if language == Language::Ruby { ('%', "qQwWiIrsx") } else { ('~', "sSwWrRcC") };
            let after = rest.strip_prefix(sign).filter(|_| !follows_word(before))?;
            let kind = after.chars().next().filter(|kind| kinds.contains(*kind))?;
            let open = after[kind.len_utf8()..].chars().next()?;
            let close = match open {
                '(' => ')',
                '[' => ']',
                '{' => '}',
                '<' => '>',
                '|' | '!' | '/' | '^' | '~' => open,
                _ => return None,
            };
            let nests = (open != close).then_some(open);
            Some(OpenString {
                nests,
                has_escapes: true,
                ..OpenString::new(&rest[..2 + open.len_utf8()], close.to_string())
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, code_lines};

    fn code(text: &str, language: Language) -> Vec<String> {
        code_lines(text, language).into_iter().map(|line| line.code.trim_end().to_owned()).collect()
    }

    #[test]
    fn strings_and_comments_are_blank() {
        for (language, text, expected) in [
            (Language::JavaScript, "a('x // y'); // b('z')", vec!["a('      ');"]),
            (Language::JavaScript, "a(`one\ntwo ${b}`); c();", vec!["a(`", "        `); c();"]),
            (Language::JavaScript, "x = /\"'/.test(y); z('q');", vec!["x =     .test(y); z(' ');"]),
            (Language::JavaScript, "a = b / c; d('e') / 2", vec!["a = b / c; d(' ') / 2"]),
            (Language::JavaScript, "<p>Don't</p>\nf();", vec!["<p>Don'", "f();"]),
            (Language::JavaScript, "/* a\n b */ c();", vec!["", "      c();"]),
            (
                Language::Rust,
                "fn f<'a>(x: &'a str) { dbg!('\"', \"dbg!(x)\") }",
                vec!["fn f<'a>(x: &'a str) { dbg!('\"', \"       \") }"],
            ),
            (Language::Rust, "let a = \"one\ntwo\"; b();", vec!["let a = \"", "   \"; b();"]),
            (
                Language::Python,
                "\"\"\"doc\nbreakpoint()\n\"\"\"\nx = 'a#b'  # c",
                vec!["\"\"\"", "", "\"\"\"", "x = '   '"],
            ),
            (Language::Ruby, "puts \"#{a}\" # b", vec!["puts \"    \""]),
            (Language::Php, "#[Attribute]\nvar_dump($a); # b", vec!["#[Attribute]", "var_dump($a);"]),
            (Language::C, "char c = '\"'; f(\"g()\");", vec!["char c = '\"'; f(\"   \");"]),
            (
                Language::Rust,
                "let c = '\\\"'; f(\"dbg!(x)\");\ndbg!(c);",
                vec!["let c = '\\\"'; f(\"       \");", "dbg!(c);"],
            ),
            (Language::Rust, "a(r#\"b \"c\" #\"#); d(r\"\\\"); e();", vec!["a(r#\"       \"#); d(r\" \"); e();"]),
            (Language::Rust, "let r = br##\"a\nb\"#\n\"##; c(r#type);", vec!["let r = br##\"", "", "\"##; c(r#type);"]),
            (Language::C, "a(R\"x(b)\" )x\"); c();", vec!["a(R\"x(    )x\"); c();"]),
            (Language::CSharp, "a(@\"c:\\\"); b();", vec!["a(@\"   \"); b();"]),
            (Language::Go, "a(`\\`); b()", vec!["a(` `); b()"]),
            (Language::Ruby, "a = %q(it's (not) so); b(x % 3)", vec!["a = %q(             ); b(x % 3)"]),
            (Language::Ruby, "w = %w[a'b c]; d %w|x|", vec!["w = %w[     ]; d %w| |"]),
            (Language::Ruby, "a <<~SQL, 'x'\n  don't\n  SQL\nb <<C", vec!["a <<~SQL, ' '", "", "", "b <<C"]),
            (Language::Ruby, "a(<<-ONE, <<-TWO)\n'\nONE\n\"\nTWO\nb", vec!["a(<<-ONE, <<-TWO)", "", "", "", "", "b"]),
            (Language::Php, "$a = <<<'EOT'\ndd($x) '\nEOT;\nf();", vec!["$a = <<<'   '", "", "", "f();"]),
            (Language::Rust, "f('\\'', \"'\\\"'\"); g();", vec!["f('\\'', \"    \"); g();"]),
        ] {
            assert_eq!(code(text, language), expected, "{text}");
        }
    }

    #[test]
    fn comments_are_kept_apart() {
        let lines = code_lines("a(); // because of #12\n/* b */ c();", Language::JavaScript);
        assert_eq!(lines[0].comment.trim(), "/ because of #12");
        assert_eq!(lines[1].comment.trim(), "b");
    }
}
