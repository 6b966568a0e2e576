//! No item is closed automatically as a duplicate of a newer one, whatever strangers do to either.

use std::collections::BTreeSet;

use canonry_domain::{GraceEnd, ItemNumber, ItemType};
use canonry_store::GraceState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, EventKind, State};
use canonry_testkit::on_both_engines;
use canonry_triage::{EmbedOptions, GraceOutcome, begin_announced_graces, embed};

use crate::grace::cases::{ANNOUNCED, announced, grace, in_grace, is_open, meanwhile, said, sweep};
use crate::triage::setting::{ALPHA, OWN, REPO, Setting, number, plain, yes};

on_both_engines! {
    async fn an_old_original_is_not_closed_in_favour_of_a_new_copy(database: TestDatabase) {
        let setting = in_grace(database).await;
        setting.later(4 * 365 * 24);
        let copy = announced(&setting).await;
        meanwhile(&setting, |world| world.comment(REPO, plain(copy), "eve", "Me too, and I have a log."));
        setting.later(73);
        let ended = GraceOutcome::Cancelled(GraceEnd::HumanCommented);
        assert_eq!(sweep(&setting).await, [(copy, ended)]);
        // The author of the original fixes a typo, and the judge calls it a duplicate of the copy.
        setting.judge_says(yes(copy.get(), 0.99));
        let original = number(1);
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.edit_title(REPO, 1, "zoe", "Original alpha: the exporter writes its summary twice!");
        }
        setting.triage(original).await;
        begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
        assert!(!said(&setting, original).contains(ANNOUNCED), "{}", said(&setting, original));
        setting.later(24 * 7);
        assert_eq!(sweep(&setting).await, []);
        assert!(is_open(&setting, original) && is_open(&setting, copy));
    }

    async fn an_announcement_that_is_sent_late_names_the_real_end(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage_only(item).await;
        setting.later(5);
        setting.publish().await;
        let outbox = setting.outbox().await;
        for _ in 0..2 {
            begin_announced_graces(&setting.store, Some(&outbox), setting.now()).await.expect("begun");
            setting.publish().await;
        }
        let named = grace(&setting, item).await.due_at.strftime("so it will be **closed on %-d %b, %H:%M UTC**.");
        assert!(said(&setting, item).contains(&named.to_string()), "{}", said(&setting, item));
        assert_eq!(setting.entries(item).await, ["comment sent", "label sent", "edit_comment sent"]);
        // The correction does not end the grace period.
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
    }

    async fn of_two_at_first_contact_only_the_newer_is_announced(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (one, other) = (setting.report(ALPHA, 0.95), setting.report(ALPHA, 0.94));
        setting.sync().await;
        let all = EmbedOptions { only_changed: true, ..EmbedOptions::default() };
        let embedder = setting.embedder();
        embed(&setting.store, &embedder, &setting.repo, all, setting.now(), &mut |_| {}).await.expect("embedded");
        for (item, of) in [(one, other), (other, one)] {
            setting.judge_says(yes(of.get(), 0.96));
            setting.triage(item).await;
        }
        begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
        assert!(!said(&setting, one).contains(ANNOUNCED), "{}", said(&setting, one));
        assert!(said(&setting, other).contains(ANNOUNCED), "{}", said(&setting, other));
    }

    async fn the_order_is_computed_again_when_the_grace_is_over(database: TestDatabase) {
        let setting = in_grace(database).await;
        // The original and the report have the same number of comments, so the older one wins.
        let comment = setting.emulator.world().comment(REPO, 1, "eve", "Me too.");
        let item = setting.report(ALPHA, 0.95);
        setting.emulator.world().comment(REPO, plain(item), "bob", "Me too.");
        setting.later(1);
        setting.sync().await;
        setting.triage(item).await;
        begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
        assert!(said(&setting, item).contains(ANNOUNCED), "{}", said(&setting, item));
        meanwhile(&setting, |world| world.delete_comment(REPO, comment, "eve"));
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::Outranked))]);
        assert!(said(&setting, item).contains("because it is older or more active than the other item."));
        assert!(is_open(&setting, item));
    }

    async fn no_history_closes_an_older_item_towards_a_newer_one(database: TestDatabase) {
        let setting = in_grace(database).await;
        // The judge calls the source a duplicate of the newest candidate.
        setting.models.answer_by(|request| {
            let prompt = request.body.to_string();
            let (_, numbers) = prompt.rsplit_once("Is the source a duplicate of one of ")?;
            let last = numbers.split('?').next()?.rsplit(", ").next()?.parse().ok()?;
            Some(yes(last, 0.99))
        });
        let mut random = Random(0x5eed);
        let cases = if std::env::var_os("CANONRY_SOAK").is_some() { 400 } else { 60 };
        for _ in 0..cases {
            step(&setting, &mut random).await;
            assert_no_two_close_each_other(&setting).await;
        }
        setting.later(100);
        sweep(&setting).await;
        let closes = closes_of(&setting);
        assert!(!closes.is_empty(), "nothing was closed at all, so that nothing was tested");
        for (item, target) in closes {
            assert!(target < item, "#{} was closed as a duplicate of #{}", item.1, target.1);
        }
    }
}

