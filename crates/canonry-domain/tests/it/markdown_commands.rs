//! Tests which Markdown is a command: a table of what GitHub shows, in which `{}` is the command.

use std::time::{Duration, Instant};

use canonry_domain::mention::{MentionCommand, MentionRequest, parse_mention};
use canonry_domain::review::is_refusal;
use canonry_domain::{fixed_issues, named_duplicate};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

const COMMAND: &str = "/canonry review";

fn is_heard(markdown: &str, command: &str) -> bool {
    let heard = parse_mention(&markdown.replace("{}", command), "canonry");
    assert!(matches!(heard, None | Some(MentionRequest::Command(MentionCommand::Review))), "{markdown:?}: {heard:?}");
    heard.is_some()
}

/// Ordinary text at the beginning of a line.
const HEARD: [&str; 58] = [
    "{}",
    "   {}",
    "{}\n",
    "{}  \nmore",
    "{}\\\nmore",
    "text\n{}",
    "text\r\n{}\r\nmore",
    "text\r{}",
    "text\n\n{}\n\nmore",
    "text  \n{}",
    "text\\\n{}",
    "> quoted\n\n{}",
    "> quoted\n>\n> more\n\n{}",
    "> [!NOTE]\n> an alert\n\n{}",
    "> ```\n> code\n\n{}",
    "```\ncode\n```\n{}",
    "````\n```\n````\n\n{}",
    "~~~\n```\n~~~\n{}",
    "    code\n\n{}",
    "text\n    {}",
    "``` not a`fence\n{}",
    "`code`\n{}",
    "a ` alone\n{}",
    "a \\`escaped\n{}\n` b",
    "`` a ` b ``\n{}",
    "~~struck~~\n{}",
    "~~not closed\n{}",
    "<!-- hidden -->\n{}",
    "<!-- hidden\n\nlines -->\n{}",
    "`<!--`\n{}",
    "[a link](x)\n{}",
    "[a link](x \"with a title\")\n{}",
    "[a](x\n{}",
    "![a picture](x)\n{}",
    "<https://example.com>\n{}",
    "https://example.com\n{}",
    "[a]: /x 'title'\n\n{}",
    "a[^1]\n\n{}\n\n[^1]: note",
    "| a |\n|---|\n| b |\n\n{}",
    "- a list\n{}",
    "- a list\n  {}",
    "- a list\n\n{}",
    "1. a list\n\n   {}",
    "- [x] done\n\n{}",
    "# a heading\n{}",
    "***\n{}",
    "{}\n---",
    "{}\n***",
    "*emphasis*\n{}",
    "Vec<String> fails\n{}",
    "<details><summary>Log</summary>\n\ntext\n\n</details>\n\n{}",
    "<details>\n\ntext\n</details>\n{}",
    "<details open>\n\n{}\n\n</details>",
    "<div>\n\n{}\n\n</div>",
    "<b>bold</b>\n{}",
    "<del>struck</del>\n\n{}",
    "<blockquote>\n\nquoted\n\n</blockquote>\n\n{}",
    "On Tue, 17 Nov 2026 at 10:00, Mona <mona@example.com> wrote:\n> quoted\n\n{}",
];

