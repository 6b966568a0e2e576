//! What people do with a plan: decide rows, apply it, undo it, make a new one.

use canonry_domain::{OverrideKind, UndoReason, WriteKey, WriteKind, WriteOrigin};
use canonry_server::{ApplyOrder, ConsoleOrder, PlanOrder, UndoOrder};
use canonry_store::{JobCaps, JobEnd, JobLease, JobScope, NewOutboxEntry};
use jiff::SignedDuration;
use reqwest::StatusCode;

use crate::reading::{csrf_of, flash_of};
use crate::world::items::ruling;
use crate::world::plans::PlanWorld;
use crate::world::{ISSUE, Who, number};

fn mona() -> Option<String> {
    Some("mona".to_owned())
}

#[tokio::test]
async fn words_are_stored_with_their_author_and_the_next_row_follows() {
    let world = PlanWorld::new().await;
    let say = async |word: &str, item: &str| {
        let fields = [("word", word), ("item", item), ("move", "1"), ("show", "undecided")];
        world.send(Who::Mona, &world.path("/rows"), &fields, false).await
    };
    let answer = say("approve", "issue/2").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(answer.headers()["location"], format!("/r/tide/pool/plans/{}/rows/issue/3?show=undecided", world.plan));
    assert!(flash_of(&answer).contains("Approved"), "{}", flash_of(&answer));
    say("exclude", "issue/3").await;
    assert_eq!(world.words().await, [(2, Some(true), mona()), (3, Some(false), mona()), (5, None, None)]);
    let page = world.page(Who::Rita, &world.path("/rows/issue/3")).await;
    assert!(page.contains("excluded</span> by @mona"), "{page}");
    say("clear", "issue/3").await;
    assert_eq!(world.words().await[1], (3, None, None));
    // The operator has no login.
    world.send(Who::Operator, &world.path("/rows"), &[("word", "exclude"), ("item", "issue/3")], false).await;
    assert_eq!(world.words().await[1], (3, Some(false), None));
    let actions = world.store.console().actions(world.repo.id, 10).await.expect("reads");
    let told: Vec<_> =
        actions.iter().map(|action| (action.action.as_str(), action.subject.clone(), action.is_operator)).collect();
    assert_eq!(told[0], ("plan: exclude", format!("issue #3 of plan {}", world.plan), true));
    assert_eq!(told.len(), 4);
}

#[tokio::test]
async fn htmx_gets_the_review_with_the_next_row_in_focus() {
    let world = PlanWorld::new().await;
    let fields = [("word", "approve"), ("item", "issue/2"), ("move", "1")];
    let answer = world.send(Who::Mona, &world.path("/rows"), &fields, true).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["hx-replace-url"], format!("/r/tide/pool/plans/{}/rows/issue/3", world.plan));
    let part = answer.text().await.expect("a part");
    assert!(part.starts_with("<div id=\"review\" class=\"plan has-row\">") && !part.contains("<html"), "{part}");
    assert!(
        part.contains("id=\"row-issue-3\" tabindex=\"-1\" data-current aria-current=\"true\" data-focus>"),
        "{part}"
    );
    assert!(part.contains("Close issue #3 as a duplicate of #1") && part.contains("Approved #2."));
    // The last row stays selected.
    let last = world
        .send(Who::Mona, &world.path("/rows"), &[("word", "exclude"), ("item", "issue/5"), ("move", "1")], true)
        .await;
    assert!(last.text().await.expect("a part").contains("id=\"row-issue-5\" tabindex=\"-1\" data-current"));
    let pair = world.ask(Who::Rita, &world.path("/rows/issue/2"), true).await.text().await.expect("a part");
    assert!(pair.starts_with("<section id=\"pair\"") && pair.contains("by @mona"), "{pair}");
}

