//! Finds committed credentials.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use canonry_domain::review::{Category, LEAKED_CREDENTIAL_RULE, LineRange, Severity};
use canonry_domain::{SecretKind, has_valid_checksum, scan_secrets};

use super::credential_files::lines_with_secrets;
use super::reading::{BuiltinRule, ReadFile, Remark};
use super::syntax::Language;
use super::url_passwords::opens_nothing;

/// The checksums in lock files: what stands before one, and the length of its base64.
const CHECKSUMS: [(&str, usize); 5] = [("sha512-", 88), ("sha384-", 64), ("sha256-", 44), ("sha1-", 28), ("h1:", 44)];

pub(super) const RULE: BuiltinRule = BuiltinRule { id: LEAKED_CREDENTIAL_RULE, check };

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().flat_map(credentials).collect()
}

/// One remark per line; it never contains any part of the secret.
pub(super) fn credentials(file: &ReadFile<'_>) -> Vec<Remark> {
    let is_lock_file = is_lock_file(file.path().file_name());
    let for_show = file.place.is_test || file.place.is_sample;
    let mut found: BTreeMap<u32, CommittedCredential> = BTreeMap::new();
    let mut add = |line: u32, credential: CommittedCredential| {
        let known = found.entry(line).or_insert(credential);
        if known.severity(for_show) < credential.severity(for_show) {
            *known = credential;
        }
    };
    for block in blocks(&file.change.added) {
        let text: String = block.iter().map(|(_, line)| format!("{line}\n")).collect();
        let mut cursor = BlockCursor::default();
        for secret in scan_secrets(&text) {
            let value = &text[secret.range.clone()];
            if is_lock_file && is_in_checksum(text.as_bytes(), &secret.range) {
                continue;
            }
            cursor.advance(&text, secret.range.start);
            let Some((line, _)) = block.get(cursor.line) else { continue };
            let credential = CommittedCredential::new(secret.kind, value);
            let gives_access = match secret.kind {
                SecretKind::UrlPassword => !opens_nothing(&text, &secret.range),
                // Lock files are full of random values: there, only exact formats count.
                SecretKind::Password => !is_lock_file && (file.language.is_none() || cursor.is_in_quotes()),
                SecretKind::Jwt => is_web_token(value),
                SecretKind::PasswordHash => !is_in_comment(file, &text[cursor.begin..cursor.at]),
                _ => true,
            };
            if gives_access && !is_made_up(value) && is_told(file, *line, credential) {
                add(*line, credential);
            }
        }
    }
    if !for_show {
        let credential = CommittedCredential { kind: SecretKind::Password, certainty: CredentialCertainty::Probable };
        lines_with_secrets(file).for_each(|line| add(line, credential));
    }
    let remark = |(line, credential): (u32, CommittedCredential)| Remark {
        path: file.path().clone(),
        lines: LineRange::new(line, line),
        title: "A credential is committed",
        message: format!(
            "This looks like {} {}{}. Anybody who can read the repository can use this credential, even after a commit \
             removes it. Revoke it, and read the new credential from the environment or a secret store.",
            article(credential.kind),
            credential.kind,
            credential.certainty.in_words(),
        ),
        severity: credential.severity(for_show),
        category: Category::Security,
    };
    found.into_iter().map(remark).collect()
}

#[derive(Clone, Copy)]
struct CommittedCredential {
    kind: SecretKind,
    certainty: CredentialCertainty,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CredentialCertainty {
    /// Its checksum is right.
    Proven,
    /// Its format is a vendor's, or a private key's.
    Probable,
    /// Its checksum is wrong.
    Doubtful,
    /// It is a key for a vendor's test mode.
    TestMode,
}

impl CredentialCertainty {
    fn in_words(self) -> &'static str {
        match self {
            Self::Proven => ", and its checksum is right",
            Self::Probable => "",
            Self::Doubtful => ", but its checksum is wrong: it may be made up",
            Self::TestMode => " for test mode",
        }
    }
}

