//! The hash of the token that makes an operator of the console, and where whoever made it left it.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::engine::facets::ConsoleStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_pool};

/// An admin token that was made and is kept by its hash: nobody can read it again here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAdminToken {
    /// Its SHA-256.
    pub hash: [u8; 32],
    /// Where it was left, in words for people; may be empty.
    pub place: String,
}

#[boxed]
impl ConsoleStore<'_> {
    /// The token that was made for this database, if one was.
    pub async fn admin_token(self) -> Result<Option<StoredAdminToken>, StoreError> {
        let select = "SELECT value FROM secrets WHERE name = 'admin_token_hash'";
        let kept: Option<Vec<u8>> = on_pool!(self.pool, |db| sqlx::query_scalar(select).fetch_optional(db).await?);
        kept.as_deref().map(read).transpose()
    }

    /// Keeps a token that was made, unless there is one already, and says which one counts: of many that start at once one
    /// makes it for all.
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
            // Another's may have been in the way, and forgotten since.
            if let Some(kept) = self.admin_token().await? {
                return Ok(kept);
            }
        }
    }

    /// Forgets this very token, since it could not be given to anybody.
    pub async fn delete_admin_token(self, kept: &StoredAdminToken) -> Result<(), StoreError> {
        let delete = "DELETE FROM secrets WHERE name = 'admin_token_hash' AND value = $1";
        let value = [kept.hash.as_slice(), kept.place.as_bytes()].concat();
        on_pool!(self.pool, |db| {
            sqlx::query(delete).bind(value.as_slice()).execute(db).await?;
        });
        Ok(())
    }
}

/// One value holds both, so that no process can see the one without the other.
fn read(value: &[u8]) -> Result<StoredAdminToken, StoreError> {
    let (hash, place) = value
        .split_first_chunk()
        .ok_or_else(|| StoreError::damaged("the admin token's hash does not have 32 bytes"))?;
    Ok(StoredAdminToken { hash: *hash, place: String::from_utf8_lossy(place).into_owned() })
}
