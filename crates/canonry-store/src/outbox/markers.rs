//! The secret that signs markers, and the digests of markers signed with other secrets.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::engine::facets::OutboxStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_pool, on_tx};

#[boxed]
impl OutboxStore<'_> {
    /// Returns the secret that signs markers. The first caller's `fresh` bytes become the permanent secret; they must
    /// be random.
    pub async fn marker_secret(self, fresh: [u8; 32], now: Timestamp) -> Result<[u8; 32], StoreError> {
        let insert =
            "INSERT INTO secrets (name, value, created_at) VALUES ('marker', $1, $2) ON CONFLICT (name) DO NOTHING";
        let select = "SELECT value FROM secrets WHERE name = 'marker'";
        let kept: Vec<u8> = on_pool!(self.pool, |db| {
            sqlx::query(insert).bind(fresh.as_slice()).bind(micros(now)).execute(db).await?;
            sqlx::query_scalar(select).fetch_one(db).await?
        });
        kept.try_into().map_err(|_| StoreError::damaged("the marker secret does not have 32 bytes"))
    }

    /// Returns the digests of markers that were signed with a secret outside the database.
    pub async fn issued_markers(self) -> Result<Vec<[u8; 32]>, StoreError> {
        let digests: Vec<Vec<u8>> =
            on_pool!(self.pool, |db| { sqlx::query_scalar("SELECT digest FROM issued_markers").fetch_all(db).await? });
        let whole = |digest: Vec<u8>| digest.try_into();
        let digests: Result<Vec<[u8; 32]>, Vec<u8>> = digests.into_iter().map(whole).collect();
        digests.map_err(|_| StoreError::damaged("the digest of a marker does not have 32 bytes"))
    }

    /// Records the digests of markers that are about to be written.
    pub async fn record_issued_markers(self, digests: &[[u8; 32]], now: Timestamp) -> Result<(), StoreError> {
        let insert = "INSERT INTO issued_markers (digest, issued_at) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING";
        let mut tx = self.pool.begin().await?;
        for digest in digests {
            on_tx!(&mut tx, |db| {
                sqlx::query(insert).bind(digest.as_slice()).bind(micros(now)).execute(db).await?;
            });
        }
        tx.commit().await
    }

    /// Deletes the secret that signs markers, because it is now stored elsewhere.
    pub async fn delete_marker_secret(self) -> Result<(), StoreError> {
        on_pool!(self.pool, |db| {
            sqlx::query("DELETE FROM secrets WHERE name = 'marker'").execute(db).await?;
        });
        Ok(())
    }
}
