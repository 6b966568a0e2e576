//! Reviews: pending ones, positions in the diff, commits, rights, faults.

use canonry_testkit::github::{Age, Emulator, Fault, Late, NewPull, ReviewState, World};
use serde_json::{Value, json};

use crate::client::{Client, Reply};
use crate::github::pulls::{PULL, world_with_pull};
use crate::github::setting::{REPO, small_world};

const REVIEWS: &str = "/repos/acme/widgets/pulls/4/reviews";
const COMMENTS: &str = "/repos/acme/widgets/pulls/4/comments";

async fn started() -> (Emulator, Client) {
    let emulator = Emulator::start(world_with_pull()).await;
    let client = Client::new(&emulator, Some("maint-token"));
    (emulator, client)
}

fn at(path: &str, line: u64) -> Value {
    json!({ "path": path, "line": line, "side": "RIGHT", "body": format!("{path}:{line}") })
}

async fn begin(client: &Client, comments: Value) -> Reply {
    client.write("POST", REVIEWS, json!({ "body": "Hi", "comments": comments })).await
}

fn errors(reply: &Reply) -> Value {
    assert_eq!(reply.status, 422, "{}", reply.text);
    reply.json()["errors"].clone()
}

fn length(reply: &Reply) -> usize {
    reply.json().as_array().map_or(usize::MAX, Vec::len)
}

#[tokio::test]
async fn a_pending_review_is_its_authors_secret_until_it_is_submitted() {
    let (emulator, maint) = started().await;
    emulator.world().send_webhooks_to("http://127.0.0.1:1/nobody", "s3cret");
    let author = Client::new(&emulator, Some("author-token"));
    let review = begin(&maint, json!([at("src/a.rs", 2), at("long.txt", 40)])).await.json();
    let id = &review["id"];
    assert_eq!(review["state"], "PENDING");
    assert_eq!((length(&maint.get(REVIEWS).await), length(&author.get(REVIEWS).await)), (1, 0));
    let of_review = format!("{REVIEWS}/{id}/comments");
    assert_eq!(length(&maint.get(&of_review).await), 2);
    assert_eq!(author.get(&of_review).await.status, 404);
    let comment = format!("/repos/acme/widgets/pulls/comments/{}", maint.get(&of_review).await.json()[0]["id"]);
    assert_eq!((maint.get(&comment).await.status, author.get(&comment).await.status), (200, 404));
    assert_eq!(length(&maint.get(COMMENTS).await), 0, "pending comments are in no list of the pull request");
    assert!(emulator.pending_deliveries().is_empty(), "nobody hears of it");
    assert!(!emulator.world().conversation(REPO, PULL).contains("src/a.rs:2"));

    let submitted = maint.write("POST", &format!("{REVIEWS}/{id}/events"), json!({ "event": "COMMENT" })).await.json();
    assert_eq!(
        (&submitted["state"], &submitted["submitted_at"]),
        (&json!("COMMENTED"), &json!("2026-01-15T12:00:00Z"))
    );
    assert_eq!((length(&author.get(REVIEWS).await), length(&author.get(COMMENTS).await)), (1, 2));
    let told: Vec<(String, Value)> =
        emulator.pending_deliveries().into_iter().map(|one| (one.event, one.payload)).collect();
    let events: Vec<&str> = told.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(events, ["pull_request_review", "pull_request_review_comment", "pull_request_review_comment"]);
    assert_eq!(told[0].1["review"]["state"], "commented", "webhooks write it small");
    assert_eq!((&told[1].1["comment"]["path"], &told[1].1["comment"]["line"]), (&json!("src/a.rs"), &json!(2)));
}

