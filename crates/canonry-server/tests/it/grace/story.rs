//! From the first announcement to the breaker and back.

use canonry_domain::{
    GithubId, ItemType, Probability, RowSnapshot, TargetPolicy, WriteKey, WriteKind, WriteOrigin,
    corrected_announcement,
};
use canonry_github::outbox::{Close, CloseAs, Write};
use canonry_server::queue_cancel_grace;
use canonry_store::{
    BrakeKind, Grace, GraceState, JobState, MaintainerSource, NewOutboxEntry, NewPlan, NewPlanRow, ObjectionKind,
    OutboxState, Representation,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewIssue, Pull, State, World};
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::item;
use crate::world::triage_world::{OWN, TriageWorld};

const POOL: &str = "tide/pool";
const SETTINGS: &str = "triage: {mode: grace}\nclose: {graceHours: 48, maxPerDay: 3}\nreview: {enabled: false}\n";
const BODY: &str =
    "It stops with an error in the middle of the night and never comes back, whatever we try in the morning.";
const ANNOUNCED: &str = "so it will be **closed on ";

/// A person reports the problem of a topic's original again.
fn report(setting: &TriageWorld, topic: u64) -> u64 {
    setting.meanwhile(|world| world.open(POOL, "ann", NewIssue::new(&format!("It stops: topic{topic} alike95"), BODY)))
}

/// The same, and its close is announced.
async fn announced(setting: &TriageWorld, topic: u64) -> u64 {
    let number = report(setting, topic);
    setting.settle().await;
    setting.assert_said(POOL, number, topic + 1);
    let said = setting.said(POOL, number);
    assert!(said[0].contains(ANNOUNCED), "{said:?}");
    number
}

async fn grace(setting: &TriageWorld, number: u64) -> Grace {
    let repo = setting.repo(POOL).await.id;
    let mut graces = setting.store.close().graces_of_item(repo, ItemType::Issue, item(number)).await.expect("reads");
    assert!(!graces.is_empty(), "#{number} has no grace");
    graces.remove(0)
}

fn is_open(setting: &TriageWorld, number: u64) -> bool {
    setting.emulator.world().issue(POOL, number).state == State::Open
}

async fn hours(setting: &TriageWorld, hours: i64) {
    setting.later(SignedDuration::from_hours(hours)).await;
}

type Act = fn(&mut World, u64);

/// A ruling is shown with the name of the person who ruled.
const RULED: &str = "somebody said that it is not a duplicate";

/// What people do, and the reason that the comment shows at once.
const ACTS: [(&str, Act); 9] = [
    ("somebody commented", |world, issue| {
        world.comment(POOL, issue, "ben", "Ours stops at noon.");
    }),
    ("it was edited", |world, issue| world.edit_body(POOL, issue, "ann", "It stops at noon, which is another thing.")),
    ("the label was removed", |world, issue| world.unlabel(POOL, issue, "ann", "possible-duplicate")),
    ("somebody is assigned to it", |world, issue| world.assign(POOL, issue, "maint", "ben")),
    ("it has a milestone", |world, issue| {
        let milestone = world.milestone(POOL, "1.0");
        world.set_milestone(POOL, issue, "maint", Some(milestone));
    }),
    ("a pull request is linked to it", |world, issue| {
        let new = NewIssue::new("Let it go on", &format!("Fixes #{issue}."));
        world.open(POOL, "ben", new.pull(Pull::default()));
    }),
    ("it has a protected label", |world, issue| world.label(POOL, issue, "maint", "security")),
    ("its conversation is locked", |world, issue| world.lock(POOL, issue, "maint", None)),
    (RULED, |world, issue| {
        world.comment(POOL, issue, "ann", "/canonry not a duplicate");
    }),
];

/// A repository that closes after a grace.
async fn in_grace(database: TestDatabase) -> TriageWorld {
    let setting = TriageWorld::new(database, &[POOL]).await;
    setting.settle().await;
    setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", SETTINGS));
    setting.settle().await;
    let repo = setting.repo(POOL).await.id;
    let maintainers = ["maint".parse().expect("a login")];
    let now = setting.emulator.world().now;
    setting.store.repos().set_maintainers(repo, MaintainerSource::Set, &maintainers, now).await.expect("stored");
    setting
}

