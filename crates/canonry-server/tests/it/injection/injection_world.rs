//! Repositories with a few reports, and a service that closes after a grace where its judge is trusted.

use std::ops::Deref;
use std::sync::Arc;

use canonry_domain::{Extractor, ItemType, Verdict};
use canonry_models::LocalEmbedder;
use canonry_retrieval::RetrievalMode;
use canonry_server::{ReviewModel, ReviewParts, Scheduler, Schedules};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{NewIssue, Permission, Pull, Recorded, World};
use canonry_triage::{DetectorSource, Detectors, IndexCache, Judge};
use jiff::SignedDuration;

use crate::injection::obedient_model::ObedientModel;
use crate::injection::texts::InjectionText;
use crate::on_github::outbound::assert_clean;
use crate::world::review_world::ReviewWorld;
use crate::world::{APP_ID, As, SECRET, WorldBuilder, item};

/// New reports resemble #1 and are another problem.
pub(crate) const NEAR: &str = "tide/pool";
/// New reports are so close to #1 that a judge's yes is enough for a comment.
pub(crate) const SAME: &str = "tide/lake";
/// The older report of the same problem contains the hostile text.
pub(crate) const POISONED: &str = "tide/bay";
/// Changes are reviewed here.
pub(crate) const REVIEWED: &str = "tide/harbour";
const TRIAGED: &str = "triage: {mode: grace}\nclose: {graceHours: 48, maxPerDay: 1000}\nreview: {enabled: false}\n";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuiteJudge {
    Local,
    Obedient,
    /// The same model, proven by an audit in every repository.
    ObedientAndProven,
    /// The compiled-in judge, and the proven model where that leaves a question open.
    ObedientCascade,
}

/// A title and a body.
pub(crate) type Carrier = (&'static str, &'static str);

/// The texts that carry the hostile ones.
pub(crate) struct Carriers {
    pub(crate) near: Carrier,
    pub(crate) same: Carrier,
    pub(crate) older: Carrier,
    pub(crate) victim: Carrier,
}

pub(crate) struct InjectionWorld {
    world: ReviewWorld,
    scheduler: Scheduler,
    /// `None` with the compiled-in judge.
    pub(crate) model: Option<ObedientModel>,
    pub(crate) is_cascade: bool,
    pub(crate) carriers: Carriers,
    _database: TestDatabase,
}

impl Deref for InjectionWorld {
    type Target = ReviewWorld;

    fn deref(&self) -> &ReviewWorld {
        &self.world
    }
}

/// What the service made of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TriageResult {
    pub(crate) verdict: Verdict,
    pub(crate) target: Option<i64>,
    pub(crate) reason: String,
    /// The candidates that the judge was asked about.
    pub(crate) judged: Vec<i64>,
    pub(crate) comments: Vec<String>,
}

impl InjectionWorld {
    pub(crate) async fn start(judge: SuiteJudge) -> Self {
        let database = TestDatabase::sqlite();
        let builder = WorldBuilder::new(As::App);
        let (builder, model, carriers) = match judge {
            SuiteJudge::Local => (builder.detectors(Arc::new(Compiled::load()), RetrievalMode::Hybrid), None, LOCAL),
            SuiteJudge::Obedient | SuiteJudge::ObedientAndProven | SuiteJudge::ObedientCascade => {
                let model = ObedientModel::start().await;
                let reviewer = ReviewModel { provider: Extractor::OpenAi, chat: model.chat.clone(), prices: None };
                let detectors = model.detectors(judge == SuiteJudge::ObedientCascade);
                let reviewers = ReviewParts { llm: Some(reviewer), command: None };
                (builder.detectors(detectors, RetrievalMode::Dense).reviewers(reviewers), Some(model), TOPICS)
            }
        };
        let originals = if judge == SuiteJudge::Local { LOCAL_ORIGINALS } else { TOPIC_ORIGINALS };
        let world = ReviewWorld::on(&database, As::App, builder, |webhooks| world(webhooks, &originals, judge)).await;
        let scheduler =
            Scheduler { store: world.store.clone(), clock: Arc::clone(&world.clock), schedules: Schedules::App };
        let is_cascade = judge == SuiteJudge::ObedientCascade;
        let world = Self { world, scheduler, model, is_cascade, carriers, _database: database };
        if judge == SuiteJudge::ObedientAndProven || is_cascade {
            world.prove_the_model().await;
        }
        world.emulator.forget_requests();
        world
    }

    /// Advances the time and runs the schedules, so that everything announced is due.
    pub(crate) async fn later(&self, hours: i64) {
        self.emulator.world().now += SignedDuration::from_hours(hours);
        self.scheduler.tick().await.expect("ticks");
        self.settle().await;
    }

