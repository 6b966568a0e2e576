//! Both engines behind the same SQL: opening, migrations, transactions, and the form of values in rows.

pub(crate) mod clock_skew;
pub(crate) mod database_url;
pub(crate) mod facets;
pub(crate) mod future_times;
pub(crate) mod gone_items;
pub(crate) mod health;
pub(crate) mod ids;
pub(crate) mod like_patterns;
pub(crate) mod lists;
pub(crate) mod migrations;
pub(crate) mod open;
pub(crate) mod packed_text;
pub(crate) mod portable_copy;
pub(crate) mod postgres_limits;
pub(crate) mod prune;
pub(crate) mod purge;
pub(crate) mod row_values;
pub(crate) mod rows;
pub(crate) mod transaction;

pub use database_url::{DatabaseUrl, InvalidDatabaseUrl};
pub use facets::{
    CloseStore, ConsoleStore, CorpusStore, DeliveryStore, DuplicateStore, FindingStore, JobStore, JudgeStore,
    LearningStore, MaintenanceStore, ModelStore, OutboxStore, PlanStore, RepoStore, ReviewStore,
};
pub use future_times::FutureTimes;
pub use migrations::{NEWEST_SCHEMA, SchemaVersion};
pub use open::{OpenError, OpenOptions, Store};
pub use packed_text::PackedText;
pub use prune::PruneCounts;
pub use purge::PurgePlace;
pub use transaction::StoreError;
