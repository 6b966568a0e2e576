//! Completed reviews: all or nothing, once, read back as written.

use canonry_domain::review::{
    Category, CodeHash, Dismissal, DismissalKind, Dismisser, Finding, FindingStatus, HiddenBy, LineRange, RepoPath,
    ReviewMode, ReviewSubject, Severity, ShownAs,
};
use canonry_store::{FindingId, FindingRecord, LedgerFinding, ReviewId, ReviewRecord};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::json;

use super::setting::{Wish, again, at, complete, confidence, finding, hidden, new, open, pull, record, reviewed, sha};

/// A finding as it is stored: no engine can store U+0000.
fn kept(finding: &Finding) -> Finding {
    let mut finding = finding.clone();
    for text in finding.partial.values_mut() {
        *text = text.replace('\u{0}', "\u{fffd}");
    }
    finding
}

on_both_engines! {
    async fn a_review_is_read_back_as_it_was(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (shown, quiet) = (finding("src/a.js", 3, "Eval"), finding("src/b.js", 4, "Alert"));
        let by = HiddenBy::Pattern("glob:*al:ert*".into());
        let run = Wish::new(&repo, 'a', "one").run(&store, 1).await;
        let findings = [
            FindingRecord { said_inline: true, confidence: confidence(83), ..new(&shown) },
            FindingRecord { grounded: false, ..hidden(&quiet, &by) },
        ];
        let (notes, reviewers) = (["one file was too large".to_owned()], json!({"reviewers": ["eslint"], "n": 1}));
        let whole = ReviewRecord {
            notes: &notes,
            model: Some("a-model"),
            cost_usd: 0.25,
            ..record(run.id, "one", &reviewers, &findings)
        };
        let ids = store.review().complete(&whole, at(2)).await.expect("no failure").expect("it is ours");
        assert_eq!(ids.len(), 2);

        let review = store.review().get(run.id).await.expect("reads").expect("completed");
        assert_eq!((review.base, review.head, &review.subject), (sha('0'), sha('a'), &pull(1)));
        assert_eq!((review.mode, review.reason.as_str()), (ReviewMode::Full, "no-prior-review"));
        assert_eq!((review.files_read, review.lines_read), (2, 40));
        assert_eq!((review.shown, review.suppressed, review.fixed), (1, 1, 0));
        assert_eq!((review.notes.as_slice(), &review.reviewers), (&notes[..], &reviewers));
        assert_eq!((review.model.as_deref(), review.cost_usd, review.completed_at), (Some("a-model"), 0.25, at(2)));

        let sightings = store.review().sightings(run.id).await.expect("reads");
        assert_eq!(sightings.iter().map(|one| one.id).collect::<Vec<_>>(), ids);
        assert_eq!((&sightings[0].finding, &sightings[1].finding), (&kept(&shown), &kept(&quiet)));
        assert_eq!((sightings[0].shown, sightings[0].confidence), (ShownAs::Inline, confidence(83)));
        assert_eq!((sightings[0].said_inline, sightings[0].grounded, sightings[0].reported), (true, true, true));
        assert_eq!((sightings[1].shown, sightings[1].hidden_by.as_ref()), (ShownAs::Suppressed, Some(&by)));
        assert_eq!((sightings[1].grounded, sightings[1].status, sightings[1].at), (false, FindingStatus::New, at(2)));

        let ledger = store.review().ledger(repo.id, &pull(1)).await.expect("reads");
        assert_eq!(ledger.iter().map(|one| (one.id, one.said_inline)).collect::<Vec<_>>(), [(ids[0], true), (ids[1], false)]);
        assert_eq!(ledger[0].earlier.finding, kept(&shown));
        assert_eq!(ledger.iter().map(|one| one.first_shown).collect::<Vec<_>>(), [true, false]);
        assert_eq!(store.review().ledger(repo.id, &ReviewSubject::Branch("1".into())).await.expect("reads"), []);
    }

    async fn every_word_that_hides_is_read_back(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let all = [
            HiddenBy::Dismissal,
            HiddenBy::Feedback,
            HiddenBy::Pattern("pattern:x".into()),
            HiddenBy::Pattern(String::new()),
            HiddenBy::Area,
            HiddenBy::Severity,
        ];
        let findings: Vec<Finding> = (1..=6).map(|line| finding("a.js", line, "Eval")).collect();
        let records: Vec<_> = findings.iter().zip(&all).map(|(finding, by)| hidden(finding, by)).collect();
        let (review, _) = reviewed(&store, &repo, pull(1), 'a', &records, 1).await;
        let sightings = store.review().sightings(review).await.expect("reads");
        let read: Vec<_> = sightings.into_iter().map(|one| one.hidden_by.expect("hidden")).collect();
        assert_eq!(read, all);
    }

    async fn a_finding_keeps_its_number_through_its_life(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let first = finding("a.js", 3, "Eval");
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&first)], 1).await;
        let moved = Finding { path: RepoPath::new("b.js").expect("a path"), lines: LineRange::new(203, 203), ..first.clone() };
        let other = finding("a.js", 1, "Alert");
        let records = [new(&other), again(ids[0], &moved, FindingStatus::Moved)];
        let (_, second) = reviewed(&store, &repo, pull(1), 'b', &records, 2).await;
        assert_eq!(second[1], ids[0]);
        assert_ne!(second[0], ids[0]);
        let fixed = [again(ids[0], &moved, FindingStatus::Fixed)];
        let (review, _) = reviewed(&store, &repo, pull(1), 'c', &fixed, 3).await;
        let stored = store.review().get(review).await.expect("reads").expect("completed");
        assert_eq!((stored.shown, stored.suppressed, stored.fixed), (0, 0, 1));

        let ledger = store.review().ledger(repo.id, &pull(1)).await.expect("reads");
        let told: Vec<_> = ledger.iter().map(|one| (one.id, one.status, one.earlier.fixed)).collect();
        assert_eq!(told, [(ids[0], FindingStatus::Fixed, true), (second[0], FindingStatus::New, false)]);
        assert_eq!(ledger[0].earlier.finding, kept(&moved));

        let story = store.findings().history(ids[0]).await.expect("reads");
        let told: Vec<_> = story.iter().map(|one| (one.status, one.finding.path.as_str(), one.at)).collect();
        use FindingStatus::{Fixed, Moved, New};
        assert_eq!(told, [(New, "a.js", at(1)), (Moved, "b.js", at(2)), (Fixed, "b.js", at(3))]);

        let here = store.findings().in_file(repo.id, &moved.path, 9).await.expect("reads");
        assert_eq!(here.iter().map(|one| (one.id, one.fixed)).collect::<Vec<_>>(), [(ids[0], true)]);
        assert_eq!((here[0].first_seen, here[0].last_seen, &here[0].subject), (at(1), at(3), &pull(1)));
        assert_eq!(store.findings().in_file(repo.id, &first.path, 9).await.expect("reads")[0].id, second[0]);

        let (_, reopened) = reviewed(&store, &repo, pull(1), 'd', &[again(ids[0], &moved, FindingStatus::Reopened)], 4).await;
        assert_eq!(reopened, ids);
        assert!(!store.review().ledger(repo.id, &pull(1)).await.expect("reads")[0].earlier.fixed);
    }

    async fn what_was_not_completed_adds_nothing(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let one = finding("a.js", 3, "Eval");
        let failed = Wish::new(&repo, 'a', "one").run(&store, 1).await;
        assert!(store.review().fail(failed.id, "one", "no", at(2)).await.expect("asks"));
        let superseded = Wish::new(&repo, 'b', "two").run(&store, 3).await;
        let newest = Wish::new(&repo, 'c', "three").run(&store, 4).await;
        for (run, owner) in [(failed.id, "one"), (superseded.id, "two"), (newest.id, "stranger"), (ReviewId::new(999), "x")] {
            assert_eq!(complete(&store, run, owner, &[new(&one)], 5).await, None);
            assert_eq!(store.review().get(run).await.expect("reads"), None);
        }
        assert_eq!(store.review().ledger(repo.id, &pull(1)).await.expect("reads"), []);
        assert_eq!(store.review().list(repo.id, None, 9).await.expect("reads"), []);
    }

    async fn saying_it_twice_doubles_nothing(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (one, two) = (finding("a.js", 3, "Eval"), finding("a.js", 4, "Alert"));
        let run = Wish::new(&repo, 'a', "one").run(&store, 1).await;
        let by = HiddenBy::Area;
        let records = [new(&one), hidden(&two, &by)];
        let ids = complete(&store, run.id, "one", &records, 2).await.expect("it is ours");
        assert_eq!(complete(&store, run.id, "one", &records, 3).await.as_ref(), Some(&ids));
        assert_eq!(store.review().list(repo.id, None, 9).await.expect("reads").len(), 1);
        assert_eq!(store.review().get(run.id).await.expect("reads").expect("completed").completed_at, at(2));
        assert_eq!(store.review().sightings(run.id).await.expect("reads").len(), 2);
        assert_eq!(store.review().ledger(repo.id, &pull(1)).await.expect("reads").len(), 2);
    }

    async fn a_failure_in_the_middle_leaves_nothing(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let (one, two) = (finding("a.js", 3, "Eval"), finding("a.js", 4, "Alert"));
        let (_, ids) = reviewed(&store, &repo, pull(2), 'a', &[new(&two)], 1).await;
        let run = Wish::new(&repo, 'a', "one").run(&store, 2).await;
        // A finding of another pull request, one that does not exist, and one twice: they must not change any
        // history.
        for strange in [ids[0], FindingId::new(999)] {
            let records = [new(&one), again(strange, &two, FindingStatus::Same)];
            let error = store.review().complete(&record(run.id, "one", &json!({}), &records), at(3)).await.expect_err("refused");
            assert!(error.to_string().contains(&format!("pull/1 has no finding {strange}")), "{error}");
        }
        let ledger = store.review().ledger(repo.id, &pull(1)).await.expect("reads");
        assert_eq!((ledger.len(), store.review().get(run.id).await.expect("reads")), (0, None));
        // The run still belongs to the caller, and can be completed.
        let ids = complete(&store, run.id, "one", &[new(&one)], 4).await.expect("it is ours");
        let run = Wish::new(&repo, 'b', "one").run(&store, 5).await;
        let twice = [again(ids[0], &one, FindingStatus::Same), again(ids[0], &two, FindingStatus::Same)];
        assert!(store.review().complete(&record(run.id, "one", &json!({}), &twice), at(6)).await.is_err());
        assert_eq!(store.review().ledger(repo.id, &pull(1)).await.expect("reads")[0].earlier.finding, kept(&one));
        assert_eq!(store.findings().history(ids[0]).await.expect("reads").len(), 1);
    }

    async fn thousands_of_findings_keep_their_order(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let findings: Vec<Finding> = (1..=1_203).map(|line| finding("a.js", line, &format!("Eval {line}"))).collect();
        let records: Vec<_> = findings.iter().map(new).collect();
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &records, 1).await;
        let ledger = store.review().ledger(repo.id, &pull(1)).await.expect("reads");
        assert_eq!(ledger.len(), findings.len());
        for ((stored, id), finding) in ledger.iter().zip(&ids).zip(&findings) {
            assert_eq!((stored.id, &stored.earlier.finding.title), (*id, &finding.title));
        }
        // New findings among earlier ones, in another order.
        let fresh: Vec<Finding> = (1..=700).map(|line| finding("b.js", line, &format!("Alert {line}"))).collect();
        let mut records = Vec::new();
        for place in 0..findings.len() {
            records.push(again(ids[findings.len() - 1 - place], &findings[findings.len() - 1 - place], FindingStatus::Same));
            records.extend(fresh.get(place).map(new));
        }
        let (review, second) = reviewed(&store, &repo, pull(1), 'b', &records, 2).await;
        let sightings = store.review().sightings(review).await.expect("reads");
        assert_eq!(sightings.len(), records.len());
        for ((sighting, id), record) in sightings.iter().zip(&second).zip(&records) {
            assert_eq!((sighting.id, &sighting.finding.title), (*id, &record.finding.title));
            assert!(record.earlier.is_none_or(|earlier| earlier == *id));
        }
        let mut all = second.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), records.len());
    }

    async fn names_too_long_for_an_index_are_kept(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        // Letters that do not compress, so that no index can contain them.
        let mut state = 7_u64;
        let mut noise = String::new();
        while noise.len() < 9_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            noise.push(char::from(b'a' + u8::try_from((state >> 33) % 26).expect("small")));
        }
        let long = finding(&format!("src/{noise}.js"), 3, &noise);
        let other = finding(&format!("src/{noise}.ts"), 3, &format!("{noise} too"));
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&long), new(&other)], 1).await;
        let here = store.findings().in_file(repo.id, &long.path, 9).await.expect("reads");
        assert_eq!(here.iter().map(|one| one.id).collect::<Vec<_>>(), ids[..1]);
        let keys = [long.key().clone()].into();
        let history = store.findings().pattern_history(repo.id, &keys).await.expect("reads");
        assert_eq!(history.into_iter().map(|(key, one)| (key, one.total)).collect::<Vec<_>>(), [(long.key().clone(), 1)]);
    }

    async fn a_dismissal_is_bound_to_the_code_it_was_about(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let one = finding("a.js", 3, "Eval");
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&one)], 1).await;
        let (mona, kind) = ("Mona".parse().expect("a login"), DismissalKind::NotUseful);
        let said = |second| store.findings().dismiss(ids[0], None, kind, Dismisser::Maintainer, &mona, at(second));
        assert!(said(2).await.expect("writes") && said(3).await.expect("writes"));
        let dismissals = |ledger: Vec<LedgerFinding>| ledger[0].earlier.dismissals.clone();
        let expected = Dismissal { kind, by: Dismisser::Maintainer, code: one.code.clone(), protected: false, at: at(2) };
        let standing = dismissals(store.review().ledger(repo.id, &pull(1)).await.expect("reads"));
        assert_eq!((standing.len(), &standing[0]), (1, &expected));
        assert!(standing[0].holds(&one));

        // The code changes: the dismissal is about the old code, and the new code may be dismissed too.
        let changed = Finding { code: Some(CodeHash::of(["eval(other)"])), ..one.clone() };
        reviewed(&store, &repo, pull(1), 'b', &[again(ids[0], &changed, FindingStatus::Same)], 4).await;
        let standing = dismissals(store.review().ledger(repo.id, &pull(1)).await.expect("reads"));
        assert!(standing.len() == 1 && !standing[0].holds(&changed));
        assert!(said(5).await.expect("writes"));
        assert_eq!(dismissals(store.review().ledger(repo.id, &pull(1)).await.expect("reads")).len(), 2);

        assert!(!store.findings().withdraw_dismissal(ids[0], None, DismissalKind::Resolved, None, at(6)).await.expect("writes"));
        let other = "somebody-else".parse().expect("a login");
        assert!(!store.findings().withdraw_dismissal(ids[0], None, kind, Some(&other), at(6)).await.expect("writes"));
        assert!(store.findings().withdraw_dismissal(ids[0], None, kind, None, at(6)).await.expect("writes"));
        assert_eq!(dismissals(store.review().ledger(repo.id, &pull(1)).await.expect("reads")), []);
        let all = store.findings().dismissals_of(ids[0]).await.expect("reads");
        let told: Vec<_> = all.iter().map(|one| (one.dismissal.at, one.login.as_str(), one.withdrawn_at)).collect();
        assert_eq!(told, [(at(2), "Mona", Some(at(6))), (at(5), "Mona", Some(at(6)))]);
        assert_eq!(all[0].dismissal, expected);
        assert!(!store.findings().dismiss(FindingId::new(99), None, kind, Dismisser::Author, &mona, at(7)).await.expect("asks"));
    }

    async fn a_dismissal_is_about_the_comment_that_it_answers(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let one = finding("a.js", 3, "Eval");
        let (first, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&one)], 1).await;
        // A push comes between the comment and the answer to it.
        let changed = Finding { code: Some(CodeHash::of(["eval(other)"])), ..one.clone() };
        let (second, _) = reviewed(&store, &repo, pull(1), 'b', &[again(ids[0], &changed, FindingStatus::Same)], 2).await;
        let mona = "mona".parse().expect("a login");
        let say = |review, second| {
            store.findings().dismiss(ids[0], review, DismissalKind::WontFix, Dismisser::Maintainer, &mona, at(second))
        };
        let codes = || async {
            let ledger = store.review().ledger(repo.id, &pull(1)).await.expect("reads");
            ledger[0].earlier.dismissals.iter().map(|one| one.code.clone()).collect::<Vec<_>>()
        };
        assert!(say(Some(first), 3).await.expect("writes"));
        assert_eq!(codes().await, std::slice::from_ref(&one.code));
        assert!(say(Some(second), 4).await.expect("writes") && say(None, 5).await.expect("writes"));
        assert_eq!(codes().await, [one.code.clone(), changed.code.clone()]);
        // A review that does not contain the finding.
        let (other, _) = reviewed(&store, &repo, pull(2), 'a', &[new(&one)], 6).await;
        assert!(!say(Some(other), 7).await.expect("asks"));
        assert_eq!(codes().await.len(), 2);
        // The thread of the first comment is reopened; the dismissal in the other one stays.
        let withdraw = |review, second| store.findings().withdraw_dismissal(ids[0], Some(review), DismissalKind::WontFix, None, at(second));
        assert!(!withdraw(other, 8).await.expect("asks"));
        assert!(withdraw(first, 8).await.expect("writes"));
        assert_eq!(codes().await, std::slice::from_ref(&changed.code));
        assert!(!withdraw(first, 9).await.expect("asks"));
    }

    async fn a_dismissal_knows_how_grave_the_finding_was(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let mild = finding("a.js", 3, "Eval");
        let grave = Finding { severity: Severity::Critical, category: Category::Security, ..mild.clone() };
        let (first, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&mild)], 1).await;
        let mona = "mona".parse().expect("a login");
        let say = |review, second| {
            store.findings().dismiss(ids[0], review, DismissalKind::NotUseful, Dismisser::Maintainer, &mona, at(second))
        };
        let standing = || async {
            let ledger = store.review().ledger(repo.id, &pull(1)).await.expect("reads");
            ledger[0].earlier.dismissals.clone()
        };
        assert!(say(None, 2).await.expect("writes"));
        reviewed(&store, &repo, pull(1), 'b', &[again(ids[0], &grave, FindingStatus::Same)], 3).await;
        let said = standing().await;
        assert!(said.len() == 1 && said[0].holds(&mild) && !said[0].holds(&grave), "{said:?}");
        // The same dismissal of the current finding is a new one; of the earlier finding it is not.
        assert!(say(Some(first), 4).await.expect("writes"));
        assert_eq!(standing().await.len(), 1);
        assert!(say(None, 5).await.expect("writes"));
        let said = standing().await;
        assert_eq!(said.iter().map(|one| (one.protected, one.holds(&grave))).collect::<Vec<_>>(), [(false, false), (true, true)]);
        let all = store.findings().dismissals_of(ids[0]).await.expect("reads");
        assert_eq!(all.into_iter().map(|one| one.dismissal).collect::<Vec<_>>(), said);
    }

    async fn a_finding_that_was_once_grave_stays_known_as_such(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let grave = Finding { severity: Severity::Critical, category: Category::Security, ..finding("a.js", 3, "Eval") };
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &[new(&grave)], 1).await;
        let mild = finding("a.js", 3, "Eval");
        reviewed(&store, &repo, pull(1), 'b', &[again(ids[0], &mild, FindingStatus::Same)], 2).await;
        let ada = "ada".parse().expect("a login");
        let reaction = super::feedback::thumb(&repo, 1, ids[0], &ada, false, 3);
        assert!(store.findings().record_reaction(&reaction).await.expect("keeps"));
        let patterns = store.findings().pattern_feedback(repo.id).await.expect("reads");
        assert_eq!(patterns.iter().map(|pattern| pattern.protected).collect::<Vec<_>>(), [true]);
    }
}
