//! Finds "Won't fix" in an answer to a finding, unless it is negated, quoted or withdrawn.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::markdown::{CodeSpans, FoldedText, own_lines};

/// Whether an answer to a finding rejects it.
///
/// The first line of the person's own words must consist of the rejection, or of the rejection and a reason: "Won't
/// fix", "by design, see the driver". Quotes and code are the words of others, struck text is withdrawn, and a
/// question or a "but" leaves the answer open. An answer that is not recognised does no harm: the finding stays as it
/// is, and is not posted again.
pub fn is_refusal(text: &str) -> bool {
    let lines = own_lines(text, CodeSpans::Omit, FoldedText::Omit);
    let Some(line) = lines.first() else { return false };
    let line = plain(&line.text);
    match SAYS_NO.captures(&line) {
        Some(said) => said.name("reason").is_none_or(|reason| !TURNS.is_match(reason.as_str())),
        None => false,
    }
}

static SAYS_NO: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x)^
        (?: @ [\w-]+ (?: \[bot\] )? [,:]? \s+ )*
        (?: (?: thanks | thank \s you | thx | sorry | yes | yeah | yep | ok | okay | ack | hm+ | right | fyi ) [,.!:;]? \s+
            | (?: no | nope | nah ) [,.!:;] \s+ )*
        (?: (?: this | that | it | these | those | the \s code | the \s finding ) \s? (?: 's | \s is | \s was | \s are | \s were )? \s
            | (?: marking | closing | resolving | dismissing ) \s (?: (?: this | it ) \s )? as \s
            | (?: i | we ) (?: 'm | 're | \s am | \s are )? \s
        )?
        (?: (?: just | simply | clearly | really | totally | completely | all | entirely ) \s )?
        (?: (?: a | an | the ) \s )?
        (?:
            won'?t [\s-]? fix | will \s not \s fix | not \s going \s to \s fix
            | (?: won'?t | will \s not ) \s be \s (?: fixed | changed | addressed )
            | no \s fix \s (?: is \s )? needed | no \s (?: need \s to \s (?: fix | change ) | change \s (?: is \s )? needed )
            | by \s design | as \s designed | (?: works | working | behaves ) \s as \s (?: intended | designed | expected )
            | as \s intended | intended (?: \s behaviou?r )? | intentional | intentionally (?: \s so )? | deliberate | on \s purpose
            | expected \s behaviou?r
            | false [\s-] (?: positive | alarm )
            | not \s (?: useful | helpful | relevant | applicable | actionable | an? \s (?: bug | issue | problem | concern ) )
            | unhelpful | irrelevant | n/a
            | ignor (?: e | ing ) (?: \s (?: this | it ) )? | dismiss (?: ed | ing )? (?: \s (?: this | it ) )?
        )
        (?: \s (?: this | it | that | one ) (?: \s one )? )?
        (?: \s (?: here | anyway | for \s now | in \s this \s (?: case | pr | pull \s request ) | in \s our \s case | to \s us | for \s us ) )*
        (?: ,? \s (?: please | thanks | thank \s you | thx | sorry ) )?
        \s* (?: [.!]* \s* $ | (?<reason> (?: [.!,;:—–(] | \s - \s | \s (?: because | since | as | due \s to | see ) \s ) .* $ ) )";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// Words that withdraw, doubt or limit what comes before them.
static TURNS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x) \? | \b (?: but | however | unless | until | except | though | although | wait | actually | otherwise
        | maybe | perhaps | oops | nevermind | never \s mind | scratch \s that | fixed | done
        | (?: i | we ) (?: 'll | \s will ) \s (?: fix | change | address ) ) \b";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// The words in lower case, with one kind of apostrophe and blank, without emphasis and without any characters before
/// the first word.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for character in line.chars().flat_map(char::to_lowercase) {
        match character {
            '*' | '_' | '"' | '“' | '”' => {}
            '’' | '‘' | '`' | '´' => plain.push('\''),
            blank if blank.is_whitespace() => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            other => plain.push(other),
        }
    }
    // A struck or quoted word is a gap that no sentence continues across.
    let begins = |character: char| character.is_alphanumeric() || matches!(character, '@' | '…');
    plain.trim_start_matches(|character| !begins(character)).trim_end_matches(|end: char| is_ornament(end)).to_owned()
}

/// Emoji and blanks at the end of a line do not change its meaning.
fn is_ornament(character: char) -> bool {
    !character.is_alphanumeric() && !character.is_ascii_punctuation() && character != '…'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::is_refusal;

    #[test]
    fn what_says_no() {
        for text in [
            "won't fix",
            "Won't fix.",
            "WONTFIX",
            "wont-fix",
            "Won’t fix!",
            "will not fix",
            "We won't fix this.",
            "not going to fix this one",
            "This won't be fixed",
            "By design",
            "This is by design.",
            "it's by design 🙂",
            "False positive",
            "That's a false positive.",
            "A false-positive here, sorry!",
            "Not useful",
            "not useful, thanks",
            "intended",
            "Intended behaviour",
            "This is intentional.",
            "Works as intended",
            "on purpose",
            "Not a bug.",
            "**Won't fix**",
            "- won't fix",
            "@mona won't fix",
            "Thanks, by design",
            "Closing as won't fix",
            "I'm not going to fix this in this PR",
            "Ignoring this",
            "Won't fix: the driver needs it.",
            "Won't fix, see the comment below",
            "By design — the cache is warm by then",
            "won't fix because we don't support that platform",
            "Won't fix. We rely on it in the driver.",
            "> Consider removing this.\n\nWon't fix",
            "> Consider removing this.\n> Really.\n\nBy design.\n\nMore words, but later.",
            "<!-- a note -->\nfalse positive",
            "```js\ndebugger;\n```\nintentional",
        ] {
            assert!(is_refusal(text), "{text:?}");
        }
    }

    #[test]
    fn what_does_not() {
        for text in [
            "",
            "   \n\n",
            "Good catch, fixed in the next push",
            "This is not a false positive",
            "not by design",
            "It's not intended",
            "unintended",
            "This isn't intentional",
            "I don't think this is a false positive",
            "Is this by design?",
            "false positive?",
            "Won't fix? Why not?",
            "Won't fix unless you insist",
            "won't fix, unless you insist",
            "By design, but I'll change it",
            "False positive. Wait, actually it is one of ours.",
            "Won't fix this today",
            "I won't say that this is by design",
            "will fix",
            "fix it",
            "> won't fix",
            "> a question\nwon't fix",
            "`won't fix`",
            "```\nwon't fix\n```",
            "~~won't fix~~",
            "~~won't fix~~ fixed",
            "Someone said \"won't fix\" and I disagree",
            "    won't fix",
            "<!-- won't fix -->",
            "<!-- won't fix",
            "I disagree.\n\nWon't fix",
            "intended use of this API is elsewhere",
            "By design patterns we mean these",
            "not useful or useful, who knows",
            "The false positive rate went up",
            "not not useful",
        ] {
            assert!(!is_refusal(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = is_refusal(&text);
        }

        #[test]
        fn nobody_is_made_to_say_no_by_a_quote(text in "[a-z' >.,\n]{0,80}") {
            let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
            assert!(!is_refusal(&quoted));
        }
    }
}
