//! Secrets that Canonry makes for itself.

use jiff::Timestamp;

use crate::open::Store;
use crate::row_values::micros;
use crate::transaction::{StoreError, on_pool};

impl Store {
    /// The secret that signs markers. The first caller's `fresh` bytes become it for good; they must be
    /// random.
    pub async fn marker_secret(&self, fresh: [u8; 32], now: Timestamp) -> Result<[u8; 32], StoreError> {
        let insert =
            "INSERT INTO secrets (name, value, created_at) VALUES ('marker', $1, $2) ON CONFLICT (name) DO NOTHING";
        let select = "SELECT value FROM secrets WHERE name = 'marker'";
        let kept: Vec<u8> = on_pool!(&self.pool, |db| {
            sqlx::query(insert).bind(fresh.as_slice()).bind(micros(now)).execute(db).await?;
            sqlx::query_scalar(select).fetch_one(db).await?
        });
        kept.try_into().map_err(|_| StoreError::damaged("the marker secret does not have 32 bytes"))
    }
}
