//! Checks every text that was ever sent to GitHub.

use canonry_domain::scan_shown_secrets;
use canonry_testkit::github::Emulator;

/// The tags that Canonry writes itself.
const TAGS: [(&str, &str); 3] = [("<details>", "</details>"), ("<summary>", "</summary>"), ("<sub>", "</sub>")];
/// The allowed entities: any other could be a disguised character.
const ENTITIES: [&str; 4] = ["&amp;", "&lt;", "&gt;", "&ZeroWidthSpace;"];
/// GitHub accepts no longer text.
const LONGEST: usize = 65_536;

/// No text that was ever sent mentions a person, contains a secret, renders what a stranger wrote, loads or links to
/// anything, or contains a marker that Canonry does not write there.
pub(crate) fn assert_clean(emulator: &Emulator) {
    let bodies = emulator.bodies_sent();
    for body in &bodies {
        if let Err(what) = check(body) {
            panic!("{what}:\n{body}");
        }
    }
}

fn check(body: &str) -> Result<(), String> {
    if body.chars().count() > LONGEST {
        return Err(format!("{} characters", body.chars().count()));
    }
    if let Some(hidden) = body.chars().find(|one| is_unseen(*one)) {
        return Err(format!("the unseen character {hidden:?}"));
    }
    let text = without_markers(body)?;
    if let Some(secret) = scan_shown_secrets(text).first() {
        return Err(format!("a secret ({})", secret.kind));
    }
    let seen = outside_code(text)?;
    if let Some(called) = called(&seen) {
        return Err(format!("somebody is called: {called}"));
    }
    for (at, _) in seen.match_indices('&') {
        if !ENTITIES.iter().any(|entity| seen[at..].starts_with(entity)) {
            return Err(format!("a character in disguise: {}", start_of(&seen[at..])));
        }
    }
    check_tags(&seen)?;
    for leads in ["](", "][", "]:", "![", "://", "www."] {
        if let Some(at) = seen.to_lowercase().find(leads) {
            return Err(format!("a link or a picture at byte {at} of what is seen"));
        }
    }
    Ok(())
}

/// The text before its markers. The markers are at its end, each is complete, and there are no other HTML comments.
fn without_markers(body: &str) -> Result<&str, String> {
    let mut text = body.trim_end();
    while let Some(rest) = text.strip_suffix("-->") {
        let Some(start) = rest.rfind("<!--") else { return Err("the end of a comment without its start".to_owned()) };
        if !is_marker(rest[start + 4..].trim()) {
            return Err(format!("another's marker: {}", start_of(&rest[start..])));
        }
        text = text[..start].trim_end();
    }
    if outside_code(text)?.contains("<!--") {
        return Err("a comment in the text".to_owned());
    }
    Ok(text)
}

/// `canonry:v1:KIND:KEY:SIGNATURE`, with a signature of a valid form.
fn is_marker(inside: &str) -> bool {
    let parts: Vec<&str> = inside.split(':').collect();
    let ["canonry", "v1", kind, key, signature] = parts[..] else { return false };
    let different: std::collections::BTreeSet<u8> = signature.bytes().collect();
    kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && !key.is_empty()
        && signature.len() == 43
        && different.len() > 8
}

/// The first text that GitHub would treat as a mention.
fn called(seen: &str) -> Option<&str> {
    let (at, _) = seen.match_indices('@').find(|(at, _)| {
        seen[at + 1..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_' || next == '-')
    })?;
    Some(start_of(&seen[at..]))
}

/// Only Canonry's own tags, each closed in the order it was opened.
fn check_tags(seen: &str) -> Result<(), String> {
    let (mut open, mut rest) = (Vec::new(), seen);
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        if let Some((tag, end)) = TAGS.iter().find(|(tag, _)| rest.starts_with(tag)) {
            open.push(*end);
            rest = &rest[tag.len()..];
        } else if let Some((_, end)) = TAGS.iter().find(|(_, end)| rest.starts_with(end)) {
            if open.pop() != Some(*end) {
                return Err(format!("{end} ends nothing"));
            }
            rest = &rest[end.len()..];
        } else {
            return Err(format!("markup: {}", start_of(rest)));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("nothing ends before {open:?}")) }
}

