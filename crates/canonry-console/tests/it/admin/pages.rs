//! Every page for every role: who sees it, its contents, and that no stranger's text becomes markup.

use canonry_domain::GoneReason;
use reqwest::StatusCode;

use crate::reading::assert_harmless;
use crate::world::service::{DELIVERY, EVERYBODY, ServiceWorld};
use crate::world::{HOSTILE, Who, number};

/// The statuses for operator, maintainer, reader, stranger and a signed-out visitor.
type Answers = [u16; 5];

const ANYBODY: Answers = [200, 200, 200, 200, 200];
const SIGNED_IN: Answers = [200, 200, 200, 200, 303];
const READERS: Answers = [200, 200, 200, 404, 303];
const MAINTAINERS: Answers = [200, 200, 403, 404, 303];
const OPERATORS: Answers = [200, 403, 403, 403, 303];
/// Only operators see what belongs to no repository.
const HIDDEN: Answers = [200, 404, 404, 404, 303];
const ABSENT: Answers = [404, 404, 404, 404, 303];

fn pages(world: &ServiceWorld) -> Vec<(String, Answers)> {
    let repo = "/r/tide/pool";
    let of_repo = |tail: &str| format!("{repo}{tail}");
    vec![
        ("/help/keys".to_owned(), ANYBODY),
        ("/".to_owned(), SIGNED_IN),
        ("/?text=tide&trouble=1&after=nonsense".to_owned(), SIGNED_IN),
        ("/search?q=issue".to_owned(), SIGNED_IN),
        ("/search?q=issue&repo=tide/pool".to_owned(), READERS),
        ("/setup".to_owned(), OPERATORS),
        (repo.to_owned(), READERS),
        (of_repo("/items"), READERS),
        (of_repo("/items?type=issue&state=open&verdict=duplicate&cluster=yes"), READERS),
        (of_repo("/items?state=nonsense&before=nonsense"), READERS),
        (of_repo("/items?title=%3Cscript%3E&label=%22&author=%00"), READERS),
        (of_repo("/announced"), READERS),
        (of_repo("/announced?type=issue&late=1&after=nonsense"), READERS),
        (of_repo("/activity"), READERS),
        (of_repo("/activity?by=operator&text=pause&before=nonsense"), READERS),
        (of_repo("/settings"), READERS),
        (of_repo("/settings?kind=not_duplicate&by=%3Cscript%3E&item=8&rulings=nonsense&brakes=nonsense"), READERS),
        (of_repo("/jobs"), MAINTAINERS),
        (of_repo("/jobs?state=dead&kind=webhook"), MAINTAINERS),
        (of_repo("/deliveries"), MAINTAINERS),
        (of_repo("/deliveries?state=dead&event=issues"), MAINTAINERS),
        ("/jobs".to_owned(), OPERATORS),
        ("/jobs?state=dead&repo=tide/pool".to_owned(), OPERATORS),
        (format!("/jobs/{}", world.dead), MAINTAINERS),
        (format!("/jobs/{}", world.dead.get() + 1), HIDDEN),
        ("/jobs/999".to_owned(), ABSENT),
        ("/jobs/nonsense".to_owned(), ABSENT),
        ("/deliveries".to_owned(), OPERATORS),
        (format!("/deliveries/{DELIVERY}"), MAINTAINERS),
        (format!("/deliveries/{DELIVERY}?body=1"), MAINTAINERS),
        ("/deliveries/nonsense".to_owned(), ABSENT),
        ("/r/tide/absent".to_owned(), ABSENT),
        ("/r/tide/po%20ol".to_owned(), ABSENT),
    ]
}