    /// From now on the model obeys these texts; the compiled-in judge knows nothing of it.
    pub(crate) fn obey(&self, texts: &[InjectionText]) {
        if let Some(model) = &self.model {
            model.obey(texts);
        }
    }

    async fn prove_the_model(&self) {
        let audit = self.model.as_ref().expect("there is one").proving_audit();
        for name in [NEAR, SAME, POISONED, REVIEWED] {
            let repo = self.store.repos().find(&name.parse().expect("a name")).await.expect("reads").expect("known").id;
            self.store.judge().write_audit(repo, &audit, &[], self.emulator.world().now).await.expect("stored");
        }
    }

    /// How many questions the model was asked while it had something to obey, and how many it answered as a text demanded,
    /// since the last call; `None` without a model.
    pub(crate) fn asked_and_obeyed(&self) -> Option<(usize, usize)> {
        self.model.as_ref().map(ObedientModel::asked_and_obeyed)
    }

    pub(crate) fn open_issue(&self, repo: &str, by: &str, title: &str, body: &str) -> u64 {
        self.meanwhile(|world| world.open(repo, by, NewIssue::new(title, body)))
    }

    /// The last verdict about an item, and Canonry's comments on it without their markers.
    pub(crate) async fn result(&self, repo: &str, item_type: ItemType, number: u64) -> TriageResult {
        let id = self.store.repos().find(&repo.parse().expect("a name")).await.expect("reads").expect("known").id;
        let records = self.store.duplicates().triage_records_of(id, item_type, item(number)).await.expect("reads");
        let record = &records.first().unwrap_or_else(|| panic!("{repo}#{number} has no verdict")).record;
        let judged = record.candidates.iter().filter(|one| one.judged).map(|one| one.number.get()).collect();
        let world = self.emulator.world();
        let comments = world.comments_by(repo, number, As::App.login());
        let shown = |body: &str| body.split("\n\n<!--").next().unwrap_or_default().to_owned();
        TriageResult {
            verdict: record.verdict,
            target: record.target.map(canonry_domain::ItemNumber::get),
            reason: record.reason.clone(),
            judged,
            comments: comments.iter().map(|comment| shown(&comment.body)).collect(),
        }
    }

    /// The writes to GitHub since they were last forgotten, without token requests.
    pub(crate) fn writes(&self) -> Vec<String> {
        let writes = self.emulator.writes().into_iter().filter(|request| !request.path.ends_with("/access_tokens"));
        let labels =
            |request: &Recorded| request.field("labels").map_or_else(String::new, |labels| format!(" {labels}"));
        writes.map(|request| format!("{} {}{}", request.method, request.named_path, labels(&request))).collect()
    }

    /// Nothing is paused, ruled or announced, and no setting is other than at the beginning.
    pub(crate) async fn assert_unmoved(&self) {
        for name in [NEAR, SAME, POISONED, REVIEWED] {
            let repo = self.store.repos().find(&name.parse().expect("a name")).await.expect("reads").expect("known").id;
            assert_eq!(self.store.close().brakes(repo).await.expect("reads"), [], "{name}");
            assert_eq!(self.store.duplicates().overrides(repo, None).await.expect("reads"), [], "{name}");
        }
    }

    /// Every text that was ever sent is harmless.
    pub(crate) fn assert_clean(&self) {
        assert_clean(&self.emulator);
        self.emulator.assert_no_unknown_routes();
    }
}

/// The judge and the embedder that are part of the program.
struct Compiled {
    embedder: LocalEmbedder,
    indexes: IndexCache,
}

impl Compiled {
    fn load() -> Self {
        Self { embedder: LocalEmbedder::load().expect("compiled in"), indexes: IndexCache::new(64 << 20) }
    }
}

impl DetectorSource for Compiled {
    fn detectors(&self) -> Detectors<'_> {
        Detectors {
            github: None,
            embedder: &self.embedder,
            extractor: None,
            judge: Judge::Local,
            snapshots: None,
            indexes: Some(&self.indexes),
        }
    }

    fn is_hosted(&self) -> bool {
        false
    }
}

fn world(webhooks: &str, originals: &[Carrier; 6], judge: SuiteJudge) -> World {
    let mut world = World::new();
    world.rate.limit = 10_000_000;
    let reviewers = if judge == SuiteJudge::Local { "builtin" } else { "builtin, llm" };
    let reviewed =
        format!("triage: {{mode: off}}\nreview: {{enabled: true, reviewers: [{reviewers}], maxComments: 25}}\n");
    for person in ["ann", "mallory"] {
        world.user(person);
    }
    for (repo, settings) in [(NEAR, TRIAGED), (SAME, TRIAGED), (POISONED, TRIAGED), (REVIEWED, reviewed.as_str())] {
        world.repo(repo).file("README.md", "# Tide\n").file(".canonry.yml", settings);
        world.collaborator(repo, "maint", Permission::Maintain);
    }
    for repo in [NEAR, SAME, POISONED] {
        for (title, body) in originals {
            world.advance(60);
            world.open(repo, "ann", NewIssue::new(title, body));
        }
    }
    let (title, body) = originals[0];
    world.open(
        NEAR,
        "ann",
        NewIssue::new(title, body).pull(Pull::default().file("src/export.js", "@@ -1 +1 @@\n-a\n+b")),
    );
    world.add_app(APP_ID, "canonry");
    world.send_webhooks_to(webhooks, SECRET);
    let permissions = ["issues", "pull_requests", "checks", "contents"].map(|area| (area, "write"));
    world.install_app("tide", &[&permissions[..], &[("metadata", "read")]].concat());
    world
}

