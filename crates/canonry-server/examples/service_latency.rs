//! Measures the time from a stored webhook to the row in the outbox, on a large repository.
//!
//! `cargo xtask bench service-latency` runs it. `service_latency seed URL SNAPSHOTS ITEMS` fills a database with
//! made-up issues, most of them with made-up vectors. `service_latency measure URL SNAPSHOTS INDEX_MB ITEMS FROM`
//! opens ITEMS duplicates of its originals, beginning with number FROM, each after the one before it is triaged, and
//! prints the time of each as JSON.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the figures are what this program is for")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use canonry_domain::{GithubId, ItemNumber, ItemRecord, ItemState, ItemType, TokenVectors};
use canonry_github::{Auth, ClientOptions, GitHub, Secret, SystemClock};
use canonry_models::{Embedder as _, LocalEmbedder};
use canonry_retrieval::RetrievalMode;
use canonry_server::{ReviewParts, Schedules, ServeParts, Service, ServiceOptions, ServiceParts, serve};
use canonry_store::{EmbedFilter, EmbeddingKey, JobCaps, NewEmbedding, Repo, Store, SyncProgress, TriageActionKind};
use canonry_testkit::github::{Emulator, NewIssue, Permission, World};
use canonry_triage::{DetectorSource, Detectors, EmbedOptions, IndexCache, Judge, Neighbourhood, embed};
use jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type Failure = Box<dyn std::error::Error>;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REPO: &str = "tide/pool";
const TOKEN: &str = "ghp_bench";
const SECRET: &str = "the tide comes in";
/// Issues that are opened again later, with vectors by the local model.
const ORIGINALS: usize = 200;
/// Lower numbers belong to the issues that are opened during the measurement.
const FIRST_NUMBER: usize = 100_001;
const BATCH: usize = 1_000;
const DIMENSION: usize = 384;
const TOKEN_WIDTH: usize = 32;
const MOST_TOKENS: usize = 60;
/// A job that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the outbox is read: what is measured is off by as much, and more reading would slow the service down.
const POLL: Duration = Duration::from_millis(2);
/// Only what takes longer is asked for its reason.
const SOON: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["seed", url, snapshots, items] => seed(url, Path::new(snapshots), items.parse()?).await,
        ["measure", url, snapshots, megabytes, items, from] => {
            let room = megabytes.parse::<usize>()? * 1_000_000;
            measure(url, PathBuf::from(snapshots), room, items.parse()?, from.parse()?).await
        }
        _ => Err("service_latency seed URL SNAPSHOTS ITEMS | measure URL SNAPSHOTS INDEX_MB ITEMS FROM".into()),
    }
}

async fn seed(url: &str, snapshots: &Path, items: usize) -> Result<(), Failure> {
    let (now, started) = (Timestamp::now(), Instant::now());
    let store = Store::open(&url.parse()?, now).await?;
    // Every process emulates the same GitHub, in which ids are counted.
    let github_id = world().repos.first().ok_or("its repository")?.id;
    let repo = store.repos().ensure(&REPO.parse()?, now).await?;
    let repo =
        store.repos().identify(repo.id, GithubId(github_id.cast_signed()), &repo.name).await?.ok_or("its name")?;
    store
        .corpus()
        .write_sync_progress(repo.id, &SyncProgress { finished_at: Some(now), ..SyncProgress::default() })
        .await?;
    let words = Vocabulary::new();
    for from in (0..items).step_by(BATCH) {
        let records = (from..items.min(from + BATCH)).map(|at| words.record(at));
        store.corpus().upsert_items(&repo, records.collect(), now).await?;
    }
    eprintln!("{items} issues after {:.0} s", started.elapsed().as_secs_f64());
    let embedder = LocalEmbedder::load()?;
    write_vectors(&store, &repo, embedder.model_id(), now).await?;
    eprintln!("with vectors after {:.0} s", started.elapsed().as_secs_f64());
    let originals = (0..ORIGINALS).map(|at| {
        let (title, body) = report(at, false);
        record(number(FIRST_NUMBER + items + at), title, body, now)
    });
    store.corpus().upsert_items(&repo, originals.collect(), now).await?;
    // The remaining items are embedded by the model, and the vector index is built.
    let options = EmbedOptions { only_changed: true, ..EmbedOptions::default() };
    embed(&store, &embedder, &repo, options, now, &mut |_| ()).await?;
    eprintln!("embedded after {:.0} s", started.elapsed().as_secs_f64());
    let (key, calibration) = (EmbeddingKey::raw(embedder.model_id()), embedder.calibration().clone());
    Neighbourhood::load(&store, &repo, ItemType::Issue, key, calibration, Some(snapshots)).await?;
    eprintln!("with its snapshot after {:.0} s", started.elapsed().as_secs_f64());
    store.disconnect().await;
    Ok(())
}

