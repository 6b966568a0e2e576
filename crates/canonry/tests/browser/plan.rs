//! A plan from its first row to its last close, with the keyboard alone, and reviewed without scripts.

use canonry_testkit::browser::{Browser, Page, Scheme, Viewport};

use crate::looks::picture;
use crate::running::Demo;

/// The number of rows in the plan's tab of this name.
pub(crate) fn count(page: &Page, name: &str) -> i64 {
    let count = page.eval(&format!("document.querySelector('[data-count={name}]')?.innerText ?? ''"));
    count.as_str().and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("there is no {name:?}: {count}"))
}

pub(crate) fn a_plan_is_reviewed_without_scripts(demo: &Demo, browser: &Browser) {
    let page = browser.page();
    page.goto(demo.sign_in());
    page.follow(|page| page.press("Enter"));
    page.run_scripts(false);
    page.goto(&demo.at(&demo.plan()));
    let before = count(&page, "approved");
    page.follow(|page| page.click("tr[data-row] a[data-opens]"));
    assert!(
        page.eval("document.querySelectorAll('#pair .pair article').length").as_i64() >= Some(2),
        "{}",
        page.text()
    );
    page.follow(|page| page.click("#pair button[value=approve]"));
    assert_eq!(count(&page, "approved"), before + 1);
    // The next row has the focus. Chromium gives it when it first renders the page, which can be after "load".
    page.wait_for("document.activeElement.matches('[data-row][data-current]')");
    page.goto(&demo.at(&demo.plan()));
    page.follow(|page| page.click("tr[data-row] a[data-opens]"));
    page.follow(|page| page.click("#pair button[value=clear]"));
    page.goto(&demo.at(&demo.plan()));
    assert_eq!(count(&page, "approved"), before);
    page.screenshot(&picture("plan-without-scripts"));
    assert_eq!(page.problems(), Vec::<String>::new());
}

pub(crate) fn on_a_phone_a_row_is_a_page_of_its_own(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    page.look_as(Viewport::Phone, Scheme::Light);
    page.goto(&demo.at(&demo.plan()));
    let seen = |part: &str| page.eval(&format!("document.querySelector('{part}').offsetParent !== null")) == true;
    assert_eq!((seen(".rows"), seen("#pair"), seen("#apply")), (true, false, true));
    let item = page.eval("document.querySelectorAll('tr[data-row]')[2].dataset.item");
    page.follow(|page| page.click(&format!("tr[data-item={item}] a[data-opens]")));
    assert_eq!(page.eval("document.getElementById('pair').dataset.item"), item);
    assert_eq!((seen(".rows"), seen("#pair"), seen("#apply")), (false, true, false));
    assert!(seen(".plan-bar [href*=apply]"), "what apply closes stays in sight");
    page.screenshot(&picture("plan-pair-phone"));
    page.click("#pair button[value=approve]");
    page.wait_for("document.getElementById('said')?.innerText.startsWith('Approved') ?? false");
    assert_ne!(page.eval("document.getElementById('pair').dataset.item"), item);
    assert_eq!((seen(".rows"), seen("#pair")), (false, true), "the next row follows");
    page.follow(|page| page.click("#pair .back a"));
    assert_eq!((seen(".rows"), seen("#pair")), (true, false), "the way back");
    assert_eq!(page.problems(), Vec::<String>::new());
}

pub(crate) fn the_list_and_the_row_each_fit_the_screen(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    page.goto(&demo.at(&demo.plan()));
    for part in [".rows", "#pair"] {
        let fits = format!("document.querySelector('{part}').getBoundingClientRect().height <= innerHeight");
        assert_eq!(page.eval(&fits), true, "{part}");
    }
    page.eval("document.querySelector('.rows').scrollTop = 300");
    assert_eq!(page.eval("scrollY + document.getElementById('pair').scrollTop"), 0, "each scrolls by itself");
    page.eval("scrollTo(0, document.body.scrollHeight)");
    let bar = "document.querySelector('.plan-bar').getBoundingClientRect().top >= 0";
    assert_eq!(page.eval(bar), true, "what apply closes stays in sight");
    assert_eq!(page.problems(), Vec::<String>::new());
}

pub(crate) fn a_plan_is_reviewed_and_applied_by_keyboard(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    page.goto(&demo.at(&demo.plan()));
    let (approved, excluded, closed) = (count(&page, "approved"), count(&page, "excluded"), count(&page, "ended"));
    let current = "document.querySelector('tr[data-current], tr[data-row]:focus')?.id ?? ''";
    page.press("j");
    page.wait_for(&format!("({current}) !== '' && document.querySelector('#pair [data-key=a]') !== null"));
    page.wait_for("document.querySelector('[aria-busy]') === null");
    page.screenshot(&picture("plan-review"));
    for (key, name, expected) in
        [("a", "approved", approved + 1), ("a", "approved", approved + 2), ("x", "excluded", excluded + 1)]
    {
        page.press(key);
        page.wait_for(&format!(
            "document.querySelector('[data-count={name}]')?.innerText === '{expected}' && document.querySelector('#pair [data-key=a]') !== null \
             && document.readyState === 'complete' && document.activeElement?.matches('[data-row]')"
        ));
    }
    // A wrong confirmation closes nothing.
    page.press("A");
    page.wait_for("document.activeElement?.name === 'confirm'");
    page.type_text("close everything");
    page.follow(|page| page.press("Enter"));
    assert!(page.eval("document.getElementById('said')?.innerText ?? ''") != "", "{}", page.text());
    let told = page.problems();
    assert!(told.iter().all(|problem| problem.contains("422")), "{told:?}");

    // Only approved rows, as the page proposes: back from the field to the choice above it, and through its options.
    let phrase = page.eval("document.getElementById('apply-approved').parentElement.querySelector('code').innerText");
    assert_eq!(phrase, format!("close {} in brindle/brindle", approved + 2));
    page.press("A");
    page.wait_for("document.activeElement?.name === 'confirm'");
    page.press("Shift+Tab");
    let choice = "[document.activeElement.id, document.activeElement.checked].join()";
    assert_eq!(page.eval(choice), "apply-approved,true");
    page.press("ArrowDown");
    assert_eq!(page.eval(choice), "apply-all,true");
    page.press("ArrowUp");
    assert_eq!(page.eval(choice), "apply-approved,true");
    page.press("Tab");
    assert_eq!(page.eval("document.activeElement.name"), "confirm");
    page.type_text(phrase.as_str().expect("words"));
    page.follow(|page| page.press("Enter"));
    page.wait_for("document.getElementById('progress') !== null");
    page.screenshot(&picture("plan-progress"));
    page.wait_for(&format!("document.querySelector('[data-count=ended]')?.innerText === '{}'", closed + approved + 2));
    page.screenshot(&picture("plan-applied"));
    // A close can be undone without scrolling: for the plan, and for each row.
    page.goto(&demo.at(&format!("{}?show=ended", demo.plan())));
    for found in [".plan-bar a[href='#undo-reason']", "a[aria-label^='Undo #']"] {
        assert_eq!(
            page.eval(&format!("document.querySelector(\"{found}\").getBoundingClientRect().top < innerHeight")),
            true,
            "{found}"
        );
    }
    page.follow(|page| {
        page.eval("document.querySelector(\"a[aria-label^='Undo #']\").click()");
    });
    assert_eq!(
        page.eval("document.querySelector('#undo-row [name=confirm]').placeholder.startsWith('reopen #')"),
        true
    );
    page.screenshot(&picture("plan-undo-row"));
    assert_eq!(page.problems(), Vec::<String>::new());
}
