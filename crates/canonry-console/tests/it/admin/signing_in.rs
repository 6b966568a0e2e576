//! Signing in with the admin token and with GitHub, and signing out.

use canonry_console::AdminToken;
use canonry_github::Secret;
use canonry_testkit::github::OauthApp;
use jiff::SignedDuration;
use reqwest::{Response, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

use crate::world::service::ServiceWorld;
use crate::world::{ADMIN_TOKEN, Who};

/// The cookie of this name that an answer sets, as a browser sends it back.
fn cookie(answer: &Response, name: &str) -> Option<String> {
    let set = answer.headers().get_all("set-cookie").into_iter().map(|value| value.to_str().expect("text").to_owned());
    set.filter_map(|cookie| cookie.split(';').next().map(str::to_owned))
        .find(|pair| pair.starts_with(&format!("{name}=")))
}

fn location(answer: &Response) -> String {
    answer.headers()["location"].to_str().expect("text").to_owned()
}

async fn sign_in(world: &ServiceWorld, token: &str, then: &str) -> Response {
    let fields = [("token", token), ("then", then)];
    world.send(Who::Nobody, "/sign-in", None, &world.address, &fields).await
}

#[tokio::test]
async fn the_admin_token_makes_an_operator() {
    let world = ServiceWorld::new().await;
    let answer = sign_in(&world, &format!(" {ADMIN_TOKEN}\n"), "/jobs?state=dead").await;
    assert_eq!((answer.status(), location(&answer).as_str()), (StatusCode::SEE_OTHER, "/jobs?state=dead"));
    let header = answer.headers()["set-cookie"].to_str().expect("text").to_owned();
    assert!(header.contains("HttpOnly") && header.contains("SameSite=Lax"), "{header}");
    let session = cookie(&answer, "canonry").expect("a session");
    let jobs = world.client.get(format!("{}/jobs", world.address)).header("cookie", &session);
    let page = jobs.send().await.expect("answered").text().await.expect("a page");
    assert!(page.contains("operator"), "{page}");
    let (_, rest) = page.split_once(r#"name="csrf" value=""#).expect("a form");
    let csrf = rest.split('"').next().expect("a value");
    let out = world.client.post(format!("{}/sign-out", world.address)).header("cookie", &session);
    let out = out.header("origin", &world.address).body(format!("csrf={csrf}")).send().await.expect("answered");
    assert_eq!(
        (out.status(), location(&out).as_str(), cookie(&out, "canonry").as_deref()),
        (StatusCode::SEE_OTHER, "/sign-in", Some("canonry="))
    );
    let after = world.client.get(format!("{}/jobs", world.address)).header("cookie", &session);
    assert_eq!(after.send().await.expect("answered").status(), StatusCode::SEE_OTHER, "the session is over");
}

#[tokio::test]
async fn wrong_tokens_are_refused_and_then_not_looked_at() {
    let world = ServiceWorld::new().await;
    for _ in 0..10 {
        let answer = sign_in(&world, "wrong", "/").await;
        assert_eq!((answer.status(), cookie(&answer, "canonry")), (StatusCode::FORBIDDEN, None));
        assert!(answer.text().await.expect("a page").contains("That is not the admin token"));
    }
    let answer = sign_in(&world, ADMIN_TOKEN, "/").await;
    assert_eq!((answer.status(), cookie(&answer, "canonry")), (StatusCode::TOO_MANY_REQUESTS, None));
    world.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(sign_in(&world, ADMIN_TOKEN, "/").await.status(), StatusCode::SEE_OTHER);
    let empty = sign_in(&world, "", "/").await;
    assert_eq!(empty.status(), StatusCode::FORBIDDEN);
    let foreign = world.send(Who::Nobody, "/sign-in", None, "https://evil.example", &[("token", ADMIN_TOKEN)]).await;
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    let astray = sign_in(&world, ADMIN_TOKEN, "https://evil.example/").await;
    assert_eq!(location(&astray), "/", "nobody is led elsewhere");
}

#[tokio::test]
async fn a_stranger_locks_nobody_else_out() {
    let world = ServiceWorld::new().await;
    let from = async |peer: &str, token: &str| {
        let request = world.client.post(format!("{}/sign-in", world.address)).header("test-peer", peer);
        let request = request.header("origin", &world.address).body(format!("token={token}"));
        request.send().await.expect("answered").status()
    };
    for port in 1..=10 {
        assert_eq!(from(&format!("192.0.2.1:{port}"), "wrong").await, StatusCode::FORBIDDEN);
    }
    assert_eq!(from("192.0.2.1:11", ADMIN_TOKEN).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(from("192.0.2.2:1", ADMIN_TOKEN).await, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn another_admin_token_ends_operators_sessions() {
    let world = ServiceWorld::with(|parts| parts.admin_token = AdminToken::given(&Secret::new("another"))).await;
    let answer = world.ask(Who::Operator, "/jobs").await;
    assert_eq!((answer.status(), location(&answer).as_str()), (StatusCode::SEE_OTHER, "/sign-in?then=%2Fjobs"));
    let action = world.send(Who::Operator, "/jobs/retry", Some("x"), &world.address, &[]).await;
    assert_eq!(action.status(), StatusCode::UNAUTHORIZED);
    world.page(Who::Mona, "/r/tide/pool").await;
    assert_eq!(sign_in(&world, ADMIN_TOKEN, "/").await.status(), StatusCode::FORBIDDEN);
    let session = cookie(&sign_in(&world, "another", "/").await, "canonry").expect("a session");
    let jobs = world.client.get(format!("{}/jobs", world.address)).header("cookie", &session);
    assert_eq!(jobs.send().await.expect("answered").status(), StatusCode::OK);
}

/// Goes to GitHub and back as `person`; returns the answer of the callback address.
async fn by_github(world: &ServiceWorld, person: Option<&str>, keep_cookie: bool) -> Response {
    {
        let mut app = OauthApp::new("Iv1.console", "the-secret", &format!("{}/auth/github/callback", world.address));
        app.person = person.map(str::to_owned);
        world.emulator.world().oauth = Some(app);
    }
    let out = world.ask(Who::Nobody, "/auth/github?then=%2Fr%2Ftide%2Fpool").await;
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    let pending = cookie(&out, "canonry-github").expect("a secret");
    let there = world.client.get(location(&out)).header("user-agent", "browser").send().await.expect("answered");
    let back: Url = location(&there).parse().expect("a URL");
    let back = world.client.get(back);
    let back = if keep_cookie { back.header("cookie", pending) } else { back };
    back.send().await.expect("answered")
}

#[tokio::test]
async fn people_sign_in_by_way_of_github() {
    let world = ServiceWorld::new().await;
    let page = world.ask(Who::Nobody, "/sign-in?then=/r/tide/pool").await.text().await.expect("a page");
    assert!(page.contains("/auth/github?then=%2Fr%2Ftide%2Fpool"), "{page}");
    let answer = by_github(&world, Some("rita"), true).await;
    assert_eq!((answer.status(), location(&answer).as_str()), (StatusCode::SEE_OTHER, "/r/tide/pool"));
    let session = cookie(&answer, "canonry").expect("a session");
    let summary = world.client.get(format!("{}/r/tide/pool", world.address)).header("cookie", &session);
    let page = summary.send().await.expect("answered").text().await.expect("a page");
    assert!(page.contains("@rita") && !page.contains("Sync now"), "she may read: {page}");
    let signed_in = world.client.get(format!("{}/sign-in?then=/help/keys", world.address)).header("cookie", &session);
    assert_eq!(location(&signed_in.send().await.expect("answered")), "/help/keys");
    let stranger = by_github(&world, Some("stranger"), true).await;
    let session = cookie(&stranger, "canonry").expect("a session");
    let hidden = world.client.get(format!("{}/r/tide/pool", world.address)).header("cookie", &session);
    assert_eq!(hidden.send().await.expect("answered").status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_sign_in_that_was_not_begun_here_is_refused() {
    let world = ServiceWorld::new().await;
    for (answer, told) in [
        (by_github(&world, None, true).await, "The sign-in was declined"),
        (by_github(&world, Some("mona"), false).await, "was not started in this browser"),
        (world.ask(Who::Nobody, "/auth/github/callback?code=c&state=").await, "was not started in this browser"),
    ] {
        assert_eq!((answer.status(), cookie(&answer, "canonry")), (StatusCode::FORBIDDEN, None), "{told}");
        let page = answer.text().await.expect("a page");
        assert!(page.contains(told), "{told}: {page}");
    }
    let plain = ServiceWorld::with(|parts| parts.oauth = None).await;
    assert_eq!(plain.ask(Who::Nobody, "/auth/github").await.status(), StatusCode::NOT_FOUND);
    let page = plain.ask(Who::Nobody, "/sign-in").await.text().await.expect("a page");
    assert!(page.contains("CANONRY_OAUTH_CLIENT_ID") && !page.contains("/auth/github"), "{page}");
}

#[tokio::test]
async fn over_https_cookies_are_for_this_host_alone() {
    let world = ServiceWorld::with(|parts| parts.public_url = "https://canonry.example".parse().ok()).await;
    let answer = world.send(Who::Nobody, "/sign-in", None, "https://canonry.example", &[("token", ADMIN_TOKEN)]).await;
    let header = answer.headers()["set-cookie"].to_str().expect("text").to_owned();
    assert!(header.starts_with("__Host-canonry=") && header.ends_with("; Secure"), "{header}");
    assert_eq!(answer.headers()["strict-transport-security"], "max-age=31536000");
}

#[tokio::test]
async fn a_form_that_never_comes_is_not_waited_for() {
    let world = ServiceWorld::new().await;
    let host = world.address.trim_start_matches("http://");
    let mut slow = Vec::new();
    for path in ["/sign-in", "/theme"] {
        let mut stream = TcpStream::connect(host).await.expect("it listens");
        let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: same-origin\r\n");
        stream.write_all(format!("{head}Content-Length: 1000\r\n\r\ntoken=").as_bytes()).await.expect("sent");
        slow.push(stream);
    }
    // From here on only time passes.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    for mut stream in slow {
        let mut told = String::new();
        stream.read_to_string(&mut told).await.expect("it answers and hangs up");
        assert!(told.starts_with("HTTP/1.1 408 ") && told.contains("took too long to arrive"), "{told}");
    }
    assert!(begun.elapsed().as_secs() < 12, "{:?}", begun.elapsed());
}