#[tokio::test]
async fn many_rows_and_all_rows_get_a_word() {
    let world = PlanWorld::new().await;
    let many = [("word", "exclude"), ("item", "issue/2"), ("item", "issue/3"), ("item", "issue/6")];
    world.send(Who::Mona, &world.path("/rows"), &many, false).await;
    assert_eq!(world.words().await, [(2, Some(false), mona()), (3, Some(false), mona()), (5, None, None)]);
    world.send(Who::Mona, &world.path("/rows"), &[("word", "approve"), ("all", "1")], false).await;
    assert_eq!(world.words().await, [(2, Some(false), mona()), (3, Some(false), mona()), (5, Some(true), mona())]);
    world.send(Who::Mona, &world.path("/rows"), &[("word", "clear"), ("all", "1")], false).await;
    assert!(world.words().await.iter().all(|(_, word, by)| word.is_none() && by.is_none()));
    // An impossible action is refused with a sentence.
    for (fields, status, words) in [
        (vec![("word", "approve")], StatusCode::UNPROCESSABLE_ENTITY, "Select at least one row first."),
        (vec![("word", "burn"), ("item", "issue/2")], StatusCode::BAD_REQUEST, "is not an action"),
        (vec![("word", "approve"), ("item", "issue/x")], StatusCode::BAD_REQUEST, "is not an item of this plan"),
        (vec![("item", "issue/2")], StatusCode::BAD_REQUEST, "the form lacks"),
    ] {
        let answer = world.send(Who::Mona, &world.path("/rows"), &fields, false).await;
        assert_eq!(answer.status(), status, "{fields:?}");
        let page = answer.text().await.expect("a page");
        assert!(page.contains(words), "{words}: {page}");
    }
    let skipped = world.send(Who::Mona, &world.path("/rows"), &[("word", "approve"), ("item", "issue/6")], false).await;
    assert!(flash_of(&skipped).starts_with("Nothing"), "{}", flash_of(&skipped));
}

