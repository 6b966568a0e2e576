//! Counts the reads and fetches for an opened issue, from the stored webhook to the outbox.

use std::sync::{Arc, Mutex, PoisonError};

use canonry_server::AttemptEnd;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::service::handling::at;
use crate::world::As;
use crate::world::job_world::JobWorld;

/// Every statement that this process sends to its database, as the driver logs it.
#[derive(Clone, Default)]
struct StatementLog(Arc<Mutex<Vec<String>>>);

impl StatementLog {
    /// For the whole process, because SQLite's statements run on their own threads: each test has a process.
    fn install() -> Self {
        let log = Self::default();
        tracing_subscriber::registry().with(log.clone()).init();
        log
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: tracing::Subscriber> Layer<S> for StatementLog {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            let mut statement = Statement::default();
            event.record(&mut statement);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(statement.0);
        }
    }
}

#[derive(Default)]
struct Statement(String);

impl Visit for Statement {
    fn record_str(&mut self, field: &Field, value: &str) {
        // A short statement is only in its summary.
        if field.name() == "db.statement" || field.name() == "summary" {
            self.0.push_str(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

on_both_engines! {
    async fn an_opened_issue_is_read_once_and_not_fetched(database: TestDatabase) {
        let log = StatementLog::install();
        let setting = JobWorld::new(&database, As::Token).await;
        // The mode that needs the most data.
        setting.settings("triage: {mode: grace}");
        setting.open("ann");
        setting.settle().await;
        let number = setting.open("ann");
        setting.deliver_pending().await;
        setting.emulator.forget_requests();
        log.take();
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        let statements = log.take();
        let count = |parts: &[&str], without: &[&str]| {
            let matches = |statement: &&String| {
                parts.iter().all(|part| statement.contains(part)) && !without.iter().any(|part| statement.contains(part))
            };
            statements.iter().filter(matches).count()
        };
        let entries = setting.store.outbox().of_item(setting.repo.id, at(number)).await.expect("reads");
        assert_eq!(entries.len(), 2, "a comment and a label: {entries:?}");
        let whole = "title, body, state, state_reason";
        let (read_for_merging, by_number) = (count(&[whole, "number IN"], &[" AND type = "]), count(&[whole, "AND number = "], &[]));
        assert_eq!((read_for_merging, by_number), (1, 0), "the item: {statements:#?}");
        assert_eq!(count(&[whole, " AND type = ", "number IN"], &[]), 1, "its neighbours: {statements:#?}");
        assert_eq!(count(&["FROM overrides"], &[]), 1, "rulings: {statements:#?}");
        assert_eq!(count(&["max(u.result_at)"], &[]), 1, "closes: {statements:#?}");
        let asked: Vec<String> = setting.emulator.requests().iter().map(|request| request.named_path.clone()).collect();
        assert_eq!(asked, Vec::<String>::new(), "the webhook says it all");
    }
}
