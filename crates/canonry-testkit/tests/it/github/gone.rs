//! Renames, transfers, deletions, conversions.

use serde_json::json;

use crate::github::setting::{ISSUES, REPO, small};

#[tokio::test]
async fn a_renamed_repository_redirects_by_id() {
    let (emulator, client) = small().await;
    let id = emulator.world().get(REPO).id;
    emulator.world().rename_repo(REPO, "acme/gadgets", "maint");
    let reply = client.get(&format!("{ISSUES}/1")).await;
    let place = format!("{}/repositories/{id}/issues/1", emulator.url());
    assert_eq!((reply.status, reply.header("location")), (301, place.as_str()));
    assert_eq!(reply.json()["url"], json!(place));
    let followed = client.get(&place).await.json();
    assert_eq!(followed["html_url"], "https://github.com/acme/gadgets/issues/1");
    let write = client.write("POST", &format!("{ISSUES}/1/comments"), json!({ "body": "x" })).await;
    assert_eq!(write.status, 307);
    assert!(emulator.world().comments("acme/gadgets", 1).is_empty());
}

#[tokio::test]
async fn each_way_to_go_has_its_answer() {
    let (emulator, client) = small().await;
    let place = {
        let mut world = emulator.world();
        world.comment(REPO, 2, "stranger", "Comes along");
        world.delete(REPO, 1, "maint");
        let number = world.transfer(REPO, 2, "maint", "acme/other");
        world.convert_to_discussion(REPO, 3, "maint");
        assert_eq!(world.comments("acme/other", number).len(), 1);
        format!("{}/repositories/{}/issues/{number}", emulator.url(), world.get("acme/other").id)
    };
    assert_eq!(client.get(&format!("{ISSUES}/1")).await.status, 410);
    let moved = client.get(&format!("{ISSUES}/2")).await;
    assert_eq!((moved.status, moved.header("location")), (301, place.as_str()));
    assert_eq!(client.get(&place).await.json()["title"], "Two");
    assert_eq!(client.get(&format!("{ISSUES}/3")).await.status, 404);
    assert_eq!(client.get(&format!("{ISSUES}?state=all")).await.json(), json!([]));
    assert_eq!(client.get(&format!("{ISSUES}/1/comments")).await.status, 410);
}
