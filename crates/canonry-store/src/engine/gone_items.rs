//! Deletes the texts of items that left their repository, and what was derived from them: an issue is often deleted because
//! of what it says, and a database of GitHub Actions is kept where others can read it.

use canonry_boxed::boxed;
use canonry_domain::{ItemType, content_hash};
use sqlx::Connection as _;

use crate::engine::facets::MaintenanceStore;
use crate::engine::portable_copy::sqlite;
use crate::engine::row_values::count;
use crate::engine::transaction::StoreError;

/// The rows themselves stay: verdicts, outcomes and the numbers that they name are no texts.
const FIND: &str = "CREATE TEMP TABLE gone_items AS
    SELECT i.id, i.repo_id, i.type, i.number, r.name_key AS repo FROM items i JOIN repos r ON r.id = i.repo_id
    WHERE i.gone IS NOT NULL";

/// A model's reasoning may quote every candidate that it has read.
const BLANK: [&str; 13] = [
    "UPDATE judge_decisions SET reasoning = NULL, answer = NULL WHERE coalesce(reasoning, answer) IS NOT NULL
        AND (item_id IN (SELECT id FROM gone_items) OR target_item_id IN (SELECT id FROM gone_items)
            OR EXISTS (SELECT 1 FROM json_each(judge_decisions.candidates) c JOIN gone_items g
                ON g.repo_id = judge_decisions.repo_id AND g.number = json_extract(c.value, '$.number')))",
    "UPDATE triage_records SET reasoning = '' WHERE reasoning <> '' AND (item_id IN (SELECT id FROM gone_items)
        OR target_item_id IN (SELECT id FROM gone_items) OR EXISTS (SELECT 1 FROM triage_candidates c
            WHERE c.triage_id = triage_records.id AND c.judged AND c.item_id IN (SELECT id FROM gone_items)))",
    "UPDATE close_run_items SET evidence = '{}',
        snapshot = json_replace(snapshot, '$.source.content_hash', '', '$.target.content_hash', '')
        WHERE item_id IN (SELECT id FROM gone_items) OR target_item_id IN (SELECT id FROM gone_items)",
    "DELETE FROM intent_cards WHERE item_id IN (SELECT id FROM gone_items)",
    "DELETE FROM embeddings WHERE item_id IN (SELECT id FROM gone_items)",
    // Nothing can be written to an item that is gone.
    "UPDATE outbox SET payload = '{}', lease_owner = NULL, lease_until = NULL,
        state = CASE state WHEN 'pending' THEN 'refused' ELSE state END,
        reason = CASE state WHEN 'pending' THEN 'item_gone' ELSE reason END
        WHERE (repo_id, number) IN (SELECT repo_id, number FROM gone_items)",
    // A comment on another item quotes the title and the shared lines of the one that left. An announced close is
    // cancelled by an edit of its text, which therefore stays until its grace has ended.
    "UPDATE outbox SET payload = json_replace(payload, '$.comment.body', '', '$.edit_comment.body', '', '$.close.comment', '',
            '$.close.comment_if_refused', '')
        WHERE state <> 'pending' AND kind IN ('comment', 'edit_comment', 'close') AND (repo_id, number) IN (
            SELECT i.repo_id, i.number FROM items i WHERE i.id IN (
                SELECT item_id FROM triage_records WHERE target_item_id IN (SELECT id FROM gone_items)
                UNION SELECT item_id FROM close_run_items WHERE target_item_id IN (SELECT id FROM gone_items)
                UNION SELECT t.item_id FROM fix_matches f JOIN triage_records t ON t.id = f.triage_id
                    WHERE f.report_item_id IN (SELECT id FROM gone_items))
            AND NOT EXISTS (SELECT 1 FROM graces g WHERE g.item_id = i.id AND g.state = 'waiting')
            AND NOT EXISTS (SELECT 1 FROM triage_actions a JOIN triage_records t ON t.id = a.triage_id
                JOIN outbox o ON o.idempotency_key = a.comment_key AND o.state = 'sent'
                WHERE t.item_id = i.id AND a.action = 'commented' AND a.reason LIKE 'grace:%'
                AND NOT EXISTS (SELECT 1 FROM graces g WHERE g.item_id = i.id)))",
    "DELETE FROM jobs WHERE delivery_id IN (SELECT d.id FROM deliveries d JOIN gone_items g ON g.repo = d.repo
        AND g.number = d.number WHERE d.state IN ('queued', 'dead'))",
    "UPDATE deliveries SET payload = '', emptied = TRUE, finished_at = coalesce(finished_at, received_at),
        reason = CASE WHEN state IN ('queued', 'dead') THEN 'item_gone' ELSE reason END,
        state = CASE WHEN state IN ('queued', 'dead') THEN 'ignored' ELSE state END
        WHERE (repo, number) IN (SELECT repo, number FROM gone_items)",
    // Code of a pull request; its rows refer to each other.
    "DELETE FROM remarks WHERE (repo_id, subject) IN (SELECT repo_id, 'pull/' || number FROM gone_items WHERE type = 'pr')",
    "DELETE FROM findings WHERE (repo_id, subject) IN (SELECT repo_id, 'pull/' || number FROM gone_items WHERE type = 'pr')",
    "DELETE FROM review_runs WHERE (repo_id, subject) IN (SELECT repo_id, 'pull/' || number FROM gone_items WHERE type = 'pr')",
    "UPDATE overrides SET note = NULL WHERE (repo_id, type, item_number) IN (SELECT repo_id, type, number FROM gone_items)",
];

