//! Tests lists: every item arrives once, whatever the pages look like, and no other host is asked.

use canonry_github::api::{IssueQuery, ListState};
use canonry_github::{Answer, Auth, EtagCache, GitHubError, MemoryEtags, Secret};
use canonry_testkit::github::{Answer as Reply, Fault, NewIssue};
use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};
use serde_json::json;

use crate::github::emulated::{REPO, Setting, TOKEN, number, open_issues, repo};

const ISSUES: &str = "/repos/*/*/issues";
const ALL: IssueQuery = IssueQuery { state: ListState::All, since: None };

async fn with_issues(count: usize) -> Setting {
    Setting::with(|world| open_issues(world, count), Auth::Token(Secret::new(TOKEN)), |_| {}).await
}

#[tokio::test]
async fn pages_are_followed_by_cursor() {
    let setting = with_issues(250).await;
    let all = setting.github.issues(&repo(), ALL).all().await.expect("all pages");
    let mut numbers: Vec<i64> = all.iter().map(|issue| issue.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=250).collect::<Vec<_>>());
    let requests = setting.emulator.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].query("page"), None, "the first page is not asked for by number");
    assert!(requests[1..].iter().all(|request| request.query("after").is_some()), "{requests:?}");
}

#[tokio::test]
async fn a_page_that_failed_can_be_asked_for_again() {
    let setting = with_issues(150).await;
    let mut pages = setting.github.issues(&repo(), ALL);
    let first = pages.next().await.expect("the first page").expect("not the end");
    assert!(!first.is_last);
    setting.emulator.fault(Fault::on("GET", ISSUES).answer(401));
    pages.next().await.expect_err("refused");
    let second = pages.next().await.expect("the second page").expect("not the end");
    assert_eq!((first.items.len(), second.items.len(), second.is_last), (100, 50, true));
    assert_eq!(pages.next().await, Ok(None));
}

#[tokio::test]
async fn an_unchanged_list_costs_one_request_and_nothing_of_the_budget() {
    let setting = with_issues(3).await;
    let etags = MemoryEtags::default();
    let ask = async || setting.github.issues(&repo(), ALL).first_if_changed(&etags).await.expect("an answer");
    let Answer::Fresh(page) = ask().await else { panic!("never asked before") };
    // Until the caller has stored the page and its ETag, the page is sent again.
    assert!(matches!(ask().await, Answer::Fresh(_)));
    etags.put(&page.etag.expect("a whole list has a tag")).await;
    assert_eq!(ask().await, Answer::NotModified);
    setting.emulator.world().open(REPO, "ann", NewIssue::new("Another", ""));
    assert!(matches!(ask().await, Answer::Fresh(page) if page.items.len() == 4));
}

#[tokio::test]
async fn a_list_of_several_pages_offers_no_tag() {
    let setting = with_issues(101).await;
    let mut pages = setting.github.issues(&repo(), ALL);
    let first = pages.first_if_changed(&MemoryEtags::default()).await.expect("an answer");
    assert!(matches!(&first, Answer::Fresh(page) if page.etag.is_none() && !page.is_last));
    assert_eq!(pages.next().await.expect("an answer").expect("a second page").items.len(), 1);
}

#[tokio::test]
async fn cursors_to_elsewhere_or_in_a_circle_are_refused() {
    let setting = with_issues(1).await;
    let own = setting.emulator.url();
    for (next, detail) in [
        ("https://evil.example/repos/acme/widgets/issues".to_owned(), "its next page is on another host"),
        (own.replace("http:", "https:") + "/repos/acme/widgets/issues", "its next page is on another host"),
        (format!("{own}/repos/acme/widgets/issues?after=round"), "its pages repeat"),
        ("/repos/acme/widgets/issues?after=x".to_owned(), "its next page has no address"),
    ] {
        setting.emulator.clear_faults();
        setting.emulator.forget_requests();
        let page = Reply::ok(json!([])).header("link", &format!("<{next}>; rel=\"next\""));
        setting.emulator.fault(Fault::on("GET", ISSUES).always().answer_with(page));
        let error = setting.github.issues(&repo(), ALL).all().await.expect_err("refused");
        assert_eq!(error, GitHubError::BadAnswer { what: format!("/repos/{REPO}/issues"), detail: detail.to_owned() });
        assert!(setting.request_count() <= 2);
    }
}

#[tokio::test]
async fn other_lists_are_paged_too() {
    let setting = with_issues(1).await;
    for index in 0..130 {
        setting.emulator.world().comment(REPO, 1, "ann", &format!("comment {index}"));
    }
    let comments = setting.github.comments(&repo(), number(1), None).all().await.expect("all pages");
    let bodies: Vec<String> = comments.into_iter().map(|comment| comment.body).collect();
    assert_eq!(bodies, (0..130).map(|index| format!("comment {index}")).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Pages of any size, empty ones too: what arrives is what was sent, in order.
    #[test]
    fn nothing_is_lost_or_doubled(sizes in proptest::collection::vec(0usize..4, 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (got, sent) = runtime.block_on(async {
            let setting = Setting::new().await;
            let mut sent = Vec::new();
            for (index, size) in sizes.iter().enumerate() {
                let numbers: Vec<i64> = (0..*size).map(|_| { sent.push(sent.len() as i64 + 1); sent.len() as i64 }).collect();
                let items: Vec<_> = numbers.iter().map(|number| json!({"id": number, "number": number})).collect();
                let mut page = Reply::ok(json!(items));
                if index + 1 < sizes.len() {
                    let next = format!("<{}/repos/{REPO}/issues?after=cursor{index}>; rel=\"next\"", setting.emulator.url());
                    page = page.header("link", &next);
                }
                setting.emulator.fault(Fault::on("GET", ISSUES).nth(index + 1).answer_with(page));
            }
            let got = setting.github.issues(&repo(), ALL).all().await.expect("all pages");
            (got.into_iter().map(|issue| issue.number).collect::<Vec<_>>(), sent)
        });
        prop_assert_eq!(got, sent);
    }
}
