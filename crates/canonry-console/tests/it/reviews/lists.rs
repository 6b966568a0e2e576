//! Reviews: figures, the list, and who may read them.

use canonry_domain::review::{Finding, FindingStatus, HiddenBy, ShownAs};
use canonry_store::FindingRecord;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::reading::{assert_harmless, linked, words};
use crate::world::reviews::{details, finding, hidden, new, review_history};
use crate::world::{ConsoleWorld, HOSTILE, Who};

#[tokio::test]
async fn each_page_is_for_readers_and_for_nobody_else() {
    let world = ConsoleWorld::on_github().await;
    let history = review_history(&world).await;
    let (review, finding) = (format!("/reviews/{}", history.first), format!("/findings/{}", history.eval));
    for path in ["/reviews", &review, "/findings", &finding, "/patterns"] {
        for who in [Who::Operator, Who::Mona, Who::Rita] {
            assert_eq!(world.ask(who, path, false).await.status(), StatusCode::OK, "{who:?} {path}");
        }
        assert_eq!(world.ask(Who::Stranger, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
        let nobody = world.ask(Who::Nobody, path, false).await;
        assert!(nobody.status().is_redirection(), "{path}");
    }
    for path in ["/reviews/999", "/reviews/x", "/findings/999", "/findings/-", "/findings/1e3"] {
        assert_eq!(world.ask(Who::Rita, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    // A review or finding of another repository is not found here, whatever its number.
    let other = world.store.repos().ensure(&"tide/other".parse().expect("a name"), world.now).await.expect("stored");
    for path in [review, finding] {
        let path = format!("/r/{}{path}", other.name);
        let answer = world.get(Who::Operator, &path).send().await.expect("answered");
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_strangers_text_stays_text() {
    let world = ConsoleWorld::on_github().await;
    let history = review_history(&world).await;
    for path in [
        "/reviews".to_owned(),
        format!("/reviews/{}", history.first),
        format!("/reviews/{}", history.last),
        "/findings".to_owned(),
        format!("/findings/{}", history.nasty),
        "/patterns".to_owned(),
        format!("/findings?path={}", url::form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect::<String>()),
        format!(
            "/reviews?pull=branch/{}",
            url::form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect::<String>()
        ),
    ] {
        let page = world.page(Who::Mona, &path).await;
        assert_harmless(&page);
        assert!(
            page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;") || path == "/reviews",
            "{path}: it is shown as text"
        );
    }
}

#[tokio::test]
async fn reviews_are_summed_up_and_listed() {
    let world = ConsoleWorld::on_github().await;
    assert!(world.told("/reviews").await.contains("No review in the last 30 days"));
    let history = review_history(&world).await;
    let told = world.told("/reviews?days=7").await;
    for part in [
        "5 reviews",
        "2 pull requests",
        "3 new findings",
        "1 hidden",
        "50 % of shown findings fixed",
        "60 % mean confidence",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("major") && told.contains("src/run.js"), "{told}");
    let page = world.page(Who::Rita, "/reviews").await;
    assert!(page.contains("3 new findings in 30 days, 1 of them hidden; 1 earlier ones fixed"), "{page}");
    // Only one pull request, and for htmx only the list.
    let part = world.ask(Who::Rita, "/reviews?pull=%232", true).await.text().await.expect("a part");
    assert!(!part.contains("<html") && part.contains("#2") && !part.contains("#1<"), "{part}");
    assert!(world.told("/reviews?pull=77").await.contains("No review of 77 has ended."));
    assert_eq!(world.ask(Who::Rita, "/reviews?pull=x", false).await.status(), StatusCode::BAD_REQUEST);

    let told = world.told(&format!("/reviews/{}", history.first)).await;
    for part in [
        "Full review: no earlier review.",
        "2 of 3 changed files read, 40 lines; 1 skipped.",
        "neutral not on GitHub: no check run was written",
        "m-1: 2 calls, 10 tokens in, 5 tokens out, $0.0123",
        "Inline 1 Finding",
        "Call of eval src/run.js:3",
        "Hidden: review.suppressions:",
        "big.bin it is too large",
        "builtin",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Details that cannot be read do not hide the rest.
    let told = world.told(&format!("/reviews/{}", history.last)).await;
    assert!(
        told.contains("details of this review cannot be read") && told.contains("Fixed since the last review 1"),
        "{told}"
    );
}

#[tokio::test]
async fn runs_without_a_review_are_told_with_what_stopped_them() {
    let world = ConsoleWorld::on_github().await;
    let (completed, _) = world.reviewed(1, 'a', 9, &details(), &[]).await;
    let failed = world.failed(1, 'b', 8, &format!("no reviewer read anything: {HOSTILE}")).await;
    let superseded = world.begun(2, 'a', 7).await;
    world.begun(2, 'b', 6).await;
    let page = world.page(Who::Rita, "/reviews").await;
    assert_harmless(&page);
    let told = words(&page);
    assert!(told.contains("failed no reviewer read anything:"), "{told}");
    assert!(told.contains("superseded replaced by a newer commit or request"), "{told}");
    assert!(page.contains(&format!("/reviews/{completed}\"")), "{page}");
    // A review that was not completed has no page.
    assert!(!page.contains(&format!("/reviews/{failed}\"")) && !page.contains(&format!("/reviews/{superseded}\"")));
    let part = async |tail: &str| words(&world.ask(Who::Rita, tail, true).await.text().await.expect("a part"));
    let only = part("/reviews?state=failed").await;
    assert!(only.contains("no reviewer read anything") && !only.contains("superseded"), "{only}");
    assert!(part("/reviews?state=completed").await.contains("0 findings"));
    assert!(part("/reviews?state=failed&pull=2").await.contains("No review of 2 failed."));
    // The next page keeps the filter.
    for _ in 0..50 {
        world.failed(1, 'b', 5, "again").await;
    }
    let first = world.ask(Who::Rita, "/reviews?state=failed&days=7", false).await.text().await.expect("a page");
    assert_eq!(words(&first).matches("failed again").count(), 50);
    let next = linked(&first, "Next page").expect("there is more");
    assert!(next.contains("state=failed") && next.contains("days=7"), "{next}");
    assert!(world.told(&next).await.contains("no reviewer read anything"));
    assert!(first.contains(r#"<option value="failed" selected>"#), "{first}");
}

#[tokio::test]
async fn a_review_with_many_findings_and_files_comes_page_by_page() {
    let world = ConsoleWorld::on_github().await;
    let findings: Vec<Finding> = (1..=120).map(|line| finding("a.js", line, &format!("Remark {line}"))).collect();
    let by = HiddenBy::Area;
    // In turn inline, hidden and in the details: each is listed separately.
    let record = |(at, finding)| match at % 3 {
        0 => new(finding),
        1 => hidden(finding, &by),
        _ => FindingRecord { shown: ShownAs::Details, ..new(finding) },
    };
    let records: Vec<FindingRecord<'_>> = findings.iter().enumerate().map(record).collect();
    let skipped: Vec<Value> =
        (0..120).map(|of| json!({ "path": format!("gen/{of:03}.js"), "why": "generated", "gap": of == 119 })).collect();
    let mut told = details();
    told["coverage"]["skipped"] = Value::Array(skipped);
    let (review, ids) = world.reviewed(1, 'a', 2, &told, &records).await;
    let again: Vec<FindingRecord<'_>> = (ids.iter().zip(&findings).take(1))
        .map(|(id, finding)| FindingRecord { earlier: Some(*id), status: FindingStatus::Fixed, ..new(finding) })
        .collect();
    let (second, _) = world.reviewed(1, 'b', 1, &details(), &again).await;

    let listed = |page: &str| -> Vec<String> {
        let part =
            page.split("id=\"findings\"").nth(1).and_then(|rest| rest.split("id=\"skipped\"").next()).expect("it");
        part.split("\">Remark ").skip(1).filter_map(|rest| rest.split('<').next()).map(str::to_owned).collect()
    };
    let mut all = Vec::new();
    let mut page = world.page(Who::Rita, &format!("/reviews/{review}")).await;
    assert!(words(&page).contains("Inline 40") && words(&page).contains("In the details 40"), "{page}");
    assert!(words(&page).contains("canonry why PATH --repo tide/pool --pr 1"), "{page}");
    loop {
        let on_page = listed(&page);
        assert!(on_page.len() <= 50);
        all.extend(on_page);
        let part = page.split("id=\"skipped\"").next().expect("a part");
        let Some(next) = linked(part, "Next page") else { break };
        page = world.page(Who::Rita, &next).await;
    }
    let expected: Vec<String> = [0, 2, 1]
        .into_iter()
        .flat_map(|of| (0..120).filter(move |at| at % 3 == of))
        .map(|at| (at + 1).to_string())
        .collect();
    assert_eq!(all, expected, "at their lines, in the details, hidden; each in the order of the review");
    assert!(
        words(&page).contains("Hidden: its category is off in the settings 40"),
        "the whole count, on the last page too"
    );

    // The files that were not read have their own pages; gaps come first.
    let mut files = Vec::new();
    let mut page = world.page(Who::Rita, &format!("/reviews/{review}")).await;
    loop {
        let part = page.split("id=\"skipped\"").nth(1).expect("a part").to_owned();
        files.extend(part.split("<code>gen/").skip(1).filter_map(|rest| rest.split('.').next()?.parse::<u32>().ok()));
        let Some(next) = linked(&part, "Next page") else { break };
        page = world.page(Who::Rita, &next).await;
    }
    assert_eq!(files, std::iter::once(119).chain(0..119).collect::<Vec<_>>());
    let odd = world.page(Who::Rita, &format!("/reviews/{review}?files=-9&after=x")).await;
    assert_eq!(listed(&odd).len(), 50);
    let elsewhere = world.told(&format!("/reviews/{second}?after={}", ids[5])).await;
    assert!(elsewhere.contains("No more findings."), "{elsewhere}");
    let fixed = world.told(&format!("/reviews/{second}")).await;
    assert!(fixed.contains("Fixed since the last review 1"), "{fixed}");
}
