//! Renders Markdown of strangers as HTML whose elements and attributes are all ours, with shared evidence marked.
//!
//! No tag of the text is passed on: formatting tags are dropped, and any other tag is shown as text. Nothing is
//! loaded from other hosts: a picture becomes its description, and a link shows its host.

use std::ops::Range;

use canonry_domain::markdown::{HtmlPart, github_options, html_parts, is_too_deep};
use canonry_retrieval::FactSpan;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Parser, Tag, TagEnd};
use url::Url;

use crate::layout::marked_text::{MarkPen, MarkedText, push};

/// The HTML elements that people format comments with: their tags are dropped.
#[rustfmt::skip]
const FORMATTING: [&str; 60] = [
    "a", "abbr", "b", "big", "blockquote", "br", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del",
    "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "font", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i",
    "ins", "kbd", "li", "mark", "ol", "p", "picture", "pre", "q", "s", "samp", "small", "source", "span", "strike", "strong",
    "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "tt", "ul", "video",
];

/// A text as a reader on GitHub sees it.
pub(crate) fn markdown(text: &str) -> MarkedText {
    let text = text.replace("\r\n", "\n");
    marked_markdown(&text, 0..text.len(), &[], &[])
}

/// A part of a text, rendered the same way, with the marks of shared facts.
pub(crate) fn marked_markdown(text: &str, part: Range<usize>, spans: &[FactSpan], words: &[String]) -> MarkedText {
    let source = &text[part.clone()];
    let mut writer = Writer {
        source,
        base: part.start,
        html: String::with_capacity(2 * source.len()),
        pen: MarkPen::new(spans, words),
        open: Vec::new(),
        picture: None,
        raw: None,
        is_table_head: false,
    };
    if is_too_deep(source) {
        writer.html.push_str("<div class=\"unformatted\">");
        writer.pen.write(&mut writer.html, source, part.start);
        writer.html.push_str("</div>");
        return MarkedText(writer.html);
    }
    for (event, range) in Parser::new_ext(source, github_options()).into_offset_iter() {
        writer.event(event, range);
    }
    MarkedText(writer.html)
}

