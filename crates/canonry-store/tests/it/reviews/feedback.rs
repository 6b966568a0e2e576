//! Reactions: stored once, pooled with one vote per person, removed, cleared; the author's own never count.

use canonry_domain::review::{Category, CodeHash, Finding, FindingStatus, PatternFeedback, ReviewSubject, Severity};
use canonry_domain::{GithubId, ItemNumber, Login};
use canonry_store::{FindingId, NewReaction, Repo, Store, StoredPattern};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use super::setting::{again, at, finding, new, open, pull, reviewed};

use crate::fixtures::login;

pub(crate) fn thumb<'a>(
    repo: &Repo,
    reaction: i64,
    finding: FindingId,
    by: &'a Login,
    up: bool,
    second: i64,
) -> NewReaction<'a> {
    NewReaction { repo: repo.id, reaction: GithubId(reaction), finding, by, up, at: at(second), teaches: true }
}

/// The same pattern on three pull requests.
async fn three_pulls(store: &Store, repo: &Repo) -> (Finding, Vec<FindingId>) {
    let one = finding("a.js", 3, "Eval");
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.extend(reviewed(store, repo, pull(number), 'a', &[new(&one)], number).await.1);
    }
    (one, ids)
}

async fn patterns(store: &Store, repo: &Repo) -> Vec<StoredPattern> {
    store.findings().pattern_feedback(repo.id).await.expect("reads")
}

async fn only(store: &Store, repo: &Repo) -> PatternFeedback {
    let all = patterns(store, repo).await;
    assert!(all.len() == 1, "{all:?}");
    all[0].feedback
}

