//! Keys that are pressed faster than answers arrive: each acts on the row that was visible, or does nothing.

use std::collections::BTreeSet;

use canonry_testkit::browser::{Browser, Page};
use serde_json::Value;
use url::form_urlencoded;

use crate::running::{Demo, REPO};

/// True when no request is pending.
const QUIET: &str = "document.readyState === 'complete' && document.querySelector('[aria-busy]') === null \
    && !document.documentElement.hasAttribute('data-leaving')";

/// Records for each key, before any handler runs, which row is current and which one is shown.
const WATCH: &str = "window.pressed = []; document.addEventListener('keydown', event => window.pressed.push([event.key, \
    document.querySelector('[data-row][data-current]')?.dataset.item ?? '', \
    document.getElementById('pair')?.dataset.item ?? '']), true)";

/// The plan without an answer on any row, at its first row.
struct Fresh {
    page: Page,
    rows: Vec<String>,
}

type Said = Vec<(String, String)>;

impl Fresh {
    fn open(demo: &Demo, browser: &Browser) -> Self {
        let mut fresh = Self { page: demo.signed_in(browser), rows: Vec::new() };
        fresh.begin_anew(demo);
        assert!(fresh.rows.len() > 12, "{:?}", fresh.rows);
        fresh
    }

    fn begin_anew(&mut self, demo: &Demo) {
        let page = &self.page;
        page.goto(&demo.at(&demo.plan()));
        page.click("#apply button[value=clear]");
        page.wait_for("document.getElementById('said') !== null");
        page.goto(&demo.at(&demo.plan()));
        let words = words(page);
        assert!(words.iter().all(|(_, word)| word.is_empty()), "{words:?}");
        self.rows = words.into_iter().map(|(item, _)| item).collect();
        page.eval(WATCH);
        page.problems();
    }

    /// Waits until no request is pending and returns the posted answers. It checks that each answer was for the row
    /// that was current and shown when its key was pressed, that no row got two answers, and that the plan contains
    /// exactly these answers.
    fn said(&self, demo: &Demo) -> Said {
        let page = &self.page;
        page.wait_for(QUIET);
        let said: Said = page.posted().iter().map(|(_, fields)| word_in(fields)).collect();
        let pressed = page.eval("window.pressed");
        let pressed = pressed.as_array().expect("the page was never left");
        let mut meant = pressed.iter().filter_map(|one| {
            let (key, current, shown) = (one[0].as_str()?, one[1].as_str()?, one[2].as_str()?);
            let word = KEYS.iter().find(|(name, _)| *name == key)?.1;
            (current == shown).then(|| (shown.to_owned(), word.to_owned()))
        });
        for one in &said {
            assert!(meant.any(|meant| meant == *one), "{one:?} was not meant: {said:?} of {pressed:?}");
        }
        let items: BTreeSet<&String> = said.iter().map(|(item, _)| item).collect();
        assert_eq!(items.len(), said.len(), "a row got two words: {said:?}");
        assert_eq!(page.problems(), Vec::<String>::new());
        page.goto(&demo.at(&demo.plan()));
        for (item, word) in words(page) {
            let expected =
                said.iter().find(|(said_of, _)| *said_of == item).map_or("", |(_, word)| match word.as_str() {
                    "approve" => "approved",
                    "exclude" => "excluded",
                    _ => "",
                });
            assert_eq!(word, expected, "{item} of {said:?}");
        }
        said
    }
}

const KEYS: [(&str, &str); 3] = [("a", "approve"), ("x", "exclude"), ("u", "clear")];

/// The rows in their order, each with its answer.
fn words(page: &Page) -> Said {
    let rows = page.eval(
        "[...document.querySelectorAll('tr[data-item]')].map(row => [row.dataset.item, \
         row.querySelector('.said .badge')?.innerText ?? ''])",
    );
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.as_array().expect("a list").iter().map(|row| (word(&row[0]), word(&row[1]))).collect()
}

