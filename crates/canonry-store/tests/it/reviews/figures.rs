//! Statistics, checked against an example that was counted by hand.

use canonry_domain::review::{Category, Finding, FindingStatus, HiddenBy, Severity, ShownAs};
use canonry_store::{FindingRecord, ReviewStatistics, SeverityCounts};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::civil::date;

use super::setting::{Wish, again, at, complete, confidence, finding, hidden, new, open, pull, reviewed};

/// Second 0 of the tests is 2027-01-15 08:00:00 UTC.
const DAY: i64 = 86_400;

fn sure(record: FindingRecord<'_>, points: u8) -> FindingRecord<'_> {
    FindingRecord { confidence: confidence(points), ..record }
}

on_both_engines! {
    async fn nothing_was_reviewed(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let run = Wish::new(&repo, 'a', "one").run(&store, 1).await;
        store.review().fail(run.id, "one", "no", at(2)).await.expect("asks");
        let nothing = ReviewStatistics {
            reviews: 0,
            subjects: 0,
            findings: 0,
            shown: 0,
            suppressed: 0,
            fixed: 0,
            by_severity: Severity::ALL.iter().map(|severity| (*severity, SeverityCounts::default())).collect(),
            avg_findings_per_review: None,
            avg_confidence: None,
            fixed_rate: None,
            top_files: Vec::new(),
        };
        assert_eq!(store.review().statistics(repo.id, None).await.expect("reads"), nothing);
        let days = store.review().days(repo.id, date(2027, 1, 14), 3).await.expect("reads");
        assert_eq!(days.iter().map(|day| day.date).collect::<Vec<_>>(), [date(2027, 1, 14), date(2027, 1, 15), date(2027, 1, 16)]);
        assert!(days.iter().all(|day| (day.reviews, day.findings, day.suppressed, day.fixed, day.avg_confidence) == (0, 0, 0, 0, None)));
        assert_eq!(store.review().days(repo.id, date(2027, 1, 14), 0).await.expect("reads"), []);
        // A review without findings has an average of 0 findings and no confidence.
        reviewed(&store, &repo, pull(1), 'b', &[], 3).await;
        let quiet = store.review().statistics(repo.id, None).await.expect("reads");
        assert_eq!((quiet.reviews, quiet.subjects, quiet.avg_findings_per_review, quiet.avg_confidence), (1, 1, Some(0.0), None));
    }

    async fn counted_by_hand(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let by = HiddenBy::Area;
        let grave = Finding { severity: Severity::Critical, category: Category::Security, ..finding("a.js", 1, "Grave") };
        let (plain, quiet) = (finding("a.js", 2, "Plain"), finding("b.js", 3, "Quiet"));

        // The first day: two pull requests. 90 + 60 + 45 (hidden), and 50 collapsed.
        let records = [sure(new(&grave), 90), sure(new(&plain), 60), sure(hidden(&quiet, &by), 45)];
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &records, 0).await;
        let folded = FindingRecord { shown: ShownAs::LowConfidence, ..sure(new(&plain), 50) };
        reviewed(&store, &repo, pull(2), 'a', &[folded], 10).await;
        // The same day, late: repeated findings count once; one is fixed, and a hidden one too.
        let records = [
            sure(again(ids[0], &grave, FindingStatus::Same), 10),
            again(ids[1], &plain, FindingStatus::Fixed),
            again(ids[2], &quiet, FindingStatus::Fixed),
        ];
        reviewed(&store, &repo, pull(1), 'b', &records, DAY / 2).await;
        // Two days later: one more, in another file, with confidence 70.
        let late = finding("c.js", 9, "Late");
        reviewed(&store, &repo, pull(3), 'a', &[sure(new(&late), 70)], 2 * DAY).await;
        // Failed reviews and other repositories are not counted.
        let run = Wish::new(&repo, 'f', "one").run(&store, 2 * DAY).await;
        assert!(store.review().fail(run.id, "one", "no", at(2 * DAY)).await.expect("asks"));
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        reviewed(&store, &other, pull(1), 'a', &[new(&plain)], 5).await;

        let all = store.review().statistics(repo.id, None).await.expect("reads");
        assert_eq!((all.reviews, all.subjects, all.findings), (4, 3, 5));
        assert_eq!((all.shown, all.suppressed, all.fixed), (4, 1, 1));
        let counts = |shown, suppressed| SeverityCounts { shown, suppressed };
        let expected = [
            (Severity::Minor, counts(0, 0)),
            (Severity::Medium, counts(3, 1)),
            (Severity::Major, counts(0, 0)),
            (Severity::Critical, counts(1, 0)),
        ];
        assert_eq!(all.by_severity, expected.into());
        assert_eq!(all.avg_findings_per_review, Some(1.25));
        assert_eq!(all.avg_confidence, Some(63.0));
        assert_eq!(all.fixed_rate, Some(0.25));
        let files: Vec<_> = all.top_files.iter().map(|file| (file.path.as_str(), file.findings)).collect();
        assert_eq!(files, [("a.js", 3), ("c.js", 1)]);

        let since = store.review().statistics(repo.id, Some(at(DAY / 2))).await.expect("reads");
        assert_eq!((since.reviews, since.findings, since.avg_confidence, since.fixed_rate), (2, 1, Some(70.0), Some(0.0)));

        let days = store.review().days(repo.id, date(2027, 1, 15), 3).await.expect("reads");
        let told: Vec<_> =
            days.iter().map(|day| (day.date.day(), day.reviews, day.findings, day.suppressed, day.fixed, day.avg_confidence)).collect();
        assert_eq!(told, [(15, 3, 4, 1, 2, Some(61.25)), (16, 0, 0, 0, 0, None), (17, 1, 1, 0, 0, Some(70.0))]);
        // Days begin at midnight UTC.
        let later = store.review().days(repo.id, date(2027, 1, 17), 1).await.expect("reads");
        assert_eq!((later.len(), later[0].reviews), (1, 1));
    }

    async fn the_ten_files_with_most_findings(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let findings: Vec<Finding> = (1..=12)
            .flat_map(|file| (0..file).map(move |line| finding(&format!("{file}.js"), line + 1, &format!("In {file} {line}"))))
            .chain([finding("as-many.js", 1, "Eval")])
            .collect();
        let run = Wish::new(&repo, 'a', "one").run(&store, 1).await;
        let records: Vec<_> = findings.iter().map(new).collect();
        assert!(complete(&store, run.id, "one", &records, 2).await.is_some());
        let statistics = store.review().statistics(repo.id, None).await.expect("reads");
        let files: Vec<_> = statistics.top_files.iter().map(|file| (file.path.to_string(), file.findings)).collect();
        let expected: Vec<_> = (3..=12).rev().map(|file| (format!("{file}.js"), file)).collect();
        assert_eq!(files, expected);
    }
}