on_both_engines! {
    async fn suggested_announced_called_off_closed_and_taken_back(database: TestDatabase) {
        let setting = in_grace(database).await;
        is_called_off(&setting).await;
        is_closed(&setting).await;
        is_taken_back(&setting).await;
        stands_still_in_a_pause(&setting).await;
        setting.emulator.assert_no_unknown_routes();
        setting.stop().await;
    }

    /// The first sync could not see the maintainers of the repository. The first issue comes before the next sync.
    async fn a_suggestion_waits_for_who_maintains_the_repository(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/collaborators").answer(403));
        setting.settle().await;
        setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", SETTINGS));
        setting.settle().await;
        let repo = setting.repo(POOL).await.id;
        assert_eq!(setting.store.repos().maintainers(repo).await.expect("reads"), None);
        announced(&setting, 0).await;
        assert!(setting.store.repos().maintainers(repo).await.expect("reads").is_some());
        setting.stop().await;
    }

    async fn a_maintainer_calls_it_off_in_the_console(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (store, repo) = (&setting.store, setting.repo(POOL).await);
        let number = announced(&setting, 0).await;
        let (by, now) = (Some("maint".parse().expect("a login")), setting.emulator.world().now);
        let order = queue_cancel_grace(store, &repo, ItemType::Issue, item(number), by.as_ref(), now).await;
        let job = order.expect("queued");
        setting.settle().await;
        let job = store.jobs().get(job).await.expect("reads").expect("stored");
        assert_eq!((job.state, job.error), (JobState::Done, None));
        let ended = grace(&setting, number).await;
        assert_eq!((ended.state, ended.reason.as_deref()), (GraceState::Cancelled, Some("called_off")));
        let said = setting.said(POOL, number);
        let told = "**Close cancelled**, because a maintainer cancelled it.";
        assert!(said.len() == 1 && said[0].contains(told), "{said:?}");
        hours(&setting, 100).await;
        assert!(is_open(&setting, number));
        setting.stop().await;
    }

    async fn a_close_that_has_begun_is_ended_by_its_own_checks(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (store, repo) = (&setting.store, setting.repo(POOL).await.id);
        let number = announced(&setting, 0).await;
        hours(&setting, 1).await;
        let key = begin_close(&setting, number).await;
        let now = setting.emulator.world().now;
        store.close().set_brake(repo, BrakeKind::Breaker, None, "enough", now).await.expect("pulled");
        hours(&setting, 1).await;
        let ended = grace(&setting, number).await;
        assert_eq!((ended.state, ended.reason.as_deref()), (GraceState::Cancelled, Some("breaker")));
        let entry = store.outbox().of_key(&key).await.expect("reads").expect("stored");
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("grace:breaker")));
        assert!(is_open(&setting, number));
        setting.stop().await;
    }
}

/// Plans and stores the close of an item, as a process that is then killed.
async fn begin_close(setting: &TriageWorld, number: u64) -> String {
    let (store, repo, now) = (&setting.store, setting.repo(POOL).await.id, setting.emulator.world().now);
    let read =
        async |number| store.corpus().item(repo, ItemType::Issue, item(number)).await.expect("reads").expect("known");
    let snapshot = RowSnapshot::of(&read(number).await, &read(1).await);
    let probability = |value| Probability::new(value).expect("a probability");
    let row = NewPlanRow {
        item_type: ItemType::Issue,
        number: item(number),
        target: Some(item(1)),
        skip: None,
        confidence: Some(probability(0.96)),
        evidence: serde_json::json!({}),
        snapshot: serde_json::to_value(snapshot).expect("plain data"),
    };
    let new = NewPlan {
        representation: Representation::Raw,
        target_policy: TargetPolicy::CanonicalOnly,
        min_close: probability(0.9),
        config_hash: "",
        run_id: "killed",
    };
    let waiting = grace(setting, number).await;
    let plan = store.close().plan_grace(waiting.id, repo, &new, &row, now).await.expect("stored").expect("it waits");
    let original = i64::try_from(setting.emulator.world().issue(POOL, 1).id).expect("small");
    let write = Write::Close(Close {
        close_as: CloseAs::DuplicateOf(GithubId(original)),
        comment: "Closed as a duplicate; please follow #1.".to_owned(),
        comment_if_refused: "It stays open.".to_owned(),
    });
    let key = WriteKey::of_item(WriteOrigin::Close, plan.get(), ItemType::Issue, item(number)).with_record(plan.get());
    let payload = serde_json::to_value(&write).expect("plain data");
    let entry = NewOutboxEntry {
        repo,
        number: item(number),
        kind: WriteKind::Close,
        key: &key,
        payload: &payload,
        refused: None,
    };
    store.outbox().enqueue(&entry, now).await.expect("stored");
    key.text
}