fn word_in(fields: &str) -> (String, String) {
    let field = |name: &str| {
        form_urlencoded::parse(fields.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    (field("item").unwrap_or_default(), field("word").unwrap_or_default())
}

pub(crate) fn each_word_is_about_the_row_it_was_said_of(demo: &Demo, browser: &Browser) {
    let mut fresh = Fresh::open(demo, browser);
    let keys = ["a", "x", "a", "a", "x", "u", "a", "x", "x", "a", "a", "x"];
    for round in 0..4 {
        if round % 2 == 0 {
            fresh.page.press_all(&keys);
        } else {
            keys.iter().for_each(|key| fresh.page.press(key));
        }
        let said = fresh.said(demo);
        assert!(!said.is_empty(), "nothing was said");
        let items: Vec<&String> = said.iter().map(|(item, _)| item).collect();
        assert_eq!(items, fresh.rows.iter().take(said.len()).collect::<Vec<_>>(), "a row was passed over");
        fresh.begin_anew(demo);
    }
    // If each answer is awaited, every key counts.
    for key in keys {
        fresh.page.press(key);
        fresh.page.wait_for(QUIET);
    }
    let said = fresh.said(demo);
    let all =
        fresh.rows.iter().cloned().zip(keys.map(|key| KEYS.iter().find(|(name, _)| *name == key).expect("one").1));
    assert_eq!(said, all.map(|(item, word)| (item, word.to_owned())).collect::<Vec<_>>());
    fresh.begin_anew(demo);
}

pub(crate) fn a_word_is_never_about_a_row_that_was_left(demo: &Demo, browser: &Browser) {
    let mut fresh = Fresh::open(demo, browser);
    for keys in [
        &["j", "a"][..],
        &["j", "j", "x", "k", "a"],
        &["j", "a", "j", "x", "j", "a", "k", "k", "x"],
        &["d", "a", "j", "d", "x"],
        &["a", "j", "x", "j", "j", "a", "d", "x"],
    ] {
        fresh.page.press_all(keys);
        fresh.page.wait_for(QUIET);
        let shown = "[document.querySelector('[data-row][data-current]').dataset.item, \
                     document.getElementById('pair').dataset.item, \
                     location.pathname.split('/rows/')[1] ?? '']";
        let shown = fresh.page.eval(shown);
        assert_eq!(shown[0], shown[1], "the row and the pair after {keys:?}");
        assert!(shown[2] == "" || shown[2] == shown[0], "the address leads to another row: {shown}");
        fresh.said(demo);
        fresh.begin_anew(demo);
    }
}

pub(crate) fn a_key_that_is_held_down_says_its_word_once(demo: &Demo, browser: &Browser) {
    let mut fresh = Fresh::open(demo, browser);
    fresh.page.hold("a", 30);
    assert_eq!(fresh.said(demo), [(fresh.rows[0].clone(), "approve".to_owned())]);
    fresh.begin_anew(demo);
}

pub(crate) fn what_is_written_while_a_word_is_on_its_way_stays(demo: &Demo, browser: &Browser) {
    let mut fresh = Fresh::open(demo, browser);
    let page = &fresh.page;
    let field = "[document.activeElement.id, document.activeElement.value].join()";
    page.press_all(&["x", "A", "close 5"]);
    page.wait_for(QUIET);
    assert_eq!(page.eval(field), "apply-confirm,close 5");
    // On a radio button, which is not a text field, a key posts its answer; text in other fields stays.
    page.press_all(&[" in", "Shift+Tab", "x"]);
    page.wait_for(QUIET);
    assert_eq!(page.eval("document.getElementById('apply-confirm').value"), "close 5 in");
    assert_eq!(page.eval("document.activeElement.id"), "apply-all");
    let said: Said = page.posted().iter().map(|(_, fields)| word_in(fields)).collect();
    assert_eq!(said, [&fresh.rows[0], &fresh.rows[1]].map(|item| (item.clone(), "exclude".to_owned())));

    // The message of an earlier page disappears with the next answer.
    fresh.begin_anew(demo);
    let page = &fresh.page;
    page.follow(|page| {
        page.eval(
            "const form = document.querySelector('#pair form'), word = document.createElement('input'); \
             [word.type, word.name, word.value] = ['hidden', 'word', 'approve']; form.append(word); form.submit()",
        );
    });
    assert!(
        page.eval("document.querySelector('.flash').innerText").as_str().is_some_and(|told| told.contains("Approved"))
    );
    page.press("x");
    page.wait_for("document.getElementById('said')?.innerText.startsWith('Excluded') ?? false");
    assert_eq!(page.eval("document.querySelector('.flash') === null"), true, "{}", page.text());
    fresh.begin_anew(demo);
}

pub(crate) fn each_answer_is_about_the_case_that_was_seen(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    let path = format!("{REPO}/adjudicate");
    page.goto(&demo.at(&path));
    if page.eval("document.querySelector('.answers') === null") == true {
        page.follow(|page| page.click("form[action$='/adjudicate/draw'] button"));
    }
    let case = "new URL(document.querySelector('.answers').action).pathname";
    for keys in [&["1", "2", "3", "1", "2"][..], &["s", "1"], &["2", "s", "3", "1"]] {
        page.goto(&demo.at(&path));
        let first = page.eval(case).as_str().expect("a case waits").to_owned();
        page.problems();
        page.press_all(keys);
        page.wait_for(QUIET);
        let answered = page.posted();
        let cases: BTreeSet<&String> = answered.iter().map(|(case, _)| case).collect();
        assert_eq!(cases.len(), answered.len(), "a case was answered twice: {answered:?}");
        if keys[0] == "s" {
            assert!(!answered.iter().any(|(case, _)| case.ends_with(&first)), "{first} was skipped: {answered:?}");
        } else {
            let word = ["same", "different", "unsure"][keys[0].parse::<usize>().expect("a number") - 1];
            assert!(answered[0].0.ends_with(&first) && answered[0].1.contains(word), "{first}: {answered:?}");
        }
        assert_eq!(page.problems(), Vec::<String>::new());
    }
}