#[tokio::test]
async fn readers_and_forged_forms_change_nothing() {
    let world = PlanWorld::new().await;
    let confirm = "close 3 in tide/pool";
    let actions = [
        ("/plans".to_owned(), vec![("type", "issue")]),
        (world.path("/rows"), vec![("word", "approve"), ("item", "issue/2")]),
        (world.path("/rows"), vec![("word", "exclude"), ("all", "1")]),
        (world.path("/apply"), vec![("confirm", confirm)]),
        (world.path("/undo"), vec![("reason", "other"), ("confirm", "reopen 0 in tide/pool")]),
    ];
    let monas = csrf_of(&world.page(Who::Mona, "/plans").await);
    for (path, fields) in &actions {
        let ritas = csrf_of(&world.page(Who::Rita, "/plans").await);
        let reader = world.send_with(Who::Rita, path, &ritas, fields, false).await;
        assert_eq!(reader.status(), StatusCode::FORBIDDEN, "{path}");
        assert!(reader.text().await.expect("a page").contains("maintainers of this repository"));
        assert_eq!(world.send_with(Who::Rita, path, &monas, fields, false).await.status(), StatusCode::FORBIDDEN);
        assert_eq!(world.send_with(Who::Mona, path, "wrong", fields, false).await.status(), StatusCode::FORBIDDEN);
        assert_eq!(world.send_with(Who::Stranger, path, &monas, fields, false).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(world.send_with(Who::Nobody, path, &monas, fields, false).await.status(), StatusCode::UNAUTHORIZED);
    }
    assert!(world.words().await.iter().all(|(_, word, _)| word.is_none()));
    assert_eq!(
        (world.jobs().await, world.store.console().actions(world.repo.id, 10).await.expect("reads")),
        (vec![], vec![])
    );
}

#[tokio::test]
async fn a_plan_is_applied_after_its_own_confirmation_alone() {
    let world = PlanWorld::new().await;
    let apply = async |fields: &[(&str, &str)]| world.send(Who::Mona, &world.path("/apply"), fields, false).await;
    for confirm in ["", "close 2 in tide/pool", "close 3 in tide/lake", "Close 3 in tide/pool", "yes"] {
        let answer = apply(&[("confirm", confirm), ("approved_only", "0")]).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{confirm:?}");
        let page = answer.text().await.expect("a page");
        assert!(page.contains("Nothing was applied: to close 3 items, type “close 3 in tide/pool”."), "{page}");
    }
    // What is closed is never guessed.
    for unsaid in
        [&[("confirm", "close 3 in tide/pool")][..], &[("confirm", "close 3 in tide/pool"), ("approved_only", "")]]
    {
        let answer = apply(unsaid).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.text().await.expect("a page").contains("Nothing was applied: choose what to close"));
    }
    // No row is approved, and the typed phrase must contain the right count.
    let none = apply(&[("confirm", "close 0 in tide/pool"), ("approved_only", "1")]).await;
    assert!(none.text().await.expect("a page").contains("no row is approved"));
    world
        .store
        .plans()
        .set_approved(world.plan, ISSUE, &[number(3)], Some(true), None, world.now)
        .await
        .expect("noted");
    let all = apply(&[("confirm", "close 3 in tide/pool"), ("approved_only", "1")]).await;
    assert_eq!(all.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(world.jobs().await, []);

    let answer = apply(&[("confirm", "close 1 in tide/pool"), ("approved_only", "1")]).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let jobs = world.jobs().await;
    let by = Some("mona".parse().expect("a login"));
    let order = ApplyOrder { plan: world.plan, approved_only: true, only_takes_back: false, by };
    assert_eq!(jobs.iter().map(ConsoleOrder::of).collect::<Vec<_>>(), [Some(ConsoleOrder::Apply(order))]);

    // While an apply runs it cannot be started again, and its progress is shown.
    let again = apply(&[("confirm", "close 3 in tide/pool"), ("approved_only", "0")]).await;
    assert!(again.text().await.expect("a page").contains("an apply or undo of this plan is running"));
    assert_eq!(world.jobs().await.len(), 1);
    let page = world.page(Who::Rita, &world.path("")).await;
    assert!(page.contains("<noscript><meta http-equiv=\"refresh\""), "{page}");
    let part = world.ask(Who::Rita, &world.path("/progress"), true).await.text().await.expect("a part");
    assert!(
        part.starts_with("<section id=\"progress\"")
            && part.contains("hx-trigger=\"every 2s\"")
            && part.contains("0 closed"),
        "{part}"
    );
    assert_eq!(world.ask(Who::Rita, &world.path("/progress"), false).await.status(), StatusCode::SEE_OTHER);
    let caps = JobCaps { in_all: 9, per_repo: 9 };
    let until = world.now + SignedDuration::from_mins(5);
    let job =
        world.store.jobs().lease("worker", caps, JobScope::All, world.now, until).await.expect("reads").expect("a job");
    let lease = JobLease { id: job.id, owner: "worker" };
    assert!(
        world.store.jobs().end(lease, JobEnd::Ignored("refused: it is paused <b>"), world.now).await.expect("ended")
    );
    let ended = world.ask(Who::Rita, &world.path("/progress"), true).await;
    assert_eq!(ended.headers()["hx-refresh"], "true");
    let page = world.page(Who::Rita, &world.path("")).await;
    assert!(page.contains("refused: it is paused &#60;b&#62;") && !page.contains("every 2s"), "{page}");
}

#[tokio::test]
async fn rows_can_only_be_excluded_while_the_plan_is_applied() {
    let world = PlanWorld::new().await;
    let rows = world.path("/rows");
    let say = async |fields: &[(&str, &str)]| world.send(Who::Mona, &rows, fields, false).await;
    say(&[("word", "exclude"), ("item", "issue/5")]).await;
    let buttons = async || {
        let page = world.page(Who::Mona, &world.path("/rows/issue/2")).await;
        let offered = ["approve", "exclude", "clear"].map(|word| page.matches(&format!("value=\"{word}\"")).count());
        (offered, page.contains("While the plan is being applied, rows can only be excluded"))
    };
    assert_eq!(buttons().await, ([3, 3, 3], false));
    // Ordered twice at once, it is applied once.
    let confirm = [("confirm", "close 2 in tide/pool"), ("approved_only", "0")];
    let path = world.path("/apply");
    let (one, other) =
        tokio::join!(world.send(Who::Mona, &path, &confirm, false), world.send(Who::Operator, &path, &confirm, false));
    let mut answers = [one.status(), other.status()];
    answers.sort();
    assert_eq!(answers, [StatusCode::SEE_OTHER, StatusCode::UNPROCESSABLE_ENTITY]);
    assert_eq!(world.jobs().await.len(), 1);

    assert_eq!(buttons().await, ([0, 2, 0], true));
    let before = world.words().await;
    for fields in [
        vec![("word", "clear"), ("item", "issue/5")],
        vec![("word", "approve"), ("item", "issue/5")],
        vec![("word", "approve"), ("all", "1")],
        vec![("word", "clear"), ("all", "1")],
    ] {
        let answer = say(&fields).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}");
        assert!(answer.text().await.expect("a page").contains("Nothing was changed. While the plan is being applied"));
        assert_eq!(world.words().await, before, "{fields:?}");
    }
    let excluded = say(&[("word", "exclude"), ("item", "issue/3")]).await;
    assert!(!flash_of(&excluded).contains("begun"), "{}", flash_of(&excluded));
    assert_eq!(world.words().await[1], (3, Some(false), mona()));
    // The service is working on this one: it is not known here whether GitHub has the close.
    let plan = world.plan.get();
    let key = WriteKey::of_item(WriteOrigin::Close, plan, ISSUE, number(2)).with_record(plan);
    let payload = serde_json::json!({});
    let new = NewOutboxEntry {
        repo: world.repo.id,
        number: number(2),
        kind: WriteKind::Close,
        key: &key,
        payload: &payload,
        refused: None,
    };
    world.store.outbox().enqueue(&new, world.now).await.expect("stored");
    let late = say(&[("word", "exclude"), ("item", "issue/2")]).await;
    assert!(flash_of(&late).contains("begun"), "{}", flash_of(&late));
    assert_eq!(world.words().await[0], (2, Some(false), mona()));

    let caps = JobCaps { in_all: 9, per_repo: 9 };
    let until = world.now + SignedDuration::from_mins(5);
    let job = world.store.jobs().lease("worker", caps, JobScope::All, world.now, until).await.expect("reads");
    let lease = JobLease { id: job.expect("a job").id, owner: "worker" };
    assert!(world.store.jobs().end(lease, JobEnd::Done, world.now).await.expect("ended"));
    say(&[("word", "clear"), ("item", "issue/5")]).await;
    assert_eq!(world.words().await[2], (5, None, None));
}

