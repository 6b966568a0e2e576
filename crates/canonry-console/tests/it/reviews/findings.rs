//! Findings: the list, and the history of one.

use std::collections::BTreeSet;

use canonry_domain::review::{
    Category, DismissalKind, Dismisser, Finding, FindingStatus, Fingerprint, HiddenBy, RemarkAuthor, RemarkThread,
    ReviewRemark, ReviewSubject,
};
use canonry_domain::{GithubId, Login};
use canonry_store::{FindingRecord, WitnessedRemark};
use reqwest::StatusCode;
use serde_json::json;

use crate::reading::{linked, words};
use crate::world::reviews::{details, finding, hidden, new, review_history, sha};
use crate::world::{ConsoleWorld, Who, number};

#[tokio::test]
async fn findings_are_filtered_by_the_address() {
    let world = ConsoleWorld::on_github().await;
    let history = review_history(&world).await;
    let ids = [("eval", history.eval), ("nasty", history.nasty), ("rejected", history.rejected)];
    for (query, expected) in [
        ("", vec!["eval", "nasty", "rejected"]),
        ("?severity=major", vec!["eval", "rejected"]),
        ("?severity=minor", vec!["nasty"]),
        ("?category=correctness", vec!["eval"]),
        ("?status=fixed", vec!["eval"]),
        ("?shown=suppressed", vec!["nasty"]),
        ("?path=src/", vec!["eval", "rejected"]),
        ("?path=src/&status=new", vec!["rejected"]),
        ("?pull=1", vec!["eval", "nasty"]),
        (&format!("?pattern={}", Fingerprint::of_title("Odd name")), vec!["rejected"]),
        ("?pull=44", vec![]),
    ] {
        let page = world.page(Who::Rita, &format!("/findings{query}")).await;
        let listed: Vec<&str> =
            ids.iter().filter(|(_, id)| page.contains(&format!("/findings/{id}\""))).map(|(name, _)| *name).collect();
        assert_eq!(listed, expected, "{query}");
        if expected.is_empty() {
            assert!(page.contains("No finding matches"), "{query}");
        }
    }
    for query in ["?severity=huge", "?status=x", "?pattern=fp-1", "?pull=a/b/c"] {
        let answer = world.ask(Who::Rita, &format!("/findings{query}"), false).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{query}");
    }
    let mistake = world.ask(Who::Rita, "/findings?severity=huge", true).await;
    assert_eq!(mistake.status(), StatusCode::OK);
    assert!(mistake.text().await.expect("a part").contains("huge"), "htmx is told in the list's place");
    let part = world.ask(Who::Rita, "/findings?status=fixed", true).await.text().await.expect("a part");
    assert!(!part.contains("<html") && part.contains("Call of eval"), "{part}");
}

#[tokio::test]
async fn a_long_list_goes_on_where_it_ended() {
    let world = ConsoleWorld::on_github().await;
    let findings: Vec<Finding> = (1..=60).map(|line| finding("a.js", line, &format!("Remark {line}"))).collect();
    let records: Vec<FindingRecord<'_>> = findings.iter().map(new).collect();
    world.reviewed(1, 'a', 1, &json!({}), &records).await;
    let first = world.page(Who::Rita, "/findings?severity=major").await;
    assert!(first.contains("Remark 60") && first.contains("Remark 11<") && !first.contains("Remark 10<"));
    let next = linked(&first, "Next page").expect("a link");
    assert!(next.contains("severity=major"), "{next}");
    let second = world.page(Who::Rita, &next).await;
    assert!(second.contains("Remark 10<") && second.contains("Remark 1<") && !second.contains("Remark 11<"));
    assert!(!second.contains("data-key=\"n\"") && second.contains("data-key=\"p\""));
}

#[tokio::test]
async fn a_long_life_comes_page_by_page() {
    let world = ConsoleWorld::on_github().await;
    let eval = finding("src/run.js", 3, "Call of eval");
    let (first, ids) = world.reviewed(1, 'a', 60, &json!({}), &[new(&eval)]).await;
    let same = FindingRecord { earlier: Some(ids[0]), status: FindingStatus::Same, ..new(&eval) };
    for at in 0..54 {
        world.reviewed(1, if at % 2 == 0 { 'b' } else { 'a' }, 59 - at, &json!({}), &[same]).await;
    }
    let path = format!("/findings/{}", ids[0]);
    let newest = world.page(Who::Rita, &path).await;
    assert_eq!(newest.matches("<tr data-row").count(), 50);
    let oldest = world.page(Who::Rita, &linked(&newest, "Next page").expect("more")).await;
    assert_eq!(oldest.matches("<tr data-row").count(), 5);
    assert!(oldest.contains(&format!("/reviews/{first}\"")) && !newest.contains(&format!("/reviews/{first}\"")));
    assert_eq!(linked(&oldest, "First page"), Some(path));
    assert!(words(&oldest).contains("canonry why src/run.js:3 --repo tide/pool --pr 1"));
}

