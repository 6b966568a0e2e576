//! Markdown as GitHub renders it: a person's own words, and the text that a reader sees.

mod own_lines;
mod raw_html;
mod shown_text;

pub use raw_html::{HtmlPart, html_parts};

pub(crate) use own_lines::{CodeSpans, FoldedText, own_lines, own_words};
pub(crate) use shown_text::{ShownText, shown_text};

use pulldown_cmark::Options;

/// GitHub's additions to CommonMark. A bare address needs no option: it is text and stays text.
pub fn github_options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH
        | Options::ENABLE_GFM
}

/// The deepest nesting of quotations and list items that is read. A text that is nested deeper is ignored. The parser
/// walks through all levels for each line that continues without their marks: 20,000 levels took a second for 80 KB.
const DEEPEST: usize = 64;

/// Whether a line opens more than `DEEPEST` quotations and list items.
pub fn is_too_deep(source: &str) -> bool {
    source.lines().any(|line| depth(line) > DEEPEST)
}

fn depth(line: &str) -> usize {
    let mut marks = line.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let is_rule = marks.next().is_some_and(|first| matches!(first, b'*' | b'-') && marks.all(|mark| mark == first));
    let (mut rest, mut depth) = (line, 0);
    while !is_rule && depth <= DEEPEST {
        rest = rest.trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let behind = match digits {
            0 => rest.strip_prefix('>').or_else(|| rest.strip_prefix(['-', '+', '*']).filter(is_list)),
            _ => rest[digits..].strip_prefix(['.', ')']).filter(is_list),
        };
        let Some(behind) = behind else { break };
        (rest, depth) = (behind, depth + 1);
    }
    depth
}

fn is_list(behind: &&str) -> bool {
    behind.is_empty() || behind.starts_with([' ', '\t'])
}