#[tokio::test]
async fn there_is_one_pending_review_for_each_person() {
    let (emulator, maint) = started().await;
    assert_eq!(begin(&maint, json!([])).await.status, 200);
    let one = json!(["User can only have one pending review per pull request"]);
    assert_eq!(errors(&begin(&maint, json!([])).await), one);
    let at_once = json!({ "body": "Now", "event": "COMMENT" });
    assert_eq!(errors(&maint.write("POST", REVIEWS, at_once).await), one);
    let other = Client::new(&emulator, Some("stranger-token"));
    assert_eq!(begin(&other, json!([])).await.status, 200);
    let id = maint.get(REVIEWS).await.json()[0]["id"].clone();
    assert_eq!(other.send("DELETE", &format!("{REVIEWS}/{id}"), None).await.map(|reply| reply.status), Some(404));
    assert_eq!(maint.send("DELETE", &format!("{REVIEWS}/{id}"), None).await.map(|reply| reply.status), Some(200));
    assert_eq!(begin(&maint, json!([])).await.status, 200);
}

#[tokio::test]
async fn one_comment_off_the_diff_refuses_the_whole_review() {
    let (emulator, maint) = started().await;
    let left = |line: u64| json!({ "path": "long.txt", "line": line, "side": "LEFT", "body": "x" });
    let from = |start: u64, line: u64| json!({ "path": "src/a.rs", "start_line": start, "line": line, "body": "x" });
    let line = json!(["Line could not be resolved"]);
    for (bad, said) in [
        (at("src/a.rs", 5), line.clone()),
        (at("long.txt", 10), line.clone()),
        (left(10), line.clone()),
        (at("none.rs", 1), json!(["Path could not be resolved"])),
        (json!({ "path": "src/a.rs", "body": "no line" }), line),
        (json!({ "path": "src/a.rs", "line": 1, "body": "" }), json!(["Body can't be blank"])),
    ] {
        let refused = begin(&maint, json!([at("src/a.rs", 1), bad])).await;
        assert_eq!(errors(&refused), said, "{bad}");
    }
    for (start, end) in [(3, 2), (2, 2), (7, 8)] {
        let refused = begin(&maint, json!([from(start, end)])).await;
        assert_eq!(refused.status, 422, "{start}-{end}");
    }
    assert!(emulator.world().pull(REPO, PULL).reviews.is_empty());
    let good = json!([at("src/a.rs", 1), from(2, 4), at("long.txt", 40), left(40), at("long.txt", 37)]);
    assert_eq!(begin(&maint, good).await.status, 200);
    let world = emulator.world();
    let comments = &world.pull(REPO, PULL).review_comments;
    assert_eq!((comments.len(), comments[1].start_line, comments[1].original_position), (5, Some(2), 4));
    assert_eq!(comments[0].diff_hunk, "@@ -0,0 +1,4 @@\n+one");
}

#[tokio::test]
async fn a_review_is_about_a_commit_of_the_pull_request() {
    let (emulator, maint) = started().await;
    let first = emulator.world().pull(REPO, PULL).head_sha.clone();
    let second = emulator.world().push_pull(REPO, PULL, "author", &[("src/a.rs", Some("zero\none\n2\nthree\nfour\n"))]);
    let about = |commit: &str| json!({ "commit_id": commit, "event": "COMMENT", "body": "Hi", "comments": [at("src/a.rs", 2), at("src/a.rs", 4)] });
    let base = emulator.world().pull(REPO, PULL).base_sha.clone();
    for commit in [&base, &"d".repeat(40)] {
        assert_eq!(
            errors(&maint.write("POST", REVIEWS, about(commit)).await),
            json!(["Commit is not part of the pull request"])
        );
    }
    assert_eq!(maint.write("POST", REVIEWS, about(&first)).await.status, 200);
    let lines = |world: &World| -> Vec<(Option<u64>, u64)> {
        world.pull(REPO, PULL).review_comments.iter().map(|comment| (comment.line, comment.original_line)).collect()
    };
    assert_eq!(lines(&emulator.world()), [(None, 2), (Some(5), 4)], "one changed since, one moved");
    let reviews = maint.get(REVIEWS).await.json();
    assert_eq!((reviews[0]["commit_id"].as_str(), second.len()), (Some(first.as_str()), 40));
}

