//! Commands in comments, and the brakes that they set.

use canonry_domain::{GithubId, ItemNumber};
use canonry_store::{BrakeKind, Mention, MentionOutcome, MentionPlace, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::fixtures::{at, login};

async fn open(database: &TestDatabase, name: &str) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("a URL"), at(0)).await.expect("opens");
    let repo = store.repos().ensure(&name.parse().expect("a name"), at(0)).await.expect("writes");
    (store, repo)
}

on_both_engines! {
    async fn a_brake_holds_until_it_is_lifted_and_its_story_stays(database: TestDatabase) {
        let (store, repo) = open(&database, "tide/pool").await;
        let (_, other) = open(&database, "tide/other").await;
        let (mona, hubot) = (login("mona"), login("hubot"));
        let set = async |kind, by, why, second| store.close().set_brake(repo.id, kind, by, why, at(second)).await.expect("writes");
        let lift = async |kind, by, second| store.close().lift_brake(repo.id, kind, by, at(second)).await.expect("writes");
        assert!(!lift(BrakeKind::Pause, Some(&mona), 1).await, "nothing is in force");
        assert!(set(BrakeKind::Pause, Some(&mona), "a\0b", 2).await);
        assert!(!set(BrakeKind::Pause, Some(&hubot), "again", 3).await, "the first word stays");
        assert!(set(BrakeKind::Breaker, None, "3 objections", 4).await, "another kind");
        let pause = store.close().brake_in_force(repo.id, BrakeKind::Pause).await.expect("reads").expect("in force");
        assert_eq!((pause.set_by, pause.why.as_str(), pause.set_at), (Some(mona.clone()), "a\u{fffd}b", at(2)));
        assert_eq!(store.close().brake_in_force(other.id, BrakeKind::Pause).await.expect("reads"), None);
        assert!(lift(BrakeKind::Pause, Some(&hubot), 5).await);
        assert!(!lift(BrakeKind::Pause, None, 6).await);
        assert!(set(BrakeKind::Pause, None, "at the command line", 7).await, "it can be pulled again");
        let told: Vec<_> = store.close().brakes(repo.id).await.expect("reads").into_iter().map(|brake| (brake.kind, brake.lifted_by, brake.lifted_at)).collect();
        assert_eq!(
            told,
            [(BrakeKind::Pause, None, None), (BrakeKind::Breaker, None, None), (BrakeKind::Pause, Some(hubot), Some(at(5)))],
            "the newest first"
        );
    }
}

on_both_engines! {
    async fn a_mention_is_noted_once_and_found_by_person_and_item(database: TestDatabase) {
        let (store, repo) = open(&database, "tide/pool").await;
        let mention = |place, comment: i64, number: i64, by: &str, outcome, second: i64| Mention {
            place,
            comment: GithubId(comment),
            number: ItemNumber::new(number).expect("positive"),
            by: login(by),
            command: (outcome != MentionOutcome::NotUnderstood).then(|| "pause".to_owned()),
            outcome,
            at: at(second),
        };
        let first = mention(MentionPlace::Issue, 7, 1, "Mona", MentionOutcome::Refused, 10);
        assert!(store.deliveries().record_mention(repo.id, &first).await.expect("writes"));
        let again = Mention { outcome: MentionOutcome::Done, ..first.clone() };
        assert!(!store.deliveries().record_mention(repo.id, &again).await.expect("writes"), "it is known");
        assert_eq!(store.deliveries().mention_in(repo.id, MentionPlace::Issue, GithubId(7)).await.expect("reads"), Some(first.clone()));
        assert_eq!(store.deliveries().mention_in(repo.id, MentionPlace::Review, GithubId(7)).await.expect("reads"), None);
        let at_a_line = mention(MentionPlace::Review, 7, 1, "mona", MentionOutcome::NotUnderstood, 20);
        for more in [
            at_a_line.clone(),
            mention(MentionPlace::Issue, 8, 1, "hubot", MentionOutcome::Failed, 20),
            mention(MentionPlace::Issue, 9, 2, "mona", MentionOutcome::Done, 20),
        ] {
            assert!(store.deliveries().record_mention(repo.id, &more).await.expect("writes"));
        }
        let by = async |since| {
            let one = ItemNumber::new(1).expect("positive");
            store.deliveries().mentions_by(repo.id, one, &login("MONA"), at(since)).await.expect("reads")
        };
        assert_eq!(by(0).await, [first, at_a_line.clone()]);
        assert_eq!(by(11).await, [at_a_line]);
    }
}
