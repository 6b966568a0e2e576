//! Everything that ends a grace period, found right before the close although no webhook reported it.

use canonry_domain::{GraceEnd, ItemNumber, ItemType, OverrideKind};
use canonry_store::{BrakeKind, GraceState, NewOverride};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault, NewIssue, Pull, World};
use canonry_testkit::on_both_engines;
use canonry_triage::GraceOutcome;

use crate::grace::cases::{
    ANNOUNCED, FILE, GRACE, announced, assert_closed, closes, grace, in_grace, is_open, meanwhile, said, sweep,
    try_sweep,
};
use crate::triage::setting::{LABEL, OWN, REPO, Setting, number, plain};

type Act = fn(&mut World, u64, u64);

/// What people do to the item (its number, the number of our comment), and the resulting end.
const ACTS: [(GraceEnd, Act); 19] = [
    (GraceEnd::Reaction, |world, _, comment| {
        world.react_to_comment(REPO, comment, "eve", "-1");
    }),
    (GraceEnd::Reaction, |world, _, comment| {
        world.react_to_comment(REPO, comment, "eve", "confused");
    }),
    // Canonry never reacts like this: a person has the account, too.
    (GraceEnd::Reaction, |world, _, comment| {
        world.react_to_comment(REPO, comment, OWN, "-1");
    }),
    (GraceEnd::HumanCommented, |world, item, _| {
        world.comment(REPO, item, "eve", "This is something else.");
    }),
    (GraceEnd::HumanCommented, |world, item, _| {
        world.comment(REPO, item, OWN, "I wrote this by hand.");
    }),
    (GraceEnd::Reopened, |world, item, _| {
        world.close(REPO, item, "zoe", CloseReason::NotPlanned);
        world.reopen(REPO, item, "zoe");
    }),
    (GraceEnd::Closed, |world, item, _| world.close(REPO, item, "zoe", CloseReason::Completed)),
    (GraceEnd::LabelRemoved, |world, item, _| world.unlabel(REPO, item, "ann", LABEL)),
    (GraceEnd::LabelRemoved, |world, item, _| {
        world.unlabel(REPO, item, "ann", LABEL);
        world.label(REPO, item, "maint", LABEL);
    }),
    (GraceEnd::Edited, |world, item, _| world.edit_title(REPO, item, "ann", "Something else is written twice")),
    (GraceEnd::Edited, |world, item, _| {
        let before = world.issue(REPO, item).body.clone().unwrap_or_default();
        world.edit_body(REPO, item, "ann", "Not so.");
        world.edit_body(REPO, item, "ann", &format!("{before} Also on Tuesdays."));
    }),
    (GraceEnd::Assigned, |world, item, _| world.assign(REPO, item, "maint", "zoe")),
    (GraceEnd::Milestoned, |world, item, _| {
        let milestone = world.milestone(REPO, "1.0");
        world.set_milestone(REPO, item, "maint", Some(milestone));
    }),
    (GraceEnd::LinkedPull, |world, item, _| {
        let body = format!("Fixes #{item}.");
        world.open(REPO, "zoe", NewIssue::new("Mend it", &body).pull(Pull::default()));
    }),
    (GraceEnd::CommentDeleted, |world, _, comment| world.delete_comment(REPO, comment, "maint")),
    (GraceEnd::Protected, |world, item, _| world.label(REPO, item, "maint", "Security")),
    (GraceEnd::Protected, |world, item, _| world.label(REPO, item, "maint", "Question")),
    (GraceEnd::Locked, |world, item, _| world.lock(REPO, item, "maint", None)),
    (GraceEnd::Pinned, |world, item, _| world.pin(REPO, item, "maint", true)),
];

/// Activity that is no objection.
const HARMLESS: [Act; 5] = [
    |_, _, _| {},
    |world, _, comment| {
        world.react_to_comment(REPO, comment, "eve", "+1");
        world.react_to_comment(REPO, comment, "stale[bot]", "-1");
    },
    |world, item, _| {
        world.comment(REPO, item, "stale[bot]", "Still there?");
    },
    |world, item, _| {
        world.react(REPO, item, "eve", "-1");
    },
    |world, item, _| {
        let pull = world.open(REPO, "zoe", NewIssue::new("Mend it", &format!("See #{item}.")).pull(Pull::default()));
        world.close(REPO, pull, "zoe", CloseReason::NotPlanned);
    },
];

fn act_on(setting: &Setting, item: ItemNumber, act: Act) {
    let comment = setting.comment_id(item);
    meanwhile(setting, |world| act(world, plain(item), comment));
}