#[tokio::test]
async fn pushes_move_comments_and_a_force_push_moves_reviews_too() {
    let (emulator, maint) = started().await;
    let first = emulator.world().pull(REPO, PULL).head_sha.clone();
    let about = json!({ "event": "COMMENT", "body": "Hi", "comments": [at("src/a.rs", 2), at("src/a.rs", 4), at("long.txt", 40)] });
    assert_eq!(maint.write("POST", REVIEWS, about).await.status, 200);
    let seen = |world: &World| -> Vec<(Option<u64>, String, String)> {
        let comments = world.pull(REPO, PULL).review_comments.iter();
        comments.map(|comment| (comment.line, comment.commit_id.clone(), comment.original_commit_id.clone())).collect()
    };
    let second =
        emulator.world().push_pull(REPO, PULL, "author", &[("src/a.rs", Some("zero\none\ntwo!\nthree\nfour\n"))]);
    assert_eq!(
        seen(&emulator.world()),
        [
            (None, first.clone(), first.clone()),
            (Some(5), second.clone(), first.clone()),
            (Some(40), second.clone(), first.clone()),
        ]
    );
    assert_eq!(emulator.world().pull(REPO, PULL).reviews[0].commit_id, first);
    let outdated = maint.get(COMMENTS).await.json()[0].clone();
    assert_eq!(
        (&outdated["line"], &outdated["position"], &outdated["original_line"]),
        (&Value::Null, &Value::Null, &json!(2))
    );

    let third =
        emulator.world().force_push_pull(REPO, PULL, "author", &[("src/a.rs", Some("zero\none\ntwo!\nthree\nfour\n"))]);
    assert_ne!(third, second);
    assert_eq!(emulator.world().pull(REPO, PULL).reviews[0].commit_id, third, "GitHub re-points it");
    let lines: Vec<Option<u64>> = seen(&emulator.world()).into_iter().map(|(line, _, _)| line).collect();
    assert_eq!(lines, [None, Some(5), None], "long.txt is not in the diff any more");
}

#[tokio::test]
async fn rights_decide_who_reviews() {
    let mut world = world_with_pull();
    world.token("narrow", "maint").fine_grained(&[("pull_requests", "read"), ("issues", "write")]);
    let emulator = Emulator::start(world).await;
    let comment = json!({ "body": "Hi", "event": "COMMENT" });
    let author = Client::new(&emulator, Some("author-token"));
    let stranger = Client::new(&emulator, Some("stranger-token"));
    for event in ["APPROVE", "REQUEST_CHANGES"] {
        let refused = author.write("POST", REVIEWS, json!({ "body": "Mine", "event": event })).await;
        assert!(
            errors(&refused)[0].as_str().is_some_and(|why| why.ends_with("your own pull request")),
            "{}",
            refused.text
        );
    }
    assert_eq!(author.write("POST", REVIEWS, comment.clone()).await.status, 200);
    let narrow = Client::new(&emulator, Some("narrow")).write("POST", REVIEWS, comment.clone()).await;
    assert_eq!((narrow.status, narrow.header("x-accepted-github-permissions")), (403, "pull_requests=write"));
    assert_eq!(Client::new(&emulator, None).write("POST", REVIEWS, comment.clone()).await.status, 401);
    let long = json!({ "body": "x".repeat(65_537), "event": "COMMENT" });
    assert_eq!(stranger.write("POST", REVIEWS, long).await.status, 422);
    let long = json!([{ "path": "src/a.rs", "line": 1, "body": "x".repeat(65_537) }]);
    assert_eq!(begin(&stranger, long).await.status, 422);
    assert_eq!(
        errors(&stranger.write("POST", REVIEWS, json!({ "event": "COMMENT" })).await),
        json!(["Review body can't be blank"])
    );
    emulator.world().lock(REPO, PULL, "maint", None);
    assert_eq!(stranger.write("POST", REVIEWS, comment.clone()).await.status, 403);
    let maint = Client::new(&emulator, Some("maint-token"));
    assert_eq!(maint.write("POST", REVIEWS, comment).await.status, 200);
}

