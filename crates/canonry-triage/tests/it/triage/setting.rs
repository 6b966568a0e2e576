//! A store, an emulated GitHub with two originals, scripted models, and a person who reports them again.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use canonry_domain::{Extractor, ItemNumber, ItemType, OnlineThresholds, TriageMode};
use canonry_github::outbox::Outbox;
use canonry_github::{GitHub, ManualClock};
use canonry_models::chat::{ChatProvider, ChatSettings, RemoteChat, TokenBudget};
use canonry_models::{ApiKey, Provider, RemoteEmbedder, RemoteSettings};
use canonry_retrieval::RetrievalMode;
use canonry_store::{OutboxEntry, StoredTriageAction, StoredTriageRecord};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{NewIssue, Permission};
use canonry_testkit::models::ModelServer;
pub(crate) use canonry_testworld::{OWN, TOKEN, number, plain};
use canonry_testworld::{TestWorld, token_auth, world_with_token};
use canonry_triage::{
    AnswerUse, DetectOptions, Detectors, EmbedOptions, IntentExtractor, ItemQuery, Judge, SyncOptions, TriageError,
    TriageOutcome, TriageRecheck, TriageRules, detect_new, embed, refetch_item, sync, triage_item,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const LABEL: &str = "possible-duplicate";
const BODY: &str = "After the change of last week the exporter writes its summary twice to the console, once at the \
    beginning and once at the end of each run, and the second copy carries the numbers of the first one.";

pub(crate) struct Setting {
    world: TestWorld,
    pub(crate) models: ModelServer,
    pub(crate) rules: TriageRules,
    /// As trusted as the compiled-in judge, unless a test is about that.
    pub(crate) judge: Extractor,
    /// Makes the intent cards, if cards are compared.
    pub(crate) extractor: Option<IntentExtractor<'static>>,
    answer: Arc<Mutex<String>>,
    runs: AtomicUsize,
}

impl Deref for Setting {
    type Target = TestWorld;

    fn deref(&self) -> &TestWorld {
        &self.world
    }
}

/// The indexes of the two originals; each has its own direction in the vectors.
pub(crate) const ALPHA: usize = 0;
pub(crate) const BETA: usize = 1;
/// A direction without an original.
pub(crate) const GAMMA: usize = 2;

impl Setting {
    /// Two open issues in the store that have nothing in common; the judge calls everything a duplicate of the first.
    pub(crate) async fn new(database: TestDatabase) -> Self {
        let mut world = world_with_token(REPO);
        for login in ["ann", "zoe", "bob", "eve"] {
            world.user(login);
        }
        world.bot("stale[bot]");
        world.collaborator(REPO, "maint", Permission::Maintain);
        world.open(REPO, "zoe", NewIssue::new("Original alpha: the exporter writes its summary twice", BODY));
        world.open(REPO, "zoe", NewIssue::new("Original beta: the exporter writes its summary twice", BODY));
        let world = TestWorld::start(database, world, REPO, token_auth()).await;
        let models = ModelServer::start().await;
        models.vector_for("Original alpha", near(ALPHA, 1.0));
        models.vector_for("Original beta", near(BETA, 1.0));
        let answer = Arc::new(Mutex::new(yes(1, 0.96)));
        let says = Arc::clone(&answer);
        models.answer_by(move |request| {
            let answer = says.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Some(about_exchanged(&answer, &request.prompt()))
        });
        let rules = TriageRules {
            mode: TriageMode::Suggest,
            max_candidates: 3,
            exclude_labels: Vec::new(),
            cooldown: SignedDuration::from_hours(24),
            ask_for_description: false,
            grace: None,
        };
        let runs = AtomicUsize::new(0);
        let setting = Self { world, models, rules, judge: Extractor::Local, extractor: None, answer, runs };
        setting.sync().await;
        setting
    }

    pub(crate) fn later(&self, hours: i64) {
        self.emulator.world().advance(hours * 3_600);
    }

    pub(crate) async fn sync(&self) {
        let options = SyncOptions::default();
        sync(&self.store, &self.github(), &self.repo.name, options, &mut |_| {}).await.expect("synced");
    }

    /// Ann reports an original again, with this cosine to it.
    pub(crate) fn report(&self, original: usize, cosine: f64) -> ItemNumber {
        self.report_as(original, cosine, NewIssue::new(&self.title(original, cosine), BODY))
    }

    pub(crate) fn report_as(&self, original: usize, cosine: f64, issue: NewIssue) -> ItemNumber {
        self.models.vector_for(&tag(original, cosine), near(original, cosine));
        let mut world = self.emulator.world();
        world.advance(1);
        number(world.open(REPO, "ann", issue))
    }

    /// A title from which the scripted model knows the cosine of its issue to an original.
    pub(crate) fn title(&self, original: usize, cosine: f64) -> String {
        let tag = tag(original, cosine);
        self.models.vector_for(&tag, near(original, cosine));
        format!("Seen by me, {tag}: the exporter writes its summary twice")
    }

    /// Gives every text with these words this cosine to an original.
    pub(crate) fn vector_of(&self, words: &str, original: usize, cosine: f64) {
        self.models.vector_for(words, near(original, cosine));
    }

    pub(crate) fn edit_title(&self, item: ItemNumber, title: &str) {
        let mut world = self.emulator.world();
        world.advance(1);
        world.edit_title(REPO, plain(item), "ann", title);
    }

    pub(crate) fn judge_says(&self, answer: String) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    pub(crate) fn run_id(&self) -> String {
        format!("run-{}", self.runs.fetch_add(1, Ordering::SeqCst))
    }

    /// Triages an issue and publishes the writes.
    pub(crate) async fn triage(&self, item: ItemNumber) -> TriageOutcome {
        let triaged = self.triage_only(item).await;
        self.publish().await;
        triaged
    }

    pub(crate) async fn triage_only(&self, item: ItemNumber) -> TriageOutcome {
        self.try_triage(item, &self.run_id()).await.expect("triaged")
    }

    pub(crate) async fn try_triage(&self, item: ItemNumber, run_id: &str) -> Result<TriageOutcome, TriageError> {
        let outbox = self.outbox().await;
        self.triage_with(Some(&outbox), true, item, run_id, TokenBudget::default()).await
    }

    pub(crate) async fn triage_with(
        &self,
        outbox: Option<&Outbox>,
        asks_github: bool,
        item: ItemNumber,
        run_id: &str,
        budget: TokenBudget,
    ) -> Result<TriageOutcome, TriageError> {
        let (github, embedder, chat) = (self.github(), self.embedder(), self.chat());
        let with = self.detectors(asks_github.then_some(&github), &embedder, &chat);
        let used_for = match self.rules.mode {
            TriageMode::Grace => AnswerUse::Close,
            TriageMode::Off | TriageMode::Shadow | TriageMode::Suggest => AnswerUse::Suggestion,
        };
        let options = DetectOptions { used_for, ..options(run_id, budget) };
        let (now, item_type) = (self.now(), self.item_type(item));
        // As a webhook would deliver it.
        if asks_github {
            refetch_item(&self.store, &github, &self.repo, item_type, item).await.expect("fetched");
        }
        let item = self.store.corpus().item(self.repo.id, item_type, item).await.expect("reads").expect("stored");
        triage_item(&self.store, outbox, &self.repo, item, with, &options, &self.rules, now).await
    }

    /// Everything that a triage does up to its record. Returns the id of the record.
    pub(crate) async fn detect_only(&self, item: ItemNumber, run_id: &str) -> i64 {
        let (github, embedder, chat) = (self.github(), self.embedder(), self.chat());
        let all = EmbedOptions { only_changed: true, ..EmbedOptions::default() };
        embed(&self.store, &embedder, &self.repo, all, self.now(), &mut |_| {}).await.expect("embedded");
        let with = self.detectors(Some(&github), &embedder, &chat);
        let query = ItemQuery { repo: self.repo.name.clone(), item_type: None, number: item };
        let options = options(run_id, TokenBudget::default());
        let detected = detect_new(&self.store, &query, with, &options, self.now()).await;
        detected.expect("detected").1.triage_id.expect("a record")
    }

    fn detectors<'a>(
        &self,
        github: Option<&'a GitHub>,
        embedder: &'a RemoteEmbedder,
        chat: &'a RemoteChat,
    ) -> Detectors<'a> {
        let judge = Judge::Model { provider: self.judge, model: chat };
        Detectors { github, embedder, extractor: self.extractor, judge, snapshots: None, indexes: None }
    }

    fn item_type(&self, item: ItemNumber) -> ItemType {
        let world = self.emulator.world();
        let is_pull = world.get(REPO).issues.get(&plain(item)).is_some_and(|issue| issue.pull.is_some());
        if is_pull { ItemType::Pr } else { ItemType::Issue }
    }

    pub(crate) fn embedder(&self) -> RemoteEmbedder {
        let settings = RemoteSettings {
            base_url: self.models.base_url(),
            key: Some(ApiKey::new("sk-nobody-may-read-this")),
            model: "scripted".to_owned(),
            ..RemoteSettings::new(Provider::OpenAi)
        };
        RemoteEmbedder::with_clock(settings, Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)))
            .expect("usable settings")
    }

    pub(crate) fn chat(&self) -> RemoteChat {
        let settings = ChatSettings {
            base_url: self.models.base_url(),
            key: Some(ApiKey::new("sk-nobody-may-read-this")),
            model: "scripted".to_owned(),
            ..ChatSettings::new(ChatProvider::OpenAi)
        };
        RemoteChat::with_clock(settings, Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH))).expect("usable settings")
    }

    /// Publishes everything that a service may send by itself, and waits as long as necessary.
    pub(crate) async fn publish(&self) {
        let outbox = self.outbox().await;
        let recheck = TriageRecheck::new(self.store.clone(), self.github());
        for _ in 0..40 {
            while outbox.publish_unattended(&recheck).await.expect("published") {}
            self.emulator.world().advance(30);
        }
    }

    /// Our comments on an issue, without their markers.
    pub(crate) fn comments(&self, item: ItemNumber) -> Vec<String> {
        let world = self.emulator.world();
        let text = |body: &str| body.split("\n\n<!-- canonry:v1:").next().unwrap_or_default().to_owned();
        world.comments_by(REPO, plain(item), OWN).iter().map(|comment| text(&comment.body)).collect()
    }

    pub(crate) fn comment_id(&self, item: ItemNumber) -> u64 {
        self.emulator.world().comments_by(REPO, plain(item), OWN).first().expect("a comment").id
    }

    pub(crate) fn labels(&self, item: ItemNumber) -> Vec<String> {
        self.emulator.world().issue(REPO, plain(item)).labels.clone()
    }

    pub(crate) async fn records(&self, item: ItemNumber) -> Vec<StoredTriageRecord> {
        self.store.duplicates().triage_records_of(self.repo.id, ItemType::Issue, item).await.expect("reads")
    }

    pub(crate) async fn actions(&self, item: ItemNumber) -> Vec<StoredTriageAction> {
        self.store.duplicates().triage_actions_of(self.repo.id, ItemType::Issue, item).await.expect("reads")
    }

    /// The outbox entries of an issue: the state of each, and the reason.
    pub(crate) async fn entries(&self, item: ItemNumber) -> Vec<String> {
        let entries = self.store.outbox().of_item(self.repo.id, item).await.expect("reads");
        let line = |entry: &OutboxEntry| {
            let reason = entry.reason.as_deref().map(|reason| format!(" {reason}")).unwrap_or_default();
            format!("{} {}{reason}", entry.kind, entry.state.as_str())
        };
        entries.iter().map(line).collect()
    }
}

