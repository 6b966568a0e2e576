//! Finds committed credentials.

use std::collections::BTreeMap;

use canonry_domain::review::{Category, LEAKED_CREDENTIAL_RULE, LineRange, Severity};
use canonry_domain::{SecretKind, scan_secrets};

use super::reading::{BuiltinRule, ReadFile, Remark};
use super::url_passwords::opens_nothing;

pub(super) const RULE: BuiltinRule = BuiltinRule { id: LEAKED_CREDENTIAL_RULE, check };

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().flat_map(credentials).collect()
}

/// One remark per line; it never contains any part of the secret.
pub(super) fn credentials(file: &ReadFile<'_>) -> Vec<Remark> {
    if is_lock_file(file.path().file_name()) {
        return Vec::new();
    }
    let mut found: BTreeMap<u32, SecretKind> = BTreeMap::new();
    for block in blocks(&file.change.added) {
        let text: String = block.iter().map(|(_, line)| format!("{line}\n")).collect();
        for secret in scan_secrets(&text) {
            let value = &text[secret.range.clone()];
            let at = text[..secret.range.start].matches('\n').count();
            let Some((line, _)) = block.get(at) else { continue };
            let is_harmless = secret.kind == SecretKind::UrlPassword && opens_nothing(&text, &secret.range);
            if is_made_up(value) || is_harmless || !is_told(file, *line, secret.kind) {
                continue;
            }
            let told = found.entry(*line).or_insert(secret.kind);
            if severity(file, *told) < severity(file, secret.kind) {
                *told = secret.kind;
            }
        }
    }
    let remark = |(line, kind): (u32, SecretKind)| Remark {
        path: file.path().clone(),
        lines: LineRange::new(line, line),
        title: "A credential is committed",
        message: format!(
            "This looks like {} {kind}. Whoever can read the repository can use it, also after it is removed: revoke it, \
             and read the new one from the environment or a secret store.",
            article(kind)
        ),
        severity: severity(file, kind),
        category: Category::Security,
    };
    found.into_iter().map(remark).collect()
}

/// None of these kinds is certain enough for critical, which no setting can switch off: Google keys are in every web
/// page that shows a map, many tokens have expired when they are committed, the host of a URL may be unreachable, and
/// any word can follow `password=`.
fn severity(file: &ReadFile<'_>, kind: SecretKind) -> Severity {
    match kind {
        SecretKind::GoogleKey | SecretKind::Jwt | SecretKind::UrlPassword | SecretKind::Password => Severity::Major,
        _ if file.place.is_test || file.place.is_sample => Severity::Major,
        _ => Severity::Critical,
    }
}

fn article(kind: SecretKind) -> &'static str {
    match kind {
        SecretKind::AwsKey | SecretKind::AnthropicKey | SecretKind::OpenAiKey => "an",
        _ => "a",
    }
}

/// Groups consecutive lines: a private key has several.
fn blocks(added: &[(u32, String)]) -> impl Iterator<Item = &[(u32, String)]> {
    added.chunk_by(|(one, _), (next, _)| *next == one + 1)
}

/// Whether a credential is reported. Keys and passwords in tests and examples are there to be seen; a token of a known
/// service is not.
fn is_told(file: &ReadFile<'_>, line: u32, kind: SecretKind) -> bool {
    let for_show = file.place.is_test || file.place.is_sample || is_rust_test(file, line);
    match kind {
        SecretKind::PrivateKey | SecretKind::Jwt | SecretKind::UrlPassword | SecretKind::Password => !for_show,
        _ => true,
    }
}

/// Whether a line is in the test module at the end of a Rust file.
fn is_rust_test(file: &ReadFile<'_>, line: u32) -> bool {
    let begins = || file.text?.lines().position(|line| line.starts_with("#[cfg(test)]"));
    file.path().as_str().ends_with(".rs") && begins().is_some_and(|begin| line as usize > begin)
}

/// Whether a value is a placeholder: one character repeated, the alphabet, or a word that says so.
fn is_made_up(value: &str) -> bool {
    let lower = value.to_lowercase();
    let words = [
        "example",
        "xxxx",
        "0000",
        "dummy",
        "fake",
        "placeholder",
        "redacted",
        "1234567890",
        "abcdefgh",
        "deadbeef",
        "sample",
        "test_key",
        "your",
        // 1234567890 in base64, as in the well-known example token.
        "xmjm0nty3odkw",
    ];
    let longest_run = lower.as_bytes().chunk_by(|one, next| one == next).map(<[u8]>::len).max().unwrap_or(0);
    longest_run >= 6 || words.iter().any(|word| lower.contains(word))
}

