//! Patterns: what people's reactions hide, and who may clear them.

use canonry_domain::Login;
use canonry_domain::review::{Category, Finding, FindingStatus, Fingerprint, HiddenBy};
use canonry_store::FindingRecord;
use reqwest::StatusCode;

use crate::reading::{csrf_of, words};
use crate::world::reviews::{details, finding, hidden, review_history};
use crate::world::{ConsoleWorld, REPO, Who};

const CLEAR: &str = "/patterns/clear";

#[tokio::test]
async fn a_maintainer_clears_a_pattern_and_nobody_else_does() {
    let world = ConsoleWorld::on_github().await;
    review_history(&world).await;
    let odd = Fingerprint::of_title("Odd name");
    let fields = [("fingerprint", odd.as_str())];
    let page = world.page(Who::Mona, "/patterns").await;
    let told = words(&page);
    assert!(told.contains("Odd name") && told.contains("Reactions change confidence only"), "{told}");
    assert!(told.contains("Hidden findings"), "{told}");
    let before = world.patterns_and_actions().await;
    assert_eq!(before, (2, 0));

    // A reader has no button, and is refused with or without the page's token.
    let readers = world.page(Who::Rita, "/patterns").await;
    assert!(!readers.contains("/patterns/clear") && !readers.contains(">Clear<"), "{readers}");
    let answer = world.send(Who::Rita, CLEAR, Some(&csrf_of(&readers)), &fields).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    for (who, csrf, fields, expected) in [
        (Who::Stranger, csrf_of(&page), &fields[..], StatusCode::NOT_FOUND),
        (Who::Nobody, csrf_of(&page), &fields[..], StatusCode::UNAUTHORIZED),
        // Another person's token, no token, and a form that names nothing.
        (Who::Mona, csrf_of(&readers), &fields[..], StatusCode::FORBIDDEN),
        (Who::Mona, String::new(), &fields[..], StatusCode::FORBIDDEN),
        (Who::Mona, csrf_of(&page), &[], StatusCode::BAD_REQUEST),
        (Who::Mona, csrf_of(&page), &[("fingerprint", "fp-x")], StatusCode::BAD_REQUEST),
        (Who::Mona, csrf_of(&page), &[("all", "yes")], StatusCode::BAD_REQUEST),
    ] {
        let answer = world.send(who, CLEAR, Some(&csrf), fields).await;
        assert_eq!(answer.status(), expected, "{who:?} {fields:?}");
        assert_eq!(world.patterns_and_actions().await, before, "{who:?} {fields:?}: nothing changed");
    }

    let answer = world.send(Who::Mona, CLEAR, Some(&csrf_of(&page)), &fields).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(answer.headers()["location"], format!("/r/{REPO}/patterns"));
    assert_eq!(world.patterns_and_actions().await, (1, 1));
    let action = world.store.console().actions(world.repo.id, 1).await.expect("reads").remove(0);
    assert_eq!((action.action.as_str(), action.subject.as_str()), ("clear reactions", odd.as_str()));
    assert_eq!((action.by.as_ref().map(Login::as_str), action.is_operator), (Some("mona"), false));
    let told = world.told("/patterns").await;
    assert!(told.contains("“Odd name” by @mona"), "{told}");

    // The operator clears all, and is shown as the operator.
    let page = world.page(Who::Operator, "/patterns").await;
    let unsure =
        world.send(Who::Operator, CLEAR, Some(&csrf_of(&page)), &[("all", "1"), ("confirm", "clear all")]).await;
    assert_eq!((unsure.status(), world.patterns_and_actions().await), (StatusCode::BAD_REQUEST, (1, 1)));
    let confirmed = [("all", "1"), ("confirm", "clear all in tide/pool")];
    let answer = world.send(Who::Operator, CLEAR, Some(&csrf_of(&page)), &confirmed).await;
    assert_eq!((answer.status(), world.patterns_and_actions().await), (StatusCode::SEE_OTHER, (0, 2)));
    let told = world.told("/patterns").await;
    assert!(told.contains("all patterns by the operator") && told.contains("No reactions yet"), "{told}");

    // Maintainers can undo each clearing.
    let newest =
        world.store.findings().feedback_clears(world.repo.id, None, 1).await.expect("reads").remove(0).id.to_string();
    let fields = [("id", newest.as_str())];
    let readers = world.page(Who::Rita, "/patterns").await;
    assert!(!readers.contains("/patterns/restore"), "{readers}");
    let refused = world.send(Who::Rita, "/patterns/restore", Some(&csrf_of(&readers)), &fields).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let page = world.page(Who::Mona, "/patterns").await;
    assert!(page.contains("/patterns/restore"), "{page}");
    for expected in [(1, 3), (1, 4)] {
        let answer = world.send(Who::Mona, "/patterns/restore", Some(&csrf_of(&page)), &fields).await;
        assert_eq!((answer.status(), world.patterns_and_actions().await), (StatusCode::SEE_OTHER, expected));
    }
    let told = world.told("/patterns").await;
    assert!(told.contains("all patterns by the operator") && told.contains("undone by @mona"), "{told}");
}

#[tokio::test]
async fn what_people_reject_is_said_to_be_hidden_where_that_is_switched_on() {
    let world = ConsoleWorld::on_github().await;
    let history = review_history(&world).await;
    let yaml = "feedback:\n  autoSuppress:\n    enabled: true\n    thresholds:\n      minDistinctPRs: 1\n";
    world.store.repos().write_settings(world.repo.id, Some(yaml), world.now).await.expect("stored");
    let told = world.told("/patterns").await;
    assert!(told.contains("A pattern is hidden once 3 people reject it on 1 pull request"), "{told}");
    let row = told.split("Odd name").nth(1).expect("the pattern");
    assert!(row.contains("0 3 3 1 1 hidden"), "{row}");
    let odd = Finding { category: Category::Style, ..finding("src/run.js", 8, "Odd name") };
    let by = HiddenBy::Feedback;
    let quiet = FindingRecord { earlier: Some(history.rejected), status: FindingStatus::Same, ..hidden(&odd, &by) };
    world.reviewed(2, 'b', 1, &details(), &[quiet]).await;
    let told = world.told(&format!("/findings/{}", history.rejected)).await;
    assert!(
        told.contains("Hidden: people reject its pattern. 3 of 3 reactions to its pattern are 👎, on 1 pull request."),
        "{told}"
    );
    assert!(told.contains("once a maintainer clears the pattern's reactions"), "{told}");
}

#[tokio::test]
async fn patterns_and_what_was_hidden_are_found_by_their_words() {
    let world = ConsoleWorld::on_github().await;
    review_history(&world).await;
    let found = async |query: &str| {
        let page = world.page(Who::Rita, &format!("/patterns{query}")).await;
        let (patterns, hidden) = page.split_once(r#"id="hidden""#).expect("the section");
        [patterns, hidden].map(|part| part.matches("<tr data-row").count())
    };
    let [patterns, hidden] = found("").await;
    assert_eq!(patterns, 2);
    assert_eq!(found("?title=ODD+name").await, [1, hidden], "one list's filter is not the other's");
    assert_eq!(found("?title=nobody").await, [0, hidden]);
    assert_eq!(found("?state=hidden").await, [0, hidden], "nothing is hidden by reactions here");
    assert_eq!(found("?hidden_title=nobody").await, [patterns, 0]);
    let mut reasons = 0;
    for why in ["dismissal", "feedback", "pattern", "area", "severity"] {
        reasons += found(&format!("?why={why}")).await[1];
    }
    assert!(hidden > 0 && reasons == hidden, "{reasons} of {hidden}");
}