#[tokio::test]
async fn a_plan_that_is_not_good_is_not_applied() {
    let mut world = PlanWorld::new().await;
    let apply = async |world: &PlanWorld, words: &str| {
        let fields = [("confirm", "close 3 in tide/pool"), ("approved_only", "0")];
        let answer = world.send(Who::Mona, &world.path("/apply"), &fields, false).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let page = answer.text().await.expect("a page");
        assert!(page.contains(words), "{words}: {page}");
        assert_eq!(world.jobs().await, []);
    };
    let apart = ruling(OverrideKind::NotDuplicate, 2, Some(1));
    let later = world.now + SignedDuration::from_secs(1);
    world.store.duplicates().add_override(world.repo.id, apart, later).await.expect("ruled");
    let apart = ruling(OverrideKind::NotDuplicate, 5, Some(4));
    let ruled = world.store.duplicates().add_override(world.repo.id, apart, later).await.expect("ruled");
    apply(&world, &format!("override {} was given or removed after plan", ruled.id)).await;
    let good = world.plan;
    world.plan = world.planned(SignedDuration::from_hours(7 * 24 + 1)).await;
    apply(&world, "is older than 7 days").await;
    world.plan = good;
    apply(&world, "is newer and has items of plan").await;
    world.plan = world.planned(-SignedDuration::from_secs(2)).await;
    let kind = canonry_store::BrakeKind::Pause;
    world.store.close().set_brake(world.repo.id, kind, None, "so", world.now).await.expect("set");
    apply(&world, "Canonry is paused in this repository").await;
    world.store.close().lift_brake(world.repo.id, kind, None, world.now).await.expect("lifted");
    world
        .store
        .repos()
        .write_settings(world.repo.id, Some("close:\n  minClose: often\n"), world.now)
        .await
        .expect("kept");
    apply(&world, "has an error").await;
    let world = PlanWorld::without_maintainers().await;
    apply(&world, "run `canonry maintainers refresh --repo tide/pool`").await;
}

