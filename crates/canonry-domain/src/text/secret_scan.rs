//! Finds secrets in text.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    pub kind: SecretKind,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecretKind {
    GitHubToken,
    GitLabToken,
    /// An AWS access key, or the secret that belongs to it.
    AwsKey,
    PrivateKey,
    SlackToken,
    StripeKey,
    AnthropicKey,
    OpenAiKey,
    GoogleKey,
    PackageToken,
    Jwt,
    UrlPassword,
    /// A value that is assigned to a name like `password` and looks random.
    Password,
}

impl fmt::Display for SecretKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::GitHubToken => "GitHub token",
            Self::GitLabToken => "GitLab token",
            Self::AwsKey => "AWS key",
            Self::PrivateKey => "private key",
            Self::SlackToken => "Slack token",
            Self::StripeKey => "Stripe key",
            Self::AnthropicKey => "Anthropic key",
            Self::OpenAiKey => "OpenAI key",
            Self::GoogleKey => "Google key",
            Self::PackageToken => "package token",
            Self::Jwt => "JSON web token",
            Self::UrlPassword => "password in a URL",
            Self::Password => "password",
        })
    }
}

/// The secrets in a text, in order and without overlaps.
///
/// Known formats are found anywhere. A password is found only behind a name like `password=` and only if it looks
/// random: commit hashes, UUIDs, variable names and the usual placeholders are ignored.
pub fn scan_secrets(text: &str) -> Vec<FoundSecret> {
    merged(RULES.iter().flat_map(|rule| rule.find(text)).collect())
}

/// Sorts the secrets and merges overlapping ones.
pub(crate) fn merged(mut found: Vec<FoundSecret>) -> Vec<FoundSecret> {
    found.sort_by_key(|finding| (finding.range.start, finding.kind));
    let mut apart: Vec<FoundSecret> = Vec::with_capacity(found.len());
    for finding in found {
        match apart.last_mut() {
            Some(last) if finding.range.start < last.range.end => {
                last.range.end = last.range.end.max(finding.range.end);
            }
            _ => apart.push(finding),
        }
    }
    apart
}

/// The text with every secret replaced by its kind in brackets.
pub fn redact(text: &str) -> String {
    redact_found(text, scan_secrets(text))
}

pub(crate) fn redact_found(text: &str, found: Vec<FoundSecret>) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut end = 0;
    for finding in found {
        redacted.push_str(&text[end..finding.range.start]);
        redacted.push_str(&format!("[redacted {}]", finding.kind));
        end = finding.range.end;
    }
    redacted.push_str(&text[end..]);
    redacted
}

struct Rule {
    kind: SecretKind,
    pattern: Regex,
    check: Check,
}

/// A further condition for a match (for its first group, if it has one).
type Check = fn(&str) -> bool;

