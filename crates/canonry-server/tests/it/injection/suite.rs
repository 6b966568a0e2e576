//! Runs the whole suite with each judge and compares the results with the tables in docs/security.md.

use std::collections::BTreeMap;

use canonry_testkit::github::State;

use crate::injection::injection_world::{InjectionWorld, NEAR, SAME, SuiteJudge};
use crate::injection::texts::{Demand, InjectionPlace, InjectionText, all, at, kinds};
use crate::injection::{comments, issues, pulls};
use crate::world::As;

/// The document with the tables.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");

/// What the texts of one kind, or at one place, did: a row of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RowResults {
    texts: usize,
    /// Texts with another verdict or target than the harmless story. With the compiled-in judge a stronger verdict or another
    /// target fails the suite.
    verdicts: usize,
    /// Texts with other suggestions than the harmless story. Any other write fails the suite.
    suggestions: usize,
}

/// What one text did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextEffect {
    pub(crate) verdict: bool,
    pub(crate) suggestion: bool,
}

#[derive(Debug, Default)]
pub(crate) struct SuiteResults {
    /// By kind, and by place: no kind has the name of a place.
    rows: BTreeMap<String, RowResults>,
    /// Texts with which the compiled-in judge finds less than in the harmless story, or gives another reason. How near a score
    /// is to a threshold depends a little on the processor, so this is no exact number.
    pub(crate) diluted: usize,
    /// Questions that a model answered as a text in an issue demanded.
    pub(crate) obeyed: usize,
    problems: Vec<String>,
}

impl SuiteResults {
    pub(crate) fn count(&mut self, text: &InjectionText, effect: TextEffect) {
        for row in [text.kind.as_str(), text.place.as_str()] {
            let row = self.rows.entry(row.to_owned()).or_default();
            row.texts += 1;
            row.verdicts += usize::from(effect.verdict);
            row.suggestions += usize::from(effect.suggestion);
        }
    }

    pub(crate) fn problem(&mut self, what: String) {
        self.problems.push(what);
    }

    fn assert_harmless(&self) {
        assert!(self.problems.is_empty(), "{} problems:\n{}", self.problems.len(), self.problems.join("\n\n"));
    }

    /// Asserts that the documented tables have these numbers: the texts, and two columns from `column` on.
    fn assert_documented(&self, column: usize) {
        self.assert_harmless();
        let (mut wrong, document) = (Vec::new(), std::fs::read_to_string(DOCUMENT).expect("the document"));
        let places = InjectionPlace::ALL.map(|place| place.as_str().to_owned());
        for name in kinds().into_iter().chain(places) {
            let RowResults { texts, verdicts, suggestions } = self.rows[&name];
            let row = document.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default();
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let found = [3, column, column + 1].map(|at| cells.get(at).copied().unwrap_or_default());
            if found != [texts, verdicts, suggestions].map(|number| number.to_string()) {
                wrong.push(format!(
                    "{name}: {texts} texts, {verdicts} verdicts, {suggestions} suggestions; documented: {found:?}"
                ));
            }
        }
        assert!(wrong.is_empty(), "docs/security.md has other tables:\n{}", wrong.join("\n"));
    }
}

async fn run(world: &InjectionWorld) -> SuiteResults {
    let mut results = SuiteResults::default();
    issues::run(world, &mut results).await;
    comments::run(world, &mut results).await;
    pulls::run(world, &mut results).await;
    world.assert_unmoved().await;
    world.assert_clean();
    results
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_moves_the_compiled_in_judge() {
    let world = InjectionWorld::start(SuiteJudge::Local).await;
    let results = run(&world).await;
    results.assert_documented(4);
    let texts = all().len();
    assert!(results.diluted * 5 <= texts, "{} of {texts} texts hide what is the same", results.diluted);
}

/// It says yes about unrelated texts too, so its yes does not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_obeys_every_text_suggests_nothing() {
    let world = InjectionWorld::start(SuiteJudge::Obedient).await;
    let results = run(&world).await;
    assert!(results.obeyed > 0, "the model obeys");
    let number = report(&world).await;
    world.later(100).await;
    assert_refused(&world, number);
    // A question is answered without the model's words, which are the stranger's.
    world.meanwhile(|world| world.comment(SAME, number, "mallory", "/canonry why"));
    world.settle().await;
    let said = said(&world, number);
    assert!(said.len() == 1 && said[0].contains("the model said yes about an unrelated text too"), "{said:?}");
    assert!(!said[0].contains("guidance"), "{said:?}");
    world.assert_clean();
    results.assert_documented(6);
}

