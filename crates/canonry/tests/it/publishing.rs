//! `review --pr` with a token: what it writes to GitHub, and when it writes nothing.

use canonry_store::{DatabaseUrl, DeliveryAction, NewDelivery, PackedText, Store};
use canonry_testkit::github::{Emulator, NewPull, Permission, World};

use crate::place::{Place, Ran};

const REPO: &str = "octo/cat";
const OWN: &str = "canonry-bot";

/// A pull request with a debugging leftover, settings that the pull request tries to change, and a token that may
/// write.
fn world() -> World {
    let mut world = World::new();
    world.repo(REPO);
    world.user("ann");
    world.collaborator(REPO, OWN, Permission::Write);
    world.token("t0ken", OWN);
    world.commit(
        REPO,
        "main",
        &[("README.md", Some("# Cat\n")), (".canonry.yml", Some("mentions: {handle: kitty}\n"))],
    );
    let settings = "review: {skipPaths: ['**']}\n";
    world.commit(REPO, "topic", &[("src/app.js", Some("start();\ndebugger;\n")), (".canonry.yml", Some(settings))]);
    world.open_pull(REPO, "ann", "topic", NewPull::new("Add the app"));
    world
}

fn canonry(place: &Place, emulator: &Emulator, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.env("CANONRY_GITHUB_API_URL", emulator.url()).env("GITHUB_TOKEN", "t0ken");
    Ran::of(command.output().expect("the program starts"))
}

/// The number of reviews, comments on lines and other comments by Canonry.
fn said(emulator: &Emulator) -> (usize, usize, usize) {
    let world = emulator.world();
    let (reviews, inline) = (world.reviews_by(REPO, 1, OWN).len(), world.review_comments_by(REPO, 1, OWN).len());
    (reviews, inline, world.comments_by(REPO, 1, OWN).len())
}

#[test]
fn a_pull_request_is_reviewed_without_a_clone_and_told_once() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    let asked = ["review", "--repo", REPO, "--pr", "1"];
    let first = canonry(&place, &emulator, &asked).succeeded();
    assert!(first.stdout.contains("Posted on octo/cat #1: 1 inline comment, the summary."), "{}", first.stdout);
    let off = "review.enabled is not true in .canonry.yml: the service does not review pull requests here.";
    assert!(first.stdout.contains(off), "{}", first.stdout);
    assert_eq!(said(&emulator), (1, 1, 0));
    {
        let world = emulator.world();
        let comment = &world.review_comments_by(REPO, 1, OWN)[0];
        assert_eq!((comment.path.as_str(), comment.line), ("src/app.js", Some(2)));
        // No service hears commands, so none is offered.
        assert!(
            !comment.body.contains("/kitty") && comment.body.contains("` to `review.suppressions`"),
            "{}",
            comment.body
        );
    }
    let again = canonry(&place, &emulator, &["review", "--repo", REPO, "--pr", "1", "--json"]).succeeded().json();
    assert_eq!(again["service_reviews"], off, "{again}");
    assert_eq!((&again["published"]["comments"], &again["published"]["threads"]), (&0.into(), &0.into()), "{again}");
    // A token cannot create a check run, so a comment says that nothing is new.
    assert_eq!(said(&emulator), (1, 1, 1));
    let quiet = canonry(&place, &emulator, &["review", "--repo", REPO, "--pr", "1", "--head", "topic"]);
    assert!(quiet.stderr.contains("--head needs a clone"), "{}", quiet.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_with_recent_webhooks_hears_commands() {
    let (place, emulator) = (Place::new(), Emulator::start(world()).await);
    place.canonry(&["init"]).succeeded();
    let store = Store::open_existing(&DatabaseUrl::Sqlite(place.database())).await.expect("it is there");
    let (name, payload) = (REPO.parse().expect("a name"), PackedText::pack("{}"));
    let fate = DeliveryAction::Ignored("not for us");
    let webhook =
        NewDelivery { id: "1", event: "star", action: None, repo: Some(&name), number: None, payload: &payload, fate };
    store.deliveries().accept(&webhook, jiff::Timestamp::now()).await.expect("stored");
    store.disconnect().await;
    canonry(&place, &emulator, &["review", "--repo", REPO, "--pr", "1"]).succeeded();
    let world = emulator.world();
    let comment = &world.review_comments_by(REPO, 1, OWN)[0];
    assert!(comment.body.contains("Reply `/kitty not useful`"), "{}", comment.body);
}

#[test]
fn nothing_is_written_where_nothing_may_be() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    canonry(&place, &emulator, &["review", "--repo", REPO, "--pr", "1"]).succeeded();
    canonry(&place, &emulator, &["pause", "--repo", REPO]).succeeded();
    emulator.world().push_pull(REPO, 1, "ann", &[("src/app.js", Some("start();\ndebugger;\ndebugger;\n"))]);
    let paused = canonry(&place, &emulator, &["review", "--repo", REPO, "--pr", "1"]);
    assert_eq!(paused.exit, Some(4), "{}", paused.stderr);
    assert!(paused.stderr.contains("canonry resume --repo octo/cat"), "{}", paused.stderr);
    canonry(&place, &emulator, &["resume", "--repo", REPO]).succeeded();
    emulator.world().close(REPO, 1, "ann", canonry_testkit::github::CloseReason::Completed);
    let closed = canonry(&place, &emulator, &["review", "--repo", REPO, "--pr", "1"]);
    assert!(closed.exit == Some(1) && closed.stderr.contains("octo/cat #1 is closed"), "{}", closed.stderr);
    assert_eq!(said(&emulator), (1, 1, 0));
}
