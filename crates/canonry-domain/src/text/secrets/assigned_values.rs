//! Recognizes passwords by the name that they are assigned to and by how random they look.

use super::scan::SecretCheck;

/// Values behind a telling name: one that looks random, or, behind a name that means a key or a token and nothing else,
/// one in hexadecimal. A commit is called `token` by a parser, but nobody calls it `api_key`.
pub(super) const ASSIGNED: [(&str, SecretCheck); 4] = [
    (
        r#"(?i)\b[a-z0-9_.-]*(?:password|passwd|passphrase|pwd|secret|token|(?:api|access|private|secret|auth|account|master|signing|encryption|storage)[_-]?key(?:_base)?)["']?\s*(?:=>|:=|[:=])\s*["']?([^\s"'`,;<>(){}\[\]]{12,200})"#,
        looks_random,
    ),
    (
        r#"(?i)\b[a-z0-9_.-]*(?:(?:api|secret|access|auth|private)[_-]?key|secret_key_base|(?:api|access|auth|oauth|github|gitlab|bot)[_-]?token|(?:client|app)[_-]?secret)["']?\s*(?:=>|:=|[:=])\s*["']?([0-9a-f]{32,128})(?:["'\s,;]|$)"#,
        is_hexadecimal_key,
    ),
    (r"\bAPP_KEY=base64:([A-Za-z0-9+/]{43,44}=?)", mixes_digits_and_cases),
    (
        r#"(?i)\bauthorization["']?\s*[:=,]\s*["']?(?:bearer|basic|token)\s+([a-z0-9+/=._~-]{20,})"#,
        is_random_or_hexadecimal,
    ),
];

fn is_random_or_hexadecimal(text: &str) -> bool {
    looks_random(text) || is_hexadecimal_key(text)
}

/// Whether a text has the length of a random key in hexadecimal and is not a pattern.
fn is_hexadecimal_key(text: &str) -> bool {
    let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal
        && matches!(text.len(), 32 | 40 | 48 | 64 | 96 | 128)
        && has_digit(text)
        && bits_per_character(text) >= 3.0
}

pub(super) fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

pub(super) fn mixes_digits_and_cases(text: &str) -> bool {
    has_digit(text)
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
}

pub(super) fn is_no_placeholder(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = [
        "password",
        "passwd",
        "secret",
        "example",
        "changeme",
        "placeholder",
        "your",
        "xxxx",
        "****",
        "redacted",
        "${",
        "{{",
        "%s",
    ];
    !words.iter().any(|word| lower.contains(word))
}

/// Whether a text is random enough for a password: letters, digits and at least three kinds of characters, well spread
/// (3.3 bits per character separate random passwords of 12 and more characters from words with a number behind them).
fn looks_random(text: &str) -> bool {
    let kinds = [
        text.bytes().any(|byte| byte.is_ascii_lowercase()),
        text.bytes().any(|byte| byte.is_ascii_uppercase()),
        has_digit(text),
        text.bytes().any(|byte| byte.is_ascii_punctuation()),
    ];
    has_digit(text)
        && kinds.iter().filter(|present| **present).count() >= 3
        && is_no_placeholder(text)
        && !is_hash_or_uuid(text)
        && !is_code_path(text)
        && bits_per_character(text) >= 3.3
}

fn is_hash_or_uuid(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b':'))
        || text.starts_with("sha256-")
        || text.starts_with("sha512-")
        || text.starts_with("sha256:")
}

/// `self.config.Password1`, `Some::Path2`, `/etc/secret1/File`: a path, not a value.
fn is_code_path(text: &str) -> bool {
    let parts: Vec<&str> =
        text.split(['.', ':', '/', '-', '_', '$', '\\', '@']).filter(|part| !part.is_empty()).collect();
    parts.len() >= 2
        && parts.iter().all(|part| {
            let word = part.trim_end_matches(|character: char| character.is_ascii_digit());
            word.chars().all(char::is_alphabetic) && part.len() - word.len() <= 4
        })
}

fn bits_per_character(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum()
}