async fn assert_ended(setting: &Setting, item: ItemNumber, end: GraceEnd) {
    let ended = grace(setting, item).await;
    assert_eq!((ended.state, ended.reason.as_deref()), (GraceState::Cancelled, Some(end.as_str())), "#{item}");
    // Nothing is closed later.
    setting.later(24 * 10);
    assert!(sweep(setting).await.iter().all(|(other, _)| *other != item), "{end}");
    assert_eq!(closes(setting, item), 0, "{end}");
    // Too many open ones would be nearer to the next one than the original.
    meanwhile(setting, |world| world.close(REPO, plain(item), "maint", CloseReason::NotPlanned));
    setting.sync().await;
}

on_both_engines! {
    async fn whatever_people_do_ends_the_grace(database: TestDatabase) {
        let setting = in_grace(database).await;
        for (end, act) in ACTS {
            let item = announced(&setting).await;
            act_on(&setting, item, act);
            setting.later(71);
            assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(end))], "{end}");
            let text = said(&setting, item);
            if end == GraceEnd::CommentDeleted {
                assert_eq!(text, "", "a comment that people deleted stays away");
            } else {
                assert!(!text.contains(ANNOUNCED), "{end}: {text}");
                let why = format!("**Close cancelled**, because {}.\n\nThis looked like", end.in_words());
                assert!(text.starts_with(&why), "{end}: {text}");
            }
            assert_ended(&setting, item, end).await;
        }
    }

    async fn what_is_no_objection_ends_nothing(database: TestDatabase) {
        let setting = in_grace(database).await;
        for (case, act) in HARMLESS.into_iter().enumerate() {
            let item = announced(&setting).await;
            act_on(&setting, item, act);
            setting.later(69);
            assert_eq!(sweep(&setting).await, [], "case {case}: an hour is left");
            setting.later(2);
            assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)], "case {case}");
            assert_closed(&setting, item, &format!("case {case}"));
        }
    }

    async fn what_is_not_on_the_item_ends_it_too(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (store, repo) = (&setting.store, setting.repo.id);
        // A ruling, a change of the settings, the breaker, a deleted item, and a closed target.
        let item = announced(&setting).await;
        let new = NewOverride {
            item_type: ItemType::Issue, kind: OverrideKind::NotDuplicate, item, other: Some(number(1)), note: None,
            by: None,
        };
        store.duplicates().add_override(repo, new, setting.now()).await.expect("ruled");
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::NotDuplicate))]);
        assert_ended(&setting, item, GraceEnd::NotDuplicate).await;

        let item = announced(&setting).await;
        setting.emulator.world().get_mut(REPO).file(FILE, "triage: {mode: suggest}\n");
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::ModeChanged))]);
        setting.emulator.world().get_mut(REPO).file(FILE, GRACE);
        assert_ended(&setting, item, GraceEnd::ModeChanged).await;

        let item = announced(&setting).await;
        store.close().set_brake(repo, BrakeKind::Breaker, None, "enough", setting.now()).await.expect("pulled");
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::Breaker))]);
        store.close().lift_brake(repo, BrakeKind::Breaker, None, setting.now()).await.expect("lifted");
        assert_ended(&setting, item, GraceEnd::Breaker).await;

        let item = announced(&setting).await;
        meanwhile(&setting, |world| world.delete(REPO, plain(item), "maint"));
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::Gone))]);

        let item = announced(&setting).await;
        meanwhile(&setting, |world| world.close(REPO, 1, "maint", CloseReason::Completed));
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::TargetClosed))]);
        assert!(is_open(&setting, item));
    }

    async fn what_cannot_be_read_is_waited_for(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.later(73);
        for route in [
            "/repos/*/*/issues/comments/*/reactions",
            "/repos/*/*/issues/*/timeline",
            "/repos/*/*/issues/*/comments",
            "/repos/*/*/contents/**",
        ] {
            setting.later(1);
            setting.emulator.fault(Fault::on("GET", route).always().answer(500));
            let (github, outbox) = (setting.github(), setting.outbox().await);
            let swept = try_sweep(&setting, &github, &outbox).await;
            assert!(swept.is_err(), "{route}: {swept:?}");
            setting.emulator.clear_faults();
            assert_eq!(grace(&setting, item).await.state, GraceState::Waiting, "{route}");
            assert!(is_open(&setting, item), "{route}");
        }
        setting.emulator.world().get_mut(REPO).file(FILE, "triage: {mode: grace}\nclose: {graceHours: soon}\n");
        setting.later(1);
        let waits = GraceOutcome::Waiting("the settings of the repository cannot be read".to_owned());
        assert_eq!(sweep(&setting).await, [(item, waits)]);
        setting.emulator.world().get_mut(REPO).file(FILE, GRACE);
        setting.later(1);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert_closed(&setting, item, "once everything can be read");
    }
}