#[tokio::test]
async fn every_page_is_for_whom_it_is_for() {
    let world = ServiceWorld::new().await;
    for (path, expected) in pages(&world) {
        for (who, status) in EVERYBODY.into_iter().zip(expected) {
            let answer = world.ask(who, &path).await;
            assert_eq!(answer.status().as_u16(), status, "{path} for {who:?}");
            let policy = answer.headers()["content-security-policy"].to_str().expect("text").to_owned();
            assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
            if status == 303 {
                let then = answer.headers()["location"].to_str().expect("text");
                assert!(then.starts_with("/sign-in?then=%2F"), "{path}: {then}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_that_a_stranger_wrote_becomes_part_of_a_page() {
    let world = ServiceWorld::new().await;
    let mut seen = 0;
    for (path, expected) in pages(&world) {
        if expected[0] != 200 {
            continue;
        }
        let page = world.page(Who::Operator, &path).await;
        seen += page.matches("alert(1)").count();
        assert_harmless(&page);
        assert_eq!(page.matches("<h1").count(), 1, "{path}");
    }
    assert!(seen > 100, "the hostile texts are shown, as texts: {seen}");
}

#[tokio::test]
async fn the_overview_tells_of_each_repository_in_a_line() {
    let world = ServiceWorld::new().await;
    let page = world.page(Who::Operator, "/").await;
    for told in [
        "tide/<strong>pool</strong>",
        ">59</a>",
        "grace",
        "1 failed",
        "1 mistake in settings",
        "1 job queued",
        "closes <time",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let reader = world.page(Who::Rita, "/").await;
    assert!(reader.contains("tide/<strong>pool</strong>") && !reader.contains("1 job queued"), "{reader}");
    // The list of jobs is for maintainers.
    let maintainer = world.page(Who::Mona, "/").await;
    for (page, is_linked) in [(&page, true), (&maintainer, true), (&reader, false)] {
        assert_eq!(page.contains("/r/tide/pool/jobs?state=dead"), is_linked, "{page}");
        assert!(page.contains("1 failed"), "{page}");
    }
    // Without an App only the operator sees the link to create one.
    assert!(page.contains(r#"href="/setup""#) && !maintainer.contains("/setup"), "{page}");
    let stranger = world.page(Who::Stranger, "/").await;
    assert!(stranger.contains("No repository for you yet") && !stranger.contains("tide"), "{stranger}");
}

#[tokio::test]
async fn the_overview_of_a_repository_answers_three_questions_and_offers_changes_to_maintainers_alone() {
    let world = ServiceWorld::new().await;
    let page = world.page(Who::Mona, "/r/tide/pool").await;
    for told in [
        "Likely duplicates are announced, then closed unless anybody objects.",
        "Needs you",
        "What Canonry did",
        "1 failed job",
        "1 mistake in .canonry.yml",
        "#7 Issue 7",
        "in 3 days",
        "93\u{a0}%",
        "Sync now",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    assert!(page.contains(r#"action="/r/tide/pool/pause""#), "{page}");
    let reader = world.page(Who::Rita, "/r/tide/pool").await;
    assert!(!reader.contains(r#"method="post" action="/r/"#), "{reader}");
}

#[tokio::test]
async fn what_went_wrong_is_told_in_the_readers_own_frame() {
    let world = ServiceWorld::new().await;
    let told = async |who: Who, path: &str| {
        let cookies = format!("canonry={}; canonry-theme=dark", who.session());
        let request = world.client.get(format!("{}{path}", world.address)).header("cookie", cookies);
        let answer = request.send().await.expect("answered");
        (answer.status(), answer.text().await.expect("a page"))
    };
    for (who, path, status) in [
        (Who::Rita, "/r/tide/pool/jobs", StatusCode::FORBIDDEN),
        (Who::Rita, "/r/tide/pool/issues/999", StatusCode::NOT_FOUND),
        (Who::Operator, "/nowhere", StatusCode::NOT_FOUND),
    ] {
        let (answered, page) = told(who, path).await;
        assert_eq!(answered, status, "{path}");
        assert!(page.contains(r#"data-theme="dark""#) && page.contains(r#"aria-label="Pages""#), "{page}");
        assert!(!page.contains(r#"href="/sign-in""#), "they are signed in: {page}");
    }
    let (answered, page) = told(Who::Nobody, "/nowhere").await;
    assert_eq!(answered, StatusCode::NOT_FOUND);
    assert!(page.contains(r#"data-theme="dark""#) && page.contains(r#"href="/sign-in""#), "{page}");
    assert!(!page.contains(r#"aria-label="Pages""#), "{page}");
}

#[tokio::test]
async fn items_are_filtered_and_paged_by_the_address() {
    let world = ServiceWorld::new().await;
    let items = |query: &str| format!("/r/tide/pool/items{query}");
    let first = world.page(Who::Rita, &items("")).await;
    assert_eq!(first.matches("<tr data-row>").count(), 50);
    assert!(first.contains("#61 A fix") && first.contains("before=12-issue"), "{first}");
    let second = world.page(Who::Rita, &items("?before=12-issue")).await;
    assert_eq!(second.matches("<tr data-row>").count(), 11);
    assert!(second.contains("First page") && !second.contains("Next page"), "{second}");
    let duplicates = world.page(Who::Rita, &items("?verdict=duplicate")).await;
    assert_eq!(duplicates.matches("<tr data-row>").count(), 1);
    assert!(duplicates.contains("#7 Issue 7") && duplicates.contains("/clusters/issue/3"), "{duplicates}");
    let none = world.page(Who::Rita, &items("?verdict=maybe_duplicate")).await;
    assert!(none.contains("No item matches these filters"), "{none}");
    let closed = world.page(Who::Rita, &items("?state=closed&type=issue")).await;
    assert_eq!(closed.matches("<tr data-row>").count(), 1);
    for (told, path) in [("7", "/r/tide/pool/issues/7"), ("%2361", "/r/tide/pool/pulls/61")] {
        let found = world.ask(Who::Rita, &items(&format!("?number={told}"))).await;
        assert_eq!(
            (found.status(), found.headers()["location"].to_str().expect("text")),
            (StatusCode::SEE_OTHER, path)
        );
    }
    let missing = world.page(Who::Rita, &items("?number=999")).await;
    assert!(missing.contains("There is no item 999 in this repository"), "{missing}");
}

#[tokio::test]
async fn settings_show_the_file_its_mistakes_and_the_rulings() {
    let world = ServiceWorld::new().await;
    let page = world.page(Who::Mona, "/r/tide/pool/settings").await;
    for told in [
        "One mistake",
        "line 5, column",
        "the section `mentions` uses its defaults",
        "is not a duplicate of",
        "@mona",
        "from GitHub",
        "/remove",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let reader = world.page(Who::Rita, "/r/tide/pool/settings").await;
    assert!(!reader.contains("/remove"), "{reader}");
    // GitHub shows collaborators only to people who may push, and the cost of models is shown only to them too.
    for kept in ["Maintainers", "Models, this month"] {
        assert!(page.contains(kept) && !reader.contains(kept), "{kept}: {reader}");
    }
    assert_eq!(
        world.store.duplicates().override_pages(world.repo.id, None, 9).await.expect("reads")[0].item,
        number(8)
    );
}

#[tokio::test]
async fn bodies_and_payloads_are_for_operators() {
    let world = ServiceWorld::new().await;
    let path = format!("/deliveries/{DELIVERY}?body=1");
    let whole = world.page(Who::Operator, &path).await;
    assert!(whole.contains("&#34;title&#34;") && whole.contains("alert(1)"), "{whole}");
    let maintainer = world.page(Who::Mona, &path).await;
    assert!(!maintainer.contains("&#34;title&#34;") && maintainer.contains(">Replay</button>"), "{maintainer}");
    assert!(HOSTILE.contains("alert(1)"));
    let marked = world.store.corpus().mark_gone(world.repo.id, number(7), GoneReason::Deleted, world.now).await;
    assert!(marked.expect("marked"));
    world.store.maintenance().blank_gone_items().await.expect("blanked");
    let emptied = world.page(Who::Operator, &path).await;
    assert!(emptied.contains("The body was deleted after the delivery was handled."), "{emptied}");
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_told_on_the_overview() {
    let world = ServiceWorld::new().await;
    let told = "Nothing is closed: this machine's clock is 10 minutes ahead of GitHub's.";
    assert!(!world.page(Who::Mona, "/").await.contains("Nothing is closed"), "both clocks agree");
    world.clock.advance(jiff::SignedDuration::from_mins(10));
    assert!(world.page(Who::Mona, "/").await.replace("&#39;", "'").contains(told));
}
