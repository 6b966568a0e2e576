//! Triage records, audits and model calls: written completely and read back, on both engines.

use std::collections::BTreeMap;
use std::time::Duration;

use canonry_domain::{
    AuditCandidate, AuditClass, AuditItem, ItemState, ItemType, LaneResult, LaneStatus, Probability, Verdict,
};
use canonry_store::{
    AuditedItem, NewAudit, NewLlmCall, NewTriageRecord, Repo, Representation, Store, StoreError, TriageCandidate,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::fixtures::{ISSUE, at, issues, number, open_with, score, triage_record};

async fn open(database: &TestDatabase) -> (Store, Repo) {
    open_with(database, issues(1..=4)).await
}

fn said(of: i64, verdict: Verdict, target: Option<i64>) -> NewTriageRecord {
    let candidate = |of: i64, value: f64, state, judged| TriageCandidate {
        number: number(of),
        score: score(value),
        parts: BTreeMap::from([("dense".to_owned(), value)]),
        state,
        judged,
    };
    NewTriageRecord {
        target_score: target.map(|_| score(0.93)),
        reason: "duplicate".to_owned(),
        reasoning: "The same stop.".to_owned(),
        source_fallback_reason: Some("intent_extraction_failed".to_owned()),
        embed_model: "small".to_owned(),
        candidates: vec![candidate(3, 0.93, ItemState::Open, true), candidate(2, 0.61, ItemState::Closed, false)],
        ..triage_record(of, verdict, target)
    }
}

fn lane(status: LaneStatus, target: Option<i64>) -> LaneResult {
    LaneResult {
        status,
        target: target.map(number),
        confidence: target.map(|_| Probability::ONE),
        reason: (status != LaneStatus::Accepted).then(|| "below_min_edge".to_owned()),
    }
}

fn call(purpose: &'static str, cost_usd: Option<f64>, error: Option<&str>) -> NewLlmCall {
    NewLlmCall {
        purpose,
        provider: "openai",
        model: "some-model".to_owned(),
        input_tokens: cost_usd.map(|_| 5_000_000_000),
        output_tokens: cost_usd.map(|_| 80),
        cost_usd,
        latency: Duration::from_millis(1_250),
        error: error.map(str::to_owned),
    }
}

on_both_engines! {
    async fn what_was_said_about_a_new_item_is_kept_with_all_it_had(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        assert_eq!(store.duplicates().triage_records_of(repo.id, ISSUE, number(1)).await.expect("reads"), []);
        let first = NewTriageRecord { candidates: Vec::new(), ..said(1, Verdict::NotDuplicate, None) };
        let second = said(1, Verdict::Duplicate, Some(3));
        let one = store.duplicates().write_triage_record(repo.id, &first, at(1)).await.expect("written");
        let two = store.duplicates().write_triage_record(repo.id, &second, at(2)).await.expect("written");
        store.duplicates().write_triage_record(repo.id, &said(4, Verdict::MaybeDuplicate, Some(3)), at(2)).await.expect("written");
        let stored = store.duplicates().triage_records_of(repo.id, ISSUE, number(1)).await.expect("reads");
        assert_eq!(stored.iter().map(|told| (told.id, told.created_at)).collect::<Vec<_>>(), [(two, at(2)), (one, at(1))]);
        assert_eq!((&stored[0].record, &stored[1].record), (&second, &first));
        assert_eq!(store.duplicates().triage_records_of(repo.id, ItemType::Pr, number(1)).await.expect("reads"), []);
        for unknown in [said(9, Verdict::NotDuplicate, None), said(1, Verdict::Duplicate, Some(9))] {
            let error = store.duplicates().write_triage_record(repo.id, &unknown, at(3)).await.expect_err("unknown");
            assert!(matches!(error, StoreError::UnknownItem { number: of, .. } if of == number(9)), "{error}");
        }
        assert_eq!(store.duplicates().triage_records_of(repo.id, ISSUE, number(1)).await.expect("reads").len(), 2);
    }

    async fn an_audit_is_kept_with_both_lanes(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        assert_eq!(store.judge().latest_audit(repo.id).await.expect("reads"), None);
        let audit = NewAudit {
            representation: Representation::Intent,
            seed: -7,
            sample_size: 100,
            cheap_provider: "local".to_owned(),
            cheap_model: "evidence".to_owned(),
            strong_provider: "openai".to_owned(),
            strong_model: "some-model".to_owned(),
            min_edge: Probability::new(0.85).expect("a probability"),
            run_id: "run".to_owned(),
            prompt_version: Some(1),
            proof: None,
        };
        let audited = |of: i64, cheap, strong, class| AuditedItem {
            item_type: ISSUE,
            number: number(of),
            candidate_set: None,
            item: AuditItem {
                candidates: vec![AuditCandidate { number: number(3), rank: 1, score: score(0.95), same_as: vec![number(4)] }],
                cheap,
                strong,
            },
            class,
        };
        let items = [
            audited(1, lane(LaneStatus::Accepted, Some(3)), lane(LaneStatus::Rejected, Some(3)), AuditClass::Fp),
            audited(2, lane(LaneStatus::Failed, None), lane(LaneStatus::Skipped, None), AuditClass::Incomplete),
        ];
        let first = store.judge().write_audit(repo.id, &audit, &items, at(1)).await.expect("written");
        let second = store.judge().write_audit(repo.id, &NewAudit { seed: 8, ..audit.clone() }, &[], at(2)).await.expect("written");
        let stored = store.judge().audit_run(first).await.expect("reads").expect("there");
        assert_eq!((stored.id, stored.repo, &stored.audit, stored.created_at), (first, repo.id, &audit, at(1)));
        assert_eq!(store.judge().audit_items(first).await.expect("reads"), items);
        assert_eq!(store.judge().audit_items(second).await.expect("reads"), []);
        assert_eq!(store.judge().latest_audit(repo.id).await.expect("reads").expect("there").id, second);
        assert_eq!(store.judge().audit_run(999).await.expect("reads"), None);
        let unknown = audited(9, lane(LaneStatus::Failed, None), lane(LaneStatus::Failed, None), AuditClass::Incomplete);
        let error = store.judge().write_audit(repo.id, &audit, &[unknown], at(3)).await.expect_err("unknown");
        assert!(matches!(error, StoreError::UnknownItem { .. }), "{error}");
        assert_eq!(store.judge().latest_audit(repo.id).await.expect("reads").expect("there").id, second);
    }

    async fn questions_are_noted_by_run(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        let calls = [call("judge", Some(0.25), None), call("detect", None, Some("timed\0 out"))];
        store.models().record_calls(Some(repo.id), "run-1", &calls, at(1)).await.expect("noted");
        store.models().record_calls(Some(repo.id), "run-2", &[call("audit", Some(0.5), None)], at(5)).await.expect("noted");
        store.models().record_calls(Some(other.id), "run-2", &[call("judge", Some(9.0), None)], at(5)).await.expect("noted");
        store.models().record_calls(None, "run-3", &[call("judge", Some(9.0), None)], at(5)).await.expect("noted");
        store.models().record_calls(None, "run-3", &[], at(5)).await.expect("nothing to note");

        let noted = store.models().calls_of_run("run-1").await.expect("reads");
        assert_eq!(noted.iter().map(|one| one.purpose.as_str()).collect::<Vec<_>>(), ["judge", "detect"]);
        assert_eq!((noted[0].repo, noted[0].provider.as_str(), noted[0].model.as_str()), (Some(repo.id), "openai", "some-model"));
        assert_eq!((noted[0].input_tokens, noted[0].output_tokens, noted[0].cost_usd), (Some(5_000_000_000), Some(80), Some(0.25)));
        assert_eq!((noted[0].latency, noted[0].created_at), (Duration::from_millis(1_250), at(1)));
        assert_eq!((noted[0].error.as_deref(), noted[1].error.as_deref()), (None, Some("timed\u{fffd} out")));
        assert_eq!((noted[1].input_tokens, noted[1].cost_usd), (None, None));
        assert_eq!(store.models().calls_of_run("run-3").await.expect("reads")[0].repo, None);
    }
}
