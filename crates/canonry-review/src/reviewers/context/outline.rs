//! Finds the definitions in a file by keywords and indentation, in every language alike.
//!
//! This is no parser. It finds what is written as a formatter writes it: a definition begins a line, and its body is
//! indented below it. It misses definitions in the middle of a line, bodies that are not indented, and what macros
//! define; it may take the head of a call with a block for a definition. What it finds is shown to a model as context,
//! so a mistake costs room and decides nothing.

/// The lines that the head of a definition has at most, parameters included.
const HEAD_LINES: usize = 8;

/// A definition and its lines, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// The definitions of a file, by their first lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    definitions: Vec<Definition>,
}

impl Outline {
    pub(crate) fn of(lines: &[&str]) -> Self {
        let heads = lines.iter().enumerate().filter_map(|(at, line)| Some((at, defined_name(line, lines, at)?)));
        let definition = |(at, name): (usize, &str)| {
            let number = |line: usize| u32::try_from(line + 1).unwrap_or(u32::MAX);
            Definition { name: name.to_owned(), first: number(at), last: number(last_line(lines, at)) }
        };
        Self { definitions: heads.map(definition).collect() }
    }

    pub(crate) fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The definitions around a line, the outermost first.
    pub(crate) fn around(&self, line: u32) -> impl Iterator<Item = &Definition> {
        self.definitions.iter().filter(move |one| (one.first..=one.last).contains(&line))
    }

    /// The smallest definition around a line.
    pub(crate) fn innermost(&self, line: u32) -> Option<&Definition> {
        self.around(line).last()
    }
}

/// Words before a definition that say nothing of what it is.
const MODIFIERS: [&str; 29] = [
    "abstract",
    "async",
    "default",
    "export",
    "extern",
    "final",
    "inline",
    "internal",
    "local",
    "mutable",
    "native",
    "open",
    "operator",
    "override",
    "partial",
    "private",
    "protected",
    "pub",
    "public",
    "readonly",
    "sealed",
    "static",
    "suspend",
    "synchronized",
    "unsafe",
    "virtual",
    "constexpr",
    "data",
    "declare",
];

/// Words that begin a definition; the next word is its name.
const KEYWORDS: [&str; 21] = [
    "class",
    "def",
    "defp",
    "enum",
    "extension",
    "fn",
    "fun",
    "func",
    "function",
    "impl",
    "interface",
    "macro_rules!",
    "mod",
    "module",
    "namespace",
    "object",
    "protocol",
    "record",
    "struct",
    "trait",
    "union",
];

/// Words before a parenthesis that are no names of functions.
const NO_FUNCTIONS: [&str; 28] = [
    "if",
    "for",
    "foreach",
    "while",
    "switch",
    "match",
    "catch",
    "return",
    "else",
    "do",
    "try",
    "using",
    "lock",
    "when",
    "new",
    "throw",
    "assert",
    "sizeof",
    "await",
    "yield",
    "with",
    "synchronized",
    "super",
    "until",
    "unless",
    "elif",
    "loop",
    "defer",
];

/// The name that a line defines.
fn defined_name<'a>(line: &'a str, lines: &[&str], at: usize) -> Option<&'a str> {
    let text = line.trim_start();
    if text.is_empty() || is_comment(text) {
        return None;
    }
    let mut rest = text;
    loop {
        let (word, after) = first_word(rest);
        let is_visibility = word == "pub" && after.starts_with('(');
        if is_visibility {
            rest = after.split_once(')').map_or("", |(_, after)| after).trim_start();
        } else if (MODIFIERS.contains(&word) || is_const_function(word, after)) && is_word_next(after) {
            rest = after.trim_start();
        } else {
            break;
        }
    }
    let (word, after) = first_word(rest);
    if KEYWORDS.contains(&word) {
        let after = after.trim_start().trim_start_matches('*').trim_start();
        // The receiver of a method in Go.
        let after = match word == "func" && after.starts_with('(') {
            true => after.split_once(')').map_or("", |(_, after)| after).trim_start(),
            false => after,
        };
        // Type parameters and the trait in Rust.
        let after = match word == "impl" && after.starts_with('<') {
            true => after.split_once("> ").map_or("", |(_, after)| after),
            false => after,
        };
        let after = match (word, after.split_once(" for ")) {
            ("impl", Some((_, type_name))) => type_name,
            _ => after,
        };
        // `def self.name`, `Outer::name`
        let name = after.strip_prefix("self.").unwrap_or(after);
        let name = name_at(name);
        return (!name.is_empty()).then_some(name);
    }
    if ["type", "const", "let", "var"].contains(&word) {
        return named_value(after.trim_start(), word == "type");
    }
    bare_function(rest, lines, at)
}

