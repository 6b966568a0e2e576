//! Tests the App: installation tokens are created once, renewed in time, and replaced when revoked.

use canonry_github::{AppKey, Auth, ClientOptions, GitHub, GitHubError, Secret, WriteError};
use canonry_testkit::github::{Fault, TEST_APP_PRIVATE_KEY, World};

use crate::github::emulated::{REPO, Setting, number, open_issues, repo};

const TOKENS: &str = "/app/installations/*/access_tokens";

fn key() -> Auth {
    Auth::App(AppKey::new("4711", &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key"))
}

fn install(world: &mut World) {
    world.add_app(4711, "canonry");
    world.install_app("acme", &[("issues", "write"), ("metadata", "read"), ("contents", "read")]);
    open_issues(world, 1);
}

fn tokens_made(setting: &Setting) -> usize {
    setting.emulator.requests().iter().filter(|request| request.path.ends_with("/access_tokens")).count()
}

#[tokio::test]
async fn one_token_serves_an_hour_and_is_renewed_before_it_ends() {
    let setting = Setting::with(install, key(), |_| {}).await;
    for _ in 0..3 {
        setting.github.issue(&repo(), number(1)).await.expect("read");
    }
    assert_eq!(tokens_made(&setting), 1);
    setting.emulator.world().advance(50 * 60);
    setting.github.issue(&repo(), number(1)).await.expect("read");
    assert_eq!(tokens_made(&setting), 1);
    setting.emulator.world().advance(6 * 60);
    setting.github.issue(&repo(), number(1)).await.expect("read");
    assert_eq!(tokens_made(&setting), 2);
}

#[tokio::test]
async fn many_tasks_make_one_token() {
    let setting = Setting::with(install, key(), |_| {}).await;
    let reads = (0..8).map(|_| {
        let github = setting.github.clone();
        async move { github.issue(&repo(), number(1)).await }
    });
    for read in futures_util::future::join_all(reads).await {
        read.expect("read");
    }
    assert_eq!(tokens_made(&setting), 1);
}

#[tokio::test]
async fn a_revoked_token_is_replaced_once_for_reads_and_writes() {
    let setting = Setting::with(install, key(), |_| {}).await;
    setting.github.issue(&repo(), number(1)).await.expect("read");
    setting.emulator.world().tokens.clear();
    setting.github.issue(&repo(), number(1)).await.expect("read with a new token");
    assert_eq!(tokens_made(&setting), 2);
    setting.emulator.world().tokens.clear();
    let made = setting.github.create_comment(&repo(), number(1), "hello").await.expect("written with a new token");
    assert_eq!(made.user.map(|user| user.login).as_deref(), Some("canonry[bot]"));
    assert_eq!((tokens_made(&setting), setting.emulator.world().comments(REPO, 1).len()), (3, 1));

    setting.emulator.fault(Fault::on("GET", "/repos/**").always().answer(401));
    let error = setting.github.issue(&repo(), number(1)).await.expect_err("refused again and again");
    assert!(matches!(error, GitHubError::Unauthorized { .. }), "{error:?}");
}

#[tokio::test]
async fn an_app_knows_its_login_and_its_deliveries() {
    let setting = Setting::with(install, key(), |_| {}).await;
    assert_eq!(setting.github.own_login().await.expect("a login").to_string(), "canonry[bot]");
    assert_eq!(
        setting.github.app_deliveries().all().await.expect("a list").len(),
        setting.emulator.world().deliveries.len()
    );
}

#[tokio::test]
async fn a_token_of_an_installation_knows_its_login_too() {
    let setting = Setting::with(install, key(), |_| {}).await;
    let token = setting.github.git_token(&repo()).await.expect("a token");
    let options =
        ClientOptions { api: setting.emulator.url().parse().expect("a URL"), ..ClientOptions::new(Auth::Token(token)) };
    let github = GitHub::new(options).expect("a client");
    assert_eq!(github.own_login().await.expect("a login").to_string(), "canonry[bot]");
    setting.emulator.fault(Fault::on("POST", "/graphql").answer(403));
    insta::assert_snapshot!(github.own_login().await.expect_err("nameless").to_string(), @"the GitHub client cannot start: GitHub does not say whose token GITHUB_TOKEN is (The emulator was told to fail); set it to a personal access token, or set CANONRY_APP_ID and CANONRY_APP_PRIVATE_KEY");
}

#[tokio::test]
async fn a_repository_without_the_app_is_told() {
    let setting = Setting::with(|world| world.add_app(4711, "canonry"), key(), |_| {}).await;
    let error = setting.github.repo(&repo()).await.expect_err("not installed");
    insta::assert_snapshot!(error.to_string(), @"the GitHub App is not installed on acme/widgets; install it there, or check the name");
    let write = setting.github.create_comment(&repo(), number(1), "hello").await.expect_err("not installed");
    assert!(matches!(write, WriteError::NotSent(GitHubError::NotInstalled { .. })), "{write:?}");
}

#[tokio::test]
async fn a_token_that_cannot_be_made_is_tried_again() {
    let setting = Setting::with(install, key(), |_| {}).await;
    setting.emulator.fault(Fault::on("POST", TOKENS).times(2).answer(502));
    setting.github.issue(&repo(), number(1)).await.expect("read");
    assert_eq!(tokens_made(&setting), 3);
}

#[tokio::test]
async fn the_wrong_key_is_told_without_showing_it() {
    let wrong_id = Auth::App(AppKey::new("1", &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key"));
    let setting = Setting::with(install, wrong_id, |_| {}).await;
    let error = setting.github.own_login().await.expect_err("refused");
    insta::assert_snapshot!(error.to_string(), @"GitHub does not accept the App's key: it is wrong, expired or revoked; check CANONRY_APP_ID, its private key, and this machine's clock");
    let broken = AppKey::new("1", &Secret::new("-----BEGIN RSA PRIVATE KEY-----\nnonsense")).expect_err("no key");
    assert!(!broken.to_string().contains("nonsense"), "{broken}");
    let escaped = TEST_APP_PRIVATE_KEY.trim().replace('\n', "\\n");
    let shown = format!("{:?}", AppKey::new("1", &Secret::new(&escaped)).expect("line breaks written as \\n"));
    assert_eq!(shown, r#"AppKey { app_id: "1", .. }"#);
}

#[tokio::test]
async fn a_plain_token_cannot_ask_for_deliveries() {
    let setting = Setting::new().await;
    let error = setting.github.app_deliveries().all().await.expect_err("needs an App");
    assert!(matches!(error, GitHubError::NeedsApp { .. }), "{error:?}");
    assert_eq!(setting.github.own_login().await.expect("a login").to_string(), "canonry-dev");
    let left = setting.github.rates_left();
    let left: Vec<_> = left.iter().map(|(account, left)| (account.as_str(), left.limit, left.remaining)).collect();
    assert_eq!(left, [("token", 5000, 4999)]);
}
