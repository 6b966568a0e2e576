//! What a store is asked for, by capability: `store.jobs().lease(…)`.

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
    /// Repositories: names, access, settings, maintainers.
    repos: RepoStore;
    /// Items: texts, vectors, intent cards, and how far a sync has come.
    corpus: CorpusStore;
    /// Writes to GitHub that are owed.
    outbox: OutboxStore;
    /// Webhooks as they came, and mentions in comments.
    deliveries: DeliveryStore;
    /// The queue of work and its schedules.
    jobs: JobStore;
    /// Candidates, triage records, clusters, and what people ruled about them.
    duplicates: DuplicateStore;
    /// The judge's decisions, audits of it, and samples that people adjudicate.
    judge: JudgeStore;
    /// Questions to models and what they cost.
    models: ModelStore;
    /// Plans that people review, and the runs that apply or undo them.
    plans: PlanStore;
    /// Announced closes, objections and brakes.
    close: CloseStore;
    /// What became of issues, and the thresholds that follow from it.
    learning: LearningStore;
    /// Review runs, reviews and their statistics.
    review: ReviewStore;
    /// Findings, what people think of them, and the patterns among them.
    findings: FindingStore;
    /// Who is signed in, what they did, and the lists that only pages show.
    console: ConsoleStore;
    /// Pruning, purging, and times that lie in the future.
    maintenance: MaintenanceStore;
}
