//! `pause` and `resume`, and the commands that show a pause.

use canonry_domain::{ContentVersion, ItemType, Login};
use canonry_store::{BrakeKind, DatabaseUrl, GraceState, NewGrace, Store};
use insta::assert_snapshot;
use serde_json::json;

use crate::lessons::{Lessons, moment, number};
use crate::place::Place;

#[test]
fn a_pause_is_told_once_and_lifted() {
    let place = Place::with_items();
    let run = |words: &[&str]| place.canonry(&[words, &["--repo", "octo/cat"]].concat()).succeeded();
    assert_eq!(run(&["resume"]).stdout, "octo/cat was not paused.\n");
    let paused = run(&["pause", "--reason", "a release\u{1b}[31m is under way"]).stdout;
    assert_eq!(paused, "Paused octo/cat: nothing is written there.\n\nTo resume: canonry resume --repo octo/cat\n");
    let again = run(&["pause", "--reason", "another reason"]).stdout;
    assert!(again.starts_with("octo/cat was paused before, just now: "), "{again}");
    assert!(again.contains("a release") && !again.contains('\u{1b}') && !again.contains("another"), "{again}");
    let told = run(&["pause", "--json"]).json();
    assert_eq!((&told["stats"], &told["brakes"][0]["kind"]), (&json!({ "paused": 0 }), &json!("pause")), "{told}");
    let lifted = run(&["resume", "--json"]).json();
    assert_eq!((&lifted["stats"], &lifted["lifted"][0]["set_by"]), (&json!({ "lifted": 1 }), &json!(null)), "{lifted}");
    assert_eq!(run(&["resume"]).stdout, "octo/cat was not paused.\n");
    assert_eq!(run(&["pause"]).stdout, paused, "it can be paused again");
}

#[test]
fn a_repository_that_nobody_knows_is_not_paused() {
    let place = Place::with_items();
    let words = place.canonry(&["pause", "--repo", "octo/dog"]);
    assert!(words.failed().contains("octo/dog is not in the database"), "{words:?}");
    let empty = Place::new();
    empty.canonry(&["pause", "--repo", "octo/cat"]).failed();
    assert!(!empty.database().exists(), "no database is made for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_and_show_tell_what_holds_back_and_what_waits() {
    let place = Place::new();
    let lessons = Lessons::in_place(&place).await;
    for of in 2..=4 {
        lessons.open(of, &[]).await;
    }
    let Lessons { store, repo } = lessons;
    let (began_at, due_at) = (moment("2026-02-01T00:00:00Z"), moment("2026-02-04T00:00:00Z"));
    let mona: Login = "mona".parse().expect("a login");
    let grace = |of: i64| NewGrace {
        item_type: ItemType::Issue,
        number: number(of),
        target: number(1),
        triage_id: None,
        comment_key: None,
        approved_by: (of == 4).then_some(&mona),
        content_version: ContentVersion::FIRST,
        began_at,
        due_at,
    };
    for of in 2..=4 {
        assert!(store.close().begin_grace(repo.id, &grace(of)).await.expect("writes"));
    }
    let newest = async |of: i64| {
        store.close().graces_of_item(repo.id, ItemType::Issue, number(of)).await.expect("reads").remove(0).id
    };
    let (cancelled, held) = (newest(2).await, newest(3).await);
    let ended = store.close().end_grace(cancelled, GraceState::Cancelled, Some("human_commented"), began_at).await;
    assert!(ended.expect("writes"));
    store.close().note_grace(held, Some("daily_limit")).await.expect("writes");
    for (kind, by) in [(BrakeKind::Pause, Some(&mona)), (BrakeKind::Breaker, None)] {
        assert!(store.close().set_brake(repo.id, kind, by, "3 objections\nin 7 days", began_at).await.expect("writes"));
    }
    store.disconnect().await;

    let doctor = place.canonry(&["doctor", "--offline"]).succeeded().stdout;
    let told: Vec<&str> = doctor.lines().skip_while(|line| !line.contains("corpus")).skip(1).take(6).collect();
    assert_snapshot!(told.join("\n"), @r"
    warn  breaker       Automatic closes are off in octo/cat, since 1 Feb 2026: 3 objections\nin 7 days
                         → run `canonry resume --repo octo/cat`
    warn  pause         octo/cat is paused by mona, since 1 Feb 2026: 3 objections\nin 7 days
                         → run `canonry resume --repo octo/cat`
    warn  closes        2 items of octo/cat will be closed unless somebody objects, issue #4 first, on 4 Feb 2026, 00:00 UTC; #3 waits: the daily limit of closes is reached
                         → see `canonry show 3 --repo octo/cat`
    ");
    let show = |of: &str| {
        let shown = place.canonry(&["show", of]).succeeded().stdout;
        let before_details = shown.split_once("\nDetails:\n").expect("details").0;
        before_details.lines().skip(3).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(["2", "3", "4"].map(show).join("\n--\n"), @r"

    Verdict: Announced close as a duplicate of #1 cancelled: it stays open because somebody commented.

    Announced close as a duplicate of #1: cancelled 1 Feb 2026: somebody commented

    Automatic closes are off in octo/cat, since 1 Feb 2026: 3 objections\nin 7 days

    octo/cat is paused by mona, since 1 Feb 2026: 3 objections\nin 7 days
    --

    Verdict: Will be closed as a duplicate of #1: the close was due 9 months ago and is done as soon as nothing blocks it.

    Will be closed as a duplicate of #1 on 4 Feb 2026, 00:00 UTC; waiting: the daily limit of closes is reached

    Automatic closes are off in octo/cat, since 1 Feb 2026: 3 objections\nin 7 days

    octo/cat is paused by mona, since 1 Feb 2026: 3 objections\nin 7 days
    --

    Verdict: Will be closed as a duplicate of #1: the close was due 9 months ago and is done as soon as nothing blocks it.

    Will be closed as a duplicate of #1 on 4 Feb 2026, 00:00 UTC, as mona ruled, unless somebody objects

    Automatic closes are off in octo/cat, since 1 Feb 2026: 3 objections\nin 7 days

    octo/cat is paused by mona, since 1 Feb 2026: 3 objections\nin 7 days
    ");
    let told = place.canonry(&["show", "--repo", "octo/cat", "--number", "2", "--json"]).succeeded().json();
    assert_eq!(
        (&told["graces"][0]["state"], &told["graces"][0]["reason"]),
        (&json!("cancelled"), &json!("human_commented"))
    );
    assert_eq!(told["brakes"][1]["kind"], json!("pause"), "{told}");

    let store = Store::open_existing(&DatabaseUrl::Sqlite(place.database())).await.expect("it is there");
    for kind in [BrakeKind::Pause, BrakeKind::Breaker] {
        store.close().lift_brake(repo.id, kind, None, due_at).await.expect("writes");
    }
    store.disconnect().await;
    assert!(!place.canonry(&["show", "--repo", "octo/cat", "--number", "2"]).succeeded().stdout.contains("paused"));
}
