//! Splits text into the word pieces that a BERT-like encoder was trained on.

use std::collections::HashMap;

use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::model_file::ModelFileError;

/// A longer word is unknown as a whole; the models were trained with this rule.
const LONGEST_WORD: usize = 100;

/// The vocabulary and the rules of the published uncased tokeniser.
///
/// Names of special tokens in a text (`[SEP]` and similar) are ordinary text here: text from strangers never becomes
/// markup.
#[derive(Debug)]
pub(crate) struct WordPiece {
    starts: HashMap<Box<str>, u32>,
    continuations: HashMap<Box<str>, u32>,
    longest_piece: usize,
    unknown: u32,
    opening: u32,
    closing: u32,
    limit: usize,
    lower_case: bool,
}

impl WordPiece {
    /// Reads a vocabulary with one piece per line; the line number is the piece's id.
    pub(crate) fn new(vocabulary: &str, limit: usize, lower_case: bool) -> Result<Self, ModelFileError> {
        let mut starts = HashMap::with_capacity(1 << 15);
        let mut continuations = HashMap::with_capacity(1 << 13);
        let mut longest_piece = 1;
        for (id, piece) in (0..).zip(vocabulary.lines()) {
            let (map, piece) = match piece.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => (&mut continuations, rest),
                _ => (&mut starts, piece),
            };
            longest_piece = longest_piece.max(piece.chars().count());
            map.insert(piece.into(), id);
        }
        let special = |name: &str| {
            starts.get(name).copied().ok_or(ModelFileError::Container("its vocabulary lacks a special token"))
        };
        let (unknown, opening, closing) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        Ok(Self { starts, continuations, longest_piece, unknown, opening, closing, limit, lower_case })
    }

    /// The ids of a text, with the opening and the closing token, limited to what the model accepts.
    ///
    /// Reading stops as soon as the limit is reached, so a text of many megabytes costs no more than a page.
    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        let mut pieces = Pieces { of: self, ids: vec![self.opening], word: PieceWord::default() };
        for character in text.chars() {
            if pieces.full() {
                break;
            }
            self.read(character, &mut pieces);
        }
        pieces.end_word();
        let mut ids = pieces.ids;
        ids.truncate(self.limit - 1);
        ids.push(self.closing);
        ids
    }

    /// Whether there is nothing between the opening and the closing token.
    pub(crate) fn is_blank(ids: &[u32]) -> bool {
        ids.len() <= 2
    }

    fn read(&self, character: char, pieces: &mut Pieces<'_>) {
        if character.is_ascii_alphanumeric() {
            let cased = if self.lower_case { character.to_ascii_lowercase() } else { character };
            pieces.word.push(cased);
        } else if is_space(character) {
            pieces.end_word();
        } else if is_ideograph(character) {
            pieces.end_word();
            self.read_folded(character, pieces);
            pieces.end_word();
        } else if !is_dropped(character) {
            self.read_folded(character, pieces);
        }
    }

    fn read_folded(&self, character: char, pieces: &mut Pieces<'_>) {
        if !self.lower_case {
            return pieces.push(character);
        }
        decompose_canonical(character, |part| {
            if part.is_ascii() || part.general_category() != GeneralCategory::NonspacingMark {
                part.to_lowercase().for_each(|lower| pieces.push(lower));
            }
        });
    }

    fn cut(&self, word: &str, ids: &mut Vec<u32>) {
        let before = ids.len();
        let mut rest = word;
        while !rest.is_empty() {
            let map = if rest.len() == word.len() { &self.starts } else { &self.continuations };
            let ends = rest.char_indices().map(|(at, character)| at + character.len_utf8());
            let mut longest = None;
            for end in ends.take(self.longest_piece) {
                if let Some(id) = map.get(&rest[..end]) {
                    longest = Some((*id, end));
                }
            }
            let Some((id, end)) = longest else {
                ids.truncate(before);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            rest = &rest[end..];
        }
    }
}

struct Pieces<'a> {
    of: &'a WordPiece,
    ids: Vec<u32>,
    word: PieceWord,
}

#[derive(Default)]
struct PieceWord {
    text: String,
    characters: usize,
}

impl PieceWord {
    fn push(&mut self, character: char) {
        self.characters += 1;
        if self.characters <= LONGEST_WORD {
            self.text.push(character);
        }
    }
}

impl Pieces<'_> {
    fn full(&self) -> bool {
        self.ids.len() >= self.of.limit
    }

    fn push(&mut self, character: char) {
        if character.is_whitespace() {
            self.end_word();
        } else if is_punctuation(character) {
            self.end_word();
            self.word.push(character);
            self.end_word();
        } else {
            self.word.push(character);
        }
    }

    fn end_word(&mut self) {
        match self.word.characters {
            0 => return,
            1..=LONGEST_WORD => self.of.cut(&self.word.text, &mut self.ids),
            _ => self.ids.push(self.of.unknown),
        }
        self.word.text.clear();
        self.word.characters = 0;
    }
}

/// Only these three control characters separate words; the others are dropped, even a form feed.
fn is_space(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r') || character.is_whitespace() && !character.is_control()
}

fn is_dropped(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    character == '\u{fffd}'
        || matches!(
            character.general_category(),
            GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::PrivateUse
        )
}

fn is_punctuation(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_punctuation();
    }
    character.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The blocks that the published tokeniser separates: Han ideographs, not Kana or Hangul.
fn is_ideograph(character: char) -> bool {
    matches!(
        u32::from(character),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x2_0000..=0x2_A6DF
            | 0x2_A700..=0x2_B73F
            | 0x2_B740..=0x2_B81F
            | 0x2_B920..=0x2_CEAF
            | 0xF900..=0xFAFF
            | 0x2_F800..=0x2_FA1F
    )
}

#[cfg(test)]
mod tests {
    use super::WordPiece;

    fn tiny(limit: usize) -> WordPiece {
        let vocabulary = "[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\naffable\n-\n##\n\u{4e2d}\na\n##a";
        WordPiece::new(vocabulary, limit, true).expect("valid")
    }

    #[test]
    fn takes_the_longest_piece_first() {
        assert_eq!(tiny(16).encode("UN\u{e0}ffable-affable \u{4e2d}\u{4e2d}"), [1, 3, 4, 5, 7, 6, 9, 9, 2]);
    }

    #[test]
    fn what_cannot_be_cut_is_one_unknown_piece() {
        assert_eq!(tiny(16).encode("unx un"), [1, 0, 3, 2]);
        assert_eq!(tiny(300).encode(&"a".repeat(100)).len(), 102);
        assert_eq!(tiny(300).encode(&"a".repeat(101)), [1, 0, 2]);
    }

    #[test]
    fn stops_at_the_limit() {
        assert_eq!(tiny(4).encode(&"un ".repeat(4_000_000)), [1, 3, 3, 2]);
    }

    #[test]
    fn blank_is_what_has_no_pieces() {
        for text in ["", " \n\t", "\0\u{200b}\u{fffd}", "\u{301}"] {
            assert!(WordPiece::is_blank(&tiny(8).encode(text)), "{text:?}");
        }
        assert!(!WordPiece::is_blank(&tiny(8).encode("\u{1f600}")));
    }
}
