//! One scenario through every method of the corpus half of the store, on both engines.

use std::collections::BTreeMap;

use canonry_domain::{
    EventBy, GithubId, GoneReason, ItemRecord, ItemState, ItemType, OutcomeEvent, OutcomeKind, PullChanges,
    RecordChange, RepoName, StateReason, merge_record, parse_moment,
};
use canonry_store::{
    CandidateMember, ItemFilter, MaintainerSource, NewCandidateSet, Representation, SetStatus, Store, SyncPage,
    SyncProgress,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::Timestamp;

use crate::fixtures::number;

fn at(text: &str) -> Timestamp {
    parse_moment(text).expect("a valid time")
}

fn record(item_type: ItemType, of: i64, title: &str, body: &str) -> ItemRecord {
    ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(item_type, number(of), title) }
}

async fn open(database: &TestDatabase) -> Store {
    Store::open(&database.url().parse().expect("a valid address"), at("2026-02-01")).await.expect("opens")
}

on_both_engines! {
    async fn a_corpus_grows(database: TestDatabase) {
        let now = at("2026-02-01");
        let store = open(&database).await;

        // A repository's name ignores case, and its id survives a rename.
        let name: RepoName = "Tide/Pool".parse().expect("valid");
        let repo = store.repos().ensure(&name, now).await.expect("created");
        let again = store.repos().ensure(&"tide/pool".parse().expect("valid"), now).await.expect("found");
        assert_eq!((again.id, again.name.to_string().as_str()), (repo.id, "Tide/Pool"));
        let other = store.repos().ensure(&"quill/note".parse().expect("valid"), now).await.expect("created");
        let renamed: RepoName = "tide/ocean".parse().expect("valid");
        let repo = store.repos().identify(repo.id, GithubId(5_000_000_001), &renamed).await.expect("noted").expect("free");
        assert_eq!(store.repos().find(&name).await.expect("reads"), None);
        assert_eq!(store.repos().by_github_id(GithubId(5_000_000_001)).await.expect("reads"), Some(repo.clone()));
        assert_eq!(store.repos().identify(other.id, GithubId(5_000_000_001), &other.name).await.expect("asked"), None);
        assert_eq!(store.repos().identify(other.id, GithubId(7), &renamed).await.expect("asked"), None);
        assert_eq!(store.repos().identify(repo.id, GithubId(8), &renamed).await.expect("asked"), None);
        assert_eq!(store.repos().list().await.expect("reads"), [other.clone(), repo.clone()]);

        store.try_to_write().await.expect("it may be written");
        assert_eq!(store.repos().list().await.expect("reads").len(), 2);

        // Every field of a record survives the round trip.
        let full = ItemRecord {
            github_id: Some(GithubId(6_000_000_001)),
            state: Some(ItemState::Closed),
            state_reason: Some(Some(StateReason::Duplicate)),
            merged: Some(true),
            draft: Some(true),
            author: Some("Mona".parse().expect("valid")),
            assignees: Some(vec!["hubot".parse().expect("valid")]),
            labels: Some(vec!["bug".into(), "größe, \"x\"".into()]),
            comments: Some(3),
            review_comments: Some(4),
            created_at: Some(at("2026-01-01T00:00:00.123456Z")),
            updated_at: Some(at("2026-01-02")),
            closed_at: Some(Some(at("2026-01-03"))),
            url: Some("https://github.com/tide/ocean/pull/2".into()),
            duplicate_of: Some(Some(number(1))),
            changes: Some(PullChanges { files: vec!["src/a b.rs".into()], diff: "+x\n-y\n".into() }),
            synced_at: Some(now),
            ..record(ItemType::Pr, 2, "日本語 🦀", "line\r\nline")
        };
        let records = vec![record(ItemType::Issue, 1, "Sync stops", "It stops."), full.clone()];
        let taken = store.corpus().upsert_items(&repo, records, now).await.expect("taken in");
        assert_eq!(taken.changes, [RecordChange::Inserted, RecordChange::Inserted]);
        let stored = store.corpus().item(repo.id, ItemType::Pr, number(2)).await.expect("reads").expect("known");
        assert_eq!(stored, merge_record(None, full).item);
        assert_eq!(store.corpus().item(other.id, ItemType::Pr, number(2)).await.expect("reads"), None);
        assert_eq!(store.corpus().item(repo.id, ItemType::Issue, number(2)).await.expect("reads"), None);

        // The same number twice in one batch: the later record is merged with the result of the earlier one.
        let twice = vec![record(ItemType::Issue, 3, "First", ""), record(ItemType::Issue, 3, "Second", "")];
        let taken = store.corpus().upsert_items(&repo, twice, now).await.expect("taken in");
        assert_eq!(taken.changes, [RecordChange::Inserted, RecordChange::Updated { content: true }]);
        let third = store.corpus().item(repo.id, ItemType::Issue, number(3)).await.expect("reads").expect("known");
        assert_eq!((third.title.as_str(), third.content_version.get()), ("Second", 2));

        let counts = store.corpus().item_counts(repo.id).await.expect("counts");
        assert_eq!((counts.open_issues, counts.closed_prs, counts.total()), (2, 1, 3));
        let everything = ItemFilter::default();
        let page = store.corpus().items_after(repo.id, everything, None, 2).await.expect("reads");
        assert_eq!(page.iter().map(|item| item.number.get()).collect::<Vec<_>>(), [1, 2]);
        let rest = store.corpus().items_after(repo.id, everything, Some((number(2), ItemType::Pr)), 2).await.expect("reads");
        assert_eq!(rest.iter().map(|item| item.number.get()).collect::<Vec<_>>(), [3]);
        let open_issues = ItemFilter { item_type: Some(ItemType::Issue), state: Some(ItemState::Open), with_gone: false };
        assert_eq!(store.corpus().items_after(repo.id, open_issues, None, 9).await.expect("reads").len(), 2);

        // An item leaves, and comes back when it is seen again.
        assert!(store.corpus().mark_gone(repo.id, number(3), GoneReason::Transferred, now).await.expect("marked"));
        assert!(!store.corpus().mark_gone(repo.id, number(3), GoneReason::Deleted, now).await.expect("already"));
        assert_eq!(store.corpus().item_numbers(repo.id).await.expect("reads"), [(number(1), ItemType::Issue), (number(2), ItemType::Pr)]);
        assert_eq!(store.corpus().items_after(repo.id, everything, None, 9).await.expect("reads").len(), 2);
        assert_eq!(store.corpus().items_after(repo.id, ItemFilter { with_gone: true, ..everything }, None, 9).await.expect("reads").len(), 3);
        assert_eq!(store.corpus().gone_numbers(repo.id).await.expect("reads"), [number(3)]);
        store.corpus().mark_back(repo.id, number(3), now).await.expect("taken back");
        assert_eq!(store.corpus().gone_numbers(repo.id).await.expect("reads"), []);
        assert!(store.corpus().mark_gone(repo.id, number(3), GoneReason::Transferred, now).await.expect("marked"));
        store.corpus().upsert_items(&repo, vec![record(ItemType::Issue, 3, "Second", "")], now).await.expect("taken in");
        assert_eq!(store.corpus().item_counts(repo.id).await.expect("counts").total(), 3);

        assert!(store.corpus().set_duplicate_of(repo.id, ItemType::Issue, number(3), number(1)).await.expect("noted"));
        assert!(!store.corpus().set_duplicate_of(repo.id, ItemType::Pr, number(3), number(1)).await.expect("unknown"));
        let third = store.corpus().item(repo.id, ItemType::Issue, number(3)).await.expect("reads").expect("known");
        assert_eq!(third.duplicate_of, Some(number(1)));

        assert_eq!(store.repos().maintainers(repo.id).await.expect("reads"), None);
        let logins = ["zoe", "Mona", "mona"].map(|login| login.parse().expect("valid"));
        let set = store.repos().set_maintainers(repo.id, MaintainerSource::Set, &logins, now).await.expect("set");
        assert_eq!(set.logins.iter().map(|login| login.key()).collect::<Vec<_>>(), ["mona", "zoe"]);
        assert_eq!(store.repos().maintainers(repo.id).await.expect("reads"), Some(set));
        let fetched = store.repos().set_maintainers(repo.id, MaintainerSource::Github, &[], now).await.expect("set");
        assert_eq!(store.repos().maintainers(repo.id).await.expect("reads"), Some(fetched));

        assert_eq!(store.repos().etag(repo.id, "/issues").await.expect("reads"), None);
        store.repos().put_etag(repo.id, "/issues", "one", now).await.expect("written");
        store.repos().put_etag(repo.id, "/issues", "two", now).await.expect("written");
        assert_eq!(store.repos().etag(repo.id, "/issues").await.expect("reads").as_deref(), Some("two"));
        assert_eq!(store.repos().etag(other.id, "/issues").await.expect("reads"), None);
    }

    async fn an_edit_makes_candidate_sets_stale_and_a_label_does_not(database: TestDatabase) {
        let now = at("2026-02-01");
        let store = open(&database).await;
        let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now).await.expect("created");
        let records = (1..=3).map(|of| record(ItemType::Issue, of, "Title", &format!("Body {of}"))).collect();
        store.corpus().upsert_items(&repo, records, now).await.expect("taken in");
        let item = store.corpus().item(repo.id, ItemType::Issue, number(1)).await.expect("reads").expect("known");
        let member = |of: i64, score: f64| CandidateMember {
            number: number(of),
            score,
            parts: BTreeMap::from([("dense".to_owned(), score), ("lexical".to_owned(), 12.25)]),
        };
        let set = NewCandidateSet {
            item_type: ItemType::Issue,
            number: number(1),
            representation: Representation::Raw,
            content_version: item.content_version,
            model: "local".into(),
            members: vec![member(3, 0.9132), member(2, 0.8)],
            pairs: vec![(number(2), number(3), 0.7125)],
        };
        assert!(store.duplicates().write_candidate_set(repo.id, &set, now).await.expect("written"));
        let empty = NewCandidateSet { members: Vec::new(), ..set.clone() };
        assert!(store.duplicates().write_candidate_set(repo.id, &empty, now).await.expect("written"));
        let intent = NewCandidateSet { representation: Representation::Intent, ..set.clone() };
        assert!(store.duplicates().write_candidate_set(repo.id, &intent, now).await.expect("written"));
        let statuses = || async {
            let sets = store.duplicates().candidate_sets(repo.id, ItemType::Issue, number(1)).await.expect("reads");
            sets.iter().map(|set| (set.representation.as_str(), set.status, set.members.len())).collect::<Vec<_>>()
        };
        assert_eq!(statuses().await, [("intent", SetStatus::Fresh, 2), ("raw", SetStatus::Fresh, 0), ("raw", SetStatus::Stale, 2)]);
        let sets = store.duplicates().candidate_sets(repo.id, ItemType::Issue, number(1)).await.expect("reads");
        assert_eq!((&sets[0].members, &sets[0].pairs), (&set.members, &set.pairs));

        let labelled = ItemRecord { labels: Some(vec!["bug".into()]), ..record(ItemType::Issue, 1, "Title\n", "Body 1\r\n") };
        let taken = store.corpus().upsert_items(&repo, vec![labelled], now).await.expect("taken in");
        assert_eq!(taken.changes, [RecordChange::Updated { content: false }]);
        assert_eq!(statuses().await[0].1, SetStatus::Fresh);

        let taken = store.corpus().upsert_items(&repo, vec![record(ItemType::Issue, 1, "Title", "Edited")], now).await.expect("taken in");
        assert_eq!(taken.changes, [RecordChange::Updated { content: true }]);
        assert!(statuses().await.iter().all(|(_, status, _)| *status == SetStatus::Stale));
        assert!(!store.duplicates().write_candidate_set(repo.id, &set, now).await.expect("refused"), "a set of the old text was written");
    }

    async fn a_page_and_its_progress_arrive_together(database: TestDatabase) {
        let now = at("2026-02-01");
        let store = open(&database).await;
        let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now).await.expect("created");
        assert_eq!(store.corpus().sync_progress(repo.id).await.expect("reads"), SyncProgress::default());
        let open_issue = ItemRecord {
            state: Some(ItemState::Open),
            updated_at: Some(at("2026-01-05")),
            synced_at: Some(now),
            ..record(ItemType::Issue, 1, "T", "B")
        };
        let progress = SyncProgress { watermark: Some(at("2026-01-05")), ..SyncProgress::default() };
        let page = SyncPage { records: vec![open_issue.clone()], progress: Some(progress) };
        store.corpus().upsert_sync_page(&repo, page, now).await.expect("taken in");
        assert_eq!(store.corpus().sync_progress(repo.id).await.expect("reads"), progress);
        assert_eq!(store.learning().outcome_events(repo.id, number(1)).await.expect("reads"), []);

        // A sync discovers a close once; if a webhook reported it first, the discovery is dropped.
        let closed = ItemRecord {
            state: Some(ItemState::Closed),
            state_reason: Some(Some(StateReason::Completed)),
            updated_at: Some(at("2026-01-06")),
            closed_at: Some(Some(at("2026-01-06"))),
            ..open_issue.clone()
        };
        let told = OutcomeEvent {
            delivery_id: "delivery-1".into(),
            number: number(1),
            kind: OutcomeKind::Closed,
            state_reason: Some(StateReason::Completed),
            actor: Some("mona".parse().expect("valid")),
            by: EventBy::Maintainer,
            duplicate_of: None,
            in_body: Some(number(2)),
            comment: Some(GithubId(9_000_000_001)),
            labels: Some(vec!["area/sync".into()]),
            cluster: vec![number(2), number(7)],
            occurred_at: at("2026-01-06"),
        };
        let learned = store.learning().record_outcome_events(repo.id, &[told.clone(), told.clone()], now).await.expect("recorded");
        assert_eq!((learned.new_events, learned.adjusted.len()), (1, 0));
        let page = SyncPage { records: vec![closed], progress: None };
        store.corpus().upsert_sync_page(&repo, page.clone(), now).await.expect("taken in");
        store.corpus().upsert_sync_page(&repo, page, now).await.expect("taken in");
        assert_eq!(store.learning().outcome_events(repo.id, number(1)).await.expect("reads"), [told]);
        assert_eq!(store.corpus().sync_progress(repo.id).await.expect("reads"), progress);

        let reopened = ItemRecord { updated_at: Some(at("2026-01-07")), ..open_issue };
        store.corpus().upsert_sync_page(&repo, SyncPage { records: vec![reopened], progress: None }, now).await.expect("taken in");
        let events = store.learning().outcome_events(repo.id, number(1)).await.expect("reads");
        assert_eq!((events.len(), events[1].kind, events[1].delivery_id.as_str()), (2, OutcomeKind::Reopened, "sync:o/n#1:2026-01-07T00:00:00Z"));
        let finished = SyncProgress { finished_at: Some(now), swept_at: Some(now), ..progress };
        store.corpus().write_sync_progress(repo.id, &finished).await.expect("written");
        assert_eq!(store.corpus().sync_progress(repo.id).await.expect("reads"), finished);
    }

    async fn writers_of_one_repository_queue_up(database: TestDatabase) {
        let now = at("2026-02-01");
        let store = open(&database).await;
        let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now).await.expect("created");
        let writers = (0..8).map(|writer| {
            let (store, repo) = (store.clone(), repo.clone());
            tokio::spawn(async move {
                let records = (1..=50).map(|of| record(ItemType::Issue, of, "Title", &format!("by {writer}"))).collect();
                store.corpus().upsert_items(&repo, records, now).await.expect("taken in").counts()
            })
        });
        let writers: Vec<_> = writers.collect();
        let (mut inserted, mut updated) = (0, 0);
        for writer in writers {
            let counts = writer.await.expect("runs");
            inserted += counts.0;
            updated += counts.1;
        }
        assert_eq!((inserted, updated), (50, 350));
        for item in store.corpus().items_after(repo.id, ItemFilter::default(), None, 99).await.expect("reads") {
            assert_eq!(item.content_version.get(), 8, "a version was lost");
        }
    }
}