/// Text that GitHub shows as something else, or does not show.
const NOT_HEARD: &[&str] = &[
    // Quotations.
    "> {}",
    ">{}",
    "   > {}",
    "> a\n{}",
    "> a\n> {}",
    "> a\n>\n> {}",
    "> > a\n> {}",
    "> > a\n{}",
    ">> {}",
    "> - a\n{}",
    "> - a\n>   {}",
    "- > a\n{}",
    "- > {}",
    "- a\n  > b\n  {}",
    "- a\n\n  > {}",
    "1. > a\n   {}",
    "> [!NOTE]\n> {}",
    "> [!WARNING]\n{}",
    "> a\\\n{}",
    "> a  \n{}",
    "> **a**\n{}",
    "text\n> {}",
    "text\n> a\n{}\nmore",
    // Code.
    "    {}",
    "\t{}",
    "  \t{}",
    "text\n\n    {}",
    "- a\n\n      {}",
    "-     a\n\n      {}",
    "```\n{}\n```",
    "```\n{}",
    "```sh\n{}\n```",
    "   ```\n{}\n   ```",
    "~~~\n{}\n~~~",
    "~~~ text\n{}",
    "~~~\n```\n{}\n```\n~~~",
    "````\n```\n{}\n```\n````",
    "```\n~~~\n{}\n~~~\n```",
    "```\na\n``\n{}",
    "```\na\n    ```\n{}",
    "``` a\n{}\n``` b\n{}\n```",
    "- ```\n  {}\n  ```",
    "- ```\n  {}",
    "1. ~~~\n   {}\n   ~~~",
    "> ```\n> {}\n> ```",
    "`{}`",
    "``{}``",
    "a `b\n{}\nc` d",
    "a ``b\n{}\nc ` d``",
    "a ```b\n{}\nc``` d",
    "`a\n{}`",
    "\\\\`a\n{}\n`",
    "```math\n{}\n```",
    "$$\n{}\n$$",
    // Struck.
    "~~{}~~",
    "~{}~",
    "~~a\n{}\nb~~",
    "a ~~b\n{}~~",
    "**~~a\n{}~~**",
    "~~a **b\n{}** c~~",
    "a ~b\n{}\nc~ d",
    // Hidden.
    "<!-- {} -->",
    "<!--\n{}\n-->",
    "<!--\n\n{}\n\n-->",
    "<!-- a\n{}",
    "text <!-- a\n{}\n--> b",
    "<!-- a --\n{}\n-->",
    "- <!--\n  {}\n  -->",
    "<?php\n{}\n?>",
    "<!DOCTYPE\n{}\n>",
    "<![CDATA[\n{}\n]]>",
    "<div><!--\n\n{}\n\n-->",
    "<div title=\"\n\n{}\n\n\">",
    "<script>\n{}\n</script>",
    "<style>\n\n{}\n\n</style>",
    "<textarea>\n\n{}\n\n</textarea>",
    "<template>\n\n{}\n\n</template>",
    "<details>\n\n{}\n\n</details>",
    "<details><summary>a</summary>\n\n{}\n\n</details>",
    "<details>\n<summary>\n{}\n</summary>\n</details>",
    "<DETAILS>\n\n<details open>\n\n{}\n\n</details>\n\n</DETAILS>",
    // Elements.
    "<pre>\n{}\n</pre>",
    "<pre>\n\n{}\n\n</pre>",
    "<PRE>a\n\n{}",
    "<code>\n{}\n</code>",
    "<code>\n\n{}\n\n</code>",
    "a <code>b\n{}\n</code>",
    "<kbd>\n\n{}\n\n</kbd>",
    "<samp>\n\n{}\n\n</samp>",
    "a <tt>b\n{}</tt>",
    "<blockquote>\n{}\n</blockquote>",
    "<blockquote>\n\n{}\n\n</blockquote>",
    "<div><blockquote>\n\n{}\n\n</blockquote></div>",
    "a <q>b\n{}\n</q>",
    "<del>\n{}\n</del>",
    "<del>\n\n{}\n\n</del>",
    "a <del>b\n{}\n</del>",
    "<s>\n\n{}\n\n</s>",
    "a <s>b\n{}\n</s>",
    "<S>\n\n{}",
    "<strike>\n\n{}\n\n</strike>",
    "<a href=\"x\">\n\n{}\n\n</a>",
    "a <a href=\"x\">b\n{}\n</a>",
    "<a title='\n{}\n'>b</a>",
    "a <a title='b\n{}\n'>c</a>",
    "<img alt=\"\n{}\n\">",
    "a <img alt=\"b\n{}\nc\">",
    "<table><tr><td>\n{}\n</td></tr></table>",
    "<table>\n\n{}\n\n</table>",
    "<b>{}</b>",
    // Links and pictures.
    "[{}](x)",
    "[a\n{}\nb](x)",
    "[a\n{}][b]\n\n[b]: x",
    "[a](x \"b\n{}\nc\")",
    "[a](x '\n{}\n')",
    "[a](x (\n{}\n))",
    "[a](<\n/canonry>)\n[b\n{}](c)",
    "![a\n{}\nb](x)",
    "![a](x \"b\n{}\n\")",
    "[a]: x \"b\n{}\nc\"",
    "[a]: x\n'{}'",
    "[a]: x '\n{}\n'",
    "[a\n{}]\n\n[a /canonry review]: x",
    // Footnotes and tables.
    "a[^1]\n\n[^1]: b\n{}",
    "a[^1]\n\n[^1]: b\n\n    {}",
    "[^1]: {}",
    "| a |\n|---|\n{}",
    "| a |\n|---|\n| {} |",
    "a | b\n--|--\n{} | c",
    "{}|a\n-|-\n",
    // Not at the beginning of a line, or not ordinary text.
    "text {}",
    "- {}",
    "* {}",
    "1. {}",
    "- [ ] {}",
    "# {}",
    "###### {}",
    "**{}**",
    "*a\n{}*",
    "__a\n{}__",
    "**a\n{}**",
    "text<br>{}",
    "<b></b>{}",
    "\\{}",
    "&#32;{}",
    "&nbsp;{}",
    "\u{a0}{}",
    "\u{200b}{}",
    "\u{feff}{}",
    "\u{2060}{}",
    "\u{202e}{}",
    "\u{3000}{}",
    "text\u{2028}{}",
    "text\u{b}{}",
    "text\u{c}{}",
    // A quoted mail below an answer.
    "On Tue, 17 Nov 2026 at 10:00, Mona <mona@example.com> wrote:\n> {}",
    "On Tue, 17 Nov 2026 at 10:00, Mona <mona@example.com> wrote:\n{}",
    "On Tue, 17 Nov 2026 at 10:00, Mona <mona@example.com> wrote:\n\n{}\n\nmore",
    "Agreed.\n\nOn Tue, 17 Nov 2026 at 10:00, Mona <mona@example.com>\nwrote:\n\n{}",
    "Agreed.\n\n-----Original Message-----\nFrom: Mona\n\n{}",
    "Agreed.\n\n---------- Forwarded message ---------\nFrom: Mona\n\n{}",
    "From: Mona\nSent: Tuesday\nTo: me\n\n{}",
];

