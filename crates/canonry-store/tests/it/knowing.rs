//! Lessons, adjudications and audits, as the console shows them.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    AdjudicatedAnswer, AdjudicationSummary, AuditCandidate, AuditClass, AuditItem, Component, ContentVersion,
    DecisionOrigin, DecisionStatus, EventBy, ItemState, LaneResult, LaneStatus, LessonKind, OutcomeEvent, OutcomeKind,
    Probability, StateReason, Verdict, learn_from_counts, threshold_curve,
};
use canonry_store::{
    AdjudicationFilter, AdjudicationId, AdjudicationKind, AuditFilter, AuditedItem, DecidedCandidate, LessonFilter,
    LogStep, NewAudit, NewDecision, NewTriageRecord, Repo, Representation, Store, TriageCandidate,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::{SignedDuration, Timestamp};

use crate::fixtures::{ISSUE, issues, judge_decision, login, number, open_with, score, triage_record};

fn day(day: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("in range") + SignedDuration::from_hours(24 * day)
}

/// A store with the issues 1 to `count`.
async fn open(database: &TestDatabase, count: i64) -> (Store, Repo) {
    open_with(database, issues(1..=count)).await
}

/// A verdict about an issue whose nearest neighbour is issue 1.
fn said(of: i64, verdict: Verdict, value: f64) -> NewTriageRecord {
    let (number, score) = (number(1), score(value));
    let named = verdict != Verdict::NotDuplicate;
    NewTriageRecord {
        target_score: named.then_some(score),
        run_id: format!("run-{of}"),
        candidates: vec![TriageCandidate {
            number,
            score,
            parts: BTreeMap::new(),
            state: ItemState::Open,
            judged: true,
        }],
        ..triage_record(of, verdict, named.then_some(1))
    }
}

/// A close by a person, as a duplicate of issue 1 or as completed.
fn closed(of: i64, duplicate: bool, component: Option<&str>, at: Timestamp) -> OutcomeEvent {
    OutcomeEvent {
        delivery_id: format!("closed {of}"),
        number: number(of),
        kind: OutcomeKind::Closed,
        state_reason: Some(if duplicate { StateReason::Duplicate } else { StateReason::Completed }),
        actor: Some(login("mona")),
        by: EventBy::Maintainer,
        duplicate_of: duplicate.then(|| number(1)),
        in_body: None,
        comment: None,
        labels: Some(component.map(|name| format!("area/{name}")).into_iter().collect()),
        cluster: Vec::new(),
        occurred_at: at,
    }
}

on_both_engines! {
    async fn a_log_by_stretches_of_time_says_what_the_thresholds_say(database: TestDatabase) {
        let (store, repo) = open(&database, 130).await;
        let empty = store.learning().lesson_log(repo.id, None).await.expect("reads");
        assert_eq!(empty.periods, []);
        assert_eq!(store.learning().latest_lessons(repo.id, LessonFilter::default(), None, 5).await.expect("reads"), []);
        // Ten a day: two of three right, those in `sync` wrong, every fifth not predicted.
        for of in 2..=125 {
            let verdict = if of % 5 == 0 { Verdict::NotDuplicate } else { Verdict::Duplicate };
            store.duplicates().write_triage_record(repo.id, &said(of, verdict, 0.80 + (of % 20) as f64 / 100.0), day(0)).await.expect("written");
        }
        for batch in 0..13 {
            let events: Vec<OutcomeEvent> = (2 + 10 * batch..12 + 10 * batch).filter(|of| *of <= 125)
                .map(|of| closed(of, of % 3 != 0, (of % 3 == 0).then_some("sync"), day(batch + 1))).collect();
            store.learning().record_outcome_events(repo.id, &events, day(batch + 1)).await.expect("recorded");
        }
        let settings = store.learning().threshold_settings(repo.id).await.expect("reads");
        let stored = store.learning().thresholds(repo.id).await.expect("reads");
        let sync = Component::of_labels(["area/sync"]).expect("a component");
        assert!(stored.components.contains_key(&sync), "{stored:?}");
        for component in [None, Some(&sync)] {
            let log = store.learning().lesson_log(repo.id, component).await.expect("reads");
            assert_eq!(log.step, LogStep::SixHours);
            assert!(log.periods.len() <= 60 && log.periods.iter().zip(&log.periods[1..]).all(|(one, next)| one.until == next.from));
            let lessons = || log.periods.iter().flat_map(|period| period.lessons.iter().cloned());
            assert_eq!(lessons().map(|lesson| lesson.times).sum::<u64>(), 124);
            assert_eq!(learn_from_counts(&settings, lessons()).governing(component), stored.governing(component));
            let curve = threshold_curve(&settings, &log.periods, component);
            assert_eq!(&curve.last().expect("points").state, stored.governing(component));
            assert!(log.periods.iter().all(|period| period.from <= period.until));
        }
        let latest = store.learning().latest_lessons(repo.id, LessonFilter::default(), None, 3).await.expect("reads");
        assert_eq!(latest.iter().map(|one| one.number.get()).collect::<Vec<_>>(), [125, 124, 123]);
        assert_eq!((latest[0].by.clone(), latest[0].by_whom, latest[0].at), (Some(login("mona")), Some(EventBy::Maintainer), day(13)));
        assert_eq!((latest[0].lesson.kind(), latest[1].lesson.kind(), latest[2].lesson.kind()), (LessonKind::Missed, LessonKind::Confirmed, LessonKind::FalsePositive));
        let of_sync = LessonFilter { component: Some(&sync), ..LessonFilter::default() };
        let of_sync = store.learning().latest_lessons(repo.id, of_sync, None, 2).await.expect("reads");
        assert_eq!(of_sync.iter().map(|one| one.number.get()).collect::<Vec<_>>(), [123, 120]);
        // Paging returns each outcome once, although ten have the same time, and with a kind only those of that kind.
        for (kind, expected) in [(None, 124), (Some(LessonKind::Missed), 17), (Some(LessonKind::Unknown), 0)] {
            let filter = LessonFilter { kind, ..LessonFilter::default() };
            let (mut seen, mut before) = (Vec::new(), None);
            loop {
                let page = store.learning().latest_lessons(repo.id, filter, before, 7).await.expect("reads");
                let Some(last) = page.last() else { break };
                before = Some((last.at, last.id));
                assert!(page.iter().all(|one| kind.is_none_or(|kind| one.lesson.kind() == kind)));
                seen.extend(page.iter().map(|one| one.number.get()));
            }
            let all = store.learning().latest_lessons(repo.id, filter, None, 999).await.expect("reads");
            assert_eq!(seen, all.iter().map(|one| one.number.get()).collect::<Vec<_>>());
            assert_eq!(seen.len(), expected, "{kind:?}");
        }
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), day(0)).await.expect("created");
        assert_eq!(store.learning().lesson_log(other.id, None).await.expect("reads").periods, []);
    }

    async fn people_are_asked_about_a_sample_and_each_case_once(database: TestDatabase) {
        let (store, repo) = open(&database, 60).await;
        let drawn = |seed, size| store.judge().draw_adjudications(repo.id, AdjudicationKind::Triage, seed, size, day(1));
        assert_eq!(drawn(7, 10).await.expect("drawn"), 0, "nothing was said yet");
        for of in 2..=50 {
            let verdict = match of { 2..=4 => Verdict::Duplicate, 5..=6 => Verdict::MaybeDuplicate, _ => Verdict::NotDuplicate };
            store.duplicates().write_triage_record(repo.id, &said(of, verdict, 0.92), day(0)).await.expect("written");
        }
        // The newest verdict about an issue counts; a verdict without a neighbour or from a ruling cannot be sampled.
        store.duplicates().write_triage_record(repo.id, &said(50, Verdict::MaybeDuplicate, 0.92), day(0)).await.expect("written");
        let alone = NewTriageRecord { candidates: Vec::new(), ..said(51, Verdict::NotDuplicate, 0.92) };
        store.duplicates().write_triage_record(repo.id, &alone, day(0)).await.expect("written");
        let ruled = NewTriageRecord { reason: "override".to_owned(), ..said(52, Verdict::Duplicate, 0.92) };
        store.duplicates().write_triage_record(repo.id, &ruled, day(0)).await.expect("written");

        assert_eq!(drawn(7, 9).await.expect("drawn"), 9);
        assert_eq!(drawn(7, 9).await.expect("drawn"), 0, "the same sample again");
        assert_eq!(drawn(7, 12).await.expect("drawn"), 3, "more of the same");
        assert_eq!(drawn(8, 1_000).await.expect("drawn"), 49 - 12, "the rest, and nothing twice");
        let mut seen = BTreeSet::new();
        let mut after = None;
        while let Some(case) = store.judge().next_adjudication(repo.id, after).await.expect("reads") {
            assert_eq!((case.case.target, case.kind, case.answer.clone(), case.drawn_at), (number(1), AdjudicationKind::Triage, None, day(1)));
            assert!(seen.insert(case.case.number.get()), "{case:?}");
            after = Some(case.id);
        }
        assert_eq!(seen, (2..=50).collect());
        let samples = store.judge().adjudication_samples(repo.id, None, 10).await.expect("reads");
        assert_eq!(samples.iter().map(|one| (one.seed, one.cases, one.answered)).collect::<Vec<_>>(), [(8, 37, 0), (7, 12, 0)]);
        assert_eq!(store.judge().adjudication_samples(repo.id, None, 1).await.expect("reads"), samples[..1]);
        assert_eq!(store.judge().adjudication_samples(repo.id, Some(samples[0].newest), 10).await.expect("reads"), samples[1..]);
        assert_eq!(store.judge().adjudication_samples(repo.id, Some(samples[1].newest), 10).await.expect("reads"), []);
        // One sample can be answered by itself.
        let mut of_seven = 0;
        let mut last = None;
        let filter = AdjudicationFilter { seed: Some(7), kind: Some(AdjudicationKind::Triage) };
        while let Some(case) = store.judge().next_adjudication_of(repo.id, filter, last).await.expect("reads") {
            assert_eq!(case.seed, 7);
            (of_seven, last) = (of_seven + 1, Some(case.id));
        }
        assert_eq!((of_seven, last), (12, Some(samples[1].newest)));
        let edges = AdjudicationFilter { kind: Some(AdjudicationKind::Edge), ..AdjudicationFilter::default() };
        assert_eq!(store.judge().next_adjudication_of(repo.id, edges, None).await.expect("reads"), None);
        let first_sample: Vec<i64> = {
            let mut numbers = Vec::new();
            let mut after = None;
            while let Some(case) = store.judge().next_adjudication(repo.id, after).await.expect("reads").filter(|case| case.seed == 7) {
                numbers.push(case.case.number.get());
                after = Some(case.id);
            }
            numbers
        };
        assert!((2..=6).all(|of| first_sample.contains(&of)), "what is rare is asked about first: {first_sample:?}");
    }

    async fn an_answer_is_its_authors(database: TestDatabase) {
        let (store, repo) = open(&database, 10).await;
        for of in 2..=4 {
            let verdict = if of == 4 { Verdict::NotDuplicate } else { Verdict::Duplicate };
            store.duplicates().write_triage_record(repo.id, &said(of, verdict, 0.93), day(0)).await.expect("written");
        }
        store.judge().draw_adjudications(repo.id, AdjudicationKind::Triage, 1, 10, day(1)).await.expect("drawn");
        let mut ids = BTreeMap::new();
        let mut after = None;
        while let Some(case) = store.judge().next_adjudication(repo.id, after).await.expect("reads") {
            after = Some(case.id);
            ids.insert(case.case.number.get(), case.id);
        }
        let mona = login("mona");
        let hubot = login("hubot");
        let answer = |of: i64, word, by, at| store.judge().adjudicate(repo.id, ids[&of], word, by, day(at));
        assert!(answer(2, AdjudicatedAnswer::Same, Some(&mona), 2).await.expect("kept"));
        assert!(!answer(2, AdjudicatedAnswer::Different, Some(&hubot), 3).await.expect("refused"), "it is hers");
        assert!(!answer(2, AdjudicatedAnswer::Different, None, 3).await.expect("refused"));
        assert!(answer(2, AdjudicatedAnswer::Different, Some(&mona), 4).await.expect("kept"), "she may think again");
        assert!(answer(3, AdjudicatedAnswer::Same, None, 2).await.expect("kept"), "the operator has no login");
        assert!(!answer(3, AdjudicatedAnswer::Same, Some(&mona), 2).await.expect("refused"));
        let kept = store.judge().adjudication(repo.id, ids[&2]).await.expect("reads").expect("there").answer.expect("answered");
        assert_eq!((kept.word, kept.by, kept.at), (AdjudicatedAnswer::Different, Some(mona.clone()), day(4)));
        let next = store.judge().next_adjudication(repo.id, None).await.expect("reads").expect("one is left");
        assert_eq!(next.case.number, number(4));
        assert!(answer(4, AdjudicatedAnswer::Different, Some(&mona), 5).await.expect("kept"));
        assert_eq!(store.judge().next_adjudication(repo.id, None).await.expect("reads"), None);

        let people = AdjudicationSummary::of(&store.judge().adjudication_totals(repo.id).await.expect("reads"));
        assert_eq!((people.answered, people.waiting), (3, 0));
        assert_eq!((people.precision().right, people.precision().wrong), (1, 1));
        // Another repository does not see the case, and cannot answer it.
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), day(0)).await.expect("created");
        assert_eq!(store.judge().adjudication_totals(other.id).await.expect("reads"), []);
        assert_eq!(store.judge().adjudication(other.id, ids[&2]).await.expect("reads"), None);
        assert!(!store.judge().adjudicate(other.id, ids[&2], AdjudicatedAnswer::Same, Some(&mona), day(6)).await.expect("refused"));
        assert!(!store.judge().adjudicate(repo.id, AdjudicationId::new(4_711), AdjudicatedAnswer::Same, None, day(6)).await.expect("refused"));
    }

    async fn edges_can_be_asked_about_too(database: TestDatabase) {
        let (store, repo) = open(&database, 10).await;
        let decision = |of: i64, origin| NewDecision {
            origin,
            input_hash: format!("h{of}"),
            candidates: vec![DecidedCandidate { number: number(1), score: score(0.97), content_version: ContentVersion::FIRST }],
            ..judge_decision(of, DecisionStatus::Accepted, Some(1))
        };
        for (of, origin) in [(2, DecisionOrigin::Batch), (3, DecisionOrigin::Batch), (4, DecisionOrigin::Override)] {
            store.judge().write_decisions(repo.id, &[decision(of, origin)], day(0)).await.expect("written");
        }
        assert_eq!(store.judge().draw_adjudications(repo.id, AdjudicationKind::Edge, 1, 10, day(1)).await.expect("drawn"), 2, "a person's ruling is no verdict");
        let edges = AdjudicationFilter { kind: Some(AdjudicationKind::Edge), ..AdjudicationFilter::default() };
        let case = store.judge().next_adjudication_of(repo.id, edges, None).await.expect("reads").expect("drawn");
        assert_eq!((case.kind, case.case.verdict, case.case.score), (AdjudicationKind::Edge, Verdict::Duplicate, Some(score(0.97))));
    }

    async fn audits_are_listed_newest_first(database: TestDatabase) {
        let (store, repo) = open(&database, 10).await;
        let all = AuditFilter::default();
        assert_eq!(store.judge().audits(repo.id, all, None, 10).await.expect("reads"), []);
        let audit = |seed| NewAudit {
            representation: if seed == 2 { Representation::Intent } else { Representation::Raw },
            seed,
            sample_size: 2,
            cheap_provider: "local".to_owned(),
            cheap_model: "evidence".to_owned(),
            strong_provider: if seed == 3 { "openai" } else { "command" }.to_owned(),
            strong_model: "strong".to_owned(),
            min_edge: Probability::ONE,
            run_id: "run".to_owned(),
            prompt_version: Some(1),
            proof: None,
        };
        let lane = |target: Option<i64>| LaneResult {
            status: if target.is_some() { LaneStatus::Accepted } else { LaneStatus::Rejected },
            target: target.map(number),
            confidence: None,
            reason: None,
        };
        let item = |of, strong, class| AuditedItem {
            item_type: ISSUE,
            number: number(of),
            candidate_set: None,
            item: AuditItem {
                candidates: vec![AuditCandidate { number: number(1), rank: 1, score: score(0.95), same_as: Vec::new() }],
                cheap: lane(Some(1)),
                strong: lane(strong),
            },
            class,
        };
        let items = [item(2, Some(1), AuditClass::Tp), item(3, None, AuditClass::Fp), item(4, Some(1), AuditClass::Tp)];
        let mut ids = Vec::new();
        for seed in 1..=3 {
            let items = if seed == 2 { &items[..0] } else { &items[..] };
            ids.push(store.judge().write_audit(repo.id, &audit(seed), items, day(seed)).await.expect("written"));
        }
        let found = store.judge().audits(repo.id, all, None, 2).await.expect("reads");
        assert_eq!(found.iter().map(|(run, tally)| (run.id, run.audit.seed, tally.tp, tally.fp)).collect::<Vec<_>>(), [(ids[2], 3, 2, 1), (ids[1], 2, 0, 0)]);
        assert_eq!(found[0].1.precision, Some(0.6667));
        let listed = async |filter: AuditFilter<'_>, before: Option<i64>| -> Vec<i64> {
            let found = store.judge().audits(repo.id, filter, before, 2).await.expect("reads");
            found.into_iter().map(|(run, _)| run.audit.seed).collect()
        };
        assert_eq!(listed(all, Some(ids[1])).await, [1]);
        assert_eq!(listed(AuditFilter { judge: Some("command"), ..all }, None).await, [2, 1]);
        assert_eq!(listed(AuditFilter { judge: Some("command"), ..all }, Some(ids[1])).await, [1]);
        assert_eq!(listed(AuditFilter { judge: Some("local"), ..all }, None).await, [3, 2]);
        assert_eq!(listed(AuditFilter { representation: Some(Representation::Intent), ..all }, None).await, [2]);
        assert_eq!(listed(AuditFilter { judge: Some("openai"), representation: Some(Representation::Intent) }, None).await, [0; 0]);
    }
}
