//! Parses the text of a comment into a command.

use super::commands::{DEFAULT_HANDLE, MENTIONS, MentionArgument, MentionCommand, MentionSpec, MentionVerb};
use crate::ItemNumber;
use crate::text::markdown::{CodeSpans, FoldedText, own_lines};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MentionRequest {
    Command(MentionCommand),
    /// The comment calls Canonry, but the command is unknown. If only the argument is not understood, this contains
    /// the command.
    Unknown(Option<&'static MentionSpec>),
}

/// Whether a text may contain a mention, for any handle. Most comments do not, and need no further query.
pub fn may_contain_mention(text: &str) -> bool {
    text.split(['\n', '\r']).any(|line| line.trim_start().starts_with(['@', '/']))
}

/// The command in a comment; `None` if the comment does not call Canonry.
///
/// A line of the author's own words that begins with `@handle`, `/handle` or `/canonry` is a call. Text that GitHub
/// shows as quoted, struck, code or a part of a link, a table or a footnote is never a call, nor is hidden or folded
/// text. The first call counts. Letter case, extra blanks, "please" and a full stop do not matter.
pub fn parse_mention(text: &str, handle: &str) -> Option<MentionRequest> {
    if !may_contain_mention(text) {
        return None;
    }
    let lines = own_lines(text, CodeSpans::Keep, FoldedText::Omit);
    let said = lines.iter().find_map(|line| {
        let said = behind_the_call(&line.text, handle)?;
        // A call with marks between its parts is not a call.
        (line.text.len() - said.len() <= line.plain).then_some(said)
    })?;
    Some(understood(said))
}

/// The text after the call at the beginning of a line.
fn behind_the_call<'a>(line: &'a str, handle: &str) -> Option<&'a str> {
    let at = line.strip_prefix('@').and_then(|rest| without_name(rest, handle));
    let slash = || line.strip_prefix('/').and_then(|rest| without_name(rest, handle));
    // This form works for any handle: it notifies nobody, and the documentation uses it.
    let always = || line.strip_prefix('/').and_then(|rest| without_name(rest, DEFAULT_HANDLE));
    at.or_else(slash).or_else(always)
}

fn without_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (found, rest) = text.split_at_checked(name.len())?;
    if name.is_empty() || !found.eq_ignore_ascii_case(name) {
        return None;
    }
    let rest = rest.strip_prefix([',', ':']).unwrap_or(rest);
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest)
}

