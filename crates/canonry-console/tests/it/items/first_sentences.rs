//! The first sentence of an item's page beside the item's state: people may have settled an earlier finding or
//! announcement since.

use canonry_domain::{
    DecisionStatus, EventBy, FixKind, FixMatch, GoneReason, GraceEnd, ItemRecord, ItemState, OutcomeEvent, OutcomeKind,
    Similarity, StateReason, Verdict,
};
use canonry_store::{CloseOutcome, CloseResult, GraceState, NewDecision, NewTriageRecord};
use jiff::SignedDuration;

use crate::reading::words;
use crate::world::items::{decision, grace, record};
use crate::world::plans::{plan_header, plan_row};
use crate::world::{ConsoleWorld, ISSUE, Who, number};

impl ConsoleWorld {
    /// GitHub reports that people closed or reopened an issue.
    async fn github_tells(&self, of: i64, state: ItemState, reason: Option<StateReason>) {
        let item = self.store.corpus().item(self.repo.id, ISSUE, number(of)).await.expect("reads").expect("stored");
        let told = ItemRecord {
            state: Some(state),
            state_reason: Some(reason),
            updated_at: Some(self.now + SignedDuration::from_hours(1)),
            ..ItemRecord::new(ISSUE, number(of), item.title)
        };
        self.store.corpus().upsert_items(&self.repo, vec![told], self.now).await.expect("taken in");
    }

    async fn happened(&self, of: i64, kind: OutcomeKind, reason: Option<StateReason>) {
        let at = self.now + SignedDuration::from_hours(1);
        let event = OutcomeEvent {
            delivery_id: format!("{kind} {of}"),
            number: number(of),
            kind,
            state_reason: reason,
            actor: Some("ann".parse().expect("a login")),
            by: EventBy::Person,
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: None,
            cluster: Vec::new(),
            occurred_at: at,
        };
        self.store.learning().record_outcome_events(self.repo.id, &[event], at).await.expect("recorded");
    }

    /// An announced close as a duplicate of issue 1 that ended without a close.
    async fn called_off(&self, of: i64, end: GraceEnd) {
        let grace = grace(of, 1, self.now, 5);
        assert!(self.store.close().begin_grace(self.repo.id, &grace).await.expect("begun"));
        let grace = self.store.close().graces_of_item(self.repo.id, ISSUE, number(of)).await.expect("reads").remove(0);
        let ended = self.store.close().end_grace(grace.id, GraceState::Cancelled, Some(end.as_str()), self.now).await;
        assert!(ended.expect("ended"));
    }

    /// Canonry closes an issue as a duplicate of issue 1.
    async fn closed_by_canonry(&self, of: i64) {
        let plan = self
            .store
            .plans()
            .create(self.repo.id, &plan_header("p"), &[plan_row(of, 1)], self.now)
            .await
            .expect("planned");
        let apply = self.store.plans().begin_apply(plan, "a", self.now).await.expect("begun").expect("a plan");
        let outcome = CloseOutcome::Applied { objected: false };
        let applied = CloseResult { outcome, reason: None, outbox_key: None };
        self.store.plans().record_close_result(apply.id, ISSUE, number(of), applied, self.now).await.expect("recorded");
    }

