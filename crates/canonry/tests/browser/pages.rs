//! Checks every page that links lead to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use canonry_testkit::browser::{Browser, Page};
use serde_json::Value;

use crate::commands::{Named, unknown};
use crate::looks::faults;
use crate::running::{Demo, REPO};

/// A limit in case links lead to more and more pages.
const MOST_KINDS: usize = 80;

pub(crate) fn every_page_is_whole_in_every_light(demo: &Demo, browser: &Browser) {
    let page = demo.signed_in(browser);
    // The first has links to pull requests, the second names every command, the third has no link once there is an
    // App.
    let mut waiting: VecDeque<String> =
        [format!("{REPO}/items?type=pr"), "/search?q=canonry".to_owned(), "/setup".to_owned(), "/".to_owned()].into();
    waiting.extend(demo.sights());
    let (mut seen, mut wrong, mut named) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    while let Some(path) = waiting.pop_front() {
        let kind = kind_of(&path);
        if seen.contains_key(&kind) || seen.len() >= MOST_KINDS {
            continue;
        }
        let found = faults(&page, &kind, 200, |page| page.goto(&demo.at(&path)));
        wrong.extend(found.into_iter().map(|fault| format!("{path}: {fault}")));
        waiting.extend(links(&page));
        named.extend(Named::on(&page, &path));
        seen.insert(kind, path);
    }
    // Stack frames have no space to break at: on a phone the issue pages that show them are the widest pages.
    for of in [26, 92] {
        let path = format!("{REPO}/issues/{of}");
        let found = faults(&page, "repo-issues-N-frames", 200, |page| page.goto(&demo.at(&path)));
        wrong.extend(found.into_iter().map(|fault| format!("{path}: {fault}")));
    }
    let missing = EXPECTED.into_iter().filter(|kind| !seen.contains_key(*kind));
    wrong.extend(missing.map(|kind| format!("no link leads to a page of the kind {kind}")));
    let others = seen.iter().filter(|(kind, _)| !EXPECTED.contains(&kind.as_str()));
    wrong.extend(others.map(|(kind, path)| format!("{path} is of the kind {kind}, which is not expected yet")));
    assert!(named.iter().filter(|one| one.is_whole).count() > 10, "{named:?}");
    wrong.extend(unknown(named));
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The kinds of pages that are found by following links; there are no others.
const EXPECTED: [&str; 32] = [
    "home",
    "help-keys",
    "jobs",
    "jobs-N",
    "deliveries",
    "deliveries-N",
    "setup",
    "search",
    "repo",
    "repo-items",
    "repo-issues-N",
    "repo-pulls-N",
    "repo-clusters",
    "repo-clusters-issue-N",
    "repo-plans",
    "repo-plans-N",
    "repo-plans-N-rows-issue-N",
    "repo-learning",
    "repo-audits",
    "repo-audits-N",
    "repo-adjudicate",
    "repo-reviews",
    "repo-reviews-N",
    "repo-findings",
    "repo-findings-N",
    "repo-patterns",
    "repo-jobs",
    "repo-deliveries",
    "repo-announced",
    "repo-check",
    "repo-activity",
    "repo-settings",
];

/// The kind of a page: its path without numbers and names.
fn kind_of(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
    let words: Vec<&str> = match words.split_first() {
        Some((&"r", rest)) => [&["repo"], rest.get(2..).unwrap_or_default()].concat(),
        _ => words,
    };
    let is_name = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    let words: Vec<&str> = words.into_iter().map(|word| if is_name(word) { "N" } else { word }).collect();
    if words.is_empty() { "home".to_owned() } else { words.join("-") }
}

/// The targets of the page's links inside the console.
fn links(page: &Page) -> Vec<String> {
    let found =
        page.eval("[...document.querySelectorAll('a[href]:not([download])')].map(link => link.getAttribute('href'))");
    let found = found.as_array().expect("a list").iter().filter_map(Value::as_str);
    let is_page = |path: &&str| {
        path.starts_with('/') && !["/sign-", "/auth/", "/assets/"].iter().any(|other| path.starts_with(other))
    };
    found.filter(is_page).map(str::to_owned).collect()
}
