//! What people do with suggestions, and what Canonry learns from each action.

use canonry_domain::LessonKind;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::CloseReason;
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::topics::UNJUDGEABLE;
use crate::world::triage_world::{OWN, SUGGEST, TriageWorld};

const POOL: &str = "tide/pool";
const LAGOON: &str = "tide/lagoon";

on_both_engines! {
    async fn what_people_do_is_what_it_learns(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL, LAGOON]).await;
        for repo in [POOL, LAGOON] {
            setting.emulator.world().get_mut(repo).file(".canonry.yml", SUGGEST);
        }
        setting.settle().await;
        closings(&setting).await;
        corrections(&setting).await;
        what_teaches_nothing(&setting).await;
        reactions(&setting).await;
        setting.stop().await;
    }
}

/// The order of evidence: reason, label, text, then completed and not planned.
async fn closings(setting: &TriageWorld) {
    let by_reason = setting.report(POOL, 0, 95);
    let below = setting.report(POOL, 0, 80);
    let completed = setting.report(POOL, 1, 95);
    let not_planned = setting.report(POOL, 1, 96);
    let labelled = setting.report(POOL, 2, 95);
    let of_another = setting.report(POOL, 3, 95);
    let by_text = setting.report(POOL, 3, 96);
    let lonely = setting.report_as(POOL, "ben", "Something else: topic500", &[]);
    let missed = setting.report_as(POOL, "ben", "Something else: topic501", &[]);
    setting.settle().await;
    setting.assert_said(POOL, by_reason, 1);
    setting.assert_silent(POOL, below);

    setting.confirm(POOL, by_reason);
    setting.confirm(POOL, below);
    setting.close(POOL, completed, "maint", CloseReason::Completed);
    setting.close(POOL, not_planned, "ann", CloseReason::NotPlanned);
    setting.meanwhile(|world| world.label(POOL, labelled, "maint", "duplicate"));
    setting.close(POOL, labelled, "maint", CloseReason::Completed);
    for (number, target) in [(of_another, 6), (by_text, 4)] {
        setting.meanwhile(|world| {
            world.comment(POOL, number, "maint", &format!("This is a duplicate of #{target}, I think."))
        });
        setting.close(POOL, number, "maint", CloseReason::NotPlanned);
    }
    setting.close(POOL, lonely, "maint", CloseReason::Completed);
    let first = setting.emulator.world().issue(POOL, 1).id;
    setting.close(POOL, missed, "maint", CloseReason::Duplicate(Some(first)));
    setting.settle().await;

    for (what, number, lesson) in [
        ("closed as a duplicate", by_reason, LessonKind::Confirmed),
        ("the same, though nothing was said", below, LessonKind::Confirmed),
        ("done", completed, LessonKind::FalsePositive),
        ("not planned", not_planned, LessonKind::FalsePositive),
        ("the label outranks the reason", labelled, LessonKind::Confirmed),
        ("a duplicate of another", of_another, LessonKind::Missed),
        ("the closer says of which", by_text, LessonKind::Confirmed),
        ("nothing was predicted, and nothing was", lonely, LessonKind::TrueNegative),
        ("nothing was predicted, and something was", missed, LessonKind::Missed),
    ] {
        assert_eq!(setting.lesson(POOL, number).await, Some(lesson), "{what}: #{number}");
    }
    // A duplicate of another item counts as missed and as a wrong prediction.
    assert_eq!(setting.counts(POOL).await, [4, 3, 2, 1, 9]);
    assert_eq!(setting.current(POOL).await, None, "three of six at 85 or more were wrong");
}

/// A later event corrects an earlier outcome, and a redelivery corrects nothing.
async fn corrections(setting: &TriageWorld) {
    let before = setting.counts(POOL).await;
    let number = setting.report(POOL, 4, 95);
    setting.settle().await;
    let lesson = || setting.lesson(POOL, number);
    setting.confirm(POOL, number);
    let closed = setting.emulator.pending_deliveries().pop().expect("a delivery").guid;
    setting.settle().await;
    assert_eq!(lesson().await, Some(LessonKind::Confirmed));
    setting.meanwhile(|world| world.reopen(POOL, number, "ann"));
    setting.settle().await;
    assert_eq!(lesson().await, Some(LessonKind::FalsePositive), "a person says that it is none");
    setting.meanwhile(|world| world.redeliver(&closed));
    setting.settle().await;
    assert_eq!(lesson().await, Some(LessonKind::FalsePositive), "the old closing is told again, and is old");
    setting.confirm(POOL, number);
    setting.settle().await;
    assert_eq!(lesson().await, Some(LessonKind::Confirmed), "closed, reopened, closed");

    let after_close = setting.report(POOL, 4, 96);
    setting.settle().await;
    setting.close(POOL, after_close, "maint", CloseReason::Completed);
    setting.settle().await;
    assert_eq!(setting.lesson(POOL, after_close).await, Some(LessonKind::FalsePositive));
    setting.meanwhile(|world| world.label(POOL, after_close, "maint", "duplicate"));
    setting.settle().await;
    assert_eq!(setting.lesson(POOL, after_close).await, Some(LessonKind::Confirmed), "labelled after the closing");
    setting.meanwhile(|world| world.unlabel(POOL, after_close, "maint", "duplicate"));
    setting.settle().await;
    assert_eq!(setting.lesson(POOL, after_close).await, Some(LessonKind::FalsePositive), "and the label is gone again");
    setting.meanwhile(|world| world.reopen(POOL, after_close, "maint"));
    setting.settle().await;
    assert_eq!(setting.lesson(POOL, after_close).await, None, "it is open, and nobody can tell");
    let after = setting.counts(POOL).await;
    assert_eq!((after[0] - before[0], after[4] - before[4]), (1, 1), "one issue, one lesson");
}