/// The text in which GitHub finds mentions, tags and links: everything except code. Escaped characters are removed
/// too, except those that keep their meaning.
fn outside_code(body: &str) -> Result<String, String> {
    let (mut seen, mut paragraph, mut fence) = (String::new(), String::new(), None::<String>);
    for line in body.lines() {
        let mark = fence_of(line);
        match &fence {
            Some(open) => {
                let closes = mark.as_ref().is_some_and(|mark| mark.starts_with(open.as_str()));
                if closes && line.trim() == mark.unwrap_or_default() {
                    fence = None;
                }
            }
            None if mark.is_some() || line.trim().is_empty() => {
                seen.push_str(&outside_spans(&paragraph));
                seen.push('\n');
                paragraph.clear();
                fence = mark;
            }
            None => {
                paragraph.push_str(line);
                paragraph.push('\n');
            }
        }
    }
    if fence.is_some() {
        return Err("a block of code without an end".to_owned());
    }
    seen.push_str(&outside_spans(&paragraph));
    Ok(seen)
}

fn fence_of(line: &str) -> Option<String> {
    let inner = line.trim_start_matches(' ');
    let first = inner.chars().next().filter(|first| line.len() - inner.len() < 4 && matches!(first, '`' | '~'))?;
    let mark: String = inner.chars().take_while(|one| *one == first).collect();
    let is_fence = mark.len() >= 3 && !(first == '`' && inner[mark.len()..].contains('`'));
    is_fence.then_some(mark)
}

fn outside_spans(paragraph: &str) -> String {
    let (mut seen, mut rest) = (String::new(), paragraph);
    while let Some(next) = rest.chars().next() {
        if let Some(escaped) = rest.strip_prefix('\\').and_then(|rest| rest.chars().next())
            && escaped.is_ascii_punctuation()
        {
            // GitHub removes the backslash before it searches for mentions and numbers.
            seen.push(if matches!(escaped, '@' | '#') { escaped } else { '·' });
            rest = &rest[2..];
        } else if next == '`' {
            let ticks = run(rest);
            let inside = &rest[ticks..];
            match span_end(inside, ticks) {
                Some(end) => {
                    seen.push('·');
                    rest = &inside[end + ticks..];
                }
                None => {
                    seen.push_str(&rest[..ticks]);
                    rest = inside;
                }
            }
        } else {
            seen.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    seen
}

/// The end of a code span that began with this many backticks.
fn span_end(inside: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = inside[at..].find('`') {
        let here = at + found;
        let length = run(&inside[here..]);
        if length == ticks {
            return Some(here);
        }
        at = here + length;
    }
    None
}

fn run(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b'`').count()
}

fn is_unseen(one: char) -> bool {
    (one.is_control() && one != '\n' && one != '\t')
        || matches!(u32::from(one),
            0x00AD | 0x061C | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0xFEFF | 0xE_0000..=0xE_0FFF)
}

fn start_of(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(end, _)| &text[..end])
}

#[test]
fn what_is_clean_and_what_is_not() {
    let signature = "q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6j7k8l9z0x1c";
    let marker = format!("<!-- canonry:v1:review:review/1%232/post/3:{signature} -->");
    for clean in [
        "Nothing found.",
        "`@team` and ``a `@team` b`` are code",
        "```\n@team <img src=x>\n```\nplain",
        "@&ZeroWidthSpace;team \\[a\\](b) &lt;img&gt; https:&ZeroWidthSpace;//a.example",
        "<details>\n<summary>More</summary>\n\n<sub>little</sub>\n\n</details>",
        &format!("Said.\n\n{marker}\n{marker}"),
    ] {
        assert_eq!(check(clean), Ok(()), "{clean}");
    }
    let token = ["ghp_", "x7Kq2mVb9TzR4wYc6NdF1hGj8LpS3a0odryJ"].concat();
    for (unclean, what) in [
        ("ask @team", "somebody is called"),
        ("ask \\@team", "somebody is called"),
        ("`a @team", "somebody is called"),
        ("&commat;team", "a character in disguise"),
        ("<img src=x>", "markup"),
        ("<details open>", "markup"),
        ("</details>", "ends nothing"),
        ("<details><summary></details></summary>", "ends nothing"),
        ("<details>", "nothing ends"),
        ("![x](y)", "a link"),
        ("see https://a.example", "a link"),
        ("```\nno end", "without an end"),
        ("```\n````\n@team", "somebody is called"),
        ("right \u{202e}left", "unseen"),
        (&token, "a secret"),
        (&format!("`{token}`"), "a secret"),
        (&format!("{marker} said"), "a comment"),
        ("said <!-- canonry:v1:review:k:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA -->", "another's marker"),
        ("said <!-- hello -->", "another's marker"),
    ] {
        let found = check(unclean).expect_err(unclean);
        assert!(found.contains(what), "{unclean}: {found}");
    }
}