/// Each of these actions cancels an announced close at once, and the comment says so.
async fn is_called_off(setting: &TriageWorld) {
    for (why, act) in ACTS {
        let number = announced(setting, 0).await;
        setting.meanwhile(|world| act(world, number));
        setting.settle().await;
        let ended = grace(setting, number).await;
        assert_eq!(ended.state, GraceState::Cancelled, "{why}: {ended:?}");
        let said = setting.said(POOL, number);
        let told = match why {
            RULED => "`ann` answered that this is not the same problem as #1.".to_owned(),
            why => format!("**Close cancelled**, because {why}."),
        };
        assert_eq!(setting.is_labelled(POOL, number), !matches!(why, RULED | "the label was removed"), "{why}");
        // An edited item is triaged again, and suggested without a close.
        let is_edited = why == "it was edited";
        assert!(said[0].contains(&told) || is_edited && !said[0].contains(ANNOUNCED), "{why}: {said:?}");
        hours(setting, 100).await;
        assert!(is_open(setting, number), "{why}");
        // People confirm the duplicate in the end: otherwise Canonry would learn to be silent.
        setting.confirm(POOL, number);
        setting.settle().await;
    }
    // A reaction has no webhook: it is found right before the close.
    let number = announced(setting, 0).await;
    let comment = setting.emulator.world().comments_by(POOL, number, OWN)[0].id;
    setting.meanwhile(|world| world.react_to_comment(POOL, comment, "cleo", "confused"));
    hours(setting, 49).await;
    hours(setting, 1).await;
    assert!(is_open(setting, number));
    assert!(setting.said(POOL, number)[0].contains("because somebody disagreed."), "{:?}", setting.said(POOL, number));
    setting.confirm(POOL, number);
    setting.settle().await;
}

/// A comment without its marker.
fn shown(comment: &str) -> &str {
    comment.split("\n\n<!--").next().unwrap_or_default()
}

