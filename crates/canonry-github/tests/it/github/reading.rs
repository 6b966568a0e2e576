//! Tests reads: retries, redirects, limits, and exact errors.

use std::sync::Arc;

use canonry_github::{Auth, ClientOptions, GitHub, GitHubError, Secret, WaitReason};
use canonry_testkit::github::{Answer, Emulator, Fault, World};

use crate::github::emulated::{REPO, Setting, TOKEN, number, open_issues, repo};

const ANY: &str = "/**";

#[tokio::test]
async fn hiccups_are_tried_again_with_growing_pauses() {
    let setting = Setting::new().await;
    setting.emulator.fault(Fault::on("GET", ANY).answer(502));
    setting.emulator.fault(Fault::on("GET", ANY).nth(2).drop_connection());
    setting.emulator.fault(Fault::on("GET", ANY).nth(3).truncate());
    let found = setting.github.repo(&repo()).await.expect("the fourth try succeeds");
    assert_eq!(found.full_name, REPO);
    assert_eq!(setting.waits(), [(WaitReason::Retry, 1), (WaitReason::Retry, 3), (WaitReason::Retry, 7)]);
}

#[tokio::test]
async fn an_outage_is_told_after_five_tries() {
    let setting = Setting::new().await;
    setting.emulator.fault(Fault::on("GET", ANY).always().answer(503));
    let error = setting.github.repo(&repo()).await.expect_err("down");
    insta::assert_snapshot!(error.to_string(), @"GitHub failed to answer /repos/acme/widgets (status 503, 5 tries); try again later, www.githubstatus.com shows whether it is down");
    assert_eq!(setting.request_count(), 5);
}

#[tokio::test]
async fn an_unreachable_host_is_told_without_the_token() {
    let Setting { emulator, github, .. } = Setting::with(
        |_| {},
        Auth::Token(Secret::new(TOKEN)),
        |options| {
            // A port that was free a moment ago and on which nothing listens.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            options.api = format!("http://127.0.0.1:{port}").parse().expect("a URL");
        },
    )
    .await;
    let error = github.repo(&repo()).await.expect_err("nobody there");
    assert!(matches!(&error, GitHubError::Network { host, .. } if host == "127.0.0.1"), "{error:?}");
    assert!(!format!("{error} {error:?}").contains(TOKEN));
    assert!(emulator.requests().is_empty());
}

#[tokio::test]
async fn an_exhausted_hour_ends_with_a_sentence_and_no_wait() {
    let setting = Setting::new().await;
    setting.emulator.world().leave_requests("canonry-dev", 0);
    let error = setting.github.repo(&repo()).await.expect_err("limited");
    insta::assert_snapshot!(error.to_string(), @"GitHub's rate limit is used up until 13:01 UTC on 2026-01-15; run the command again then. What was done is kept");
    assert_eq!(setting.waits(), []);
    // Nothing more is sent while the limit lasts.
    let before = setting.request_count();
    setting.github.repo(&repo()).await.expect_err("still limited");
    assert_eq!(setting.request_count(), before);
}

#[tokio::test]
async fn a_short_limit_is_waited_for_and_seen() {
    let setting = Setting::with(
        |_| {},
        Auth::Token(Secret::new(TOKEN)),
        |options| {
            options.longest_wait = jiff::SignedDuration::from_hours(2);
        },
    )
    .await;
    setting.emulator.world().leave_requests("canonry-dev", 1);
    setting.github.repo(&repo()).await.expect("the last request of the hour");
    assert_eq!(setting.waits(), []);
    setting.github.repo(&repo()).await.expect("the first request of the next hour");
    assert_eq!(setting.waits(), [(WaitReason::RateLimit, 3601)]);
    assert_eq!(setting.request_count(), 2, "nothing was sent just to be refused");
}

#[tokio::test]
async fn secondary_limits_are_waited_for() {
    let setting = Setting::new().await;
    let limited = Answer::message(403, "You have exceeded a secondary rate limit.");
    setting.emulator.fault(Fault::on("GET", ANY).answer_with(limited.clone().header("retry-after", "17")));
    setting.emulator.fault(Fault::on("GET", ANY).nth(2).answer_with(Answer::message(429, "slow down")));
    setting.github.repo(&repo()).await.expect("the third try succeeds");
    assert_eq!(setting.waits(), [(WaitReason::SecondaryLimit, 17), (WaitReason::SecondaryLimit, 17 + 120)]);
}

#[tokio::test]
async fn a_limit_that_never_ends_is_given_up() {
    let setting = Setting::new().await;
    let limited = Answer::message(403, "You have exceeded a secondary rate limit.").header("retry-after", "5");
    setting.emulator.fault(Fault::on("GET", ANY).always().answer_with(limited));
    let error = setting.github.repo(&repo()).await.expect_err("limited");
    assert!(matches!(error, GitHubError::RateLimited { .. }), "{error:?}");
    assert_eq!(setting.request_count(), 6);
}