fn options(run_id: &str, budget: TokenBudget) -> DetectOptions {
    DetectOptions {
        k: 8,
        thresholds: OnlineThresholds::default(),
        mode: RetrievalMode::Dense,
        budget,
        run_id: run_id.to_owned(),
        as_of: None,
        used_for: AnswerUse::Suggestion,
        is_backtest: false,
    }
}

/// The same answer to the second reading, in which the item that it names is the source. An answer that calls itself
/// `once` stays as it is.
fn about_exchanged(answer: &str, prompt: &str) -> String {
    let Ok(mut parsed) = serde_json::from_str::<serde_json::Value>(answer) else { return answer.to_owned() };
    let asked = prompt.rsplit("Is the source a duplicate of one of ").next().and_then(|rest| rest.split('?').next());
    let numbers: Vec<i64> = asked.unwrap_or_default().split(", ").filter_map(|number| number.parse().ok()).collect();
    let is_once = parsed["reasoning"] == ONCE;
    match (numbers.as_slice(), parsed["duplicate_of"].as_i64()) {
        ([only], Some(named)) if named > 0 && named < *only && !is_once => {
            parsed["duplicate_of"] = json!(only);
            parsed.to_string()
        }
        _ => answer.to_owned(),
    }
}

/// The reasoning of an answer that a second reading does not confirm.
pub(crate) const ONCE: &str = "Only in this order.";

