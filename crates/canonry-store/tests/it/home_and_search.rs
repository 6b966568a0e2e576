//! The counts of the console's first page and the results of its search, on both engines.

use canonry_domain::review::FindingStatus;
use canonry_domain::{
    ContentVersion, CurrentThreshold, EventBy, GoneReason, ItemRecord, ItemState, ItemType, OutcomeEvent, OutcomeKind,
    StateReason, Threshold, ThresholdSource, TriageMode, Verdict,
};
use canonry_store::{
    ActivityDay, AdjudicationKind, BrakeKind, CloseOutcome, CloseResult, JobCaps, JobEnd, JobKind, JobLease, JobScope,
    MatchingItem, NewGrace, NewJob, NewObjection, ObjectionKind, Repo, RepoScope, Store, TriageAction,
    TriageActionKind,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::fixtures::{ISSUE, PLAN, at, issues, number, open_with, plan_row, pulls, triage_record};
use crate::reviews::setting::{again, finding, new, pull, reviewed};

const DAY: i64 = 86_400;

async fn other_repo(store: &Store) -> Repo {
    store.repos().ensure(&"quill/note".parse().expect("a name"), at(0)).await.expect("created")
}

/// Posts a comment that names a possible duplicate.
async fn suggest(store: &Store, repo: &Repo, of: i64, second: i64) {
    let record = triage_record(of, Verdict::Duplicate, Some(1));
    let triage_id = store.duplicates().write_triage_record(repo.id, &record, at(second)).await.expect("written");
    let action = TriageAction {
        triage_id,
        mode: TriageMode::Suggest,
        component: None,
        threshold: CurrentThreshold::From(Threshold::default()),
        source: ThresholdSource::Configured,
        action: TriageActionKind::Commented,
        reason: "speak".parse().expect("any text"),
        comment_key: None,
    };
    store.duplicates().record_triage_action(&action, at(second)).await.expect("written");
}

async fn closed(store: &Store, repo: &Repo, of: i64, duplicate_of: Option<i64>, second: i64) {
    let event = OutcomeEvent {
        delivery_id: format!("closed {of}"),
        number: number(of),
        kind: OutcomeKind::Closed,
        state_reason: Some(if duplicate_of.is_some() { StateReason::Duplicate } else { StateReason::Completed }),
        actor: Some("mona".parse().expect("a login")),
        by: EventBy::Maintainer,
        duplicate_of: duplicate_of.map(number),
        in_body: None,
        comment: None,
        labels: None,
        cluster: Vec::new(),
        occurred_at: at(second),
    };
    store.learning().record_outcome_events(repo.id, &[event], at(second)).await.expect("recorded");
}

fn last(days: &[ActivityDay]) -> ActivityDay {
    *days.last().expect("there are days")
}

fn numbers(found: &[MatchingItem]) -> Vec<(String, &'static str, i64)> {
    found.iter().map(|item| (item.repo.name.to_string(), item.item_type.as_str(), item.number.get())).collect()
}

on_both_engines! {
    async fn what_waits_for_a_person_is_counted_by_repository(database: TestDatabase) {
        let (store, repo) = open_with(&database, issues(1..=9)).await;
        let quiet = other_repo(&store).await;
        let nothing = store.console().attention(RepoScope::All, at(0), 9).await.expect("reads");
        assert_eq!(nothing, [], "nothing waits anywhere");

        for (of, due) in [(3, 50), (4, 40)] {
            let grace = NewGrace {
                item_type: ISSUE, number: number(of), target: number(1), triage_id: None, comment_key: None, approved_by: None,
                content_version: ContentVersion::FIRST, began_at: at(0), due_at: at(due),
            };
            assert!(store.close().begin_grace(repo.id, &grace).await.expect("begun"));
        }
        let plan = store.plans().create(repo.id, &PLAN, &[plan_row(5, 1), plan_row(6, 1)], at(1)).await.expect("planned");
        store.plans().set_approved(plan, ISSUE, &[number(5)], Some(true), None, at(2)).await.expect("noted");
        suggest(&store, &repo, 7, 1).await;
        let drawn = store.judge().draw_adjudications(repo.id, AdjudicationKind::Triage, 7, 9, at(2)).await.expect("drawn");
        let payload = json!(null);
        let job = NewJob { key: "sync", repo: Some(&repo.name), kind: JobKind::Sync, payload: &payload };
        store.jobs().enqueue(&job, at(0), at(0)).await.expect("queued");
        let caps = JobCaps { per_repo: 9, in_all: 9 };
        let leased = store.jobs().lease("w", caps, JobScope::All, at(1), at(9)).await.expect("leases").expect("due");
        assert!(store.jobs().end(JobLease { id: leased.id, owner: "w" }, JobEnd::Dead("no"), at(2)).await.expect("ends"));

        let attention = store.console().attention(RepoScope::All, at(0), 9).await.expect("reads");
        let [only] = attention.as_slice() else { panic!("one repository: {attention:?}") };
        assert_eq!(only.repo, repo);
        assert_eq!((only.announced, only.plan, only.undecided, only.unanswered, only.failed_jobs), (2, Some(plan), 1, drawn, 1));
        assert_eq!((drawn, only.paused, only.breaker), (1, false, false));
        assert_eq!(store.console().attention(RepoScope::Of(&[quiet.id]), at(0), 9).await.expect("reads"), []);
        assert_eq!(store.console().repo_attention(repo.id, at(0)).await.expect("reads"), *only);
        let later = store.console().repo_attention(repo.id, at(2)).await.expect("reads");
        assert_eq!((later.plan, later.undecided), (None, 0), "the plan is too old then");
        store.plans().begin_apply(plan, "applying", at(3)).await.expect("begun").expect("a plan");
        let applied = store.console().repo_attention(repo.id, at(0)).await.expect("reads");
        assert_eq!((applied.plan, applied.undecided), (None, 0));

        let closes = store.console().next_closes(RepoScope::All, 9).await.expect("reads");
        let told: Vec<_> = closes.iter().map(|close| (close.number.get(), close.title.as_str(), close.target.get(), close.due_at)).collect();
        assert_eq!(told, [(4, "Issue 4", 1, at(40)), (3, "Issue 3", 1, at(50))], "the first to close comes first");
        for scope in [RepoScope::Of(&[quiet.id]), RepoScope::Of(&[])] {
            assert_eq!(store.console().next_closes(scope, 9).await.expect("reads"), []);
            assert_eq!(store.console().attention(scope, at(0), 9).await.expect("reads"), []);
        }

        store.close().set_brake(quiet.id, BrakeKind::Pause, None, "a release", at(3)).await.expect("set");
        let names: Vec<_> = store.console().attention(RepoScope::All, at(0), 9).await.expect("reads").into_iter()
            .map(|of| (of.repo.name.to_string(), of.paused)).collect();
        assert_eq!(names, [("quill/note".to_owned(), true), ("tide/pool".to_owned(), false)]);
        store.disconnect().await;
    }

    async fn open_findings_of_open_pull_requests_are_counted(database: TestDatabase) {
        let closed = ItemRecord { state: Some(ItemState::Closed), ..ItemRecord::new(ItemType::Pr, number(2), "Done") };
        let (store, repo) = open_with(&database, pulls(1..=1).chain([closed])).await;
        let findings = [finding("a.rs", 7, "One"), finding("a.rs", 9, "Two"), finding("a.rs", 11, "Three")];
        let (_, ids) = reviewed(&store, &repo, pull(1), 'a', &findings.each_ref().map(|found| new(found)), 60).await;
        reviewed(&store, &repo, pull(2), 'b', &[new(&findings[0])], 61).await;
        let open = async || store.console().repo_attention(repo.id, at(0)).await.expect("reads").open_findings;
        assert_eq!(open().await, 3, "the other pull request is closed");
        let ended = [
            again(ids[0], &findings[0], FindingStatus::Fixed),
            again(ids[1], &findings[1], FindingStatus::Dismissed),
            again(ids[2], &findings[2], FindingStatus::Same),
        ];
        reviewed(&store, &repo, pull(1), 'c', &ended, 62).await;
        assert_eq!(open().await, 1);
        store.corpus().mark_gone(repo.id, number(1), GoneReason::Deleted, at(63)).await.expect("marked");
        assert_eq!(open().await, 0, "the pull request has left the repository");
        store.disconnect().await;
    }

    async fn what_canonry_did_is_counted_by_day(database: TestDatabase) {
        let (store, repo) = open_with(&database, issues(1..=9)).await;
        let elsewhere = other_repo(&store).await;
        // Three suggestions on one day: one right, one wrong, one unknown.
        for of in [2, 3, 4] {
            suggest(&store, &repo, of, 10).await;
        }
        closed(&store, &repo, 2, Some(1), 20).await;
        closed(&store, &repo, 3, None, 20).await;
        let plan = store.plans().create(repo.id, &PLAN, &[plan_row(5, 1), plan_row(6, 1)], at(0)).await.expect("planned");
        let apply = store.plans().begin_apply(plan, "a", at(1)).await.expect("begun").expect("a plan").id;
        let applied = CloseResult { outcome: CloseOutcome::Applied { objected: false }, reason: None, outbox_key: None };
        for of in [5, 6] {
            assert!(store.plans().record_close_result(apply, ISSUE, number(of), applied, at(30)).await.expect("recorded"));
        }
        let undo = store.plans().begin_undo(plan, Some(&[(ISSUE, number(5))]), "u", at(40)).await.expect("begun").expect("a plan").id;
        assert!(store.plans().record_undo_result(undo, ISSUE, number(5), applied, None, at(41)).await.expect("recorded"));
        for (key, kind) in [("k1", ObjectionKind::Reopened), ("k2", ObjectionKind::Undone)] {
            let objection = NewObjection { item_type: ISSUE, number: number(6), close_key: key, kind, by: None, at: at(50) };
            assert!(store.close().record_objection(repo.id, &objection).await.expect("noted"));
        }
        let found = finding("src/reader.rs", 7, "Missing check");
        let (_, ids) = reviewed(&store, &repo, pull(8), 'a', &[new(&found)], 60).await;
        reviewed(&store, &repo, pull(8), 'b', &[again(ids[0], &found, FindingStatus::Fixed)], 61).await;

        let days = store.console().activity_days(RepoScope::All, at(100), 30).await.expect("reads");
        assert_eq!(days.len(), 30);
        assert_eq!(last(&days), ActivityDay {
            date: days[29].date, suggestions: 3, confirmed: 1, rejected: 1, closes: 2, undone: 2, reviews: 2, fixed: 1,
        });
        assert_eq!(days[28], ActivityDay {
            date: days[29].date.yesterday().expect("a day"), suggestions: 0, confirmed: 0, rejected: 0, closes: 0, undone: 0, reviews: 0, fixed: 0,
        });
        let own = store.console().activity_days(RepoScope::Of(&[repo.id]), at(100), 30).await.expect("reads");
        assert_eq!(own, days);
        let other = store.console().activity_days(RepoScope::Of(&[elsewhere.id]), at(100), 30).await.expect("reads");
        assert_eq!((last(&other).suggestions, last(&other).closes, last(&other).undone, last(&other).reviews), (0, 0, 0, 0));
        let tomorrow = store.console().activity_days(RepoScope::All, at(100 + DAY), 2).await.expect("reads");
        assert_eq!((tomorrow[0].suggestions, tomorrow[1].suggestions), (3, 0));
        let later = store.console().activity_days(RepoScope::All, at(100 + 2 * DAY), 2).await.expect("reads");
        assert_eq!(later.iter().map(|day| day.suggestions).sum::<u64>(), 0, "it is too long ago");
        store.disconnect().await;
    }

    async fn items_and_findings_are_found_where_they_may_be_looked_for(database: TestDatabase) {
        let pr = ItemRecord::new(ItemType::Pr, number(3), "Reader fix");
        let named = ItemRecord::new(ISSUE, number(4), "The READER crashes at 100%");
        let (store, repo) = open_with(&database, issues(1..=3).chain([pr, named])).await;
        let elsewhere = other_repo(&store).await;
        store.corpus().upsert_items(&elsewhere, issues(3..=3).collect(), at(0)).await.expect("stored");
        let console = store.console();
        let both = console.items_numbered(RepoScope::All, number(3), 9).await.expect("reads");
        let (tide, quill) = ("tide/pool".to_owned(), "quill/note".to_owned());
        assert_eq!(numbers(&both), [(quill, "issue", 3), (tide.clone(), "issue", 3), (tide.clone(), "pr", 3)]);
        let own = console.items_numbered(RepoScope::Of(&[repo.id]), number(3), 9).await.expect("reads");
        assert_eq!(numbers(&own), [(tide.clone(), "issue", 3), (tide.clone(), "pr", 3)]);

        let titled = async |words: &str, looked_at| numbers(&console.items_titled(repo.id, words, looked_at, 9).await.expect("reads"));
        assert_eq!(titled("reader", 99).await, [(tide.clone(), "issue", 4), (tide.clone(), "pr", 3)]);
        assert_eq!(titled("crashes READER", 99).await, [(tide.clone(), "issue", 4)]);
        assert_eq!(titled("100%", 99).await.len(), 1, "a sign stands for itself");
        assert_eq!(titled("reader", 1).await.len(), 1, "only the newest is looked at");
        store.corpus().mark_gone(repo.id, number(4), GoneReason::Deleted, at(1)).await.expect("marked");
        assert_eq!(titled("crashes", 99).await, []);

        let findings = [finding("src/reader.rs", 7, "Missing \"check\""), finding("src/app.js", 1, "Unused variable")];
        reviewed(&store, &repo, pull(3), 'a', &findings.each_ref().map(|found| new(found)), 60).await;
        let titles = async |repo: &Repo, words: &str| {
            let found = console.findings_with(repo.id, words, 99, 9).await.expect("reads");
            found.into_iter().map(|found| found.finding.title).collect::<Vec<_>>()
        };
        assert_eq!(titles(&repo, "variable UNUSED").await, ["Unused variable"]);
        assert_eq!(titles(&repo, "\"check\"").await, ["Missing \"check\""]);
        assert_eq!(titles(&repo, "reader.rs").await, ["Missing \"check\""], "by its path");
        assert_eq!(titles(&repo, "unused").await, ["Unused variable"], "by its rule");
        assert_eq!(titles(&repo, "severity").await, [""; 0], "names of fields are not what it says");
        assert_eq!(titles(&elsewhere, "variable").await, [""; 0]);
        assert_eq!(console.repo_names("POOL", 9).await.expect("reads"), [repo]);
        store.disconnect().await;
    }
}