fn is_lock_file(name: &str) -> bool {
    name.ends_with(".lock")
        || name.ends_with("-lock.json")
        || name.ends_with("-lock.yaml")
        || matches!(name, "go.sum" | "Package.resolved")
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::Severity;

    use super::super::reading::tests::{flagged, new_file};
    use super::super::reading::{FileToRead, ReadFile};
    use super::RULE;

    /// Built at run time, so that no scanner takes this file for a leak.
    fn token() -> String {
        ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
    }

    fn key() -> String {
        let body = "MIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi";
        format!("-----BEGIN RSA {}-----\n{body}{body}\n-----END RSA {}-----\n", "PRIVATE KEY", "PRIVATE KEY")
    }

    #[test]
    fn what_is_a_credential() {
        let (token, key) = (token(), key());
        let aws = ["AKIA", "J7Q2ZLM4N8PXR5TV"].concat();
        let password = ["hJ7", "kQ9", "zR2", "!mX4"].concat();
        for (path, text, expected) in [
            ("src/a.js", format!("// x\nconst t = '{token}';\n"), vec![2]),
            ("deploy.yml", format!("a: 1\nkey: {aws}\nb: {aws}\n"), vec![2, 3]),
            ("id_rsa", key.clone(), vec![1]),
            ("src/settings.py", format!("DB_PASSWORD = '{password}'\n"), vec![1]),
            ("tests/a.py", format!("token = '{token}'\n"), vec![1]),
            // A change cannot allow its own leak.
            ("src/a.js", format!("t = '{token}' // gitleaks:allow\n"), vec![1]),
            // Not reported: placeholders, examples, allowed values, hashes.
            ("tests/key.pem", key, vec![]),
            ("docs/guide.md", format!("DB_PASSWORD = '{password}'\n"), vec![]),
            ("src/a.rs", format!("DB_PASSWORD = '{password}'\n#[cfg(test)]\nDB_PASSWORD = '{password}'\n"), vec![1]),
            (".env.example", format!("DB_PASSWORD={password}\n"), vec![]),
            ("src/a.js", format!("t = '{}'\n", ["ghp_", &"x".repeat(36)].concat()), vec![]),
            ("src/a.js", format!("t = '{}'\n", ["ghp_", "abcdefghijklmnopqrstuvwxyz1234567890"].concat()), vec![]),
            ("src/a.js", "const token = process.env.GITHUB_TOKEN;\n".to_owned(), vec![]),
            ("src/a.js", "password: hashPassword2(user.Password1)\n".to_owned(), vec![]),
            ("package-lock.json", format!("\"x\": \"{token}\"\n"), vec![]),
            ("a.yml", "uses: a/b@4b825dc642cb6eb9a060e54bf8d69288fbee4904\n".to_owned(), vec![]),
        ] {
            assert_eq!(flagged(&RULE, path, &text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn what_is_not_sure_is_not_critical() {
        let password = ["hJ7", "kQ9", "zR2", "!mX4"].concat();
        let body = "q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8";
        let google = ["AI", "za", &body[..35]].concat();
        let web = ["ey", "J", &body[..20], ".ey", "J", &body[..20], ".", body].concat();
        let aws = ["AKIA", "J7Q2ZLM4N8PXR5TV"].concat();
        let known = ["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0NTY3ODkwIn0", ".", body].concat();
        for (line, expected) in [
            (format!("const map = '{google}';"), Some((Severity::Major, "a Google key"))),
            (format!("const session = '{web}';"), Some((Severity::Major, "a JSON web token"))),
            (
                format!("url = 'postgres://app:{password}@db.acme.dev/x'"),
                Some((Severity::Major, "a password in a URL")),
            ),
            (format!("DB_PASSWORD = '{password}'"), Some((Severity::Major, "a password"))),
            (format!("key = '{aws}'"), Some((Severity::Critical, "an AWS key"))),
            (format!("both = '{google} {aws}'"), Some((Severity::Critical, "an AWS key"))),
            (format!("const session = '{known}';"), None),
            (format!("url = 'postgres://app:{password}@localhost:5432/x'"), None),
            (format!("url = 'amqp://app:{password}@rabbit/x'"), None),
            ("url = 'postgres://postgres:postgres@db.acme.dev/x'".to_owned(), None),
            ("url = 'amqp://app:rabbitmq123@mq.acme.dev'".to_owned(), None),
        ] {
            let change = new_file("src/a.js", &line);
            let found = (RULE.check)(&[ReadFile::of(FileToRead { change: &change, text: Some(&line), bytes: None })]);
            let seen = found.first().map(|one| (one.severity, one.message.as_str()));
            match (seen, expected) {
                (Some((severity, message)), Some((expected, words))) => {
                    assert_eq!(severity, expected, "{line}");
                    assert!(message.starts_with(&format!("This looks like {words}. ")), "{line}: {message}");
                }
                (seen, expected) => assert_eq!(seen, expected, "{line}"),
            }
        }
    }

    #[test]
    fn the_secret_is_never_repeated() {
        let text = format!("t = '{}'\n", token());
        for (path, severity) in [("a.js", Severity::Critical), ("a.test.js", Severity::Major)] {
            let change = new_file(path, &text);
            let file = FileToRead { change: &change, text: Some(&text), bytes: None };
            let found = (RULE.check)(&[ReadFile::of(file)]);
            assert_eq!(found[0].severity, severity);
            assert!(!found[0].message.contains(&token()[4..]) && found[0].message.contains("GitHub token"));
        }
    }
}
