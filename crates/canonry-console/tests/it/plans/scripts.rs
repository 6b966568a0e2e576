//! With scripts: which part of the page is replaced, and how a refusal is shown.

use reqwest::StatusCode;

use crate::reading::{csrf_of, flash_of};
use crate::world::Who;
use crate::world::plans::PlanWorld;

#[tokio::test]
async fn with_scripts_too_a_refusal_is_seen() {
    let world = PlanWorld::new().await;
    let refused = world.send(Who::Mona, &world.path("/rows"), &[("word", "approve")], true).await;
    assert_eq!(refused.status(), StatusCode::OK);
    let part = refused.text().await.expect("a part");
    assert!(
        part.starts_with("<div id=\"review\" class=\"plan\">") && part.contains("Select at least one row first."),
        "{part}"
    );
    // An error that no plan page can show replaces the page.
    let csrf = csrf_of(&world.page(Who::Mona, "/plans").await);
    for (csrf, word, words) in
        [(csrf.as_str(), "burn", "is not an action"), ("forged", "approve", "does not belong to your session")]
    {
        let fields = [("word", word), ("item", "issue/2")];
        let answer = world.send_with(Who::Mona, &world.path("/rows"), csrf, &fields, true).await;
        let told = ["hx-retarget", "hx-reselect", "hx-reswap"].map(|name| answer.headers()[name].clone());
        assert_eq!((answer.status(), told.map(|told| told == "#main")), (StatusCode::OK, [true, true, false]));
        let page = answer.text().await.expect("a page");
        assert!(page.contains("<main id=\"main\"") && page.contains(words), "{page}");
    }
    assert!(world.words().await.iter().all(|(_, word, _)| word.is_none()));
}

#[tokio::test]
async fn whoever_lost_the_session_is_led_to_the_sign_in_page() {
    let world = PlanWorld::new().await;
    let here = format!("/sign-in?then=%2Fr%2Ftide%2Fpool%2Fplans%2F{}%3Fshow%3Dundecided", world.plan);
    for path in [world.path("/progress"), world.path("/rows/issue/3"), "/plans/making".to_owned()] {
        let answer = world.ask(Who::Nobody, &path, true).await;
        assert_eq!(answer.headers()["hx-redirect"], here, "{path}");
        assert_eq!((answer.status(), answer.text().await.expect("a text").as_str()), (StatusCode::UNAUTHORIZED, ""));
    }
    let fields = [("word", "approve"), ("item", "issue/2")];
    let answer = world.send_with(Who::Nobody, &world.path("/rows"), "none", &fields, true).await;
    assert_eq!(answer.headers()["hx-redirect"], here);
    assert!(flash_of(&answer).contains("nothing was changed"), "{}", flash_of(&answer));
    // Without scripts the page itself redirects.
    let answer = world.ask(Who::Nobody, &world.path("/progress"), false).await;
    assert_eq!((answer.status(), answer.headers().get("hx-redirect")), (StatusCode::SEE_OTHER, None));
}

#[tokio::test]
async fn the_list_follows_how_the_texts_are_shown() {
    let world = PlanWorld::new().await;
    let page = world.page(Who::Rita, &world.path("/rows/issue/3")).await;
    let other = page.split("data-key=\"d\"").nth(1).and_then(|rest| rest.split('>').next()).expect("a link");
    assert!(other.contains("view=lines") && other.contains("hx-target=\"#review\""), "{other}");
    let part = world.swap(Who::Rita, &world.path("/rows/issue/3?view=lines"), "review").await;
    assert!(
        part.starts_with("<div id=\"review\" class=\"plan has-row\">") && part.contains("<del>What I did in 3"),
        "{part}"
    );
    let links: Vec<&str> =
        part.split("data-opens hx-get=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!((links.len(), links.iter().all(|link| link.ends_with("?view=lines"))), (3, true), "{links:?}");
    assert!(part.contains("id=\"row-issue-3\" tabindex=\"-1\" data-current aria-current=\"true\">"), "{part}");
    // Selected rows stay selected until they are decided.
    let kept = r#"id="choose-row-issue-2" hx-preserve"#;
    assert!(world.swap(Who::Mona, &world.path("/rows/issue/3?view=lines"), "review").await.contains(kept));
    let fields = [("word", "approve"), ("item", "issue/3")];
    let said = world.send(Who::Mona, &world.path("/rows"), &fields, true).await.text().await.expect("a part");
    assert!(said.contains(r#"id="choose-row-issue-2""#) && !said.contains("hx-preserve"), "{said}");
    let pair = world.swap(Who::Rita, &world.path("/rows/issue/2?view=lines"), "pair").await;
    assert!(pair.starts_with("<section id=\"pair\"") && pair.contains("<del>What I did in 2"), "{pair}");
}
