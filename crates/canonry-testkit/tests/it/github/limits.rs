//! Primary and secondary rate limits.

use canonry_testkit::github::SecondaryLimit;
use serde_json::json;

use crate::github::setting::{ISSUES, small};

#[tokio::test]
async fn an_exhausted_budget_refuses_until_it_resets() {
    let (emulator, client) = small().await;
    emulator.world().leave_requests("maint", 1);
    let reset = (emulator.world().now.as_second() + 3_600).to_string();
    let last = client.get(ISSUES).await;
    assert_eq!((last.status, last.header("x-ratelimit-remaining")), (200, "0"));
    let refused = client.get(ISSUES).await;
    assert_eq!((refused.status, refused.header("x-ratelimit-remaining")), (403, "0"));
    assert_eq!(refused.header("x-ratelimit-reset"), reset);
    let overview = client.get("/rate_limit").await.json();
    assert_eq!(overview["resources"]["core"]["remaining"], 0);
    emulator.world().advance(3_600);
    let fresh = client.get(ISSUES).await;
    assert_eq!((fresh.status, fresh.header("x-ratelimit-remaining")), (200, "4999"));
}

#[tokio::test]
async fn writes_have_a_limit_of_their_own() {
    let (emulator, client) = small().await;
    emulator.world().rate.secondary =
        Some(SecondaryLimit { per_minute: 2, per_hour: 3, status: 429, retry_after: Some(30) });
    let mut statuses = Vec::new();
    for seconds in [0, 0, 0, 60, 60] {
        emulator.world().advance(seconds);
        let reply = client.write("POST", &format!("{ISSUES}/1/comments"), json!({ "body": "x" })).await;
        statuses.push((reply.status, reply.header("retry-after").to_owned()));
    }
    let (done, refused) = ((201, String::new()), (429, String::from("30")));
    assert_eq!(statuses, [done.clone(), done.clone(), refused.clone(), done, refused]);
    assert_eq!(client.get(ISSUES).await.status, 200);
}
