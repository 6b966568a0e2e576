//! Webhooks with their jobs, nearly all of them done, and actions of people in the console.

use canonry_store::{DeliveryAction, JobKind, NewConsoleAction, NewDelivery, NewJob, PackedText};
use serde_json::json;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;

use crate::{BATCH, Failure, Filling, number};

const EVENTS: [&str; 4] = ["issues", "issue_comment", "pull_request", "push"];

pub(crate) async fn fill(filling: &Filling, url: &str) -> Result<(), Failure> {
    let Filling { store, repo, items, .. } = filling;
    let body = PackedText::pack(&format!(r#"{{"action":"opened","text":"{}"}}"#, "what somebody wrote ".repeat(60)));
    let payload = json!({ "event": "issues", "action": "opened" });
    let ids: Vec<i64> = (0..items * 2).collect();
    for batch in ids.chunks(BATCH) {
        let names: Vec<(String, String)> = batch
            .iter()
            .map(|at| (format!("{at:08x}-cc78-11e3-81ab-4c9367dc0958"), format!("repo/1#{}", at % items + 1)))
            .collect();
        let deliveries: Vec<NewDelivery<'_>> = batch
            .iter()
            .zip(&names)
            .map(|(at, (id, key))| NewDelivery {
                id,
                event: EVENTS[usize::try_from(at % 4).unwrap_or_default()],
                action: Some("opened"),
                repo: Some(&repo.name),
                number: Some(number(at % items + 1)),
                payload: &body,
                fate: match at % 10 {
                    0 => DeliveryAction::Ignored("Canonry does not act on it"),
                    _ => DeliveryAction::Job(NewJob {
                        key,
                        repo: Some(&repo.name),
                        kind: JobKind::Webhook,
                        payload: &payload,
                    }),
                },
            })
            .collect();
        let hours = (items * 2 - batch[0]) / 40;
        store.deliveries().accept_all(&deliveries, filling.ago(hours)).await?;
    }
    for at in 0..2_000 {
        let subject = format!("#{at}");
        let action =
            NewConsoleAction { by: None, is_operator: true, repo: Some(repo.id), action: "approve", subject: &subject };
        store.console().record_action(&action, filling.ago(2_000 - at)).await?;
    }
    end_jobs(url).await
}

/// Ends the jobs that workers would take hours to end one by one: of a thousand jobs one is queued and two have
/// failed.
async fn end_jobs(url: &str) -> Result<(), Failure> {
    let statements = [
        "UPDATE jobs SET state = CASE WHEN id % 1000 < 2 THEN 'dead' ELSE 'done' END, attempts = 1, begun_at = created_at,
            error = CASE WHEN id % 1000 < 2 THEN 'the embedder failed' END, finished_at = created_at + 900000
            WHERE id % 1000 <> 3",
        "UPDATE deliveries SET finished_at = received_at + 900000,
            state = COALESCE((SELECT CASE j.state WHEN 'dead' THEN 'dead' ELSE 'done' END FROM jobs j WHERE j.delivery_id = deliveries.id), 'done')
            WHERE state = 'queued' AND id IN (SELECT delivery_id FROM jobs WHERE state <> 'queued')",
    ];
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await?;
        for statement in statements {
            sqlx::query(statement).execute(&mut connection).await?;
        }
    } else {
        let mut connection = PgConnection::connect(url).await?;
        // Without statistics, which the server collects by itself within minutes, it would choose other plans.
        for statement in statements.into_iter().chain(["VACUUM ANALYZE"]) {
            sqlx::query(statement).execute(&mut connection).await?;
        }
    }
    Ok(())
}
