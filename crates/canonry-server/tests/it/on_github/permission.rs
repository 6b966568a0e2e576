//! The App loses a permission in the middle of a review: that is recorded, a partial result is never misleading, and
//! it works again once the permission is back.

use canonry_server::AttemptEnd;
use canonry_store::{JobFilter, JobScope, JobState, OutboxEntry, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewPull, TokenKind, World};

use crate::on_github::outbound::assert_clean;
use crate::world::review_world::{PLAIN, REMARKABLE, REPO, ReviewWorld};
use crate::world::{As, item};

const TITLE: &str = "Debugging code is left in";
const CHECKS: &[&str] = &["checks"];
/// With either permission GitHub allows comments in the conversation of a pull request.
const WORDS: &[&str] = &["pull_requests", "issues"];
const REVIEWS: &[&str] = &["pull_requests"];
const ALL: &[&str] = &["checks", "pull_requests", "issues"];

/// From now on, also for existing tokens.
fn allow(world: &mut World, areas: &[&str], level: &str) {
    let grant = |permissions: &mut std::collections::BTreeMap<String, String>| {
        for area in areas {
            permissions.insert((*area).to_owned(), level.to_owned());
        }
    };
    for installation in &mut world.installations {
        grant(&mut installation.permissions);
    }
    for token in world.tokens.values_mut() {
        if let TokenKind::Installation { permissions, .. } = &mut token.kind {
            grant(permissions);
        }
    }
}

/// What GitHub shows about a commit.
struct Told {
    inline: usize,
    conclusion: Option<String>,
    check: String,
    words: String,
    /// The whole conversation, for failed assertions.
    conversation: String,
}

fn told(setting: &ReviewWorld, number: u64) -> Told {
    let (head, said) = (setting.head(number), setting.said(number));
    assert_eq!(said, Vec::<String>::new(), "no comment beside the review");
    let checks = setting.checks(&head);
    assert!(checks.len() <= 1, "one check: {checks:?}");
    let check = checks.first();
    let text = |part: Option<&String>| part.cloned().unwrap_or_default();
    Told {
        inline: seen_at_lines(setting, number),
        conclusion: check.and_then(|check| check.conclusion.clone()),
        check: check
            .map(|check| format!("{} {}", text(check.title.as_ref()), text(check.summary.as_ref())))
            .unwrap_or_default(),
        words: bodies(setting, number),
        conversation: setting.emulator.world().conversation(REPO, number),
    }
}

/// The bodies of the visible reviews.
fn bodies(setting: &ReviewWorld, number: u64) -> String {
    let world = setting.emulator.world();
    let reviews = world.reviews_by(REPO, number, setting.who.login());
    reviews.iter().filter(|review| review.submitted_at.is_some()).map(|review| review.body.as_str()).collect()
}

/// The number of visible inline comments; those of a review that was not submitted are visible only to its author.
fn seen_at_lines(setting: &ReviewWorld, number: u64) -> usize {
    let world = setting.emulator.world();
    let reviews = world.reviews_by(REPO, number, setting.who.login());
    let is_seen = |id: u64| reviews.iter().any(|review| review.id == id && review.submitted_at.is_some());
    world.review_comments_by(REPO, number, setting.who.login()).iter().filter(|one| is_seen(one.review)).count()
}

/// What is misleading: a result that looks like an approval, and a count of findings without their names.
fn lies(told: &Told) -> Vec<&'static str> {
    let is_posted = told.inline > 0 && told.words.contains(TITLE);
    let lies = [
        (told.conclusion.as_deref() == Some("success"), "green over a finding"),
        ((told.inline > 0) != told.words.contains(TITLE), "the remark and the body of its review disagree"),
        (told.check.contains("1 finding") && !told.check.contains(TITLE), "the check counts what it does not name"),
        (
            told.conclusion.as_deref() == Some("neutral") && !is_posted,
            "it passes, and no review says why it should not",
        ),
    ];
    lies.into_iter().filter(|(is_so, _)| *is_so).map(|(_, lie)| lie).collect()
}

/// The refused writes, with their reasons.
async fn refused(setting: &ReviewWorld, number: u64) -> Vec<OutboxEntry> {
    let entries = setting.store.outbox().of_item(setting.repo.id, item(number)).await.expect("reads");
    assert!(entries.iter().all(|entry| entry.state != OutboxState::Pending), "something hangs: {entries:?}");
    entries.into_iter().filter(|entry| matches!(entry.state, OutboxState::Refused | OutboxState::Failed)).collect()
}

