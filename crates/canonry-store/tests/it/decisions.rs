//! Candidate sets, decisions, overrides and canonicals: the input and output of judging, on both engines.

use std::collections::BTreeMap;

use canonry_domain::{
    Certainty, ContentVersion, DecisionOrigin, DecisionStatus, GoneReason, ItemNumber, ItemRecord, ItemState, ItemType,
    OverrideKind, Relation, Similarity, Structure, parse_moment,
};
use canonry_store::{
    ANSWER_LIMIT, CandidateMember, DecidedCandidate, NewCandidateSet, NewDecision, NewOverride, Repo, Representation,
    SetFilter, Store, StoreError,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::Timestamp;

use crate::fixtures::{ISSUE, RAW, issues, judge_decision, number, open_with, probability};

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("a valid time")
}

fn later() -> Timestamp {
    parse_moment("2026-02-02").expect("a valid time")
}

/// A store with issues 1 to `count` and the pull request 2.
async fn open(database: &TestDatabase, count: i64) -> (Store, Repo) {
    open_with(database, issues(1..=count).chain([ItemRecord::new(ItemType::Pr, number(2), "A fix")])).await
}

async fn edit(store: &Store, repo: &Repo, of: i64, title: &str) {
    store.corpus().upsert_items(repo, vec![ItemRecord::new(ISSUE, number(of), title)], now()).await.expect("taken in");
}

fn decision(source: i64, status: DecisionStatus, target: Option<i64>) -> NewDecision {
    NewDecision { reasoning: Some("The same stop.".to_owned()), ..judge_decision(source, status, target) }
}

fn accepted(source: i64, target: i64) -> NewDecision {
    decision(source, DecisionStatus::Accepted, Some(target))
}

fn rejected(source: i64) -> NewDecision {
    decision(source, DecisionStatus::Rejected, None)
}

fn skipped(source: i64, reason: &str) -> NewDecision {
    NewDecision { reason: Some(reason.to_owned()), ..decision(source, DecisionStatus::Skipped, None) }
}

fn of_text(version: i64, decision: NewDecision) -> NewDecision {
    NewDecision { source_version: ContentVersion::stored(version), ..decision }
}

async fn write(store: &Store, repo: &Repo, decisions: &[NewDecision]) {
    let ids = store.judge().write_decisions(repo.id, decisions, later()).await.expect("written");
    assert_eq!(ids.len(), decisions.len());
}

async fn edges(store: &Store, repo: &Repo) -> Vec<(i64, i64)> {
    let edges = store.judge().accepted_edges(repo.id, ISSUE, RAW).await.expect("reads");
    edges.iter().map(|edge| (edge.source.get(), edge.target.get())).collect()
}

fn set(item_type: ItemType, of: i64, members: &[(i64, f64)]) -> NewCandidateSet {
    NewCandidateSet {
        item_type,
        number: number(of),
        representation: RAW,
        content_version: ContentVersion::FIRST,
        model: "local".to_owned(),
        members: members
            .iter()
            .map(|(of, score)| CandidateMember { number: number(*of), score: *score, parts: BTreeMap::new() })
            .collect(),
        pairs: Vec::new(),
    }
}

