//! Decides whether an item says too little to be compared with others.

use std::sync::LazyLock;

use regex::Regex;

use crate::normalise_text;
use crate::text::template_text::{is_tag_alone, written_lines};

/// A text with fewer code points is always too vague.
const SHORTEST: usize = 90;
/// A text with fewer code points and a stock phrase is too vague.
const SHORTEST_WITH_STOCK_PHRASE: usize = 220;
/// A text with fewer words is always too vague.
const FEWEST_WORDS: usize = 12;
/// A text in a script without spaces and with fewer characters is too vague.
const SHORTEST_WITHOUT_SPACES: usize = 40;

/// Whether title and body, without the headings of their template, are too short or only a complaint.
pub fn is_too_vague(title: &str, body: &str) -> bool {
    let text = own_text(title, body);
    let length = text.chars().count();
    let unspaced = text.chars().filter(|character| is_unspaced(*character)).count();
    let letters = text.chars().filter(|character| character.is_alphabetic()).count();
    if 2 * unspaced > letters {
        return length < SHORTEST_WITHOUT_SPACES;
    }
    // In a mixed text two characters of such a script count as a word.
    let words = text.split_whitespace().filter(|word| is_spaced_word(word)).count() + unspaced / 2;
    length < SHORTEST || words < FEWEST_WORDS || (length < SHORTEST_WITH_STOCK_PHRASE && STOCK_PHRASE.is_match(&text))
}

/// Title, blank line and body, without the text of the template.
fn own_text(title: &str, body: &str) -> String {
    let title = normalise_text(title);
    let title = if is_tag_alone(&title) { "" } else { &title };
    let mut text = format!("{title}\n\n");
    for (_, line) in written_lines(body) {
        // Removed headings leave one blank line, not two.
        if !(line.is_empty() && text.ends_with("\n\n")) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text.trim().to_owned()
}

fn is_spaced_word(word: &str) -> bool {
    word.chars().any(|character| character.is_alphanumeric() && !is_unspaced(character))
}

/// Whether a character belongs to a script that does not separate words by spaces, or whose words are too short for
/// the word rule: Han, Kana, Hangul, Thai, Lao, Burmese, Khmer.
pub(crate) fn is_unspaced(character: char) -> bool {
    matches!(
        character,
        '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1100}'..='\u{11ff}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3130}'..='\u{318f}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{a960}'..='\u{a97f}'
            | '\u{ac00}'..='\u{d7ff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff66}'..='\u{ff9f}'
            | '\u{20000}'..='\u{323af}'
    )
}

/// Phrases that people use for any problem.
static STOCK_PHRASE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi) \b (?: not \s+ working | (?: does | do | did ) (?: \s+ not | n['’]?t ) \s+ work
        | (?: please | plz | pls ) \s+ (?: fix | help ) | help \s+ me ) \b";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{is_too_vague, own_text};

    /// A text of `length` code points, in words of four letters.
    fn words(length: usize) -> String {
        "abcd ".repeat(length / 5 + 1).chars().take(length - 1).chain(['z']).collect()
    }

    #[test]
    fn the_limits_are_where_they_are_said_to_be() {
        let title = words(30);
        for (body, expected) in [
            (words(57), true),
            (words(58), false),
            // Both have at least ninety code points; the first has eleven words, the second twelve.
            ("extraordinarily ".repeat(5), true),
            ("extraordinarily ".repeat(6), false),
            (format!("{} not working", words(175)), true),
            (format!("{} not working", words(176)), false),
        ] {
            assert_eq!(is_too_vague(&title, &body), expected, "{}", own_text(&title, &body).chars().count());
        }
    }

    #[test]
    fn stock_phrases_are_whole_words() {
        let about = words(100);
        for phrase in [
            "It is Not  Working",
            "it doesn't work",
            "it doesn’t work",
            "does not\nwork",
            "Please fix",
            "plz help",
            "pls fix!",
        ] {
            assert!(is_too_vague(&about, phrase), "{phrase}");
        }
        for phrase in ["knot workings", "please fixture", "it works", "networking does not worry"] {
            assert!(!is_too_vague(&about, phrase), "{phrase}");
        }
    }

    #[test]
    fn templates_do_not_count() {
        assert!(is_too_vague("[Bug]:", "plz fix not working"));
        let filled = "### Is there an existing issue for this?\n\n- [x] I have searched the existing issues and there is none like it\n\n\
            ### Current Behavior\n\nIt hangs.\n\n### Expected Behavior\n\n_No response_\n\n<!-- Tell us as much as you can, please, it helps -->\n\
            **Steps To Reproduce**\n\n- [ ] I agree to follow the code of conduct of this project";
        assert_eq!(own_text("[Bug]: ", filled), "It hangs.");
        assert!(is_too_vague("[Bug]: ", filled));
        assert_eq!(own_text("[Bug] It hangs", "### A\n\nb\n\n### C\n\nd"), "[Bug] It hangs\n\nb\n\nd");
        let trace = format!("### Log\n```\n{}\n```", "at run (src/main.rs:12)\n".repeat(8));
        assert!(!is_too_vague("It hangs", &trace), "stack frames are evidence");
    }

    #[test]
    fn scripts_without_spaces_are_counted_by_characters() {
        let japanese = "設定画面を開くとアプリが落ちます。".repeat(9);
        assert!(!is_too_vague("設定画面で落ちる", &japanese.chars().take(150).collect::<String>()));
        for script in ["漢", "か", "ｶ", "한", "ก"] {
            assert!(is_too_vague("", &script.repeat(39)), "{script}");
            assert!(!is_too_vague("", &script.repeat(40)), "{script}");
        }
        assert!(is_too_vague("动不了", "请修复"));
        let mixed = format!(
            "{} `NullPointerException: com.example.settings.SettingsActivity.onCreate`",
            "設定画面を開くとアプリが落ちます"
        );
        assert!(!is_too_vague("設定画面で落ちる、助けて", &mixed));
    }

    #[test]
    fn much_of_nothing_is_vague() {
        for body in ["a".repeat(5_000), " ".repeat(5_000), "! ? ".repeat(500), "<!--".repeat(500), "# x\n".repeat(500)]
        {
            assert!(is_too_vague("t", &body), "{}", body.chars().take(10).collect::<String>());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged_and_line_endings_do_not_matter(title in any::<String>(), body in "(?s).{0,200}") {
            let windows = body.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
            prop_assert_eq!(is_too_vague(&title, &body), is_too_vague(&title, &windows));
        }

        #[test]
        fn short_texts_are_vague_in_every_script(text in "\\PC{0,35}") {
            prop_assert!(is_too_vague("", &text));
        }
    }
}
