//! What is known about items: import, export, sync with GitHub, intent cards, outcomes and maintainers.

pub(crate) mod analyze_intent;
pub(crate) mod export;
pub(crate) mod identify;
pub(crate) mod import;
pub(crate) mod import_source;
pub(crate) mod item_history;
pub(crate) mod item_summary;
pub(crate) mod pull_changes;
pub(crate) mod record_reader;
pub(crate) mod refetch_item;
pub(crate) mod refresh_maintainers;
pub(crate) mod resolve_actors;
pub(crate) mod stored_etags;
pub(crate) mod sweep;
pub(crate) mod sync;
pub(crate) mod sync_outcomes;

pub use analyze_intent::{
    AnalyzeError, AnalyzeFailure, AnalyzeOptions, AnalyzeReport, FailedItem, IntentExtractor, analyze_intent,
};
pub use export::{ExportFailure, export};
pub use identify::{IdentifiedRepo, IdentifyError, identify};
pub use import::{BadRecord, ERRORS_KEPT, ImportFailure, ImportProgress, ImportReport, import};
pub use import_source::UnusableFile;
pub use item_history::{ItemHistory, ItemReport, brake_document, brakes_in_force, cluster_document};
pub use item_summary::ItemSummary;
pub use pull_changes::{CHANGES_PER_SYNC, ChangesReport, sync_changes};
pub use refetch_item::refetch_item;
pub use refresh_maintainers::{counts_for_a_plan, refresh_maintainers};
pub use resolve_actors::{ActorsReport, resolve_actors};
pub use sweep::{SweepReport, sweep};
pub use sync::{SyncError, SyncFailure, SyncOptions, SyncReport, sync};
pub use sync_outcomes::{OutcomesReport, own_login, sync_outcomes};
