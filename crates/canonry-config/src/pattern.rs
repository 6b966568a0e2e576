//! Patterns for findings, and globs for paths.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most characters of a pattern, not counting `glob:` or `regex:`.
pub(crate) const MAX_PATTERN_CHARS: usize = 200;

/// The most memory that a compiled pattern may take. `\w{20}`, matched without letter case, takes about 200 KiB. Nested
/// repetitions are short to write and can fill the memory; this limit rejects them.
const MAX_COMPILED_BYTES: usize = 1 << 19;

/// What the title or message of a finding is compared with: text that it contains, `glob:…` for the
/// whole of it, or `regex:…` for a part of it; letter case never counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend(
    "format" = "canonry-pattern",
    "pattern" = r"^(?:glob:|regex:)?[\s\S]{1,200}$"
))]
pub struct Pattern(String);

/// A glob for paths from the root of the repository: `*` and `?` stay within a folder, `**` crosses
/// folders, `[ab]` and `{one,two}` choose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("format" = "canonry-path-glob", "minLength" = 1, "maxLength" = 200))]
pub struct PathGlob(String);

/// Why a text is no usable pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing to look for.
    #[error("it is empty")]
    Empty,
    /// It has too many characters.
    #[error("the pattern has {0} characters; at most {MAX_PATTERN_CHARS} are allowed")]
    TooLong(usize),
    /// A `[` without its `]`.
    #[error("its `[` is never closed")]
    UnclosedClass,
    /// A `{` without its `}`.
    #[error("its `{{` is never closed")]
    UnclosedBrace,
    /// A range such as `[z-a]`.
    #[error("its range `{0}-{1}` runs backwards")]
    BackwardRange(char, char),
    /// It ends in the middle of an escape.
    #[error("it ends with a single `\\`")]
    DanglingEscape,
    /// The regular expression means nothing.
    #[error("{0}")]
    Regex(String),
    /// The pattern would take too much memory.
    #[error("it is too large once compiled")]
    TooLarge,
}

impl Pattern {
    /// Checks that a text is a usable pattern.
    pub fn new(text: impl Into<String>) -> Result<Self, PatternError> {
        let text = text.into();
        compile_pattern(&text)?;
        Ok(Self(text))
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the regular expression that finds the pattern in a title or a message.
    pub fn matcher(&self) -> Regex {
        compile_pattern(&self.0).expect("invariant: a pattern was compiled when it was made")
    }
}

impl PathGlob {
    /// Checks that a text is a usable glob.
    pub fn new(text: impl Into<String>) -> Result<Self, PatternError> {
        let text = text.into();
        compile_path_glob(&text)?;
        Ok(Self(text))
    }

