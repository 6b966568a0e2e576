//! Runs of GitHub Actions on an emulated GitHub: one for each event, on machines that know only the state ref.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use canonry_github::{Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_review::Remote;
use canonry_server::{
    DatabasePlace, RunError, RunEvent, RunOnce, RunReport, Schedules, ServiceMaker, StateKeeper, StateRef,
};
use canonry_testkit::github::{Emulator, Permission, World};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::world::clocks::WaitingMoves;
use crate::world::{As, TOKEN, WorldBuilder};

pub(crate) const STATE: &str = "refs/canonry/state";

pub(crate) struct ActionsWorld {
    pub(crate) emulator: Arc<Emulator>,
    clock: Arc<dyn Clock>,
    folder: TempDir,
    repo: String,
    runs: std::sync::atomic::AtomicU64,
    /// Whether every run fails before it works, as without a model's key.
    pub(crate) is_broken: std::sync::atomic::AtomicBool,
    seen: std::sync::Mutex<usize>,
}

impl ActionsWorld {
    /// A world in which Actions writes with the account `canonry-bot`. No event has been handled.
    pub(crate) async fn new(mut world: World, repo: &str) -> Self {
        let own = As::Token.login();
        world.collaborator(repo, own, Permission::Write);
        world.token(TOKEN, own);
        world.rate.limit = 10_000_000;
        // Nobody listens: events are read from the world.
        world.send_webhooks_to("http://127.0.0.1:9/", "none");
        let emulator = Arc::new(Emulator::start(world).await);
        let folder = tempfile::tempdir().expect("a folder");
        let made =
            Command::new("git").args(["init", "--bare", "--quiet"]).arg(folder.path().join("origin.git")).status();
        assert!(made.expect("git runs").success());
        let clock = Arc::new(WaitingMoves::new(&emulator, Some(Duration::from_millis(300))));
        let (runs, seen) = (std::sync::atomic::AtomicU64::new(0), std::sync::Mutex::new(0));
        Self { emulator, clock, folder, repo: repo.to_owned(), runs, is_broken: false.into(), seen }
    }

    /// The events that people caused since the last call. Actions starts no run for what its own account does.
    pub(crate) fn new_events(&self) -> Vec<RunEvent> {
        let world = self.emulator.world();
        let mut seen = self.seen.lock().expect("alone");
        let triggers = ["issues", "issue_comment", "pull_request", "pull_request_review_comment"];
        let own = As::Token.login();
        let events = world.deliveries[*seen..]
            .iter()
            .filter(|delivery| triggers.contains(&delivery.event.as_str()))
            .filter(|delivery| delivery.payload["sender"]["login"] != own)
            .map(|delivery| RunEvent {
                id: format!("actions-{}", delivery.id),
                name: delivery.event.replace("pull_request", "pull_request_target").replace("_target_", "_"),
                payload: delivery.payload.to_string(),
            })
            .collect();
        *seen = world.deliveries.len();
        events
    }

    /// One run for each new event, one after the other, on the same machine.
    pub(crate) async fn settle(&self) {
        for event in self.new_events() {
            self.run("usual", event).await.expect("runs");
        }
    }

    /// A run on the schedule and one for each new event, all begun at the same moment, each on its own machine.
    pub(crate) async fn at_once(&self) {
        let events = self.new_events().into_iter().chain([self.schedule()]);
        let runs = events.enumerate().map(|(at, event)| async move { self.run(&format!("machine-{at}"), event).await });
        for ended in futures_util::future::join_all(runs).await {
            // Then the run that took over the state handled the event.
            assert!(matches!(ended, Ok(_) | Err(RunError::LeaseLost)), "{ended:?}");
        }
    }

    /// A run on the schedule after this time.
    pub(crate) async fn later(&self, time: SignedDuration) {
        self.emulator.world().now += time;
        // The last push of a killed run may still arrive; then this run gives way, and the next one goes on.
        while let Err(error) = self.run("usual", self.schedule()).await {
            assert!(matches!(error, RunError::LeaseLost), "{error}");
        }
    }

    pub(crate) fn schedule(&self) -> RunEvent {
        let run = self.runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        RunEvent { id: format!("schedule-{run}"), name: "schedule".to_owned(), payload: "{}".to_owned() }
    }

    /// A run on a machine; each machine has its own cache.
    pub(crate) async fn run(&self, machine: &str, event: RunEvent) -> Result<RunReport, RunError> {
        self.run_until(machine, event, Box::pin(std::future::pending())).await
    }