/// Opens a pull request, and revokes permissions during the first request of this kind.
async fn lose(setting: &ReviewWorld, branch: &str, text: &str, at: Option<(&str, &str)>, areas: &[&str]) -> u64 {
    let number = setting.open("ann", branch, text, NewPull::new("Fill the pool"));
    setting.deliver().await;
    assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
    match at {
        None => allow(&mut setting.emulator.world(), areas, "read"),
        Some((method, path)) => {
            let (fault, mut gate) = Fault::on(method, path).times(1).hold();
            setting.emulator.fault(fault);
            let taken = async {
                gate.arrived().await;
                allow(&mut setting.emulator.world(), areas, "read");
                gate.release();
            };
            tokio::join!(setting.work(JobScope::All), taken);
            setting.emulator.clear_faults();
        }
    }
    setting.settle().await;
    number
}

const STEPS: [Option<(&str, &str)>; 5] = [
    None,
    Some(("POST", "/repos/*/*/check-runs")),
    Some(("POST", "/repos/*/*/pulls/*/reviews")),
    Some(("POST", "/repos/*/*/pulls/*/reviews/*/events")),
    Some(("PATCH", "/repos/*/*/check-runs/*")),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_at_any_step_is_noted_and_works_again_once_it_is_back() {
    let database = TestDatabase::sqlite();
    let setting = ReviewWorld::new(&database, As::App, "").await;
    let mut problems = Vec::new();
    for (at, step) in STEPS.into_iter().enumerate() {
        for (which, areas) in [CHECKS, REVIEWS, WORDS, ALL].into_iter().enumerate() {
            let number = lose(&setting, &format!("lost-{at}-{which}"), REMARKABLE, step, areas).await;
            let before = told(&setting, number);
            let mut wrong = lies(&before);
            let refused = refused(&setting, number).await;
            let whole = before.inline == 1 && before.conclusion.as_deref() == Some("neutral");
            if !whole && refused.is_empty() {
                wrong.push("nothing is noted");
            }
            if refused.iter().any(|entry| entry.reason.as_deref().unwrap_or_default().is_empty()) {
                wrong.push("it is not noted why");
            }
            problems.extend(
                wrong.into_iter().map(|lie| format!("{areas:?} lost at {step:?}: {lie}: {}", before.conversation)),
            );

            // A person with permission requests a review once it is allowed again.
            setting.meanwhile(|world| allow(world, areas, "write"));
            setting.meanwhile(|world| world.request_review(REPO, number, "ann", setting.who.login()));
            setting.settle().await;
            let after = told(&setting, number);
            let posted = setting.posted(number);
            if posted != (1, 1) || after.conclusion.as_deref() != Some("neutral") || !lies(&after).is_empty() {
                problems.push(format!("{areas:?} lost at {step:?} and back again: {posted:?} {}", after.conversation));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems: {}", problems.len(), problems.join("\n"));
    let dead = JobFilter { state: Some(JobState::Dead), ..JobFilter::default() };
    assert_eq!(setting.store.jobs().list(&dead, 10).await.expect("reads"), []);
    assert_clean(&setting.emulator);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_cannot_be_read_is_never_green() {
    let database = TestDatabase::sqlite();
    let setting = ReviewWorld::new(&database, As::App, "").await;
    // A public repository can be read without permission.
    setting.emulator.world().get_mut(REPO).private = true;
    let number = setting.open("ann", "unread", PLAIN, NewPull::new("Fill the pool"));
    setting.deliver().await;
    assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
    allow(&mut setting.emulator.world(), &["contents"], "none");
    setting.settle().await;
    let before = told(&setting, number);
    assert_ne!(before.conclusion.as_deref(), Some("success"), "{}", before.conversation);
    assert!(!before.conversation.contains("No findings"), "{}", before.conversation);
    assert_eq!(setting.reviewed(number).await.len(), 0);

    setting.meanwhile(|world| allow(world, &["contents"], "write"));
    setting.meanwhile(|world| world.comment(REPO, number, "ann", "/canonry review"));
    setting.settle().await;
    let after = told(&setting, number);
    assert_eq!(after.conclusion.as_deref(), Some("success"), "{}", after.conversation);
    assert_eq!(after.inline, 0, "{}", after.conversation);
    assert_eq!(setting.reviewed(number).await, [setting.head(number)]);
    assert_clean(&setting.emulator);
}