    /// The text of the banner, without its part about the other item.
    async fn first_sentence(&self, of: i64) -> String {
        let page = self.page(Who::Rita, &format!("/issues/{of}")).await;
        let banner = page.split("<section class=\"actionbar verdict").nth(1).expect("a verdict");
        let sentence = banner.split("<strong>").nth(1).and_then(|rest| rest.split("</strong>").next()).expect("one");
        words(sentence).replace(" ,", ",").replace(" ;", ";").replace(" :", ":")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_that_people_came_before_is_not_said_to_keep_the_item_open() {
    let world = ConsoleWorld::filled().await;
    world.called_off(2, GraceEnd::Closed).await;
    world.github_tells(2, ItemState::Closed, Some(StateReason::Duplicate)).await;
    let going = "Announced close as a duplicate of #1 cancelled";
    let expected = format!("{going}: somebody else closed it first. It is closed as a duplicate now.");
    assert_eq!(world.first_sentence(2).await, expected);

    world.called_off(3, GraceEnd::HumanCommented).await;
    assert_eq!(world.first_sentence(3).await, format!("{going}: it stays open because somebody commented."));
    world.github_tells(3, ItemState::Closed, Some(StateReason::Completed)).await;
    let expected = format!("{going} because somebody commented. It is closed as completed now.");
    assert_eq!(world.first_sentence(3).await, expected);

    // An item that was closed first may be open by now.
    world.called_off(4, GraceEnd::Closed).await;
    let expected = format!("{going} because it was closed by somebody else. It is open now.");
    assert_eq!(world.first_sentence(4).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canonical_that_is_closed_is_not_said_to_stay_open() {
    let world = ConsoleWorld::filled().await;
    world.map(&[(1, 1), (2, 1), (3, 1)]).await;
    assert_eq!(world.first_sentence(1).await, "Canonical of its cluster: it stays open and has 2 duplicates.");
    assert!(world.told("/issues/1").await.contains("a cluster of 3 : it stays open."));
    world.github_tells(1, ItemState::Closed, Some(StateReason::Completed)).await;
    assert_eq!(
        world.first_sentence(1).await,
        "Canonical of its cluster with 2 duplicates. It is closed as completed now."
    );
    assert!(world.told("/issues/1").await.contains("a cluster of 3 , but closed as completed now."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_closed_after_a_reopening_is_not_canonrys_close() {
    let world = ConsoleWorld::filled().await;
    world.closed_by_canonry(2).await;
    assert_eq!(world.first_sentence(2).await, "Closed by Canonry as a duplicate of #1 now.");
    world.happened(2, OutcomeKind::Reopened, None).await;
    world.github_tells(2, ItemState::Open, Some(StateReason::Reopened)).await;
    let again = "Closed by Canonry as a duplicate of #1; people reopened it";
    assert_eq!(world.first_sentence(2).await, format!("{again}."));
    world.github_tells(2, ItemState::Closed, Some(StateReason::Completed)).await;
    assert_eq!(world.first_sentence(2).await, format!("{again}. It is closed as completed now."));

    // No reopening is known, and the item is not closed the way Canonry closes.
    world.closed_by_canonry(3).await;
    world.github_tells(3, ItemState::Closed, Some(StateReason::NotPlanned)).await;
    assert_eq!(
        world.first_sentence(3).await,
        "Closed by Canonry as a duplicate of #1 now. Somebody changed that since: it is closed as not planned now."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_counts_for_the_texts_that_were_judged() {
    let world = ConsoleWorld::filled().await;
    world.decide(decision(2, Some(1), DecisionStatus::Accepted, None, 0.95)).await;
    world.decide(decision(3, Some(1), DecisionStatus::Accepted, None, 0.95)).await;
    let takes = "Duplicate of #1: the judge’s confidence is 95 %, and all checks passed.";
    assert_eq!(world.first_sentence(2).await, takes);
    let rewrite = async |of: i64| {
        let record = ItemRecord::new(ISSUE, number(of), "Something else altogether");
        world.store.corpus().upsert_items(&world.repo, vec![record], world.now).await.expect("taken in");
    };
    rewrite(2).await;
    let took = "Was judged a duplicate of #1 with a confidence of 95 %; ";
    let until = "since, so the verdict does not count until it is judged again.";
    assert_eq!(world.first_sentence(2).await, format!("{took}its text has changed {until}"));
    assert_eq!(world.first_sentence(3).await, takes);
    rewrite(1).await;
    assert_eq!(world.first_sentence(2).await, format!("{took}both texts have changed {until}"));
    assert_eq!(world.first_sentence(3).await, format!("{took}the target’s text has changed {until}"));
    world.github_tells(3, ItemState::Closed, Some(StateReason::Completed)).await;
    assert_eq!(
        world.first_sentence(3).await,
        format!(
            "{took}the target’s text has changed since, so the verdict does not count. It is closed as completed now."
        )
    );
    world.store.corpus().mark_gone(world.repo.id, number(1), GoneReason::Deleted, world.now).await.expect("marked");
    assert_eq!(world.first_sentence(2).await, format!("{took}the target was deleted or transferred {until}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_to_look_at_what_is_settled() {
    let world = ConsoleWorld::filled().await;
    for (of, verdict, target) in
        [(2, Verdict::MaybeDuplicate, Some(1)), (3, Verdict::Duplicate, Some(1)), (4, Verdict::NotDuplicate, None)]
    {
        let record = record(of, verdict, "duplicate", target);
        world.store.duplicates().write_triage_record(world.repo.id, &record, world.now).await.expect("written");
    }
    let grounds = "#1: 93 % similar, the judge’s confidence is 97 %";
    assert_eq!(world.first_sentence(2).await, format!("May be a duplicate of {grounds}. Please decide."));
    for of in [2, 3, 4] {
        world.github_tells(of, ItemState::Closed, Some(StateReason::Duplicate)).await;
    }
    let now = ". It is closed as a duplicate now.";
    assert_eq!(world.first_sentence(2).await, format!("Looked like a possible duplicate of {grounds}{now}"));
    assert_eq!(world.first_sentence(3).await, format!("Looked like a duplicate of {grounds}{now}"));
    assert!(world.first_sentence(4).await.ends_with(now));

    world.happened(2, OutcomeKind::Closed, Some(StateReason::Duplicate)).await;
    let told = world.told("/issues/2").await;
    assert!(told.contains("Closed as a duplicate; of which issue is unknown."), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_problem_and_a_regression_are_named_with_their_fix() {
    let world = ConsoleWorld::filled().await;
    for (kind, sentence, badge) in [
        (FixKind::Fixed, "Probably fixed: the same problem as #1, which #3 fixed: 95 % similar.", "probably fixed"),
        (
            FixKind::PossibleRegression,
            "May be a regression of #1, which #3 fixed: 95 % similar.",
            "possible regression",
        ),
    ] {
        let (report, score) = (number(1), Similarity::new(0.95).expect("in range"));
        let fix =
            FixMatch { kind, report, score, confidence: None, fix: number(3), merged_at: world.now, release: None };
        let record =
            NewTriageRecord { fix: Some(fix), ..record(2, Verdict::NotDuplicate, "model_not_duplicate", None) };
        world.store.duplicates().write_triage_record(world.repo.id, &record, world.now).await.expect("written");
        let said = world.first_sentence(2).await;
        assert!(said.contains(sentence), "{said}");
        let page = world.told("/issues/2").await;
        assert!(page.contains(badge), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_sentence_and_the_look_below_it_say_the_same_of_the_judge() {
    let world = ConsoleWorld::filled().await;
    let told = async || world.told("/issues/2").await;
    // A judge may say no without a reason.
    let record = NewTriageRecord {
        confidence: None,
        reasoning: String::new(),
        ..record(2, Verdict::NotDuplicate, "model_not_duplicate", None)
    };
    world.store.duplicates().write_triage_record(world.repo.id, &record, world.now).await.expect("written");
    assert!(world.first_sentence(2).await.contains("the judge compared the closest items and said no"));
    let page = told().await;
    assert!(
        page.contains("No: none of the candidates is the same problem.") && !page.contains("was not asked"),
        "{page}"
    );

    // The later decision determines both the first sentence and the run below it.
    let nothing = NewDecision {
        model_is_duplicate: None,
        confidence: None,
        reasoning: None,
        structure: None,
        answer: None,
        candidates: Vec::new(),
        ..decision(2, None, DecisionStatus::Skipped, Some("no_candidates"), 0.0)
    };
    let later = world.now + SignedDuration::from_secs(1);
    world.store.judge().write_decisions(world.repo.id, &[nothing], later).await.expect("written");
    assert!(world.first_sentence(2).await.contains("nothing is similar enough"));
    let page = told().await;
    assert!(page.contains("The judge was not asked: nothing is similar enough."), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gate_that_rejected_a_yes_is_named() {
    let world = ConsoleWorld::filled().await;
    let gap = record(5, Verdict::NotDuplicate, "online_strict_guardrail:candidate_gap_too_small", Some(1));
    world.store.duplicates().write_triage_record(world.repo.id, &gap, world.now).await.expect("written");
    let sentence = world.first_sentence(5).await;
    assert!(sentence.starts_with("No duplicate found: another item is just as similar"), "{sentence}");
    world.decide(decision(6, Some(1), DecisionStatus::Rejected, Some("target_not_open"), 0.9)).await;
    let sentence = world.first_sentence(6).await;
    assert!(sentence.starts_with("No duplicate found: the other item is not open"), "{sentence}");
}
