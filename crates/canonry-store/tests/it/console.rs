//! Data and lists of the console: sessions, actions, repository overviews, pages of items, jobs and deliveries.

use std::collections::BTreeMap;

use canonry_domain::{ContentVersion, GithubId, GoneReason, ItemRecord, ItemState, ItemType, Login, RepoName, Verdict};
use canonry_store::{
    BrakeKind, ConsoleSession, DeliveryAction, DeliveryFilter, DeliveryState, ItemLine, ItemPageFilter, JobCaps,
    JobEnd, JobFilter, JobKind, JobLease, JobScope, JobState, NewConsoleAction, NewDelivery, NewGrace, NewJob,
    NewTriageRecord, PackedText, PruneCounts, Repo, RepoAccess, RepoPageFilter, Representation, SessionOwner, Store,
    StoredAdminToken, SyncProgress,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;
use serde_json::Value;

use crate::fixtures::{at, number, open_store, triage_record};

fn name(name: &str) -> RepoName {
    name.parse().expect("a name")
}

async fn filled(store: &Store) -> Repo {
    let repo = store.repos().ensure(&name("Tide/Pool"), at(0)).await.expect("created");
    let mut records: Vec<_> =
        (1..=5).map(|of| ItemRecord::new(ItemType::Issue, number(of), format!("Issue {of}"))).collect();
    records.extend((5..=7).map(|of| ItemRecord::new(ItemType::Pr, number(of), format!("Pull {of}"))));
    for record in &mut records {
        let closed = [2, 6].contains(&record.number.get());
        record.state = Some(if closed { ItemState::Closed } else { ItemState::Open });
    }
    store.corpus().upsert_items(&repo, records, at(0)).await.expect("taken in");
    store.corpus().mark_gone(repo.id, number(3), GoneReason::Deleted, at(1)).await.expect("marked");
    repo
}

fn told(lines: &[ItemLine]) -> Vec<String> {
    lines.iter().map(|line| format!("{} {}", line.item_type.as_str(), line.number)).collect()
}

async fn say(store: &Store, repo: &Repo, of: i64, verdict: Verdict) {
    let record = NewTriageRecord { reason: "no_candidates".to_owned(), ..triage_record(of, verdict, None) };
    store.duplicates().write_triage_record(repo.id, &record, at(9)).await.expect("written");
}

on_both_engines! {
    async fn a_session_ends_when_it_is_unused_too_old_or_ended(database: TestDatabase) {
        let store = open_store(&database).await;
        let hours = |hours: i64| at(hours * 3_600);
        let mona: Login = "mona".parse().expect("a login");
        let begun = store.console().begin_session(&[1; 32], SessionOwner::Account(GithubId(7), &mona), at(0)).await.expect("begun");
        assert_eq!(
            begun,
            ConsoleSession { github_id: Some(GithubId(7)), login: Some(mona), is_operator: false, made_at: at(0), seen_at: at(0), ends_at: hours(7 * 24) }
        );
        let seal = [9; 32];
        store.console().begin_session(&[2; 32], SessionOwner::Operator { seal }, at(0)).await.expect("begun");
        let seen = async |hash: u8, now| store.console().session(&[hash; 32], &seal, now).await.expect("reads").map(|session| session.seen_at);
        assert_eq!(seen(1, at(59)).await, Some(at(0)), "not written each time");
        assert_eq!(seen(1, hours(11)).await, Some(hours(11)));
        assert_eq!(seen(1, hours(11)).await, Some(hours(11)), "and it was written");
        assert!(store.console().session(&[2; 32], &seal, at(9)).await.expect("reads").expect("theirs").is_operator);
        assert_eq!(store.console().session(&[2; 32], &[8; 32], at(9)).await.expect("reads"), None, "the admin token is another one");
        assert!(store.console().session(&[1; 32], &[8; 32], at(9)).await.expect("reads").is_some(), "which is nothing to others");
        assert_eq!(seen(2, hours(12)).await, None, "nobody used it for 12 hours");
        for hour in (22..7 * 24).step_by(11) {
            assert_eq!(seen(1, hours(hour)).await, Some(hours(hour)));
        }
        assert_eq!(seen(1, hours(7 * 24)).await, None, "seven days at most");
        assert_eq!(seen(3, at(0)).await, None, "another's hash");
        assert!(store.console().end_session(&[2; 32]).await.expect("ended"));
        assert!(!store.console().end_session(&[2; 32]).await.expect("reads"));
        assert_eq!(seen(2, at(1)).await, None);
    }

    async fn words_that_cannot_be_stored_find_nothing(database: TestDatabase) {
        let store = open_store(&database).await;
        let word = || Some("a\0b".to_owned());
        let event = DeliveryFilter { event: word(), ..DeliveryFilter::default() };
        let before = DeliveryFilter { before: Some((at(0), "a\0b".to_owned())), ..DeliveryFilter::default() };
        for filter in [event, before] {
            assert_eq!(store.deliveries().list(&filter, 9).await.expect("reads"), []);
        }
        assert_eq!(store.deliveries().get("a\0b").await.expect("reads"), None);
        assert_eq!(store.deliveries().payload("a\0b").await.expect("reads"), None);
        for filter in [JobFilter { kind: word(), ..JobFilter::default() }, JobFilter { delivery: word(), ..JobFilter::default() }] {
            assert_eq!(store.jobs().list(&filter, 9).await.expect("reads"), []);
        }
    }

    async fn the_admin_token_is_made_once(database: TestDatabase) {
        let store = open_store(&database).await;
        let made = |number: u8| StoredAdminToken { hash: [number; 32], place: format!("web-{number}: /srv/ünì/admin-token") };
        assert_eq!(store.console().admin_token().await.expect("reads"), None);
        assert_eq!(store.console().ensure_admin_token(&made(1), at(0)).await.expect("made"), made(1));
        assert_eq!(store.console().ensure_admin_token(&made(2), at(1)).await.expect("kept"), made(1));
        assert_eq!(store.console().admin_token().await.expect("reads"), Some(made(1)));
        assert_ne!(store.outbox().marker_secret([3; 32], at(1)).await.expect("made"), [1; 32]);
        // Deleting one token does not delete another.
        store.console().delete_admin_token(&made(2)).await.expect("written");
        assert_eq!(store.console().admin_token().await.expect("reads"), Some(made(1)));
        store.console().delete_admin_token(&made(1)).await.expect("written");
        assert_eq!(store.console().ensure_admin_token(&made(2), at(2)).await.expect("made"), made(2));
    }

    async fn what_people_did_is_kept_for_a_year_and_ended_sessions_go(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo = filled(&store).await;
        let mona: Login = "mona".parse().expect("a login");
        let action = |repo, action, by| NewConsoleAction { by, is_operator: by.is_none(), repo, action, subject: "a\0b" };
        for (second, new) in [(1, action(Some(repo.id), "pause", Some(&mona))), (2, action(None, "sign-in", None)), (3, action(Some(repo.id), "resume", None))] {
            store.console().record_action(&new, at(second)).await.expect("written");
        }
        let listed = store.console().actions(repo.id, 9).await.expect("reads");
        let told: Vec<_> = listed.iter().map(|one| (one.action.as_str(), one.by.as_ref().map(Login::as_str), one.is_operator, one.at)).collect();
        assert_eq!(told, [("resume", None, true, at(3)), ("pause", Some("mona"), false, at(1))]);
        assert_eq!((listed[0].subject.as_str(), store.console().actions(repo.id, 1).await.expect("reads").len()), ("a\u{fffd}b", 1));
        store.console().begin_session(&[1; 32], SessionOwner::Operator { seal: [9; 32] }, at(0)).await.expect("begun");
        let prune = async |before, limit| store.maintenance().prune(before, limit).await.expect("pruned").console;
        let year = SignedDuration::from_hours(365 * 24);
        assert_eq!(prune(at(7 * 86_400), 9).await, 0);
        assert_eq!(prune(at(8 * 86_400), 9).await, 1, "the session had ended");
        assert_eq!(prune(at(3) + year, 1).await, 1, "one at a time");
        assert_eq!((prune(at(3) + year, 9).await, prune(at(3) + year, 9).await), (1, 0));
        assert_eq!(store.maintenance().prune(at(3) + year, 9).await.expect("pruned"), PruneCounts::default());
        assert_eq!(store.console().actions(repo.id, 9).await.expect("reads").len(), 1);
    }

    async fn repositories_are_told_of_in_a_line(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo = filled(&store).await;
        let other = store.repos().ensure(&name("quill/note"), at(0)).await.expect("created");
        store.repos().set_access(other.id, RepoAccess::Suspended, at(1)).await.expect("set");
        let bare = store.console().repo_overview(other.id).await.expect("reads");
        assert_eq!((bare.access, bare.open_issues, bare.synced_at, bare.settings), (RepoAccess::Suspended, 0, None, None));
        store.close().set_brake(repo.id, BrakeKind::Pause, None, "why", at(1)).await.expect("set");
        store.close().set_brake(repo.id, BrakeKind::Breaker, None, "why", at(1)).await.expect("set");
        store.close().lift_brake(repo.id, BrakeKind::Breaker, None, at(2)).await.expect("lifted");
        store.repos().write_settings(repo.id, Some("triage: {mode: suggest}"), at(1)).await.expect("written");
        store.corpus().write_sync_progress(repo.id, &SyncProgress { finished_at: Some(at(3)), ..SyncProgress::default() }).await.expect("written");
        let line = store.console().repo_overview(repo.id).await.expect("reads");
        assert_eq!((line.open_issues, line.open_prs, line.waiting_graces, line.dead_jobs), (3, 2, 0, 0));
        assert_eq!((line.paused, line.breaker, line.synced_at), (true, false, Some(at(3))));
        assert_eq!(line.settings.as_deref(), Some("triage: {mode: suggest}"));
        let names = async |after: Option<i64>, limit| {
            let page = store.console().repo_pages(RepoPageFilter::default(), after, limit).await.expect("reads");
            page.into_iter().map(|line| line.repo.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(None, 9).await, ["quill/note", "Tide/Pool"]);
        assert_eq!(names(None, 1).await, ["quill/note"]);
        let quill = store.repos().find(&name("QUILL/note")).await.expect("reads").expect("is known").id;
        assert_eq!(names(Some(quill.get()), 9).await, ["Tide/Pool"]);
        let fitting = async |text: &str, in_trouble| {
            let page = store.console().repo_pages(RepoPageFilter { text, in_trouble }, None, 9).await.expect("reads");
            page.into_iter().map(|line| line.repo.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(fitting("POOL tide", false).await, ["Tide/Pool"], "every word, in any case");
        assert_eq!((fitting("%", false).await, fitting("a\0b", false).await), (vec![], vec![]), "signs are no patterns");
        assert_eq!(fitting("", true).await, ["quill/note", "Tide/Pool"], "suspended, and paused");
        store.close().lift_brake(repo.id, BrakeKind::Pause, None, at(4)).await.expect("lifted");
        assert_eq!(fitting("", true).await, ["quill/note"]);
        let job = NewJob { key: "k", repo: Some(&repo.name), kind: JobKind::Sync, payload: &Value::Null };
        store.jobs().enqueue(&job, at(4), at(4)).await.expect("queued");
        let lease = store.jobs().lease("w", JobCaps { per_repo: 9, in_all: 9 }, JobScope::All, at(4), at(60)).await;
        let lease = JobLease { id: lease.expect("leases").expect("due").id, owner: "w" };
        assert!(store.jobs().end(lease, JobEnd::Dead("no"), at(5)).await.expect("ends"));
        assert_eq!(fitting("tide", true).await, ["Tide/Pool"], "a job was given up");
    }

    async fn items_are_paged_newest_first_by_every_filter(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo = filled(&store).await;
        let whole = async |filter, before, limit| store.console().item_pages(repo.id, filter, before, limit).await.expect("reads");
        let page = async |filter, before, limit| whole(filter, before, limit).await.lines;
        let all = ItemPageFilter::default();
        let everything = ["pr 7", "pr 6", "pr 5", "issue 5", "issue 4", "issue 2", "issue 1"];
        assert_eq!(told(&page(all, None, 99).await), everything);
        // Paging gives the same list, although two items have the same number.
        for limit in 1..=4 {
            let (mut seen, mut before) = (Vec::new(), None);
            loop {
                let page = whole(all, before, limit).await;
                seen.extend(told(&page.lines));
                assert!(seen.len() <= everything.len(), "{seen:?}");
                let Some(next) = page.next else { break };
                before = Some(next.to_string().parse().expect("as it was written"));
            }
            assert_eq!(seen, everything, "{limit} at a time");
        }
        let open = ItemPageFilter { state: Some(ItemState::Open), ..all };
        assert_eq!(told(&page(open, None, 3).await), ["pr 7", "pr 5", "issue 5"]);
        let issues = ItemPageFilter { item_type: Some(ItemType::Issue), state: Some(ItemState::Closed), ..all };
        assert_eq!(told(&page(issues, None, 9).await), ["issue 2"]);
        let canonicals = BTreeMap::from([(number(1), number(1)), (number(4), number(1))]);
        store.duplicates().set_canonicals(repo.id, ItemType::Issue, Representation::Raw, &canonicals, at(1)).await.expect("written");
        let grouped = ItemPageFilter { clustered: Some(true), ..all };
        assert_eq!(told(&page(grouped, None, 9).await), ["issue 4", "issue 1"]);
        let place = page(grouped, None, 1).await[0].place;
        assert_eq!(told(&page(grouped, Some(place), 9).await), ["issue 1"]);
        let alone = ItemPageFilter { clustered: Some(false), state: Some(ItemState::Open), ..all };
        assert_eq!(told(&page(alone, None, 9).await), ["pr 7", "pr 5", "issue 5"]);
        // The latest verdict counts, and the latest record comes first.
        for (of, verdict) in [(4, Verdict::Duplicate), (1, Verdict::Duplicate), (5, Verdict::Duplicate), (1, Verdict::NotDuplicate), (4, Verdict::Duplicate)] {
            say(&store, &repo, of, verdict).await;
        }
        let duplicates = ItemPageFilter { verdict: Some(Verdict::Duplicate), ..all };
        assert_eq!(told(&page(duplicates, None, 9).await), ["issue 4", "issue 5"]);
        let place = page(duplicates, None, 1).await[0].place;
        assert_eq!(told(&page(duplicates, Some(place), 9).await), ["issue 5"]);
        assert_eq!(told(&page(ItemPageFilter { clustered: Some(true), ..duplicates }, None, 9).await), ["issue 4"]);
        assert_eq!(told(&page(ItemPageFilter { item_type: Some(ItemType::Pr), ..duplicates }, None, 9).await), [""; 0]);
    }

    async fn items_are_found_by_what_they_say(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo = filled(&store).await;
        let item = |of, title: &str, author: &str, labels: &[&str]| ItemRecord {
            author: Some(author.parse().expect("a login")),
            labels: Some(labels.iter().map(|&label| label.to_owned()).collect()),
            ..ItemRecord::new(ItemType::Issue, number(of), title)
        };
        let items = vec![
            item(10, "Crash at 100% of a_b", "Mona", &["bug", "area/Sync"]),
            item(11, "CRASH in the reader", "rita", &["not a \"bug\""]),
            item(12, "Slow reader", "mona", &["bugs"]),
        ];
        store.corpus().upsert_items(&repo, items, at(1)).await.expect("taken in");
        let found = async |filter| told(&store.console().item_pages(repo.id, filter, None, 9).await.expect("reads").lines);
        let all = ItemPageFilter::default();
        for (title, expected) in [
            ("crash", &["issue 11", "issue 10"][..]),
            ("  reader crash ", &["issue 11"]),
            ("100%", &["issue 10"]),
            ("a_b", &["issue 10"]),
            ("%", &["issue 10"]),
            ("pull", &["pr 7", "pr 6", "pr 5"]),
            ("a\0b", &[]),
        ] {
            assert_eq!(found(ItemPageFilter { title, ..all }).await, expected, "{title:?}");
        }
        for (label, expected) in [("BUG", &["issue 10"][..]), ("area/sync", &["issue 10"]), ("not a \"bug\"", &["issue 11"]), ("sync", &[])] {
            assert_eq!(found(ItemPageFilter { label, ..all }).await, expected, "{label:?}");
        }
        for (author, expected) in [("MONA", &["issue 12", "issue 10"][..]), ("mon", &[]), ("a\0b", &[])] {
            assert_eq!(found(ItemPageFilter { author, ..all }).await, expected, "{author:?}");
        }
        assert_eq!(found(ItemPageFilter { author: "mona", title: "crash", label: "bug", ..all }).await, ["issue 10"]);
        assert_eq!(found(ItemPageFilter { title: "issue", state: Some(ItemState::Closed), ..all }).await, ["issue 2"]);
        // The filters also work with a verdict and in a cluster.
        say(&store, &repo, 11, Verdict::Duplicate).await;
        say(&store, &repo, 12, Verdict::Duplicate).await;
        let duplicates = ItemPageFilter { verdict: Some(Verdict::Duplicate), ..all };
        assert_eq!(found(ItemPageFilter { title: "crash", ..duplicates }).await, ["issue 11"]);
        let canonicals = BTreeMap::from([(number(10), number(10)), (number(12), number(10))]);
        store.duplicates().set_canonicals(repo.id, ItemType::Issue, Representation::Raw, &canonicals, at(1)).await.expect("written");
        assert_eq!(found(ItemPageFilter { title: "crash", clustered: Some(true), ..all }).await, ["issue 10"]);
        assert_eq!(found(ItemPageFilter { title: "crash", clustered: Some(false), ..all }).await, ["issue 11"]);
        let first = store.console().item_pages(repo.id, ItemPageFilter { title: "crash", ..all }, None, 1).await.expect("reads");
        assert_eq!((told(&first.lines), first.stopped_after), (vec!["issue 11".to_owned()], None));
        let second = store.console().item_pages(repo.id, ItemPageFilter { title: "crash", ..all }, first.next, 1).await.expect("reads");
        assert_eq!((told(&second.lines), second.next, second.stopped_after), (vec!["issue 10".to_owned()], None, None));
    }

    async fn deeds_brakes_and_announced_closes_are_paged(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo = filled(&store).await;
        let other = store.repos().ensure(&name("quill/note"), at(0)).await.expect("created");
        for (second, of, action) in [(1, repo.id, "one"), (2, other.id, "elsewhere"), (3, repo.id, "two"), (4, repo.id, "three")] {
            let new = NewConsoleAction { by: None, is_operator: true, repo: Some(of), action, subject: "s" };
            store.console().record_action(&new, at(second)).await.expect("written");
        }
        let deeds = async |before, limit| store.console().action_pages(repo.id, before, limit).await.expect("reads");
        let first = deeds(None, 2).await;
        assert_eq!(first.iter().map(|deed| deed.action.as_str()).collect::<Vec<_>>(), ["three", "two"]);
        let rest = deeds(Some(first[1].id), 9).await;
        assert_eq!(rest.iter().map(|deed| deed.action.as_str()).collect::<Vec<_>>(), ["one"]);

        for (second, why) in [(1, "first"), (3, "second"), (5, "third")] {
            store.close().set_brake(repo.id, BrakeKind::Pause, None, why, at(second)).await.expect("set");
            store.close().lift_brake(repo.id, BrakeKind::Pause, None, at(second + 1)).await.expect("lifted");
        }
        store.close().set_brake(other.id, BrakeKind::Pause, None, "elsewhere", at(1)).await.expect("set");
        let brakes = async |before, limit| store.close().brake_pages(repo.id, before, limit).await.expect("reads");
        let first = brakes(None, 2).await;
        assert_eq!(first.iter().map(|brake| brake.why.as_str()).collect::<Vec<_>>(), ["third", "second"]);
        assert_eq!(brakes(Some(first[1].id), 9).await.iter().map(|brake| brake.why.as_str()).collect::<Vec<_>>(), ["first"]);

        // Two graces end at the same time.
        for (of, due) in [(2, 90), (4, 50), (5, 50), (1, 70)] {
            let grace = NewGrace {
                item_type: ItemType::Issue,
                number: number(of),
                target: number(if of == 1 { 2 } else { 1 }),
                triage_id: None,
                comment_key: None,
                approved_by: None,
                content_version: ContentVersion::stored(1),
                began_at: at(0),
                due_at: at(due),
            };
            assert!(store.close().begin_grace(repo.id, &grace).await.expect("begun"));
        }
        let (mut seen, mut after) = (Vec::new(), None);
        while let Some(next) = store.close().next_graces(repo.id, after, 1).await.expect("reads").pop() {
            seen.push(next.number.get());
            after = Some((next.due_at, next.id));
        }
        assert_eq!(seen, [4, 5, 1, 2]);
        assert_eq!(store.close().next_graces(repo.id, None, 9).await.expect("reads").len(), 4);
        assert_eq!(store.close().next_graces(other.id, None, 9).await.expect("reads"), []);
    }

    async fn jobs_and_deliveries_are_paged_by_every_filter(database: TestDatabase) {
        let store = open_store(&database).await;
        let (tide, quill) = (name("tide/pool"), name("quill/note"));
        let body = PackedText::pack("{}");
        for (turn, (repo, event)) in (0..).zip([(&tide, "issues"), (&quill, "issues"), (&tide, "push"), (&tide, "issues"), (&tide, "issues")]) {
            let fate = if event == "push" {
                DeliveryAction::Ignored("nothing to do")
            } else {
                DeliveryAction::Job(NewJob { key: "k", repo: Some(repo), kind: JobKind::Webhook, payload: &Value::Null })
            };
            let id = format!("d{turn}");
            let delivery = NewDelivery { id: &id, event, action: None, repo: Some(repo), number: None, payload: &body, fate };
            // The last two arrive at the same time.
            store.deliveries().accept(&delivery, at(turn.min(3))).await.expect("accepted");
        }
        store.jobs().enqueue(&NewJob { key: "s", repo: Some(&tide), kind: JobKind::Sync, payload: &Value::Null }, at(0), at(0)).await.expect("queued");
        let ids = async |filter: DeliveryFilter, limit| {
            let page = store.deliveries().list(&filter, limit).await.expect("reads");
            page.into_iter().map(|delivery| delivery.id).collect::<Vec<_>>()
        };
        let all = DeliveryFilter::default();
        assert_eq!(ids(all.clone(), 9).await, ["d4", "d3", "d2", "d1", "d0"]);
        let before = Some((at(3), "d4".to_owned()));
        assert_eq!(ids(DeliveryFilter { before: before.clone(), ..all.clone() }, 2).await, ["d3", "d2"]);
        let of_tide = DeliveryFilter { repo: Some(tide.clone()), event: Some("issues".to_owned()), before, ..all.clone() };
        assert_eq!(ids(of_tide, 9).await, ["d3", "d0"]);
        assert_eq!(ids(DeliveryFilter { state: Some(DeliveryState::Ignored), ..all }, 9).await, ["d2"]);
        let kinds = async |filter: JobFilter| {
            let page = store.jobs().list(&filter, 9).await.expect("reads");
            page.into_iter().map(|job| (job.kind.to_string(), job.delivery_id.unwrap_or_default())).collect::<Vec<_>>()
        };
        let webhook = |id: &str| ("webhook".to_owned(), id.to_owned());
        let all = JobFilter { repo: Some(tide), ..JobFilter::default() };
        assert_eq!(kinds(JobFilter { kind: Some("sync".to_owned()), ..all.clone() }).await, [("sync".to_owned(), String::new())]);
        let newest = store.jobs().list(&all, 2).await.expect("reads");
        assert_eq!(kinds(JobFilter { before: Some(newest[1].id), ..all.clone() }).await, [webhook("d3"), webhook("d0")]);
        assert_eq!(kinds(JobFilter { state: Some(JobState::Dead), ..all }).await, []);
    }
}
