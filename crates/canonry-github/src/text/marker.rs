//! Signs markers, by which Canonry recognizes its own texts.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use canonry_domain::Login;
use hmac::{Hmac, KeyInit, Mac};
use regex::Regex;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::auth::secret::Secret;

/// A 256-bit signature is 43 characters of base64 without padding.
static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"<!-- canonry:v1:([a-z_]{1,32}):([A-Za-z0-9._/#%]{1,600}):([A-Za-z0-9_-]{43}) -->")
        .expect("invariant: a constant pattern")
});

/// The identity of a text: a kind of write, and the key that makes it unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Marker {
    kind: String,
    key: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMarker {
    /// The kind has other characters than a–z and `_`, or is empty or too long.
    #[error("{0:?} cannot be a marker's kind; it has 1 to 32 characters a to z and _")]
    Kind(String),
    /// The key is empty or too long.
    #[error("a marker's key has 1 to 200 bytes, and this one has {0}")]
    Key(usize),
}

impl Marker {
    /// Creates a marker. The key may be any text; it should contain everything that makes the write unique, including
    /// the repository and the item, so that a copied marker means nothing elsewhere.
    pub fn new(kind: &str, key: &str) -> Result<Self, InvalidMarker> {
        let fits = (1..=32).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !fits {
            return Err(InvalidMarker::Kind(kind.chars().take(60).collect()));
        }
        if !(1..=200).contains(&key.len()) {
            return Err(InvalidMarker::Key(key.len()));
        }
        Ok(Self { kind: kind.to_owned(), key: key.to_owned() })
    }

    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Signs and verifies markers with a secret that only Canonry knows.
#[derive(Debug, Clone)]
pub struct MarkerSigner {
    secret: Secret,
    issued: Arc<HashSet<[u8; 32]>>,
    trusts_account: bool,
}

impl MarkerSigner {
    pub fn new(secret: Secret) -> Self {
        Self { secret, issued: Arc::default(), trusts_account: false }
    }

    /// Also accepts the markers with these digests: earlier secrets signed them.
    #[must_use]
    pub fn knowing(self, issued: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self { issued: Arc::new(issued.into_iter().collect()), ..self }
    }

    /// Also accepts every marker in texts of our own account, whoever signed it: for a run that does not know the earlier
    /// secrets. Only another program that writes with the same account could forge one.
    #[must_use]
    pub fn trusting_account(self) -> Self {
        Self { trusts_account: true, ..self }
    }

    /// The digest by which a signer with another secret recognizes a marker of this one.
    pub fn digest(&self, marker: &Marker) -> [u8; 32] {
        digest(&self.sign(marker))
    }

    /// The HTML comment to put into a text. GitHub does not show it.
    pub fn sign(&self, marker: &Marker) -> String {
        let signed = signed_part(&marker.kind, &encode(&marker.key));
        format!("<!-- {signed}:{} -->", URL_SAFE_NO_PAD.encode(self.signature(&signed)))
    }

    /// The genuine markers in a text, in order. A text by another account than our own has none, whatever it contains:
    /// markers can be copied.
    pub fn find(&self, text: &str, author: &Login, own: &Login) -> Vec<Marker> {
        self.find_with_texts(text, author, own).into_iter().map(|(marker, _)| marker).collect()
    }

