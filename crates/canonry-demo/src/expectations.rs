//! Checks how the week ended: nothing was closed wrongly, nothing was posted twice, and everything in the description
//! happened.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use canonry_domain::ItemType;
use canonry_domain::review::ReviewSubject;
use canonry_store::GraceState;
use canonry_testkit::github::{EventKind, State, World};
use canonry_testkit::samples::ALL;

use crate::demo::{Demo, item};
use crate::outcome::DemoOutcome;
use crate::pull_requests::{CREDENTIAL, LEFTOVER, SWITCHED_OFF, UNPINNED};
use crate::truth::SampleTruth;
use crate::week::{BRINDLE_REPO, Week};
use crate::world::OWN;

/// The beginning of a closing comment, before the number of the item that stays open.
const CLOSED: &str = "Closed as a duplicate; please follow #";

/// The beginning of each of Canonry's comments on issues, and its kind. An issue gets at most one of each kind.
const KINDS: [(&str, &str); 6] = [
    ("This ", "a suggestion"),
    ("**Close cancelled**", "a suggestion"),
    (CLOSED, "a close"),
    ("Closed as duplicates of this issue", "a list of its duplicates"),
    ("Recorded by ", "an answer"),
    // It begins with the name of the person who ruled that the suggestion was wrong.
    ("`", "a suggestion that was taken back"),
];

/// Checks what must be true wherever the demo runs.
pub(crate) fn check_safety(demo: &Demo, week: &Week) -> Result<()> {
    let truth = SampleTruth::of(week)?;
    let world = demo.emulator.world();
    let wrong: Vec<String> = ALL.iter().flat_map(|sample| wrongs_in(&world, sample.repo, &truth)).collect();
    if let Some(first) = wrong.first() {
        bail!("the demo went wrong: {first}");
    }
    Ok(())
}

/// Checks each point of the week's description.
pub(crate) async fn check_story(demo: &Demo, week: &Week, outcome: &DemoOutcome) -> Result<()> {
    let mut missing = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            missing.push(what.to_owned());
        }
    };
    let repo = demo.repo(BRINDLE_REPO).await?;
    let is_open = |key: &str| {
        let number = week.number(key)?;
        Ok::<_, anyhow::Error>(demo.people(|world| world.issue(BRINDLE_REPO, number).state == State::Open))
    };
    for (key, state, reason) in [
        ("gzip-closed", GraceState::Closed, None),
        ("xlsx-de", GraceState::Closed, None),
        ("sort-reopened", GraceState::Closed, None),
        ("frozen-thumb", GraceState::Cancelled, Some("reaction")),
        ("plugin-3", GraceState::Cancelled, Some("assigned")),
        ("readonly-running", GraceState::Waiting, None),
        ("sniff-vague", GraceState::Closed, None),
    ] {
        let graces = demo.store.close().graces_of_item(repo.id, ItemType::Issue, item(week.number(key)?)).await?;
        let ended = graces.first().map(|grace| (grace.state, grace.reason.as_deref()));
        expect(ended == Some((state, reason)), &format!("the grace of {key} ends as {state:?}, not as {ended:?}"));
        let stays_open = key == "sort-reopened" || state != GraceState::Closed;
        expect(is_open(key)? == stays_open, &format!("whether {key} is open"));
    }
    expect(outcome.triage.objections == 1, "one objection");
    expect(outcome.lessons.get("confirmed").is_some_and(|count| *count >= 10), "ten suggestions are confirmed");
    expect(outcome.lessons.get("false_positive").is_some_and(|count| *count >= 4), "four were wrong");
    expect(outcome.threshold[1] > outcome.threshold[0], "the threshold of tidepool has risen");
    expect(outcome.plan.clusters >= 12 && outcome.plan.close >= 10, "twelve clusters, and ten items to close");
    expect(outcome.audit.tp >= 10 && outcome.audit.fp == 0, "the audit finds no wrong edge");
    let pull = week.pulls.line_ends.map(|number| ReviewSubject::Pull(item(number)));
    let reviews = demo.store.review().list(repo.id, pull.as_ref(), 10).await?;
    expect(reviews.len() == 3, "three pushes are reviewed");
    let mut words: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for review in reviews.iter().rev() {
        for sighting in demo.store.review().sightings(review.id).await? {
            words.entry(sighting.finding.title.clone()).or_default().push(sighting.status.as_str());
        }
    }
    let told = [
        (LEFTOVER, vec!["new", "fixed"]),
        (SWITCHED_OFF, vec!["new", "dismissed", "dismissed"]),
        (UNPINNED, vec!["new", "moved", "same"]),
    ];
    for (title, expected) in told {
        expect(words.get(title) == Some(&expected), &format!("{title}: {:?}, not {expected:?}", words.get(title)));
    }
    let said = |number: Option<u64>, title: &str| {
        let world = demo.emulator.world();
        let comments = number.map(|number| world.review_comments_by(BRINDLE_REPO, number, OWN)).unwrap_or_default();
        comments.iter().filter(|comment| comment.body.contains(title)).count()
    };
    expect(said(week.pulls.keys, CREDENTIAL) == 1, "the credential is remarked on");
    expect(
        said(week.pulls.theme, UNPINNED) == 0 && outcome.review.hidden_by_feedback == 1,
        "what people reject is hidden",
    );
    if !missing.is_empty() {
        bail!("the demo did not go as planned: {}", missing.join("; "));
    }
    Ok(())
}

fn wrongs_in(world: &World, repo: &'static str, truth: &SampleTruth) -> Vec<String> {
    let mut wrong = Vec::new();
    for issue in world.get(repo).issues.values() {
        let place = format!("{repo}#{}", issue.number);
        let comments = world.comments_by(repo, issue.number, OWN);
        if issue.pull.is_some() {
            let mut remarks: Vec<(&str, &str)> = world
                .review_comments_by(repo, issue.number, OWN)
                .iter()
                .map(|remark| (remark.path.as_str(), remark.body.lines().next().unwrap_or_default()))
                .collect();
            let all = remarks.len();
            remarks.sort_unstable();
            remarks.dedup();
            if remarks.len() < all || comments.len() > 1 {
                wrong.push(format!("something is said twice in {place}"));
            }
            continue;
        }
        let mut kinds = Vec::new();
        for comment in &comments {
            let kind = KINDS.iter().find(|(beginning, _)| comment.body.starts_with(beginning));
            match kind {
                Some((_, kind)) if kinds.contains(kind) => wrong.push(format!("{kind} is said twice in {place}")),
                Some((_, kind)) => kinds.push(*kind),
                None => wrong.push(format!("nobody expected this in {place}: {}", comment.body)),
            }
        }
        let closes =
            issue.events.iter().filter(|event| event.actor == OWN && matches!(event.kind, EventKind::Closed { .. }));
        let target = comments.iter().find_map(|comment| closed_for(&comment.body));
        for _ in closes {
            if !target.is_some_and(|target| truth.is_same(repo, issue.number, target)) {
                wrong.push(format!("{place} is closed and no duplicate of {target:?}"));
            }
        }
    }
    wrong
}

/// The number that a closing comment names.
fn closed_for(comment: &str) -> Option<u64> {
    let rest = comment.strip_prefix(CLOSED)?;
    rest.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}
