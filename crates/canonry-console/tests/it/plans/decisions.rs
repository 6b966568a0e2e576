//! What becomes of people's decisions: what is closed by default, how an apply is stopped, what outlives a plan.

use canonry_domain::{Login, OverrideKind, Probability, SkipReason, TargetPolicy};
use canonry_server::{ClosingDeed, closing_deed};
use canonry_store::{NewOverride, NewPlan, NewPlanRow, Representation, RowWord};
use jiff::SignedDuration;
use reqwest::StatusCode;
use serde_json::json;

use crate::plans::setting::Planned;
use crate::reading::flash_of;
use crate::setting::{ISSUE, Who, number};

#[tokio::test]
async fn approved_rows_are_the_default_and_the_limit_is_counted_in() {
    let setting = Planned::new().await;
    let settings = Some("close:\n  maxPerDay: 1\n");
    setting.store.write_repo_settings(setting.repo.id, settings, setting.now).await.expect("kept");
    let page = setting.page(Who::Mona, &setting.path("")).await;
    assert!(page.contains("No row is approved.") && !page.contains("id=\"apply-approved\""), "{page}");
    assert!(page.contains("type <code>close 1 in tide/pool</code> (2 more wait for the daily limit)"), "{page}");
    assert!(page.contains("1 of the 3 unreviewed rows can be closed now; 2 wait."), "{page}");
    assert!(!page.contains("data-keep required checked"), "nothing unreviewed is preselected: {page}");

    setting.store.set_approved(setting.plan, ISSUE, &[number(3)], Some(true), None, setting.now).await.expect("noted");
    let page = setting.page(Who::Mona, &setting.path("")).await;
    assert!(page.contains("value=\"1\" id=\"apply-approved\" data-keep required checked> the 1 approved"), "{page}");
    assert!(
        page.contains("2: the approved and 1 that nobody reviewed: type <code>close 2 in tide/pool</code>"),
        "{page}"
    );
    let apply = async |confirm| {
        let fields = [("confirm", confirm), ("approved_only", "0")];
        setting.send(Who::Mona, &setting.path("/apply"), &fields, false).await
    };
    assert_eq!(
        apply("close 3 in tide/pool").await.status(),
        StatusCode::UNPROCESSABLE_ENTITY,
        "no more than really closes"
    );
    let answer = apply("close 2 in tide/pool").await;
    assert!(flash_of(&answer).contains("The daily limit keeps 1 back"), "{}", flash_of(&answer));
}

