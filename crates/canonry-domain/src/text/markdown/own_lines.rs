//! Extracts a person's own words from a comment, line by line, without quoted, struck and hidden text, code and
//! pictures.

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd};
use regex::Regex;

use super::raw_html::{HtmlPart, OpenElements, html_parts};
use super::{github_options, is_too_deep};

/// A line of a person's own words as GitHub shows it, without emphasis marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnLine {
    /// `…` replaces what is shown but is not the person's words: struck text, pictures, formulas, code.
    pub(crate) text: String,
    /// The length of the prefix of `text` that is in the source unchanged, with only blanks before it on its line. It
    /// is 0 for a line that begins with a mark, or that is inside a link, a table, a footnote or emphasis.
    pub(crate) plain: usize,
}

/// Whether short code in a line is kept, between backticks, or becomes `…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeSpans {
    Keep,
    Omit,
}

/// Whether text inside a folded `<details>` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldedText {
    Keep,
    Omit,
}

/// The lines of a Markdown text that are its author's own words. Quoted, struck and hidden text, code and quoted mail
/// are not. If in doubt, a line is omitted.
pub(crate) fn own_lines(markdown: &str, code: CodeSpans, folded: FoldedText) -> Vec<OwnLine> {
    // The parser's ranges must be positions in this text, so the line endings are normalised first.
    let source = markdown.replace("\r\n", "\n").replace('\r', "\n");
    if is_too_deep(&source) {
        return Vec::new();
    }
    let mut reader = Reader::new(&source, code, folded);
    for (event, range) in Parser::new_ext(&source, github_options()).into_offset_iter() {
        reader.read(event, range);
    }
    reader.end_line();
    reader.lines
}

pub(crate) fn own_words(markdown: &str, folded: FoldedText) -> String {
    let lines = own_lines(markdown, CodeSpans::Omit, folded);
    lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

struct Reader<'a> {
    source: &'a str,
    code: CodeSpans,
    folded: FoldedText,
    lines: Vec<OwnLine>,
    line: OwnLine,
    /// The source position where the unchanged part of the line ends; `None` once something else came after it.
    plain_end: Option<usize>,
    /// The nesting depth in text that is not the author's words: quotations, code blocks, pictures, struck text.
    unsaid: usize,
    /// The nesting depth in text that cannot begin a command.
    marked: usize,
    /// Whether the text is that of a link in brackets. A bare address is not.
    in_brackets: bool,
    elements: OpenElements,
    /// An open HTML block, with the source positions of its lines.
    html: Option<(String, Vec<(usize, usize)>)>,
    mail: Mail,
}

