#![doc = include_str!("../README.md")]

mod candidate_sets;
mod database_url;
mod embeddings;
mod etags;
mod index_rows;
mod intent_cards;
mod items;
mod maintainer_lists;
mod migrations;
mod nearest;
mod open;
mod outbox;
mod outcome_events;
mod repos;
mod row_values;
mod secrets;
mod sync_progress;
mod take_in;
mod transaction;

pub use candidate_sets::{CandidateMember, CandidateSet, NewCandidateSet, Representation, SetStatus};
pub use database_url::{DatabaseUrl, InvalidDatabaseUrl};
pub use embeddings::{EmbedFilter, Embedding, EmbeddingKey, NewEmbedding};
pub use index_rows::{IndexEntry, IndexRow};
pub use intent_cards::{CardMaker, CardOutcome, StoredCard};
pub use items::{ItemCounts, ItemFilter};
pub use maintainer_lists::{MaintainerList, MaintainerSource};
pub use migrations::{NEWEST_SCHEMA, SchemaVersion};
pub use open::{OpenError, Store};
pub use outbox::{Lease, NewOutboxEntry, OutboxEnd, OutboxEntry, OutboxId, OutboxScope, OutboxState, Reservation};
pub use repos::{Repo, RepoId};
pub use sync_progress::{SyncPage, SyncProgress};
pub use take_in::TakenIn;
pub use transaction::StoreError;
