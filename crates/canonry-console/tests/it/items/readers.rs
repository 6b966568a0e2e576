//! Who sees the map and items, and that strangers' texts stay texts.

use canonry_domain::{DecisionStatus, GoneReason};
use canonry_store::NewDecision;
use reqwest::StatusCode;

use crate::reading::assert_harmless;
use crate::world::items::decision;
use crate::world::{ConsoleWorld, HOSTILE, Who, number};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_and_strangers_do_not() {
    let world = ConsoleWorld::filled().await;
    world.map(&[(1, 1), (2, 1)]).await;
    for path in ["/clusters", "/clusters?view=list", "/clusters/issue/1", "/issues/2"] {
        for who in [Who::Operator, Who::Mona, Who::Rita] {
            assert_eq!(world.ask(who, path, false).await.status(), StatusCode::OK, "{who:?} {path}");
        }
        assert_eq!(world.ask(Who::Stranger, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(world.ask(Who::Nobody, path, false).await.status(), StatusCode::SEE_OTHER, "{path}");
    }
    for path in ["/issues/99", "/pulls/2", "/issues/x", "/clusters/issue/99", "/clusters/thing/1"] {
        assert_eq!(world.ask(Who::Mona, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    // Actions are offered only to people who may do them.
    assert!(world.page(Who::Mona, "/issues/2").await.contains("/items/issue/2/rule"));
    assert!(!world.page(Who::Rita, "/issues/2").await.contains("/items/issue/2/rule"));
    assert_eq!(
        world.ask(Who::Mona, "/clusters/issue/2", false).await.status(),
        StatusCode::SEE_OTHER,
        "a member leads to its cluster"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_texts_stay_texts() {
    let world = ConsoleWorld::filled().await;
    world.map(&[(9, 9), (2, 9), (1, 1), (3, 1)]).await;
    world
        .decide(NewDecision {
            reasoning: Some(HOSTILE.to_owned()),
            answer: Some(HOSTILE.to_owned()),
            ..decision(2, Some(9), DecisionStatus::Accepted, None, 0.9)
        })
        .await;
    assert_eq!(
        world.send(Who::Mona, "/items/issue/9/rule", None, &[("kind", "canonical"), ("note", HOSTILE)]).await.status(),
        StatusCode::SEE_OTHER
    );
    for path in ["/issues/9", "/issues/2", "/clusters", "/clusters?view=list", "/clusters/issue/9"] {
        let page = world.page(Who::Mona, path).await;
        assert_harmless(&page);
        assert!(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"), "{path} shows the text");
        assert!(page.contains("\\u{202e}"), "{path} shows what would turn the text around");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_on_github_is_read_by_maintainers_alone() {
    let world = ConsoleWorld::filled().await;
    world.map(&[(1, 1), (2, 1), (3, 1)]).await;
    world.decide(decision(2, Some(1), DecisionStatus::Accepted, None, 0.9)).await;
    // A judge's reasoning quotes both texts.
    let reasoning = "Both stop at noon, at the same line.";
    assert!(world.page(Who::Rita, "/issues/2").await.contains(reasoning));
    let pages = ["/clusters", "/clusters?view=list", "/clusters/issue/1", "/issues/2"];
    for gone in [1, 3] {
        for path in pages {
            let told = world.page(Who::Rita, path).await;
            // Lists name the canonical of a cluster, not each of its members.
            let is_named = told.contains(&format!("noon ({gone})"));
            assert!(is_named || (gone == 3 && path.starts_with("/clusters") && !path.ends_with('1')), "{path} {gone}");
        }
        let marked = world.store.corpus().mark_gone(world.repo.id, number(gone), GoneReason::Deleted, world.now).await;
        assert!(marked.expect("written"));
        for path in pages {
            let told = world.page(Who::Rita, path).await;
            assert!(!told.contains(&format!("noon ({gone})")), "{path} tells of {gone}: {told}");
        }
        assert!(!world.page(Who::Rita, "/issues/2").await.contains(reasoning));
        assert!(world.page(Who::Mona, "/issues/2").await.contains(reasoning));
        let page = format!("/issues/{gone}");
        assert_eq!(world.ask(Who::Rita, &page, false).await.status(), StatusCode::NOT_FOUND);
        let found = world.ask(Who::Rita, &format!("/items?number={gone}"), false).await;
        assert_eq!(found.status(), StatusCode::OK, "it leads nowhere");
        let told = world.page(Who::Mona, &page).await;
        assert!(told.contains(&format!("noon ({gone})")) && told.contains("deleted"), "{told}");
    }
}
