//! Finds secrets in text.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::assigned_values::{ASSIGNED, has_digit, is_no_placeholder, mixes_digits_and_cases};
use super::vendor_tokens::find_vendor_tokens;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    pub kind: SecretKind,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecretKind {
    /// A token, key or password in a vendor's format, with its name, such as `GitHub token`.
    Vendor(&'static str),
    PrivateKey,
    Jwt,
    /// A password as a server stores it, such as bcrypt's.
    PasswordHash,
    UrlPassword,
    /// A value that is assigned to a name like `password` and looks random.
    Password,
}

impl fmt::Display for SecretKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Vendor(name) => name,
            Self::PrivateKey => "private key",
            Self::Jwt => "JSON web token",
            Self::PasswordHash => "password hash",
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
    let tokens = find_vendor_tokens(text).into_iter().filter(|(_, range)| is_no_sample(&text[range.clone()]));
    let tokens = tokens.map(|(name, range)| FoundSecret { kind: SecretKind::Vendor(name), range });
    merged(tokens.chain(RULES.iter().flat_map(|rule| rule.find(text))).collect())
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
    check: SecretCheck,
}

/// A further condition for a match (for its first group, if it has one).
pub(super) type SecretCheck = fn(&str) -> bool;

impl Rule {
    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = FoundSecret> + 'a {
        self.pattern.captures_iter(text).filter_map(|captures| {
            let found = captures.get(1).or_else(|| captures.get(0))?;
            (self.check)(found.as_str()).then(|| FoundSecret { kind: self.kind, range: found.range() })
        })
    }
}

