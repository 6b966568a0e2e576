//! A problem that was fixed is reported again: Canonry names the fix, and never more than that.

use canonry_domain::{FixKind, ItemType, TriageReason};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewIssue, Pull, State};
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::item;
use crate::world::triage_world::{SUGGEST, TriageWorld};

const POOL: &str = "tide/pool";
const GRACE: &str = "triage: {mode: grace}\nclose: {graceHours: 48}\nreview: {enabled: false}\n";
const TITLE: &str = "The tide panics with a read-only database";
const PANIC: &str = "It stops at high tide.\n\n```\nthread 'main' panicked at crates/store/src/sqlite.rs:88:40:\n\
    read-only database handle cannot begin an immediate transaction\n```";

/// The problem of a topic is reported, and a pull request for `base` fixes it. Webhooks tell all of it.
async fn fixed(setting: &TriageWorld, topic: u64, base: &str) -> (u64, u64) {
    let report = setting
        .meanwhile(|world| world.open(POOL, "cleo", NewIssue::new(TITLE, &format!("{PANIC}\n\nSeen at topic{topic}"))));
    setting.settle().await;
    let pull = setting.meanwhile(|world| {
        let fix = NewIssue::new("Begin it later", &format!("Fixes #{report}"));
        world.open(POOL, "ben", fix.pull(Pull { base_ref: base.to_owned(), ..Pull::default() }))
    });
    setting.meanwhile(|world| world.merge(POOL, pull, "maint"));
    setting.close(POOL, report, "maint", CloseReason::Completed);
    setting.settle().await;
    (report, pull)
}

async fn again(setting: &TriageWorld, topic: u64) -> u64 {
    let body = format!("{PANIC}\n\nSeen at topic{topic} alike95");
    let number = setting.meanwhile(|world| world.open(POOL, "ann", NewIssue::new(TITLE, &body)));
    setting.settle().await;
    number
}

on_both_engines! {
    async fn a_fixed_problem_is_never_closed_as_a_duplicate(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.settle().await;
        watches(&setting).await;
        setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", GRACE));
        setting.settle().await;
        names_the_fix_and_closes_nothing(&setting).await;
        ignores_other_branches(&setting).await;
        setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", SUGGEST));
        setting.settle().await;
        heeds_a_ruling(&setting).await;
        names_a_regression(&setting).await;
        setting.stop().await;
    }
}

/// In shadow mode the fix is recorded, and nothing is written.
async fn watches(setting: &TriageWorld) {
    let (report, pull) = fixed(setting, 70, "main").await;
    let repo = setting.repo(POOL).await;
    assert_eq!(setting.store.repos().default_branch(repo.id).await.expect("reads").as_deref(), Some("main"));
    let stored = setting.store.corpus().item(repo.id, ItemType::Pr, item(pull)).await.expect("reads").expect("stored");
    assert_eq!(stored.base_branch.as_deref(), Some("main"), "a webhook names the base");
    let number = again(setting, 70).await;
    let fix = setting.records(POOL, number).await.remove(0).fix.expect("a fix");
    assert_eq!((fix.kind, fix.report, fix.fix), (FixKind::Fixed, item(report), item(pull)));
    assert_eq!(setting.action(POOL, number).await.action.reason, TriageReason::Mode);
    assert_eq!(setting.writes(), Vec::<String>::new());
}

/// Even in grace mode there is only a comment: no label, no announcement, no close.
async fn names_the_fix_and_closes_nothing(setting: &TriageWorld) {
    let (report, pull) = fixed(setting, 71, "main").await;
    let number = again(setting, 71).await;
    let said = setting.said(POOL, number);
    assert_eq!((said.len(), setting.is_labelled(POOL, number)), (1, false), "{said:?}");
    assert!(said[0].starts_with(&format!("Probably fixed by #{pull} (merged ")), "{said:?}");
    assert!(said[0].contains(&format!("That change fixed #{report}, which may be")), "{said:?}");
    let repo = setting.repo(POOL).await.id;
    let graces = setting.store.close().graces_of_item(repo, ItemType::Issue, item(number)).await.expect("reads");
    assert!(graces.is_empty(), "{graces:?}");
    setting.later(SignedDuration::from_hours(72)).await;
    assert_eq!(setting.emulator.world().issue(POOL, number).state, State::Open);
    assert!(
        !setting
            .writes()
            .iter()
            .any(|write| write.starts_with("PATCH") && write.ends_with(&format!("/issues/{number}")))
    );
    let asked = setting.said(POOL, number).len();
    setting.meanwhile(|world| world.comment(POOL, number, "ann", "/canonry why"));
    setting.settle().await;
    let said = setting.said(POOL, number);
    let why = format!("This may be the same problem as #{report}, which #{pull} fixed. Canonry commented");
    assert!(said.len() == asked + 1 && said[asked].contains(&why), "{said:?}");
}

async fn ignores_other_branches(setting: &TriageWorld) {
    fixed(setting, 72, "1.x").await;
    let number = again(setting, 72).await;
    setting.assert_silent(POOL, number);
    assert_eq!(setting.action(POOL, number).await.action.reason, TriageReason::NotDuplicate);
}

/// A person who says that it is another problem is heard at once.
async fn heeds_a_ruling(setting: &TriageWorld) {
    let (report, _) = fixed(setting, 73, "main").await;
    let number = again(setting, 73).await;
    assert_eq!(setting.said(POOL, number).len(), 1);
    setting.meanwhile(|world| world.comment(POOL, number, "ann", "/canonry not a duplicate"));
    setting.settle().await;
    let said = setting.said(POOL, number);
    let ruled = format!("`ann` answered that this is not the same problem as #{report}.");
    assert!(said[0].starts_with(&ruled), "{said:?}");
    setting.meanwhile(|world| {
        world.edit_body(POOL, number, "ann", &format!("{PANIC}\n\nSeen every day at topic73 alike95"));
    });
    setting.settle().await;
    assert!(setting.said(POOL, number)[0].starts_with(&ruled), "it is not suggested again");
}

async fn names_a_regression(setting: &TriageWorld) {
    let (report, pull) = fixed(setting, 74, "main").await;
    setting.meanwhile(|world| world.advance(70 * 24 * 3_600));
    let number = again(setting, 74).await;
    let said = setting.said(POOL, number);
    assert_eq!((said.len(), setting.is_labelled(POOL, number)), (1, false), "{said:?}");
    assert!(said[0].starts_with(&format!("This may be a regression of #{report} ")), "{said:?}");
    // The message is in so many reports by now that it is no evidence any more.
    assert!(said[0].contains(&format!("(*{TITLE}*). That was fixed by #{pull} (merged ")), "{said:?}");
}
