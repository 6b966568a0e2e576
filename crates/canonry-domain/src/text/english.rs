//! Decides whether a text is likely to be English.

use crate::text::fences::{FenceLine, FenceReader};

/// The number of letters of prose that are read: about 50 words, enough to meet the words that every sentence has. A
/// plan reads the texts of thousands of items.
const ENOUGH_LETTERS: usize = 240;
/// A text with this many words and no frequent English word is hardly English.
const ENOUGH_WORDS: usize = 30;
/// Bytes of a body that are searched for prose; logs and dumps come after the prose.
const SEARCHED: usize = 4_000;

/// Whether people who read English are likely to understand an item.
///
/// Code, quotes, headings and addresses do not count. A text that is too short, or that is all code, counts as
/// English: the answer ranks items, and a text in no language must not rank below a foreign one.
///
/// The function words of sentences decide. A detector by letter trigrams was tried too: it classified 155 of 9,000
/// reports as foreign, and the 59 of them that were checked were short English texts such as "Remove old closure type
/// syntax". This method classifies 20 as foreign, and half of them are.
pub fn likely_english(title: &str, body: &str) -> bool {
    let prose = Prose::of(title, body);
    // A Han or Hangul character contains about as much information as three Latin letters.
    if prose.other_letters * 3 > prose.latin_letters {
        return false;
    }
    // One name with an accent proves nothing, and an English sentence may contain several.
    let is_foreign = prose.foreign_words >= 2 && prose.foreign_words > 2 * prose.english_words;
    let is_unknown = prose.words >= ENOUGH_WORDS && prose.english_words == 0;
    !is_foreign && !is_unknown
}

/// Frequent English words that are not words of other languages. "in", "is", "to" and "on" are, so they are missing.
const ENGLISH_WORDS: [&str; 46] = [
    "about", "after", "and", "are", "because", "been", "before", "but", "by", "can", "cannot", "could", "does",
    "doesn't", "don't", "every", "from", "have", "if", "instead", "into", "isn't", "it", "it's", "not", "of", "only",
    "should", "still", "than", "that", "the", "there", "they", "this", "using", "when", "where", "which", "while",
    "why", "will", "with", "without", "would", "you",
];

/// Frequent words of other languages in Latin script. Words that are also English, or that occur in code, are missing:
/// "die", "con", "bin". Words with an accent need no list.
const FOREIGN_WORDS: [&str; 127] = [
    "ainda", "al", "alguien", "alors", "ao", "att", "au", "auf", "aus", "aussi", "avec", "bei", "beim", "bij", "bir",
    "cela", "cette", "che", "como", "cuando", "dans", "das", "dat", "della", "dengan", "depois", "der", "desde", "det",
    "di", "dla", "du", "egy", "ein", "eine", "einem", "einen", "einer", "el", "est", "esta", "este", "estoy", "et",
    "funciona", "geht", "gibt", "gli", "haben", "hace", "hay", "het", "hogy", "ich", "il", "ini", "inte", "ist", "jak",
    "jest", "jsou", "kann", "kein", "keine", "ketika", "kiedy", "la", "las", "le", "les", "los", "lub", "maar", "mais",
    "mit", "nach", "nel", "nelze", "nem", "nicht", "nie", "niet", "och", "oder", "ohne", "olarak", "para", "pas",
    "pero", "por", "przy", "quand", "quando", "quanto", "que", "qui", "saat", "se", "sehr", "sich", "sobre", "sono",
    "sont", "tambien", "tidak", "toujours", "tras", "tylko", "uma", "un", "una", "und", "une", "untuk", "vom", "von",
    "voor", "wenn", "wie", "wird", "worden", "wordt", "wurde", "yang", "zu", "zum", "zur",
];

/// The counts of the words that a person wrote for people.
#[derive(Default)]
struct Prose {
    words: usize,
    english_words: usize,
    foreign_words: usize,
    latin_letters: usize,
    other_letters: usize,
}

impl Prose {
    fn of(title: &str, body: &str) -> Self {
        let mut prose = Self::default();
        prose.read_line(title);
        let mut fences = FenceReader::default();
        for line in body[..body.floor_char_boundary(SEARCHED)].lines() {
            let start = line.trim_start();
            // Headings come from the template, quotes and comments from others.
            let is_own = !start.starts_with(['>', '#', '|']) && !start.starts_with("<!--");
            if fences.read(line) == FenceLine::Outside && is_own {
                prose.read_line(line);
            }
            if prose.is_enough() {
                break;
            }
        }
        prose
    }

