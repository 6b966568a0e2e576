//! Splits an item's text into words; identifiers count as a whole and in parts.

/// Characters of a token that are kept: a longer token is a key, a hash or a blob, and its beginning identifies it
/// just as well.
pub const TOKEN_LIMIT: usize = 64;

pub fn tokens(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for_each_token(text, |token| all.push(token.to_owned()));
    all
}

/// Calls `emit` for every token of a text.
///
/// Words are lower-cased and lose the s of a plural. An identifier counts as a whole and in its parts (`read_to_end`:
/// also `read`, `to`, `end`; `HashMap`: also `hash`, `map`), a name with a path also as a whole (`std::io`,
/// `src/lib.rs`, `1.2.3`). Scripts without spaces between words are split into single characters and pairs of
/// characters. Each emoji is a token. A single ASCII letter or digit says nothing and is left out.
pub fn for_each_token(text: &str, mut emit: impl FnMut(&str)) {
    let mut token = String::with_capacity(TOKEN_LIMIT);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = TokenKind::of(first);
        let end = match kind {
            TokenKind::Word => compound_end(rest),
            TokenKind::Unspaced => run_end(rest, TokenKind::Unspaced),
            TokenKind::Emoji | TokenKind::Other => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(end);
        match kind {
            TokenKind::Word => compound(piece, &mut token, &mut emit),
            TokenKind::Unspaced => unspaced(piece, &mut emit),
            TokenKind::Emoji => emit(piece),
            TokenKind::Other => {}
        }
        rest = after;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Word,
    Unspaced,
    Emoji,
    Other,
}

impl TokenKind {
    fn of(character: char) -> Self {
        match character {
            '_' => Self::Word,
            _ if character.is_ascii() => {
                if character.is_ascii_alphanumeric() {
                    Self::Word
                } else {
                    Self::Other
                }
            }
            // Thai, Lao, Myanmar, Hangul, Khmer, Han with its radicals, Kana, and their half-width forms.
            '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1100}'..='\u{11ff}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{2e80}'..='\u{2fdf}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{318f}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff66}'..='\u{ff9f}'
            | '\u{20000}'..='\u{3ffff}' => Self::Unspaced,
            // Skin tones only change the colour of the emoji before them.
            '\u{1f3fb}'..='\u{1f3ff}' => Self::Other,
            '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' => {
                Self::Emoji
            }
            _ if character.is_alphanumeric() => Self::Word,
            _ => Self::Other,
        }
    }
}

fn run_end(text: &str, kind: TokenKind) -> usize {
    text.char_indices().find(|&(_, character)| TokenKind::of(character) != kind).map_or(text.len(), |(at, _)| at)
}

/// The end of `a::b`, `a/b.c` or `1.2.3`: words joined by exactly one connector.
fn compound_end(text: &str) -> usize {
    let mut end = run_end(text, TokenKind::Word);
    loop {
        let after = &text[end..];
        let connector = if after.starts_with("::") {
            2
        } else if after.starts_with(['.', '/']) {
            1
        } else {
            return end;
        };
        match run_end(&after[connector..], TokenKind::Word) {
            0 => return end,
            word => end += connector + word,
        }
    }
}

fn compound(piece: &str, token: &mut String, emit: &mut impl FnMut(&str)) {
    let mut words = 0_usize;
    for word in piece.split([':', '.', '/']).filter(|word| !word.is_empty()) {
        words += 1;
        identifier(word, token, emit);
    }
    if words > 1 {
        lower(piece, token);
        emit(token);
    }
}

/// Emits a word, and its parts if it is an identifier with several parts.
fn identifier(word: &str, token: &mut String, emit: &mut impl FnMut(&str)) {
    emit_word(word, token, emit);
    let several = word.contains('_') || camel_boundaries(word).next().is_some();
    if !several {
        return;
    }
    for part in word.split('_').filter(|part| !part.is_empty()) {
        let mut start = 0;
        for boundary in camel_boundaries(part).chain([part.len()]) {
            let piece = &part[start..boundary];
            if piece.len() < word.len() {
                emit_word(piece, token, emit);
            }
            start = boundary;
        }
    }
}

/// Where `camelCase` and `HTTPServer` are split: before a capital that follows a small letter or a digit, and before
/// the last of several capitals if a small letter follows it.
fn camel_boundaries(word: &str) -> impl Iterator<Item = usize> + '_ {
    let bytes = word.as_bytes();
    (1..bytes.len()).filter(move |&at| {
        let (before, here, after) = (bytes[at - 1], bytes[at], bytes.get(at + 1).copied().unwrap_or(0));
        here.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && after.is_ascii_lowercase()))
    })
}

