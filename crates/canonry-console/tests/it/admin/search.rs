//! The search in the header: what it finds, and that it finds nothing its reader may not see.

use canonry_domain::{ItemRecord, ItemType};
use reqwest::StatusCode;

use crate::reading::{assert_harmless, words};
use crate::world::service::ServiceWorld;
use crate::world::{ISSUE, Who, number};

impl ServiceWorld {
    async fn found(&self, who: Who, query: &str) -> String {
        words(&self.page(who, &format!("/search?{query}")).await)
    }

    /// Another repository, which only operators may see, with an issue of the same number.
    async fn hide_another(&self) {
        let name = "secret/garden".parse().expect("a name");
        let hidden = self.store.repos().ensure(&name, self.now).await.expect("stored");
        let items = vec![ItemRecord::new(ISSUE, number(7), "Issue 7 of the garden")];
        self.store.corpus().upsert_items(&hidden, items, self.now).await.expect("taken in");
    }
}

#[tokio::test]
async fn items_are_found_by_number_and_by_words() {
    let world = ServiceWorld::new().await;
    for query in ["q=7", "q=%237", "q=%237&repo=tide/pool"] {
        let answer = world.ask(Who::Rita, &format!("/search?{query}")).await;
        let there = (answer.status(), answer.headers()["location"].to_str().expect("text").to_owned());
        assert_eq!(there, (StatusCode::SEE_OTHER, "/r/tide/pool/issues/7".to_owned()), "{query}");
    }
    let both = ItemRecord::new(ItemType::Pr, number(7), "The same number");
    world.store.corpus().upsert_items(&world.repo, vec![both], world.now).await.expect("taken in");
    let both = world.found(Who::Rita, "q=%237").await;
    assert!(both.contains("#7 The same number") && both.contains("pull request in tide/pool"), "{both}");
    // A number that no item has is searched as a word, and one that an item has if it is asked from the results.
    let code = ItemRecord::new(ISSUE, number(404_500), "The page answers 404 after noon");
    world.store.corpus().upsert_items(&world.repo, vec![code], world.now).await.expect("taken in");
    let code = world.found(Who::Rita, "q=404").await;
    assert!(code.contains("#404500 The page answers 404 after noon"), "{code}");
    let numbered = ItemRecord::new(ISSUE, number(404), "An item of its own");
    world.store.corpus().upsert_items(&world.repo, vec![numbered], world.now).await.expect("taken in");
    assert_eq!(world.ask(Who::Rita, "/search?q=404").await.headers()["location"], "/r/tide/pool/issues/404");
    let results = world.page(Who::Rita, "/search?q=404&from=results").await;
    assert!(words(&results).contains("#404 An item of its own") && words(&results).contains("#404500"), "{results}");
    assert!(results.contains("name=\"from\" value=\"results\""), "the form of the results says so: {results}");
    let none = world.found(Who::Rita, "q=%23405").await;
    assert!(none.contains("No item that you can see has this number."), "{none}");
    let none = world.found(Who::Rita, "q=405").await;
    assert!(none.contains("No item, finding or command contains all of these words."), "{none}");
    let fix = world.found(Who::Rita, "q=FIX+a").await;
    assert!(fix.contains("#61 A fix") && !fix.contains("#7 "), "{fix}");
    let none = world.found(Who::Rita, "q=nothing+of+the+kind&repo=tide/pool").await;
    assert!(none.contains("Nothing found") && none.contains("Search all repositories"), "{none}");
    let hostile = world.page(Who::Rita, "/search?q=%3Cscript%3Ealert(1)").await;
    assert_harmless(&hostile);
    assert!(world.found(Who::Rita, "").await.contains("words of a title"));
}

#[tokio::test]
async fn commands_are_found_by_what_they_do() {
    let world = ServiceWorld::new().await;
    let rows = world.found(Who::Rita, "q=plan+rows").await;
    assert!(rows.contains("canonry plan show Show a plan and its rows"), "{rows}");
    let undo = world.found(Who::Stranger, "q=undo").await;
    assert!(undo.contains("/canonry undo"), "{undo}");
}

#[tokio::test]
async fn nobody_finds_what_they_may_not_see() {
    let world = ServiceWorld::new().await;
    world.hide_another().await;
    let reader = world.ask(Who::Rita, "/search?q=7").await;
    assert_eq!(reader.headers()["location"], "/r/tide/pool/issues/7", "the other one is hidden");
    let operator = world.found(Who::Operator, "q=7").await;
    assert!(operator.contains("issue in secret/garden") && operator.contains("issue in tide/pool"), "{operator}");
    assert!(world.found(Who::Operator, "q=garden").await.contains("#7 Issue 7 of the garden"));
    for who in [Who::Rita, Who::Stranger] {
        let garden = world.found(who, "q=garden").await;
        assert!(garden.contains("Nothing found") && !garden.contains("secret"), "{garden}");
        for repo in ["secret/garden", "secret/nowhere"] {
            let answer = world.ask(who, &format!("/search?q=7&repo={repo}")).await;
            assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{who:?} {repo}");
        }
    }
    let stranger = world.found(Who::Stranger, "q=Issue").await;
    assert!(stranger.contains("Nothing found") || !stranger.contains("tide"), "{stranger}");
    let nobody = world.ask(Who::Nobody, "/search?q=7").await;
    assert_eq!(nobody.status(), StatusCode::SEE_OTHER);
    assert!(nobody.headers()["location"].to_str().expect("text").starts_with("/sign-in"), "{nobody:?}");
}

#[tokio::test]
async fn the_switcher_lists_what_its_reader_may_see() {
    let world = ServiceWorld::new().await;
    world.hide_another().await;
    let menu = async |who| {
        let request = world.get(who, "/repositories").header("hx-request", "true");
        words(&request.send().await.expect("answered").text().await.expect("a part of a page"))
    };
    assert_eq!(menu(Who::Operator).await, "secret/garden tide/pool All repositories");
    assert_eq!(menu(Who::Rita).await, "tide/pool All repositories");
    assert_eq!(menu(Who::Stranger).await, "All repositories");
    let plain = world.ask(Who::Rita, "/repositories?text=tide").await;
    assert_eq!(plain.headers()["location"], "/?text=tide", "without scripts there is the list");
}

#[tokio::test]
async fn the_navigation_counts_what_waits_for_its_reader() {
    let world = ServiceWorld::new().await;
    let side = async |who| {
        let page = world.page(who, "/r/tide/pool/items").await;
        let (_, side) = page.split_once("aria-label=\"Pages\"").expect("the navigation");
        words(side.split("</nav>").next().expect("its end"))
    };
    let maintainer = side(Who::Mona).await;
    assert_eq!(
        maintainer,
        "Triage 1 Overview Items Duplicates Plans Announced 1 Review Reviews Findings Patterns \
         Learning Thresholds Adjudicate Audits Admin 1 Jobs 1 Deliveries Activity Settings"
    );
    let reader = side(Who::Rita).await;
    assert!(reader.ends_with("Learning Thresholds Audits Admin Activity Settings"), "{reader}");
}
