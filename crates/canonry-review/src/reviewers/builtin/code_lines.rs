//! Separates the code of each line of a file from its strings and comments.

use super::syntax::Language;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CodeLine {
    /// The code; strings and comments are blanked, so that columns stay the same.
    pub(super) code: String,
    pub(super) comment: String,
}

/// What the text at a position is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Code,
    LineComment,
    BlockComment,
    String { quote: &'static str, over_lines: bool },
    Regex { in_class: bool },
}

/// Splits a file into lines of code. This is not a parser: a mistake, such as a quote in a regular expression, ends
/// with its line in most languages.
pub(super) fn code_lines(text: &str, language: Language) -> Vec<CodeLine> {
    let mut within = Within::Code;
    text.lines().map(|line| code_line(line, language, &mut within)).collect()
}

fn code_line(line: &str, language: Language, within: &mut Within) -> CodeLine {
    let mut read = CodeLine::default();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match *within {
            Within::LineComment => read.comment.push(c),
            Within::BlockComment if rest.starts_with("*/") => {
                *within = Within::Code;
                taken = 2;
            }
            Within::BlockComment => read.comment.push(c),
            Within::String { .. } | Within::Regex { .. } if c == '\\' => {
                taken += rest[taken..].chars().next().map_or(0, char::len_utf8);
            }
            Within::String { quote, .. } if rest.starts_with(quote) => {
                *within = Within::Code;
                taken = quote.len();
                read.code.push_str(quote);
                rest = &rest[taken..];
                continue;
            }
            Within::String { .. } => {}
            Within::Regex { in_class } => {
                *within = match c {
                    '/' if !in_class => Within::Code,
                    '[' => Within::Regex { in_class: true },
                    ']' => Within::Regex { in_class: false },
                    _ => Within::Regex { in_class },
                };
            }
            Within::Code => {
                *within = begins(rest, &read.code, language);
                match *within {
                    Within::Code => {
                        read.code.push(c);
                        rest = &rest[taken..];
                        continue;
                    }
                    Within::String { quote, .. } => {
                        read.code.push_str(quote);
                        rest = &rest[quote.len()..];
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
    match *within {
        Within::BlockComment | Within::String { over_lines: true, .. } => {}
        _ => *within = Within::Code,
    }
    read
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
    if let Some((quote, over_lines)) = language.quotes().iter().find(|(quote, _)| rest.starts_with(quote)) {
        // `'"'` and `'\"'` are character literals in most of these languages.
        let opens_character = before.ends_with('\'') || before.ends_with("'\\");
        let is_character = *quote == "\"" && opens_character && rest[1..].starts_with('\'');
        return if is_character { Within::Code } else { Within::String { quote, over_lines: *over_lines } };
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