#[test]
fn ordinary_text_at_the_beginning_of_a_line_is_a_command() {
    for markdown in HEARD {
        for command in [COMMAND, "@canonry review"] {
            assert!(is_heard(markdown, command), "{markdown:?}");
        }
    }
}

#[test]
fn what_github_shows_as_something_else_is_no_command() {
    let heard: Vec<&&str> = NOT_HEARD.iter().filter(|markdown| is_heard(markdown, COMMAND)).collect();
    assert_eq!(heard, [&""; 0]);
    assert!(HEARD.len() + NOT_HEARD.len() >= 200);
}

#[test]
fn a_call_that_is_put_together_is_none() {
    for text in [
        "&#47;canonry review",
        "&sol;canonry review",
        "&commat;canonry review",
        "\\/canonry review",
        "\\@canonry review",
        "/can*on*ry review",
        "/can<b></b>onry review",
        "/can<!-- x -->onry review",
        "/canon&#114;y review",
        "/canon\\\nry review",
        "/`canonry` review",
        "[/canonry](x) review",
        "*/canonry* review",
        "~~/canonry~~ review",
        "/can~~x~~onry review",
        "/can\u{200b}onry review",
        "/can\u{ad}onry review",
        "</canonry review>",
        "/canonry\u{a0}review x",
    ] {
        let heard = parse_mention(text, "canonry");
        assert!(!matches!(heard, Some(MentionRequest::Command(_))), "{text:?}: {heard:?}");
    }
}

#[test]
fn words_behind_the_call_are_read_as_they_are_shown() {
    let heard = |text: &str| match parse_mention(text, "canonry") {
        Some(MentionRequest::Command(command)) => format!("{command:?}"),
        Some(MentionRequest::Unknown(spec)) => format!("unknown {:?}", spec.map(|spec| spec.verb.as_str())),
        None => "nothing".to_owned(),
    };
    for (text, command) in [
        ("/canonry **review**", "Review"),
        ("/canonry review <!-- a note -->", "Review"),
        ("/canonry ~~pause~~ resume", "unknown None"),
        ("/canonry pause ~~for a week~~", "unknown Some(\"pause\")"),
        ("/canonry duplicate of #1~~2~~", "unknown Some(\"duplicate of\")"),
        ("/canonry duplicate of ![#12](x)", "unknown Some(\"duplicate of\")"),
        ("/canonry duplicate of [#12](x)", "unknown Some(\"duplicate of\")"),
        ("/canonry duplicate of \\#12", "DuplicateOf(ItemNumber(12))"),
        ("/canonry `review`", "unknown None"),
        ("/canonry not a duplicate <del>of #9</del>", "NotADuplicate(None)"),
    ] {
        assert_eq!(heard(text), command, "{text:?}");
    }
}

/// The same parser reads "Duplicate of #12", "fixes #12" and "won't fix".
#[test]
fn no_other_words_are_taken_for_a_persons_own_either() {
    let repo = "o/n".parse().expect("valid");
    for shape in [
        "> {}",
        "> a\n{}",
        "```\n{}\n```",
        "~~~\n{}",
        "    {}",
        "`{}`",
        "`` a ` {} ``",
        "~~{}~~",
        "<!-- {} -->",
        "<del>{}</del>",
        "<blockquote>{}</blockquote>",
        "<pre>{}</pre>",
        "<code>{}</code>",
        "![{}](x)",
        "[](x \"{}\")",
        "[a]: x '{}'",
        "<img alt=\"{}\">",
        "-----Original Message-----\n{}",
    ] {
        let with = |words: &str| shape.replace("{}", words);
        assert_eq!(named_duplicate(&repo, &with("duplicate of #12")), None, "{shape:?}");
        assert_eq!(fixed_issues(&repo, &with("fixes #12")).len(), 0, "{shape:?}");
        assert!(!is_refusal(&with("won't fix")), "{shape:?}");
    }
    for shape in ["{}", "- {}", "**{}**", "_{}_", "# {}", "<b>{}</b>", "<p>\n{}\n</p>", "> a\n\n{}"] {
        let with = |words: &str| shape.replace("{}", words);
        assert_eq!(named_duplicate(&repo, &with("duplicate of #12")).map(|number| number.get()), Some(12), "{shape:?}");
        assert_eq!(fixed_issues(&repo, &with("fixes #12")).len(), 1, "{shape:?}");
        assert!(is_refusal(&with("won't fix")), "{shape:?}");
    }
    // A pull request may fold its description and still fix the named issues; nobody rules about a duplicate in there.
    let folded = "<details>\n\nduplicate of #12, fixes #12\n\n</details>";
    assert_eq!((named_duplicate(&repo, folded), fixed_issues(&repo, folded).len()), (None, 1));
}