/// A model is proven, and then obeys strangers' texts: about texts that share nothing it announces and closes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proven_model_that_obeys_every_text_closes_nothing_by_its_word_alone() {
    let world = InjectionWorld::start(SuiteJudge::ObedientAndProven).await;
    let mut results = SuiteResults::default();
    issues::run(&world, &mut results).await;
    results.assert_harmless();
    assert!(results.obeyed > 0, "the model obeys");
    let number = report(&world).await;
    world.later(49).await;
    world.later(100).await;
    assert_refused(&world, number);
    // The model does close where the texts themselves show the same: otherwise this would prove nothing.
    let shown =
        "```\nthread 'live' panicked at src/live/socket.rs:214:9:\nsession ticket 7741 is stale after resume\n```";
    world.open_issue(SAME, "ann", "The tide stops: topic8", &format!("It stops, and it prints this.\n\n{shown}"));
    world.settle().await;
    let number = report_as(&world, "It stops: topic8 alike95", &format!("It stops at noon.\n\n{shown}")).await;
    assert!(said(&world, number)[0].contains("so it will be **closed on "), "{:?}", said(&world, number));
    world.later(49).await;
    world.later(1).await;
    assert!(!is_open(&world, number), "{:?}", said(&world, number));
    // A maintainer's order outside of quotes is carried out and answered.
    world.emulator.forget_requests();
    world.meanwhile(|world| world.comment(NEAR, 6, "maint", "/canonry pause"));
    world.settle().await;
    assert_eq!(world.writes().len(), 1, "{:?}", world.writes());
    let repo = world.store.repos().find(&NEAR.parse().expect("a name")).await.expect("reads").expect("known").id;
    assert_eq!(world.store.close().brakes(repo).await.expect("reads").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cascade_with_a_model_that_obeys_every_text_closes_nothing() {
    let world = InjectionWorld::start(SuiteJudge::ObedientCascade).await;
    let mut results = SuiteResults::default();
    issues::run(&world, &mut results).await;
    results.assert_harmless();
    assert!(results.obeyed > 0, "the model obeys");
    let number = report(&world).await;
    world.later(49).await;
    world.later(100).await;
    assert_refused(&world, number);
}

/// Nothing was said about a report, and it is open.
fn assert_refused(world: &InjectionWorld, number: u64) {
    assert!(said(world, number).is_empty() && is_open(world, number), "{:?}", said(world, number));
}

/// A report close to #1 with the first text that demands a yes; the model obeys it.
async fn report(world: &InjectionWorld) -> u64 {
    let (title, body) = world.carriers.same;
    report_as(world, title, body).await
}

async fn report_as(world: &InjectionWorld, title: &str, body: &str) -> u64 {
    let text = at(&[InjectionPlace::Body]).into_iter().find(|text| text.demands == Demand::Near).expect("one");
    world.obey(std::slice::from_ref(&text));
    let (title, body) = text.put_into(title, body);
    let number = world.open_issue(SAME, "mallory", &title, &body);
    world.settle().await;
    number
}

fn said(world: &InjectionWorld, number: u64) -> Vec<String> {
    let state = world.emulator.world();
    state.comments_by(SAME, number, As::App.login()).iter().map(|comment| comment.body.clone()).collect()
}

fn is_open(world: &InjectionWorld, number: u64) -> bool {
    world.emulator.world().issue(SAME, number).state == State::Open
}
