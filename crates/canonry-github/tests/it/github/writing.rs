//! Tests writes: each is sent once, and each kind of failure is reported correctly.

use std::time::Duration;

use canonry_domain::GithubId;
use canonry_github::{Auth, GitHubError, Secret, WriteError};
use canonry_testkit::github::{Answer, ArmedFault, Fault};

use crate::github::emulated::{REPO, Setting, TOKEN, number, open_issues, repo};

async fn setting() -> Setting {
    patient(Duration::from_secs(60)).await
}

/// A client with this timeout.
async fn patient(timeout: Duration) -> Setting {
    let auth = Auth::Token(Secret::new(TOKEN));
    Setting::with(|world| open_issues(world, 1), auth, |options| options.request_timeout = timeout).await
}

/// The result of one comment under a fault, the number of writes sent, and the number of comments on GitHub.
async fn write_under(fault: ArmedFault) -> (Result<(), WriteError>, usize, usize) {
    let setting = setting().await;
    setting.emulator.fault(fault);
    let outcome = setting.github.create_comment(&repo(), number(1), "hello").await.map(drop);
    let comments = setting.emulator.world().comments(REPO, 1).len();
    (outcome, setting.emulator.writes().len(), comments)
}

fn comment() -> Fault {
    Fault::on("POST", "/repos/*/*/issues/*/comments")
}

#[tokio::test]
async fn a_comment_is_written_edited_and_deleted() {
    let setting = setting().await;
    let made = setting.github.create_comment(&repo(), number(1), "hello").await.expect("written");
    let id = GithubId(made.id);
    let edited = setting.github.edit_comment(&repo(), id, "bye").await.expect("edited");
    assert_eq!((edited.id, edited.body.as_str()), (made.id, "bye"));
    setting.github.delete_comment(&repo(), id).await.expect("deleted");
    assert_eq!(setting.emulator.world().comments(REPO, 1).len(), 0);
    let again = setting.github.delete_comment(&repo(), id).await.expect_err("gone");
    assert!(matches!(again, WriteError::Refused { status: 404, .. }), "{again:?}");
}

#[tokio::test]
async fn ambiguous_failures_are_told_as_such_and_never_repeated() {
    for (fault, comments) in [
        (comment().drop_connection(), 0),
        (comment().apply_and_drop(), 1),
        (comment().answer(500), 0),
        (comment().apply_and_answer(502), 1),
        (comment().truncate(), 1),
        (comment().answer_with(Answer::message(408, "took too long")), 0),
        (comment().answer_with(Answer::ok(serde_json::json!({"unexpected": true}))), 0),
    ] {
        let (outcome, sent, there) = write_under(fault).await;
        assert!(matches!(outcome, Err(WriteError::Ambiguous { .. })), "{outcome:?}");
        assert_eq!((sent, there), (1, comments), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_write_without_an_answer_in_time_is_ambiguous() {
    let setting = patient(Duration::from_millis(500)).await;
    let (fault, gate) = comment().hold_answer();
    setting.emulator.fault(fault);
    let outcome = setting.github.create_comment(&repo(), number(1), "hello").await;
    assert_eq!(outcome, Err(WriteError::Ambiguous { detail: "no answer in time".to_owned() }));
    gate.release();
    assert_eq!(setting.emulator.writes().len(), 1);
}

#[tokio::test]
async fn refusals_are_final() {
    for status in [400, 401, 403, 404, 409, 410, 422, 451] {
        let (outcome, sent, there) = write_under(comment().answer(status)).await;
        assert!(matches!(&outcome, Err(WriteError::Refused { status: told, .. }) if *told == status), "{outcome:?}");
        assert_eq!((sent, there), (1, 0));
    }
}

#[tokio::test]
async fn a_redirected_write_is_refused_and_not_followed() {
    let setting = setting().await;
    setting.emulator.world().rename_repo(REPO, "acme/gadgets", "ann");
    let outcome = setting.github.create_comment(&repo(), number(1), "hello").await;
    let Err(WriteError::Refused { status, message }) = &outcome else { panic!("{outcome:?}") };
    assert!((300..400).contains(status) && message.contains("the address has moved to"), "{outcome:?}");
    assert_eq!(setting.emulator.writes().len(), 1);
}

#[tokio::test]
async fn limits_mean_not_sent_and_say_when() {
    let setting = setting().await;
    let limited = Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "60");
    setting.emulator.fault(comment().answer_with(limited));
    let outcome = setting.github.create_comment(&repo(), number(1), "hello").await.expect_err("limited");
    let until = setting.begin + jiff::SignedDuration::from_secs(60);
    assert_eq!(outcome, WriteError::NotSent(GitHubError::RateLimited { until }));
    assert_eq!(outcome.retry_at(), Some(until));
    // Nothing is sent until then.
    let again = setting.github.create_comment(&repo(), number(1), "hello").await.expect_err("limited");
    assert_eq!((again.retry_at(), setting.emulator.writes().len()), (Some(until), 1));
    setting.emulator.world().advance(60);
    setting.github.create_comment(&repo(), number(1), "hello").await.expect("allowed again");
}

#[tokio::test]
async fn an_unreachable_host_means_not_sent() {
    let setting = Setting::with(
        |_| {},
        Auth::Token(Secret::new(TOKEN)),
        |options| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            options.api = format!("http://127.0.0.1:{port}").parse().expect("a URL");
        },
    )
    .await;
    let outcome = setting.github.create_comment(&repo(), number(1), "hello").await;
    assert!(matches!(outcome, Err(WriteError::NotSent(GitHubError::Network { .. }))), "{outcome:?}");
}