fn emit_word(word: &str, token: &mut String, emit: &mut impl FnMut(&str)) {
    lower(word, token);
    singular(token);
    if token.len() > 1 && token.bytes().any(|byte| byte != b'_') {
        emit(token);
    }
}

fn lower(word: &str, token: &mut String) {
    token.clear();
    token.extend(word.chars().take(TOKEN_LIMIT).flat_map(char::to_lowercase));
}

/// Removes the s of a plural from an English word. Recall at 10 without this, with it, and with -ing and -ed removed
/// too: .584, .593, .592 on rust; .788, .788, .773 on hadoop.
fn singular(word: &mut String) {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["sses", "xes", "zes", "shes", "ches"].iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 1);
    }
}

fn unspaced(run: &str, emit: &mut impl FnMut(&str)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    for pair in starts.windows(2) {
        emit(&run[pair[0]..pair[1]]);
    }
    for triple in starts.windows(3) {
        emit(&run[triple[0]..triple[2]]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{TOKEN_LIMIT, tokens};

    #[test]
    fn identifiers_count_whole_and_split() {
        for (text, expected) in [
            ("read_to_end fails", "read_to_end read to end fail"),
            ("HashMap", "hashmap hash map"),
            ("parseHTTPRequest2Go", "parsehttprequest2go parse http request2 go"),
            ("std::io::Error", "std io error std::io::error"),
            ("src/lib.rs:12", "src lib rs src/lib.rs 12"),
            ("error[E0308]: mismatched types", "error e0308 mismatched type"),
            ("rustc 1.2.3-nightly.", "rustc 1.2.3 nightly"),
            ("__init__ ___", "__init__ init"),
            ("I/O a b", "i/o"),
            ("it's Größe ÜBER", "it größe über"),
            ("queries classes boxes status this", "query class box status this"),
        ] {
            assert_eq!(tokens(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn scripts_without_spaces_are_findable_by_their_parts() {
        assert_eq!(tokens("全文検索"), ["全", "文", "検", "索", "全文", "文検", "検索"]);
        assert_eq!(tokens("猫 crash"), ["猫", "crash"]);
        assert!(tokens("검색이 안 돼요").contains(&"검색".to_owned()));
        assert_eq!(tokens("שגיאה קריטית"), ["שגיאה", "קריטית"]);
    }

    #[test]
    fn emoji_stand_for_themselves() {
        assert_eq!(tokens("🚀👍🏽 ok"), ["🚀", "👍", "ok"]);
    }

    #[test]
    fn blobs_are_cut() {
        assert_eq!(tokens(&"a".repeat(5_000)), ["a".repeat(TOKEN_LIMIT)]);
        assert!(tokens("\0\0\u{fffd}").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_gives_bounded_tokens(text in any::<String>()) {
            let all = tokens(&text);
            prop_assert!(all.len() <= 3 * text.chars().count());
            for token in all {
                prop_assert!(!token.is_empty());
                prop_assert!(token.chars().count() <= 3 * TOKEN_LIMIT);
                prop_assert!(!token.contains(char::is_whitespace));
            }
        }

        #[test]
        fn code_like_text_never_panics(text in "[a-zA-Z0-9_:./ äß日本🚀-]{0,80}") {
            prop_assert!(tokens(&text).iter().all(|token| !token.is_empty()));
        }
    }
}
