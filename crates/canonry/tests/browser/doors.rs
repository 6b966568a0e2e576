//! Sign-in, refusals, and the pages of an empty service.

use canonry_testkit::browser::{Browser, Page};
use canonry_testkit::github::{App, Emulator, TEST_APP_PUBLIC_KEY, World};

use crate::commands::{Named, unknown};
use crate::looks::{faults, picture};
use crate::running::{Demo, EmptyService, REPO};

pub(crate) fn strangers_see_nothing_and_the_token_opens_the_door(demo: &Demo, browser: &Browser) {
    let page = browser.page();
    page.goto(&demo.at(REPO));
    assert_eq!(page.eval("location.pathname"), "/sign-in", "a stranger sees a repository");
    assert!(!page.text().contains("brindle"), "{}", page.text());
    page.click("input[name=token]");
    page.type_text("not-the-token");
    page.follow(|page| page.press("Enter"));
    assert_eq!(page.eval("location.pathname"), "/sign-in");
    assert_ne!(page.eval("document.querySelector('[role=alert]').innerText"), "");
    page.screenshot(&picture("sign-in-refused"));
    let told = page.problems();
    assert!(told.iter().all(|problem| problem.contains("401") || problem.contains("403")), "{told:?}");

    let page = browser.page();
    page.goto(demo.sign_in());
    assert_eq!(page.eval("location.hash"), "", "the token stays in the address");
    page.follow(|page| page.press("Enter"));
    assert_eq!(page.eval("location.pathname"), "/");
    assert!(page.text().contains("brindle"), "{}", page.text());
    assert_eq!(page.problems(), Vec::<String>::new());
    assert_eq!(page.eval("document.cookie"), "", "a script can read the session");
}

pub(crate) fn doors_and_errors_are_whole_in_every_light(demo: &Demo, browser: &Browser) {
    let mut wrong = faults(&browser.page(), "sign-in", 200, |page| page.goto(&demo.at("/sign-in")));
    let page = demo.signed_in(browser);
    wrong.extend(faults(&page, "error-404", 404, |page| page.goto(&demo.at("/r/brindle/nothing"))));
    assert!(page.text().contains("Page not found"), "{}", page.text());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub(crate) fn a_service_without_repositories_says_what_to_do(_: &Demo, browser: &Browser) {
    let mut world = World::new();
    world.app = Some(App {
        id: 77,
        slug: "canonry-of-tide".to_owned(),
        client_id: "Iv1.made".to_owned(),
        public_key: TEST_APP_PUBLIC_KEY.to_owned(),
    });
    let github = Emulator::start_blocking(world);
    let service = EmptyService::start(&github);
    let page = browser.page();
    let mut wrong = faults(&page, "empty-sign-in", 200, |page| page.goto(&service.at("/sign-in")));
    // If sign-in with GitHub is not available, the only field has the focus.
    page.type_text(EmptyService::TOKEN);
    page.follow(|page| page.press("Enter"));
    let mut named = Vec::new();
    for (name, path) in
        [("empty-home", "/"), ("empty-jobs", "/jobs"), ("empty-deliveries", "/deliveries"), ("setup-offer", "/setup")]
    {
        wrong.extend(faults(&page, name, 200, |page| page.goto(&service.at(path))));
        named.extend(Named::on(&page, path));
    }
    // GitHub redirects back with a code once it has created the App. The secrets are shown only once, so each look
    // starts again.
    let made = |page: &Page| {
        page.goto(&service.at("/setup"));
        let state = page.eval(
            "new URL(document.querySelector('form[action*=\"/settings/apps/new\"]').action).searchParams.get('state')",
        );
        page.goto(&service.at(&format!("/setup/created?code=manifest-1&state={}", state.as_str().expect("a state"))))
    };
    wrong.extend(faults(&page, "setup-created", 200, made));
    named.extend(Named::on(&page, "/setup/created"));
    assert!(page.text().contains("CANONRY_OAUTH_CLIENT_ID=Iv1.made"), "{}", page.text());
    assert!(named.len() >= 4, "{named:?}");
    wrong.extend(unknown(named));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