fn understood(said: &str) -> MentionRequest {
    // Only ASCII is converted: a letter that only looks like another one is a different letter.
    let lower = said.to_ascii_lowercase();
    let words = without_courtesies(lower.split_whitespace().collect());
    // The longest match wins: "review all" is more than "review".
    let mut matching: Vec<(usize, &'static MentionSpec)> = MENTIONS
        .iter()
        .flat_map(|spec| spec.words().map(move |own| (own, spec)))
        .filter_map(|(own, spec)| Some((begins_with(&words, own)?, spec)))
        .collect();
    matching.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    let Some((length, spec)) = matching.first() else { return MentionRequest::Unknown(None) };
    command(spec, &words[*length..]).map_or(MentionRequest::Unknown(Some(*spec)), MentionRequest::Command)
}

/// The number of words in `own` if the text begins with them. The last word may have punctuation behind it, as in "not
/// a duplicate, it is the other one".
fn begins_with(words: &[&str], own: &str) -> Option<usize> {
    let own: Vec<&str> = own.split(' ').collect();
    let begun = words.get(..own.len())?;
    let (last, before) = begun.split_last()?;
    let (own_last, own_before) = own.split_last()?;
    let same =
        before == own_before && last.trim_end_matches([',', ':', ';', '.', '!', '?', '-', '–', '—']) == *own_last;
    same.then_some(own.len())
}

/// Removes "please" and "thanks" around the command, and the punctuation at its end.
fn without_courtesies(mut words: Vec<&str>) -> Vec<&str> {
    const COURTESIES: [&str; 4] = ["please", "pls", "thanks", "thank-you"];
    loop {
        let Some(last) = words.last_mut() else { return words };
        *last = last.trim_end_matches(['.', '!', '?', ',', ';']);
        if !last.is_empty() && !COURTESIES.contains(last) {
            break;
        }
        words.pop();
    }
    let first = words.first().is_some_and(|first| COURTESIES.contains(&first.trim_end_matches(',')));
    if first { words.split_off(1) } else { words }
}

/// The command, if the rest is a valid argument of it.
fn command(spec: &MentionSpec, rest: &[&str]) -> Option<MentionCommand> {
    let fits = match spec.argument {
        MentionArgument::Nothing => rest.is_empty(),
        MentionArgument::Number | MentionArgument::Pattern => rest.len() <= 1,
        MentionArgument::NumberOrWords | MentionArgument::Words => true,
    };
    if !fits {
        return None;
    }
    Some(match spec.verb {
        MentionVerb::Review => MentionCommand::Review,
        MentionVerb::FullReview => MentionCommand::FullReview,
        MentionVerb::Pause => MentionCommand::Pause,
        MentionVerb::Resume => MentionCommand::Resume,
        MentionVerb::Why => MentionCommand::Why,
        MentionVerb::NotUseful => MentionCommand::NotUseful,
        MentionVerb::FeedbackStatus => MentionCommand::FeedbackStatus,
        MentionVerb::FeedbackList => MentionCommand::FeedbackList,
        MentionVerb::FeedbackClear => {
            let pattern = rest.first().map(|word| word.trim_matches('`').parse()).transpose();
            MentionCommand::FeedbackClear(pattern.ok()?)
        }
        MentionVerb::FeedbackRestore => MentionCommand::FeedbackRestore,
        MentionVerb::DuplicateOf => MentionCommand::DuplicateOf(number(rest.first()?)?),
        MentionVerb::NotADuplicate => MentionCommand::NotADuplicate(match rest {
            ["of", named, ..] => Some(number(named.trim_end_matches([',', ':', ';', '.', '!', '?']))?),
            _ => None,
        }),
        MentionVerb::Undo => MentionCommand::Undo,
        MentionVerb::Help => MentionCommand::Help,
    })
}

/// `#12` or `12`. Items of other repositories and addresses are not accepted: no ruling about them is possible.
fn number(word: &str) -> Option<ItemNumber> {
    let digits = word.strip_prefix('#').unwrap_or(word);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    ItemNumber::new(digits.parse().ok().filter(|_| is_plain)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MentionRequest, parse_mention};
    use crate::ItemNumber;
    use crate::mention::{MENTIONS, MentionCommand, MentionVerb};

    fn verb(text: &str) -> Option<MentionVerb> {
        match parse_mention(text, "canonry")? {
            MentionRequest::Command(command) => Some(command.verb()),
            MentionRequest::Unknown(_) => None,
        }
    }

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    #[test]
    fn a_command_is_read_however_it_is_written() {
        for text in [
            "@canonry review",
            "/canonry review",
            "@Canonry  REVIEW ",
            "   @canonry\treview",
            "@canonry, review please!",
            "@canonry: please review.",
            "/canonry review pls",
            "Thanks for this.\n\n@canonry review\n\nSee you.",
            "@canonry review\r\nmore",
            "- a list\n- of things\n\n/canonry review",
            "> @canonry pause\n\n@canonry review",
        ] {
            assert_eq!(verb(text), Some(MentionVerb::Review), "{text:?}");
        }
        for (said, command) in [
            ("full review", MentionCommand::FullReview),
            ("review all", MentionCommand::FullReview),
            ("duplicate of #12", MentionCommand::DuplicateOf(number(12))),
            ("Duplicate of 12.", MentionCommand::DuplicateOf(number(12))),
            ("dup of #7 please", MentionCommand::DuplicateOf(number(7))),
            ("not a duplicate", MentionCommand::NotADuplicate(None)),
            ("not a duplicate, it crashes elsewhere", MentionCommand::NotADuplicate(None)),
            ("not a duplicate of #9!", MentionCommand::NotADuplicate(Some(number(9)))),
            ("not a duplicate of #9, see the trace", MentionCommand::NotADuplicate(Some(number(9)))),
            ("why?", MentionCommand::Why),
            ("why is this a duplicate?", MentionCommand::Why),
            ("not useful: generated code", MentionCommand::NotUseful),
            ("feedback clear", MentionCommand::FeedbackClear(None)),
            ("feedback clear `fp-79e99c7e`", MentionCommand::FeedbackClear("fp-79e99c7e".parse().ok())),
        ] {
            assert_eq!(
                parse_mention(&format!("@canonry {said}"), "canonry"),
                Some(MentionRequest::Command(command)),
                "{said:?}"
            );
        }
    }

    #[test]
    fn what_is_not_quite_a_command_is_not_guessed() {
        let unknown = |text: &str| match parse_mention(text, "canonry") {
            Some(MentionRequest::Unknown(spec)) => spec.map_or(Some("nothing"), |spec| Some(spec.verb.as_str())),
            _ => None,
        };
        for (text, near) in [
            ("@canonry", "nothing"),
            ("@canonry please", "nothing"),
            ("@canonry is great", "nothing"),
            ("@canonry make coffee", "nothing"),
            ("@canonry pause for a week", "pause"),
            ("@canonry review and merge", "review"),
            ("@canonry duplicate of", "duplicate of"),
            ("@canonry duplicate of #12 or #13", "duplicate of"),
            ("@canonry duplicate of octo/cat#12", "duplicate of"),
            ("@canonry duplicate of #-1", "duplicate of"),
            ("@canonry duplicate of #+1", "duplicate of"),
            ("@canonry duplicate of #99999999999999999999", "duplicate of"),
            ("@canonry not a duplicate of everything", "not a duplicate"),
            ("@canonry feedback clear everything", "feedback clear"),
            ("@canonry reviews", "nothing"),
        ] {
            assert_eq!(unknown(text), Some(near), "{text:?}");
        }
    }

    #[test]
    fn only_a_line_that_begins_with_the_handle_calls() {
        for text in [
            "@canonrybot review",
            "@canonry-bot review",
            "@canonry/team review",
            "@canonry[bot] review",
            "/canonry/review",
            "hello @canonry review",
            "- @canonry review",
            "1. @canonry review",
            "# @canonry review",
            "| @canonry review |",
            "**@canonry review**",
            "canonry review",
            "@ canonry review",
            "@@canonry review",
            "//canonry review",
            "\\@canonry review",
            "@canonry\u{200b}review",
            "@can\u{200b}onry review",
            "@c\u{430}nonry review",
            "\u{ff20}canonry review",
            "@ca\u{ff4e}onry review",
            "@canonr\u{443} review",
            "@\u{202e}canonry review",
            "user@canonry review",
            "",
            "@",
            "/",
        ] {
            assert_eq!(parse_mention(text, "canonry"), None, "{text:?}");
        }
    }

    #[test]
    fn the_first_call_of_a_comment_counts() {
        assert_eq!(verb("@canonry pause\n@canonry resume"), Some(MentionVerb::Pause));
        assert_eq!(verb("`@canonry pause`\n\n@canonry resume"), Some(MentionVerb::Resume));
        assert_eq!(verb("@canonry dance\n@canonry resume"), None, "the first one is not understood");
    }

    #[test]
    fn a_handle_of_ones_own_leaves_strangers_alone() {
        let verb = |text: &str| match parse_mention(text, "tide-Helper") {
            Some(MentionRequest::Command(command)) => Some(command.verb()),
            _ => None,
        };
        assert_eq!(verb("@tide-helper help"), Some(MentionVerb::Help));
        assert_eq!(verb("/TIDE-HELPER help"), Some(MentionVerb::Help));
        assert_eq!(verb("/canonry help"), Some(MentionVerb::Help));
        assert_eq!(verb("@canonry help"), None);
        assert_eq!(verb("@tide help"), None);
        assert_eq!(parse_mention("@ review", ""), None);
    }

    fn any_command() -> impl Strategy<Value = String> {
        let said = MENTIONS.iter().map(|spec| spec.example).collect::<Vec<_>>();
        (prop::sample::select(vec!["@canonry ", "/canonry ", "@CANONRY\t", "/Canonry  "]), prop::sample::select(said))
            .prop_map(|(call, said)| format!("{call}{said}"))
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            any_command(),
            prop::sample::select(vec![
                "\n", "\n\n", "\r", "```\n", "~~~\n", "> ", "`", "``", "<!--", "-->", "[", "](x)", "<pre>", "</pre>",
                "    ", "\t", "@", "/", "#", "- ", "\u{200b}", "\u{2028}", "\\",
            ])
            .prop_map(str::to_owned),
        ]
    }

    /// A word that does not begin or end any markup.
    fn words() -> impl Strategy<Value = String> {
        "[a-zA-Z0-9 ,.]{0,20}"
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(pieces in prop::collection::vec(piece(), 0..24), handle in "[a-z0-9-]{0,8}") {
            parse_mention(&pieces.concat(), &handle);
        }

        #[test]
        fn a_command_alone_is_heard_and_letter_case_does_not_matter(
            command in any_command(), before in words(), after in words()
        ) {
            let text = format!("{before}\n\n{command}\n\n{after}");
            let heard = parse_mention(&text, "canonry");
            prop_assert!(matches!(heard, Some(MentionRequest::Command(_))), "{heard:?} for {text:?}");
            prop_assert_eq!(heard, parse_mention(&text.to_uppercase(), "canonry"));
        }

        #[test]
        fn what_is_quoted_or_code_never_counts(command in any_command(), inside in words(), shape in 0usize..12) {
            let text = match shape {
                0 => format!("> {command}"),
                1 => format!(">{inside}\n> {command}\n{command}"),
                2 => format!("```\n{inside}\n{command}\n```"),
                3 => format!("~~~text\n{command}\n{inside}"),
                4 => format!("    {command}"),
                5 => format!("\t{command}"),
                6 => format!("`{command}`"),
                7 => format!("so ``{inside}\n{command}\nx`` it"),
                8 => format!("<!-- {inside}\n\n{command}\n-->"),
                9 => format!("[{inside}\n{command}\nx](https://example.com)"),
                10 => format!("- ```\n  {command}\n  ```"),
                _ => format!("<pre>\n{command}\n\n{command}\n</pre>"),
            };
            prop_assert_eq!(parse_mention(&text, "canonry"), None, "{:?}", text);
        }

        #[test]
        fn a_longer_name_is_somebody_else(command in any_command(), more in "[a-z0-9_/.-]{1,5}") {
            let (call, said) = command.split_at("@canonry".len());
            prop_assert_eq!(parse_mention(&format!("{call}{more}{said}"), "canonry"), None);
        }
    }
}
