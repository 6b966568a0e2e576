//! Memories of findings: which repository they belong to, and what counts as an outcome.

use canonry_domain::review::{DismissalKind, Dismisser, Finding, FindingStatus, HiddenBy, Severity};
use canonry_store::{FindingId, FindingRecord, MemoryOutcome, NewMemory, NewReaction, PatternHistory, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use super::feedback::thumb;
use super::setting::{again, at, finding, hidden, new, open, pull, reviewed};

async fn remember(store: &Store, ids: &[FindingId], model: &str) {
    let vectors: Vec<Vec<f32>> = (0_u8..).take(ids.len()).map(|at| vec![f32::from(at) + 0.5, -1.0e-7]).collect();
    let memories: Vec<_> =
        ids.iter().zip(&vectors).map(|(id, vector)| NewMemory { finding: *id, model, vector }).collect();
    store.findings().remember(&memories, at(9)).await.expect("remembers");
}

async fn outcomes(store: &Store, repo: &Repo, shared: bool) -> Vec<(String, MemoryOutcome)> {
    let memories = store.findings().memories(repo.id, shared, "local", 100).await.expect("reads");
    memories.into_iter().map(|memory| (memory.title, memory.outcome)).collect()
}

on_both_engines! {
    async fn only_observed_outcomes_are_remembered(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let titles = ["Nothing", "Fixed", "Liked", "Rejected", "Dismissed", "Only the author", "Torn"];
        let findings: Vec<Finding> = (1..).zip(titles).map(|(line, title)| finding("a.js", line, title)).collect();
        let records: Vec<_> = findings.iter().map(new).collect();
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &records, 1).await;
        remember(&store, &ids, "local").await;
        // Having been shown is not an outcome.
        assert_eq!(outcomes(&store, &repo, false).await, []);

        let (ada, bob) = ("ada".parse().expect("a login"), "bob".parse().expect("a login"));
        reviewed(&store, &repo, pull(1), 'b', &[again(ids[1], &findings[1], FindingStatus::Fixed)], 2).await;
        let author = NewReaction { teaches: false, ..thumb(&repo, 5, ids[5], &ada, true, 3) };
        for reaction in [
            thumb(&repo, 1, ids[2], &ada, true, 3),
            thumb(&repo, 2, ids[3], &ada, false, 3),
            author,
            thumb(&repo, 6, ids[6], &ada, false, 3),
            thumb(&repo, 7, ids[6], &bob, true, 3),
        ] {
            assert!(store.findings().record_reaction(&reaction).await.expect("keeps"));
        }
        store.findings().dismiss(ids[4], None, DismissalKind::WontFix, Dismisser::Maintainer, &bob, at(3)).await.expect("writes");
        store.findings().dismiss(ids[5], None, DismissalKind::WontFix, Dismisser::Author, &ada, at(3)).await.expect("writes");
        use MemoryOutcome::{Dismissed, Fixed, ThumbsDown, ThumbsUp};
        let expected = [("Dismissed", Dismissed), ("Rejected", ThumbsDown), ("Liked", ThumbsUp), ("Fixed", Fixed)];
        let expected = expected.map(|(title, outcome)| (title.to_owned(), outcome));
        assert_eq!(outcomes(&store, &repo, false).await, expected);
        assert!(Fixed.is_accepted() && ThumbsUp.is_accepted() && !ThumbsDown.is_accepted() && !Dismissed.is_accepted());

        // A removed or cleared reaction, a withdrawn dismissal and a reopened finding are no outcomes any more.
        store.findings().remove_reactions_except(ids[2], &[], at(4)).await.expect("marks");
        store.findings().clear_feedback(repo.id, Some(&findings[3].fingerprint), &bob, at(4)).await.expect("clears");
        store.findings().withdraw_dismissal(ids[4], None, DismissalKind::WontFix, None, at(4)).await.expect("writes");
        assert_eq!(outcomes(&store, &repo, false).await, expected[3..]);
        reviewed(&store, &repo, pull(1), 'c', &[again(ids[1], &findings[1], FindingStatus::Reopened)], 5).await;
        assert_eq!(outcomes(&store, &repo, false).await, []);
    }

    async fn a_memory_is_read_back_as_it_was(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (one, two) = (finding("a.js", 1, "One"), finding("b.js", 2, "Two"));
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&one), new(&two)], 1).await;
        let waiting = store.findings().to_remember(repo.id, &pull(1), "local").await.expect("reads");
        assert_eq!(waiting.iter().map(|(id, finding)| (*id, finding.title.as_str())).collect::<Vec<_>>(), [(ids[0], "One"), (ids[1], "Two")]);
        remember(&store, &[ids[0], FindingId::new(99)], "local").await;
        let waiting = store.findings().to_remember(repo.id, &pull(1), "local").await.expect("reads");
        assert_eq!(waiting.len(), 1);
        assert_eq!(store.findings().to_remember(repo.id, &pull(1), "other").await.expect("reads").len(), 2);
        reviewed(&store, &repo, pull(1), 'b', &[again(ids[0], &one, FindingStatus::Fixed)], 2).await;
        let memories = store.findings().memories(repo.id, false, "local", 9).await.expect("reads");
        assert_eq!(memories.len(), 1);
        let memory = &memories[0];
        assert_eq!((memory.finding, memory.repo.to_string(), &memory.subject), (ids[0], "tide/pool".to_owned(), &pull(1)));
        assert_eq!((memory.message.as_str(), &memory.path), (one.message.as_str(), &one.path));
        assert_eq!((memory.severity, memory.category, memory.at), (Severity::Medium, one.category, at(9)));
        assert_eq!(memory.vector, [0.5, -1.0e-7]);
        assert_eq!(store.findings().memories(repo.id, false, "other", 9).await.expect("reads"), []);
    }

    async fn a_repository_does_not_read_anothers_memory_unasked(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let ensure = |name: &'static str| {
            let store = store.clone();
            async move { store.repos().ensure(&name.parse().expect("valid"), at(0)).await.expect("created") }
        };
        let (sister, stranger, alike) = (ensure("Tide/sister").await, ensure("quill/note").await, ensure("tide-two/pool").await);
        for (number, repo) in [&repo, &sister, &stranger, &alike].into_iter().enumerate() {
            let one = finding("a.js", 1, &format!("Of {number}"));
            let (_, ids) = reviewed(&store, repo, pull(1), 'a', &[new(&one)], 1).await;
            remember(&store, &ids, "local").await;
            reviewed(&store, repo, pull(1), 'b', &[again(ids[0], &one, FindingStatus::Fixed)], 2).await;
        }
        let titles = |shared: bool| {
            let (store, repo) = (store.clone(), repo.clone());
            async move { outcomes(&store, &repo, shared).await.into_iter().map(|(title, _)| title).collect::<Vec<_>>() }
        };
        assert_eq!(titles(false).await, ["Of 0"]);
        // Both repositories must agree: the reading one and the sharing one.
        assert_eq!(titles(true).await, ["Of 0"]);
        for one in [&sister, &stranger, &alike] {
            store.findings().set_sharing(one.id, false, true).await.expect("notes");
        }
        assert_eq!(titles(false).await, ["Of 0"]);
        assert_eq!(titles(true).await, ["Of 1", "Of 0"]);
        assert_eq!(store.findings().memories(repo.id, true, "local", 1).await.expect("reads").len(), 1);
        store.findings().set_sharing(sister.id, true, false).await.expect("notes");
        assert_eq!(titles(true).await, ["Of 0"]);
    }

    async fn how_a_pattern_fared(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (eval, alert, quiet) = (finding("a.js", 1, "Eval"), finding("a.js", 2, "Alert"), finding("a.js", 3, "Quiet"));
        let by = HiddenBy::Severity;
        for number in 1..=3 {
            let records = [new(&eval), new(&alert), hidden(&quiet, &by)];
            let (_, ids) = reviewed(&store, &repo, pull(number), 'a', &records, number).await;
            if number < 3 {
                let fixed = [again(ids[0], &eval, FindingStatus::Fixed), again(ids[2], &quiet, FindingStatus::Fixed)];
                reviewed(&store, &repo, pull(number), 'b', &fixed, number).await;
            }
        }
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        reviewed(&store, &other, pull(1), 'a', &[new(&eval)], 1).await;
        let keys = [&eval, &alert, &quiet, &finding("a.js", 4, "Never")].map(|one| one.key().clone()).into();
        let history = store.findings().pattern_history(repo.id, &keys).await.expect("reads");
        let expected = [
            (alert.key().clone(), PatternHistory { fixed: 0, total: 3 }),
            (eval.key().clone(), PatternHistory { fixed: 2, total: 3 }),
        ];
        assert_eq!(history, expected.into());
        assert_eq!(store.findings().pattern_history(repo.id, &[].into()).await.expect("reads"), [].into());
    }

    async fn what_nobody_was_shown_is_not_accepted_by_going_away(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (by, titles) = (HiddenBy::Area, ["Never shown", "Shown later", "Shown first"]);
        let findings: Vec<Finding> = (1..).zip(titles).map(|(line, title)| finding("a.js", line, title)).collect();
        let first = [hidden(&findings[0], &by), hidden(&findings[1], &by), new(&findings[2])];
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &first, 1).await;
        remember(&store, &ids, "local").await;
        let quiet = |at: usize| FindingRecord { earlier: Some(ids[at]), status: FindingStatus::Same, ..hidden(&findings[at], &by) };
        let second = [quiet(0), again(ids[1], &findings[1], FindingStatus::Same), quiet(2)];
        reviewed(&store, &repo, pull(1), 'b', &second, 2).await;
        let fixed: Vec<_> = ids.iter().zip(&findings).map(|(id, one)| again(*id, one, FindingStatus::Fixed)).collect();
        reviewed(&store, &repo, pull(1), 'c', &fixed, 3).await;
        let expected = ["Shown first", "Shown later"].map(|title| (title.to_owned(), MemoryOutcome::Fixed));
        assert_eq!(outcomes(&store, &repo, false).await, expected);
        // It does not use up the limit either.
        assert_eq!(store.findings().memories(repo.id, false, "local", 2).await.expect("reads").len(), 2);
        // Reactions to it count nevertheless.
        let ada = "ada".parse().expect("a login");
        assert!(store.findings().record_reaction(&thumb(&repo, 1, ids[0], &ada, true, 4)).await.expect("keeps"));
        assert_eq!(outcomes(&store, &repo, false).await[2], ("Never shown".to_owned(), MemoryOutcome::ThumbsUp));
    }

    async fn a_person_has_one_vote_in_the_global_counts(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        let eval = finding("a.js", 1, "Eval");
        let mut ids = Vec::new();
        for repo in [&repo, &other] {
            store.findings().set_sharing(repo.id, true, false).await.expect("notes");
            ids.extend(reviewed(&store, repo, pull(1), 'a', &[new(&eval)], 1).await.1);
        }
        let login = |name: &str| name.parse::<canonry_domain::Login>().expect("a login");
        let (ada, ada_too, bob) = (login("ada"), login("ADA"), login("bob"));
        let votes = || async {
            let patterns = store.findings().global_patterns(9).await.expect("reads");
            (patterns.len(), patterns[0].shown, patterns[0].thumbs_up, patterns[0].thumbs_down)
        };
        assert_eq!(votes().await, (1, 2, 0, 0));
        for reaction in [
            thumb(&repo, 1, ids[0], &ada, false, 10),
            thumb(&repo, 2, ids[0], &bob, false, 10),
            // The last vote counts, in whichever repository.
            thumb(&other, 1, ids[1], &ada_too, true, 11),
        ] {
            assert!(store.findings().record_reaction(&reaction).await.expect("keeps"));
        }
        assert_eq!(votes().await, (1, 2, 1, 1));
        store.findings().clear_feedback(other.id, Some(&eval.fingerprint), &bob, at(20)).await.expect("clears");
        assert_eq!(votes().await, (1, 2, 0, 2));
        store.findings().clear_feedback(repo.id, None, &bob, at(20)).await.expect("clears");
        assert_eq!(votes().await, (1, 2, 0, 0));
        assert!(store.findings().record_reaction(&thumb(&repo, 3, ids[0], &bob, true, 21)).await.expect("keeps"));
        assert_eq!(votes().await, (1, 2, 1, 0));
    }

    async fn global_counts_hold_what_is_shared_and_no_more(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let secret = store.repos().ensure(&"tide/secret".parse().expect("valid"), at(0)).await.expect("created");
        let (eval, quiet) = (finding("a.js", 1, "Eval"), finding("a.js", 2, "Quiet"));
        let by = HiddenBy::Area;
        let ada = "ada".parse().expect("a login");
        for repo in [&repo, &secret] {
            for number in 1..=2 {
                let (_, ids) = reviewed(&store, repo, pull(number), 'a', &[new(&eval), hidden(&quiet, &by)], number).await;
                store.findings().dismiss(ids[0], None, DismissalKind::WontFix, Dismisser::Maintainer, &ada, at(3)).await.expect("writes");
                store.findings().dismiss(ids[0], None, DismissalKind::Resolved, Dismisser::Maintainer, &ada, at(3)).await.expect("writes");
                store.findings().record_reaction(&thumb(repo, number, ids[0], &ada, number == 1, 3)).await.expect("keeps");
                store.findings().record_reaction(&NewReaction { teaches: false, ..thumb(repo, number + 10, ids[0], &ada, true, 3) }).await.expect("keeps");
                if number == 1 {
                    reviewed(&store, repo, pull(1), 'b', &[again(ids[0], &eval, FindingStatus::Fixed)], 4).await;
                }
            }
        }
        let counted = || async {
            store.findings().global_patterns(9).await.expect("reads")
        };
        assert_eq!(counted().await, []);
        store.findings().set_sharing(repo.id, true, false).await.expect("notes");
        for _ in 0..2 {
            let patterns = counted().await;
            assert_eq!(patterns.len(), 1);
            let one = &patterns[0];
            assert_eq!((&one.fingerprint, one.severity, one.category), (&eval.fingerprint, eval.severity, eval.category));
            // An up and a down vote of the same time are one vote, down.
            assert_eq!((one.shown, one.fixed, one.dismissed, one.thumbs_up, one.thumbs_down), (2, 1, 2, 0, 1));
        }
        store.findings().set_sharing(secret.id, true, false).await.expect("notes");
        assert_eq!(counted().await[0].shown, 4);
        store.findings().set_sharing(repo.id, false, false).await.expect("notes");
        store.findings().set_sharing(secret.id, false, false).await.expect("notes");
        assert_eq!(counted().await, []);
    }
}
