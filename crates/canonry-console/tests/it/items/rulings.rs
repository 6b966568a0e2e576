//! Rulings: whose count, and how they are removed.

use canonry_domain::{ItemRecord, ItemState, Login, OverrideKind, Verdict};
use canonry_store::JobFilter;
use reqwest::StatusCode;

use crate::reading::{flash_of, words};
use crate::world::items::{grace, record};
use crate::world::{ConsoleWorld, ISSUE, Who, number};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_changes_nothing() {
    let world = ConsoleWorld::filled().await;
    world.map(&[(1, 1), (2, 1)]).await;
    let grace = grace(2, 1, world.now, 5);
    assert!(world.store.close().begin_grace(world.repo.id, &grace).await.expect("begun"));
    let grace = world.store.close().graces_of_item(world.repo.id, ISSUE, number(2)).await.expect("reads").remove(0);
    let cancel = format!("/graces/{}/cancel", grace.id);
    let duplicate = [("kind", "duplicate"), ("other", "1")];
    let actions: [(&str, &[(&str, &str)]); 4] =
        [("/items/issue/2/rule", &duplicate), ("/rulings/1/remove", &[]), (&cancel, &[]), ("/clusters/recompute", &[])];
    let jobs = async || world.store.jobs().list(&JobFilter::default(), 99).await.expect("reads").len();
    for (path, fields) in actions {
        assert_eq!(world.send(Who::Rita, path, None, fields).await.status(), StatusCode::FORBIDDEN, "{path}");
        assert_eq!(world.send(Who::Stranger, path, None, fields).await.status(), StatusCode::NOT_FOUND, "{path}");
        // Without the session's own token even a maintainer is refused.
        assert_eq!(world.send(Who::Mona, path, Some(""), fields).await.status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert!(world.store.duplicates().overrides(world.repo.id, None).await.expect("reads").is_empty());
    assert!(world.store.console().actions(world.repo.id, 9).await.expect("reads").is_empty());
    assert_eq!(jobs().await, 0);

    let called_off = world.send(Who::Mona, &cancel, None, &[]).await;
    assert_eq!(called_off.status(), StatusCode::SEE_OTHER);
    assert_eq!(flash_of(&called_off), "Close cancelled. #2 stays open.");
    assert_eq!(world.send(Who::Mona, "/clusters/recompute", None, &[]).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(jobs().await, 2);
    assert!(world.page(Who::Rita, "/issues/2").await.contains("Will be closed as a duplicate of "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_maintainer_rules_and_takes_it_back() {
    let world = ConsoleWorld::filled().await;
    let rule =
        async |fields: &[(&str, &str)]| world.send(Who::Mona, "/items/issue/2/rule", None, fields).await.status();
    assert_eq!(rule(&[("kind", "duplicate"), ("other", "#1"), ("note", "the same stop")]).await, StatusCode::SEE_OTHER);
    let ruled = world.store.duplicates().overrides(world.repo.id, None).await.expect("reads");
    assert_eq!(
        (ruled.len(), ruled[0].kind, ruled[0].item, ruled[0].other),
        (1, OverrideKind::Duplicate, number(2), Some(number(1)))
    );
    assert_eq!(
        (ruled[0].note.as_deref(), ruled[0].created_by.as_ref().map(Login::as_str)),
        (Some("the same stop"), Some("mona"))
    );
    let page = world.page(Who::Rita, "/issues/2").await;
    assert!(page.contains("@mona ruled that it is a duplicate of ") && page.contains("the same stop"), "{page}");
    assert!(world.page(Who::Rita, "/clusters").await.contains("One new decision or ruling is"));
    // An impossible ruling is refused with a message.
    for fields in [
        [("kind", "duplicate"), ("other", "2")],
        [("kind", "duplicate"), ("other", "999")],
        [("kind", "not_duplicate"), ("other", "")],
        [("kind", "nonsense"), ("other", "1")],
    ] {
        assert_eq!(rule(&fields).await, StatusCode::BAD_REQUEST, "{fields:?}");
    }
    assert_eq!(rule(&[("kind", "canonical")]).await, StatusCode::SEE_OTHER);
    let id = ruled[0].id;
    assert_eq!(
        world.send(Who::Mona, &format!("/rulings/{id}/remove"), None, &[]).await.status(),
        StatusCode::SEE_OTHER
    );
    let left = world.store.duplicates().overrides(world.repo.id, None).await.expect("reads");
    assert_eq!(left.iter().map(|ruled| ruled.kind).collect::<Vec<_>>(), [OverrideKind::Canonical]);
    let page = world.page(Who::Rita, "/issues/2").await;
    assert!(
        page.contains("@mona ruled that it stays open as the canonical of its cluster.")
            && page.contains("ruling removed")
    );
    let actions = world.store.console().actions(world.repo.id, 9).await.expect("reads");
    // Recorded before it is done: also rulings that the store refused, but no incomplete form.
    let told: Vec<_> = actions.iter().rev().map(|one| (one.action.as_str(), one.subject.as_str())).collect();
    let (duplicate, removed) = (("rule", "issue/2 duplicate"), id.to_string());
    assert_eq!(
        told,
        [duplicate, duplicate, duplicate, ("rule", "issue/2 canonical"), ("remove ruling", removed.as_str())]
    );
    assert_eq!(
        world.send(Who::Mona, &format!("/rulings/{id}/remove"), None, &[]).await.status(),
        StatusCode::SEE_OTHER
    );
    let actions = world.store.console().actions(world.repo.id, 9).await.expect("reads");
    assert_eq!(actions.len(), 5, "nothing is taken back twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_the_verdict_a_pair_is_ruled_and_the_ruling_undone() {
    let world = ConsoleWorld::filled().await;
    let found = record(2, Verdict::Duplicate, "duplicate", Some(1));
    world.store.duplicates().write_triage_record(world.repo.id, &found, world.now).await.expect("written");
    let bar = async |who| {
        let page = world.page(who, "/issues/2").await;
        let bar = page.split("<section class=\"actionbar verdict").nth(1).expect("a verdict");
        words(bar.split("</section>").next().expect("its end"))
    };
    let offered = bar(Who::Mona).await;
    assert!(offered.contains("Same problem as #1") && offered.contains("Different from #1"), "{offered}");
    assert!(!offered.contains("Undo") && !bar(Who::Rita).await.contains("Same problem"), "{offered}");

    // Ruling that the two are different cancels the announced close.
    assert!(world.store.close().begin_grace(world.repo.id, &grace(2, 1, world.now, 5)).await.expect("begun"));
    assert!(bar(Who::Mona).await.contains("Cancel the close"));
    let rule = [("kind", "not_duplicate"), ("other", "1")];
    let ruled = world.send(Who::Mona, "/items/issue/2/rule", None, &rule).await;
    assert_eq!(flash_of(&ruled), "#2 and #1 are ruled different problems. The announced close is cancelled.");
    assert_eq!(world.store.jobs().list(&JobFilter::default(), 9).await.expect("reads").len(), 1);
    let offered = bar(Who::Mona).await;
    assert!(offered.contains("Same problem") && !offered.contains("Different from"), "{offered}");
    assert!(offered.contains("Undo the ruling"), "{offered}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_clusters_page_only_its_members_are_chosen_from() {
    let world = ConsoleWorld::filled().await;
    world.map(&[(1, 1), (2, 1)]).await;
    let rule = async |item: &str| {
        let fields = [("kind", "canonical"), ("item", item)];
        world.send(Who::Mona, "/items/issue/1/rule", None, &fields).await
    };
    let refused = rule("3").await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let words = refused.text().await.expect("a page");
    assert!(words.contains("#3 is not in the cluster of #1; rule it on its own page"), "{words}");
    assert!(world.store.duplicates().overrides(world.repo.id, None).await.expect("reads").is_empty());
    assert!(world.store.console().actions(world.repo.id, 9).await.expect("reads").is_empty());
    for member in ["#2", "1"] {
        assert_eq!(rule(member).await.status(), StatusCode::SEE_OTHER, "{member}");
    }
    let ruled = world.store.duplicates().overrides(world.repo.id, None).await.expect("reads");
    let mut items: Vec<_> = ruled.iter().map(|ruled| ruled.item).collect();
    items.sort();
    assert_eq!(items, [number(1), number(2)]);
    // On its own page every item can be ruled on.
    let own = world.send(Who::Mona, "/items/issue/3/rule", None, &[("kind", "canonical")]).await;
    assert_eq!(own.status(), StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_open_item_is_said_to_be_closed_later() {
    let world = ConsoleWorld::filled().await;
    let closed = ItemRecord { state: Some(ItemState::Closed), ..ItemRecord::new(ISSUE, number(31), "It stops again") };
    world.store.corpus().upsert_items(&world.repo, vec![closed], world.now).await.expect("taken in");
    let rule = async |item: i64, fields: &[(&str, &str)]| {
        flash_of(&world.send(Who::Mona, &format!("/items/issue/{item}/rule"), None, fields).await)
    };
    let duplicate = [("kind", "duplicate"), ("other", "1")];
    assert_eq!(
        rule(2, &duplicate).await,
        "#2 is ruled a duplicate of #1. Nothing is closed yet: the next close plan can close it."
    );
    assert_eq!(rule(31, &duplicate).await, "#31 is ruled a duplicate of #1.");
    let canonical = rule(31, &[("kind", "canonical")]).await;
    assert!(canonical.starts_with("#31 is ruled the canonical of its cluster. "), "{canonical}");
}