on_both_engines! {
    async fn the_newest_sets_come_in_pages(database: TestDatabase) {
        let (store, repo) = open(&database, 6).await;
        let write = async |set: NewCandidateSet| {
            assert!(store.duplicates().write_candidate_set(repo.id, &set, now()).await.expect("written"));
        };
        for of in [5, 3, 4, 1] {
            write(set(ISSUE, of, &[(2, 0.9), (6, 0.8)])).await;
        }
        write(NewCandidateSet { pairs: vec![(number(2), number(3), 0.75)], ..set(ISSUE, 1, &[(3, 0.91), (2, 0.9)]) }).await;
        write(NewCandidateSet { representation: Representation::Intent, ..set(ISSUE, 1, &[]) }).await;
        write(set(ISSUE, 2, &[])).await;
        write(set(ItemType::Pr, 2, &[])).await;
        edit(&store, &repo, 3, "Another text").await;
        let closed = ItemRecord { state: Some(ItemState::Closed), ..ItemRecord::new(ISSUE, number(4), "Issue 4") };
        store.corpus().upsert_items(&repo, vec![closed], now()).await.expect("taken in");
        store.corpus().mark_gone(repo.id, number(5), GoneReason::Deleted, now()).await.expect("marked");

        let all = SetFilter { item_type: None, representation: RAW, source_state: None, allow_stale: false };
        let page = async |filter: SetFilter, after: Option<(ItemNumber, ItemType)>, limit: u32| {
            let sets = store.duplicates().latest_candidate_sets(repo.id, filter, after, limit).await.expect("reads");
            sets.iter().map(|set| (set.number.get(), set.item_type, set.members.len())).collect::<Vec<_>>()
        };
        let pr = ItemType::Pr;
        assert_eq!(page(all, None, 99).await, [(1, ISSUE, 2), (2, ISSUE, 0), (2, pr, 0), (4, ISSUE, 2)]);
        assert_eq!(page(all, None, 2).await, [(1, ISSUE, 2), (2, ISSUE, 0)]);
        assert_eq!(page(all, Some((number(2), ISSUE)), 1).await, [(2, pr, 0)]);
        assert_eq!(page(all, Some((number(2), pr)), 9).await, [(4, ISSUE, 2)]);
        assert_eq!(page(all, Some((number(4), ISSUE)), 9).await, []);
        let open_issues = SetFilter { item_type: Some(ISSUE), source_state: Some(ItemState::Open), ..all };
        assert_eq!(page(open_issues, None, 9).await, [(1, ISSUE, 2), (2, ISSUE, 0)]);
        let stale = SetFilter { allow_stale: true, ..open_issues };
        assert_eq!(page(stale, None, 9).await, [(1, ISSUE, 2), (2, ISSUE, 0), (3, ISSUE, 2)]);

        // The newest set with all its members, the same as in the item's own list.
        let newest = store.duplicates().latest_candidate_sets(repo.id, all, None, 1).await.expect("reads").remove(0);
        let order: Vec<i64> = newest.members.iter().map(|member| member.number.get()).collect();
        assert_eq!((order.as_slice(), newest.pairs.as_slice()), (&[3, 2][..], &[(number(2), number(3), 0.75)][..]));
        let listed = store.duplicates().candidate_sets(repo.id, ISSUE, number(1)).await.expect("reads");
        assert_eq!((listed.len(), &listed[1]), (3, &newest));
    }

    async fn items_are_found_by_number(database: TestDatabase) {
        let (store, repo) = open(&database, 700).await;
        let asked: Vec<_> = (1..=700).rev().chain([3, 9_000]).map(number).collect();
        let items = store.corpus().items_by_number(repo.id, ISSUE, &asked).await.expect("reads");
        assert_eq!(items.iter().map(|item| item.number.get()).collect::<Vec<_>>(), (1..=700).collect::<Vec<_>>());
        let pulls = store.corpus().items_by_number(repo.id, ItemType::Pr, &asked).await.expect("reads");
        assert_eq!((pulls.len(), pulls[0].title.as_str()), (1, "A fix"));
        assert!(store.corpus().items_by_number(repo.id, ISSUE, &[]).await.expect("reads").is_empty());
    }

    async fn a_decision_is_kept_whole(database: TestDatabase) {
        let (store, repo) = open(&database, 3).await;
        assert!(store.duplicates().write_candidate_set(repo.id, &set(ISSUE, 1, &[(3, 0.95)]), now()).await.expect("written"));
        let sets = store.duplicates().candidate_sets(repo.id, ISSUE, number(1)).await.expect("reads");
        let structure =
            Structure { relation: Some(Relation::SameInstance), certainty: Some(Certainty::Sure), ..Structure::default() };
        let candidate = DecidedCandidate {
            number: number(3),
            score: Similarity::new(0.95).expect("a score"),
            content_version: ContentVersion::FIRST,
        };
        let new = NewDecision {
            candidate_set: Some(sets[0].id),
            structure: Some(structure),
            answer: Some(format!("a\0b{}", "é".repeat(ANSWER_LIMIT))),
            candidates: vec![candidate],
            ..accepted(1, 3)
        };
        let bare = NewDecision {
            model_is_duplicate: None, confidence: None, reasoning: None, ..skipped(2, "no_candidates")
        };
        let intent = NewDecision { representation: Representation::Intent, ..accepted(1, 2) };
        let ids = store.judge().write_decisions(repo.id, &[new, bare, intent], later()).await.expect("written");
        assert!(ids.is_sorted() && ids.len() == 3);

        let stored = store.judge().decisions_of(repo.id, ISSUE, number(1)).await.expect("reads");
        assert_eq!(stored.iter().map(|one| one.id).collect::<Vec<_>>(), [ids[2], ids[0]]);
        let whole = &stored[1];
        assert_eq!((whole.number, whole.target, whole.candidate_set), (number(1), Some(number(3)), Some(sets[0].id)));
        assert_eq!((whole.origin, whole.status, whole.superseded_at), (DecisionOrigin::Batch, DecisionStatus::Accepted, None));
        assert_eq!((whole.model_is_duplicate, whole.confidence), (Some(true), Some(probability(0.93))));
        assert_eq!((whole.structure, whole.candidates.as_slice()), (Some(structure), &[candidate][..]));
        assert_eq!((whole.reason.as_deref(), whole.reasoning.as_deref()), (None, Some("The same stop.")));
        let answer = whole.answer.as_deref().expect("kept");
        assert!(answer.starts_with("a\u{fffd}bé") && answer.chars().count() == ANSWER_LIMIT);
        assert_eq!((whole.provider.as_str(), whole.model.as_str(), whole.prompt_version), ("local", "evidence", 1));
        assert_eq!((whole.config_hash.as_str(), whole.input_hash.as_str(), whole.run_id.as_str()), ("c", "i", "run"));
        assert_eq!((whole.source_version.get(), whole.target_version), (1, Some(ContentVersion::FIRST)));
        assert_eq!(whole.created_at, later());

        let bare = store.judge().latest_decisions(repo.id, ISSUE, RAW, &[number(2)]).await.expect("reads").remove(&number(2)).expect("there");
        assert_eq!((bare.status, bare.reason.as_deref()), (DecisionStatus::Skipped, Some("no_candidates")));
        assert_eq!((bare.confidence, bare.structure, bare.answer, bare.target), (None, None, None, None));
        assert!(store.judge().latest_decisions(repo.id, ItemType::Pr, RAW, &[number(2)]).await.expect("reads").is_empty());
    }

    async fn an_accepted_edge_gives_way_by_rule(database: TestDatabase) {
        let (store, repo) = open(&database, 5).await;
        write(&store, &repo, &[accepted(1, 2), accepted(3, 2)]).await;
        assert_eq!(edges(&store, &repo).await, [(1, 2), (3, 2)]);

        // A decision that accepts nothing does not end a fresh edge, unless it replaces it.
        write(&store, &repo, &[rejected(1), skipped(1, "invalid_response:empty"), skipped(1, "existing_edge")]).await;
        assert_eq!(edges(&store, &repo).await, [(1, 2), (3, 2)]);
        write(&store, &repo, &[NewDecision { replaces: true, ..rejected(3) }]).await;
        assert_eq!(edges(&store, &repo).await, [(1, 2)]);
        let ended = store.judge().decisions_of(repo.id, ISSUE, number(3)).await.expect("reads");
        assert_eq!((ended[0].superseded_at, ended[1].superseded_at), (None, Some(later())));

        // Another accepted decision replaces it, also within one batch; the other representation has its own edge.
        let intent = NewDecision { representation: Representation::Intent, ..accepted(1, 5) };
        write(&store, &repo, &[accepted(1, 3), intent, accepted(1, 4)]).await;
        assert_eq!(edges(&store, &repo).await, [(1, 4)]);
        assert_eq!(store.judge().accepted_edges(repo.id, ISSUE, Representation::Intent).await.expect("reads").len(), 1);
        let history = store.judge().decisions_of(repo.id, ISSUE, number(1)).await.expect("reads");
        let in_force = history.iter().filter(|one| one.status == DecisionStatus::Accepted && one.superseded_at.is_none());
        assert_eq!((history.len(), in_force.count()), (7, 2));

        // The source's text changes: a skip because of an existing edge ends nothing, another decision does.
        edit(&store, &repo, 1, "Another text").await;
        write(&store, &repo, &[of_text(2, skipped(1, "existing_edge"))]).await;
        assert_eq!(edges(&store, &repo).await, [(1, 4)]);
        write(&store, &repo, &[of_text(2, skipped(1, "source_too_vague"))]).await;
        assert_eq!(edges(&store, &repo).await, []);

        // A change of the target's text also ends the edge.
        write(&store, &repo, &[accepted(3, 2)]).await;
        edit(&store, &repo, 2, "Another text").await;
        write(&store, &repo, &[rejected(3)]).await;
        assert_eq!(edges(&store, &repo).await, []);

        // A decision about an older text comes late.
        write(&store, &repo, &[of_text(2, accepted(1, 4))]).await;
        write(&store, &repo, &[accepted(1, 5), NewDecision { replaces: true, ..rejected(1) }]).await;
        assert_eq!(edges(&store, &repo).await, [(1, 4)]);
        let late = store.judge().decisions_of(repo.id, ISSUE, number(1)).await.expect("reads");
        assert_eq!((late[1].status, late[1].superseded_at), (DecisionStatus::Accepted, Some(later())));
    }

    async fn two_writers_leave_one_accepted_edge(database: TestDatabase) {
        let (store, repo) = open(&database, 20).await;
        let writers: Vec<_> = (0..6).map(|writer| {
            let (store, repo) = (store.clone(), repo.clone());
            tokio::spawn(async move {
                let decisions: Vec<_> = (1..=10).map(|source| accepted(source, 11 + writer)).collect();
                store.judge().write_decisions(repo.id, &decisions, later()).await.expect("written").len()
            })
        }).collect();
        for writer in writers {
            assert_eq!(writer.await.expect("runs"), 10);
        }
        let edges = edges(&store, &repo).await;
        assert_eq!(edges.iter().map(|edge| edge.0).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
        assert!(edges.iter().all(|edge| edge.1 == edges[0].1), "batches were mixed: {edges:?}");
        assert_eq!(store.judge().decisions_of(repo.id, ISSUE, number(1)).await.expect("reads").len(), 6);
    }

    async fn a_decision_about_an_unknown_item_writes_nothing(database: TestDatabase) {
        let (store, repo) = open(&database, 3).await;
        for bad in [accepted(9, 1), accepted(1, 9), NewDecision { item_type: ItemType::Pr, ..accepted(2, 1) }] {
            let error = store.judge().write_decisions(repo.id, &[accepted(1, 2), bad], later()).await.expect_err("unknown");
            assert!(matches!(error, StoreError::UnknownItem { .. }), "{error}");
        }
        let unknown = store.judge().write_decisions(repo.id, &[accepted(1, 9)], later()).await.expect_err("unknown").to_string();
        assert!(unknown.starts_with("there is no issue #9 in the database"), "{unknown}");
        assert_eq!(edges(&store, &repo).await, []);
        assert_eq!(store.judge().write_decisions(repo.id, &[], later()).await.expect("nothing to do"), []);
    }

    async fn the_newest_of_many_are_told_at_once(database: TestDatabase) {
        let (store, repo) = open(&database, 200).await;
        let answered = |source: i64, text: &str| NewDecision {
            answer: Some(text.to_owned()), input_hash: format!("question about {source}"), ..rejected(source)
        };
        let first: Vec<_> = (1..=100).map(|source| answered(source, "first")).collect();
        write(&store, &repo, &first).await;
        write(&store, &repo, &[answered(1, ""), skipped(1, "existing_edge"), skipped(2, "existing_edge")]).await;
        write(&store, &repo, &[NewDecision { representation: Representation::Intent, ..answered(3, "intent") }]).await;
        let asked: Vec<_> = (1..=150).map(number).collect();
        let latest = store.judge().latest_decisions(repo.id, ISSUE, RAW, &asked).await.expect("reads");
        assert_eq!(latest.len(), 100);
        let reason = |of: i64| latest[&number(of)].reason.as_deref();
        assert_eq!((reason(1), reason(2), reason(3)), (Some("existing_edge"), Some("existing_edge"), None));
        let answer = async |of: i64, question: &str| {
            let told = store.judge().answered_decision(repo.id, ISSUE, number(of), RAW, question).await.expect("reads");
            told.and_then(|told| told.answer)
        };
        assert_eq!(answer(1, "question about 1").await.as_deref(), Some(""));
        assert_eq!(answer(2, "question about 2").await.as_deref(), Some("first"));
        assert_eq!(answer(3, "question about 3").await.as_deref(), Some("first"));
        assert_eq!(answer(2, "question about 3").await, None);
    }

    async fn a_ruling_holds_until_it_is_taken_back(database: TestDatabase) {
        let (store, repo) = open(&database, 4).await;
        let ruling = |kind, item: i64, other: Option<i64>| NewOverride {
            item_type: ISSUE, kind, item: number(item), other: other.map(number), note: Some("seen\0 it"),
            by: None,
        };
        let duplicate = store.duplicates().add_override(repo.id, ruling(OverrideKind::Duplicate, 1, Some(2)), now()).await.expect("added");
        assert_eq!((duplicate.kind, duplicate.item, duplicate.other), (OverrideKind::Duplicate, number(1), Some(number(2))));
        assert_eq!((duplicate.note.as_deref(), duplicate.created_at), (Some("seen\u{fffd} it"), now()));
        let apart = store.duplicates().add_override(repo.id, ruling(OverrideKind::NotDuplicate, 3, Some(2)), now()).await.expect("added");
        let canonical = store.duplicates().add_override(repo.id, ruling(OverrideKind::Canonical, 2, None), now()).await.expect("added");
        let pull = NewOverride { item_type: ItemType::Pr, ..ruling(OverrideKind::Canonical, 2, None) };
        let pull = store.duplicates().add_override(repo.id, pull, now()).await.expect("added");
        let in_force = async |item_type| store.duplicates().overrides(repo.id, item_type).await.expect("reads");
        assert_eq!(in_force(Some(ISSUE)).await, [duplicate.clone(), apart.clone(), canonical.clone()]);
        assert_eq!(in_force(None).await.len(), 4);

        // A repeated ruling is one ruling with a new date.
        let again = store.duplicates().add_override(repo.id, ruling(OverrideKind::Canonical, 2, None), later()).await.expect("added");
        assert_eq!(in_force(Some(ISSUE)).await, [duplicate.clone(), apart, again]);
        assert!(!store.duplicates().remove_override(repo.id, canonical.id, later()).await.expect("asked"));

        // Removing a ruling removes its edge; a judge's edge stays.
        let human = NewDecision { origin: DecisionOrigin::Override, ..accepted(1, 2) };
        write(&store, &repo, &[human, accepted(3, 4)]).await;
        let stored = store.judge().accepted_edges(repo.id, ISSUE, RAW).await.expect("reads");
        assert_eq!((stored.len(), stored[0].human, stored[1].human), (2, true, false));
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), now()).await.expect("created");
        assert!(!store.duplicates().remove_override(other.id, duplicate.id, later()).await.expect("asked"), "another repository's");
        assert!(store.duplicates().remove_override(repo.id, duplicate.id, later()).await.expect("removed"));
        assert!(!store.duplicates().remove_override(repo.id, duplicate.id, later()).await.expect("asked"));
        assert_eq!(edges(&store, &repo).await, [(3, 4)]);
        assert_eq!(in_force(Some(ItemType::Pr)).await, [pull]);

        for unknown in [ruling(OverrideKind::Duplicate, 1, Some(9)), ruling(OverrideKind::Canonical, 9, None)] {
            let error = store.duplicates().add_override(repo.id, unknown, now()).await.expect_err("unknown");
            assert!(matches!(error, StoreError::UnknownItem { number: of, .. } if of == number(9)), "{error}");
        }
        for nonsense in [ruling(OverrideKind::Duplicate, 1, Some(1)), ruling(OverrideKind::Duplicate, 1, None)] {
            let error = store.duplicates().add_override(repo.id, nonsense, now()).await.expect_err("nonsense");
            assert!(matches!(error, StoreError::Database(_)), "{error}");
        }
    }

    async fn canonicals_are_replaced_as_a_whole(database: TestDatabase) {
        let (store, repo) = open(&database, 6).await;
        let mapping = |pairs: &[(i64, i64)]| -> BTreeMap<_, _> {
            pairs.iter().map(|(item, canonical)| (number(*item), number(*canonical))).collect()
        };
        let first = mapping(&[(1, 1), (2, 1), (3, 3), (4, 3)]);
        let second = mapping(&[(1, 2), (2, 2), (3, 3), (6, 3)]);
        assert!(store.duplicates().canonicals(repo.id, ISSUE, RAW).await.expect("reads").is_empty());
        store.duplicates().set_canonicals(repo.id, ISSUE, RAW, &first, now()).await.expect("written");
        store.duplicates().set_canonicals(repo.id, ISSUE, Representation::Intent, &second, now()).await.expect("written");
        store.duplicates().set_canonicals(repo.id, ItemType::Pr, RAW, &mapping(&[(2, 2)]), now()).await.expect("written");
        assert_eq!(store.duplicates().canonicals(repo.id, ISSUE, RAW).await.expect("reads"), first);
        store.duplicates().set_canonicals(repo.id, ISSUE, RAW, &second, later()).await.expect("written");
        assert_eq!(store.duplicates().canonicals(repo.id, ISSUE, RAW).await.expect("reads"), second);
        store.duplicates().set_canonicals(repo.id, ISSUE, Representation::Intent, &BTreeMap::new(), later()).await.expect("written");
        assert!(store.duplicates().canonicals(repo.id, ISSUE, Representation::Intent).await.expect("reads").is_empty());
        assert_eq!(store.duplicates().canonicals(repo.id, ItemType::Pr, RAW).await.expect("reads").len(), 1);
    }
}
