//! Markdown as GitHub shows it: what a person says in their own words, and what a reader sees.

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

/// Quotations and list items inside of each other that are read; a deeper text is not. The parser walks through all of
/// them for each line that goes on without their marks: 20,000 took a second for 80 KB.
const DEEPEST: usize = 64;

/// Whether a line begins more quotations and list items than are read.
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