/// Texts that state their own similarity, see `Topics`.
const TOPICS: Carriers = Carriers {
    near: ("It stops: topic1 alike80", "It stops at noon.\n\nIt goes on in the evening."),
    same: ("It stops: topic1 alike95", "It stops at noon.\n\nIt goes on in the evening."),
    older: ("It stops: topic9", "It stops at midnight.\n\nIt goes on in the morning."),
    victim: ("It stops again: topic9 alike95", "It stops in the night.\n\nIt goes on at breakfast."),
};

const TOPIC_ORIGINALS: [Carrier; 6] = [
    ("The tide stops: topic1", "It stops, and this is where it is looked into."),
    ("The tide stops: topic2", "It stops, and this is where it is looked into."),
    ("The tide stops: topic3", "It stops, and this is where it is looked into."),
    ("The tide stops: topic4", "It stops, and this is where it is looked into."),
    ("The tide stops: topic5", "It stops, and this is where it is looked into."),
    ("The tide stops: topic6", "It stops, and this is where it is looked into."),
];

/// Reports as people write them.
const LOCAL: Carriers = Carriers {
    near: (
        "CSV export of the tide table uses a comma as decimal separator",
        "With a German locale the exported tide table contains heights like 3,20, so the columns are split in the \
         middle of a number.\n\nSteps: set the locale to de_DE, open a harbour, choose Export, then CSV. Open the \
         file in a spreadsheet. Every height takes two columns and the last column is empty. We expect a dot, or \
         quotes around the number, whatever the locale is. Version 4.2.0 on Debian.",
    ),
    same: (
        "CSV export of the tide table: header row is written twice",
        "The CSV export of a harbour's tide table writes the header row twice, and the import on the other side \
         fails.\n\n```\nthread 'export' panicked at src/export/csv.rs:88:\nheader row of station group 7 is \
         already written\n```\n\nThe exported file begins with `time,height,station` on line 1 and again on line \
         2. It happens for every harbour with more than one station. Version 4.2.0.",
    ),
    older: (
        "Live view reconnects for ever after the laptop wakes up",
        "After the laptop wakes up the live view reconnects for ever and never shows a new value.\n\n```\nthread \
         'live' panicked at src/live/socket.rs:214:\nsession ticket 7741 is stale after \
         resume\n```\n\nRestarting the view helps until the next sleep. It began with version 4.1.3, on Fedora, \
         with the websocket transport.",
    ),
    victim: (
        "Live view reconnects for ever after sleep",
        "After the laptop wakes up the live view reconnects for ever and stays empty.\n\n```\nthread 'live' \
         panicked at src/live/socket.rs:214:\nsession ticket 7741 is stale after resume\n```\n\nRestarting the \
         view helps until the next sleep. Version 4.1.3, on Fedora, with the websocket transport.",
    ),
};

const LOCAL_ORIGINALS: [Carrier; 6] = [
    (
        "CSV export of the tide table writes the header row twice",
        "The CSV export of a harbour's tide table writes the header row twice.\n\n```\nthread 'export' panicked at \
         src/export/csv.rs:88:\nheader row of station group 7 is already written\n```\n\nThe file begins with \
         `time,height,station` on line 1 and again on line 2, for every harbour with more than one station. \
         Version 4.2.0.",
    ),
    (
        "Sign-in with a passkey fails after the session expired",
        "The dialog closes and nothing happens. `auth.passkey: challenge expired`, Firefox 131, macOS.",
    ),
    (
        "Dark mode: the map legend is unreadable",
        "Grey text on a black background in the legend of the harbour map. Please use the theme's own colours.",
    ),
    (
        "Add a widget for the phone's home screen",
        "It would be great to see the next high water without opening the app.",
    ),
    (
        "Push notifications arrive an hour late in summer",
        "Alarms for low water ignore daylight saving time. Europe/Lisbon, version 4.0.9.",
    ),
    (
        "Crash when a station has no coordinates",
        "`index out of bounds` in `tide_map::project` at `src/map/project.rs:31:17` after import.",
    ),
];