#[tokio::test]
async fn who_else_named_a_finding_stands_on_its_page() {
    let world = ConsoleWorld::on_github().await;
    let history = review_history(&world).await;
    let subject = ReviewSubject::Pull(number(1));
    let remark = |id: i64, login: &str, link: &str| ReviewRemark {
        id: GithubId(id),
        author: RemarkAuthor { login: login.parse().expect("a login"), is_bot: true },
        path: "src/run.js".parse().expect("a path"),
        lines: None,
        text: "eval is called".to_owned(),
        link: Some(link.to_owned()),
        said_at: Some(world.now),
        thread: RemarkThread::default(),
        thumbs: (0, 0),
    };
    let own = "https://github.com/tide/pool/pull/1#discussion_r5";
    let elsewhere = "https://evil.example/tide/pool/pull/1#discussion_r6";
    let remarks = [
        remark(5, "rabbit[bot]", own),
        remark(6, "<script>x</script>", elsewhere),
        remark(7, "mona", "javascript:x()"),
    ];
    let witnessed =
        remarks.each_ref().map(|remark| WitnessedRemark { remark, finding: Some(history.eval), agreeing: 3 });
    let findings = world.store.findings();
    findings.record_remarks(world.repo.id, &subject, &witnessed, &BTreeSet::new(), world.now).await.expect("stored");
    let page = world.page(Who::Rita, &format!("/findings/{}", history.eval)).await;
    assert!(page.contains(&format!("href=\"{own}\"")), "{page}");
    assert!(!page.contains("evil.example") && !page.contains("javascript:") && !page.contains("<script>x"), "{page}");
    let told = words(&page);
    assert!(told.contains("Also named by @rabbit[bot]") && told.contains("@mona"), "{told}");
    let other = words(&world.page(Who::Rita, &format!("/findings/{}", history.nasty)).await);
    assert!(!other.contains("Also named by"), "{other}");
}

#[tokio::test]
async fn a_life_is_understood_at_once() {
    let world = ConsoleWorld::on_github().await;
    let history = review_history(&world).await;
    let page = world.page(Who::Rita, &format!("/findings/{}", history.eval)).await;
    let told = words(&page);
    for part in [
        "Fixed.",
        "did not. If the same code comes back, the finding is reopened.",
        "Confidence at the last review: 60 %",
        "50 base",
        "+20 severity: major",
        "+10 category: correctness",
        "+10 reactions to its pattern, as of now",
        "-30 what has changed since that review",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let codes = told
        .split("Code at each push")
        .nth(1)
        .and_then(|rest| rest.split("Status at each push").next())
        .expect("codes");
    let codes = codes.replace(" hours ago", "").replace(" days ago", "");
    assert!(codes.contains("ddddddd fixed 20 Fixed: the flagged code is gone."), "{codes}");
    assert!(codes.contains("bbbbbbb still open 40 Same code as at the push before."), "{codes}");
    assert!(codes.contains("aaaaaaa new 2 src/run.js:3 1 let a = 1; 2 3 flagged eval(a); 4 }"), "{codes}");
    // Four reviews: commented, not repeated, not reviewed, fixed.
    assert!(
        page.contains("new at aaaaaaa (commented), still open at bbbbbbb (not repeated), fixed at ddddddd (fixed)"),
        "{page}"
    );
    assert_eq!((page.matches("life-said").count(), page.matches("life-tick").count()), (1, 1));
    assert!(page.contains("https://github.com/tide/pool/pull/1#discussion_r71"), "{page}");
    assert!(page.contains(&format!("https://github.com/tide/pool/blob/{}/src/run.js#L3", sha('b'))), "{page}");
    assert!(told.contains("thumbs up by @ada") && told.contains("counts"), "{told}");

    let told = world.told(&format!("/findings/{}", history.nasty)).await;
    assert!(told.contains("No code was stored for this push."), "{told}");
    assert!(told.contains("Hidden by the configuration.") && told.contains("once that entry is removed"), "{told}");

    // A maintainer dismisses it; then the next push has no comment, and the page says why.
    let mona: Login = "mona".parse().expect("a login");
    let kind = DismissalKind::Resolved;
    let dismissed =
        world.store.findings().dismiss(history.rejected, None, kind, Dismisser::Maintainer, &mona, world.now);
    assert!(dismissed.await.expect("stored"));
    let odd = Finding { category: Category::Style, ..finding("src/run.js", 8, "Odd name") };
    let quiet = FindingRecord {
        earlier: Some(history.rejected),
        status: FindingStatus::Dismissed,
        ..hidden(&odd, &HiddenBy::Dismissal)
    };
    world.reviewed(2, 'b', 1, &details(), &[quiet]).await;
    let told = world.told(&format!("/findings/{}", history.rejected)).await;
    assert!(told.contains("Dismissed: @mona resolved its thread."), "{told}");
    assert!(told.contains("when the flagged code changes, or when the thread is reopened."), "{told}");
}
