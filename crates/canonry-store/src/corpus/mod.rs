//! Repositories and their items: texts, vectors, intent cards, and the progress of syncs.

pub(crate) mod boilerplate;
pub(crate) mod embeddings;
pub(crate) mod etags;
pub(crate) mod index_changes;
pub(crate) mod index_rows;
pub(crate) mod intent_cards;
pub(crate) mod items;
pub(crate) mod maintainers;
pub(crate) mod nearest_vectors;
pub(crate) mod possible_reverts;
pub(crate) mod pull_gaps;
pub(crate) mod repo_access;
pub(crate) mod repo_settings;
pub(crate) mod repos;
pub(crate) mod sync_progress;
pub(crate) mod token_vectors;
pub(crate) mod upsert_items;

pub use boilerplate::{ItemText, StoredBoilerplate};
pub use embeddings::{EmbedFilter, EmbeddingKey, NewEmbedding, StoredEmbedding};
pub use index_changes::IndexVersion;
pub use index_rows::{IndexEntry, IndexRow};
pub use intent_cards::{CardMaker, CardOutcome, StoredCard};
pub use items::{ItemCounts, ItemFilter};
pub use maintainers::{MaintainerList, MaintainerSource};
pub use possible_reverts::MergedPullText;
pub use repo_access::RepoAccess;
pub use repo_settings::StoredSettings;
pub use repos::{Repo, RepoId};
pub use sync_progress::{SyncPage, SyncProgress};
pub use upsert_items::UpsertSummary;