/// The version changes with the hash, so that nothing counts that was derived from the text.
const BLANK_ITEMS: &str =
    "UPDATE items SET title = '', body = '', changes = NULL, base_branch = NULL, content_hash = $2,
    content_version = content_version + CASE content_hash WHEN $2 THEN 0 ELSE 1 END
    WHERE type = $1 AND id IN (SELECT id FROM gone_items)";

#[boxed]
impl MaintenanceStore<'_> {
    /// Deletes the texts of all items that left their repositories from a SQLite file. Returns the number of these items.
    pub async fn blank_gone_items(self) -> Result<u64, StoreError> {
        let mut connection = sqlite(self.pool)?.acquire().await?;
        // Deleted rows are overwritten in the file. Not possible inside of the transaction.
        sqlx::query("PRAGMA secure_delete = ON").execute(&mut *connection).await?;
        let mut tx = connection.begin().await?;
        sqlx::query(FIND).execute(&mut *tx).await?;
        let gone: i64 = sqlx::query_scalar("SELECT count(*) FROM gone_items").fetch_one(&mut *tx).await?;
        if gone > 0 {
            for statement in BLANK {
                sqlx::query(statement).execute(&mut *tx).await?;
            }
            for item_type in ItemType::ALL {
                let empty = content_hash(*item_type, "", "");
                sqlx::query(BLANK_ITEMS).bind(item_type.as_str()).bind(empty.as_str()).execute(&mut *tx).await?;
            }
        }
        sqlx::query("DROP TABLE temp.gone_items").execute(&mut *tx).await?;
        tx.commit().await?;
        count(gone)
    }
}

#[cfg(test)]
mod tests {
    use canonry_testkit::database::TestDatabase;

    use crate::Store;
    use crate::engine::migrations::tests::fill;

    /// A word in every text of the samples that is about an issue or pull request.
    const SAY: &str = "UPDATE items SET title = 'hunter2', body = 'hunter2', gone = NULL;
        UPDATE items SET changes = '{\"files\":[\"hunter2\"],\"diff\":\"\"}', base_branch = 'hunter2' WHERE type = 'pr';
        UPDATE intent_cards SET card = '\"hunter2\"' WHERE card IS NOT NULL;
        UPDATE judge_decisions SET reasoning = 'hunter2', answer = 'hunter2';
        UPDATE triage_records SET reasoning = 'hunter2';
        UPDATE close_run_items SET evidence = '{\"reasoning\":\"hunter2\"}',
            snapshot = '{\"source\":{\"content_hash\":\"hunter2\"},\"target\":{\"content_hash\":\"hunter2\"}}';
        UPDATE overrides SET note = 'hunter2';
        UPDATE outbox SET payload = '{\"comment\":{\"body\":\"hunter2\"}}', repo_id = 1, number = 1;
        UPDATE findings SET latest = '\"hunter2\"' WHERE repo_id = 1;
        UPDATE finding_sightings SET finding = '\"hunter2\"', excerpt = 'hunter2'
            WHERE finding_id IN (SELECT id FROM findings WHERE repo_id = 1);
        UPDATE finding_memories SET message = 'hunter2'
            WHERE finding_id IN (SELECT id FROM findings WHERE repo_id = 1);
        UPDATE suppression_log SET title = 'hunter2'
            WHERE finding_id IN (SELECT id FROM findings WHERE repo_id = 1);
        DELETE FROM jobs; DELETE FROM deliveries;
        INSERT INTO deliveries (id, event, action, repo, number, payload, state, received_at)
            SELECT state, 'issues', 'opened', 'tide/pool', 1, CAST('hunter2' AS BLOB), state, 1
            FROM (SELECT 'queued' AS state UNION ALL SELECT 'dead' UNION ALL SELECT 'done' UNION ALL SELECT 'ignored');
        INSERT INTO jobs (id, delivery_id, key, repo, kind, payload, state, attempts, run_after, created_at)
            VALUES (7, 'queued', 'tide/pool#1', 'tide/pool', 'webhook', 'null', 'queued', 0, 0, 0);";

