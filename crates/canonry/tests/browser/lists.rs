//! Filters, the search and the switcher of the header, the slider of an audit, and the theme.

use std::collections::BTreeSet;

use canonry_testkit::browser::{Browser, Scheme, Viewport};
use serde_json::Value;

use crate::looks::picture;
use crate::running::{Demo, REPO};

pub(crate) fn filters_are_in_the_address_and_hold_what_they_say(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    page.goto(&demo.at(&format!("{REPO}/items")));
    page.eval("document.querySelector('select[name=type]').value = 'pr'");
    page.eval("document.querySelector('select[name=state]').value = 'closed'");
    page.follow(|page| page.click("form.filters button"));
    let address = page.eval("location.search").as_str().unwrap_or_default().to_owned();
    assert!(address.contains("type=pr") && address.contains("state=closed"), "{address}");
    let rows = page.eval("[...document.querySelectorAll('tr[data-row]')].map(row => row.innerText)");
    let rows = rows.as_array().expect("a list");
    assert!(!rows.is_empty(), "{}", page.text());
    for row in rows.iter().filter_map(Value::as_str) {
        assert!(row.contains("pull request") && !row.contains("\topen\t"), "{row}");
    }
    // The URL contains the filter, so it can be shared as a link.
    page.goto(&demo.at(&format!("{REPO}/items{address}")));
    assert_eq!(page.eval("document.querySelector('select[name=state]').value"), "closed");
    page.press("f");
    page.type_text("panic");
    page.follow(|page| page.press("Enter"));
    assert!(
        page.eval("location.search").as_str().is_some_and(|search| search.contains("title=panic")),
        "{}",
        page.text()
    );
    page.goto(&demo.at(&format!("{REPO}/items")));
    page.click("input[name=number]");
    page.type_text("1");
    page.follow(|page| page.press("Enter"));
    let there = page.eval("location.pathname");
    let stories = [format!("{REPO}/issues/1"), format!("{REPO}/pulls/1")];
    assert!(stories.iter().any(|story| there == story.as_str()), "a number leads to {there}");
    assert_eq!(page.problems(), Vec::<String>::new());
}

pub(crate) fn a_key_leads_to_the_search_and_the_switcher_to_another_repository(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    page.goto(&demo.at(&format!("{REPO}/plans")));
    page.press("/");
    page.type_text("panic");
    page.follow(|page| page.press("Enter"));
    assert_eq!(page.eval("location.pathname"), "/search");
    assert_eq!(page.eval("document.getElementById('search').value"), "panic");
    page.follow(|page| page.click("main li[data-row] a"));
    assert!(page.eval("location.pathname").as_str().is_some_and(|path| path.starts_with(REPO)), "{}", page.text());
    page.press("/");
    page.type_text("#1");
    page.follow(|page| page.press("Enter"));
    let there = page.eval("location.pathname");
    assert!(
        [format!("{REPO}/issues/1"), format!("{REPO}/pulls/1")].iter().any(|item| there == item.as_str()),
        "{there}"
    );
    page.click("details.switcher summary");
    page.wait_for("document.querySelectorAll('.switcher li').length > 2");
    page.screenshot(&picture("switcher"));
    page.follow(|page| page.click(".switcher a[href='/r/tidepool/tidepool']"));
    assert_eq!(page.eval("location.pathname"), "/r/tidepool/tidepool");
    assert_eq!(page.problems(), Vec::<String>::new());
}

pub(crate) fn a_slider_changes_the_figures(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    page.goto(&demo.at(&format!("{REPO}/audits")));
    page.follow(|page| page.click("tr[data-row] a[href]"));
    let before = page.eval("document.getElementById('simulation').innerText");
    page.eval("document.getElementById('score-at').focus()");
    for _ in 0..15 {
        page.press("ArrowRight");
    }
    page.wait_for("document.getElementById('simulation').innerText.includes('With these gates')");
    assert_eq!(page.eval("document.getElementById('score').value === document.getElementById('score-at').value"), true);
    assert_ne!(page.eval("document.getElementById('simulation').innerText"), before);
    assert_eq!(page.eval("document.activeElement.id"), "score-at", "the slider has lost the focus");
    page.screenshot(&picture("slider"));
    assert_eq!(page.problems(), Vec::<String>::new());
}

pub(crate) fn the_theme_is_the_readers_own(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    let colour = "getComputedStyle(document.documentElement).backgroundColor";
    let light = page.eval(colour);
    page.look_as(Viewport::Desktop, Scheme::Dark);
    let dark = page.eval(colour);
    assert_ne!(light, dark, "the page does not follow the system");
    let mut themes = BTreeSet::new();
    for _ in 0..3 {
        page.follow(|page| page.click("form[action='/theme'] button"));
        themes.insert(page.eval("document.documentElement.dataset.theme").to_string());
        if page.eval("document.documentElement.dataset.theme") == "light" {
            assert_eq!(page.eval(colour), light, "light was asked for");
        }
    }
    assert_eq!(themes.len(), 3, "{themes:?}");
    assert_eq!(page.problems(), Vec::<String>::new());
}
