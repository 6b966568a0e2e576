//! A user who signs in with GitHub: a maintainer in one repository, a reader in the others.

use canonry_testkit::browser::{Browser, Page};
use serde_json::json;

use crate::looks::faults;
use crate::running::{Demo, REPO};

/// A repository that the visitor may only read.
const ELSEWHERE: &str = "/r/tidepool/tidepool";

/// Pages of it that offer changes to maintainers.
const PAGES: [&str; 11] = [
    "",
    "/items",
    "/issues/1",
    "/clusters",
    "/plans",
    "/learning",
    "/audits",
    "/reviews",
    "/findings",
    "/patterns",
    "/settings",
];

pub(crate) fn who_signs_in_with_github_does_what_they_may_there(demo: &Demo, browser: &Browser) {
    let page = browser.page();
    page.goto(&demo.at("/sign-in"));
    page.follow(|page| page.click("a[href^='/auth/github']"));
    assert_eq!(page.eval("location.href"), demo.at("/"), "{}", page.text());
    assert!(page.text().contains("@ottilie"), "{}", page.text());

    page.goto(&demo.at(&demo.plan()));
    let item = page.eval("document.getElementById('pair').dataset.item");
    page.click("#pair button[value=approve]");
    page.wait_for("document.getElementById('said')?.innerText.startsWith('Approved #')");
    let word = format!("document.querySelector('tr[data-item={item}] .said').innerText");
    assert!(page.eval(&word).as_str().is_some_and(|word| word.contains("approved by @ottilie")), "{}", page.text());
    let posts = |path: &str, csrf: &str, fields: serde_json::Value| post(&page, path, csrf, &fields);
    let clear = || json!({"word": "clear", "item": item});
    let rows = format!("{}/rows", demo.plan());
    assert_eq!(posts(&rows, "of another session", clear()), "403");
    assert_eq!(posts(&rows, "", clear()), "led on", "her own word is taken back");

    for tail in PAGES {
        assert_eq!(page.goto(&demo.at(&format!("{ELSEWHERE}{tail}"))), 200, "{tail}");
        let forms =
            page.eval("[...document.querySelectorAll('form[method=post]')].map(form => form.getAttribute('action'))");
        assert_eq!(forms, json!(["/sign-out", "/theme"]), "{ELSEWHERE}{tail} offers a change to a reader");
    }
    for (tail, fields) in [
        ("/plans", json!({})),
        ("/pause", json!({"reason": "mine"})),
        ("/sync", json!({})),
        ("/clusters/recompute", json!({})),
        ("/adjudicate/draw", json!({"seed": "1", "size": "1", "from": "verdicts"})),
        ("/items/issue/1/rule", json!({"ruling": "keep-open"})),
        ("/patterns/clear", json!({})),
    ] {
        let answer = posts(&format!("{ELSEWHERE}{tail}"), "", fields);
        assert_eq!(answer, "403", "{ELSEWHERE}{tail} did what a reader asked for");
    }
    let told = page.problems();
    assert!(told.iter().all(|problem| problem.contains("403")), "{told:?}");
    let mut wrong = faults(&page, "error-403", 403, |page| page.goto(&demo.at(&format!("{ELSEWHERE}/adjudicate"))));
    wrong.extend(faults(&page, "repo-as-a-reader", 200, |page| page.goto(&demo.at(ELSEWHERE))));
    assert_eq!(page.goto(&demo.at("/jobs")), 403, "the service's own jobs are for whoever runs it");
    page.goto(&demo.at(REPO));
    assert_ne!(
        page.eval("document.querySelectorAll('form[method=post]').length"),
        2,
        "a maintainer is offered changes"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sends a request that no page offers, with the session of the signed-in user and the given form token.
fn post(page: &Page, path: &str, csrf: &str, fields: &serde_json::Value) -> String {
    let answer = page.eval(&format!(
        "(() => {{ const fields = new URLSearchParams({fields}); \
         fields.set('csrf', {csrf} || document.querySelector('input[name=csrf]').value); \
         return fetch({path}, {{method: 'POST', body: fields, redirect: 'manual'}}).then(answer => \
         answer.type === 'opaqueredirect' ? 'led on' : String(answer.status)); }})()",
        csrf = json!(csrf),
        path = json!(path),
    ));
    answer.as_str().unwrap_or_default().to_owned()
}