fn is_const_function(word: &str, after: &str) -> bool {
    word == "const" && ["fn", "unsafe", "async", "extern"].contains(&first_word(after.trim_start()).0)
}

/// Whether another word follows: a method may be called `open`.
fn is_word_next(after: &str) -> bool {
    after.starts_with(char::is_whitespace) && after.trim_start().starts_with(is_name)
}

/// `const name = (…) => {`, `type Name struct {`, `name = function (…) {`
fn named_value(rest: &str, is_type: bool) -> Option<&str> {
    let name = name_at(rest);
    let value = rest[name.len()..].trim_start();
    let is_shown = match is_type {
        true => ["=", "struct", "interface", "func"].iter().any(|begin| value.starts_with(begin)),
        false => value.contains("=>") || value.contains("function"),
    };
    (!name.is_empty() && is_shown).then_some(name)
}

/// `int name(…) {`, `name(…) {` in a class: a name before a parenthesis, and a body.
fn bare_function<'a>(rest: &'a str, lines: &[&str], at: usize) -> Option<&'a str> {
    let (before, _) = rest.split_once('(')?;
    let before = before.trim_end();
    // Not a call, an assignment or a condition.
    if before.contains(['=', '"', '\'', ';', '{', '.', '!', ')']) || before.ends_with(['+', '-', '/', '<', '>', ',']) {
        return None;
    }
    let start = before
        .rfind(|c: char| !is_name(c))
        .map_or(0, |place| place + before[place..].chars().next().map_or(1, char::len_utf8));
    let name = &before[start..];
    let first = first_word(before).0;
    if name.is_empty()
        || !name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        || NO_FUNCTIONS.contains(&name)
        || NO_FUNCTIONS.contains(&first)
    {
        return None;
    }
    has_body(&lines[at..]).then_some(name)
}

/// Whether a head with parentheses is followed by a body in braces.
fn has_body(lines: &[&str]) -> bool {
    let mut open = 0_i32;
    for (at, line) in lines.iter().take(HEAD_LINES).enumerate() {
        let text = line.trim();
        // After the parameters come a body, or words before it.
        if at > 0
            && open == 0
            && !["{", "throws", "where", ":", "->", "noexcept", "const", "override"]
                .iter()
                .any(|next| text.starts_with(next))
        {
            return false;
        }
        open += text.chars().map(|c| i32::from(c == '(') - i32::from(c == ')')).sum::<i32>();
        if open < 0 || text.ends_with(';') {
            return false;
        }
        if open == 0 && (text.ends_with('{') || text.ends_with("{}") || text.ends_with('}')) {
            return true;
        }
    }
    false
}

/// The last line of a definition: the one before the next line that is indented no more than its head, or that line if
/// it closes the body.
fn last_line(lines: &[&str], at: usize) -> usize {
    let indent = indentation(lines[at]);
    let mut last = at;
    for (line, text) in lines.iter().enumerate().skip(at + 1) {
        let bare = text.trim();
        if bare.is_empty() {
            continue;
        }
        if indentation(text) > indent {
            last = line;
            continue;
        }
        let is_outside = indentation(text) < indent;
        // What goes on with the head, or opens the body: `) -> u8 {`, `{`, `where`.
        let goes_on = line - at <= HEAD_LINES
            && last == line - 1
            && (bare.starts_with([')', '{', ']', '>']) || bare == "where")
            && !bare.starts_with("})");
        if !is_outside && goes_on && (bare.ends_with(['{', ':', ',']) || bare == "where") {
            last = line;
            continue;
        }
        let closes = !is_outside && (bare.starts_with(['}', ')', ']']) || bare == "end" || bare.starts_with("end "));
        return if closes { line } else { last };
    }
    last
}

fn is_comment(text: &str) -> bool {
    ["//", "#", "*", "/*", "--", "<!--", ";"].iter().any(|mark| text.starts_with(mark))
}

fn first_word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !is_name(c) && c != '!').unwrap_or(text.len());
    text.split_at(end)
}

fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
    &text[..end]
}

pub(super) fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

