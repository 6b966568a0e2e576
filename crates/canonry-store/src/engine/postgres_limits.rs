//! Limits how long PostgreSQL may take for a statement, a lock or an idle transaction, so that nothing waits forever.

use sqlx::PgConnection;

/// In milliseconds, and only if neither the server, the role nor the address sets a limit.
///
/// - Statement: the longest ones read all rows of a repository at once, seconds for 100,000 items. Five minutes end
///   what would never end.
/// - Lock: as long as a writer waits for another one on SQLite. All transactions that take locks are short.
/// - Idle transaction: only a hanging process is idle, and it may have a lock that others wait for.
const SET: &str = "SELECT set_config(l.name, l.value, false)
    FROM (VALUES ('statement_timeout', '300000'), ('lock_timeout', '30000'), ('idle_in_transaction_session_timeout', '60000'))
        l (name, value)
    WHERE current_setting(l.name) = '0'";

const LIFT: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0";

/// Sets the limits of a new connection.
///
/// With a statement and not with connection parameters, because poolers between the two refuse those.
pub(crate) async fn set_limits(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(SET).execute(connection).await?;
    Ok(())
}

/// Removes the limits for the current transaction, for schema changes and index builds.
pub(crate) async fn lift_limits(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(LIFT).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use canonry_testkit::database::TestDatabase;
    use jiff::Timestamp;
    use sqlx::{Connection, PgConnection, PgPool};

    use super::lift_limits;
    use crate::Store;
    use crate::engine::migrations::MIGRATION_LOCK;
    use crate::engine::transaction::Pool;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("in range")
    }

    async fn open(url: &str) -> Store {
        Store::open(&url.parse().expect("a URL"), now()).await.expect("opens")
    }

    fn pool(store: &Store) -> &PgPool {
        match &store.pool {
            Pool::Postgres(pool) => pool,
            Pool::Sqlite(_) => panic!("it is PostgreSQL"),
        }
    }

    async fn limits(connection: &mut PgConnection) -> [String; 3] {
        let query = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
            current_setting('idle_in_transaction_session_timeout')";
        let (statement, lock, silence) = sqlx::query_as(query).fetch_one(connection).await.expect("reads");
        [statement, lock, silence]
    }

    #[tokio::test]
    async fn every_connection_has_limits_and_an_operators_own_stay() {
        let database = TestDatabase::postgres().await;
        let store = open(database.url()).await;
        let mut connection = pool(&store).acquire().await.expect("a connection");
        assert_eq!(limits(&mut connection).await, ["5min", "30s", "1min"]);
        let mut transaction = connection.begin().await.expect("begins");
        lift_limits(&mut transaction).await.expect("lifted");
        assert_eq!(limits(&mut transaction).await, ["0", "0", "0"]);
        transaction.commit().await.expect("commits");
        assert_eq!(limits(&mut connection).await, ["5min", "30s", "1min"]);

        let store = open(&format!("{}?options=-c%20statement_timeout=7s", database.url())).await;
        let mut connection = pool(&store).acquire().await.expect("a connection");
        assert_eq!(limits(&mut connection).await, ["7s", "30s", "1min"]);
    }

    #[tokio::test]
    async fn who_waits_too_long_for_a_lock_is_told_so() {
        let database = TestDatabase::postgres().await;
        let store = open(&format!("{}?options=-c%20lock_timeout=50ms", database.url())).await;
        let repo = store.repos().ensure(&"tide/pool".parse().expect("a name"), now()).await.expect("stored");
        let mut held = store.pool.begin().await.expect("begins");
        held.lock_items_of(repo.id).await.expect("locks");
        let error = store.learning().record_outcome_events(repo.id, &[], now()).await.expect_err("nobody lets go");
        assert!(error.to_string().contains("lock timeout"), "{error}");
        held.rollback().await.expect("lets go");
        store.learning().record_outcome_events(repo.id, &[], now()).await.expect("it is free");
    }

    /// Replicas that start together wait for the one that migrates, however long it takes.
    #[tokio::test]
    async fn migrations_wait_without_a_limit() {
        let database = TestDatabase::postgres().await;
        let mut holder = PgConnection::connect(database.url()).await.expect("connects");
        let lock = "SELECT pg_advisory_lock($1)";
        sqlx::query(lock).bind(MIGRATION_LOCK).execute(&mut holder).await.expect("locks");
        let url = format!("{}?options=-c%20lock_timeout=20ms", database.url());
        let opening = tokio::spawn(async move { open(&url).await.disconnect().await });
        // Keeps the lock for longer than the limit once the other connection waits; the bound only ends a test that
        // has already failed.
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        for _ in 0..500 {
            let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&mut holder).await.expect("reads");
            let pause = if waiting == 0 { "SELECT pg_sleep(0.01)" } else { "SELECT pg_sleep(0.2)" };
            sqlx::query(pause).execute(&mut holder).await.expect("waits");
            if waiting > 0 {
                break;
            }
        }
        holder.close().await.expect("lets go");
        opening.await.expect("opened");
    }
}
