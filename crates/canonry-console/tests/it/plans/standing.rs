//! What a plan's page says of brakes.

use canonry_store::BrakeKind;
use reqwest::StatusCode;

use crate::plans::setting::Planned;
use crate::setting::Who;

#[tokio::test]
async fn the_breaker_holds_back_what_is_closed_by_itself_and_says_no_more() {
    let setting = Planned::new().await;
    let objected = "People objected to several closes: nothing is closed by itself, since";
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
