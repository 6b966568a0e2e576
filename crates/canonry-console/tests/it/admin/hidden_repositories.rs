//! What strangers learn about hidden repositories, and how often GitHub is asked.

use std::sync::Arc;

use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_testkit::github::{Fault, TEST_APP_PRIVATE_KEY};
use jiff::SignedDuration;
use reqwest::StatusCode;

use crate::reading::words;
use crate::world::Who;
use crate::world::service::ServiceWorld;

/// Pages that a person who guesses names may request, each beside the page of a name that does not exist.
const PAIRS: [[&str; 2]; 4] = [
    ["/r/tide/pool", "/r/tide/none"],
    ["/r/tide/pool/settings", "/r/tide/none/settings"],
    ["/?text=poo", "/?text=pox"],
    ["/?trouble=1&text=poo", "/?trouble=1&text=pox"],
];

async fn nothing_is_told(world: &ServiceWorld, who: Who) {
    for [there, nowhere] in PAIRS {
        let (there, nowhere) = (world.ask(who, there).await, world.ask(who, nowhere).await);
        assert_eq!(there.status(), nowhere.status());
        let (there, nowhere) = (there.text().await.expect("a page"), nowhere.text().await.expect("a page"));
        assert_eq!(words(&there), words(&nowhere));
    }
}

#[tokio::test]
async fn a_repository_without_the_app_is_as_hidden_as_any() {
    let world = ServiceWorld::with(|parts| {
        let key = AppKey::new("4711", &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key");
        let options = ClientOptions {
            api: parts.github_api.clone(),
            clock: Arc::clone(&parts.clock) as Arc<dyn Clock>,
            ..ClientOptions::new(Auth::App(key))
        };
        parts.github = Some(GitHub::new(options).expect("a client"));
    })
    .await;
    world.emulator.world().add_app(4711, "canonry");
    for who in [Who::Stranger, Who::Mona] {
        nothing_is_told(&world, who).await;
    }
    let asked = world.emulator.requests().len();
    nothing_is_told(&world, Who::Stranger).await;
    assert_eq!(world.emulator.requests().len(), asked, "a no is believed");
    assert!(world.page(Who::Operator, "/").await.contains("pool"), "operators see everything");
}

#[tokio::test]
async fn while_github_fails_only_who_saw_a_repository_before_hears_of_it() {
    let world = ServiceWorld::new().await;
    world.page(Who::Rita, "/r/tide/pool").await;
    world.clock.advance(SignedDuration::from_mins(2));
    world.emulator.fault(Fault::on("GET", "/repos/tide/pool/**").always().answer(403));
    for who in [Who::Stranger, Who::Mona] {
        nothing_is_told(&world, who).await;
    }
    let told = world.ask(Who::Rita, "/r/tide/pool").await;
    assert_eq!(told.status(), StatusCode::BAD_GATEWAY);
    let told = words(&told.text().await.expect("a page"));
    assert!(told.contains("GitHub does not answer") && !told.contains("tide/pool"), "{told}");
    assert!(world.page(Who::Rita, "/?text=poo").await.contains("whether you may see 1 of"));
    world.emulator.clear_faults();
    world.clock.advance(SignedDuration::from_secs(10));
    world.page(Who::Mona, "/r/tide/pool").await;
}

/// The number of requests to GitHub about the repository's identity and about permissions.
fn asked(world: &ServiceWorld) -> (usize, usize) {
    let requests = world.emulator.requests();
    let count = |path: &str| requests.iter().filter(|request| request.path.starts_with(path)).count();
    let of_people = count("/repos/tide/pool/collaborators/");
    (count("/repos/tide/pool") - of_people, of_people)
}

#[tokio::test]
async fn github_is_asked_no_more_than_it_takes() {
    let world = ServiceWorld::new().await;
    for who in [Who::Mona, Who::Rita, Who::Mona, Who::Rita] {
        world.page(who, "/").await;
        world.page(who, "/r/tide/pool").await;
    }
    assert_eq!(asked(&world), (1, 2), "which repository it is, is the same for both");
    for _ in 0..3 {
        world.page(Who::Stranger, "/").await;
        assert_eq!(world.ask(Who::Stranger, "/r/tide/pool").await.status(), StatusCode::NOT_FOUND);
        world.clock.advance(SignedDuration::from_mins(3));
    }
    assert_eq!(asked(&world), (1, 3), "a no is believed for ten minutes");
    world.clock.advance(SignedDuration::from_mins(1));
    world.page(Who::Stranger, "/").await;
    assert_eq!(asked(&world), (1, 4));
}

#[tokio::test]
async fn one_browser_cannot_use_up_what_the_service_may_ask() {
    let world = ServiceWorld::new().await;
    for number in 0..250 {
        let name = format!("tide/hidden-{number}").parse().expect("a name");
        world.store.repos().ensure(&name, world.now).await.expect("stored");
    }
    let enough = "asked GitHub very often";
    assert!(!world.page(Who::Stranger, "/?text=nothing").await.contains(enough));
    world.page(Who::Rita, "/?text=pool").await;
    world.emulator.forget_requests();
    for page in 0..6 {
        world.page(Who::Stranger, &format!("/?after={}", page * 50)).await;
    }
    assert_eq!(world.emulator.requests().len(), 200);
    for path in ["/", "/?text=hidden", "/?text=nothing"] {
        assert!(world.page(Who::Stranger, path).await.contains(enough), "{path}");
    }
    assert_eq!(world.emulator.requests().len(), 200);
    // This does not affect other people.
    let others = world.page(Who::Rita, "/?text=pool").await;
    assert!(others.contains("/r/tide/pool") && !others.contains(enough), "{others}");
    world.clock.advance(SignedDuration::from_mins(10));
    assert!(!world.page(Who::Stranger, "/?text=nothing").await.contains(enough));
}

#[tokio::test]
async fn whoever_works_through_a_plan_uses_up_nobodys_questions() {
    let world = ServiceWorld::new().await;
    world.page(Who::Mona, "/r/tide/pool").await;
    let csrf = world.csrf(Who::Mona).await;
    for _ in 0..210 {
        let answer = world.send(Who::Mona, "/r/tide/pool/resume", Some(&csrf), &world.address, &[]).await;
        assert!(answer.status().is_redirection() || answer.status().is_success(), "{answer:?}");
    }
    assert!(!world.page(Who::Mona, "/?text=nothing").await.contains("asked GitHub very often"));
    world.page(Who::Rita, "/r/tide/pool").await;
}
