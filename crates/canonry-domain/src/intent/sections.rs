//! Splits a body into the sections of the template it was written in.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::fences::{FenceLine, FenceReader};

/// The question that a part of a body answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// The text before the first heading.
    Intro,
    Problem,
    Expected,
    Actual,
    Steps,
    Version,
    Environment,
    Scope,
    Other,
}

/// The content under one heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BodySection {
    pub(crate) section: Section,
    pub(crate) heading: String,
    pub(crate) entries: Vec<String>,
    pub(crate) code: Vec<String>,
}

impl BodySection {
    fn new(section: Section, heading: &str) -> Self {
        Self { section, heading: heading.to_owned(), entries: Vec::new(), code: Vec::new() }
    }

    /// Whether a heading has no content, or only the text of the template.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.entries.is_empty() && self.code.is_empty() && self.section != Section::Intro
    }
}

/// The maximum number of characters of a body that are read. The report is at the beginning; logs follow.
const READ_LIMIT: usize = 40_000;

pub(crate) fn sections(body: &str) -> Vec<BodySection> {
    let read = body.char_indices().nth(READ_LIMIT).map_or(body, |(end, _)| &body[..end]);
    let read = COMMENT.replace_all(read, "");
    let mut reading = SectionReader::default();
    for line in read.lines() {
        reading.line(line);
    }
    reading.end_paragraph();
    reading.parts
}

struct SectionReader {
    parts: Vec<BodySection>,
    paragraph: String,
    fences: FenceReader,
    code_may_begin: bool,
}

impl Default for SectionReader {
    fn default() -> Self {
        let parts = vec![BodySection::new(Section::Intro, "")];
        Self { parts, paragraph: String::new(), fences: FenceReader::default(), code_may_begin: true }
    }
}

impl SectionReader {
    fn line(&mut self, line: &str) {
        let bare = line.trim();
        match self.fences.read(line) {
            FenceLine::Outside => {}
            FenceLine::Begins => return self.end_paragraph(),
            FenceLine::Ends => return,
            FenceLine::Code => return self.part().code.push(line.to_owned()),
        }
        // Indented text is code, unless it continues a paragraph or a list.
        if self.code_may_begin && (line.starts_with("    ") || line.starts_with('\t')) && !bare.is_empty() {
            self.part().code.push(line.to_owned());
            return;
        }
        let bare = TAG.replace_all(bare, "");
        let bare = bare.trim_start_matches(['>', ' ']).trim();
        self.code_may_begin = bare.is_empty();
        if bare.is_empty() {
            self.end_paragraph();
        } else if let Some((section, heading, rest)) = heading(bare) {
            self.end_paragraph();
            self.parts.push(BodySection::new(section, heading));
            self.prose(rest);
        } else if let Some(entry) = LIST.find(bare) {
            self.end_paragraph();
            self.prose(&bare[entry.end()..]);
        } else {
            self.prose(bare);
        }
    }

    fn prose(&mut self, text: &str) {
        if !text.is_empty() {
            if !self.paragraph.is_empty() {
                self.paragraph.push(' ');
            }
            self.paragraph.push_str(text);
        }
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        let says = paragraph.trim_matches(|character: char| !character.is_alphanumeric()).to_lowercase();
        if !says.is_empty() && !["no response", "n/a", "none", "na", "无", "なし"].contains(&says.as_str()) {
            self.part().entries.push(paragraph);
        }
    }

    fn part(&mut self) -> &mut BodySection {
        self.parts.last_mut().expect("invariant: the intro is always there")
    }
}

/// The section, the words and the rest of a line that is a heading or begins with a label.
pub(crate) fn heading(line: &str) -> Option<(Section, &str, &str)> {
    if let Some(found) = MARKDOWN_HEADING.captures(line) {
        let words = found.get(1)?.as_str().trim_matches(['*', '_', ' ', ':', '：']);
        return Some((section_of(words).unwrap_or(Section::Other), words, ""));
    }
    if let Some(found) = BOLD_LABEL.captures(line) {
        let words = found.get(1).or(found.get(2))?.as_str().trim_end_matches([':', '：', ' ']);
        let rest = found.get(3)?.as_str();
        let section = section_of(words);
        // A bold word at the beginning of a sentence is not a heading.
        return if rest.is_empty() {
            Some((section.unwrap_or(Section::Other), words, ""))
        } else {
            Some((section?, words, rest))
        };
    }
    let found = PLAIN_LABEL.captures(line)?;
    let words = found.get(1)?.as_str();
    let short = words.split_whitespace().count() <= 4;
    Some((section_of(words).filter(|_| short)?, words, found.get(2)?.as_str()))
}

