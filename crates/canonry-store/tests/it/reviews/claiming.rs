//! Claims of reviews: races, newer heads, crashes, requests.

use canonry_domain::review::ReviewSubject;
use canonry_store::{ClaimOutcome, ReviewState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use super::setting::{LEASE, Wish, at, complete, finding, new, open, pull, sha, states};

on_both_engines! {
    async fn of_many_that_claim_one_head_at_once_one_runs(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let claims: Vec<_> = (0..8)
            .map(|number| {
                let (store, repo) = (store.clone(), repo.clone());
                tokio::spawn(async move { Wish::new(&repo, 'a', &format!("owner {number}")).claim(&store, 1).await })
            })
            .collect();
        let (mut running, mut busy) = (Vec::new(), Vec::new());
        for claim in claims {
            match claim.await.expect("ends") {
                ClaimOutcome::Run(run) => running.push(run.id),
                ClaimOutcome::Busy { run, until } => busy.push((run, until)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((running.len(), busy.len()), (1, 7));
        assert!(busy.iter().all(|(run, until)| *run == running[0] && *until == at(1 + LEASE)), "{busy:?}");
        assert_eq!(states(&store, &repo).await, [ReviewState::Running]);
    }

    async fn of_many_heads_at_once_one_is_left(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let claims: Vec<_> = ('a'..='f')
            .map(|head| {
                let (store, repo) = (store.clone(), repo.clone());
                tokio::spawn(async move { Wish::new(&repo, head, &format!("owner {head}")).run(&store, 1).await.id })
            })
            .collect();
        let mut completed = Vec::new();
        for (claim, head) in claims.into_iter().zip('a'..) {
            let run = claim.await.expect("ends");
            completed.push((run, complete(&store, run, &format!("owner {head}"), &[], 2).await.is_some()));
        }
        // The last claim replaced the unfinished runs; a completed one stays.
        let runs = store.review().runs(repo.id, None, 100).await.expect("reads");
        assert_eq!(runs.len(), 6);
        for run in runs {
            let is_completed = completed.contains(&(run.id, true));
            let expected = if is_completed { ReviewState::Completed } else { ReviewState::Superseded };
            assert_eq!(run.state, expected);
        }
        assert!(completed.iter().any(|(_, is_completed)| *is_completed));
    }

    async fn a_newer_head_takes_the_place_of_an_unfinished_run_only(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let first = Wish::new(&repo, 'a', "one").run(&store, 1).await;
        assert_eq!((first.last_head, first.attempts, first.full), (None, 1, false));
        let one = finding("a.js", 1, "One");
        assert!(complete(&store, first.id, "one", &[new(&one)], 2).await.is_some());

        let second = Wish::new(&repo, 'b', "two").run(&store, 3).await;
        assert_eq!(second.last_head, Some(sha('a')));
        let third = Wish::new(&repo, 'c', "three").run(&store, 4).await;
        // The superseded run did not change which run was last completed.
        assert_eq!(third.last_head, Some(sha('a')));
        assert!(!store.review().renew_claim(second.id, "two", at(900)).await.expect("asks"));
        assert_eq!(complete(&store, second.id, "two", &[new(&one)], 5).await, None);
        assert!(!store.review().fail(second.id, "two", "late", at(5)).await.expect("asks"));
        assert!(store.review().renew_claim(third.id, "three", at(900)).await.expect("asks"));
        assert!(complete(&store, third.id, "three", &[], 6).await.is_some());
        use ReviewState::{Completed, Superseded};
        assert_eq!(states(&store, &repo).await, [Completed, Superseded, Completed]);
        assert_eq!(store.review().ledger(repo.id, &pull(1)).await.expect("reads").len(), 1);

        // Neither the superseded run nor the completed one begins again by itself.
        let asked = |head, second| Wish { asked: Some(second), ..Wish::new(&repo, head, "four") };
        assert_eq!(asked('b', 3).claim(&store, 7).await, ClaimOutcome::Outdated { by: third.id });
        assert_eq!(asked('c', 4).claim(&store, 7).await, ClaimOutcome::Completed(third.id));
        assert_eq!(states(&store, &repo).await.len(), 3);
        let next = Wish::new(&repo, 'd', "five").run(&store, 8).await;
        assert_eq!(next.last_head, Some(sha('c')));
        assert_eq!(asked('a', 1).claim(&store, 9).await, ClaimOutcome::Outdated { by: next.id });
    }

    async fn completing_and_superseding_at_once_end_in_one_of_the_two(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        for number in 1..=12 {
            let subject = pull(number);
            let old = Wish { subject: subject.clone(), ..Wish::new(&repo, 'a', "old") }.run(&store, 1).await;
            let completing = {
                let store = store.clone();
                let one = finding("a.js", 1, "One");
                tokio::spawn(async move { complete(&store, old.id, "old", &[new(&one)], 2).await })
            };
            let newer = {
                let (store, repo, subject) = (store.clone(), repo.clone(), subject.clone());
                tokio::spawn(async move { Wish { subject, ..Wish::new(&repo, 'b', "new") }.run(&store, 2).await })
            };
            let is_completed = completing.await.expect("ends").is_some();
            let newer = newer.await.expect("ends");
            let ledger = store.review().ledger(repo.id, &subject).await.expect("reads").len();
            let runs = store.review().runs(repo.id, Some(&subject), 9).await.expect("reads");
            let states: Vec<_> = runs.iter().map(|run| run.state).collect();
            if is_completed {
                assert_eq!((newer.last_head, ledger), (Some(sha('a')), 1));
                assert_eq!(states, [ReviewState::Running, ReviewState::Completed]);
            } else {
                assert_eq!((newer.last_head, ledger), (None, 0));
                assert_eq!(states, [ReviewState::Running, ReviewState::Superseded]);
            }
        }
    }

    async fn a_crashed_run_goes_on_when_its_lease_is_over(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let crashed = Wish { full: true, ..Wish::new(&repo, 'a', "one") }.run(&store, 0).await;
        assert!(matches!(Wish::new(&repo, 'a', "two").claim(&store, LEASE - 1).await, ClaimOutcome::Busy { .. }));
        let taken = Wish::new(&repo, 'a', "two").run(&store, LEASE).await;
        // The full review that the crashed claim requested is still requested.
        assert_eq!((taken.id, taken.attempts, taken.full), (crashed.id, 2, true));
        // The first owner was only slow: it must not write any more.
        assert!(!store.review().renew_claim(crashed.id, "one", at(900)).await.expect("asks"));
        assert_eq!(complete(&store, crashed.id, "one", &[], LEASE + 1).await, None);
        assert!(complete(&store, taken.id, "two", &[], LEASE + 2).await.is_some());
        assert_eq!(complete(&store, crashed.id, "one", &[], LEASE + 3).await, None);
        assert_eq!(store.review().list(repo.id, None, 9).await.expect("reads").len(), 1);
    }

    async fn the_answer_to_a_claim_may_be_lost(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let wish = Wish { requested: true, ..Wish::new(&repo, 'a', "one") };
        let run = wish.run(&store, 0).await;
        assert_eq!(wish.run(&store, 1).await, run);
        assert_eq!(states(&store, &repo).await, [ReviewState::Running]);
    }

    async fn a_request_always_runs_anew(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let waiting = Wish::new(&repo, 'a', "nobody").run(&store, 0).await;
        let asked = Wish { requested: true, full: true, ..Wish::new(&repo, 'a', "person") };
        // Not even a live claim blocks it.
        let run = asked.run(&store, 1).await;
        assert_ne!(run.id, waiting.id);
        assert!(complete(&store, run.id, "person", &[], 2).await.is_some());
        let once_more = Wish { owner: "again", ..asked }.run(&store, 3).await;
        assert_eq!((once_more.last_head, once_more.full), (Some(sha('a')), true));
        assert!(complete(&store, once_more.id, "again", &[], 4).await.is_some());
        use ReviewState::{Completed, Superseded};
        assert_eq!(states(&store, &repo).await, [Superseded, Completed, Completed]);
    }

    async fn a_failed_run_is_tried_again(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let run = Wish::new(&repo, 'a', "one").run(&store, 0).await;
        assert!(!store.review().fail(run.id, "other", "no", at(1)).await.expect("asks"));
        assert!(store.review().fail(run.id, "one", "git is\u{0} not there", at(1)).await.expect("asks"));
        assert_eq!(complete(&store, run.id, "one", &[], 2).await, None);
        let retried = Wish::new(&repo, 'a', "two").run(&store, 3).await;
        assert_eq!((retried.attempts, retried.last_head), (2, None));
        let runs = store.review().runs(repo.id, None, 9).await.expect("reads");
        assert_eq!((runs[1].state, runs[1].error.as_deref()), (ReviewState::Failed, Some("git is\u{fffd} not there")));
        assert_eq!((runs[1].finished_at, runs[0].finished_at), (Some(at(1)), None));
    }

    async fn a_head_that_comes_back_is_reviewed_again(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        for (head, second) in [('a', 1), ('b', 2), ('a', 3)] {
            let run = Wish::new(&repo, head, "push").run(&store, second).await;
            assert!(complete(&store, run.id, "push", &[], second).await.is_some());
        }
        let next = Wish::new(&repo, 'c', "push").run(&store, 4).await;
        assert_eq!(next.last_head, Some(sha('a')));
    }

    async fn what_was_asked_for_first_is_older_whoever_claims_first(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let asked = |head, second| Wish { asked: Some(second), ..Wish::new(&repo, head, "worker") };
        // The worker of the older head is late: before the newer one is completed, and after.
        let newer = asked('b', 20).run(&store, 21).await;
        assert_eq!(asked('a', 10).claim(&store, 22).await, ClaimOutcome::Outdated { by: newer.id });
        assert!(complete(&store, newer.id, "worker", &[], 23).await.is_some());
        assert_eq!(asked('a', 10).claim(&store, 24).await, ClaimOutcome::Outdated { by: newer.id });
        assert_eq!(states(&store, &repo).await, [ReviewState::Completed]);
        // A person's request for it runs.
        let wanted = Wish { requested: true, ..asked('a', 10) }.run(&store, 25).await;
        assert_eq!(wanted.last_head, Some(sha('b')));
        assert!(store.review().fail(wanted.id, "worker", "no", at(26)).await.expect("asks"));
        // A failed run blocks nothing, even if it was requested last.
        let last = asked('c', 40).run(&store, 41).await;
        assert!(store.review().fail(last.id, "worker", "no", at(42)).await.expect("asks"));
        assert_eq!(asked('d', 30).run(&store, 43).await.last_head, Some(sha('b')));
        // Of two requests at the same time the last claim replaced the other, which stays so.
        let (one, two) = (asked('e', 50).run(&store, 51).await, asked('f', 50).run(&store, 52).await);
        assert!(!store.review().renew_claim(one.id, "worker", at(900)).await.expect("asks"));
        let again = Wish { owner: "again", ..asked('e', 50) };
        assert_eq!(again.claim(&store, 53).await, ClaimOutcome::Outdated { by: two.id });
    }

    async fn a_head_that_comes_back_runs_whatever_became_of_it(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        for (number, fate) in (1..).zip(["failed", "superseded", "completed"]) {
            for is_done in [true, false] {
                let subject = pull(number * 2 + i64::from(is_done));
                let wish = |head, owner| Wish { subject: subject.clone(), ..Wish::new(&repo, head, owner) };
                let first = wish('a', "one").run(&store, 1).await;
                match fate {
                    "failed" => assert!(store.review().fail(first.id, "one", "no", at(2)).await.expect("asks")),
                    "completed" => assert!(complete(&store, first.id, "one", &[], 2).await.is_some()),
                    _ => {}
                }
                let other = wish('b', "two").run(&store, 3).await;
                if is_done {
                    assert!(complete(&store, other.id, "two", &[], 4).await.is_some());
                }
                let back = wish('a', "three").run(&store, 5).await;
                assert_eq!((back.id > other.id, back.attempts), (true, 1), "{fate}");
                // The other head was requested before this one came back.
                let late = Wish { asked: Some(3), ..wish('b', "four") };
                assert_eq!(late.claim(&store, 6).await, ClaimOutcome::Outdated { by: back.id }, "{fate}");
                assert!(complete(&store, back.id, "three", &[], 7).await.is_some());
            }
        }
    }

    async fn a_head_that_is_asked_for_again_is_as_new_as_that(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        for (number, is_done) in [(1, false), (2, true)] {
            let asked = |head, second| {
                Wish { asked: Some(second), subject: pull(number), ..Wish::new(&repo, head, "worker") }
            };
            let run = asked('a', 10).run(&store, 11).await;
            if is_done {
                assert!(complete(&store, run.id, "worker", &[], 12).await.is_some());
            }
            // Pushed away and back before anybody claimed the head in between.
            let again = Wish { owner: "again", ..asked('a', 30) };
            let answer = again.claim(&store, 31).await;
            let expected = match is_done {
                true => ClaimOutcome::Completed(run.id),
                false => ClaimOutcome::Busy { run: run.id, until: at(11 + LEASE) },
            };
            assert_eq!(answer, expected);
            assert_eq!(asked('b', 20).claim(&store, 32).await, ClaimOutcome::Outdated { by: run.id });
        }
    }

    async fn subjects_do_not_touch_each_other(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        let subjects = [pull(1), pull(2), ReviewSubject::Branch("pull/1".into()), ReviewSubject::Branch("1".into())];
        for repo in [&repo, &other] {
            for subject in &subjects {
                let wish = Wish { subject: subject.clone(), ..Wish::new(repo, 'a', "one") };
                assert_eq!(wish.run(&store, 1).await.last_head, None);
            }
        }
        let runs = store.review().runs(repo.id, None, 9).await.expect("reads");
        assert!(runs.iter().all(|run| run.state == ReviewState::Running) && runs.len() == 4, "{runs:?}");
        assert_eq!(runs.iter().rev().map(|run| run.subject.clone()).collect::<Vec<_>>(), subjects);
    }

    async fn a_push_ends_what_is_under_way_for_other_heads(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let ended = async |head, second| {
            store.review().supersede(repo.id, &pull(1), &sha(head), at(second)).await.expect("ends")
        };
        let last = async || store.review().last_completed_run(repo.id, &pull(1)).await.expect("reads");
        assert_eq!((ended('b', 0).await, last().await), (0, None));
        let other = Wish { subject: pull(2), ..Wish::new(&repo, 'a', "two") }.run(&store, 1).await;
        let first = Wish::new(&repo, 'a', "one").run(&store, 1).await;
        assert_eq!((ended('a', 2).await, ended('b', 2).await, ended('b', 2).await), (0, 1, 0));
        assert!(!store.review().renew_claim(first.id, "one", at(900)).await.expect("asks"));
        assert!(store.review().renew_claim(other.id, "two", at(900)).await.expect("asks"), "another subject's");
        let second = Wish { branch: Some("next"), ..Wish::new(&repo, 'b', "job-7-1-x") }.run(&store, 3).await;
        assert!(complete(&store, second.id, "job-7-1-x", &[], 4).await.is_some());
        // A completed run stays, with its owner.
        assert_eq!(ended('c', 5).await, 0);
        let completed = last().await.expect("there is one");
        assert_eq!((completed.id, completed.base, completed.head), (second.id, sha('0'), sha('b')));
        assert_eq!((completed.owner.as_str(), completed.base_branch.as_deref()), ("job-7-1-x", Some("next")));
        // The same commits against a renamed branch are the same change; a claim without a branch name does not
        // change the stored one.
        for branch in [Some("main"), None] {
            let again = Wish { branch, ..Wish::new(&repo, 'b', "job-8-0-y") }.claim(&store, 6).await;
            assert_eq!((again, last().await.and_then(|last| last.base_branch).as_deref()), (ClaimOutcome::Completed(second.id), Some("main")));
        }
        let of_head = async |head| store.review().last_completed_run_of_head(repo.id, &pull(1), &sha(head)).await.expect("reads");
        assert_eq!((of_head('a').await, of_head('b').await.map(|run| run.id)), (None, Some(second.id)));
        assert_eq!(store.review().subjects_of_head(repo.id, &sha('a')).await.expect("reads"), [pull(1), pull(2)]);
        assert_eq!(store.review().subjects_of_head(repo.id, &sha('f')).await.expect("reads"), []);
        let counted = store.review().counts().await.expect("reads");
        let name = repo.name.clone();
        assert_eq!(counted, [(name.clone(), ReviewState::Completed, 1), (name, ReviewState::Superseded, 1)]);
    }
}
