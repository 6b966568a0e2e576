//! Clusters: the map, the list, and one cluster's page.

use canonry_domain::{DecisionStatus, ItemRecord, ItemState, ItemType, TargetPolicy};
use canonry_store::{NewDecision, NewPlan, NewPlanRow, Representation};
use jiff::SignedDuration;
use serde_json::json;

use crate::reading::linked;
use crate::world::items::{RAW, decision, probability};
use crate::world::{ConsoleWorld, ISSUE, REPO, Who, number};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_map_and_the_list_show_the_same_clusters() {
    let world = ConsoleWorld::filled().await;
    let empty = world.page(Who::Rita, "/clusters?view=map").await;
    assert!(empty.contains("No duplicates found yet.") && !empty.contains("<svg class=\"treemap\""));
    world.map(&[(1, 1), (2, 1), (3, 1), (7, 8), (8, 8)]).await;
    world.decide(decision(2, Some(1), DecisionStatus::Accepted, None, 0.95)).await;
    world.decide(decision(3, Some(2), DecisionStatus::Accepted, None, 0.88)).await;
    let map = world.page(Who::Rita, "/clusters?view=map").await;
    assert_eq!(map.matches("<a class=\"tile ").count(), 2);
    assert!(
        map.contains("#1 ×3")
            && map.contains("lowest confidence 88\u{a0}%")
            && map.contains(">88\u{a0}%<")
            && map.contains("joined by people")
    );
    assert!(map.contains(">#8 ×2<"), "a duplicate of it is open");
    let closed = ItemRecord { state: Some(ItemState::Closed), ..ItemRecord::new(ISSUE, number(7), "Was closed") };
    world.store.corpus().upsert_items(&world.repo, vec![closed], world.now).await.expect("taken in");
    let map = world.page(Who::Rita, "/clusters?view=map").await;
    let tile = map.split("<a class=\"tile ").find(|tile| tile.contains(">#8 ×2")).expect("the tile");
    // Marked by a sign as well as by its colour.
    assert!(
        tile.starts_with("conf-people\"") && tile.contains(">#8 ×2 ✓<") && tile.contains("no open duplicates"),
        "{tile}"
    );
    let list = world.page(Who::Rita, "/clusters?min=3").await;
    assert!(!list.contains("<svg class=\"treemap\""), "the list comes first");
    assert!(list.contains("/clusters/issue/1\"") && !list.contains("/clusters/issue/8\""));
    assert!(world.page(Who::Rita, "/clusters?min=9").await.contains("No cluster matches these filters."));
    let cluster = world.page(Who::Rita, "/clusters/issue/1").await;
    assert!(cluster.contains("<svg class=\"edge-graph\"") && cluster.contains("canonical since an earlier run"));
    assert_eq!(cluster.matches("class=\"edge\"").count(), 2);
    assert!(!cluster.contains("is outdated"), "nothing changed since the map was made");
    // An edited text makes its edge stale, and the cluster falls apart.
    let edited =
        ItemRecord { body: Some("Another text".to_owned()), ..ItemRecord::new(ISSUE, number(3), "Another title") };
    world.store.corpus().upsert_items(&world.repo, vec![edited], world.now).await.expect("taken in");
    let cluster = world.page(Who::Rita, "/clusters/issue/1").await;
    assert!(
        cluster.contains("is outdated")
            && cluster.contains("class=\"edge stale\"")
            && cluster.contains("outdated: a text changed")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_cluster_that_no_page_loads_whole_nothing_untrue_is_said() {
    let world = ConsoleWorld::filled().await;
    let canonical = 720;
    let records =
        (101..=canonical).map(|of| ItemRecord::new(ISSUE, number(of), format!("The tide table stops ({of})")));
    world.store.corpus().upsert_items(&world.repo, records.collect(), world.now).await.expect("taken in");
    let edge = |of| decision(of, Some(canonical), DecisionStatus::Accepted, None, 0.95);
    let edges: Vec<NewDecision> = (101..canonical).map(edge).collect();
    world.store.judge().write_decisions(world.repo.id, &edges, world.now).await.expect("written");
    let cluster = async |first: i64| {
        world.map(&(first..=canonical).map(|of| (of, canonical)).collect::<Vec<_>>()).await;
        world.page(Who::Mona, &format!("/clusters/issue/{canonical}")).await
    };
    let large = cluster(101).await;
    assert!(!large.contains("is outdated") && large.contains("too large to explain here"), "{large}");
    assert!(!large.contains("Reason: "));
    let whole = cluster(221).await;
    assert!(whole.contains("Reason: ") && !whole.contains("is outdated"), "{whole}");
    // Every member is reached, page by page, and the canonical comes first whatever its number.
    let mut told: Vec<i64> = Vec::new();
    let mut page = cluster(101).await;
    loop {
        let members =
            page.split("id=\"members\"").nth(1).and_then(|rest| rest.split("</table>").next()).expect("a table");
        let listed: Vec<i64> = members
            .split(&format!("href=\"/r/{REPO}/issues/"))
            .skip(1)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        let edges = page.split("Decisions about this page").nth(1).expect("their edges");
        assert_eq!(edges.matches("the judge").count(), listed.iter().filter(|of| **of != canonical).count());
        assert!(!edges.contains("a text changed since"), "what an edge leads to is known, on whatever page it is");
        told.extend(listed);
        let Some(next) = linked(&page, "Next page") else { break };
        page = world.page(Who::Rita, &next).await;
        assert!(linked(&page, "First page").is_some_and(|first| first == format!("/clusters/issue/{canonical}")));
    }
    assert_eq!(told, std::iter::once(canonical).chain(101..canonical).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tile_leads_to_the_plan_that_closes_its_duplicates() {
    let world = ConsoleWorld::filled().await;
    world.map(&[(1, 1), (2, 1), (3, 1), (7, 8), (8, 8)]).await;
    let leads = |page: &str, canonical: &str| {
        let name = page.find(&format!(">{canonical} ×")).expect("the tile");
        let tile = page[..name].rsplit("<a class=\"tile ").next().expect("its link");
        let href = tile.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an address");
        (href.to_owned(), tile.starts_with("conf-people planned"), tile.contains("opens its row in plan "))
    };
    let cluster = format!("/r/{REPO}/clusters/issue/1");
    let map = world.page(Who::Rita, "/clusters?view=map").await;
    assert_eq!(leads(&map, "#1"), (cluster.clone(), false, false));
    let plan = NewPlan {
        representation: RAW,
        target_policy: TargetPolicy::CanonicalOnly,
        min_close: probability(0.9),
        config_hash: "c",
        run_id: "p",
    };
    let row = |of: i64, target: i64| NewPlanRow {
        item_type: ISSUE,
        number: number(of),
        target: Some(number(target)),
        skip: None,
        confidence: Some(probability(0.95)),
        evidence: json!({}),
        snapshot: json!({}),
    };
    let (store, repo, now) = (&world.store, world.repo.id, world.now);
    let long_ago = now - SignedDuration::from_hours(7 * 24 + 1);
    store.plans().create(repo, &plan, &[row(7, 8)], long_ago).await.expect("planned");
    let plan = store.plans().create(repo, &plan, &[row(2, 1), row(3, 1)], now).await.expect("planned");
    let map = world.page(Who::Rita, "/clusters?view=map").await;
    let at_row = format!("/r/{REPO}/plans/{plan}/rows/issue/2");
    assert_eq!(leads(&map, "#1"), (at_row.clone(), true, true));
    assert_eq!(leads(&map, "#8"), (format!("/r/{REPO}/clusters/issue/8"), false, false), "its plan is too old");
    assert!(world.told("/clusters").await.contains("plan&nbsp;1 has expired"));
    let list = world.page(Who::Rita, "/clusters").await;
    assert!(list.contains(&format!("href=\"{cluster}\">#1</a>")), "the cluster's own page is in the list");
    // The row exists, and the list and the cluster link to it too.
    let row = world.page(Who::Rita, &format!("/plans/{plan}/rows/issue/2")).await;
    assert!(row.contains("#2"), "{row}");
    for path in ["/clusters", "/clusters/issue/1"] {
        assert!(world.page(Who::Rita, path).await.contains(&at_row), "{path}");
    }
    // An excluded row is skipped; if no row is left, there is no link to a plan.
    let exclude = async |of: i64| {
        let noted = store.plans().set_approved(plan, ISSUE, &[number(of)], Some(false), None, now).await;
        assert_eq!(noted.expect("noted"), 1);
        leads(&world.page(Who::Rita, "/clusters?view=map").await, "#1")
    };
    assert_eq!(exclude(2).await, (format!("/r/{REPO}/plans/{plan}/rows/issue/3"), true, true));
    assert_eq!(exclude(3).await, (cluster, false, false));
    assert!(world.told("/clusters/issue/1").await.contains("has nothing left to close here"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_of_clusters_goes_on_where_it_ended_and_keeps_its_filters() {
    let world = ConsoleWorld::filled().await;
    let records = (101..=230).map(|of| ItemRecord::new(ISSUE, number(of), format!("Pair {of}")));
    world.store.corpus().upsert_items(&world.repo, records.collect(), world.now).await.expect("taken in");
    // 65 pairs, each with its even number as the canonical.
    world.map(&(101..=230).map(|of| (of, of + of % 2)).collect::<Vec<_>>()).await;
    let first = world.page(Who::Rita, "/clusters?type=issue&open=1").await;
    assert_eq!(first.matches("<tr data-row").count(), 50);
    assert!(linked(&first, "First page").is_none());
    let next = linked(&first, "Next page").expect("more");
    assert!(next.contains("?type=issue&open=1&after=2.132.issue"), "{next}");
    let second = world.page(Who::Rita, &next).await;
    assert_eq!(second.matches("<tr data-row").count(), 15);
    assert!(linked(&second, "Next page").is_none());
    assert_eq!(linked(&second, "First page").as_deref(), Some("/clusters?type=issue&open=1"));
    // By cards there are other clusters, and the filter says which of the two are shown.
    let mapping = [(number(1), number(1)), (number(2), number(1))].into();
    let (repo, intent) = (world.repo.id, Representation::Intent);
    world.store.duplicates().set_canonicals(repo, ItemType::Issue, intent, &mapping, world.now).await.expect("written");
    let cards = world.page(Who::Rita, "/clusters?source=intent").await;
    assert_eq!(cards.matches("<tr data-row").count(), 1);
    assert!(cards.contains("/clusters/issue/1?source=intent") && cards.contains("--source intent"), "{cards}");
    assert!(cards.contains("<option value=\"intent\" selected>"));
    let led = world.ask(Who::Rita, "/clusters/issue/2", false).await;
    assert_eq!(
        led.headers()["location"],
        format!("/r/{REPO}/clusters/issue/1?source=intent"),
        "its cards alone are in one"
    );
}