/// Bots, Canonry itself, failed triages, and repeated deliveries.
async fn what_teaches_nothing(setting: &TriageWorld) {
    let stale = setting.report(POOL, 0, 97);
    let own = setting.report(POOL, 0, 98);
    let failed = setting.report_as(POOL, "ben", &format!("It stops: topic1 alike97 {UNJUDGEABLE}"), &[]);
    let excluded = setting.report_as(POOL, "ben", "It stops: topic1 alike97", &["question"]);
    setting.settle().await;
    let before = setting.counts(POOL).await;
    setting.close(POOL, stale, "stale[bot]", CloseReason::NotPlanned);
    setting.close(POOL, own, OWN, CloseReason::Duplicate(None));
    setting.confirm(POOL, failed);
    setting.confirm(POOL, excluded);
    let told: Vec<String> = setting.emulator.pending_deliveries().into_iter().map(|delivery| delivery.guid).collect();
    setting.settle().await;
    setting.meanwhile(|world| told.iter().for_each(|guid| world.redeliver(guid)));
    setting.settle().await;
    for number in [stale, own, failed, excluded] {
        assert_eq!(setting.lesson(POOL, number).await, None, "#{number}");
    }
    assert_eq!(setting.counts(POOL).await, before);
    // A person's later event is evidence.
    setting.meanwhile(|world| world.label(POOL, stale, "maint", "duplicate"));
    setting.meanwhile(|world| world.reopen(POOL, own, "ann"));
    setting.settle().await;
    assert_eq!(setting.lesson(POOL, stale).await, Some(LessonKind::Confirmed));
    assert_eq!(setting.lesson(POOL, own).await, Some(LessonKind::FalsePositive));
}

/// Reactions count while there is no outcome: polled, only from people, and not after they are removed.
async fn reactions(setting: &TriageWorld) {
    let (down, up, mixed) =
        (setting.report(LAGOON, 2, 96), setting.report(LAGOON, 2, 97), setting.report(LAGOON, 2, 98));
    setting.settle().await;
    let react = |number: u64, by: &[(&str, &str)]| {
        let mut world = setting.emulator.world();
        let comment = world.comments_by(LAGOON, number, OWN)[0].id;
        for (login, content) in by {
            world.react_to_comment(LAGOON, comment, login, content);
        }
    };
    react(down, &[("ann", "-1"), ("stale[bot]", "-1"), (OWN, "+1")]);
    react(up, &[("ann", "+1"), ("ben", "+1")]);
    react(mixed, &[("ann", "+1"), ("ben", "-1"), ("cleo", "-1")]);
    setting.later(SignedDuration::from_hours(5)).await;
    assert_eq!(setting.lesson(LAGOON, down).await, None, "one person is not enough");
    assert_eq!(setting.lesson(LAGOON, up).await, Some(LessonKind::Confirmed));
    assert_eq!(setting.lesson(LAGOON, mixed).await, None);
    react(down, &[("cleo", "-1")]);
    setting.later(SignedDuration::from_hours(5)).await;
    assert_eq!(setting.lesson(LAGOON, down).await, Some(LessonKind::FalsePositive));
    setting.meanwhile(|world| {
        let comment = world.comments_by(LAGOON, down, OWN)[0].id;
        let comment = world.get_mut(LAGOON).comments.get_mut(&comment).expect("there");
        comment.reactions.retain(|reaction| reaction.author != "cleo");
    });
    setting.later(SignedDuration::from_hours(5)).await;
    assert_eq!(setting.lesson(LAGOON, down).await, None, "taken back");
    // An outcome counts, and the reactions in addition to it do not.
    let before = setting.counts(LAGOON).await;
    setting.close(LAGOON, up, "maint", CloseReason::Completed);
    setting.settle().await;
    assert_eq!(setting.lesson(LAGOON, up).await, Some(LessonKind::FalsePositive));
    let after = setting.counts(LAGOON).await;
    assert_eq!((after[0] + 1, after[1], after[4]), (before[0], before[1] + 1, before[4]));
}
