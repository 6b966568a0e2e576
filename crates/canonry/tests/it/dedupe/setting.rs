//! A database, a scripted model and a corpus whose items are as similar as a test requires.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use canonry_domain::{JUDGE_PROMPT_VERSION, JudgeProof, Probability};
use canonry_store::{NewAudit, Representation, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Emulator;
use canonry_testkit::models::{ModelServer, vectors_with_pairs};
use serde_json::{Value, json};

use crate::dedupe::on_github::TOKEN;
use crate::dedupe::questions::{Question, no, yes};
use crate::place::{Place, Ran};

pub(crate) const REPO: &str = "octo/cat";
const KEY: &str = "sk-nobody-may-read-this";

/// Long enough not to be vague, and without words that mark a bug or a feature.
pub(crate) const BODY: &str = "After the change of last week the exporter writes its summary twice to the console, once \
    at the beginning and once at the end of each run, and the second copy carries the numbers of the first one. It \
    happens on every machine that we have looked at so far, whatever the settings of the exporter are.";

type Titles = Arc<Mutex<Vec<(i64, String)>>>;

pub(crate) struct Setting {
    pub(crate) place: Place,
    pub(crate) database: TestDatabase,
    pub(crate) models: ModelServer,
    pub(crate) emulator: Option<Emulator>,
    /// Whether the scripted judge has been proven by an audit, so that it may close.
    pub(crate) judge_is_proven: bool,
    titles: Titles,
    /// How many dimensions the vectors so far use.
    directions: Mutex<usize>,
}

/// The default title of an item.
pub(crate) fn title(number: i64) -> String {
    format!("Report {number}: the exporter writes its summary twice")
}

/// An open issue of a contributor, as an import line.
pub(crate) fn issue(number: i64) -> Value {
    json!({
        "number": number, "title": title(number), "body": BODY, "state": "open", "author": "ann", "assignees": [],
        "comments": 0, "created_at": "2026-01-05T10:00:00Z", "updated_at": "2026-01-05T10:00:00Z",
    })
}

/// The same with other values; `null` removes a key.
pub(crate) fn issue_with(number: i64, changed: Value) -> Value {
    let mut line = issue(number);
    let keys = line.as_object_mut().expect("a line is an object");
    let Value::Object(changed) = changed else { panic!("changes are an object") };
    for (key, value) in changed {
        if value.is_null() {
            keys.remove(&key);
        } else {
            keys.insert(key, value);
        }
    }
    line
}

impl Setting {
    /// On SQLite, without GitHub; the judge says no to everything.
    pub(crate) fn sqlite() -> Self {
        Self::on(TestDatabase::sqlite())
    }

    pub(crate) fn on(database: TestDatabase) -> Self {
        let setting = Self {
            place: Place::new(),
            database,
            models: ModelServer::start_blocking(),
            emulator: None,
            judge_is_proven: true,
            titles: Titles::default(),
            directions: Mutex::new(0),
        };
        setting.judge_says(|_| no());
        setting
    }

    /// Runs the program for [`REPO`], with everything it needs in its environment.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_about(REPO, arguments)
    }

    /// Starts the program without waiting for its end.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command_about(REPO, arguments).spawn().expect("the program starts")
    }

    fn command_about(&self, repo: &str, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.args(["--repo", repo]).env("CANONRY_DATABASE_URL", self.database.url()).env("OPENAI_API_KEY", KEY);
        if let Some(emulator) = &self.emulator {
            command.env("CANONRY_GITHUB_API_URL", emulator.url()).env("GITHUB_TOKEN", TOKEN);
        }
        command
    }

    pub(crate) fn run_about(&self, repo: &str, arguments: &[&str]) -> Ran {
        let ran = Ran::of(self.command_about(repo, arguments).output().expect("the program starts"));
        let shown = format!("{ran:?}");
        assert!(!shown.contains(KEY) && !shown.contains(TOKEN), "a secret is shown: {ran:?}");
        ran
    }

    /// Runs a command that embeds or compares, with these variables in its environment.
    pub(crate) fn run_models_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = self.command_about(REPO, arguments);
        command.args(self.embedder()).envs(variables.iter().copied());
        Ran::of(command.output().expect("the program starts"))
    }

    #[track_caller]
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).succeeded().json()
    }

    /// Registers a title by which questions are read. It is cut at the first control character, which no prompt
    /// contains.
    pub(crate) fn knows(&self, number: i64, title: &str) {
        let title = title.split(char::is_control).next().unwrap_or_default();
        let mut titles = self.titles.lock().expect("no test panicked here");
        titles.retain(|(known, _)| *known != number);
        titles.push((number, title.to_owned()));
    }

    /// Answers every question with this from now on.
    pub(crate) fn judge_says(&self, answer: impl Fn(&Question) -> String + Send + 'static) {
        let titles = Arc::clone(&self.titles);
        self.models.answer_by(move |request| {
            let titles = titles.lock().expect("no test panicked here");
            Question::read(request, &titles).map(|question| answer(&question))
        });
    }

    /// The judge finds these sources to be duplicates of these targets, with these confidences and full structure,
    /// and no others.
    pub(crate) fn judge_knows(&self, edges: &[(i64, i64, f64)]) {
        let edges: BTreeMap<i64, (i64, f64)> = edges.iter().map(|&(from, to, how)| (from, (to, how))).collect();
        self.judge_says(move |question| match edges.get(&question.source) {
            Some(&(to, how)) if question.candidates.contains(&to) => yes(to, how),
            _ => no(),
        });
    }

    /// The questions to the judge so far.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let titles = self.titles.lock().expect("no test panicked here");
        let chats = self.models.requests().into_iter().filter(|request| request.path == "/chat/completions");
        chats.map(|request| Question::read(&request, &titles).expect("it tells of known items")).collect()
    }

    pub(crate) fn asked_about(&self, source: i64) -> usize {
        self.questions().iter().filter(|question| question.source == source).count()
    }

    /// Imports items and registers their titles.
    pub(crate) fn import(&self, lines: &[Value]) {
        for line in lines {
            self.knows(line["number"].as_i64().expect("a number"), line["title"].as_str().expect("a title").trim());
        }
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        self.place.write("import.jsonl", lines.join("\n"));
        self.run(&["import", "import.jsonl"]).succeeded();
    }

    /// Stores an audit that proves the scripted judge, unless there is one.
    pub(crate) fn prove_judge(&self, makes_repo: bool) {
        let url = self.database.url().parse().expect("a database URL");
        let prove = async move {
            // If the database does not exist, the command itself reports that.
            if !makes_repo && Store::open_existing(&url).await.is_err() {
                return;
            }
            let store = Store::open(&url, jiff::Timestamp::UNIX_EPOCH).await.expect("opens");
            let name = REPO.parse().expect("a name");
            let repo = match makes_repo {
                true => Some(store.repos().ensure(&name, jiff::Timestamp::UNIX_EPOCH).await.expect("stored")),
                false => store.repos().find(&name).await.expect("reads"),
            };
            // Without a repository there is nothing to judge yet.
            let Some(repo) = repo else { return };
            if store.judge().latest_audit(repo.id).await.expect("reads").is_none() {
                let audit = NewAudit {
                    representation: Representation::Raw,
                    seed: 1,
                    sample_size: 20,
                    cheap_provider: "openai".to_owned(),
                    cheap_model: "judge-1".to_owned(),
                    strong_provider: "command".to_owned(),
                    strong_model: "people".to_owned(),
                    min_edge: Probability::ONE,
                    run_id: "proof".to_owned(),
                    prompt_version: Some(JUDGE_PROMPT_VERSION),
                    proof: Some(JudgeProof { right: 20, wrong: 0 }),
                };
                store.judge().write_audit(repo.id, &audit, &[], jiff::Timestamp::UNIX_EPOCH).await.expect("written");
            }
            store.disconnect().await;
        };
        // In a separate thread, because some tests call this from within a runtime.
        let run = || tokio::runtime::Runtime::new().expect("a runtime").block_on(prove);
        std::thread::scope(|scope| scope.spawn(run).join()).expect("proven");
    }

    /// Gives items vectors with these cosines. Their titles must be registered.
    pub(crate) fn similar(&self, numbers: &[i64], cosine: impl Fn(i64, i64) -> f64) {
        let mut directions = self.directions.lock().expect("no test panicked here");
        let vectors = vectors_with_pairs(numbers.len(), *directions, |one, other| cosine(numbers[one], numbers[other]));
        *directions += numbers.len();
        let titles = self.titles.lock().expect("no test panicked here");
        for (number, vector) in numbers.iter().zip(vectors) {
            let (_, title) = titles.iter().find(|(known, _)| known == number).expect("an item that is known");
            self.models.vector_for(title, vector);
        }
    }

    /// Gives all of them the same cosine to each other.
    pub(crate) fn alike(&self, numbers: &[i64], cosine: f64) {
        self.similar(numbers, |_, _| cosine);
    }

    /// Gives each its cosine to the middle one; two others have the product of their cosines.
    pub(crate) fn around(&self, middle: i64, others: &[(i64, f64)]) {
        let to_middle: BTreeMap<i64, f64> = others.iter().copied().chain([(middle, 1.0)]).collect();
        let numbers: Vec<i64> = [middle].into_iter().chain(others.iter().map(|(number, _)| *number)).collect();
        self.similar(&numbers, |one, other| to_middle[&one] * to_middle[&other]);
    }

    /// The options that name the scripted embedder.
    fn embedder(&self) -> [String; 4] {
        ["--embedder".to_owned(), "openai".to_owned(), "--embed-base-url".to_owned(), self.models.base_url()]
    }

    /// The options that name the scripted judge.
    fn judge_options(&self) -> [String; 6] {
        let words = ["--provider", "openai", "--model", "judge-1", "--base-url"].map(str::to_owned);
        let [provider, openai, model, name, base] = words;
        [provider, openai, model, name, base, self.models.base_url()]
    }

    /// Embeds what changed and computes the candidates of every item, whatever the state of the candidates.
    pub(crate) fn find_candidates(&self, more: &[&str]) -> Value {
        let embedder = self.embedder();
        let embedder: Vec<&str> = embedder.iter().map(String::as_str).collect();
        self.succeeds(&[&["embed", "--only-changed"], &embedder[..]].concat());
        let candidates = ["candidates", "--retrieval", "dense", "--state", "all"];
        self.succeeds(&[&candidates[..], &embedder, more].concat())
    }

    /// Runs `judge` with the scripted judge.
    pub(crate) fn run_judge(&self, more: &[&str]) -> Ran {
        self.with_judge(&[&["judge", "--json"], more].concat())
    }

    /// Runs a command that needs a judge with the scripted one.
    pub(crate) fn with_judge(&self, arguments: &[&str]) -> Ran {
        if self.judge_is_proven {
            self.prove_judge(false);
        }
        let judge = self.judge_options();
        self.run(&[arguments, &judge.iter().map(String::as_str).collect::<Vec<_>>()].concat())
    }

    /// The same for a command that also embeds.
    pub(crate) fn with_models(&self, arguments: &[&str]) -> Ran {
        let embedder = self.embedder();
        let retrieval = ["--retrieval", "dense"];
        let all = [arguments, &embedder.iter().map(String::as_str).collect::<Vec<_>>(), &retrieval].concat();
        self.with_judge(&all)
    }

    /// The document of a successful `judge`.
    #[track_caller]
    pub(crate) fn judge(&self, more: &[&str]) -> Value {
        self.run_judge(more).succeeded().json()
    }

    /// Imports the items as open and nearly identical, accepts exactly these edges, and then imports the items in
    /// their real state.
    pub(crate) fn with_edges(&self, lines: &[Value], edges: &[(i64, i64, f64)]) {
        let opened = |line: &Value| {
            let mut line = line.clone();
            line["state"] = json!("open");
            line
        };
        let open: Vec<Value> = lines.iter().map(opened).collect();
        self.import(&open);
        let numbers: Vec<i64> = lines.iter().map(|line| line["number"].as_i64().expect("a number")).collect();
        self.alike(&numbers, 0.97);
        self.find_candidates(&["--k", "50"]);
        self.judge_knows(edges);
        let judged = self.judge(&[]);
        assert_eq!(judged["stats"]["accepted_edges"], edges.len(), "{judged}");
        self.judge_says(|_| no());
        if open != lines {
            self.import(lines);
        }
        self.models.forget_requests();
    }

    pub(crate) fn maintainers(&self, logins: &[&str]) {
        self.run(&[&["maintainers", "set"], logins].concat()).succeeded();
    }

    #[track_caller]
    pub(crate) fn show(&self, number: i64) -> Value {
        self.succeeds(&["show", "--type", "issue", "--number", &number.to_string()])
    }

    /// What `show` prints for people.
    pub(crate) fn story(&self, number: i64) -> String {
        self.run(&["show", "--type", "issue", "--number", &number.to_string()]).succeeded().stdout
    }

    /// The accepted decisions about an item that are in force.
    #[track_caller]
    pub(crate) fn accepted(&self, number: i64) -> Vec<Value> {
        let decisions = self.show(number)["decisions"].as_array().expect("a list of decisions").clone();
        let in_force = |one: &Value| one["final_status"] == "accepted" && one["superseded_at"].is_null();
        decisions.into_iter().filter(in_force).collect()
    }

    #[track_caller]
    pub(crate) fn plan(&self, more: &[&str]) -> Value {
        self.succeeds(&[&["plan-close"], more].concat())
    }
}

