//! Lists continue where they ended, lead back to their first page, and show only the requested rows.

use canonry_domain::{ItemRecord, ItemType, Login, OverrideKind};
use canonry_store::{BrakeKind, NewConsoleAction, NewOverride};
use reqwest::StatusCode;

use crate::reading::{flash_of, linked, words};
use crate::world::items::{grace, ruling};
use crate::world::service::ServiceWorld;
use crate::world::{ISSUE, Who, number};

fn rows(page: &str) -> usize {
    page.matches("<tr data-row").count()
}

impl ServiceWorld {
    async fn list(&self, tail: &str) -> String {
        self.page(Who::Rita, &format!("/r/tide/pool{tail}")).await
    }

    async fn follow(&self, page: &str, words: &str) -> String {
        let tail = linked(page, words).unwrap_or_else(|| panic!("there is “{words}”"));
        self.list(&tail).await
    }

    async fn announce(&self, of: i64, hours: i64) {
        let grace = grace(of, 3, self.now, hours);
        assert!(self.store.close().begin_grace(self.repo.id, &grace).await.expect("begun"));
    }
}

#[tokio::test]
async fn no_link_names_a_repository_that_its_reader_may_not_see() {
    let world = ServiceWorld::new().await;
    for of in 0..60 {
        let name = format!("secret/part-{of:02}").parse().expect("a name");
        world.store.repos().ensure(&name, world.now).await.expect("stored");
    }
    let page = world.page(Who::Stranger, "/").await;
    assert!(!page.contains("secret"), "{page}");
    let (before, _) = page.split_once(r#"" data-key="n""#).expect("there are more");
    let (_, next) = before.rsplit_once("href=\"").expect("a link");
    assert!(next.strip_prefix("/?after=").is_some_and(|key| key.parse::<i64>().is_ok()), "{next}");
}

#[tokio::test]
async fn repositories_are_found_by_their_names_and_by_their_trouble() {
    let world = ServiceWorld::new().await;
    for name in ["quill/note", "quill/ink"] {
        world.store.repos().ensure(&name.parse().expect("a name"), world.now).await.expect("stored");
    }
    let overview = async |query: &str| words(&world.page(Who::Operator, &format!("/{query}")).await);
    let all = overview("").await;
    assert!(all.contains("tide/ pool") && all.contains("quill/ note") && all.contains("quill/ ink"), "{all}");
    let quill = overview("?text=QUILL+ink").await;
    assert!(quill.contains("quill/ ink") && !quill.contains("quill/ note") && !quill.contains("tide/ pool"), "{quill}");
    let trouble = overview("?trouble=1").await;
    assert!(trouble.contains("tide/ pool") && !trouble.contains("quill/"), "one has a failed job: {trouble}");
    let none = overview("?text=nobody").await;
    assert!(none.contains("No repository matches."), "{none}");
}

#[tokio::test]
async fn announced_closes_are_all_listed_and_cancelled() {
    let world = ServiceWorld::new().await;
    for of in 10..=60 {
        world.announce(of, of).await;
    }
    let summary = world.list("").await;
    let summary = words(&summary);
    assert!(summary.contains("Announced 52 ") && summary.contains("47 announced closes more"), "{summary}");
    let first = world.list("/announced").await;
    assert_eq!(rows(&first), 50);
    assert!(words(&first).find("#10 Issue 10") < words(&first).find("#11 Issue 11"), "the first to close comes first");
    let second = world.follow(&first, "Next page").await;
    assert_eq!(rows(&second), 2);
    assert!(words(&second).contains("#60 Issue 60") && linked(&second, "Next page").is_none(), "{second}");
    assert_eq!(world.follow(&second, "First page").await, first);
    assert_eq!(rows(&world.list("/announced?type=pr").await), 0);
    let grace =
        world.store.close().waiting_grace(world.repo.id, ISSUE, number(7)).await.expect("reads").expect("waits");
    world.store.close().note_grace(grace.id, Some("a maintainer's word")).await.expect("noted");
    let late = world.list("/announced?late=1").await;
    assert_eq!((rows(&late), words(&late).contains("a maintainer's word")), (1, true), "{late}");

    // A reader has no button; a maintainer returns to the list.
    let cancel = format!("/r/tide/pool/graces/{}/cancel", grace.id);
    assert!(!first.contains("/cancel\""), "{first}");
    let own = world.page(Who::Mona, "/r/tide/pool/announced?late=1").await;
    assert!(own.contains(&cancel) && own.contains(r#"name="then" value="/r/tide/pool/announced?late=1""#), "{own}");
    assert!(world.page(Who::Mona, "/r/tide/pool").await.contains("/cancel\""));
    let fields = [("then", "/r/tide/pool/announced?late=1")];
    assert_eq!(world.press(Who::Rita, &cancel, &fields).await.status(), StatusCode::FORBIDDEN);
    let answer = world.press(Who::Mona, &cancel, &fields).await;
    assert_eq!(answer.headers()["location"], "/r/tide/pool/announced?late=1");
    assert_eq!(flash_of(&answer), "Close cancelled. #7 stays open.");
    let list = world.page(Who::Mona, "/r/tide/pool/announced?late=1").await;
    assert!(list.contains("cancelled</span>") && !list.contains(&cancel), "once is enough: {list}");
    let elsewhere = world.press(Who::Mona, &cancel, &[("then", "//evil.example")]).await;
    assert_eq!(elsewhere.headers()["location"], "/", "nobody is led elsewhere");
}

#[tokio::test]
async fn every_activity_is_to_be_found() {
    let world = ServiceWorld::new().await;
    let mona: Login = "mona".parse().expect("a login");
    for of in 1..=60 {
        let (action, subject) = if of == 1 { ("rule", "issue/7 duplicate") } else { ("approve", "plan 3") };
        let action =
            NewConsoleAction { by: Some(&mona), is_operator: false, repo: Some(world.repo.id), action, subject };
        world.store.console().record_action(&action, world.now).await.expect("written");
    }
    for tail in ["", "/settings"] {
        let page = world.list(tail).await;
        let (_, actions) = page.split_once("<h2>Activity</h2>").expect("the section");
        assert_eq!(linked(actions, "All activity").as_deref(), Some("/activity"), "{tail}");
    }
    let first = world.list("/activity").await;
    assert_eq!(rows(&first), 50);
    let second = world.follow(&first, "Next page").await;
    assert_eq!((rows(&second), linked(&second, "Next page")), (11, None));
    assert!(second.contains("made a ruling") && second.contains("issue #7 duplicate"), "{second}");
    assert_eq!(world.follow(&second, "First page").await, first);
    for (query, expected) in [
        ("?by=MONA&text=rule", 1),
        ("?text=made+a+ruling", 1),
        ("?by=@mona&text=DUPLICATE+issue", 1),
        ("?by=operator", 1),
        ("?by=rita", 0),
        ("?text=plan", 50),
        ("?text=nothing", 0),
    ] {
        assert_eq!(rows(&world.list(&format!("/activity{query}")).await), expected, "{query}");
    }
    let filtered = world.list("/activity?text=plan").await;
    assert_eq!(rows(&world.follow(&filtered, "Next page").await), 9, "the filter is kept");
}

#[tokio::test]
async fn items_are_found_by_what_they_say() {
    let world = ServiceWorld::new().await;
    let item = ItemRecord {
        author: Some("mona".parse().expect("a login")),
        labels: Some(vec!["bug".to_owned()]),
        ..ItemRecord::new(ItemType::Pr, number(70), "Reader crashes")
    };
    world.store.corpus().upsert_items(&world.repo, vec![item], world.now).await.expect("taken in");
    for (query, expected) in [
        ("?title=CRASHES+reader", 1),
        ("?label=Bug", 1),
        ("?author=@Mona", 1),
        ("?author=mona&title=issue", 0),
        ("?title=issue", 50),
        ("?title=issue&state=closed", 1),
    ] {
        assert_eq!(rows(&world.list(&format!("/items{query}")).await), expected, "{query}");
    }
    let first = world.list("/items?title=issue").await;
    let second = world.follow(&first, "Next page").await;
    assert_eq!(rows(&second), 10, "the filter is kept");
    assert_eq!(world.follow(&second, "First page").await, first);
}

#[tokio::test]
async fn rulings_and_brakes_go_on_beside_each_other() {
    let world = ServiceWorld::new().await;
    let hubot: Login = "hubot".parse().expect("a login");
    for of in 10..=60 {
        let (kind, other) = if of == 10 { (OverrideKind::Canonical, None) } else { (OverrideKind::Duplicate, Some(3)) };
        let ruling = NewOverride { by: Some(&hubot), ..ruling(kind, of, other) };
        world.store.duplicates().add_override(world.repo.id, ruling, world.now).await.expect("ruled");
    }
    for of in 0..14 {
        let why = format!("pulled {of}");
        let (repo, now) = (world.repo.id, world.now);
        world.store.close().set_brake(repo, BrakeKind::Pause, None, &why, now).await.expect("set");
        world.store.close().lift_brake(repo, BrakeKind::Pause, None, now).await.expect("lifted");
    }
    let first = world.list("/settings").await;
    assert_eq!((rows(&first), first.matches("pulled ").count()), (50, 12));
    let second = world.follow(&first, "Next page <kbd>").await;
    assert_eq!(rows(&second), 2, "the rulings have the keys");
    assert_eq!(world.follow(&second, "First page").await, first);
    let (_, brakes) = first.split_once(r#"id="brakes""#).expect("the section");
    let older = world.follow(brakes, "Next page").await;
    assert_eq!((rows(&older), older.matches("pulled ").count()), (50, 2));
    for (query, expected) in [
        ("?kind=canonical", 1),
        ("?by=MONA", 1),
        ("?by=hubot&kind=duplicate", 50),
        ("?item=%238", 1),
        ("?item=3", 50),
        ("?item=999", 0),
        ("?kind=nonsense", 50),
    ] {
        assert_eq!(rows(&world.list(&format!("/settings{query}")).await), expected, "{query}");
    }
}

#[tokio::test]
async fn one_list_of_a_page_has_the_keys_and_p_is_its_first_page() {
    let world = ServiceWorld::new().await;
    let keys = words(&world.page(Who::Rita, "/help/keys").await);
    assert!(keys.contains("n next page p first page"), "{keys}");
    for path in [
        "/?after=1",
        "/jobs?before=99",
        "/deliveries?before=9-a",
        "/r/tide/pool/jobs?before=99",
        "/r/tide/pool/items?before=12-issue",
        "/r/tide/pool/announced?after=1-1",
        "/r/tide/pool/activity?before=99",
        "/r/tide/pool/plans?before=99",
        "/r/tide/pool/settings?rulings=99&brakes=99",
        "/r/tide/pool/learning?lessons=9-9&moves=99",
        "/r/tide/pool/patterns?after=99&hidden=9-9&cleared=99",
    ] {
        let page = world.page(Who::Operator, path).await;
        assert_eq!(page.matches(r#"data-key="p""#).count(), 1, "{path}: {page}");
        let (before, _) = page.split_once(r#"" data-key="p""#).expect("the key");
        let (_, address) = before.rsplit_once("href=\"").expect("a link");
        let (bare, query) = path.split_once('?').expect("a place in the list");
        let (own, _) = query.split_once('=').expect("its name");
        assert_eq!(address.split(['?', '#']).next(), Some(bare), "{path}");
        assert!(!address.contains(&format!("{own}=")), "{path}: {address}");
    }
}

#[tokio::test]
async fn a_list_goes_on_while_those_beside_it_stay_where_they_are() {
    let world = ServiceWorld::new().await;
    for (path, firsts) in [
        (
            "/r/tide/pool/learning?lessons=9-9&moves=99&taught=missed",
            ["?taught=missed&moves=99#outcomes", "?taught=missed&lessons=9-9#moves"].as_slice(),
        ),
        (
            "/r/tide/pool/patterns?after=99&title=x&cleared=98&hidden=9-9&why=area",
            [
                "?title=x&cleared=98&why=area&hidden=9-9\"",
                "?title=x&after=99&why=area&hidden=9-9#cleared",
                "?title=x&after=99&cleared=98&why=area#hidden",
            ]
            .as_slice(),
        ),
    ] {
        let page = world.page(Who::Operator, path).await.replace("&#38;", "&").replace("&amp;", "&");
        for first in firsts {
            assert!(page.contains(first), "{first}: {page}");
        }
    }
}

#[tokio::test]
async fn a_command_is_named_only_where_it_tells_the_same() {
    let world = ServiceWorld::new().await;
    let command = async |path: &str| {
        let page = words(&world.page(Who::Operator, path).await);
        let (_, rest) = page.rsplit_once("On the command line: ")?;
        Some(rest.split(" Keyboard shortcuts").next().unwrap_or_default().to_owned())
    };
    let repo = |tail: &str| format!("/r/tide/pool{tail}");
    for (path, expected) in [
        ("/".to_owned(), None),
        (repo(""), None),
        (repo("/announced"), None),
        (repo("/activity"), None),
        (repo("/items?type=pr&state=open"), Some("canonry export --repo tide/pool --type pr --state open")),
        (repo("/learning"), Some("canonry thresholds --repo tide/pool")),
        (repo("/learning?check=1"), Some("canonry thresholds --repo tide/pool --check")),
        (repo("/patterns"), Some("canonry feedback list --repo tide/pool")),
        (repo("/jobs?state=dead"), Some("canonry jobs list --state dead --repo tide/pool")),
        ("/deliveries?event=issues".to_owned(), Some("canonry deliveries list --event issues")),
        // Text from a link never becomes part of a shell command.
        ("/deliveries?event=%24%28rm%29&repo=a%3Bb".to_owned(), Some("canonry deliveries list")),
    ] {
        assert_eq!(command(&path).await.as_deref(), expected, "{path}");
    }
}
