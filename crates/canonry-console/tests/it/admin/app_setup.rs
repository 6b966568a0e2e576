//! Creating the GitHub App with one click.

use canonry_github::app_manifest;
use canonry_testkit::github::{App, TEST_APP_PUBLIC_KEY};
use reqwest::StatusCode;
use url::Url;

use crate::world::Who;
use crate::world::service::ServiceWorld;

fn with_address() -> impl FnOnce(&mut canonry_console::ConsoleParts) {
    // Not https: these tests use the cookies of a console on loopback.
    |parts| parts.public_url = "http://canonry.example".parse().ok()
}

#[tokio::test]
async fn the_page_offers_what_github_makes_an_app_from() {
    let world = ServiceWorld::with(with_address()).await;
    let answer = world.ask(Who::Operator, "/setup?organization=tide").await;
    let policy = answer.headers()["content-security-policy"].to_str().expect("text").to_owned();
    assert!(policy.contains(&format!("form-action 'self' {};", world.emulator.url())), "{policy}");
    let page = answer.text().await.expect("a page");
    let action = format!(r#"action="{}/organizations/tide/settings/apps/new?state="#, world.emulator.url());
    assert!(page.contains(&action), "{page}");
    let public: Url = "http://canonry.example".parse().expect("a URL");
    let manifest = app_manifest(&public).to_string().replace('"', "&#34;");
    assert!(page.contains(&manifest), "{page}");
    let odd = world.page(Who::Operator, "/setup?organization=a%2F..%2Fb").await;
    assert!(odd.contains("/organizations/a%2F..%2Fb/settings/apps/new"), "a name stays one part of the path: {odd}");
    let plain = ServiceWorld::new().await;
    assert!(plain.page(Who::Operator, "/setup").await.contains("CANONRY_PUBLIC_URL"));
}

#[tokio::test]
async fn the_secrets_of_a_new_app_are_shown_once_to_whoever_asked_for_it() {
    let world = ServiceWorld::with(with_address()).await;
    let id = 77;
    world.emulator.world().app = Some(App {
        id,
        slug: "canonry-of-tide".to_owned(),
        client_id: "Iv1.made".to_owned(),
        public_key: TEST_APP_PUBLIC_KEY.to_owned(),
    });
    let asked = world.ask(Who::Operator, "/setup").await;
    let cookies =
        asked.headers().get_all("set-cookie").into_iter().map(|value| value.to_str().expect("text").to_owned());
    let pending = cookies
        .filter_map(|one| one.split(';').next().map(str::to_owned))
        .find(|one| one.starts_with("canonry-github="));
    let pending = pending.expect("a secret");
    let page = asked.text().await.expect("a page");
    let (_, rest) = page.split_once("/settings/apps/new?state=").expect("an address");
    let state = rest.split('"').next().expect("a state").to_owned();
    let back = async |cookie: &str, state: &str, code: &str| {
        let request = world.client.get(format!("{}/setup/created?code={code}&state={state}", world.address));
        request.header("cookie", format!("canonry=operator; {cookie}")).send().await.expect("answered")
    };
    assert_eq!(back("", &state, "manifest-1").await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(back(&pending, "another", "manifest-1").await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(back(&pending, &state, "wrong").await.status(), StatusCode::BAD_GATEWAY);
    let made = back(&pending, &state, "manifest-1").await;
    assert_eq!((made.status(), made.headers()["cache-control"].to_str().expect("text")), (StatusCode::OK, "no-store"));
    let page = made.text().await.expect("a page");
    for told in [
        "CANONRY_APP_ID=77",
        "CANONRY_WEBHOOK_SECRET=the-webhook-secret",
        "CANONRY_OAUTH_CLIENT_ID=Iv1.made",
        "CANONRY_OAUTH_CLIENT_SECRET=the-client-secret",
        "PRIVATE KEY",
        "/apps/canonry-of-tide/installations/new",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
}
