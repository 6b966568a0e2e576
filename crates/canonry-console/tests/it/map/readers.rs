//! Who sees the map and the stories, and that strangers' texts stay texts.

use canonry_domain::{DecisionStatus, Gone};
use canonry_store::NewDecision;
use reqwest::StatusCode;

use crate::map::setting::decision;
use crate::reading::assert_harmless;
use crate::setting::{HOSTILE, Setting, Who, number};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_and_strangers_do_not() {
    let setting = Setting::filled().await;
    setting.map(&[(1, 1), (2, 1)]).await;
    for path in ["/clusters", "/clusters?view=list", "/clusters/issue/1", "/issues/2"] {
        for who in [Who::Operator, Who::Mona, Who::Rita] {
            assert_eq!(setting.ask(who, path, false).await.status(), StatusCode::OK, "{who:?} {path}");
        }
        assert_eq!(setting.ask(Who::Stranger, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(setting.ask(Who::Nobody, path, false).await.status(), StatusCode::SEE_OTHER, "{path}");
    }
    for path in ["/issues/99", "/pulls/2", "/issues/x", "/clusters/issue/99", "/clusters/thing/1"] {
        assert_eq!(setting.ask(Who::Mona, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    // Deeds are offered to those alone who may do them.
    assert!(setting.page(Who::Mona, "/issues/2").await.contains("/items/issue/2/rule"));
    assert!(!setting.page(Who::Rita, "/issues/2").await.contains("/items/issue/2/rule"));
    assert_eq!(
        setting.ask(Who::Mona, "/clusters/issue/2", false).await.status(),
        StatusCode::SEE_OTHER,
        "a member leads to its cluster"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_texts_stay_texts() {
    let setting = Setting::filled().await;
    setting.map(&[(9, 9), (2, 9), (1, 1), (3, 1)]).await;
    setting
        .decide(NewDecision {
            reasoning: Some(HOSTILE.to_owned()),
            answer: Some(HOSTILE.to_owned()),
            ..decision(2, Some(9), DecisionStatus::Accepted, None, 0.9)
        })
        .await;
    assert_eq!(
        setting
            .send(Who::Mona, "/items/issue/9/rule", None, &[("kind", "canonical"), ("note", HOSTILE)])
            .await
            .status(),
        StatusCode::SEE_OTHER
    );
    for path in ["/issues/9", "/issues/2", "/clusters", "/clusters?view=list", "/clusters/issue/9"] {
        let page = setting.page(Who::Mona, path).await;
        assert_harmless(&page);
        assert!(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"), "{path} shows the text");
        assert!(page.contains("\\u{202e}"), "{path} shows what would turn the text around");
    }
    // A long text begins folded up.
    assert!(setting.page(Who::Mona, "/issues/9").await.contains("<summary>Show the text</summary>"));
    assert!(!setting.page(Who::Mona, "/issues/3").await.contains("<summary>Show the text</summary>"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_on_github_is_read_by_maintainers_alone() {
    let setting = Setting::filled().await;
    setting.map(&[(1, 1), (2, 1), (3, 1)]).await;
    setting.decide(decision(2, Some(1), DecisionStatus::Accepted, None, 0.9)).await;
    // A judge's words tell of both texts.
    let reasoning = "Both stop at noon, at the same line.";
    assert!(setting.page(Who::Rita, "/issues/2").await.contains(reasoning));
    let pages = ["/clusters", "/clusters?view=list", "/clusters/issue/1", "/issues/2"];
    for gone in [1, 3] {
        for path in pages {
            let told = setting.page(Who::Rita, path).await;
            // Lists name what stands for the cluster, not each of its members.
            let is_named = told.contains(&format!("noon ({gone})"));
            assert!(is_named || (gone == 3 && path.starts_with("/clusters") && !path.ends_with('1')), "{path} {gone}");
        }
        let marked = setting.store.mark_gone(setting.repo.id, number(gone), Gone::Deleted, setting.now).await;
        assert!(marked.expect("written"));
        for path in pages {
            let told = setting.page(Who::Rita, path).await;
            assert!(!told.contains(&format!("noon ({gone})")), "{path} tells of {gone}: {told}");
        }
        assert!(!setting.page(Who::Rita, "/issues/2").await.contains(reasoning));
        assert!(setting.page(Who::Mona, "/issues/2").await.contains(reasoning));
        let story = format!("/issues/{gone}");
        assert_eq!(setting.ask(Who::Rita, &story, false).await.status(), StatusCode::NOT_FOUND);
        let found = setting.ask(Who::Rita, &format!("/items?number={gone}"), false).await;
        assert_eq!(found.status(), StatusCode::OK, "it leads nowhere");
        let told = setting.page(Who::Mona, &story).await;
        assert!(told.contains(&format!("noon ({gone})")) && told.contains("deleted"), "{told}");
    }
}