on_both_engines! {
    async fn a_reaction_is_kept_once_and_a_person_has_one_vote(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (one, ids) = three_pulls(&store, &repo).await;
        assert_eq!(patterns(&store, &repo).await, []);
        let (ada, bob) = (login("ada"), login("bob"));
        assert!(store.findings().record_reaction(&thumb(&repo, 1, ids[0], &ada, false, 10)).await.expect("keeps"));
        assert!(!store.findings().record_reaction(&thumb(&repo, 1, ids[0], &ada, false, 10)).await.expect("keeps"));
        // The same person again, in another letter case and on another pull request.
        assert!(store.findings().record_reaction(&thumb(&repo, 2, ids[1], &login("ADA"), false, 11)).await.expect("keeps"));
        assert!(store.findings().record_reaction(&thumb(&repo, 3, ids[2], &bob, true, 12)).await.expect("keeps"));
        let all = patterns(&store, &repo).await;
        let expected = PatternFeedback { thumbs_up: 1, thumbs_down: 1, reactors: 2, pull_requests: 2 };
        assert_eq!(all.len(), 1);
        assert_eq!((&all[0].key, &all[0].fingerprint, all[0].title.as_str()), (one.key(), &one.fingerprint, "Eval"));
        assert_eq!((all[0].feedback, all[0].protected), (expected, false));
        // Another repository may have a reaction with the same id.
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        let (_, elsewhere) = reviewed(&store, &other, pull(1), 'a', &[new(&one)], 1).await;
        assert!(store.findings().record_reaction(&thumb(&other, 1, elsewhere[0], &ada, true, 10)).await.expect("keeps"));
        assert_eq!(only(&store, &repo).await, expected);
        // A finding of another repository is not accepted.
        assert!(!store.findings().record_reaction(&thumb(&other, 9, ids[0], &ada, true, 10)).await.expect("asks"));
    }

    async fn removed_reactions_no_longer_count(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (_, ids) = three_pulls(&store, &repo).await;
        let people: Vec<Login> = ["ada", "bob", "eve"].map(login).into();
        for (number, by) in (1..).zip(&people) {
            store.findings().record_reaction(&thumb(&repo, number, ids[0], by, false, 10)).await.expect("keeps");
        }
        assert!(store.findings().record_reaction(&thumb(&repo, 7, ids[1], &people[0], true, 9)).await.expect("keeps"));
        let removed = store.findings().remove_reactions_except(ids[0], &[GithubId(2), GithubId(99)], at(20)).await.expect("marks");
        assert_eq!(removed, 2);
        // Ada's older vote on another pull request counts again.
        let left = PatternFeedback { thumbs_up: 1, thumbs_down: 1, reactors: 2, pull_requests: 1 };
        assert_eq!(only(&store, &repo).await, left);
        assert_eq!(store.findings().remove_reactions_except(ids[0], &[GithubId(2)], at(21)).await.expect("marks"), 0);
        // The reaction was only missing for a while.
        assert!(!store.findings().record_reaction(&thumb(&repo, 3, ids[0], &people[2], false, 10)).await.expect("keeps"));
        assert_eq!(only(&store, &repo).await.thumbs_down, 2);
        store.findings().remove_reactions_except(ids[0], &[], at(22)).await.expect("marks");
        store.findings().remove_reactions_except(ids[1], &[], at(22)).await.expect("marks");
        assert_eq!(patterns(&store, &repo).await, []);
    }

    async fn the_author_teaches_nothing(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (_, ids) = three_pulls(&store, &repo).await;
        let ada = login("ada");
        let own = NewReaction { teaches: false, ..thumb(&repo, 1, ids[0], &ada, false, 10) };
        assert!(store.findings().record_reaction(&own).await.expect("keeps"));
        assert_eq!(patterns(&store, &repo).await, []);
        assert!(store.findings().record_reaction(&thumb(&repo, 2, ids[1], &ada, false, 10)).await.expect("keeps"));
        assert_eq!(only(&store, &repo).await.pull_requests, 1);
        // The author becomes a maintainer of the repository, and then is not one any more.
        assert!(!store.findings().record_reaction(&NewReaction { teaches: true, ..own }).await.expect("keeps"));
        assert_eq!(only(&store, &repo).await.pull_requests, 2);
        assert!(!store.findings().record_reaction(&own).await.expect("keeps"));
        assert_eq!(only(&store, &repo).await.pull_requests, 1);
    }

    async fn a_finding_is_heard_with_all_of_its_comments(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (one, other) = (finding("a.js", 3, "Eval"), finding("a.js", 9, "Alert"));
        let (first, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&one), new(&other)], 1).await;
        let number = |pull| ItemNumber::new(pull).expect("positive");
        let posted = [(ids[0], GithubId(1)), (ids[1], GithubId(2))];
        store.findings().record_posted(repo.id, number(1), first, &posted, at(1)).await.expect("writes");
        let changed = Finding { code: Some(CodeHash::of(["other"])), ..one.clone() };
        let (second, _) = reviewed(&store, &repo, pull(1), 'b', &[again(ids[0], &changed, FindingStatus::Same)], 5).await;
        let to_hear = async |since, pull| {
            let found = store.findings().due_for_reactions(at(since), pull).await.expect("reads");
            let told = found.into_iter().map(|one| {
                assert_eq!((&one.repo, one.number), (&repo, number(1)));
                let comments = one.comments.iter().map(|comment| comment.0).collect::<Vec<_>>();
                (one.finding, comments, one.heard_at)
            });
            told.collect::<Vec<_>>()
        };
        store.findings().mark_reactions_fetched(ids[0], at(4)).await.expect("writes");
        assert_eq!(to_hear(1, None).await, [(ids[1], vec![2], None), (ids[0], vec![1], Some(at(4)))]);
        // Posted again: its first comment is old, and counts together with the new one, whose reactions were not
        // fetched yet.
        store.findings().record_posted(repo.id, number(1), second, &[(ids[0], GithubId(3))], at(5)).await.expect("writes");
        assert_eq!(to_hear(5, None).await, [(ids[0], vec![1, 3], None)]);
        assert_eq!(to_hear(6, None).await, []);
        store.findings().mark_reactions_fetched(ids[1], at(6)).await.expect("writes");
        store.findings().mark_reactions_fetched(ids[0], at(7)).await.expect("writes");
        let all = [(ids[1], vec![2], Some(at(6))), (ids[0], vec![1, 3], Some(at(7)))];
        assert_eq!(to_hear(0, Some((repo.id, number(1)))).await, all);
        assert_eq!(to_hear(0, Some((repo.id, number(2)))).await, []);
    }

    async fn only_what_comes_after_clearing_counts(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (one, ids) = three_pulls(&store, &repo).await;
        let alert = finding("a.js", 9, "Alert");
        let (_, others) = reviewed(&store, &repo, pull(4), 'a', &[new(&alert)], 4).await;
        let (ada, bob, mona) = (login("ada"), login("bob"), login("mona"));
        store.findings().record_reaction(&thumb(&repo, 1, ids[0], &ada, false, 10)).await.expect("keeps");
        store.findings().record_reaction(&thumb(&repo, 2, others[0], &ada, false, 10)).await.expect("keeps");
        assert_eq!(store.findings().clear_feedback(repo.id, Some(&one.fingerprint), &mona, at(20)).await.expect("clears"), 1);
        let left: Vec<_> = patterns(&store, &repo).await.into_iter().map(|pattern| pattern.title).collect();
        assert_eq!(left, ["Alert"]);
        assert_eq!(store.findings().clear_feedback(repo.id, Some(&one.fingerprint), &mona, at(21)).await.expect("clears"), 0);
        // A reaction from before the clear that is fetched only now does not count; a later one does.
        store.findings().record_reaction(&thumb(&repo, 3, ids[1], &bob, false, 19)).await.expect("keeps");
        assert_eq!(patterns(&store, &repo).await.len(), 1);
        store.findings().record_reaction(&thumb(&repo, 4, ids[1], &bob, false, 30)).await.expect("keeps");
        assert_eq!(patterns(&store, &repo).await.len(), 2);
        assert_eq!(store.findings().clear_feedback(repo.id, None, &mona, at(40)).await.expect("clears"), 2);
        assert_eq!(patterns(&store, &repo).await, []);
        store.findings().record_reaction(&thumb(&repo, 5, ids[2], &bob, true, 41)).await.expect("keeps");
        let expected = PatternFeedback { thumbs_up: 1, thumbs_down: 0, reactors: 1, pull_requests: 0 };
        assert_eq!(only(&store, &repo).await, expected);
        let unknown = "fp-00000000".parse().expect("a fingerprint");
        assert_eq!(store.findings().clear_feedback(repo.id, Some(&unknown), &mona, at(50)).await.expect("clears"), 0);
    }

    async fn a_clear_is_undone_and_the_earlier_one_holds_on(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (one, ids) = three_pulls(&store, &repo).await;
        let alert = finding("a.js", 9, "Alert");
        let (_, others) = reviewed(&store, &repo, pull(4), 'a', &[new(&alert)], 4).await;
        let (ada, mona) = (login("ada"), login("mona"));
        store.findings().record_reaction(&thumb(&repo, 1, ids[0], &ada, false, 10)).await.expect("keeps");
        store.findings().record_reaction(&thumb(&repo, 2, others[0], &ada, false, 10)).await.expect("keeps");
        store.findings().clear_feedback(repo.id, Some(&one.fingerprint), &mona, at(20)).await.expect("clears");
        store.findings().clear_feedback(repo.id, None, &mona, at(21)).await.expect("clears");
        assert_eq!(patterns(&store, &repo).await, []);
        let undo = async |asked: i64| store.findings().undo_feedback_clear(repo.id, None, &ada, at(asked), at(asked)).await.expect("undoes");
        let undone = undo(30).await.expect("the newest");
        assert_eq!((undone.at, undone.by, undone.patterns), (at(21), mona.clone(), 1));
        let left: Vec<_> = patterns(&store, &repo).await.into_iter().map(|pattern| pattern.title).collect();
        assert_eq!(left, ["Alert"], "the clear before holds on");
        assert_eq!(undo(30).await, None, "heard twice");
        let clears = store.findings().feedback_clears(repo.id, None, 9).await.expect("reads");
        assert_eq!((clears[0].undone_by.as_ref(), clears[0].undone_at, clears[1].undone_at), (Some(&ada), Some(at(30)), None));
        assert_eq!(undo(31).await.map(|undone| undone.at), Some(at(20)));
        assert_eq!((undo(32).await, patterns(&store, &repo).await.len()), (None, 2));
    }

    async fn a_pattern_is_protected_by_its_gravest_finding(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (_, ids) = three_pulls(&store, &repo).await;
        let ada = login("ada");
        store.findings().record_reaction(&thumb(&repo, 1, ids[0], &ada, false, 10)).await.expect("keeps");
        assert!(!patterns(&store, &repo).await[0].protected);
        // The same pattern on a pull request without reactions.
        let grave = Finding {
            severity: Severity::Major,
            category: Category::Correctness,
            ..finding("b.js", 1, "Eval")
        };
        reviewed(&store, &repo, pull(5), 'a', &[new(&grave)], 5).await;
        assert!(patterns(&store, &repo).await[0].protected);
    }

    async fn a_branch_has_no_comments_to_react_to(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let one = finding("a.js", 3, "Eval");
        let (_, ids) = reviewed(&store, &repo, ReviewSubject::Branch("topic".into()), 'a', &[new(&one)], 1).await;
        assert!(!store.findings().record_reaction(&thumb(&repo, 1, ids[0], &login("ada"), false, 10)).await.expect("asks"));
        assert_eq!(patterns(&store, &repo).await, []);
    }
}
