//! The same corpus on an emulated GitHub, where plans are applied and undone.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, EventKind, NewIssue, Permission, Pull, Recorded, State, World};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dedupe::setting::{BODY, REPO, Setting, of, title};
use crate::place::Ran;

pub(crate) const TOKEN: &str = "ghp_emulatedTokenOfCanonry0123456789abcd";
/// The owner of the token.
pub(crate) const OWN: &str = "canonry-bot";
pub(crate) const MONA: &str = "mona";

/// People, a repository, and these issues by `ann`, opened one after the other yesterday.
pub(crate) fn world(numbers: &[i64]) -> World {
    let mut world = World::new();
    world.follows_wall_clock = true;
    world.now = Timestamp::now() - SignedDuration::from_hours(24);
    world.token(TOKEN, OWN);
    world.repo(REPO);
    world.repo("octo/dog");
    for login in ["ann", "ben", "carl"] {
        world.user(login);
    }
    world.collaborator(REPO, OWN, Permission::Write);
    world.collaborator(REPO, MONA, Permission::Write);
    world.rate.limit = 1_000_000;
    for &number in numbers {
        open(&mut world, number, "ann", NewIssue::new(&title(number), BODY));
    }
    world
}

/// Opens an issue with a given number.
pub(crate) fn open(world: &mut World, number: i64, by: &str, new: NewIssue) {
    let wanted = plain(number);
    let repo = world.get_mut(REPO);
    assert!(repo.last_number < wanted, "numbers only grow");
    repo.last_number = wanted - 1;
    assert_eq!(world.open(REPO, by, new), wanted);
    world.advance(60);
}

/// Opens a pull request like [`world`]'s issues.
pub(crate) fn open_pull(world: &mut World, number: i64, by: &str) {
    open(world, number, by, NewIssue::new(&title(number), BODY).pull(Pull::default()));
}

pub(crate) fn plain(number: i64) -> u64 {
    u64::try_from(number).expect("positive")
}

impl Setting {
    /// Imports the world's items. Each is nearly identical to its canonical and judged to be its duplicate. A group
    /// is a canonical and its duplicates, all issues.
    pub(crate) fn on_github(database: TestDatabase, world: World, groups: &[(i64, &[i64])]) -> Self {
        let setting = Self::with_world(database, world);
        let mut edges = Vec::new();
        for (canonical, duplicates) in groups {
            setting.around(*canonical, &duplicates.iter().map(|&number| (number, 0.97)).collect::<Vec<_>>());
            edges.extend(duplicates.iter().map(|&number| (number, *canonical, 0.96)));
        }
        setting.run(&["sync"]).succeeded();
        setting.run(&["maintainers", "refresh"]).succeeded();
        setting.find_candidates(&[]);
        setting.judge_knows(&edges);
        let judged = setting.judge(&[]);
        assert_eq!(judged["stats"]["accepted_edges"], edges.len(), "{judged}");
        setting
    }

    /// An empty database and an emulated GitHub with known titles.
    pub(crate) fn with_world(database: TestDatabase, world: World) -> Self {
        let mut setting = Self::on(database);
        for (&number, item) in &world.get(REPO).issues {
            setting.knows(i64::try_from(number).expect("small"), &item.title);
        }
        setting.emulator = Some(Emulator::start_blocking(world));
        setting
    }

    pub(crate) fn github(&self) -> &Emulator {
        self.emulator.as_ref().expect("a setting on GitHub")
    }

    /// Changes by people, after everything that the program has done so far.
    pub(crate) fn people(&self, act: impl FnOnce(&mut World)) {
        let mut world = self.github().world();
        // GitHub's times have whole seconds: an event within the same second could have been earlier.
        world.now = Timestamp::now() + SignedDuration::from_secs(1);
        act(&mut world);
    }

    /// The plan's number as an argument.
    #[track_caller]
    pub(crate) fn plan_number(&self, plan: &Value) -> String {
        plan["plan"]["id"].as_i64().unwrap_or_else(|| panic!("no plan: {plan}")).to_string()
    }

