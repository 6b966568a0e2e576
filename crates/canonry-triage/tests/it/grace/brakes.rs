//! The limits on closes: the daily limit, a pause, and the breaker that objections trip.

use canonry_config::parse;
use canonry_domain::{GraceEnd, ItemNumber, ItemType, UndoReason, WriteOrigin};
use canonry_store::{BrakeKind, GraceState, ObjectionKind};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{ApplyError, ApplyOptions, GraceOutcome, Objections, apply_close, undo_last_close};

use crate::grace::cases::{FILE, announced, assert_closed, closes, grace, in_grace, is_open, meanwhile, said, sweep};
use crate::triage::setting::{OWN, REPO, Setting, plain};

fn waits(why: &str) -> GraceOutcome {
    GraceOutcome::Waiting(why.to_owned())
}

/// Finds objections to closes, and publishes the consequences. Returns how many are new.
pub(crate) async fn hear(setting: &Setting) -> u64 {
    let (github, outbox) = (setting.github(), setting.outbox().await);
    let objections =
        Objections { store: &setting.store, outbox: Some(&outbox), repo: &setting.repo, handle: "canonry" };
    let report = objections.find(&github, setting.now()).await.expect("heard");
    setting.publish().await;
    assert_eq!((report.retry_at, report.failed), (None, None));
    report.new
}

/// The notices to maintainers about the breaker on an item.
async fn told(setting: &Setting, item: ItemNumber) -> Vec<String> {
    let entries = setting.store.outbox().of_item(setting.repo.id, item).await.expect("reads");
    let about = entries.iter().filter(|entry| entry.source.origin == WriteOrigin::BreakerNotice);
    about.map(|entry| entry.payload.to_string()).collect()
}

pub(crate) async fn closed(setting: &Setting) -> ItemNumber {
    let item = announced(setting).await;
    setting.later(73);
    assert_eq!(sweep(setting).await, [(item, GraceOutcome::Closed)]);
    item
}

on_both_engines! {
    async fn no_more_are_closed_in_a_day_than_allowed(database: TestDatabase) {
        let setting = in_grace(database).await;
        setting.emulator.world().get_mut(REPO).file(FILE, "triage: {mode: grace}\nclose: {maxPerDay: 2}\n");
        let mut items = Vec::new();
        for _ in 0..5 {
            items.push(announced(&setting).await);
        }
        setting.later(75);
        let outcomes: Vec<GraceOutcome> = sweep(&setting).await.into_iter().map(|(_, outcome)| outcome).collect();
        let limit = || waits("daily_limit");
        assert_eq!(outcomes, [GraceOutcome::Closed, GraceOutcome::Closed, limit(), limit(), limit()]);
        assert_eq!(grace(&setting, items[2]).await.reason.as_deref(), Some("daily_limit"));
        assert_eq!(sweep(&setting).await.len(), 3, "they wait");
        // An objection in the meantime counts.
        meanwhile(&setting, |world| world.comment(REPO, plain(items[3]), "ann", "Wait!"));
        setting.later(24);
        let outcomes: Vec<GraceOutcome> = sweep(&setting).await.into_iter().map(|(_, outcome)| outcome).collect();
        let cancelled = GraceOutcome::Cancelled(GraceEnd::HumanCommented);
        assert_eq!(outcomes, [GraceOutcome::Closed, cancelled, GraceOutcome::Closed]);
        let open: Vec<bool> = items.iter().map(|item| is_open(&setting, *item)).collect();
        assert_eq!(open, [false, false, false, true, false]);
    }

    async fn a_pause_stops_every_close_and_no_undo(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let before = closed(&setting).await;
        let item = announced(&setting).await;
        let by = "maint".parse().expect("a login");
        store.close().set_brake(repo.id, BrakeKind::Pause, Some(&by), "holidays", setting.now()).await.expect("paused");
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, waits("paused"))]);
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let plan = grace(&setting, before).await.plan.expect("a plan");
        let config = parse("");
        let options = ApplyOptions { plan, approved_only: false, config: &config, run_id: "by hand", most_rows: None, ordered_at: jiff::Timestamp::MAX };
        let refused = apply_close(store, &github, &outbox, repo, options, &mut |_| {}).await;
        let Err(ApplyError::Refused(words)) = refused else { panic!("{refused:?}") };
        assert!(words.contains("is paused by maint"), "{words}");
        let undone = undo_last_close(
            store, &github, &outbox, repo, ItemType::Issue, before, &by, UndoReason::Other, "canonry",
        );
        undone.await.expect("undone");
        assert!(is_open(&setting, before));
        store.close().lift_brake(repo.id, BrakeKind::Pause, Some(&by), setting.now()).await.expect("lifted");
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert_closed(&setting, item, "after the pause");
    }

    async fn three_objections_in_a_week_stop_all_closing(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (store, repo) = (&setting.store, setting.repo.id);
        let mut items = Vec::new();
        for _ in 0..4 {
            items.push(announced(&setting).await);
        }
        setting.later(75);
        assert_eq!(sweep(&setting).await.len(), 4);
        let running = announced(&setting).await;
        assert_eq!(hear(&setting).await, 0);
        // One item is reopened; the author of another, and two strangers on a third, disagree. One stranger alone is
        // no objection.
        meanwhile(&setting, |world| world.reopen(REPO, plain(items[0]), "ann"));
        setting.sync().await;
        let comment = |setting: &Setting, item: ItemNumber| {
            let world = setting.emulator.world();
            world.comments_by(REPO, plain(item), OWN).last().expect("a comment").id
        };
        let disliked = [(items[1], "ann", "confused"), (items[2], "eve", "-1"), (items[2], "bob", "-1")];
        for (item, by, content) in disliked.into_iter().chain([(items[3], "eve", "-1"), (items[3], "stale[bot]", "-1")]) {
            let comment = comment(&setting, item);
            setting.emulator.world().react_to_comment(REPO, comment, by, content);
        }
        assert!(store.close().brake_in_force(repo, BrakeKind::Breaker).await.expect("reads").is_none());
        assert_eq!(hear(&setting).await, 3);
        let kinds: Vec<_> = store.close().objections(repo).await.expect("reads").iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [ObjectionKind::Reopened, ObjectionKind::Reaction, ObjectionKind::Reaction]);
        let brake = store.close().brake_in_force(repo, BrakeKind::Breaker).await.expect("reads").expect("pulled");
        assert_eq!((brake.set_by, brake.why.as_str()), (None, "3 objections to closes in 7 days"));
        let told = told(&setting, items[2]).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("`/canonry resume`"), "{told:?}");
        // The announced close is cancelled.
        let ended = grace(&setting, running).await;
        assert_eq!((ended.state, ended.reason.as_deref()), (GraceState::Cancelled, Some("breaker")));
        assert!(said(&setting, running).contains("too many recent closes were wrong"), "{}", said(&setting, running));
        setting.later(100);
        assert_eq!(sweep(&setting).await, []);
        assert_eq!(closes(&setting, running), 0);
        // Maintainers are notified only once, and objections from before the breaker was lifted do not trip it again.
        assert_eq!(hear(&setting).await, 0);
        assert_eq!(super::brakes::told(&setting, items[2]).await, told);
        store.close().lift_brake(repo, BrakeKind::Breaker, None, setting.now()).await.expect("lifted");
        assert_eq!(hear(&setting).await, 0);
        assert!(store.close().brake_in_force(repo, BrakeKind::Breaker).await.expect("reads").is_none());
        let again = closed(&setting).await;
        assert_closed(&setting, again, "after the brake was lifted");
    }
}