impl CommittedCredential {
    fn new(kind: SecretKind, value: &str) -> Self {
        let certainty = match has_valid_checksum(value) {
            Some(true) => CredentialCertainty::Proven,
            Some(false) => CredentialCertainty::Doubtful,
            None if matches!(kind, SecretKind::Vendor(_)) && is_for_test_mode(value) => CredentialCertainty::TestMode,
            None => CredentialCertainty::Probable,
        };
        Self { kind, certainty }
    }

    /// None of these kinds is certain enough for critical, which no setting can switch off: Google keys are in every
    /// web page that shows a map, many tokens have expired when they are committed, the host of a URL may be
    /// unreachable, and any word can follow `password=`.
    fn severity(self, for_show: bool) -> Severity {
        match (self.kind, self.certainty) {
            (_, CredentialCertainty::TestMode) => Severity::Medium,
            (SecretKind::Vendor("Google key"), _) => Severity::Major,
            (
                SecretKind::Vendor(_) | SecretKind::PrivateKey,
                CredentialCertainty::Proven | CredentialCertainty::Probable,
            ) if !for_show => Severity::Critical,
            _ => Severity::Major,
        }
    }
}

fn is_for_test_mode(value: &str) -> bool {
    ["_test_", "_TEST", "sandbox", "EZTK"].iter().any(|mark| value.contains(mark))
}

fn article(kind: SecretKind) -> &'static str {
    let name = kind.to_string();
    let sounds_open = name.starts_with(['A', 'E', 'I', 'O', 'a', 'e', 'i', 'o'])
        || ["NVIDIA", "X ", "npm ", "xAI"].iter().any(|word| name.starts_with(word));
    if sounds_open { "an" } else { "a" }
}

/// Where a value begins in a block of lines. It only moves forward: a minified line of megabytes can have thousands of
/// values.
#[derive(Default)]
struct BlockCursor {
    at: usize,
    line: usize,
    /// Where the line begins.
    begin: usize,
    /// Whether each kind of quote is open.
    open: [bool; 3],
}

impl BlockCursor {
    fn advance(&mut self, text: &str, to: usize) {
        for at in self.at..to {
            match text.as_bytes()[at] {
                b'\n' => *self = Self { line: self.line + 1, begin: at + 1, ..Self::default() },
                b'"' => self.open[0] ^= true,
                b'\'' => self.open[1] ^= true,
                b'`' => self.open[2] ^= true,
                _ => {}
            }
        }
        self.at = to;
    }

    /// Whether a string is open before the value. In a programming language a value without quotes is an expression,
    /// such as `this.state.token2`.
    fn is_in_quotes(&self) -> bool {
        self.open.contains(&true)
    }
}

/// Whether a value stands in a comment that has a line of its own: documentation shows what a hash looks like.
fn is_in_comment(file: &ReadFile<'_>, line: &str) -> bool {
    let line = line.trim_start();
    let marks = file.language.map(Language::line_comments).unwrap_or_default();
    line.starts_with('*') || marks.iter().any(|mark| line.starts_with(mark))
}

/// Whether the first part of a JSON web token names its algorithm.
fn is_web_token(value: &str) -> bool {
    let header = value.split('.').next().unwrap_or_default();
    let header = BASE64_URL_SAFE_NO_PAD.decode(header).ok();
    header.is_some_and(|header| String::from_utf8_lossy(&header).contains("\"alg\""))
}

/// Groups consecutive lines: a private key has several.
fn blocks(added: &[(u32, String)]) -> impl Iterator<Item = &[(u32, String)]> {
    added.chunk_by(|(one, _), (next, _)| *next == one + 1)
}

