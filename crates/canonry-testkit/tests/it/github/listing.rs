//! Lists: cursors, filters, order, ETags.

use std::collections::BTreeSet;

use canonry_testkit::github::{CloseReason, Emulator, NewIssue, World};

use crate::client::Client;
use crate::github::setting::{ISSUES, REPO, small};

fn large_world(count: u64) -> World {
    let mut world = World::new();
    world.repo(REPO);
    world.token("maint-token", "maint");
    for number in 0..count {
        // Several issues share a second, as on a busy day.
        if number % 3 == 0 {
            world.advance(1);
        }
        world.open(REPO, "maint", NewIssue::new("A title", "A body of some length"));
    }
    world
}

async fn read_all(client: &Client, query: &str) -> (Vec<u64>, usize) {
    let mut numbers = Vec::new();
    let mut pages = 0;
    let mut next = Some(format!("{ISSUES}?{query}"));
    while let Some(url) = next {
        let reply = client.get(&url).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let page = reply.json();
        numbers.extend(page.as_array().expect("a list").iter().filter_map(|issue| issue["number"].as_u64()));
        pages += 1;
        next = reply.next();
    }
    (numbers, pages)
}

#[tokio::test]
async fn twenty_five_thousand_items_list_in_250_requests() {
    let emulator = Emulator::start(large_world(25_000)).await;
    let client = Client::new(&emulator, Some("maint-token"));
    let (numbers, pages) = read_all(&client, "state=all&sort=updated&direction=asc&per_page=100").await;
    assert_eq!(pages, 250);
    assert!(numbers.iter().copied().eq(1..=25_000));
}

#[tokio::test]
async fn what_changes_while_it_is_listed_comes_last() {
    let emulator = Emulator::start(large_world(30)).await;
    let client = Client::new(&emulator, Some("maint-token"));
    let first = client.get(&format!("{ISSUES}?state=all&sort=updated&direction=asc&per_page=10")).await;
    {
        let mut world = emulator.world();
        world.advance(60);
        world.close(REPO, 15, "maint", CloseReason::Completed);
        world.edit_title(REPO, 2, "maint", "Another title");
    }
    let (rest, _) = read_all(&client, first.next().expect("more").split_once('?').expect("a query").1).await;
    assert_eq!(rest.len(), 21, "twenty that were left and the one that came again");
    assert_eq!(rest[19..], [2, 15]);
    assert_eq!(rest.iter().collect::<BTreeSet<_>>().len(), 21);
}

#[tokio::test]
async fn filters_and_order() {
    let (emulator, client) = small().await;
    let since = {
        let mut world = emulator.world();
        world.advance(10);
        world.label(REPO, 2, "maint", "bug");
        world.advance(10);
        let since = world.now;
        world.close(REPO, 1, "maint", CloseReason::NotPlanned);
        since
    };
    assert_eq!(read_all(&client, "").await.0, [3, 2]);
    assert_eq!(read_all(&client, "state=closed").await.0, [1]);
    assert_eq!(read_all(&client, "state=all&sort=updated").await.0, [1, 2, 3]);
    assert_eq!(read_all(&client, "state=all&labels=BUG").await.0, [2]);
    assert_eq!(read_all(&client, &format!("state=all&since={since}")).await.0, [1]);
}

#[tokio::test]
async fn an_unchanged_list_costs_nothing() {
    let (emulator, client) = small().await;
    let first = client.get(ISSUES).await;
    let etag = first.header("etag").to_owned();
    let used = emulator.world().requests_used("maint");
    let again = client.send_with("GET", ISSUES, None, &[("if-none-match", &etag)]).await.expect("an answer");
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    assert_eq!(emulator.world().requests_used("maint"), used);
    emulator.world().comment(REPO, 1, "maint", "News");
    let changed = client.send_with("GET", ISSUES, None, &[("if-none-match", &etag)]).await.expect("an answer");
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn deep_pages_are_refused() {
    let mut world = large_world(250);
    world.deepest_offset = 200;
    let emulator = Emulator::start(world).await;
    let client = Client::new(&emulator, Some("maint-token"));
    assert_eq!(client.get(&format!("{ISSUES}?per_page=100&page=2")).await.status, 200);
    let refused = client.get(&format!("{ISSUES}?per_page=100&page=3")).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("cursor based pagination"));
    assert_eq!(read_all(&client, "per_page=100").await.1, 3);
}

#[tokio::test]
async fn comments_have_numbered_pages() {
    let (emulator, client) = small().await;
    for index in 0..5 {
        emulator.world().comment(REPO, 1, "maint", &format!("Comment {index}"));
    }
    let page = client.get(&format!("{ISSUES}/1/comments?per_page=2&page=2")).await;
    assert_eq!(page.json()[0]["body"], "Comment 2");
    let id = emulator.world().get(REPO).id;
    let base = format!("{}/repositories/{id}/issues/1/comments", emulator.url());
    assert_eq!(page.next().expect("more"), format!("{base}?per_page=2&page=3"));
    assert_eq!(client.get(&format!("{base}?per_page=2&page=3")).await.json()[0]["body"], "Comment 4");
}