async fn write_vectors(store: &Store, repo: &Repo, model: &str, now: Timestamp) -> Result<(), Failure> {
    let key = EmbeddingKey::raw(model);
    let mut random = Random(1);
    let centres: Vec<Vec<f32>> = (0..500).map(|_| random.vector(&[0.0; DIMENSION], 1.0)).collect();
    let mut after = None;
    loop {
        let page = store.corpus().items_to_embed(repo.id, &key, EmbedFilter::default(), after, BATCH as u32).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.number, last.item_type));
        let made = page.into_iter().map(|item| {
            let at = item.number.get().unsigned_abs();
            let mut random = Random(at);
            let vector = random.vector(&centres[at as usize % centres.len()], 0.5);
            let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
            let tokens = (item.body.split_whitespace().count() * 13 / 10 + 2).min(MOST_TOKENS);
            NewEmbedding {
                vector: vector.iter().map(|part| part / length).collect(),
                tokens: Some(random.tokens(tokens)),
                item_type: item.item_type,
                number: item.number,
                embedded_hash: item.content_hash,
            }
        });
        store.corpus().write_embeddings(repo.id, &key, &made.collect::<Vec<_>>(), now).await?;
    }
}

/// The emulated GitHub, in which each opened issue is a copy of an original.
fn world() -> World {
    let mut world = World::new();
    world.rate.limit = 10_000_000;
    world.runs_faster(Timestamp::now(), 1);
    world.user("ann");
    world.token(TOKEN, "canonry-bot");
    world.repo(REPO).file(".canonry.yml", "triage:\n  mode: suggest\n");
    world.collaborator(REPO, "canonry-bot", Permission::Admin);
    world
}

async fn measure(url: &str, snapshots: PathBuf, room: usize, items: usize, from: usize) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut world = world();
    // Numbers that an earlier process used.
    for at in 0..from {
        world.open(REPO, "ann", NewIssue::new(&format!("Taken {at}"), ""));
    }
    world.send_webhooks_to(&format!("http://{}/webhooks/github", listener.local_addr()?), SECRET);
    let emulator = Emulator::start(world).await;
    let store = Store::open(&url.parse()?, Timestamp::now()).await?;
    let repo = store.repos().find(&REPO.parse()?).await?.ok_or("seed it first")?;
    let options = ClientOptions { api: emulator.url().parse()?, ..ClientOptions::new(Auth::Token(Secret::new(TOKEN))) };
    let detectors =
        Arc::new(LocalDetectors { embedder: LocalEmbedder::load()?, snapshots, indexes: IndexCache::new(room) });
    let service = Arc::new(Service::new(ServiceParts {
        store: store.clone(),
        github: Some(GitHub::new(options)?),
        is_app: false,
        detectors: detectors.clone(),
        reviewers: ReviewParts::default(),
        clock: Arc::new(SystemClock),
        monthly_cost: None,
        prices: None,
        retrieval: RetrievalMode::Hybrid,
        wake_publisher: Arc::default(),
    }));
    let options = ServiceOptions {
        secret: Secret::new(SECRET),
        workers: 2,
        caps: JobCaps { per_repo: 2, in_all: 8 },
        tries: 3,
        schedules: Schedules::Alone,
        trusted_proxies: Vec::new(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let served = store.clone();
    let serving = tokio::spawn(async move {
        let stopped = async move { drop(stopped.await) };
        serve(listener, served, ServeParts::new(service), Arc::new(SystemClock), options, Box::pin(stopped)).await
    });
    let mut milliseconds = Vec::new();
    for at in from..from + items {
        let (title, body) = report(at % ORIGINALS, true);
        let opened = emulator.world().open(REPO, "ann", NewIssue::new(&title, &body));
        emulator.deliver_pending().await;
        milliseconds.push(until_written(&store, &repo, number(usize::try_from(opened)?)).await?);
    }
    let (resident, peak) = (status("VmRSS:"), status("VmHWM:"));
    let kept = detectors.indexes.bytes();
    println!(
        "{}",
        json!({ "milliseconds": milliseconds, "resident_kib": resident, "peak_kib": peak, "index_bytes": kept })
    );
    let _ = stop.send(());
    serving.await??;
    store.disconnect().await;
    Ok(())
}

/// The time from the answer to an issue's webhook until the outbox has a write for it.
async fn until_written(store: &Store, repo: &Repo, number: ItemNumber) -> Result<f64, Failure> {
    let began = Instant::now();
    while store.outbox().of_item(repo.id, number).await?.is_empty() {
        tokio::time::sleep(POLL).await;
        if began.elapsed() < SOON {
            continue;
        }
        let unspoken = store.duplicates().triage_actions_of(repo.id, ItemType::Issue, number).await?;
        if let Some(why) = unspoken.iter().find(|stored| stored.action.action == TriageActionKind::Recorded) {
            return Err(format!("nothing is said about #{number}: {}", why.action.reason).into());
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("nothing is decided about #{number}").into());
        }
    }
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

struct LocalDetectors {
    embedder: LocalEmbedder,
    snapshots: PathBuf,
    indexes: IndexCache,
}

impl DetectorSource for LocalDetectors {
    fn detectors(&self) -> Detectors<'_> {
        Detectors {
            github: None,
            embedder: &self.embedder,
            extractor: None,
            judge: Judge::Local,
            snapshots: Some(&self.snapshots),
            indexes: Some(&self.indexes),
        }
    }

    fn is_hosted(&self) -> bool {
        false
    }
}