    /// The genuine markers, each with its original text.
    pub(crate) fn find_with_texts<'t>(&self, text: &'t str, author: &Login, own: &Login) -> Vec<(Marker, &'t str)> {
        if author != own {
            return Vec::new();
        }
        let genuine = |found: regex::Captures<'t>| {
            let (kind, encoded, signature) = (&found[1], &found[2], &found[3]);
            let given = URL_SAFE_NO_PAD.decode(signature).ok()?;
            let expected = self.signature(&signed_part(kind, encoded));
            let same: bool = expected.ct_eq(given.as_slice()).into();
            let whole = found.get(0)?.as_str();
            let is_ours = same || self.trusts_account || self.issued.contains(&digest(whole));
            if is_ours { Some((Marker::new(kind, &decode(encoded)?).ok()?, whole)) } else { None }
        };
        MARKER.captures_iter(text).filter_map(genuine).collect()
    }

    /// Whether our own account wrote this text with this marker.
    pub fn carries(&self, text: &str, author: &Login, own: &Login, marker: &Marker) -> bool {
        self.find(text, author, own).contains(marker)
    }

    fn signature(&self, signed: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.expose().as_bytes())
            .expect("invariant: HMAC takes keys of any length");
        // The secret may sign other things elsewhere; this prefix keeps them apart.
        mac.update(b"marker\0");
        mac.update(signed.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Neither part contains a colon, so two different markers never sign the same bytes.
fn signed_part(kind: &str, encoded_key: &str) -> String {
    format!("canonry:v1:{kind}:{encoded_key}")
}

/// Percent-encodes all but a few harmless characters; hyphens too, because two of them end or break an HTML comment.
fn encode(key: &str) -> String {
    key.bytes().fold(String::with_capacity(key.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'#') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

fn decode(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{Marker, MarkerSigner};
    use crate::auth::secret::Secret;
    use canonry_domain::Login;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_assume, proptest};

    fn login(text: &str) -> Login {
        text.parse().expect("valid")
    }

    fn found(secret: &str, text: &str) -> Vec<Marker> {
        let own = login("canonry[bot]");
        MarkerSigner::new(Secret::new(secret)).find(text, &own, &own)
    }

    #[test]
    fn counts_only_in_our_own_texts() {
        let (signer, own) = (MarkerSigner::new(Secret::new("s")), login("canonry[bot]"));
        let marker = Marker::new("triage", "a/b--c#12").expect("valid");
        let text = format!("Hello\n{}", signer.sign(&marker));
        assert!(signer.carries(&text, &login("Canonry[bot]"), &own, &marker));
        assert!(!signer.carries(&text, &login("mallory"), &own, &marker));
        assert!(!text["Hello\n<!--".len()..text.len() - 3].contains("--"), "{text}");
    }

    #[test]
    fn a_signer_that_trusts_its_account_still_trusts_nobody_else() {
        let (own, marker) = (login("canonry[bot]"), Marker::new("comment", "triage:1:issue:7").expect("valid"));
        let text = MarkerSigner::new(Secret::new("lost")).sign(&marker);
        let signer = MarkerSigner::new(Secret::new("s"));
        assert!(!signer.carries(&text, &own, &own, &marker));
        let trusting = signer.trusting_account();
        assert!(trusting.carries(&text, &own, &own, &marker));
        assert!(!trusting.carries(&text, &login("mallory"), &own, &marker));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for (kind, key) in [("", "k"), ("Triage", "k"), ("a:b", "k"), ("close", ""), ("close", &"k".repeat(201))] {
            assert!(Marker::new(kind, key).is_err(), "{kind} {key}");
        }
    }

    proptest! {
        #[test]
        fn survives_the_way_there_and_back(key in "\\PC{1,40}", before in any::<String>(), after in any::<String>()) {
            let marker = Marker::new("close", &key).expect("valid");
            let signed = MarkerSigner::new(Secret::new("s")).sign(&marker);
            prop_assert_eq!(found("s", &format!("{before}{signed}{after}")), vec![marker]);
        }

        #[test]
        fn another_secret_does_not_verify(key in "\\PC{1,20}", secret in "[a-z]{1,20}") {
            prop_assume!(secret != "s");
            let signed = MarkerSigner::new(Secret::new("s")).sign(&Marker::new("close", &key).expect("valid"));
            prop_assert!(found(&secret, &signed).is_empty());
        }

        #[test]
        fn any_cut_or_changed_byte_breaks_it(key in "[a-z#/0-9]{1,20}", at in any::<prop::sample::Index>(), byte in 0x20u8..0x7f) {
            let signed = MarkerSigner::new(Secret::new("s")).sign(&Marker::new("close", &key).expect("valid"));
            let at = at.index(signed.len());
            prop_assert!(found("s", &signed[..at]).is_empty());
            let mut changed = signed.into_bytes();
            prop_assume!(changed[at] != byte);
            changed[at] = byte;
            prop_assert!(found("s", &String::from_utf8(changed).expect("ASCII")).is_empty());
        }

        #[test]
        fn a_signature_moved_to_another_key_does_not_verify(one in "[a-z#/0-9]{1,20}", other in "[a-z#/0-9]{1,20}") {
            prop_assume!(one != other);
            let signer = MarkerSigner::new(Secret::new("s"));
            let signed = signer.sign(&Marker::new("close", &one).expect("valid"));
            let moved = signed.replacen(&format!(":{one}:"), &format!(":{other}:"), 1);
            prop_assert!(found("s", &moved).is_empty());
            prop_assert!(found("s", &signed.replacen(":close:", ":undo:", 1)).is_empty());
        }

        #[test]
        fn nothing_else_is_a_marker(text in any::<String>(), signature in "[A-Za-z0-9_-]{43}") {
            prop_assert!(found("s", &text).is_empty());
            let forged = format!("<!-- canonry:v1:close:k:{signature} -->");
            prop_assert!(found("s", &forged).is_empty());
        }
    }
}
