//! The hash of the admin token, which gives operator access to the console, and where the token was saved.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::engine::facets::ConsoleStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_pool};

/// A generated admin token, stored as a hash: it cannot be read again here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAdminToken {
    /// The SHA-256 of the token.
    pub hash: [u8; 32],
    /// Where the token was saved, as text for people; may be empty.
    pub place: String,
}

#[boxed]
impl ConsoleStore<'_> {
    /// Returns the token that was generated for this database, if any.
    pub async fn admin_token(self) -> Result<Option<StoredAdminToken>, StoreError> {
        let select = "SELECT value FROM secrets WHERE name = 'admin_token_hash'";
        let kept: Option<Vec<u8>> = on_pool!(self.pool, |db| sqlx::query_scalar(select).fetch_optional(db).await?);
        kept.as_deref().map(read).transpose()
    }

    /// Stores a generated token unless there already is one, and returns the valid one: of several processes that
    /// start at once one generates it for all.
    pub async fn ensure_admin_token(
        self,
        fresh: &StoredAdminToken,
        now: Timestamp,
    ) -> Result<StoredAdminToken, StoreError> {
        let insert = "INSERT INTO secrets (name, value, created_at) VALUES ('admin_token_hash', $1, $2)
            ON CONFLICT (name) DO NOTHING";
        let value = [fresh.hash.as_slice(), fresh.place.as_bytes()].concat();
        loop {
            on_pool!(self.pool, |db| {
                sqlx::query(insert).bind(value.as_slice()).bind(micros(now)).execute(db).await?;
            });
            // Another process's token may have been in the way and deleted since.
            if let Some(kept) = self.admin_token().await? {
                return Ok(kept);
            }
        }
    }

    /// Deletes exactly this token, because it could not be given to anybody.
    pub async fn delete_admin_token(self, kept: &StoredAdminToken) -> Result<(), StoreError> {
        let delete = "DELETE FROM secrets WHERE name = 'admin_token_hash' AND value = $1";
        let value = [kept.hash.as_slice(), kept.place.as_bytes()].concat();
        on_pool!(self.pool, |db| {
            sqlx::query(delete).bind(value.as_slice()).execute(db).await?;
        });
        Ok(())
    }
}

/// One value contains both, so that no process can see one without the other.
fn read(value: &[u8]) -> Result<StoredAdminToken, StoreError> {
    let (hash, place) = value
        .split_first_chunk()
        .ok_or_else(|| StoreError::damaged("the admin token's hash does not have 32 bytes"))?;
    Ok(StoredAdminToken { hash: *hash, place: String::from_utf8_lossy(place).into_owned() })
}