    /// A run that is told to stop.
    pub(crate) async fn run_until(
        &self,
        machine: &str,
        event: RunEvent,
        stop: BoxFuture<'_, ()>,
    ) -> Result<RunReport, RunError> {
        let folder = self.machine(machine);
        std::fs::create_dir_all(&folder).expect("a folder");
        let remote = format!("file://{}", self.folder.path().join("origin.git").display());
        let remote = Remote::new(&remote, None).expect("an address");
        let run = format!("{}-{:08x}", event.id, rand::random::<u32>());
        let state = StateRef::open(&folder.join(format!("{run}.git")), &remote, STATE).await?;
        let patience = SignedDuration::from_hours(1);
        let once = RunOnce {
            repo: self.repo.parse().expect("a name"),
            database: folder.join("canonry.db"),
            keeper: Some(StateKeeper { state, clock: Arc::clone(&self.clock), run, patience }),
            clock: Arc::clone(&self.clock),
            schedules: Schedules::Token,
            tries: 3,
            time_limit: SignedDuration::from_hours(1),
        };
        let make: ServiceMaker<'_> = Box::new(|store| {
            Box::pin(async move {
                if self.is_broken.load(std::sync::atomic::Ordering::Relaxed) {
                    return Err("OPENAI_API_KEY is not set".into());
                }
                let options = ClientOptions {
                    api: self.emulator.url().parse().expect("a URL"),
                    clock: Arc::clone(&self.clock),
                    jitter: Arc::new(|| 0.0),
                    request_timeout: Duration::from_secs(10),
                    ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
                };
                let github = GitHub::new(options).expect("a client");
                let builder = WorldBuilder::new(As::Token).topics();
                let service = builder.plain_service(store, &github, &self.clock, &Arc::new(Notify::new()));
                Ok(service.with_database_in(DatabasePlace::Portable { marker_secret: None }))
            })
        });
        once.handle(event, make, stop).await
    }

    /// The number of events in the state that no run has finished.
    pub(crate) fn waiting_events(&self) -> usize {
        self.state_files().iter().filter(|name| name.starts_with("event-")).count()
    }

    fn state_files(&self) -> Vec<String> {
        let listed = self.git(&["ls-tree", "--name-only", STATE]);
        String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect()
    }

    fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.folder.path().join("origin.git")).args(arguments);
        git.output().expect("git runs").stdout
    }

    /// Whether a file of the state contains this word.
    pub(crate) fn state_says(&self, word: &str) -> bool {
        let files = self.state_files();
        files.iter().any(|name| says(&self.git(&["cat-file", "blob", &format!("{STATE}:{name}")]), word))
    }

    /// Whether a file that a workflow would cache contains this word.
    pub(crate) fn cache_says(&self, word: &str) -> bool {
        let files =
            std::fs::read_dir(self.machine("usual")).expect("a folder").map(|file| file.expect("a file").path());
        files.filter(|path| path.is_file()).any(|path| says(&std::fs::read(path).expect("a file"), word))
    }

    /// From now on git does not reach the state, or reaches it again.
    pub(crate) fn hide_state(&self, is_hidden: bool) {
        let [here, away] = ["origin.git", "away.git"].map(|name| self.folder.path().join(name));
        let (from, to) = if is_hidden { (here, away) } else { (away, here) };
        std::fs::rename(from, to).expect("it is ours");
    }

    /// From now on GitHub refuses this many pushes to the state.
    pub(crate) fn refuse_pushes(&self, times: u32) {
        let origin = self.folder.path().join("origin.git");
        let hook =
            "#!/bin/sh\nleft=$(cat refusals)\n[ \"$left\" -gt 0 ] || exit 0\necho $((left - 1)) > refusals\nexit 1\n";
        std::fs::create_dir_all(origin.join("hooks")).expect("a folder");
        std::fs::write(origin.join("refusals"), times.to_string()).expect("a file");
        std::fs::write(origin.join("hooks/pre-receive"), hook).expect("a file");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(origin.join("hooks/pre-receive"), executable).expect("it is ours");
    }

    /// How many pushes GitHub will still refuse.
    pub(crate) fn refusals_left(&self) -> u32 {
        let left = std::fs::read_to_string(self.folder.path().join("origin.git/refusals")).expect("a file");
        left.trim().parse().expect("a number")
    }

    fn machine(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The machine's cache was evicted.
    pub(crate) fn lose_cache(&self) {
        let _ = std::fs::remove_dir_all(self.machine("usual"));
    }

    /// Somebody deleted the state ref, and the cache is gone too.
    pub(crate) fn lose_state(&self) {
        self.lose_cache();
        let origin = self.folder.path().join("origin.git");
        let deleted = Command::new("git").arg("-C").arg(origin).args(["update-ref", "-d", STATE]).status();
        assert!(deleted.expect("git runs").success());
    }
}

fn says(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}