/// The result of a triage, in short.
pub(crate) fn told(triaged: &TriageOutcome) -> (Option<&'static str>, &str) {
    (triaged.action.map(|action| action.as_str()), &triaged.reason)
}

/// A duplicate, with every structural key in favour of it.
pub(crate) fn yes(of: i64, confidence: f64) -> String {
    yes_because(of, confidence, "Both tell of the same summary that is written twice.")
}

pub(crate) fn yes_because(of: i64, confidence: f64, reasoning: &str) -> String {
    json!({
        "is_duplicate": true, "duplicate_of": of, "confidence": confidence, "reasoning": reasoning,
        "relation": "same_instance", "root_cause_match": "same", "scope_relation": "same_scope",
        "path_match": "same", "certainty": "sure",
    })
    .to_string()
}

pub(crate) fn no() -> String {
    json!({"is_duplicate": false, "duplicate_of": 0, "confidence": 0.2, "reasoning": "Another cause."}).to_string()
}

/// A vector with this cosine to one original's, and 0 to the other's.
fn near(original: usize, cosine: f64) -> Vec<f32> {
    let mut vector = vec![0.0; 8];
    vector[original] = cosine as f32;
    vector[original + 4] = (1.0 - cosine * cosine).sqrt() as f32;
    vector
}

fn tag(original: usize, cosine: f64) -> String {
    format!("case {original}-{cosine}")
}