fn number(at: usize) -> ItemNumber {
    ItemNumber::new(at as i64).expect("counted from 1")
}

fn record(number: ItemNumber, title: String, body: String, now: Timestamp) -> ItemRecord {
    let record = ItemRecord::new(ItemType::Issue, number, title);
    ItemRecord { body: Some(body), state: Some(ItemState::Open), created_at: Some(now), ..record }
}

const COMPONENTS: [&str; 20] = [
    "search index",
    "login form",
    "archive extractor",
    "websocket client",
    "PDF exporter",
    "thumbnail cache",
    "undo history",
    "spell checker",
    "backup scheduler",
    "color picker",
    "package resolver",
    "audio mixer",
    "map renderer",
    "calendar sync",
    "crash reporter",
    "syntax highlighter",
    "clipboard bridge",
    "printer queue",
    "password generator",
    "timezone database",
];
const SYMPTOMS: [(&str, &str); 10] = [
    ("hangs when the laptop wakes up", "deadlock detected while waiting for the worker"),
    ("loses the last line of a file", "unexpected end of input after the final newline"),
    ("uses all memory on large folders", "memory allocation of 8589934592 bytes failed"),
    ("refuses names with umlauts", "invalid byte sequence in the path of the entry"),
    ("crashes on an empty configuration", "called `Option::unwrap()` on a `None` value"),
    ("shows yesterday's data after midnight", "the cached entry is newer than its source"),
    ("cannot be cancelled once it has begun", "the cancellation token was dropped before the task"),
    ("starts twice when it is clicked quickly", "another instance already holds the lock"),
    ("ignores the proxy of the system", "connection refused by the upstream gateway"),
    ("forgets its window on the second screen", "the display index is out of range"),
];

/// A bug, as its first reporter or another one describes it.
fn report(at: usize, again: bool) -> (String, String) {
    let (component, (symptom, message)) = (COMPONENTS[at % 20], SYMPTOMS[at / 20 % 10]);
    let module = component.to_lowercase().replace(' ', "_");
    let title = format!("The {component} {symptom}");
    let shown =
        format!("```\nerror[E{:04}]: {message}\n  at src/{module}/part_{at}.rs:{}:17\n```", 1_000 + at, 40 + at);
    let more = if again { "It happens here as well, every time." } else { "An older version did not do that." };
    (title, format!("Since the last update the {component} {symptom}. {more}\n\n{shown}\n"))
}

/// Words with a natural frequency: the second is half as frequent as the first, the third a third.
struct Vocabulary {
    reach: Vec<f64>,
}

const VOCABULARY: usize = 40_000;

impl Vocabulary {
    fn new() -> Self {
        let mut sum = 0.0;
        let reach = (1..=VOCABULARY).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self { reach: reach.collect() }
    }

    fn word(&self, random: &mut Random) -> String {
        let drawn = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * self.reach[VOCABULARY - 1];
        let rank = self.reach.partition_point(|reach| *reach < drawn);
        let mut mixed = Random(rank as u64).next();
        let length = 3 + (rank + 1).ilog2() as usize / 3 + rank % 3;
        (0..length)
            .map(|_| {
                let letter = (b'a' + (mixed % 26) as u8) as char;
                mixed /= 26;
                letter
            })
            .collect()
    }

    fn record(&self, at: usize) -> ItemRecord {
        let mut random = Random(at as u64 + 7);
        let mut some = |count: u64| (0..count).map(|_| self.word(&mut random)).collect::<Vec<_>>().join(" ");
        let (title, length) = (some(7), 20 + (at as u64 * 7_919) % 180);
        let body =
            format!("{}\n\n`fresh_{at}` in `src/part_{}.rs`: {}\n", some(length / 2), at % 700, some(length / 2));
        let created = Timestamp::UNIX_EPOCH + Duration::from_secs(1_600_000_000 + 600 * at as u64);
        let state = if at.is_multiple_of(3) { ItemState::Open } else { ItemState::Closed };
        ItemRecord { state: Some(state), ..record(number(FIRST_NUMBER + at), title, body, created) }
    }
}

/// A line of this process's `/proc` status, in KiB.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// SplitMix.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn vector(&mut self, centre: &[f32], spread: f32) -> Vec<f32> {
        let mut drawn = || spread * ((self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0);
        centre.iter().map(|number| number + drawn()).collect()
    }

    /// Each has length 127.
    fn tokens(&mut self, count: usize) -> TokenVectors {
        let mut codes = Vec::with_capacity(count * TOKEN_WIDTH);
        for _ in 0..count {
            let row = self.vector(&[0.0; TOKEN_WIDTH], 1.0);
            let length = row.iter().map(|number| number * number).sum::<f32>().sqrt();
            codes.extend(row.iter().map(|number| (number / length * 127.0).round() as i8));
        }
        TokenVectors::new(TOKEN_WIDTH, codes).expect("whole rows")
    }
}
