//! Pull requests that Canonry reviews, and the comments on them.

use canonry_domain::GithubId;
use canonry_domain::review::{DismissalKind, Dismisser, HiddenBy, PatternFeedback, ReviewSubject, ShownAs};
use canonry_server::{Scheduler, Schedules};
use canonry_store::{FindingId, StoredSighting};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{NewPull, Permission};
use jiff::SignedDuration;

use crate::world::review_world::{REPO as POOL, ReviewWorld, reviewing};
use crate::world::{As, item};

pub(crate) const OWN: &str = "canonry[bot]";
/// The titles of the built-in rules' findings about these lines: one that feedback may hide, and one that it may not.
pub(crate) const LEFTOVER: &str = "Debugging code is left in";
pub(crate) const LEFTOVER_LINE: &str = "debugger;\n";
/// A key in its usual format, put together here so that secret scanners do not report this file.
pub(crate) fn key_line() -> String {
    format!("const key = \"AKIA{}\";\n", "2E0A8F3B6C1D9G7H")
}

/// The service on a repository with code, which reviews each push.
pub(crate) async fn reviewed_pool(database: &TestDatabase, settings: &str) -> ReviewWorld {
    let setting = ReviewWorld::new(database, As::App, &with(settings)).await;
    {
        let mut world = setting.emulator.world();
        for login in ["ada", "bea", "cleo", "dora"] {
            world.user(login);
        }
        world.bot("stale[bot]");
        world.collaborator(POOL, "wren", Permission::Write);
    }
    setting
}

/// Settings that review each push.
fn with(settings: &str) -> String {
    format!("review: {{triggers: {{onSynchronize: true}}}}\n{settings}")
}

/// Pushes another settings file to the default branch.
pub(crate) async fn settle_for(setting: &ReviewWorld, settings: &str) {
    let text = reviewing(&format!("triage: {{mode: off}}\n{settings}"));
    setting.meanwhile(|world| world.push(POOL, "main", "maint", ".canonry.yml", &text));
    setting.settle().await;
}

/// Opens a pull request with a new file of these lines, and has it reviewed.
pub(crate) async fn pull_by(setting: &ReviewWorld, author: &str, lines: &str) -> u64 {
    let number = setting.meanwhile(|world| {
        let branch = format!("topic-{}", world.get(POOL).issues.len());
        world.commit(POOL, &branch, &[(&format!("{branch}.js"), Some(&format!("first();\n{lines}last();\n")))]);
        world.open_pull(POOL, author, &branch, NewPull::new("A change of the tide"))
    });
    setting.settle().await;
    number
}

pub(crate) async fn push_elsewhere(setting: &ReviewWorld, number: u64, author: &str, text: &str) {
    setting.meanwhile(|world| world.push_pull(POOL, number, author, &[("elsewhere.js", Some(text))]));
    setting.settle().await;
}

/// The inline comment of the pull request's finding with this title.
pub(crate) fn comment(setting: &ReviewWorld, number: u64, title: &str) -> u64 {
    let world = setting.emulator.world();
    let comments = world.review_comments_by(POOL, number, OWN);
    let found: Vec<u64> = comments.iter().filter(|one| one.body.contains(title)).map(|one| one.id).collect();
    assert_eq!(found.len(), 1, "{title}: {}", world.conversation(POOL, number));
    found[0]
}

/// The number of Canonry's inline comments in a pull request.
pub(crate) fn inline(setting: &ReviewWorld, number: u64) -> usize {
    setting.emulator.world().review_comments_by(POOL, number, OWN).len()
}

/// People react to inline comments, and the next round reads the reactions.
pub(crate) async fn react(setting: &ReviewWorld, reactions: &[(u64, &str, &str)]) {
    for (comment, by, content) in reactions {
        setting.meanwhile(|world| world.react_to_review_comment(POOL, *comment, by, content));
    }
    next_round(setting).await;
}

/// Advances to the next reading of reactions.
pub(crate) async fn next_round(setting: &ReviewWorld) {
    setting.meanwhile(|world| world.now += SignedDuration::from_hours(5));
    let (store, clock) = (setting.store.clone(), std::sync::Arc::clone(&setting.clock));
    Scheduler { store, clock, schedules: Schedules::App }.tick().await.expect("ticks");
    setting.settle().await;
}

/// People's votes on the pattern with this title.
pub(crate) async fn feedback(setting: &ReviewWorld, title: &str) -> PatternFeedback {
    let repo = setting.repo.id;
    let patterns = setting.store.findings().pattern_feedback(repo).await.expect("reads");
    patterns.into_iter().find(|pattern| pattern.title == title).map(|pattern| pattern.feedback).unwrap_or_default()
}

pub(crate) async fn finding(setting: &ReviewWorld, comment: u64) -> FindingId {
    let repo = setting.repo.id;
    let comment = GithubId(i64::try_from(comment).expect("small"));
    let posted = setting.store.findings().posted_of_comment(repo, comment).await.expect("reads");
    posted.expect("it was posted").finding
}

/// The dismissals of a finding: kind, role, person, and whether it is in force.
pub(crate) async fn dismissals(setting: &ReviewWorld, comment: u64) -> Vec<(DismissalKind, Dismisser, String, bool)> {
    let said = setting.store.findings().dismissals_of(finding(setting, comment).await).await.expect("reads");
    let said = said.into_iter();
    said.map(|one| (one.dismissal.kind, one.dismissal.by, one.login.to_string(), one.withdrawn_at.is_none())).collect()
}

/// Where the last review of a pull request shows the finding with this title, and what hides it.
pub(crate) async fn shown(setting: &ReviewWorld, number: u64, title: &str) -> (ShownAs, Option<HiddenBy>) {
    let repo = setting.repo.id;
    let subject = ReviewSubject::Pull(item(number));
    let last = setting.store.review().list(repo, Some(&subject), 1).await.expect("reads").remove(0);
    let all: Vec<StoredSighting> = setting.store.review().sightings(last.id).await.expect("reads");
    let found = all.into_iter().find(|one| one.finding.title == title);
    found.map(|one| (one.shown, one.hidden_by)).unwrap_or_else(|| panic!("no finding {title:?}"))
}
