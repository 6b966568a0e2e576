//! Findings, reviews and patterns page by page: nothing twice, nothing missing, nothing of another repository.

use canonry_domain::review::{
    Category, Finding, FindingStatus, Fingerprint, HiddenBy, PatternKey, ReviewSubject, Severity, ShownAs,
};
use canonry_domain::{GithubId, ItemNumber};
use canonry_store::{
    EndedRunFilter, FindingFilter, FindingId, FindingRecord, NewReaction, Repo, ReviewId, RunEnd, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use super::feedback::thumb;
use super::setting::{Wish, again, at, confidence, finding, hidden, new, open, pull, reviewed, sha};

use crate::fixtures::login;

/// Returns all numbers that pass a filter, read in pages of two.
async fn listed(store: &Store, repo: &Repo, filter: FindingFilter<'_>) -> Vec<FindingId> {
    let mut all: Vec<FindingId> = Vec::new();
    loop {
        let page = store.findings().pages(repo.id, filter, all.last().copied(), 2).await.expect("reads");
        all.extend(page.iter().map(|entry| entry.found.id));
        if page.len() < 2 {
            return all;
        }
    }
}

on_both_engines! {
    async fn findings_are_listed_newest_first_by_what_is_asked_for(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let by = HiddenBy::Pattern("regex:x".into());
        let grave = Finding { severity: Severity::Major, category: Category::Security, ..finding("src/a%b.js", 1, "Grave") };
        let (plain, quiet) = (finding("src/A_b.js", 2, "Plain"), finding("docs/c.js", 3, "Quiet"));
        let records = [FindingRecord { confidence: confidence(85), ..new(&grave) }, new(&plain), hidden(&quiet, &by)];
        let (_, first) = reviewed(&store, &repo, pull(1), 'a', &records, 1).await;
        let (_, second) = reviewed(&store, &repo, pull(2), 'a', &[new(&plain)], 2).await;
        let gone = again(first[1], &plain, FindingStatus::Fixed);
        reviewed(&store, &repo, pull(1), 'b', &[again(first[0], &grave, FindingStatus::Same), gone], 3).await;
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        reviewed(&store, &other, pull(1), 'a', &[new(&plain)], 4).await;

        let all = FindingFilter::default();
        assert_eq!(listed(&store, &repo, all).await, [second[0], first[2], first[1], first[0]]);
        let (one, two) = (pull(1), pull(2));
        for (filter, expected) in [
            (FindingFilter { subject: Some(&one), ..all }, vec![first[2], first[1], first[0]]),
            (FindingFilter { subject: Some(&two), severity: Some(Severity::Major), ..all }, vec![]),
            (FindingFilter { severity: Some(Severity::Major), ..all }, vec![first[0]]),
            (FindingFilter { category: Some(Category::Style), ..all }, vec![second[0], first[2], first[1]]),
            (FindingFilter { status: Some(FindingStatus::Fixed), ..all }, vec![first[1]]),
            (FindingFilter { shown: Some(ShownAs::Suppressed), ..all }, vec![first[2]]),
            (FindingFilter { pattern: Some(&plain.fingerprint), ..all }, vec![second[0], first[1]]),
            // The wildcards of LIKE mean nothing, and case counts.
            (FindingFilter { path_prefix: Some("src/"), ..all }, vec![second[0], first[1], first[0]]),
            (FindingFilter { path_prefix: Some("src/a%"), ..all }, vec![first[0]]),
            (FindingFilter { path_prefix: Some("src/a_"), ..all }, vec![]),
            (FindingFilter { path_prefix: Some("SRC/"), ..all }, vec![]),
            (FindingFilter { path_prefix: Some("src/a%b.js\0"), ..all }, vec![]),
        ] {
            assert_eq!(listed(&store, &repo, filter).await, expected, "{filter:?}");
        }
        let page = store.findings().pages(repo.id, FindingFilter { subject: Some(&one), ..all }, None, 9).await.expect("reads");
        assert_eq!((page[0].hidden_by.as_ref(), page[0].found.shown), (Some(&by), ShownAs::Suppressed));
        // The confidence of the last review, not of the first one.
        assert_eq!((page[2].confidence, page[2].found.first_seen, page[2].found.last_seen), (confidence(60), at(1), at(3)));
        assert_eq!(page[1].found, store.findings().get(repo.id, first[1]).await.expect("reads").expect("it"));
    }

    async fn a_review_is_read_page_by_page_from_its_lines_to_what_is_fixed(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let by = HiddenBy::Area;
        let all: Vec<Finding> = (1..=6).map(|line| finding("a.js", line, &format!("Remark {line}"))).collect();
        let (_, known) = reviewed(&store, &repo, pull(1), 'a', &[new(&all[0]), new(&all[1])], 1).await;
        let grave = Finding { severity: Severity::Critical, ..all[4].clone() };
        let records = [
            again(known[0], &all[0], FindingStatus::Fixed),
            hidden(&all[2], &by),
            FindingRecord { shown: ShownAs::Details, ..new(&all[3]) },
            new(&grave),
            FindingRecord { shown: ShownAs::LowConfidence, ..new(&all[5]) },
            again(known[1], &all[1], FindingStatus::Same),
        ];
        let (review, ids) = reviewed(&store, &repo, pull(1), 'b', &records, 2).await;
        let mut told: Vec<FindingId> = Vec::new();
        loop {
            let page = store.review().sightings_page(review, told.last().copied(), 2).await.expect("reads");
            told.extend(page.iter().map(|one| one.id));
            if page.len() < 2 {
                break;
            }
        }
        assert_eq!(told, [ids[3], ids[5], ids[2], ids[4], ids[1], ids[0]]);
        let mut whole = store.review().sightings(review).await.expect("reads");
        let mut paged = store.review().sightings_page(review, None, 9).await.expect("reads");
        whole.sort_by_key(|one| one.id);
        paged.sort_by_key(|one| one.id);
        assert_eq!(paged, whole, "the same, in another order");
        // A page after a finding that is not in the review is empty.
        let (other, elsewhere) = reviewed(&store, &repo, pull(2), 'a', &[new(&all[5])], 3).await;
        assert_eq!(store.review().sightings_page(review, Some(elsewhere[0]), 9).await.expect("reads"), []);
        let counts = store.review().sighting_counts(review).await.expect("reads");
        assert_eq!(counts.iter().map(|alike| alike.times).sum::<u64>(), 6);
        let critical: Vec<_> = counts.iter().filter(|alike| alike.severity == Severity::Critical).collect();
        assert_eq!((critical.len(), critical[0].status, critical[0].shown), (1, FindingStatus::New, ShownAs::Inline));
        let quiet: Vec<_> = counts.iter().filter_map(|alike| alike.hidden_by.as_ref()).collect();
        assert_eq!(quiet, [&by]);
        let two = [new(&all[2]), new(&all[3])];
        let (alike, _) = reviewed(&store, &repo, pull(3), 'a', &two, 4).await;
        let counts = store.review().sighting_counts(alike).await.expect("reads");
        assert_eq!(counts.iter().map(|alike| alike.times).collect::<Vec<_>>(), [2]);
        assert_ne!(other, alike);
    }

    async fn reviews_are_listed_from_one_on(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let mut ids = Vec::new();
        // Two are completed at the same time.
        for (number, head, second) in [(1, 'a', 1), (2, 'a', 5), (1, 'b', 5), (3, 'a', 9)] {
            ids.push(reviewed(&store, &repo, pull(number), head, &[], second).await.0);
        }
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        let (elsewhere, _) = reviewed(&store, &other, pull(1), 'a', &[], 6).await;
        let page = async |subject: Option<ReviewSubject>, before: Option<ReviewId>, limit: u32| -> Vec<ReviewId> {
            let found = store.review().list_before(repo.id, subject.as_ref(), before, limit).await.expect("reads");
            found.into_iter().map(|review| review.id).collect()
        };
        assert_eq!(page(None, None, 2).await, [ids[3], ids[2]]);
        assert_eq!(page(None, Some(ids[2]), 2).await, [ids[1], ids[0]]);
        assert_eq!(page(None, Some(ids[0]), 2).await, []);
        assert_eq!(page(Some(pull(1)), None, 1).await, [ids[2]]);
        assert_eq!(page(Some(pull(1)), Some(ids[2]), 9).await, [ids[0]]);
        // A page after a review of another repository is empty, and that review cannot be read here.
        assert_eq!(page(None, Some(elsewhere), 9).await, []);
        assert_eq!(store.review().get_of_repo(repo.id, elsewhere).await.expect("reads"), None);
        assert_eq!(store.review().get_of_repo(repo.id, ids[1]).await.expect("reads"), store.review().get(ids[1]).await.expect("reads"));
    }

    async fn runs_are_listed_however_they_ended(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (completed, _) = reviewed(&store, &repo, pull(1), 'a', &[], 1).await;
        let failed = Wish::new(&repo, 'b', "one").run(&store, 2).await.id;
        assert!(store.review().fail(failed, "one", "git is not there", at(3)).await.expect("asks"));
        let superseded = Wish { subject: pull(2), ..Wish::new(&repo, 'a', "two") }.run(&store, 4).await.id;
        assert_eq!(store.review().supersede(repo.id, &pull(2), &sha('b'), at(5)).await.expect("asks"), 1);
        let (last, _) = reviewed(&store, &repo, pull(2), 'b', &[], 6).await;
        // One run is unfinished, and one review belongs to another repository.
        Wish { subject: pull(3), ..Wish::new(&repo, 'a', "three") }.run(&store, 7).await;
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        reviewed(&store, &other, pull(1), 'a', &[], 8).await;

        let page = async |filter: EndedRunFilter<'_>, before: Option<ReviewId>, limit: u32| -> Vec<ReviewId> {
            let found = store.review().ended_runs(repo.id, filter, before, limit).await.expect("reads");
            found.into_iter().map(|ended| ended.run.id).collect()
        };
        let (all, one) = (EndedRunFilter::default(), pull(1));
        assert_eq!(page(all, None, 2).await, [last, superseded]);
        assert_eq!(page(all, Some(superseded), 2).await, [failed, completed]);
        assert_eq!(page(all, Some(completed), 2).await, []);
        assert_eq!(page(EndedRunFilter { subject: Some(&one), end: None }, None, 9).await, [failed, completed]);
        for (end, expected) in [
            (RunEnd::Completed, vec![last, completed]),
            (RunEnd::Failed, vec![failed]),
            (RunEnd::Superseded, vec![superseded]),
        ] {
            assert_eq!(page(EndedRunFilter { subject: None, end: Some(end) }, None, 9).await, expected, "{end:?}");
        }
        let both = EndedRunFilter { subject: Some(&one), end: Some(RunEnd::Superseded) };
        assert_eq!(page(both, None, 9).await, []);
        let found = store.review().ended_runs(repo.id, all, None, 9).await.expect("reads");
        assert_eq!(found[0].review, store.review().get(last).await.expect("reads"));
        assert_eq!((&found[1].review, &found[2].review), (&None, &None));
        assert_eq!((found[2].run.error.as_deref(), found[2].run.finished_at), (Some("git is not there"), Some(at(3))));
    }

    async fn patterns_are_listed_by_the_last_reaction(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let by = HiddenBy::Feedback;
        let (eval, alert, slow) = (finding("a.js", 1, "Eval"), finding("a.js", 2, "Alert"), finding("a.js", 3, "Slow"));
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&eval), new(&alert), new(&slow)], 1).await;
        let (_, more) = reviewed(&store, &repo, pull(2), 'a', &[hidden(&eval, &by)], 2).await;
        let (ada, bob, mona) = (login("ada"), login("bob"), login("mona"));
        store.findings().record_reaction(&thumb(&repo, 1, ids[0], &ada, false, 10)).await.expect("keeps");
        store.findings().record_reaction(&thumb(&repo, 2, ids[1], &ada, true, 11)).await.expect("keeps");
        store.findings().record_reaction(&thumb(&repo, 3, more[0], &bob, false, 12)).await.expect("keeps");
        // The author's own reaction, and a removed one.
        let own = NewReaction { teaches: false, ..thumb(&repo, 9, ids[2], &bob, false, 13) };
        store.findings().record_reaction(&own).await.expect("keeps");
        store.findings().record_reaction(&thumb(&repo, 10, ids[2], &ada, false, 13)).await.expect("keeps");
        store.findings().remove_reactions_except(ids[2], &[GithubId(9)], at(14)).await.expect("marks");

        let first = store.findings().pattern_pages(repo.id, None, 1).await.expect("reads");
        assert_eq!((first.len(), first[0].newest, first[0].reacted_at), (1, GithubId(3), at(12)));
        assert_eq!((first[0].findings, first[0].hidden), (2, 1));
        let second = store.findings().pattern_pages(repo.id, Some(first[0].newest), 9).await.expect("reads");
        assert_eq!((second.len(), second[0].newest, second[0].pattern.title.as_str()), (1, GithubId(2), "Alert"));
        // The same patterns as in the complete list.
        let all = store.findings().pattern_feedback(repo.id).await.expect("reads");
        assert_eq!(all, [second[0].pattern.clone(), first[0].pattern.clone()]);
        assert_eq!(store.findings().pattern(repo.id, eval.key()).await.expect("reads").as_ref(), Some(&first[0].pattern));
        assert_eq!(store.findings().pattern(repo.id, slow.key()).await.expect("reads"), None);

        let told: Vec<_> = store.findings().reactions(repo.id, ids[2]).await.expect("reads");
        let told: Vec<_> = told.iter().map(|one| (one.by.as_str(), one.up, one.teaches, one.removed_at)).collect();
        assert_eq!(told, [("bob", false, false, None), ("ada", false, true, Some(at(14)))]);

        assert_eq!(store.findings().cleared_at(repo.id, eval.key()).await.expect("reads"), None);
        store.findings().clear_feedback(repo.id, Some(&eval.fingerprint), &mona, at(20)).await.expect("clears");
        assert_eq!(store.findings().pattern_pages(repo.id, None, 9).await.expect("reads").len(), 1);
        store.findings().clear_feedback(repo.id, None, &bob, at(21)).await.expect("clears");
        assert_eq!(store.findings().pattern_pages(repo.id, None, 9).await.expect("reads"), []);
        assert_eq!(store.findings().cleared_at(repo.id, eval.key()).await.expect("reads"), Some(at(21)));
        let clears = store.findings().feedback_clears(repo.id, None, 9).await.expect("reads");
        let told: Vec<_> =
            clears.iter().map(|one| (one.pattern.as_ref().map(PatternKey::as_str), one.title.as_deref(), one.by.as_str(), one.at)).collect();
        assert_eq!(told, [(None, None, "bob", at(21)), (Some(eval.key().as_str()), Some("Eval"), "mona", at(20))]);
        let later = store.findings().feedback_clears(repo.id, None, 1).await.expect("reads");
        assert_eq!(store.findings().feedback_clears(repo.id, Some(later[0].id), 9).await.expect("reads"), clears[1..]);
        // A later reaction brings it back.
        store.findings().record_reaction(&thumb(&repo, 30, ids[0], &ada, true, 30)).await.expect("keeps");
        let back = store.findings().pattern_pages(repo.id, None, 9).await.expect("reads");
        assert_eq!((back.len(), back[0].pattern.feedback.thumbs_up, back[0].pattern.feedback.reactors), (1, 1, 1));
    }

    async fn what_was_hidden_is_listed_with_the_reason(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (area, rule) = (HiddenBy::Area, HiddenBy::Pattern("glob:a*".into()));
        let (one, two) = (finding("a.js", 1, "One"), finding("a.js", 2, "Two"));
        let (first, ids) = reviewed(&store, &repo, pull(1), 'a', &[hidden(&one, &area), hidden(&two, &rule), new(&one)], 1).await;
        let still = FindingRecord { earlier: Some(ids[0]), status: FindingStatus::Same, ..hidden(&one, &area) };
        let (second, _) = reviewed(&store, &repo, pull(1), 'b', &[still], 5).await;
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        reviewed(&store, &other, pull(1), 'a', &[hidden(&one, &area)], 6).await;
        let mut told = Vec::new();
        let mut before = None;
        while let Some(last) = {
            let page = store.findings().suppressions(repo.id, before, 1).await.expect("reads");
            page.into_iter().next()
        } {
            before = Some((last.review, last.finding));
            told.push((last.review, last.finding, last.title, last.hidden_by, last.at));
        }
        let expected = [
            (second, ids[0], "One".to_owned(), Some(area.clone()), at(5)),
            (first, ids[1], "Two".to_owned(), Some(rule), at(1)),
            (first, ids[0], "One".to_owned(), Some(area), at(1)),
        ];
        assert_eq!(told, expected);
    }

    async fn the_comments_of_one_finding(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (eval, alert) = (finding("a.js", 3, "Eval"), finding("a.js", 9, "Alert"));
        let (run, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&eval), new(&alert)], 1).await;
        let number = ItemNumber::new(1).expect("positive");
        let posted = [(ids[0], GithubId(71)), (ids[1], GithubId(72))];
        store.findings().record_posted(repo.id, number, run, &posted, at(5)).await.expect("stored");
        let of = async |repo: &Repo, finding| store.findings().posted_of_finding(repo.id, finding).await.expect("reads");
        let comments: Vec<_> = of(&repo, ids[1]).await.iter().map(|one| one.comment).collect();
        assert_eq!(comments, [GithubId(72)]);
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        assert_eq!(of(&other, ids[1]).await, []);
        assert_eq!(Fingerprint::of_title("Eval"), of(&repo, ids[0]).await[0].said.fingerprint);
    }
}