    fn is_enough(&self) -> bool {
        let is_english = self.english_words >= 4 && self.foreign_words + self.other_letters == 0;
        let is_foreign = self.foreign_words >= 4 && self.english_words == 0;
        is_english || is_foreign || self.latin_letters + self.other_letters >= ENOUGH_LETTERS
    }

    fn read_line(&mut self, line: &str) {
        for (index, part) in line.split('`').enumerate() {
            // Odd parts are between backticks.
            if index % 2 == 1 {
                continue;
            }
            for word in part.split_whitespace() {
                if self.is_enough() {
                    return;
                }
                self.read_word(word);
            }
        }
    }

    /// Counts a word, unless it is an identifier, a path, an address, a number or a version.
    fn read_word(&mut self, word: &str) {
        let word = word.trim_matches(|character: char| !character.is_alphanumeric());
        let (mut latin, mut accented, mut other, mut is_code, mut after_lower) = (0, 0, 0, false, false);
        for character in word.chars() {
            let is_upper = character.is_uppercase();
            // `getItem` and `HttpClient` are code, `Crash` and `HTTP` are words.
            is_code |= after_lower && is_upper;
            after_lower = character.is_lowercase();
            if character.is_ascii_alphabetic() {
                latin += 1;
            } else if character.is_alphabetic() {
                // Latin letters are up to U+024F, and from U+1E00 to U+1EFF.
                let is_latin = character <= '\u{24f}' || ('\u{1e00}'..='\u{1eff}').contains(&character);
                let count = if is_latin { &mut accented } else { &mut other };
                *count += 1;
            } else {
                is_code |= !matches!(character, '\'' | '’' | '-');
            }
        }
        // In scripts without spaces a "word" is a whole sentence with its punctuation.
        if latin + accented + other == 0 || is_code && other == 0 {
            return;
        }
        self.latin_letters += latin + accented;
        self.other_letters += other;
        self.words += 1;
        let lower = word.to_lowercase().replace('’', "'");
        if ENGLISH_WORDS.binary_search(&lower.as_str()).is_ok() {
            self.english_words += 1;
        } else if accented > 0 || FOREIGN_WORDS.binary_search(&lower.as_str()).is_ok() {
            self.foreign_words += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{ENGLISH_WORDS, FOREIGN_WORDS, likely_english};

    #[test]
    fn the_words_are_sorted() {
        assert!(ENGLISH_WORDS.is_sorted() && FOREIGN_WORDS.is_sorted());
        assert!(ENGLISH_WORDS.iter().all(|word| FOREIGN_WORDS.binary_search(word).is_err()));
    }

    #[test]
    fn english() {
        for (title, body) in [
            ("Exec approvals still required despite ask=off", "Setting ask to off should skip the approval."),
            ("Crash opening settings panel", ""),
            ("App crashes on startup", "Steps:\n1. Open the app\n2. Crash"),
            ("Telegram messages arrive out of order", ""),
            ("ICE", ""),
            ("", ""),
            ("panic in parser", "```\nthread 'main' panicked at 'índice fuera de rango para la función'\n```"),
            ("Login fails", "> La aplicación se cierra cuando abro el archivo de configuración\n\nSame here."),
            ("`überladen` is missing", "~~~\nfn main() { let straße = größe::neu(); }\n~~~"),
            ("Add dark mode toggle to user preferences dialog", ""),
            ("Wrong rendering of 中文 in the file tree", "Names of files with Chinese characters are cut."),
            ("Memory leak", "Heap grows, restart needed every two hours, version 1.2.3, Ubuntu, Firefox"),
        ] {
            assert!(likely_english(title, body), "{title}");
        }
    }

    #[test]
    fn other_languages() {
        for (title, body) in [
            ("La aplicación se cierra al abrir archivos", ""),
            ("Error al iniciar sesión", "Cuando intento iniciar sesión la aplicación se bloquea y no responde."),
            ("O aplicativo fecha sozinho quando abro as configurações", ""),
            ("L'application se ferme quand j'ouvre les paramètres", "Impossible de modifier la configuration."),
            ("Anwendung stürzt beim Öffnen der Einstellungen ab", "Nach dem letzten Update startet nichts mehr."),
            ("Приложение падает при запуске", ""),
            ("アプリが起動時にクラッシュする", ""),
            ("使用 WebSocket 连接时出现超时错误", "升级到最新版本之后，每次连接都会超时。"),
            ("설정을 열면 앱이 종료됩니다", ""),
            ("Bug", "### Describe the bug\n\nLa aplicación no funciona después de la actualización, se cierra sola."),
        ] {
            assert!(!likely_english(title, body), "{title}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_never_wavers(title in any::<String>(), body in any::<String>()) {
            prop_assert_eq!(likely_english(&title, &body), likely_english(&title, &body));
        }
    }
}
