//! Findings that were posted as comments at their lines.

use canonry_domain::review::FindingStatus;
use canonry_domain::{GithubId, ItemNumber};
use canonry_store::{FindingId, PostedThreadState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use super::setting::{again, at, finding, new, open, pull, reviewed};

on_both_engines! {
    async fn what_is_posted_is_kept_once_and_settled_once(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (eval, alert) = (finding("a.js", 3, "Eval"), finding("a.js", 9, "Alert"));
        let (run, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&eval), new(&alert)], 1).await;
        let number = ItemNumber::new(1).expect("positive");
        let posted = [(ids[0], GithubId(71)), (FindingId::new(99), GithubId(72))];
        for second in [5, 6] {
            store.findings().record_posted(repo.id, number, run, &posted, at(second)).await.expect("stored");
        }
        let all = store.findings().posted_on_pull(repo.id, number).await.expect("read");
        // Finding 99 does not exist.
        assert_eq!(all.len(), 1, "{all:?}");
        let one = store.findings().posted_of_comment(repo.id, GithubId(71)).await.expect("read").expect("it");
        assert_eq!((&one, one.finding, one.run, one.posted_at), (&all[0], ids[0], run, at(5)));
        assert_eq!((&one.said.title, &one.said.code), (&eval.title, &eval.code));
        assert_eq!((one.settled, store.findings().posted_of_comment(repo.id, GithubId(72)).await.expect("read")), (None, None));
        assert!(store.findings().settle_posted(repo.id, GithubId(71), PostedThreadState::Edited, at(7)).await.expect("stored"));
        for comment in [71, 72] {
            assert!(!store.findings().settle_posted(repo.id, GithubId(comment), PostedThreadState::Left, at(8)).await.expect("stored"));
        }
        let one = store.findings().posted_of_comment(repo.id, GithubId(71)).await.expect("read").expect("it");
        assert_eq!((one.settled, one.settled_at), (Some(PostedThreadState::Edited), Some(at(7))));
        let heads = store.review().first_heads(repo.id, &pull(1)).await.expect("read");
        assert_eq!(heads.keys().copied().collect::<Vec<_>>(), ids);
        assert!(heads.values().all(|head| *head == super::setting::sha('a')));
    }

    async fn the_ledger_knows_what_is_said_and_a_later_review_has_the_last_word(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (eval, alert) = (finding("a.js", 3, "Eval"), finding("a.js", 9, "Alert"));
        let (first, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&eval), new(&alert)], 1).await;
        let number = ItemNumber::new(1).expect("positive");
        let said = async || -> Vec<bool> {
            let ledger = store.review().ledger(repo.id, &pull(1)).await.expect("read");
            ledger.iter().map(|one| one.said_inline).collect()
        };
        assert_eq!(said().await, [false, false]);
        store.findings().record_posted(repo.id, number, first, &[(ids[0], GithubId(71))], at(5)).await.expect("stored");
        assert_eq!(said().await, [true, false]);
        // The second review contains both again, and posts nothing at any line.
        let (second, _) = reviewed(&store, &repo, pull(1), 'b', &[again(ids[0], &eval, FindingStatus::Same), again(ids[1], &alert, FindingStatus::Same)], 10).await;
        assert_eq!(said().await, [false, false]);
        store.findings().record_posted(repo.id, number, first, &[(ids[1], GithubId(72))], at(12)).await.expect("stored");
        assert_eq!(said().await, [false, false]);
        store.findings().mark_posted_inline(second, &ids).await.expect("stored");
        assert_eq!(said().await, [true, true]);
    }
}