fn indentation(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::Outline;

    /// The names and lines that are found in a text.
    fn outline(text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let outline = Outline::of(&lines);
        outline.definitions().iter().map(|one| format!("{} {}-{}", one.name, one.first, one.last)).collect()
    }

    #[test]
    fn rust() {
        let text = "use a::b;\n\npub(crate) struct Pool {\n    depth: u8,\n}\n\nimpl<T: Tide> Rise for Pool<T> {\n    \
            /// Rises.\n    pub async fn rise(\n        &self,\n        by: u8,\n    ) -> Result<u8, Error> {\n        \
            if by > 1 {\n            call(by);\n        }\n        Ok(by)\n    }\n}\n\nmacro_rules! wave {\n    () => {};\n}\nfn low(x: u8) -> u8 { x }\n";
        assert_eq!(outline(text), ["Pool 3-5", "Pool 7-18", "rise 9-17", "wave 20-22", "low 23-23"]);
    }

    #[test]
    fn python() {
        let text = "import a\n\n@cached\nclass Pool(Base):\n    depth = 1\n\n    async def rise(self, by):\n        if by:\n            \
            call(by)\n\n        return by\n\ndef low(\n    x,\n):\n    return x\n\nprint(low(1))\n";
        assert_eq!(outline(text), ["Pool 4-11", "rise 7-11", "low 13-16"]);
    }

    #[test]
    fn typescript() {
        let text = "export default class Pool extends Base {\n  constructor(private depth: number) {\n    super();\n  }\n\n  \
            async rise(by: number): Promise<void> {\n    if (by > 1) {\n      list.forEach((one) => {\n        call(one);\n      });\n    }\n  }\n}\n\n\
            export const low = async (x: number) => {\n  return x;\n};\n\nfunction* wave() {\n  yield 1;\n}\n\ninterface Tide {\n  at: Date;\n}\n\ncall(1);\n";
        assert_eq!(
            outline(text),
            ["Pool 1-13", "constructor 2-4", "rise 6-12", "low 15-17", "wave 19-21", "Tide 23-25"]
        );
    }

    #[test]
    fn go() {
        let text = "package pool\n\ntype Pool struct {\n\tDepth int\n}\n\nfunc (p *Pool) Rise(by int) error {\n\tif by > 1 {\n\t\treturn call(by)\n\t}\n\treturn nil\n}\n\n\
            func low(\n\tx int,\n) int {\n\treturn x\n}\n";
        assert_eq!(outline(text), ["Pool 3-5", "Rise 7-12", "low 14-18"]);
    }

    #[test]
    fn java_and_c() {
        let text = "public final class Pool {\n    @Override\n    public int rise(int by) throws Deep {\n        for (int i = 0; i < by; i++) {\n            call(i);\n        }\n        return by;\n    }\n}\n";
        assert_eq!(outline(text), ["Pool 1-9", "rise 3-8"]);
        let text = "static int\nnever;\n\nstatic unsigned long low(struct pool *p,\n                         int by)\n{\n\tif (by) {\n\t\tcall(by);\n\t}\n\treturn 0;\n}\n\nint declared(int x);\n";
        assert_eq!(outline(text), ["low 4-11"]);
    }

    #[test]
    fn ruby() {
        let text = "module Tide\n  class Pool\n    def rise(by)\n      call(by) if by\n    end\n\n    def self.low = 1\n  end\nend\n";
        assert_eq!(outline(text), ["Tide 1-9", "Pool 2-8", "rise 3-5", "low 7-7"]);
    }

    #[test]
    fn the_definitions_around_a_line() {
        let lines: Vec<&str> = "class Pool:\n    def rise(self):\n        call()\n\nx = 1\n".lines().collect();
        let outline = Outline::of(&lines);
        assert_eq!(outline.around(3).map(|one| one.name.as_str()).collect::<Vec<_>>(), ["Pool", "rise"]);
        assert_eq!(outline.innermost(3).map(|one| one.name.as_str()), Some("rise"));
        assert_eq!((outline.innermost(5), outline.innermost(99)), (None, None));
    }

    proptest! {
        #[test]
        fn any_text_has_an_outline(text in any::<String>(), lines in proptest::collection::vec("[ \t]{0,4}(fn |def |class |impl<|func \\(|type |const |x\\(|pub\\()?[a-z(){};:=>.é ]{0,12}", 0..20)) {
            for text in [text, lines.join("\n")] {
                let lines: Vec<&str> = text.lines().collect();
                for one in Outline::of(&lines).definitions() {
                    prop_assert!(one.first >= 1 && one.first <= one.last && one.last as usize <= lines.len());
                    prop_assert!(!one.name.is_empty());
                }
            }
        }
    }
}