/// Without objections: closed after its time, not before, and no more per day than allowed.
async fn is_closed(setting: &TriageWorld) {
    let mut numbers = Vec::new();
    for topic in 1..=4 {
        numbers.push(announced(setting, topic).await);
    }
    hours(setting, 47).await;
    assert!(numbers.iter().all(|number| is_open(setting, *number)), "an hour is left");
    let (announced, due_at) = (setting.said(POOL, numbers[0]).remove(0), grace(setting, numbers[0]).await.due_at);
    assert_eq!(corrected_announcement(&announced, due_at), None, "it names the real end: {announced}");
    let closes_on = announced.split("**").nth(1).expect("a time").to_owned();
    insta::assert_snapshot!(shown(&announced).replace(&closes_on, "closed on 18 Nov, 20:00 UTC"), @"
    This looks like the same problem as #2 (*The tide stops: topic1*), so it will be **closed on 18 Nov, 20:00 UTC**.

    **Not the same?** 👎 this comment or reply, and it stays open. If it is the same, please add your details to #2.
    ");
    hours(setting, 2).await;
    let open: Vec<bool> = numbers.iter().map(|number| is_open(setting, *number)).collect();
    assert_eq!(open, [false, false, false, true]);
    assert_eq!(grace(setting, numbers[3]).await.reason.as_deref(), Some("daily_limit"));
    hours(setting, 25).await;
    insta::assert_snapshot!(shown(&setting.said(POOL, numbers[0])[1]), @"
    Closed as a duplicate; please follow #2 (*The tide stops: topic1*).

    **Wrong?** Reopen it, or comment `/canonry not a duplicate` (its author or a maintainer). Canonry will not close it again.
    ");
    for (number, target) in numbers.into_iter().zip(2..) {
        assert!(!is_open(setting, number));
        let said = setting.said(POOL, number);
        assert!(said[1].starts_with(&format!("Closed as a duplicate; please follow #{target}")), "{said:?}");
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(grace(setting, number).await.state, GraceState::Closed);
    }
}

/// Three people object to three closes, each in another way. Then nothing is closed until a maintainer resumes it.
async fn is_taken_back(setting: &TriageWorld) {
    let repo = setting.repo(POOL).await.id;
    let running = announced(setting, 0).await;
    let [reopened, undone, denied] = {
        let world = setting.emulator.world();
        let closed = world.get(POOL).issues.values().filter(|issue| issue.state == State::Closed);
        let is_ours = |number| {
            world.comments_by(POOL, number, OWN).iter().any(|one| one.body.starts_with("Closed as a duplicate"))
        };
        let ours = closed.filter(|issue| is_ours(issue.number));
        let numbers: Vec<u64> = ours.map(|issue| issue.number).take(3).collect();
        numbers.try_into().expect("three")
    };
    setting.meanwhile(|world| world.reopen(POOL, reopened, "ann"));
    setting.settle().await;
    setting.meanwhile(|world| world.comment(POOL, undone, "ben", "/canonry undo"));
    setting.settle().await;
    assert!(!is_open(setting, undone), "a stranger may not");
    setting.meanwhile(|world| world.comment(POOL, undone, "maint", "/canonry undo"));
    setting.settle().await;
    assert!(is_open(setting, undone));
    assert!(setting.store.close().brake_in_force(repo, BrakeKind::Breaker).await.expect("reads").is_none());
    setting.meanwhile(|world| world.comment(POOL, denied, "ann", "/canonry not a duplicate"));
    setting.settle().await;
    assert!(is_open(setting, denied));
    let objections = setting.store.close().objections(repo).await.expect("reads");
    let kinds: Vec<_> = objections.iter().map(|one| (one.number, one.kind)).collect();
    let first = (item(reopened), ObjectionKind::Reopened);
    assert_eq!((kinds.len(), kinds[0], kinds[2]), (3, first, (item(denied), ObjectionKind::NotADuplicate)));
    assert!(setting.store.close().brake_in_force(repo, BrakeKind::Breaker).await.expect("reads").is_some());
    let said = setting.said(POOL, denied);
    assert!(said.iter().any(|text| text.contains("`/canonry resume`")), "{said:?}");
    assert_eq!(grace(setting, running).await.reason.as_deref(), Some("breaker"));
    assert!(setting.said(POOL, running)[0].contains("because too many recent closes were wrong."));
    // It only suggests.
    let number = report(setting, 5);
    setting.settle().await;
    assert!(setting.said(POOL, number)[0].contains("Nothing is closed because of it."));
    hours(setting, 200).await;
    for number in [reopened, undone, denied, running, number] {
        assert!(is_open(setting, number), "#{number}");
    }
    setting.meanwhile(|world| world.comment(POOL, denied, "maint", "/canonry resume"));
    setting.settle().await;
    assert!(setting.store.close().brake_in_force(repo, BrakeKind::Breaker).await.expect("reads").is_none());
    let again = announced(setting, 2).await;
    hours(setting, 49).await;
    assert!(!is_open(setting, again), "it is switched on again");
    for number in [reopened, undone, denied] {
        assert!(is_open(setting, number), "#{number} is never closed again");
    }
}

/// A pause stops the close, and what is due then is closed after the pause.
async fn stands_still_in_a_pause(setting: &TriageWorld) {
    let number = announced(setting, 3).await;
    setting.meanwhile(|world| world.comment(POOL, 1, "maint", "/canonry pause"));
    setting.settle().await;
    hours(setting, 100).await;
    assert!(is_open(setting, number));
    assert_eq!(grace(setting, number).await.reason.as_deref(), Some("paused"));
    setting.meanwhile(|world| world.comment(POOL, 1, "maint", "/canonry resume"));
    setting.settle().await;
    hours(setting, 1).await;
    assert!(!is_open(setting, number));
}