    /// The bytes of the files are searched, because a deleted row can stay in a file.
    fn says(file: &std::path::Path) -> bool {
        let bytes = std::fs::read(file).expect("a file");
        bytes.windows(7).any(|window| window == b"hunter2")
    }

    #[tokio::test]
    async fn nothing_of_an_item_that_left_stays_in_the_file() {
        let database = TestDatabase::sqlite();
        fill(&database).await;
        database.execute(SAY).await;
        let now = "2026-02-01T00:00:00Z".parse().expect("valid");
        let store = Store::open(&database.url().parse().expect("valid"), now).await.expect("opens");
        let file = std::path::Path::new(database.url().strip_prefix("sqlite:").expect("a file")).to_owned();
        assert_eq!(store.maintenance().blank_gone_items().await.expect("blanked"), 0);
        let copy = file.with_extension("copy");
        store.maintenance().write_portable_copy(&copy).await.expect("writes");
        assert!(says(&copy), "what is still on GitHub stays");

        database.execute("UPDATE items SET gone = 'deleted'").await;
        assert!(store.maintenance().blank_gone_items().await.expect("blanked") >= 2);
        let again = store.maintenance().blank_gone_items().await.expect("blanked");
        assert!(again >= 2, "the items themselves stay");
        std::fs::remove_file(&copy).expect("it is ours");
        store.maintenance().write_portable_copy(&copy).await.expect("writes");
        assert!(!says(&copy), "the copy");
        let unfinished = store.deliveries().get("queued").await.expect("reads").expect("known");
        assert_eq!(
            (unfinished.state, unfinished.reason.as_deref()),
            (crate::DeliveryState::Ignored, Some("item_gone"))
        );
        store.disconnect().await;
        assert!(!says(&file), "the database");
    }

    /// The samples close #3 as a duplicate of #1, and say nothing about #2.
    const QUOTE: &str = "UPDATE items SET gone = NULL;
        UPDATE outbox SET repo_id = 1, number = 3, kind = 'comment', state = 'sent', payload = '{\"comment\":{\"body\":\"hunter2\"}}' WHERE id = 1;
        UPDATE outbox SET repo_id = 1, number = 3, kind = 'close', state = 'sent',
            payload = '{\"close\":{\"close_as\":\"pull\",\"comment\":\"hunter2\",\"comment_if_refused\":\"hunter2\"}}' WHERE id = 3;
        UPDATE outbox SET number = 2, payload = '{\"comment\":{\"body\":\"hunter2\"}}' WHERE id = 16101;";

    #[tokio::test]
    async fn comments_on_other_items_no_longer_quote_what_left() {
        let database = TestDatabase::sqlite();
        fill(&database).await;
        let now = "2026-02-01T00:00:00Z".parse().expect("valid");
        let store = Store::open(&database.url().parse().expect("valid"), now).await.expect("opens");
        let repo = store.repos().find(&"tide/pool".parse().expect("valid")).await.expect("reads").expect("known").id;
        let texts = async |number: &str| {
            let entries = store.outbox().of_item(repo, number.parse().expect("valid")).await.expect("reads");
            entries.iter().map(|entry| entry.payload.to_string()).collect::<Vec<_>>().join(" ")
        };
        database.execute(QUOTE).await;
        let grace = "INSERT INTO graces (id, repo_id, item_id, target_item_id, triage_id, content_version, began_at, due_at, state)
            VALUES (7, 1, 3, 1, 1, 1, 0, 1, 'waiting'); UPDATE items SET gone = 'deleted' WHERE id = 1";
        database.execute(grace).await;
        store.maintenance().blank_gone_items().await.expect("blanked");
        assert!(texts("3").await.contains("hunter2"), "the announced close is not cancelled yet");
        database.execute("UPDATE graces SET state = 'cancelled' WHERE id = 7").await;
        store.maintenance().blank_gone_items().await.expect("blanked");
        let blanked = texts("3").await;
        assert!(!blanked.contains("hunter2") && blanked.contains("\"close_as\":\"pull\""), "{blanked}");
        assert!(texts("2").await.contains("hunter2"), "it is about nothing that left");
    }
}
