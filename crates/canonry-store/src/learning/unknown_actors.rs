//! Finds triaged issues that were closed or reopened by an unknown account.

use canonry_boxed::boxed;
use canonry_domain::{EventOrigin, ItemNumber};

use crate::corpus::repos::RepoId;
use crate::engine::facets::LearningStore;
use crate::engine::row_values::number;
use crate::engine::transaction::{StoreError, on_pool};

#[boxed]
impl LearningStore<'_> {
    /// Returns the triaged issues with a state change that a sync found, with an unknown actor, and that no other
    /// event reports. Issues that were already fetched, and for which GitHub does not name the actor either, are
    /// skipped.
    pub async fn issues_with_unknown_actor(self, repo: RepoId) -> Result<Vec<ItemNumber>, StoreError> {
        let query = "SELECT i.number FROM items i WHERE i.repo_id = $1 AND i.type = 'issue' AND i.gone IS NULL
                AND EXISTS (SELECT 1 FROM triage_records t WHERE t.item_id = i.id)
                AND EXISTS (SELECT 1 FROM outcome_events e WHERE e.item_id = i.id
                    AND e.kind IN ('closed', 'reopened') AND e.by_whom = 'unknown' AND e.delivery_id LIKE $2 || '%'
                    AND NOT EXISTS (SELECT 1 FROM outcome_events k WHERE k.item_id = e.item_id AND k.kind = e.kind
                        AND k.occurred_at = e.occurred_at AND (k.by_whom <> 'unknown' OR k.delivery_id LIKE $3 || '%')))
            ORDER BY i.number";
        let [sync, timeline] = [EventOrigin::Sync, EventOrigin::Timeline].map(EventOrigin::prefix);
        let rows: Vec<i64> = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(sync).bind(timeline).fetch_all(db).await?
        });
        rows.into_iter().map(number).collect()
    }
}
