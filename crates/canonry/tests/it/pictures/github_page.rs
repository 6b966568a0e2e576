//! A comment and a review as GitHub shows them, as a page without external resources.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

pub(crate) struct Comment {
    pub(crate) author: String,
    pub(crate) body: String,
}

/// A comment on a line, with the part of the diff above it.
pub(crate) struct Remark {
    pub(crate) path: String,
    pub(crate) hunk: String,
    pub(crate) comment: Comment,
}

/// How many lines of the diff are shown above a comment.
const SHOWN_LINES: usize = 4;

const STYLE: &str = "\
:root{--back:#fff;--box:#fff;--head:#f6f8fa;--line:#d1d9e0;--text:#1f2328;--soft:#59636e;--link:#0969da;--code:#818b981f;--add:#dafbe1;--remove:#ffebe9}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--box:#0d1117;--head:#151b23;--line:#3d444d;--text:#f0f6fc;--soft:#9198a1;--link:#4493f8;--code:#656c7633;--add:#12261e;--remove:#25171c}}
body{margin:0;background:var(--back)}
main{box-sizing:border-box;width:760px;padding:20px;background:var(--back);color:var(--text);font:14px/1.5 -apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,'Liberation Sans','Noto Color Emoji',sans-serif}
h1{margin:0 0 14px;font-size:19px;font-weight:400}h1 span{color:var(--soft)}
section{margin-top:14px;border:1px solid var(--line);border-radius:6px;background:var(--box);overflow:hidden}
header{padding:8px 16px;border-bottom:1px solid var(--line);background:var(--head);color:var(--soft)}
header b{color:var(--text)}header i{margin-left:4px;padding:0 6px;border:1px solid var(--line);border-radius:10px;font-size:12px;font-style:normal}
.body{padding:14px 16px}.body>:first-child{margin-top:0}.body>:last-child{margin-bottom:0}
p,ul,details{margin:0 0 12px}ul{padding-left:24px}a{color:var(--link)}
code{padding:2px 5px;border-radius:6px;background:var(--code);font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
pre{margin:0 0 12px;padding:10px 12px;border-radius:6px;background:var(--head);overflow:hidden}pre code{padding:0;background:none}
sub{font-size:12px;color:var(--soft);vertical-align:baseline}
.diff{margin:0;padding:6px 0;border-bottom:1px solid var(--line);border-radius:0;background:var(--box);font:12px/20px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
.diff span{display:block;padding:0 12px;white-space:pre}.diff .new{background:var(--add)}.diff .old{background:var(--remove)}
";

pub(crate) fn comment_page(title: &str, number: &str, comment: &Comment) -> String {
    let heading = heading(title, number);
    page(title, &format!("{heading}<section>{}{}</section>\n", header(comment, "commented"), body(comment)))
}

pub(crate) fn review_page(title: &str, number: &str, review: &Comment, remark: &Remark) -> String {
    let mut main = heading(title, number);
    main += &format!("<section>{}{}</section>\n", header(review, "reviewed"), body(review));
    main += &format!(
        "<section><header>{}</header>\n<div class=\"diff\">{}</div>{}</section>\n",
        escaped(&remark.path),
        diff(&remark.hunk),
        body(&remark.comment)
    );
    page(title, &main)
}

/// The summary of a workflow's job.
pub(crate) fn summary_page(markdown: &str) -> String {
    const SUMMARY_STYLE: &str = "h3{margin:0 0 12px;font-size:20px}h4{margin:0 0 12px;font-size:16px}\
        td{padding:12px 14px 0;border:1px solid var(--line);background:var(--head)}";
    let body = format!("<div class=\"body\">\n{}</div>", rendered(markdown));
    let section = format!("<section><header><b>canonry</b> summary</header>\n{body}</section>\n");
    page("Canonry in GitHub Actions", &format!("<style>{SUMMARY_STYLE}</style>\n{section}"))
}

fn page(title: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n<main>\n{main}</main>\n</html>\n",
        escaped(title)
    )
}

fn heading(title: &str, number: &str) -> String {
    format!("<h1>{} <span>#{number}</span></h1>\n", escaped(title))
}

fn header(comment: &Comment, did: &str) -> String {
    format!("<header><b>{}</b> <i>bot</i> {did}</header>\n", escaped(&comment.author))
}

fn body(comment: &Comment) -> String {
    format!("<div class=\"body\">\n{}</div>", rendered(&comment.body))
}

fn diff(hunk: &str) -> String {
    let lines: Vec<&str> = hunk.lines().filter(|line| !line.starts_with("@@")).collect();
    let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    let line = |line: &&str| {
        let class = match line.as_bytes().first() {
            Some(b'+') => " class=\"new\"",
            Some(b'-') => " class=\"old\"",
            _ => "",
        };
        format!("<span{class}>{}</span>", escaped(line))
    };
    shown.iter().map(line).collect()
}

/// Markdown as GitHub renders it, as far as Canonry uses it.
fn rendered(markdown: &str) -> String {
    let (mut html, mut is_link) = (String::new(), false);
    for event in Parser::new_ext(markdown, Options::ENABLE_STRIKETHROUGH) {
        match &event {
            Event::Start(Tag::Link { .. }) => is_link = true,
            Event::End(TagEnd::Link) => is_link = false,
            _ => {}
        }
        match event {
            Event::Text(text) if is_link => html.push_str(&escaped(&text)),
            Event::Start(tag) => html.push_str(&opened(&tag)),
            Event::End(tag) => html.push_str(closed(tag)),
            Event::Text(text) => html.push_str(&linked(&escaped(&text))),
            Event::Code(code) => html.push_str(&format!("<code>{}</code>", escaped(&code))),
            // Markers are HTML comments, which are not shown.
            Event::Html(tag) | Event::InlineHtml(tag) if !tag.trim_start().starts_with("<!--") => html.push_str(&tag),
            Event::SoftBreak | Event::HardBreak => html.push_str("<br>\n"),
            _ => {}
        }
    }
    html
}

fn opened(tag: &Tag<'_>) -> String {
    match tag {
        Tag::Paragraph => "<p>".to_owned(),
        Tag::List(_) => "<ul>\n".to_owned(),
        Tag::Item => "<li>".to_owned(),
        Tag::Strong => "<strong>".to_owned(),
        Tag::Emphasis => "<em>".to_owned(),
        Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => "<pre><code>".to_owned(),
        Tag::Heading { level, .. } => format!("<{level}>"),
        Tag::Link { dest_url, .. } => format!("<a href=\"{}\">", escaped(dest_url)),
        _ => String::new(),
    }
}

fn closed(tag: TagEnd) -> &'static str {
    match tag {
        TagEnd::Paragraph => "</p>\n",
        TagEnd::List(_) => "</ul>\n",
        TagEnd::Item => "</li>\n",
        TagEnd::Strong => "</strong>",
        TagEnd::Emphasis => "</em>",
        TagEnd::CodeBlock => "</code></pre>\n",
        TagEnd::Link => "</a>",
        TagEnd::Heading(HeadingLevel::H3) => "</h3>\n",
        TagEnd::Heading(_) => "</h4>\n",
        _ => "",
    }
}

/// Makes `#12` look like a link.
fn linked(text: &str) -> String {
    let mut parts = text.split('#');
    let mut html = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        // `escaped` writes entities such as `&#39;`.
        if digits == 0 || html.ends_with('&') {
            html += &format!("#{part}");
        } else {
            html += &format!("<a>#{}</a>{}", &part[..digits], &part[digits..]);
        }
    }
    html
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