/// Whether a quoted mail follows the author's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mail {
    Nothing,
    /// The last line says who wrote what follows: a quotation, or the whole rest.
    Announced,
    Begun,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str, code: CodeSpans, folded: FoldedText) -> Self {
        Self {
            source,
            code,
            folded,
            lines: Vec::new(),
            line: OwnLine { text: String::new(), plain: 0 },
            plain_end: None,
            unsaid: 0,
            marked: 0,
            in_brackets: false,
            elements: OpenElements::default(),
            html: None,
            mail: Mail::Nothing,
        }
    }

    fn read(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, range),
            Event::Code(code) if self.code == CodeSpans::Keep => self.omit(&format!("`{code}`")),
            Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) => self.omit("…"),
            Event::Html(html) => match &mut self.html {
                Some((block, places)) => {
                    places.push((block.len(), range.start));
                    block.push_str(&html);
                }
                None => self.inline_html(&html),
            },
            Event::InlineHtml(html) => self.inline_html(&html),
            Event::SoftBreak | Event::HardBreak | Event::Rule => self.end_line(),
            Event::FootnoteReference(_) | Event::TaskListMarker(_) => self.plain_end = None,
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::BlockQuote(_) => {
                self.end_line();
                if self.mail == Mail::Announced {
                    self.mail = Mail::Nothing;
                }
                self.unsaid += 1;
            }
            Tag::CodeBlock(_) | Tag::MetadataBlock(_) => {
                self.end_line();
                self.unsaid += 1;
            }
            Tag::Strikethrough | Tag::Image { .. } => {
                self.omit("…");
                self.unsaid += 1;
            }
            Tag::Table(_) | Tag::FootnoteDefinition(_) => {
                self.end_line();
                self.marked += 1;
            }
            Tag::Emphasis | Tag::Strong | Tag::Superscript | Tag::Subscript => {
                self.plain_end = None;
                self.marked += 1;
            }
            Tag::Link { link_type, .. } => {
                self.plain_end = None;
                self.marked += 1;
                self.in_brackets = !matches!(link_type, LinkType::Autolink | LinkType::Email);
                if self.in_brackets {
                    self.omit("[");
                }
            }
            Tag::HtmlBlock => {
                self.end_line();
                self.html = Some((String::new(), Vec::new()));
            }
            _ => self.end_line(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::BlockQuote(_) | TagEnd::CodeBlock | TagEnd::MetadataBlock(_) => {
                self.end_line();
                self.unsaid -= 1;
            }
            TagEnd::Strikethrough | TagEnd::Image => self.unsaid -= 1,
            TagEnd::Table | TagEnd::FootnoteDefinition => {
                self.end_line();
                self.marked -= 1;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Superscript | TagEnd::Subscript => self.marked -= 1,
            TagEnd::Link => {
                self.marked -= 1;
                if std::mem::take(&mut self.in_brackets) {
                    self.omit("]");
                }
            }
            TagEnd::HtmlBlock => self.html_block(),
            _ => self.end_line(),
        }
    }

    fn is_said(&self) -> bool {
        let is_hidden = self.folded == FoldedText::Omit && self.elements.is_folded();
        self.unsaid == 0 && self.elements.is_said() && !is_hidden && self.mail != Mail::Begun
    }

    fn text(&mut self, text: &str, range: Range<usize>) {
        if !self.is_said() {
            self.plain_end = None;
            return;
        }
        if self.mail == Mail::Announced && !text.trim().is_empty() {
            self.mail = Mail::Begun;
            return;
        }
        let is_plain = self.marked == 0
            && self.source.get(range.clone()) == Some(text)
            && match self.plain_end {
                Some(end) => end == range.start,
                None => self.line.text.is_empty() && begins_line(self.source, range.start),
            };
        self.line.text.push_str(text);
        if is_plain {
            self.line.plain = self.line.text.len();
            self.plain_end = Some(range.end);
        } else {
            self.plain_end = None;
        }
    }

    /// Inserts `instead` in place of text that is not the author's words.
    fn omit(&mut self, instead: &str) {
        if self.is_said() && self.mail == Mail::Nothing {
            self.line.text.push_str(instead);
        }
        self.plain_end = None;
    }

    fn inline_html(&mut self, html: &str) {
        self.plain_end = None;
        let was_said = self.is_said();
        for part in html_parts(html) {
            if matches!(part, HtmlPart::Tag { name, .. } if name.eq_ignore_ascii_case("br")) {
                self.end_line();
            }
            self.elements.read(&part);
        }
        if was_said && !self.is_said() {
            self.line.text.push('…');
        }
    }

    fn html_block(&mut self) {
        let Some((block, places)) = self.html.take() else { return };
        for part in html_parts(&block) {
            self.elements.read(&part);
            self.plain_end = None;
            let HtmlPart::Text(range) = part else { continue };
            let mut at = range.start;
            for line in block[range].split_inclusive('\n') {
                let begun = at + (line.len() - line.trim_start().len());
                let line_in_source = places.partition_point(|(from, _)| *from <= begun).checked_sub(1);
                let (from, source) = line_in_source.map_or((0, 0), |index| places[index]);
                let said = line.trim();
                if !said.is_empty() {
                    let place = source + (begun - from);
                    self.text(said, place..place + said.len());
                }
                if line.ends_with('\n') {
                    self.end_line();
                }
                at += line.len();
            }
        }
        self.end_line();
    }

    fn end_line(&mut self) {
        self.plain_end = None;
        let line = std::mem::replace(&mut self.line, OwnLine { text: String::new(), plain: 0 });
        if line.text.trim().is_empty() {
            return;
        }
        let before = self.lines.last().map_or("", |line| line.text.trim());
        let text = line.text.trim();
        let announces = text.ends_with("wrote:") && (text.starts_with("On ") || before.starts_with("On "));
        let heads = ["Sent:", "Date:"].iter().any(|head| text.starts_with(head)) && before.starts_with("From:");
        if MAIL_BELOW.is_match(text) || heads {
            self.mail = Mail::Begun;
        } else if announces {
            self.mail = Mail::Announced;
        }
        self.lines.push(line);
    }
}

/// The line that mail programs put above a mail that is answered or forwarded.
static MAIL_BELOW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^-{3,}\s*(?:original|forwarded) message\s*-{3,}$").expect("invariant: the pattern is constant")
});

/// Whether only blanks are between the beginning of the line and this position.
fn begins_line(source: &str, at: usize) -> bool {
    let before = &source.as_bytes()[..at];
    let blanks = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    before[..before.len() - blanks].last().is_none_or(|byte| *byte == b'\n')
}