/// Whether a credential is reported. Keys and passwords in tests and examples are there to be seen; a token of a known
/// service is not, unless its checksum shows that it was made up.
fn is_told(file: &ReadFile<'_>, line: u32, credential: CommittedCredential) -> bool {
    let for_show = file.place.is_test || file.place.is_sample || is_rust_test(file, line);
    let is_known = matches!(credential.kind, SecretKind::Vendor(_))
        && matches!(credential.certainty, CredentialCertainty::Proven | CredentialCertainty::Probable);
    is_known || !for_show
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
        "0123456789",
        "abcdefgh",
        "deadbeef",
        "sample",
        "test_key",
        "your",
        // 1234567890 in base64, as in the well-known example token.
        "xmjm0nty3odkw",
    ];
    // Some formats begin with bytes of zero, which are `A` in base64.
    let longest_run = value.as_bytes().chunk_by(|one, next| one == next && *one != b'A').map(<[u8]>::len).max();
    // A random value of a token's length has many different characters.
    let different: BTreeSet<u8> = value.bytes().collect();
    longest_run.is_some_and(|run| run >= 6)
        || (value.len() >= 24 && different.len() < 8)
        || words.iter().any(|word| lower.contains(word))
}

/// Whether a value is a checksum or in one: among thousands, some look like a key. A token behind such a name counts,
/// because it has another length.
fn is_in_checksum(text: &[u8], value: &Range<usize>) -> bool {
    let longest = CHECKSUMS.iter().map(|(_, length)| *length).max().unwrap_or_default();
    let before = text[..value.start].iter().rev().take(longest).take_while(|byte| is_base64(**byte)).count();
    let (name, rest) = text.split_at(value.start - before);
    let length = rest.iter().take(longest + 1).take_while(|byte| is_base64(**byte)).count();
    let is_one = CHECKSUMS.iter().any(|(begin, whole)| *whole == length && name.ends_with(begin.as_bytes()));
    is_one && value.len() + before <= length
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
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

    const CHECKSUM: &str = "0smkjE";

    /// Built at run time, so that no scanner takes this file for a leak.
    fn token() -> String {
        ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5", CHECKSUM].concat()
    }

    /// A token whose checksum is wrong.
    fn made_up() -> String {
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
            ("src/a.js", format!("t = '{}'\n", made_up()), vec![1]),
            ("src/a.js", format!("const password = '{password}';\n"), vec![1]),
            ("src/a.js", format!("fetch(x, 'password={password}')\n"), vec![1]),
            (".netrc", "machine a.dev login b password summer7\n".to_owned(), vec![1]),
            (
                "db/users.sql",
                format!("('mona', '$2y$12${}', 1)\n", "k9Zr2mX4hJ7kQ9zR2mX4".repeat(3).split_at(53).0),
                vec![1],
            ),
            // Not reported: placeholders, examples, allowed values, hashes.
            ("tests/key.pem", key, vec![]),
            ("docs/guide.md", format!("DB_PASSWORD = '{password}'\n"), vec![]),
            ("src/a.rs", format!("DB_PASSWORD = '{password}'\n#[cfg(test)]\nDB_PASSWORD = '{password}'\n"), vec![1]),
            (".env.example", format!("DB_PASSWORD={password}\n"), vec![]),
            ("src/a.js", format!("t = '{}'\n", ["ghp_", &"x".repeat(36)].concat()), vec![]),
            ("src/a.js", format!("t = '{}'\n", ["ghp_", "abcdefghijklmnopqrstuvwxyz1234567890"].concat()), vec![]),
            ("src/a.js", "const token = process.env.GITHUB_TOKEN;\n".to_owned(), vec![]),
            (
                "app/a.rb",
                format!("# digest # => '$2a$10${}'\n", "k9Zr2mX4hJ7kQ9zR2mX4".repeat(3).split_at(53).0),
                vec![],
            ),
            ("src/a.js", "const token = this.state.b2bToken;\n".to_owned(), vec![]),
            ("src/a.js", "const token = this.x1.y2Z3w4;\nconst apiKey = Config.V2.keyFor9;\n".to_owned(), vec![]),
            ("tests/a.js", format!("t = '{}'\n", made_up()), vec![]),
            ("src/a.js", "password: hashPassword2(user.Password1)\n".to_owned(), vec![]),
            // In lock files tokens and passwords in URLs, and no random values.
            ("package-lock.json", format!("\"resolved\": \"git+https://{token}@github.com/acme/cat.git#1\"\n"), vec![1]),
            ("poetry.lock", format!("url = \"https://ci:{password}@pypi.acme.dev/simple\"\n"), vec![1]),
            ("yarn.lock", format!("  api_key \"{password}\"\n"), vec![]),
            ("package-lock.json", format!("\"password\": \"{password}\"\n"), vec![]),
            (
                "package-lock.json",
                "\"integrity\": \"sha512-vQKrfKbKsKMIWr1xNB3ZxPz1n8k7Fq3vK2ZcQ1pQ0m6xkq0mVb8s3T7dYhJ5w2e9uR4oLiN6aXcG1fHtEyBzDg==\"\n".to_owned(),
                vec![],
            ),
            ("go.sum", "golang.org/x/net v0.1.0 h1:hZ/3BUoy5aId7sCpA/Tc5lt8DkFgdVS2onTpJsZ/fl0=\n".to_owned(), vec![]),
            ("a.yml", "uses: a/b@4b825dc642cb6eb9a060e54bf8d69288fbee4904\n".to_owned(), vec![]),
        ] {
            assert_eq!(flagged(&RULE, path, &text), expected, "{path}: {text}");
        }
    }

    /// What looks like a key of Azure is one, unless it is a checksum in a lock file.
    #[test]
    fn a_checksum_is_no_key() {
        let random = "q7Rk2mX4hJ9zT3vB8nW5cL6dF1gP0sYuEoAiQxKjMbNvCrHtGfDwSlZpk3Yt9Qm2Vb7Xw4";
        let sha512 = [random, "AP", "IM", "c5Jn8Rg2Tq4W=="].concat();
        let sha256 = [&random[..34], "AP", "IM", "c5Jn8="].concat();
        assert_eq!((sha512.len(), sha256.len()), (88, 44));
        let aws = ["AKIA", "J7Q2ZLM4N8PXR5TV"].concat();
        for (path, text, expected) in [
            ("package-lock.json", format!("\"integrity\": \"sha512-{sha512}\"\n"), vec![]),
            ("yarn.lock", format!("  integrity sha512-{sha512}\n"), vec![]),
            ("go.sum", format!("acme.dev/cat v1.0.0 h1:{sha256}\n"), vec![]),
            ("package-lock.json", format!("\"token\": \"{sha512}\"\n"), vec![1]),
            ("package-lock.json", format!("\"integrity\": \"sha512-{sha256}\"\n"), vec![1]),
            ("package-lock.json", format!("\"integrity\": \"sha512-{aws}\"\n"), vec![1]),
            ("src/a.json", format!("\"integrity\": \"sha512-{sha512}\"\n"), vec![1]),
        ] {
            assert_eq!(flagged(&RULE, path, &text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn what_is_not_sure_is_not_critical() {
        let password = ["hJ7", "kQ9", "zR2", "!mX4"].concat();
        let body = "q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8";
        let google = ["AI", "za", &body[..35]].concat();
        let web = ["eyJhbGciOiJIUzI1NiJ9", ".ey", "J", &body[..20], ".", body].concat();
        let not_web = ["ey", "J", &body[..20], ".ey", "J", &body[..20], ".", body].concat();
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
            (format!("const session = '{not_web}';"), None),
            (format!("t = '{}'", token()), Some((Severity::Critical, "a GitHub token, and its checksum is right"))),
            (
                format!("t = '{}'", made_up()),
                Some((Severity::Major, "a GitHub token, but its checksum is wrong: it may be made up")),
            ),
            (
                format!("t = '{}'", ["sk", "_test_", body].concat()),
                Some((Severity::Medium, "a Stripe key for test mode")),
            ),
            (
                format!("t = '{}'", ["np", "m_", body].concat()),
                Some((Severity::Major, "an npm token, but its checksum is wrong: it may be made up")),
            ),
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
