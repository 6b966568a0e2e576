//! Verifies that a webhook was signed with our secret.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::auth::secret::Secret;

/// Why a webhook is not accepted as GitHub's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSignature {
    /// There is no secret to check with: nothing can be trusted.
    #[error("no webhook secret is set; set CANONRY_WEBHOOK_SECRET")]
    NoSecret,
    /// There is no signature of the form `sha256=…`.
    #[error("the webhook has no signature; set a secret in the App's settings")]
    Missing,
    /// The signature was made with another secret or for another body.
    #[error(
        "the webhook's signature is wrong; CANONRY_WEBHOOK_SECRET differs from the App's settings, or it is not GitHub's"
    )]
    Wrong,
}

/// Checks `X-Hub-Signature-256` over the raw body, in constant time.
pub fn verify_signature(secret: &Secret, body: &[u8], signature: Option<&str>) -> Result<(), BadSignature> {
    if secret.expose().is_empty() {
        return Err(BadSignature::NoSecret);
    }
    let given = signature.and_then(|text| text.trim().strip_prefix("sha256=")).ok_or(BadSignature::Missing)?;
    let given = from_hex(given).ok_or(BadSignature::Missing)?;
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("invariant: HMAC takes keys of any length");
    mac.update(body);
    let expected: [u8; 32] = mac.finalize().into_bytes().into();
    if expected.ct_eq(&given).into() { Ok(()) } else { Err(BadSignature::Wrong) }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{BadSignature, verify_signature};
    use crate::auth::secret::Secret;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    /// The example of GitHub's own documentation.
    const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn check(secret: &str, body: &[u8], signature: Option<&str>) -> Result<(), BadSignature> {
        verify_signature(&Secret::new(secret), body, signature)
    }

    #[test]
    fn the_documented_example_holds() {
        let secret = "It's a Secret to Everybody";
        assert_eq!(check(secret, b"Hello, World!", Some(SIGNATURE)), Ok(()));
        assert_eq!(check(secret, b"Hello, World?", Some(SIGNATURE)), Err(BadSignature::Wrong));
        assert_eq!(check("another", b"Hello, World!", Some(SIGNATURE)), Err(BadSignature::Wrong));
        assert_eq!(check("", b"Hello, World!", Some(SIGNATURE)), Err(BadSignature::NoSecret));
        for bad in [None, Some(""), Some("sha1=00"), Some("sha256="), Some("sha256=zz"), Some(&SIGNATURE[..70])] {
            assert_eq!(check(secret, b"Hello, World!", bad), Err(BadSignature::Missing), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_body_is_refused(at in any::<prop::sample::Index>(), flip in 1u8..) {
            let mut body = b"Hello, World!".to_vec();
            let at = at.index(body.len());
            body[at] ^= flip;
            prop_assert_eq!(check("It's a Secret to Everybody", &body, Some(SIGNATURE)), Err(BadSignature::Wrong));
        }
    }
}