/// Four times the text takes about four times as long. A busy machine may take eight times as long and a little more;
/// a quadratic rule takes sixteen times.
#[test]
fn deep_and_long_texts_take_linear_time() {
    let shapes: Vec<Box<dyn Fn(usize) -> String>> = vec![
        Box::new(|size| format!("{}x\n{}", "> ".repeat(size / 4), "a\n".repeat(size / 4))),
        Box::new(|size| format!("{}x\n{}", "- ".repeat(size / 4), "a\n".repeat(size / 4))),
        Box::new(|size| format!("{}x\n{}", "> - ".repeat(size / 8), "a\n".repeat(size / 4))),
        Box::new(|size| format!("{}x\n{}", "1. ".repeat(size / 6), "a\n".repeat(size / 4))),
        Box::new(|size| (0..size / 40).map(|at| format!("{}- x\n", "  ".repeat(at % 30))).collect()),
        Box::new(|size| (1..).map(|at| "`".repeat(at) + " ").take_while(|run| run.len() < size / 300).collect()),
    ];
    let marks = [
        "`",
        "``",
        "[",
        "]",
        "![",
        "](",
        "[a](",
        "[a](<",
        "[[[]]]",
        "[a][b]",
        "<",
        "<a ",
        "<a href=\"",
        "<!--",
        "<?",
        "<![CDATA[",
        "<del>",
        "<details>\n\n",
        "</del>",
        "<div>\n",
        "\\`",
        "\\",
        "*",
        "_a_ ",
        "**a*",
        "*a **b ",
        "~~",
        "~a",
        "$",
        "$$",
        "&",
        "&#",
        "&amp;",
        "[a]: b\n",
        "[^a]: b\n",
        "[^a]",
        "|",
        "|-|\n",
        "> a\n",
        "- a\n",
        "a\n-\n",
        "a\n\n",
        "``` \n",
        "~~~\n",
        "\t",
        "* * *\n",
        "On a wrote:\n",
        "\u{200b}",
    ];
    let repeated = marks
        .into_iter()
        .map(|mark| -> Box<dyn Fn(usize) -> String> { Box::new(move |size| mark.repeat(size / mark.len())) });
    for (index, shape) in shapes.into_iter().chain(repeated).enumerate() {
        let time = |size: usize| {
            let text = format!("{COMMAND} x\n\n{}", shape(size));
            let began = Instant::now();
            let _ = parse_mention(&text, "canonry");
            let _ = is_refusal(&text);
            began.elapsed()
        };
        // The maximum length of a comment on GitHub, and a quarter of it.
        let (short, long) = (time(16_000), time(64_000));
        let allowed = short * 8 + Duration::from_millis(200);
        assert!(long < allowed, "shape {index}: {short:?} for 16 kB, {long:?} for 64 kB");
    }
}

proptest! {
    #[test]
    fn quoting_a_whole_comment_silences_it(text in "[a-z/@ >`~<!*\\[\\]()\n-]{0,200}") {
        let quoted: String = format!("{COMMAND}\n{text}\n{COMMAND}").lines().map(|line| format!("> {line}\n")).collect();
        prop_assert_eq!(parse_mention(&quoted, "canonry"), None);
    }

    #[test]
    fn any_text_ends(pieces in prop::collection::vec(prop::sample::select(NOT_HEARD.to_vec()), 0..8), text in any::<String>()) {
        let text = format!("{}{text}", pieces.join("\n\n")).replace("{}", COMMAND);
        let again = parse_mention(&text, "canonry");
        prop_assert_eq!(again, parse_mention(&text, "canonry"));
    }

    #[test]
    fn what_is_inside_of_a_fence_never_counts(inside in "[a-z/@ >~<!*\\[\\]()\n-]{0,200}", before in "[a-z ]{0,20}") {
        let text = format!("{before}\n\n````\n{inside}\n{COMMAND}\n{inside}\n````\n");
        prop_assert!(parse_mention(&text, "canonry").is_none(), "{:?}", text);
    }
}