#[tokio::test]
async fn refusals_are_told_by_kind() {
    let setting = Setting::with(
        |world| {
            world.token("ghp_expired", "canonry-dev").expires_at = Some("2026-01-01T00:00:00Z".parse().expect("valid"));
            open_issues(world, 2);
            world.delete(REPO, 1, "ann");
        },
        Auth::Token(Secret::new(TOKEN)),
        |_| {},
    )
    .await;
    let unknown = setting.github.repo(&"acme/nothing".parse().expect("a name")).await.expect_err("unknown");
    insta::assert_snapshot!(unknown.to_string(), @"GitHub has no repository acme/nothing, or this token cannot see it; check the name, and that the token may read that repository");
    let gone = setting.github.issue(&repo(), number(1)).await.expect_err("deleted");
    assert!(matches!(gone, GitHubError::Gone { .. }), "{gone:?}");
    for token in ["ghp_expired", "ghp_wrong"] {
        let api = setting.emulator.url().parse().expect("a URL");
        let options = ClientOptions { api, ..ClientOptions::new(Auth::Token(Secret::new(token))) };
        let error = GitHub::new(options).expect("a client").repo(&repo()).await.expect_err("refused");
        assert!(matches!(error, GitHubError::Unauthorized { .. }), "{error:?}");
        assert!(!error.to_string().contains(token), "{error}");
    }
}

#[tokio::test]
async fn a_renamed_repository_is_found_and_its_new_name_noticed() {
    let setting = Setting::with(|world| open_issues(world, 1), Auth::Token(Secret::new(TOKEN)), |_| {}).await;
    let id = setting.github.repo(&repo()).await.expect("there").github_id();
    setting.emulator.world().rename_repo(REPO, "acme/gadgets", "ann");
    let found = setting.github.repo(&repo()).await.expect("redirected");
    assert_eq!(found.renamed_from(&repo()).map(|name| name.to_string()).as_deref(), Some("acme/gadgets"));
    let by_id = setting.github.repo_by_id(&repo(), id).await.expect("there");
    assert_eq!(by_id.full_name, "acme/gadgets");
    assert_eq!(by_id.renamed_from(&"Acme/Gadgets".parse().expect("a name")), None);
    let moved = setting.github.issue(&repo(), number(1)).await.expect_err("under another name");
    assert!(matches!(&moved, GitHubError::Moved { to, .. } if to == "acme/gadgets#1"), "{moved:?}");
}

#[tokio::test]
async fn a_transferred_issue_is_not_mistaken_for_this_repositorys() {
    let setting = Setting::with(
        |world| {
            world.repo("acme/other");
            open_issues(world, 1);
        },
        Auth::Token(Secret::new(TOKEN)),
        |_| {},
    )
    .await;
    // The issue has the same number in the new repository.
    assert_eq!(setting.emulator.world().transfer(REPO, 1, "ann", "acme/other"), 1);
    let error = setting.github.issue(&repo(), number(1)).await.expect_err("moved");
    assert!(matches!(&error, GitHubError::Moved { to, .. } if to == "acme/other#1"), "{error:?}");
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let setting = Setting::new().await;
    let stranger = Arc::new(Emulator::start(World::new()).await);
    let target = format!("{}/repos/{REPO}", stranger.url());
    setting.emulator.fault(Fault::on("GET", ANY).answer_with(Answer::moved(301, &target)));
    let error = setting.github.repo(&repo()).await.expect_err("elsewhere");
    assert!(matches!(error, GitHubError::BadAnswer { .. }), "{error:?}");
    assert!(stranger.requests().is_empty());
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let setting = Setting::new().await;
    let here = format!("/repos/{REPO}");
    setting.emulator.fault(Fault::on("GET", ANY).always().answer_with(Answer::moved(302, &here)));
    let error = setting.github.repo(&repo()).await.expect_err("a circle");
    assert!(matches!(error, GitHubError::BadAnswer { .. }), "{error:?}");
    assert_eq!(setting.request_count(), 6);
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_refused_at_once() {
    let setting = Setting::with(|_| {}, Auth::Token(Secret::new(TOKEN)), |options| options.answer_limit = 100).await;
    let error = setting.github.repo(&repo()).await.expect_err("too large");
    assert!(matches!(&error, GitHubError::BadAnswer { detail, .. } if detail.contains("100 bytes")), "{error:?}");
    assert_eq!(setting.request_count(), 1);
}

#[tokio::test]
async fn what_is_no_json_is_told_as_such() {
    let setting = Setting::new().await;
    let mut login_page = Answer::empty(200);
    login_page.raw = Some(b"<html>sign in to the proxy</html>".to_vec().into());
    setting.emulator.fault(Fault::on("GET", ANY).answer_with(login_page));
    let error = setting.github.repo(&repo()).await.expect_err("a proxy's page");
    assert!(matches!(error, GitHubError::BadAnswer { .. }), "{error:?}");
}
