//! The page that checks a draft: for people who signed in, and for strangers where the operator allows it.

use canonry_testkit::github::{Emulator, World, loopback_client, loopback_client_builder};
use reqwest::Client;
use reqwest::redirect::Policy;

use crate::place::Place;
use crate::service::Service;

const TOKEN: &str = "the-operators-own-token";
const PANIC: &str = "read-only database handle cannot begin an immediate transaction";

fn place() -> Place {
    let place = Place::new();
    let lines = format!(
        "{{\"number\":1,\"title\":\"Opening a <read-only> database panics\",\"body\":\"thread 'main' panicked at src/sqlite.rs:88:40: {PANIC}\"}}\n\
         {{\"number\":2,\"title\":\"Dark theme\",\"body\":\"The settings page is white.\"}}\n"
    );
    place.write("items.jsonl", lines);
    for name in ["octo/cat", "octo/secret"] {
        place.canonry(&["import", "--repo", name, "items.jsonl"]).succeeded();
        place.canonry(&["embed", "--repo", name]).succeeded();
    }
    place
}

fn serve(place: &Place) -> Service {
    let mut command =
        place.command(&["serve", "--listen", "127.0.0.1:0", "--workers", "0", "--public-check", "octo/cat"]);
    Service::spawn({
        command.env("CANONRY_ADMIN_TOKEN", TOKEN);
        command
    })
}

fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

async fn send(client: &Client, service: &Service, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
    let request = client.post(format!("{}{path}", service.url)).header("origin", &service.url).body(form(fields));
    let answer = request.send().await.expect("answers");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

async fn open(client: &Client, service: &Service, path: &str) -> (u16, String) {
    let answer = client.get(format!("{}{path}", service.url)).send().await.expect("answers");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

#[tokio::test]
async fn strangers_check_drafts_of_open_repositories_at_a_bounded_rate() {
    let place = place();
    let service = serve(&place);
    let client = loopback_client();
    let (status, page) = open(&client, &service, "/check/octo/cat").await;
    assert!(status == 200 && page.contains("Check a draft for octo/cat") && !page.contains("Sign out"), "{page}");
    for hidden in ["/check/octo/secret", "/check/octo/none", "/check/octo/%20"] {
        assert_eq!(open(&client, &service, hidden).await.0, 404, "{hidden}");
        assert_eq!(send(&client, &service, hidden, &[("title", "x")]).await.0, 404, "{hidden}");
    }
    let text = format!("Since today:\nthread 'main' panicked at src/sqlite.rs:88:40: {PANIC}");
    let draft = [("title", "Opening a read-only database panics"), ("body", text.as_str())];
    let (status, page) = send(&client, &service, "/check/octo/cat", &draft).await;
    assert!(status == 200 && page.contains("eported: #1"), "{page}");
    assert!(page.contains("/octo/cat/issues/1\">#1 Opening a &#60;read-only&#62; database panics</a>"), "{page}");
    assert!(!page.contains("File it on GitHub") && page.contains(">File it anyway</a>"), "{page}");
    assert!(page.contains("Compared with 2 issues, never synced."), "{page}");
    let (status, page) = send(&client, &service, "/check/octo/cat", &[("title", "Print labels on paper")]).await;
    assert!(
        status == 200 && page.contains("https://github.com/octo/cat/issues/new?title=Print+labels+on+paper"),
        "{page}"
    );
    // What was never synced may be known on GitHub.
    let gap = "The repository was never synced, so issues may be missing.";
    assert!(page.contains(gap) && !page.contains("File it on GitHub"), "{page}");
    let long = "猫".repeat(65_536);
    let (status, page) = send(&client, &service, "/check/octo/cat", &[("title", "Cats"), ("body", &long)]).await;
    assert!(status == 200 && page.contains("maxlength=\"65536\""), "{status}");
    let (status, page) = send(&client, &service, "/check/octo/cat", &[("title", " ")]).await;
    assert!(status == 400 && page.contains("Write a title first."), "{page}");
    // A page elsewhere cannot send drafts in a visitor's name.
    let elsewhere = client.post(format!("{}/check/octo/cat", service.url)).header("origin", "https://evil.example");
    assert_eq!(elsewhere.body(form(&draft)).send().await.expect("answers").status(), 403);
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(send(&client, &service, "/check/octo/cat", &[("title", "Print labels")]).await.0);
    }
    assert_eq!((statuses[0], statuses[9]), (200, 429), "{statuses:?}");
}

#[tokio::test]
async fn a_repository_that_is_not_public_is_closed_to_strangers() {
    let place = place();
    let mut world = World::new();
    for name in ["octo/cat", "octo/secret"] {
        world.repo(name);
    }
    world.get_mut("octo/secret").private = true;
    world.user("mona");
    world.token("t0ken", "mona");
    let emulator = Emulator::start(world).await;
    let named = ["octo/cat", "octo/secret"].map(|name| format!("--public-check={name}"));
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--workers", "0", &named[0], &named[1]]);
    command.env("CANONRY_ADMIN_TOKEN", TOKEN);
    command.env("CANONRY_GITHUB_API_URL", emulator.url()).env("GITHUB_TOKEN", "t0ken");
    let service = Service::spawn(command);
    let client = loopback_client();
    assert_eq!(open(&client, &service, "/check/octo/cat").await.0, 200);
    let (status, page) = send(&client, &service, "/check/octo/secret", &[("title", "Opening panics")]).await;
    assert!(status == 404 && !page.contains("read-only"), "{page}");
    // The answer is kept: a stranger who reloads the page costs no requests.
    assert_eq!(open(&client, &service, "/check/octo/secret").await.0, 404);
    assert_eq!(emulator.requests().iter().filter(|request| request.path == "/repos/octo/secret").count(), 1);
}

#[tokio::test]
async fn people_check_drafts_of_repositories_that_they_can_read() {
    let place = place();
    let service = serve(&place);
    let client = loopback_client_builder().redirect(Policy::none()).build().expect("a client");
    let request = client.post(format!("{}/sign-in", service.url)).header("origin", &service.url);
    let signed_in = request.body(form(&[("token", TOKEN), ("then", "/")])).send().await.expect("answers");
    let cookie =
        signed_in.headers()["set-cookie"].to_str().expect("text").split(';').next().expect("a cookie").to_owned();
    let path = format!("{}/r/octo/secret/check", service.url);
    let page = client.get(&path).header("cookie", &cookie).send().await.expect("answers").text().await.expect("text");
    let token = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    let fields = [("csrf", token), ("title", "Opening a read-only database panics"), ("body", PANIC)];
    let request = client.post(&path).header("cookie", &cookie).header("origin", &service.url).body(form(&fields));
    let page = request.send().await.expect("answers").text().await.expect("text");
    assert!(page.contains("href=\"/r/octo/secret/issues/1\""), "{page}");
    let without = loopback_client().post(&path).header("origin", &service.url).body(form(&fields));
    assert_ne!(without.send().await.expect("answers").status(), 200, "nobody is signed in");
}