    /// Returns the glob as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the regular expression that matches a whole path.
    pub fn matcher(&self) -> Regex {
        compile_path_glob(&self.0).expect("invariant: a glob was compiled when it was made")
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::new(text)
    }
}

impl TryFrom<String> for PathGlob {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::new(text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl From<PathGlob> for String {
    fn from(glob: PathGlob) -> Self {
        glob.0
    }
}

fn compile_pattern(text: &str) -> Result<Regex, PatternError> {
    if let Some(expression) = text.strip_prefix("regex:") {
        check_length(expression)?;
        return compile(expression, Case::Ignored);
    }
    if let Some(glob) = text.strip_prefix("glob:") {
        check_length(glob)?;
        return compile(&translate_glob(glob, Star::CrossesFolders)?, Case::Ignored);
    }
    check_length(text)?;
    compile(&regex::escape(text), Case::Ignored)
}

fn compile_path_glob(text: &str) -> Result<Regex, PatternError> {
    check_length(text)?;
    compile(&translate_glob(text, Star::StaysInFolder)?, Case::Counts)
}

fn check_length(text: &str) -> Result<(), PatternError> {
    match text.chars().count() {
        0 => Err(PatternError::Empty),
        n if n > MAX_PATTERN_CHARS => Err(PatternError::TooLong(n)),
        _ => Ok(()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Counts,
    Ignored,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Star {
    StaysInFolder,
    CrossesFolders,
}

fn compile(expression: &str, case: Case) -> Result<Regex, PatternError> {
    RegexBuilder::new(expression)
        .case_insensitive(case == Case::Ignored)
        .size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
            other => PatternError::Regex(last_line(&other.to_string())),
        })
}

/// Returns the reason of a regex error. The regex crate prints the expression with a caret over several lines; the
/// reason is the last line.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Returns the regular expression that matches exactly what the glob matches.
fn translate_glob(glob: &str, star: Star) -> Result<String, PatternError> {
    let (any, one) = match star {
        Star::StaysInFolder => ("[^/]*", "[^/]"),
        Star::CrossesFolders => (".*", "."),
    };
    let mut out = String::from(r"(?s)\A");
    let mut open_braces = 0usize;
    let mut previous = None;
    let mut rest = glob.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                // `**/` also matches no folder at all, but only at the beginning of a folder name.
                let begins_folder = matches!(previous, None | Some('/'));
                if begins_folder && rest.next_if_eq(&'/').is_some() {
                    out.push_str("(?:.*/)?");
                    previous = Some('/');
                    continue;
                }
                out.push_str(".*");
            }
            '*' => out.push_str(any),
            '?' => out.push_str(one),
            '[' => translate_class(&mut rest, star, &mut out)?,
            '{' => {
                open_braces += 1;
                out.push_str("(?:");
            }
            '}' if open_braces > 0 => {
                open_braces -= 1;
                out.push(')');
            }
            ',' if open_braces > 0 => out.push('|'),
            '\\' => push_literal(rest.next().ok_or(PatternError::DanglingEscape)?, &mut out),
            other => push_literal(other, &mut out),
        }
        previous = Some(c);
    }
    if open_braces > 0 {
        return Err(PatternError::UnclosedBrace);
    }
    out.push_str(r"\z");
    Ok(out)
}

/// Translates a character class: what follows a `[` up to its `]`.
fn translate_class(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    star: Star,
    out: &mut String,
) -> Result<(), PatternError> {
    let negated = rest.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut members = Vec::new();
    loop {
        let c = rest.next().ok_or(PatternError::UnclosedClass)?;
        // A `]` directly after the opening bracket is a member of the class, as in every shell.
        if c == ']' && !members.is_empty() {
            break;
        }
        members.push(c);
    }
    out.push_str(if negated { "[^" } else { "[" });
    if negated && star == Star::StaysInFolder {
        out.push('/');
    }
    let mut at = 0;
    while at < members.len() {
        let first = members[at];
        if members.get(at + 1) == Some(&'-')
            && let Some(&last) = members.get(at + 2)
        {
            if last < first {
                return Err(PatternError::BackwardRange(first, last));
            }
            push_code_point(first, out);
            out.push('-');
            push_code_point(last, out);
            at += 3;
        } else {
            push_code_point(first, out);
            at += 1;
        }
    }
    out.push(']');
    Ok(())
}

fn push_literal(c: char, out: &mut String) {
    out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// Writes a member of a class by its code point, never as itself: inside a class `&&`, `--` and `~~` are operators.
fn push_code_point(c: char, out: &mut String) {
    out.push_str(&format!(r"\x{{{:X}}}", u32::from(c)));
}

#[cfg(test)]
mod tests {
    use super::{PathGlob, Pattern, PatternError};

    #[test]
    fn patterns_match_without_case() {
        for (pattern, text, expected) in [
            ("unused import", "Unused Import of x", true),
            ("a.c", "abc", false),
            ("glob:unused*", "Unused a/b", true),
            ("glob:unused", "an unused thing", false),
            ("glob:todo ?", "TODO 1", true),
            ("glob:{sql,shell} injection", "Shell injection", true),
            ("regex:sql\\s+injection", "Possible SQL  injection", true),
            ("regex:^sql", "no SQL", false),
        ] {
            let matcher = Pattern::new(pattern).expect(pattern).matcher();
            assert_eq!(matcher.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_star_in_a_path_stays_in_its_folder() {
        for (glob, path, expected) in [
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**", "src/a/b.rs", true),
            ("**/*test*", "test.rs", true),
            ("**/*test*", "a/b/my_test.rs", true),
            ("**/gen/**", "regen/x", false),
            ("src/**/mod.rs", "src/mod.rs", true),
            ("src/**/mod.rs", "src/a/b/mod.rs", true),
            ("a?c", "a/c", false),
            ("a[!b]c", "a/c", false),
            ("a[!b]c", "axc", true),
            ("[]a]", "]", true),
            ("v[0-9].{json,yml}", "v1.yml", true),
            ("a\\*", "a*", true),
            ("SRC/*", "src/a", false),
            ("日本/*", "日本/語", true),
            ("[a&&b]", "&", true),
        ] {
            let matcher = PathGlob::new(glob).expect(glob).matcher();
            assert_eq!(matcher.is_match(path), expected, "{glob} on {path}");
        }
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (pattern, reason) in [
            ("", "it is empty"),
            ("glob:", "it is empty"),
            ("regex:(a", "unclosed group"),
            ("glob:[a", "its `[` is never closed"),
            ("glob:{a", "its `{` is never closed"),
            ("glob:[z-a]", "its range `z-a` runs backwards"),
            ("glob:a\\", "it ends with a single `\\`"),
            ("regex:((a{100}){100}){100}", "it is too large once compiled"),
            ("regex:(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
        ] {
            let error = Pattern::new(pattern).expect_err(pattern);
            assert_eq!(error.to_string(), reason, "{pattern}");
        }
    }

    #[test]
    fn two_hundred_characters_are_counted_without_the_prefix() {
        for prefix in ["", "glob:", "regex:"] {
            let longest = format!("{prefix}{}", "é".repeat(200));
            assert_eq!(Pattern::new(&longest).expect("200 fit").as_str(), longest);
            assert_eq!(Pattern::new(longest + "é"), Err(PatternError::TooLong(201)), "{prefix}");
        }
    }
}