impl Rule {
    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = FoundSecret> + 'a {
        self.pattern.captures_iter(text).filter_map(|captures| {
            let found = captures.get(1).or_else(|| captures.get(0))?;
            (self.check)(found.as_str()).then(|| FoundSecret { kind: self.kind, range: found.range() })
        })
    }
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let anything: Check = |_| true;
    let table: [(SecretKind, &str, Check); 15] = [
        (SecretKind::GitHubToken, r"\bgh[pousr]_[A-Za-z0-9][A-Za-z0-9_.-]{34,}[A-Za-z0-9]", anything),
        (SecretKind::GitHubToken, r"\bgithub_pat_[A-Za-z0-9_]{22,}", anything),
        (SecretKind::GitLabToken, r"\bglpat-[A-Za-z0-9_-]{20,}", anything),
        (SecretKind::AwsKey, r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", is_no_sample),
        (
            SecretKind::AwsKey,
            r#"(?i)aws_?secret_?(?:access_?)?key["']?\s*[:=]\s*["']?([a-z0-9/+]{40})\b"#,
            is_no_sample,
        ),
        (
            SecretKind::PrivateKey,
            r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
            holds_key_material,
        ),
        (SecretKind::SlackToken, r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{16,}", has_digit),
        (
            SecretKind::SlackToken,
            r"\bhooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,}",
            anything,
        ),
        (SecretKind::StripeKey, r"\b(?:sk|rk)_live_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/]{24,}", anything),
        (SecretKind::AnthropicKey, r"\bsk-ant-[A-Za-z0-9_-]{24,}", anything),
        (SecretKind::OpenAiKey, r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}", mixes_digits_and_cases),
        (SecretKind::GoogleKey, r"\bAIza[A-Za-z0-9_-]{35}", anything),
        (SecretKind::PackageToken, r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-AgEI[A-Za-z0-9_-]{40,}", anything),
        (SecretKind::Jwt, r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}", anything),
        (SecretKind::UrlPassword, r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:([^\s/:@]{8,})@", is_no_placeholder),
    ];
    let password = r#"(?i)\b[a-z0-9_.-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s*(?:=>|:=|[:=])\s*["']?([^\s"'`,;<>(){}\[\]]{12,200})"#;
    let table = table.into_iter().chain([(SecretKind::Password, password, looks_random as Check)]);
    table
        .map(|(kind, pattern, check)| Rule {
            kind,
            pattern: Regex::new(pattern).expect("invariant: a constant pattern"),
            check,
        })
        .collect()
});

/// AWS marks the sample keys in its documentation with this word.
fn is_no_sample(text: &str) -> bool {
    !text.to_ascii_uppercase().contains("EXAMPLE")
}

/// Error messages quote the first line of a key; only a real key has lines of base64.
fn holds_key_material(text: &str) -> bool {
    let mut run = 0;
    text.bytes().any(|byte| {
        run = if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=') { run + 1 } else { 0 };
        run >= 40
    })
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn mixes_digits_and_cases(text: &str) -> bool {
    has_digit(text)
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_no_placeholder(text: &str) -> bool {
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

#[cfg(test)]
pub(crate) mod samples {
    use super::SecretKind;

    /// The samples are built at run time, so that no scanner reports this file as a leak.
    pub(crate) fn secrets() -> Vec<(SecretKind, String)> {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        vec![
            (SecretKind::GitHubToken, format!("ghp_{body}")),
            (SecretKind::GitHubToken, format!("gho_{body}")),
            (SecretKind::GitHubToken, format!("ghs_{body}")),
            (SecretKind::GitHubToken, format!("github_pat_11ABCDEFG0{body}_{body}")),
            (SecretKind::GitLabToken, format!("glpat-{}", &body[..20])),
            (SecretKind::AwsKey, format!("AKIA{}", "J7Q2ZLM4N8PXR5TV")),
            (
                SecretKind::PrivateKey,
                format!("-----BEGIN RSA PRIVATE KEY-----\n{body}{body}\n-----END RSA PRIVATE KEY-----"),
            ),
            (SecretKind::PrivateKey, format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}{body}\ncut off")),
            (SecretKind::SlackToken, format!("xoxb-{}-{body}", "123456789012")),
            (SecretKind::StripeKey, format!("sk_live_{body}")),
            (SecretKind::AnthropicKey, format!("sk-ant-api03-{body}")),
            (SecretKind::OpenAiKey, format!("sk-proj-{body}{body}")),
            (SecretKind::OpenAiKey, format!("sk-{body}")),
            (SecretKind::GoogleKey, format!("AIza{}", &body[..35])),
            (SecretKind::PackageToken, format!("npm_{body}")),
            (SecretKind::Jwt, format!("eyJ{}.eyJ{}.{body}", &body[..20], &body[..20])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::samples::secrets;
    use super::{redact, scan_secrets};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn known_forms_are_found_wherever_they_stand() {
        for (kind, secret) in secrets() {
            for text in [secret.clone(), format!("before {secret}"), format!("x=\"{secret}\nafter")] {
                let found = scan_secrets(&text);
                assert_eq!(found.len(), 1, "{kind} in {text:?}: {found:?}");
                assert_eq!(found[0].kind, kind, "{text:?}");
                assert!(
                    text[found[0].range.clone()].contains(secret.trim_end_matches("cut off")),
                    "{text:?}: {found:?}"
                );
                assert!(!redact(&text).contains(&secret[..secret.len().min(24)]), "{}", redact(&text));
            }
        }
    }

    #[test]
    fn assigned_passwords_are_found() {
        let value = ["hJ7", "kQ9", "zR2", "!mX4"].concat();
        for text in [
            format!("password={value}"),
            format!("DB_PASSWORD: '{value}'"),
            format!(r#""api_key": "{value}""#),
            format!("client-secret => {value}"),
        ] {
            assert_eq!(
                scan_secrets(&text).iter().map(|finding| &text[finding.range.clone()]).collect::<Vec<_>>(),
                [value.as_str()],
                "{text}"
            );
        }
        let url = format!("postgres://app:{value}@db.example/x");
        assert_eq!(redact(&url), "postgres://app:[redacted password in a URL]@db.example/x");
    }

    #[test]
    fn what_is_no_secret_is_left_alone() {
        for text in [
            "fixed in 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "token=4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "request id 123e4567-e89b-12d3-a456-426614174000, token: 123e4567-e89b-12d3-a456-426614174000",
            "password=changeme12345A",
            "password = os.environ['DB_PASSWORD1']",
            "token: ${{ secrets.GITHUB_TOKEN }}",
            "token=self.config.AccessToken2",
            "secret=/etc/app/Secret1/file",
            "password=correcthorsebatterystaple",
            "the token: InvalidTokenException was thrown",
            "AKIAIOSFODNN7EXAMPLE",
            "expecting: -----BEGIN PRIVATE KEY-----",
            "ghp_short and sk-learn and sk-some-long-class-name-of-a-style-sheet",
            "integrity sha512-9Q3Zx0kP7wVb2nR5tYcJ1LmH8dGfS4aE6uWqKzXvBoNiTjCpMhDgFlRsAyUe==",
            "postgres://user:password@localhost/db",
            "https://github.com/a/b/issues/1",
            "",
        ] {
            assert_eq!(scan_secrets(text), [], "{text}");
            assert_eq!(redact(text), text);
        }
    }

    proptest! {
        #[test]
        fn redacting_is_done_after_once(text in any::<String>(), which in 0usize..16) {
            let secret = secrets().swap_remove(which).1;
            let redacted = redact(&format!("{text}\n{secret}\n{text}"));
            prop_assert!(!redacted.contains(&secret));
            prop_assert_eq!(redact(&redacted), redacted);
        }
    }
}