/// The words of headings in the templates of many projects, in the order in which they are checked. A space means the
/// edge of a word; scripts without spaces have none.
const ASKED: &[(Section, &[&str])] = &[
    (Section::Other, &[" checklist ", " test plan ", " tested ", " testing "]),
    (Section::Scope, &[" scope ", " non goal", " limitation", "范围", "範囲"]),
    (
        Section::Steps,
        &[" reproduc", " repro ", " steps ", " how to trigger ", "复现", "重现", "再現", "重現", "步骤", "手順"],
    ),
    (
        Section::Expected,
        &[
            " expect",
            " desired ",
            " proposed ",
            " proposal ",
            " solution ",
            " feature ",
            "期望",
            "预期",
            "期待",
            "希望",
        ],
    ),
    (
        Section::Actual,
        &[
            " actual",
            " happened ",
            " happens ",
            " observed ",
            " current behavio",
            " instead ",
            " backtrace ",
            " stack ",
            " traceback ",
            " log ",
            " logs ",
            " output ",
            "实际",
            "実際",
        ],
    ),
    (Section::Version, &[" version", "版本", "バージョン"]),
    (
        Section::Environment,
        &[
            " environment ",
            " system ",
            " platform ",
            " os ",
            " meta ",
            " configuration ",
            " setup ",
            " browser ",
            " device ",
            "环境",
            "環境",
        ],
    ),
    (
        Section::Problem,
        &[
            " bug ",
            " problem ",
            " issue ",
            " descri",
            " summary ",
            " overview ",
            " what ",
            " why ",
            " motivation ",
            " background ",
            " change ",
            " changes ",
            "描述",
            "问题",
            "問題",
            "概要",
            "説明",
            "背景",
        ],
    ),
];

pub(crate) fn section_of(words: &str) -> Option<Section> {
    let plain: String =
        words.chars().map(|character| if character.is_alphanumeric() { character } else { ' ' }).collect();
    let padded = format!(" {} ", plain.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" "));
    ASKED.iter().find(|(_, asked)| asked.iter().any(|asked| padded.contains(asked))).map(|(section, _)| *section)
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

/// Hints to the author that templates contain.
pub(crate) static COMMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)<!--.*?(?:-->|\z)"));
/// Tags that are used for layout in issues; `Vec<T>` is not one.
pub(crate) static TAG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(?i)</?(?:details|summary|br|p|b|i|div|sub|sup|hr|img|kbd|h[1-6])(?:\s[^<>]{0,400})?/?>"#)
});
static MARKDOWN_HEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r"^#{1,6}\s+(.*?)\s*#*$"));
static BOLD_LABEL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:\*\*([^*]{2,60})\*\*|__([^_]{2,60})__)\s*[:：]?\s*(.*)$"));
static PLAIN_LABEL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([^:：/`]{2,40})[:：](?:\s+(.*)|\s*)$"));
static LIST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s*)?"));

#[cfg(test)]
mod tests {
    use super::{Section, section_of, sections};

    fn outline(body: &str) -> Vec<(Section, Vec<String>, usize)> {
        sections(body).into_iter().map(|part| (part.section, part.entries, part.code.len())).collect()
    }

    #[test]
    fn headings_labels_and_lists_are_taken_apart() {
        let body = "It breaks\nbadly.\n\n<!-- say more -->\n### Steps to Reproduce ###\n1. Open it\n2. Close it\n   again\n\n\
            **Expected behavior:** It stays.\n\nActual: it goes\n```\nerror: x\n```\n\n#### Environment\n_No response_\n\
            ## Cheese\n> quoted\n\n    indented code\n";
        assert_eq!(
            outline(body),
            [
                (Section::Intro, vec!["It breaks badly.".to_owned()], 0),
                (Section::Steps, vec!["Open it".to_owned(), "Close it again".to_owned()], 0),
                (Section::Expected, vec!["It stays.".to_owned()], 0),
                (Section::Actual, vec!["it goes".to_owned()], 1),
                (Section::Environment, vec![], 0),
                (Section::Other, vec!["quoted".to_owned()], 1),
            ]
        );
        assert!(sections(body)[4].is_unanswered());
    }

    #[test]
    fn templates_ask_in_many_words() {
        for (words, expected) in [
            ("Describe the bug", Some(Section::Problem)),
            ("What did you expect to happen?", Some(Section::Expected)),
            ("Describe the solution you'd like", Some(Section::Expected)),
            ("What happened instead", Some(Section::Actual)),
            ("Current behaviour", Some(Section::Actual)),
            ("To Reproduce", Some(Section::Steps)),
            ("rustc --version --verbose", Some(Section::Version)),
            ("OS", Some(Section::Environment)),
            ("Out of scope", Some(Section::Scope)),
            ("Test plan", Some(Section::Other)),
            ("期望行为", Some(Section::Expected)),
            ("再現手順", Some(Section::Steps)),
            ("环境", Some(Section::Environment)),
            ("Cost", None),
            ("", None),
        ] {
            assert_eq!(section_of(words), expected, "{words}");
        }
    }

    #[test]
    fn prose_is_no_heading() {
        for line in ["**Note** that it works", "see http://example.com/what: that", "Vec<T>: it fails", "a::b: what"] {
            assert_eq!(outline(line), [(Section::Intro, vec![line.to_owned()], 0)], "{line}");
        }
    }

    #[test]
    fn an_open_fence_or_comment_ends_with_the_body() {
        assert_eq!(outline("```\n# not a heading"), [(Section::Intro, vec![], 1)]);
        assert_eq!(outline("<!-- never closed\n# Bug"), [(Section::Intro, vec![], 0)]);
        assert_eq!(outline(""), [(Section::Intro, vec![], 0)]);
    }
}