/// Asserts this exit status, and that the error sentence contains `part`.
#[track_caller]
pub(crate) fn refused(ran: &Ran, exit: i32, part: &str) {
    assert_eq!(ran.exit, Some(exit), "{ran:?}");
    let sentence = ran.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("no sentence: {ran:?}"));
    assert!(sentence.contains(part) && sentence.trim_end().lines().count() == 1, "{part}: {ran:?}");
    if !ran.stdout.is_empty() {
        assert!(ran.json()["error"]["message"].is_string(), "nothing but the error is told: {ran:?}");
    }
}

/// The entry about an item in a list of a document.
#[track_caller]
pub(crate) fn of(list: &Value, number: i64) -> &Value {
    let found = list.as_array().expect("a list").iter().find(|entry| entry["number"] == number);
    found.unwrap_or_else(|| panic!("nothing about #{number}: {list}"))
}

/// The status of a source after judging, and the reason.
#[track_caller]
pub(crate) fn ruling(judged: &Value, number: i64) -> (String, Option<String>) {
    let decision = of(&judged["decisions"], number);
    let status = decision["final_status"].as_str().unwrap_or_else(|| panic!("no status: {decision}"));
    (status.to_owned(), decision["veto_reason"].as_str().map(str::to_owned))
}

/// The rows of a plan: number, and the target of a close or the reason of a skip.
#[track_caller]
pub(crate) fn rows(plan: &Value) -> Vec<(i64, Result<i64, String>)> {
    let rows = plan["items"].as_array().unwrap_or_else(|| panic!("no rows: {plan}")).iter().map(|row| {
        let number = row["number"].as_i64().expect("a number");
        let outcome = match row["action"].as_str() {
            Some("close") => Ok(row["target"].as_i64().unwrap_or_else(|| panic!("a close without a target: {row}"))),
            Some("skip") => Err(row["skip_reason"].as_str().unwrap_or_else(|| panic!("no reason: {row}")).to_owned()),
            _ => panic!("neither close nor skip: {row}"),
        };
        (number, outcome)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

pub(crate) fn close(number: i64, target: i64) -> (i64, Result<i64, String>) {
    (number, Ok(target))
}

pub(crate) fn skip(number: i64, reason: &str) -> (i64, Result<i64, String>) {
    (number, Err(reason.to_owned()))
}

/// The clusters of `canonicalize`: canonical and all members, sorted.
#[track_caller]
pub(crate) fn clusters(document: &Value) -> Vec<(i64, Vec<i64>)> {
    let clusters = document["clusters"].as_array().unwrap_or_else(|| panic!("no clusters: {document}")).iter();
    let mut clusters: Vec<_> = clusters
        .map(|cluster| {
            assert!(cluster["because"].as_str().is_some_and(|words| !words.is_empty()), "no reason: {cluster}");
            let number = |member: &Value| member.as_i64().or_else(|| member["number"].as_i64()).expect("a number");
            let mut members: Vec<i64> = cluster["members"].as_array().expect("members").iter().map(number).collect();
            let canonical = cluster["canonical"].as_i64().expect("a canonical");
            assert!(members.contains(&canonical), "the canonical is a member: {cluster}");
            members.sort_unstable();
            (canonical, members)
        })
        .collect();
    clusters.sort();
    clusters
}
