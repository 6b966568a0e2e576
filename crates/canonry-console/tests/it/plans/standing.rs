//! What a plan's page says of brakes, and how closes are taken back that were begun in vain.

use canonry_server::{ApplyOrder, ClosingDeed, closing_deed};
use canonry_store::{BrakeKind, NewOutboxEntry};
use jiff::SignedDuration;
use reqwest::StatusCode;

use crate::plans::setting::Planned;
use crate::reading::flash_of;
use crate::setting::{ISSUE, Who, number};

/// As if an apply had begun to close an item when it was stopped.
async fn begun(setting: &Planned, of: i64) {
    let (key, payload) = (format!("close:{}:issue:{of}", setting.plan), serde_json::json!({}));
    let new = NewOutboxEntry {
        repo: setting.repo.id,
        number: number(of),
        kind: "close",
        key: &key,
        payload: &payload,
        refused: None,
    };
    setting.store.enqueue(&new, setting.now).await.expect("stored");
}

#[tokio::test]
async fn the_breaker_holds_back_what_is_closed_by_itself_and_says_no_more() {
    let setting = Planned::new().await;
    let objected = "People objected to several closes: nothing is closed by itself. It was stopped";
    assert!(!setting.page(Who::Mona, &setting.path("")).await.contains(objected));
    let set = setting.store.set_brake(setting.repo.id, BrakeKind::Breaker, None, "three objections", setting.now).await;
    set.expect("set");
    let page = setting.page(Who::Mona, &setting.path("")).await;
    assert!(
        page.contains(objected) && page.contains("A plan that a maintainer applies still is carried out."),
        "{page}"
    );
    let fields = [("confirm", "close 3 in tide/pool"), ("approved_only", "0")];
    let answer = setting.send(Who::Mona, &setting.path("/apply"), &fields, false).await;
    assert_eq!((answer.status(), setting.jobs().await.len()), (StatusCode::SEE_OTHER, 1));
}

#[tokio::test]
async fn what_was_begun_in_vain_is_taken_back() {
    let mut setting = Planned::new().await;
    let offers = async |setting: &Planned, who| setting.page(who, &setting.path("")).await.contains("/withdraw\"");
    let withdraw = async |setting: &Planned, who| setting.send(who, &setting.path("/withdraw"), &[], false).await;
    begun(&setting, 2).await;
    // A good plan is applied, and goes on with what was begun.
    assert!(!offers(&setting, Who::Mona).await);
    let answer = withdraw(&setting, Who::Mona).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.text().await.expect("a page").contains("Nothing was taken back"));

    let good = setting.plan;
    setting.plan = setting.planned(SignedDuration::from_hours(7 * 24 + 1)).await;
    assert!(!offers(&setting, Who::Mona).await, "nothing of this one was begun");
    begun(&setting, 3).await;
    assert!(offers(&setting, Who::Mona).await && !offers(&setting, Who::Rita).await);
    assert_eq!(withdraw(&setting, Who::Rita).await.status(), StatusCode::FORBIDDEN);
    // Not even the correction of a comment is written while it is paused.
    let kind = BrakeKind::Pause;
    setting.store.set_brake(setting.repo.id, kind, None, "so", setting.now).await.expect("set");
    assert!(!offers(&setting, Who::Mona).await);
    assert_eq!(withdraw(&setting, Who::Mona).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(setting.jobs().await, []);
    setting.store.lift_brake(setting.repo.id, kind, None, setting.now).await.expect("lifted");

    let answer = withdraw(&setting, Who::Mona).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert!(flash_of(&answer).contains("being taken back"), "{}", flash_of(&answer));
    let order = |plan| {
        let by = Some("mona".parse().expect("a login"));
        Some(ClosingDeed::Apply(ApplyOrder { plan, approved_only: true, only_takes_back: true, by }))
    };
    let deeds = async |setting: &Planned| setting.jobs().await.iter().map(closing_deed).collect::<Vec<_>>();
    assert_eq!(deeds(&setting).await, [order(setting.plan)]);
    assert_eq!(withdraw(&setting, Who::Mona).await.status(), StatusCode::UNPROCESSABLE_ENTITY, "it is ordered already");
    let actions = setting.store.console_actions(setting.repo.id, 10).await.expect("reads");
    let told = (actions[0].action.as_str(), actions[0].subject.clone());
    assert_eq!(told, ("plan: withdraw", format!("1 begun close of plan {}", setting.plan)));

    // Of a plan whose rows were all excluded since, too: nothing is left that an apply could be asked for.
    let old = setting.plan;
    setting.plan = good;
    let all = [number(2), number(3), number(5)];
    setting.store.set_approved(good, ISSUE, &all, Some(false), None, setting.now).await.expect("noted");
    assert_eq!(withdraw(&setting, Who::Mona).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(deeds(&setting).await, [order(good), order(old)]);
}
