//! The facets of a store, one per capability: `store.jobs().lease(…)`.

use crate::engine::open::Store;
use crate::engine::transaction::Pool;

macro_rules! facets {
    ($($(#[$doc:meta])* $accessor:ident: $facet:ident;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $facet<'a> {
                pub(crate) pool: &'a Pool,
            }
        )+

        impl Pool {
            $(pub(crate) fn $accessor(&self) -> $facet<'_> {
                $facet { pool: self }
            })+
        }

        impl Store {
            $($(#[$doc])* pub fn $accessor(&self) -> $facet<'_> {
                self.pool.$accessor()
            })+
        }
    };
}

facets! {
    /// Names, access, settings and maintainers of repositories.
    repos: RepoStore;
    /// Items: texts, vectors, intent cards, and the progress of syncs.
    corpus: CorpusStore;
    /// Writes to GitHub.
    outbox: OutboxStore;
    /// Stored webhooks, and mentions in comments.
    deliveries: DeliveryStore;
    /// The job queue and its schedules.
    jobs: JobStore;
    /// Candidates, triage records, clusters, and the rulings of people about them.
    duplicates: DuplicateStore;
    /// The judge's decisions, audits of it, and samples that people adjudicate.
    judge: JudgeStore;
    /// Model calls and their cost.
    models: ModelStore;
    /// Plans that people review, and the runs that apply or undo them.
    plans: PlanStore;
    /// Announced closes, objections and brakes.
    close: CloseStore;
    /// Outcomes of issues, and the thresholds that follow from them.
    learning: LearningStore;
    /// Review runs, reviews and their statistics.
    review: ReviewStore;
    /// Findings, feedback on them, and patterns among them.
    findings: FindingStore;
    /// Sessions, actions of people, and lists that only pages show.
    console: ConsoleStore;
    /// Pruning, purging, and correcting times in the future.
    maintenance: MaintenanceStore;
}