/// What ends an element.
enum Ending {
    Markup(&'static str),
    /// A link whose text begins at this offset of the HTML, with its host; `None` if the address is not linked.
    Link {
        text: usize,
        host: Option<String>,
        address: String,
    },
    Picture,
    RawHtml,
}

/// An HTML block while it is parsed: its text, and the positions of its lines in the source.
#[derive(Default)]
struct RawHtml {
    text: String,
    lines: Vec<(usize, usize)>,
}

struct Writer<'a> {
    source: &'a str,
    /// The offset of the source in the text that the marks refer to.
    base: usize,
    html: String,
    pen: MarkPen<'a>,
    /// The innermost element last.
    open: Vec<Ending>,
    /// The description of a picture while it is parsed.
    picture: Option<String>,
    raw: Option<RawHtml>,
    is_table_head: bool,
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        if let Some(description) = &mut self.picture {
            match event {
                Event::Text(text) | Event::Code(text) => description.push_str(&text),
                Event::SoftBreak | Event::HardBreak => description.push(' '),
                Event::Start(_) => self.open.push(Ending::Markup("")),
                Event::End(tag) => self.end(tag),
                _ => {}
            }
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, range),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.code(&text, range),
            Event::Html(html) | Event::InlineHtml(html) => match &mut self.raw {
                Some(raw) => {
                    raw.lines.push((raw.text.len(), range.start));
                    raw.text.push_str(&html);
                }
                None => self.raw_html(&RawHtml { text: html.into_string(), lines: vec![(0, range.start)] }),
            },
            // GitHub breaks the lines of comments where their authors did.
            Event::SoftBreak | Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::FootnoteReference(name) => self.footnote("<sup>[", &name, "]</sup>"),
            Event::TaskListMarker(is_done) => self.html.push_str(if is_done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let (begin, end) = match tag {
            Tag::Paragraph => ("<p>", "</p>"),
            // Below the headings of every page.
            Tag::Heading { .. } => ("<h4>", "</h4>"),
            Tag::BlockQuote(_) => ("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(CodeBlockKind::Indented | CodeBlockKind::Fenced(_)) => ("<pre><code>", "</code></pre>"),
            Tag::List(None) => ("<ul>", "</ul>"),
            Tag::List(Some(first)) => {
                self.html.push_str(&format!("<ol start=\"{first}\">"));
                ("", "</ol>")
            }
            Tag::Item => ("<li>", "</li>"),
            Tag::Emphasis => ("<em>", "</em>"),
            Tag::Strong => ("<strong>", "</strong>"),
            Tag::Strikethrough => ("<del>", "</del>"),
            Tag::Table(_) => ("<table>", "</table>"),
            Tag::TableHead => {
                self.is_table_head = true;
                ("<thead><tr>", "</tr></thead>")
            }
            Tag::TableRow => ("<tr>", "</tr>"),
            Tag::TableCell if self.is_table_head => ("<th>", "</th>"),
            Tag::TableCell => ("<td>", "</td>"),
            Tag::FootnoteDefinition(name) => {
                self.footnote("<div class=\"note\">[", &name, "] ");
                ("", "</div>")
            }
            Tag::Link { dest_url, .. } => return self.link(&dest_url),
            Tag::Image { .. } => {
                self.picture = Some(String::new());
                return self.open.push(Ending::Picture);
            }
            Tag::HtmlBlock => {
                self.raw = Some(RawHtml::default());
                return self.open.push(Ending::RawHtml);
            }
            _ => ("", ""),
        };
        self.html.push_str(begin);
        self.open.push(Ending::Markup(end));
    }

    fn end(&mut self, tag: TagEnd) {
        if tag == TagEnd::TableHead {
            self.is_table_head = false;
        }
        match self.open.pop() {
            None => {}
            Some(Ending::Markup(markup)) => self.html.push_str(markup),
            Some(Ending::Link { text, host, address }) => self.end_link(text, host.as_deref(), &address),
            Some(Ending::Picture) => {
                let description = self.picture.take().unwrap_or_default();
                self.note_picture(&description);
            }
            Some(Ending::RawHtml) => {
                let (raw, begun) = (self.raw.take().unwrap_or_default(), self.html.len());
                self.html.push_str("<div class=\"unformatted\">");
                let empty = self.html.len();
                self.raw_html(&raw);
                match self.html[empty..].trim().is_empty() {
                    true => self.html.truncate(begun),
                    false => self.html.push_str("</div>"),
                }
            }
        }
    }

    fn text(&mut self, text: &str, range: Range<usize>) {
        let place = self.base + range.start;
        match self.source.get(range.clone()) {
            Some(same) if same == text => self.pen.write(&mut self.html, text, place),
            _ => self.pen.write_instead(&mut self.html, text, place..self.base + range.end),
        }
    }

    fn code(&mut self, text: &str, range: Range<usize>) {
        // After the backticks, which are all that is removed.
        let inside = self.source.get(range.clone()).and_then(|whole| whole.find(text));
        let place = inside.map_or(range.clone(), |at| range.start + at..range.start + at + text.len());
        self.html.push_str("<code>");
        self.text(text, place);
        self.html.push_str("</code>");
    }

    /// Links only to http and https, and never with a password.
    fn link(&mut self, address: &CowStr<'_>) {
        let is_web = |url: &Url| {
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
        };
        let url = Url::parse(address).ok().filter(is_web);
        let host = url.as_ref().and_then(Url::host_str).map(str::to_owned);
        if let Some(url) = url {
            self.html.push_str("<a href=\"");
            push(&mut self.html, url.as_str());
            self.html.push_str("\" rel=\"nofollow noopener noreferrer\">");
        }
        self.open.push(Ending::Link { text: self.html.len(), host, address: address.to_string() });
    }

    /// Shows the host of a link, unless its text contains it.
    fn end_link(&mut self, text: usize, host: Option<&str>, address: &str) {
        let leads_to = host.unwrap_or(address);
        let mut shown = String::new();
        push(&mut shown, leads_to);
        let is_told = shown.is_empty() || self.html[text..].contains(&shown);
        if host.is_some() {
            self.html.push_str("</a>");
        }
        if !is_told {
            self.html.push_str(&format!(" <span class=\"note\">({shown})</span>"));
        }
    }

    fn footnote(&mut self, before: &str, name: &str, after: &str) {
        self.html.push_str(before);
        push(&mut self.html, name);
        self.html.push_str(after);
    }

    fn note_picture(&mut self, description: &str) {
        self.html.push_str("<span class=\"note\">[image not shown");
        if !description.trim().is_empty() {
            self.html.push_str(": ");
            push(&mut self.html, description.trim());
        }
        self.html.push_str("]</span>");
    }

    fn raw_html(&mut self, raw: &RawHtml) {
        for part in html_parts(&raw.text) {
            match part {
                HtmlPart::Text(range) => {
                    // Line by line: the prefix of a source line, such as the mark of a quotation, is not in the
                    // block.
                    let ends = raw.lines.iter().skip(1).map(|(begin, _)| *begin).chain([raw.text.len()]);
                    for ((begin, place), end) in raw.lines.iter().zip(ends) {
                        let (from, to) = (range.start.max(*begin), range.end.min(end));
                        if from < to {
                            self.text(&raw.text[from..to], place + from - begin..place + to - begin);
                        }
                    }
                }
                HtmlPart::Tag { name, attributes, closes } => self.raw_tag(name, attributes, closes),
                HtmlPart::Unfinished => {}
            }
        }
    }

    fn raw_tag(&mut self, name: &str, attributes: &str, closes: bool) {
        match name.to_ascii_lowercase().as_str() {
            "br" => self.html.push_str("<br>"),
            "img" => self.note_picture(attribute(attributes, "alt").unwrap_or_default()),
            name if FORMATTING.contains(&name) => {}
            // `Vec<String>`, and tags that do not format.
            _ => push(&mut self.html, &format!("<{}{name}{attributes}>", if closes { "/" } else { "" })),
        }
    }
}

/// The quoted value of an attribute.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = attributes.split_once(&format!(" {name}="))?;
    let quote = behind.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    behind[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use canonry_retrieval::{TextFacts, marked, shared_facts};
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use regex::Regex;

    use super::{markdown, marked_markdown};

    fn shown(text: &str) -> String {
        markdown(text).to_string()
    }

    #[test]
    fn what_people_write_is_formatted() {
        for (text, html) in [
            (
                "# Crash\n\nIt *stops* at **noon**\nalways",
                "<h4>Crash</h4><p>It <em>stops</em> at <strong>noon</strong><br>always</p>",
            ),
            ("```rust\nlet a = b < c;\n```", "<pre><code>let a = b &lt; c;\n</code></pre>"),
            ("- [x] one\n- [ ] two", "<ul><li>☑ one</li><li>☐ two</li></ul>"),
            ("3. c", "<ol start=\"3\"><li>c</li></ol>"),
            (
                "|a|b|\n|-|-|\n|1|`2`|",
                "<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td>1</td><td><code>2</code></td></tr></table>",
            ),
            ("> said", "<blockquote><p>said</p></blockquote>"),
            ("~~no~~ &amp; \\*", "<p><del>no</del> &amp; *</p>"),
        ] {
            assert_eq!(shown(text), html, "{text:?}");
        }
    }

    #[test]
    fn nothing_is_loaded_and_a_link_shows_where_it_leads() {
        for (text, html) in [
            (
                "![a *tide* table](https://evil.example/x.png)",
                "<p><span class=\"note\">[image not shown: a tide table]</span></p>",
            ),
            ("![](x.png)", "<p><span class=\"note\">[image not shown]</span></p>"),
            (
                "<img src=x onerror=alert(2) alt=\"chart\">",
                "<div class=\"unformatted\"><span class=\"note\">[image not shown: chart]</span></div>",
            ),
            (
                "[docs](https://evil.example/a?b=\"c)",
                "<p><a href=\"https://evil.example/a?b=%22c\" rel=\"nofollow noopener noreferrer\">docs</a> <span class=\"note\">(evil.example)</span></p>",
            ),
            (
                "<https://docs.rs/x>",
                "<p><a href=\"https://docs.rs/x\" rel=\"nofollow noopener noreferrer\">https://docs.rs/x</a></p>",
            ),
            ("[x](javascript:alert(1))", "<p>x <span class=\"note\">(javascript:alert(1))</span></p>"),
            ("[x](http://me:pw@a.example)", "<p>x <span class=\"note\">(http://me:pw@a.example)</span></p>"),
        ] {
            assert_eq!(shown(text), html, "{text:?}");
        }
    }

    #[test]
    fn no_tag_passes() {
        for (text, html) in [
            ("a Vec<String> of <b>bold</b> ones", "<p>a Vec&lt;String&gt; of bold ones</p>"),
            ("<script>alert(1)</script>", "<div class=\"unformatted\">&lt;script&gt;alert(1)&lt;/script&gt;</div>"),
            (
                "<details>\n<summary>Log</summary>\n\n```\nx\n```\n</details>",
                "<div class=\"unformatted\">\nLog\n</div><pre><code>x\n</code></pre>",
            ),
            ("<!-- fill this in\nplease -->\nText", "<p>Text</p>"),
            ("one<br/>two\u{202e}", "<p>one<br>two\\u{202e}</p>"),
        ] {
            assert_eq!(shown(text), html, "{text:?}");
        }
        let deep = format!("{}x", "> ".repeat(90));
        assert!(shown(&deep).starts_with("<div class=\"unformatted\">&gt; &gt; "));
    }

    #[test]
    fn evidence_is_marked_in_what_is_formatted() {
        let (one, other) = (
            "Crash\nSee `src/lib.rs` in\n\n    panicked at src/net.rs:88:40\n",
            "src/lib.rs panicked at src/net.rs:88:40",
        );
        let facts = shared_facts(&TextFacts::of(one), &TextFacts::of(other));
        let words: Vec<String> = facts.iter().map(ToString::to_string).collect();
        let html = marked_markdown(one, 6..one.len(), &marked(one, &facts), &words).to_string();
        assert!(html.contains("<code><mark class=\"e"), "{html}");
        assert!(html.contains("<pre><code>") && html.matches("<mark ").count() >= 2, "{html}");
    }

    /// Every tag that may be written, with its attributes.
    static TAG: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r#"^</?(p|h4|blockquote|pre|code|ul|ol|li|em|strong|del|table|thead|tr|th|td|div|a|span|sup|mark|br|hr)>$|^<ol start="[0-9]+">$|^<div class="(unformatted|note)">$|^<span class="note">$|^<a href="https?://[^"<>]*" rel="nofollow noopener noreferrer">$|^<mark class="e[0-5]"( data-fact="[0-9,]+")? title="[^"<>]*">$"#,
        )
        .expect("a pattern")
    });

    fn text() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            Just("<img src=x onerror=a>".to_owned()),
            Just("<script>".to_owned()),
            Just("[a](".to_owned()),
            Just("![".to_owned()),
            Just("](http://x".to_owned()),
            Just("javascript:".to_owned()),
            Just("```\n".to_owned()),
            Just("\n\n".to_owned()),
            Just("> ".to_owned()),
            Just("- ".to_owned()),
            Just("|-|\n".to_owned()),
            Just("<!--".to_owned()),
            Just("&lt;".to_owned()),
            Just("[^a]: ".to_owned()),
            "[ -~\n\u{202e}]{0,12}",
            any::<String>(),
        ];
        prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_text_makes_a_tag_or_attribute_of_its_own(one in text(), other in text()) {
            let facts = shared_facts(&TextFacts::of(&one), &TextFacts::of(&other));
            let words: Vec<String> = facts.iter().map(ToString::to_string).collect();
            let html = marked_markdown(&one, 0..one.len(), &marked(&one, &facts), &words).to_string();
            let mut begun = 0;
            for tag in html.split('<').skip(1) {
                let Some((inside, text)) = tag.split_once('>') else { panic!("an open tag in {html}") };
                let tag = format!("<{inside}>");
                prop_assert!(TAG.is_match(&tag), "{tag} in {html}");
                prop_assert!(!text.contains(['>', '\u{202e}']), "{html}");
                begun += match inside { "br" | "hr" => 0, _ if inside.starts_with('/') => -1, _ => 1 };
            }
            prop_assert_eq!(begun, 0, "{}", html);
        }
    }
}
