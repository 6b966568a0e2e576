//! The console in a real browser, on the demo's week: every page, by keyboard, on a phone, in dark mode, without
//! scripts.
//!
//! This is one test, because playing the week takes longer than all of its steps; a failed step is reported by name.

mod commands;
mod doors;
mod fast_keys;
mod lists;
mod looks;
mod pages;
mod plan;
mod running;
mod visitor;

use std::panic::{AssertUnwindSafe, catch_unwind};

use canonry_testkit::browser::{self, Browser};

use crate::running::Demo;

/// A step with its name.
type Step = (&'static str, fn(&Demo, &Browser));

/// The order matters: plan pages and the activity list show something only after some activity, and applying a plan
/// ends it.
const STEPS: [Step; 18] = [
    ("sign-in and refusal", doors::strangers_see_nothing_and_the_token_opens_the_door),
    ("doors in every light", doors::doors_and_errors_are_whole_in_every_light),
    ("an empty service", doors::a_service_without_repositories_says_what_to_do),
    ("filters", lists::filters_are_in_the_address_and_hold_what_they_say),
    ("search and switcher", lists::a_key_leads_to_the_search_and_the_switcher_to_another_repository),
    ("slider", lists::a_slider_changes_the_figures),
    ("theme", lists::the_theme_is_the_readers_own),
    ("sign-in with GitHub", visitor::who_signs_in_with_github_does_what_they_may_there),
    ("plan on a phone", plan::on_a_phone_a_row_is_a_page_of_its_own),
    ("plan on a wide screen", plan::the_list_and_the_row_each_fit_the_screen),
    ("plan without scripts", plan::a_plan_is_reviewed_without_scripts),
    ("every page", pages::every_page_is_whole_in_every_light),
    ("fast words", fast_keys::each_word_is_about_the_row_it_was_said_of),
    ("fast moves", fast_keys::a_word_is_never_about_a_row_that_was_left),
    ("a key held down", fast_keys::a_key_that_is_held_down_says_its_word_once),
    ("writing meanwhile", fast_keys::what_is_written_while_a_word_is_on_its_way_stays),
    ("fast answers", fast_keys::each_answer_is_about_the_case_that_was_seen),
    ("plan by keyboard", plan::a_plan_is_reviewed_and_applied_by_keyboard),
];

#[test]
fn the_console_in_a_real_browser() {
    if browser::is_missing() {
        return;
    }
    let (demo, browser) = (Demo::start(), Browser::start());
    let failed: Vec<&str> = STEPS
        .into_iter()
        .filter(|(_, step)| catch_unwind(AssertUnwindSafe(|| step(&demo, &browser))).is_err())
        .map(|(name, _)| name)
        .collect();
    assert!(failed.is_empty(), "these steps failed, each with its reason above: {}", failed.join(", "));
}