#[tokio::test]
async fn an_apply_is_stopped_beside_its_progress() {
    let setting = Planned::new().await;
    let stop = async |who| setting.send(who, &setting.path("/stop"), &[], false).await;
    let nothing = stop(Who::Mona).await;
    assert!(nothing.text().await.expect("a page").contains("no apply is under way"));
    let fields = [("confirm", "close 3 in tide/pool"), ("approved_only", "0")];
    setting.send(Who::Mona, &setting.path("/apply"), &fields, false).await;
    let part = async |who| setting.ask(who, &setting.path("/progress"), true).await.text().await.expect("a part");
    let offered = format!("action=\"/r/tide/pool{}\"", setting.path("/stop"));
    assert!(part(Who::Mona).await.contains(&offered));
    assert!(!part(Who::Rita).await.contains(&offered), "readers stop nothing");
    assert_eq!(stop(Who::Rita).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(setting.store.stop_of_apply(setting.plan).await.expect("reads"), None);
    let stopped = stop(Who::Mona).await;
    assert!(flash_of(&stopped).contains("stops before the next row"), "{}", flash_of(&stopped));
    let mona: Login = "mona".parse().expect("a login");
    assert_eq!(setting.store.stop_of_apply(setting.plan).await.expect("reads"), Some((setting.now, Some(mona))));
    let told = part(Who::Mona).await;
    assert!(told.contains("Applying the plan: stopping") && !told.contains(&offered), "{told}");
}

#[tokio::test]
async fn what_is_closed_can_be_undone_from_the_list_and_the_top() {
    let setting = Planned::new().await;
    setting.applied().await;
    let page = setting.page(Who::Mona, &setting.path("")).await;
    let undo = format!("href=\"/r/tide/pool{}#undo-row\" aria-label=\"Undo #2\"", setting.path("/rows/issue/2"));
    assert!(page.contains(&undo), "{page}");
    let (whole, rows) =
        (page.find("id=\"undo\"").expect("offered"), page.find("class=\"split review\"").expect("rows"));
    assert!(whole < rows, "before the rows");
    let reader = setting.page(Who::Rita, &setting.path("")).await;
    assert!(!reader.contains("#undo-row") && !reader.contains("id=\"undo\""), "{reader}");
}

#[tokio::test]
async fn a_ruling_leaves_the_other_clusters_and_offers_a_new_plan() {
    let setting = Planned::new().await;
    let page = setting.page(Who::Mona, &setting.path("")).await;
    assert!(!page.contains("id=\"new-plan\""), "{page}");
    let later = setting.now + SignedDuration::from_secs(1);
    let apart = NewOverride {
        item_type: ISSUE,
        kind: OverrideKind::NotDuplicate,
        item: number(2),
        other: Some(number(1)),
        note: None,
        by: None,
    };
    setting.store.add_override(setting.repo.id, apart, later).await.expect("ruled");
    let page = setting.page(Who::Mona, &setting.path("")).await;
    assert!(page.contains("2 rows will be left open") && page.contains("close 1 in tide/pool"), "{page}");
    assert!(page.contains("id=\"new-plan\"") && page.contains("It keeps exclusions, and approvals"), "{page}");
    assert!(!setting.page(Who::Rita, &setting.path("")).await.contains("id=\"new-plan\""));
    let apart = NewOverride { item: number(5), other: Some(number(4)), ..apart };
    setting.store.add_override(setting.repo.id, apart, later).await.expect("ruled");
    let page = setting.page(Who::Mona, &setting.path("")).await;
    assert!(
        page.contains("This plan cannot be applied any more: override") && page.contains("id=\"new-plan\""),
        "{page}"
    );
    setting.send(Who::Mona, "/plans", &[], false).await;
    assert!(matches!(closing_deed(&setting.jobs().await[0]), Some(ClosingDeed::Plan(_))));
}

#[tokio::test]
async fn an_exclusion_of_an_earlier_plan_is_shown_and_lifted() {
    let mut setting = Planned::new().await;
    let fields = [("word", "exclude"), ("item", "issue/2")];
    setting.send(Who::Mona, &setting.path("/rows"), &fields, false).await;
    let rulings = async |setting: &Planned| setting.store.overrides(setting.repo.id, None).await.expect("reads");
    assert_eq!(rulings(&setting).await[0].kind, OverrideKind::Excluded);
    let settings = setting.page(Who::Mona, "/settings").await;
    assert!(settings.contains("is excluded: not to be closed as a duplicate of"), "{settings}");

    let plan = NewPlan {
        representation: Representation::Raw,
        target_policy: TargetPolicy::CanonicalOnly,
        min_close: Probability::new(0.9).expect("valid"),
        config_hash: "c",
        run_id: "again",
    };
    let row = NewPlanRow {
        item_type: ISSUE,
        number: number(2),
        target: Some(number(1)),
        skip: Some(SkipReason::Excluded),
        confidence: Probability::new(0.97).ok(),
        evidence: json!({}),
        snapshot: json!({}),
    };
    let word = RowWord { approved: false, by: Some("mona".parse().expect("a login")), at: setting.now };
    let words = [((ISSUE, number(2)), word)].into();
    let later = setting.now + SignedDuration::from_secs(1);
    setting.plan =
        setting.store.create_plan_keeping(setting.repo.id, &plan, &[row], &words, later).await.expect("planned");
    let page = setting.page(Who::Mona, &setting.path("/rows/issue/2?show=excluded")).await;
    assert!(page.contains("excluded</span> by @mona") && page.contains("Lift the exclusion"), "{page}");
    let fields = [("word", "clear"), ("item", "issue/2")];
    setting.send(Who::Mona, &setting.path("/rows"), &fields, false).await;
    assert_eq!((rulings(&setting).await, setting.words().await), (vec![], vec![(2, None, None)]));
}