/// The formats that are more than a prefix and an alphabet.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let anything: SecretCheck = |_| true;
    let vendor = SecretKind::Vendor;
    let table: [(SecretKind, &str, SecretCheck); 30] = [
        (vendor("AWS key"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", is_no_sample),
        (vendor("AWS key"), r#"(?i)aws_?secret_?(?:access_?)?key["']?\s*[:=]\s*["']?([a-z0-9/+]{40})\b"#, is_no_sample),
        (
            SecretKind::PrivateKey,
            r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
            holds_key_material,
        ),
        (SecretKind::PrivateKey, r"\bPrivate-Lines: [0-9]+\r?\n([A-Za-z0-9+/=\r\n]{40,})", holds_key_material),
        // The same in base64, as in Kubernetes.
        (
            SecretKind::PrivateKey,
            r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{0,20}(?:UFJJVkFURSBLRVkt|BSSVZBVEUgS0VZL|QUklWQVRFIEtFWS)[A-Za-z0-9+/=]{40,}",
            anything,
        ),
        (
            vendor("Slack webhook"),
            r"\bhooks\.slack\.com/(?:services/T[A-Za-z0-9]+/B[A-Za-z0-9]+|(?:workflows|triggers)/[A-Za-z0-9]+/[A-Za-z0-9]+(?:/[0-9]+)?)/[A-Za-z0-9]{16,}",
            has_digit,
        ),
        (
            vendor("Discord webhook"),
            r"\bdiscord(?:app)?\.com/api/webhooks/[0-9]{16,22}/[A-Za-z0-9_-]{40,100}",
            anything,
        ),
        (
            vendor("Discord token"),
            r"\b[MNO][ADQTgjwz][A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
            mixes_digits_and_cases,
        ),
        (
            vendor("Microsoft Teams webhook"),
            r"\b[a-z0-9-]+\.webhook\.office\.com/webhookb2/[a-z0-9@-]{73}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9-]{36}",
            anything,
        ),
        (vendor("Telegram token"), r"\b[0-9]{8,10}:[A-Za-z0-9_-]{35}\b", mixes_digits_and_cases),
        (vendor("Mailchimp key"), r"\b[0-9a-f]{32}-us[0-9]{1,2}\b", anything),
        (vendor("Mailgun key"), r"\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b", anything),
        (vendor("Terraform token"), r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", anything),
        (vendor("New Relic key"), r"\b[0-9a-f]{36}NRAL\b", anything),
        (vendor("MaxMind key"), r"\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b", anything),
        (vendor("RapidAPI key"), r"\b[A-Za-z0-9]{10}msh[A-Za-z0-9]{15}p1[A-Za-z0-9]{6}jsn[A-Za-z0-9]{12}\b", anything),
        (vendor("Firebase key"), r"\bAAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{140}", anything),
        (vendor("Zoho token"), r"\b1000\.[a-f0-9]{32}\.[a-f0-9]{32}\b", anything),
        (vendor("Mapbox token"), r"\bsk\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{22}", anything),
        (vendor("Asana token"), r"\b[12]/[0-9]{16}(?:/[0-9]{16})?:[a-f0-9]{32}\b", anything),
        (vendor("Salesforce token"), r"\b00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{80,260}", anything),
        (
            vendor("Azure client secret"),
            r"(?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})",
            mixes_digits_and_cases,
        ),
        (
            vendor("Azure key"),
            r"\b(?:AccountKey|SharedAccessKey)\s*=\s*([A-Za-z0-9+/]{43,86}={1,2})",
            mixes_digits_and_cases,
        ),
        (
            vendor("Azure key"),
            r"\b[A-Za-z0-9+/]{33,76}(?:\+ASt|\+ABa|\+AMC|\+AIo|\+ASb|\+AEh|\+ARm|\+ACR|ACDb|APIM|AzCa|AzSe|AzFu)[A-Za-z0-9+/]{5,12}={1,2}",
            mixes_digits_and_cases,
        ),
        (vendor("Azure key"), r"\b[A-Za-z0-9]{52}JQQJ9(?:9|D|H)[A-Za-z0-9]{26}\b", mixes_digits_and_cases),
        // A signature of a shared address: version, permissions and expiry stand before it.
        (
            vendor("Azure signature"),
            r#"[?&]s[vep][a-z]?=(?:[^\s"'<>]*&)sig=([A-Za-z0-9%+/=_-]{43,63})"#,
            mixes_digits_and_cases,
        ),
        (
            SecretKind::PasswordHash,
            r"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}|(?:apr)?1\$[./A-Za-z0-9]{4,8}\$[./A-Za-z0-9]{22}|5\$[^$\s:]{8,32}\$[./A-Za-z0-9]{43}|6\$[^$\s:]{8,32}\$[./A-Za-z0-9]{86}|y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}|argon2(?:id|i|d)\$v=[0-9]+\$[^\s$]+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{22,})",
            anything,
        ),
        // How Firefox stores a name or a password.
        (
            SecretKind::PasswordHash,
            r"\bM[A-Za-z0-9]{2}EEPgAAAAAAAAAAAAAAAAAAAEwFAYIKoZIhvcNAwcE[A-Za-z0-9+/]{16,}={0,2}",
            anything,
        ),
        (SecretKind::Jwt, r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}", anything),
        (SecretKind::UrlPassword, r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:([^\s/:@]{8,})@", is_no_placeholder),
    ];
    let assigned = ASSIGNED.map(|(pattern, check)| (SecretKind::Password, pattern, check));
    table
        .into_iter()
        .chain(assigned)
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

#[cfg(test)]
pub(crate) mod samples {
    use super::SecretKind;

    /// The samples are built at run time, so that no scanner reports this file as a leak.
    pub(crate) fn secrets() -> Vec<(SecretKind, String)> {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        vec![
            (SecretKind::Vendor("GitHub token"), format!("ghp_{body}")),
            (SecretKind::Vendor("GitHub token"), format!("gho_{body}")),
            (SecretKind::Vendor("GitHub token"), format!("ghs_{body}")),
            (SecretKind::Vendor("GitHub token"), format!("github_pat_11ABCDEFG0{body}_{body}")),
            (SecretKind::Vendor("GitLab token"), format!("glpat-{}", &body[..20])),
            (SecretKind::Vendor("AWS key"), format!("AKIA{}", "J7Q2ZLM4N8PXR5TV")),
            (
                SecretKind::PrivateKey,
                format!("-----BEGIN RSA PRIVATE KEY-----\n{body}{body}\n-----END RSA PRIVATE KEY-----"),
            ),
            (SecretKind::PrivateKey, format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}{body}\ncut off")),
            (SecretKind::Vendor("Slack token"), format!("xoxb-{}-{body}", "123456789012")),
            (SecretKind::Vendor("Stripe key"), format!("sk_live_{body}")),
            (SecretKind::Vendor("Anthropic key"), format!("sk-ant-api03-{body}")),
            (SecretKind::Vendor("OpenAI key"), format!("sk-proj-{body}{body}")),
            (SecretKind::Vendor("OpenAI key"), format!("sk-{body}")),
            (SecretKind::Vendor("Google key"), format!("AIza{}", &body[..35])),
            (SecretKind::Vendor("npm token"), format!("npm_{body}")),
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