#[tokio::test]
async fn what_was_closed_is_opened_again_after_a_confirmation() {
    let world = PlanWorld::new().await;
    let undo = async |fields: &[(&str, &str)]| world.send(Who::Mona, &world.path("/undo"), fields, false).await;
    let whole = [("reason", "not-duplicate"), ("confirm", "reopen 1 in tide/pool"), ("note", "They differ.")];
    let nothing = undo(&whole).await;
    assert!(nothing.text().await.expect("a page").contains("everything that this plan closed is open again"));
    world.applied().await;
    let page = world.page(Who::Mona, &world.path("/rows/issue/2?show=ended")).await;
    assert!(
        page.contains("type=\"checkbox\" data-all")
            && page.contains("reopen #2")
            && page.contains("reopen 1 in tide/pool"),
        "{page}"
    );
    assert!(page.contains("skipped: drift:source_edited"));
    for fields in [
        vec![("reason", "other"), ("confirm", "reopen 2 in tide/pool")],
        vec![("reason", "other"), ("item", "issue/2"), ("confirm", "reopen 1 in tide/pool")],
    ] {
        let answer = undo(&fields).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}");
        assert!(answer.text().await.expect("a page").contains("Nothing was undone"));
    }
    for fields in
        [vec![("confirm", "reopen 1 in tide/pool")], vec![("reason", "mood"), ("confirm", "reopen 1 in tide/pool")]]
    {
        assert_eq!(undo(&fields).await.status(), StatusCode::BAD_REQUEST, "{fields:?}");
    }
    assert_eq!(world.jobs().await, []);
    assert_eq!(
        undo(&[("reason", "wrong-target"), ("item", "issue/2"), ("confirm", "reopen #2")]).await.status(),
        StatusCode::SEE_OTHER
    );
    assert_eq!(undo(&whole).await.status(), StatusCode::SEE_OTHER);
    let by = Some("mona".parse().expect("a login"));
    let one = UndoOrder {
        plan: world.plan,
        item: Some((ISSUE, number(2))),
        reason: UndoReason::WrongTarget,
        note: None,
        by: by.clone(),
    };
    let all = UndoOrder {
        plan: world.plan,
        item: None,
        reason: UndoReason::NotDuplicate,
        note: Some("They differ.".to_owned()),
        by,
    };
    let jobs = world.jobs().await;
    assert_eq!(
        jobs.iter().map(ConsoleOrder::of).collect::<Vec<_>>(),
        [Some(ConsoleOrder::Undo(all)), Some(ConsoleOrder::Undo(one))]
    );
}

#[tokio::test]
async fn a_plan_is_ordered_and_awaited() {
    let world = PlanWorld::new().await;
    let bad = world.send(Who::Mona, "/plans", &[("min_close", "150")], false).await;
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
    assert_eq!(world.jobs().await, []);
    let fields = [("type", "issue"), ("min_close", "95"), ("policy", "")];
    let answer = world.send(Who::Mona, "/plans", &fields, false).await;
    assert_eq!(answer.headers()["location"], "/r/tide/pool/plans");
    let jobs = world.jobs().await;
    let order = PlanOrder {
        item_type: Some(ISSUE),
        min_close: canonry_domain::Probability::new(0.95).ok(),
        policy: None,
        by: Some("mona".parse().expect("a login")),
    };
    assert_eq!(jobs.iter().map(ConsoleOrder::of).collect::<Vec<_>>(), [Some(ConsoleOrder::Plan(order))]);
    let part = world.ask(Who::Rita, "/plans/making", true).await.text().await.expect("a part");
    assert!(part.starts_with("<p id=\"making\"") && part.contains("Making a plan…"), "{part}");
    assert!(world.page(Who::Rita, "/plans").await.contains("Making a plan…"));
}