    #[track_caller]
    pub(crate) fn plan_and_apply(&self) -> (String, Value) {
        let run = self.plan_number(&self.plan(&[]));
        let applied = self.apply(&run).succeeded().json();
        (run, applied)
    }

    pub(crate) fn apply(&self, run: &str) -> Ran {
        self.run(&["apply", run, "--yes", "--json"])
    }

    pub(crate) fn undo(&self, run: &str, more: &[&str]) -> Ran {
        self.run(&[&["undo", run, "--json"], more].concat())
    }

    /// The texts of Canonry's comments on an item, without their markers.
    pub(crate) fn own_comments(&self, number: i64) -> Vec<String> {
        let world = self.github().world();
        let comments = world.comments_by(REPO, plain(number), OWN);
        comments.iter().map(|comment| comment.body.split("<!--").next().unwrap_or_default().trim().to_owned()).collect()
    }

    pub(crate) fn is_open(&self, number: i64) -> bool {
        self.github().world().issue(REPO, plain(number)).state == State::Open
    }

    pub(crate) fn labels(&self, number: i64) -> Vec<String> {
        self.github().world().issue(REPO, plain(number)).labels.clone()
    }

    /// How often Canonry closed and reopened an item.
    pub(crate) fn own_closes(&self, number: i64) -> (usize, usize) {
        let world = self.github().world();
        let own = world.issue(REPO, plain(number)).events.iter().filter(|event| event.actor == OWN);
        let kinds: Vec<&EventKind> = own.map(|event| &event.kind).collect();
        let closed = kinds.iter().filter(|kind| matches!(kind, EventKind::Closed { .. })).count();
        let reopened = kinds.iter().filter(|kind| matches!(kind, EventKind::Reopened)).count();
        (closed, reopened)
    }

    /// The issue of which GitHub shows a closed one as a duplicate.
    pub(crate) fn duplicate_of(&self, number: i64) -> Option<u64> {
        let world = self.github().world();
        let id = world.issue(REPO, plain(number)).duplicate_of?;
        world.get(REPO).issues.values().find(|issue| issue.id == id).map(|issue| issue.number)
    }

    #[track_caller]
    pub(crate) fn is_untouched(&self, number: i64) {
        let comments = self.own_comments(number);
        let closes = self.own_closes(number);
        assert_eq!((comments, closes), (Vec::new(), (0, 0)), "#{number} was touched");
        assert!(!self.labels(number).iter().any(|label| label.contains("duplicate")), "#{number} has a label");
    }

    /// Asserts that it was closed as a duplicate of the target, once, with one comment and our label.
    #[track_caller]
    pub(crate) fn is_closed_once(&self, number: i64, target: i64) {
        let comments = self.own_comments(number);
        assert_eq!(comments.len(), 1, "{comments:?}");
        let is_pull = self.github().world().issue(REPO, plain(number)).pull.is_some();
        let go_on = if is_pull { "please continue in" } else { "please follow" };
        assert!(comments[0].starts_with(&format!("Closed as a duplicate; {go_on} #{target}")), "{}", comments[0]);
        assert_eq!(self.own_closes(number), (1, 0), "#{number}");
        assert!(!self.is_open(number), "#{number} is open");
        assert_eq!(self.labels(number), ["possible-duplicate"], "#{number}");
        let duplicate = self.duplicate_of(number);
        let world = self.github().world();
        let item = world.issue(REPO, plain(number));
        let (is_pull, reason) = (item.pull.is_some(), item.state_reason.clone());
        if is_pull {
            assert_eq!((reason, duplicate), (None, None), "#{number}");
        } else {
            assert_eq!((reason.as_deref(), duplicate), (Some("duplicate"), Some(plain(target))), "#{number}");
        }
    }
}

/// The result of one item in an applied or undone plan, with its reason.
#[track_caller]
pub(crate) fn result(document: &Value, number: i64) -> (String, String) {
    let item = of(&document["items"], number);
    let word = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    (word("result"), word("reason"))
}

pub(crate) fn closes(requests: &[Recorded]) -> usize {
    let closes = |request: &&Recorded| {
        request.method == "PATCH" && request.body.as_ref().is_some_and(|body| body["state"] == "closed")
    };
    requests.iter().filter(closes).count()
}