/// Pseudo-random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

/// A person does something, and Canonry triages it.
async fn step(setting: &Setting, random: &mut Random) {
    let open: Vec<u64> = {
        let world = setting.emulator.world();
        let issues = world.get(REPO).issues.values();
        issues.filter(|issue| issue.state == State::Open).map(|issue| issue.number).collect()
    };
    let any = open[random.below(open.len())];
    let who = ["ann", "bob", "eve", "zoe", "stale[bot]"][random.below(5)];
    match random.below(9) {
        0 | 1 => {
            let copy = setting.report(ALPHA, 0.95);
            setting.triage(copy).await;
        }
        2..=4 => {
            // After an edit an item is triaged again, however old it is.
            let title = format!("{} {}", setting.title(ALPHA, 0.96), random.below(1_000));
            let author = setting.emulator.world().issue(REPO, any).author.clone();
            meanwhile(setting, |world| world.edit_title(REPO, any, &author, &title));
            setting.triage(number(any)).await;
        }
        5 => {
            meanwhile(setting, |world| world.comment(REPO, any, who, "I see it, too."));
        }
        6 => {
            meanwhile(setting, |world| {
                world.close(REPO, any, who, CloseReason::NotPlanned);
                world.advance(60);
                world.reopen(REPO, any, who);
            });
        }
        _ => {
            setting.later(i64::try_from(random.below(60)).expect("small"));
            sweep(setting).await;
        }
    }
    setting.sync().await;
}

async fn assert_no_two_close_each_other(setting: &Setting) {
    begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
    let graces = setting.store.close().waiting_graces(Some(setting.repo.id)).await.expect("reads");
    let pairs: BTreeSet<(ItemNumber, ItemNumber)> = graces
        .iter()
        .filter(|grace| grace.state == GraceState::Waiting)
        .map(|grace| (grace.number, grace.target))
        .collect();
    for (item, target) in &pairs {
        assert!(
            !pairs.contains(&(*target, *item)),
            "#{item} and #{target} are to be closed as duplicates of each other"
        );
    }
    assert!(graces.iter().all(|grace| grace.item_type == ItemType::Issue));
}

/// What Canonry closed, and the target of each; both with their age.
fn closes_of(setting: &Setting) -> Vec<((jiff::Timestamp, u64), (jiff::Timestamp, u64))> {
    let world = setting.emulator.world();
    let repo = world.get(REPO);
    let ours = repo.issues.values().filter(|issue| {
        issue.events.iter().any(|event| event.actor == OWN && matches!(event.kind, EventKind::Closed { .. }))
    });
    let age = |id: u64| {
        let issue = repo.issues.values().find(|issue| issue.id == id).expect("it is there");
        (issue.created_at, issue.number)
    };
    ours.filter_map(|issue| Some((age(issue.id), age(issue.duplicate_of?)))).collect()
}