#[tokio::test]
async fn faults_strike_reviews_like_everything_else() {
    let (emulator, maint) = started().await;
    let review = json!({ "body": "Kept", "comments": [at("src/a.rs", 1)] });
    let create = || Fault::on("POST", "/**/reviews");
    emulator.fault(create().apply_and_drop());
    assert!(maint.send("POST", REVIEWS, Some(review.clone())).await.is_none());
    assert_eq!(emulator.world().reviews_by(REPO, PULL, "maint").len(), 1);
    emulator.clear_faults();
    let id = maint.get(REVIEWS).await.json()[0]["id"].clone();
    emulator.fault(Fault::on("POST", "/**/events").drop_and_apply_late(Late::AfterRequests(2)));
    emulator.fault(Fault::on("GET", "/**/comments").nth(2).stale(Age::Changes(1)));
    let submit = json!({ "event": "COMMENT" });
    assert!(maint.send("POST", &format!("{REVIEWS}/{id}/events"), Some(submit)).await.is_none());
    assert_eq!(maint.get(REVIEWS).await.json()[0]["state"], "PENDING");
    assert_eq!(maint.get(REVIEWS).await.json()[0]["state"], "COMMENTED");
    assert_eq!(length(&maint.get(COMMENTS).await), 1);
    assert_eq!(length(&maint.get(COMMENTS).await), 0, "as it was before it was submitted");
    let sent = emulator.bodies_sent();
    emulator.forget_requests();
    assert_eq!(sent, ["Kept", "src/a.rs:1"]);
    assert_eq!(emulator.bodies_sent(), sent);
}

#[tokio::test]
async fn a_pull_request_without_git_is_reviewed_by_its_patches() {
    let mut world = small_world();
    let pull = canonry_testkit::github::Pull::default().file("a.rs", "@@ -1 +1 @@\n-a\n+b");
    let number = world.open(REPO, "stranger", canonry_testkit::github::NewIssue::new("By hand", "").pull(pull));
    let emulator = Emulator::start(world).await;
    let maint = Client::new(&emulator, Some("maint-token"));
    let path = format!("/repos/acme/widgets/pulls/{number}/reviews");
    for (line, status) in [(2, 422), (1, 200)] {
        let reply = maint.write("POST", &path, json!({ "comments": [at("a.rs", line)], "event": "COMMENT" })).await;
        assert_eq!(reply.status, status, "{}", reply.text);
    }
}

#[tokio::test]
async fn the_conversation_shows_what_a_person_sees() {
    let mut world = world_with_pull();
    world.add_app(77, "canonry");
    world.comment(REPO, PULL, "canonry[bot]", "Summary of it.\n\n<!-- canonry: marker -->");
    let comment = world.comment_on_line(REPO, PULL, "canonry[bot]", "src/a.rs", 2, "**Careful**\n<!-- key -->");
    world.advance(60);
    world.reply_in_thread(REPO, comment, "author", "By design.");
    world.react_to_review_comment(REPO, comment, "author", "-1");
    world.resolve_thread(REPO, comment, "author");
    world.push_pull(REPO, PULL, "author", &[("src/a.rs", Some("one\n2\n"))]);
    world.review(REPO, PULL, "maint", ReviewState::Approved, "Fine.");
    insta::assert_snapshot!(world.conversation(REPO, PULL), @r"
    # Add a (open, by author)

    ## canonry[bot] commented
    Summary of it.

    ## canonry[bot] reviewed 9561fd7
      src/a.rs:2, outdated, resolved by author
        canonry[bot]:
          **Careful**
          [-1 author]
        author:
          By design.

    ## maint approved 6bbabb8
    Fine.
    ");
    world.commit(REPO, "other", &[("o", Some("o\n"))]);
    let other = world.open_pull(REPO, "author", "other", NewPull { draft: true, ..NewPull::new("Quiet") });
    assert_eq!(world.conversation(REPO, other), "# Quiet (open, draft, by author)\n");
}
