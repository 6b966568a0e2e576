//! From the installation to the first suggestions: what is recorded, what is posted, and how often.

use canonry_domain::{ItemType, TriageMode, TriageReason, Verdict};
use canonry_store::TriageActionKind;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Pull;
use canonry_testkit::on_both_engines;

use crate::world::item;
use crate::world::topics::UNJUDGEABLE;
use crate::world::triage_world::{ORIGINALS, SUGGEST, TriageWorld};

const POOL: &str = "tide/pool";

on_both_engines! {
    async fn after_the_installation_it_watches_and_then_it_speaks(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        watches(&setting).await;
        is_told_to_speak(&setting).await;
        says_one_thing_once(&setting).await;
        keeps_out(&setting).await;
        takes_it_back(&setting).await;
        heeds_a_ruling(&setting).await;
        setting.stop().await;
    }
}

/// An installation begins in shadow mode: everything is recorded, nothing is written.
async fn watches(setting: &TriageWorld) {
    setting.settle().await;
    let repo = setting.repo(POOL).await;
    let taken_in = setting.store.corpus().item_numbers(repo.id).await.expect("reads");
    let originals: Vec<_> = (1..=ORIGINALS).map(|number| (item(number), ItemType::Issue)).collect();
    assert_eq!(taken_in, originals, "what was there was taken in");
    let number = setting.report(POOL, 2, 95);
    setting.settle().await;
    let record = setting.records(POOL, number).await.remove(0);
    assert_eq!((record.verdict, record.target.map(|target| target.get())), (Verdict::Duplicate, Some(3)));
    assert_eq!(record.target_score.map(|score| score.get()), Some(0.95));
    let action = setting.action(POOL, number).await.action;
    assert_eq!(
        (action.mode, action.action, action.reason),
        (TriageMode::Shadow, TriageActionKind::Recorded, TriageReason::Mode.into())
    );
    assert_eq!(setting.writes(), Vec::<String>::new());
}

/// The file on the default branch takes effect at once; one on another branch does not, and a broken one means
/// shadow.
async fn is_told_to_speak(setting: &TriageWorld) {
    setting.meanwhile(|world| world.push(POOL, "draft", "maint", ".canonry.yml", SUGGEST));
    setting.settle().await;
    let unheard = setting.report(POOL, 0, 95);
    setting.settle().await;
    setting.assert_silent(POOL, unheard);

    setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", SUGGEST));
    setting.settle().await;
    let heard = setting.report(POOL, 0, 96);
    setting.settle().await;
    setting.assert_said(POOL, heard, 1);
    let action = setting.action(POOL, heard).await.action;
    assert_eq!((action.mode, action.action), (TriageMode::Suggest, TriageActionKind::Commented));
    setting.assert_silent(POOL, unheard);

    setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", "triage:\n  mode: loud\n"));
    setting.settle().await;
    let broken = setting.report(POOL, 1, 96);
    setting.settle().await;
    setting.assert_silent(POOL, broken);
    setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", SUGGEST));
    setting.settle().await;
}

/// One comment per item, whatever is delivered, however often.
async fn says_one_thing_once(setting: &TriageWorld) {
    let number = setting.report(POOL, 4, 93);
    let opened = setting.emulator.pending_deliveries().pop().expect("a delivery").guid;
    setting.settle().await;
    setting.assert_said(POOL, number, 5);
    let first = setting.said(POOL, number);
    setting.meanwhile(|world| world.redeliver(&opened));
    setting.settle().await;
    setting.meanwhile(|world| world.edit_body(POOL, number, "ann", "It stops, again and again."));
    setting.settle().await;
    setting.meanwhile(|world| world.edit_title(POOL, number, "ann", "It stops for good: topic4 alike94"));
    setting.settle().await;
    setting.assert_said(POOL, number, 5);
    assert_eq!(setting.said(POOL, number), first, "another score changes nothing that the comment says");
    assert!(setting.records(POOL, number).await.len() >= 3, "each content is judged");
    let labels = setting.writes().iter().filter(|write| write.ends_with(&format!("/issues/{number}/labels"))).count();
    assert_eq!(labels, 1);
}

/// What gets no comment, and why.
async fn keeps_out(setting: &TriageWorld) {
    let below = setting.report(POOL, 3, 84);
    let lonely = setting.report_as(POOL, "ben", "Something else: topic500", &[]);
    let excluded = setting.report_as(POOL, "ben", "It stops: topic3 alike97", &["question"]);
    let by_a_bot = setting.report_as(POOL, "stale[bot]", "It stops: topic3 alike97", &[]);
    let unjudgeable = setting.report_as(POOL, "ben", &format!("It stops: topic3 alike97 {UNJUDGEABLE}"), &[]);
    let pull = setting.meanwhile(|world| {
        let new = canonry_testkit::github::NewIssue::new("Lets it go on: topic3", "It goes on.");
        world.open(POOL, "ben", new.pull(Pull::default()))
    });
    setting.settle().await;
    for number in [below, lonely, excluded, by_a_bot, unjudgeable, pull] {
        setting.assert_silent(POOL, number);
    }
    assert_eq!(setting.action(POOL, below).await.action.reason, TriageReason::BelowThreshold);
    assert_eq!(setting.action(POOL, lonely).await.action.reason, TriageReason::NotDuplicate);
    assert_eq!((setting.records(POOL, excluded).await.len(), setting.records(POOL, by_a_bot).await.len()), (0, 0));
    // Recorded, retried, failed, and never posted.
    assert!(setting.records(POOL, unjudgeable).await.iter().all(|record| record.reason == "invalid_judge_response"));
    assert_eq!(setting.deliveries().await.get("dead"), Some(&1));
    assert!(setting.counts(POOL).await.iter().all(|count| *count == 0), "nobody has closed anything");
}

/// An edit that makes it another report withdraws the suggestion in the same comment.
async fn takes_it_back(setting: &TriageWorld) {
    let number = setting.report(POOL, 5, 95);
    setting.settle().await;
    setting.assert_said(POOL, number, ORIGINALS);
    setting.meanwhile(|world| world.edit_title(POOL, number, "ann", "It never began: topic501"));
    setting.settle().await;
    let said = setting.said(POOL, number);
    assert_eq!((said.len(), setting.is_labelled(POOL, number)), (1, false), "{said:?}");
    assert!(said[0].contains("no longer"), "{said:?}");
    assert_eq!(setting.action(POOL, number).await.action.action, TriageActionKind::Withdrawn);
}

/// A ruling takes effect at once: the label is removed, and the comment names the person who ruled, whatever is
/// edited later.
async fn heeds_a_ruling(setting: &TriageWorld) {
    let number = setting.report(POOL, 2, 95);
    setting.settle().await;
    setting.assert_said(POOL, number, 3);
    setting.meanwhile(|world| world.comment(POOL, number, "ann", "/canonry not a duplicate"));
    setting.settle().await;
    let ruled = "`ann` answered that this is not the same problem as #3.";
    let said = setting.said(POOL, number);
    assert!(said[0].starts_with(ruled) && !setting.is_labelled(POOL, number), "{said:?}");
    setting.meanwhile(|world| world.edit_title(POOL, number, "ann", "It never began: topic502"));
    setting.settle().await;
    let said = setting.said(POOL, number);
    assert!(said[0].starts_with(ruled) && !setting.is_labelled(POOL, number), "{said:?}");
}
