//! Runs the whole service on the demo's GitHub, with a clock that the played week moves.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use canonry_console::{
    AdminToken, ConsoleCommand, ConsoleOauthApp, ConsoleParts, OneTimeCodes, console_routes, form_key, fresh_token,
};
use canonry_domain::ItemNumber;
use canonry_domain::review::ReviewSubject;
use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{
    ApiAccess, ApiParts, Metrics, Operations, Publish, ReviewParts, Scheduler, Schedules, ServeParts, ServeSummary,
    Service, ServiceOptions, ServiceParts, api_routes, operations_routes, serve,
};
use canonry_store::{DatabaseUrl, DeliveryState, JobCaps, JobFilter, JobState, OpenOptions, OutboxScope, Repo, Store};
use canonry_testkit::github::{Emulator, TEST_APP_PRIVATE_KEY, World};
use canonry_triage::{FixIndexes, LOOKUPS_AT_ONCE, Lookup};
use futures_util::future::LocalBoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::clock::DemoClock;
use crate::models::LocalModels;

use crate::pull_requests::UNPINNED;
use crate::week::{BRINDLE_REPO, Week};
use crate::world::{APP_ID, install, world};

const WORKERS: u32 = 4;
/// The console's client id at the demo's GitHub.
const CLIENT_ID: &str = "Iv23liCanonryDemo";
/// The person at the browser, as the demo's GitHub knows them: a maintainer of brindle who may only read the others.
pub const VISITOR: &str = "ottilie";
/// How long the service may take for one step of the week; a slow machine takes a second for the longest.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Demo {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<DemoClock>,
    pub(crate) address: SocketAddr,
    pub(crate) admin_token: Secret,
    pub(crate) one_time_codes: Arc<OneTimeCodes>,
    pub(crate) begins: Timestamp,
    pub(crate) models: Arc<LocalModels>,
    scheduler: Scheduler,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<ServeSummary>>,
}

impl Demo {
    /// A token of the visitor for the demo's GitHub.
    pub fn personal_token(&self) -> Secret {
        let token = Secret::new(&format!("ghp_{}", fresh_token().expose()));
        self.emulator.world().token(token.expose(), VISITOR);
        token
    }

    /// Starts GitHub and the service, and installs the App.
    pub fn start(
        listener: TcpListener,
        folder: &Path,
        begins: Timestamp,
        commands: Vec<ConsoleCommand>,
    ) -> LocalBoxFuture<'_, Result<Self>> {
        Box::pin(Self::start_in(listener, folder, begins, commands))
    }

    async fn start_in(
        listener: TcpListener,
        folder: &Path,
        begins: Timestamp,
        commands: Vec<ConsoleCommand>,
    ) -> Result<Self> {
        let address = listener.local_addr()?;
        let emulator = Arc::new(Emulator::start(world(begins)?).await);
        let clock = Arc::new(DemoClock::new(Arc::clone(&emulator)));
        let url = DatabaseUrl::Sqlite(folder.join("canonry.db"));
        let connections = OpenOptions { connections: WORKERS + 8 };
        let store = Store::open_with(&url, connections, begins).await?;
        let snapshots = folder.join("canonry.db.index");
        private_folder(&snapshots)?;
        let models = Arc::new(LocalModels::with_snapshots(snapshots));
        let secret = fresh_token();
        let admin_token = fresh_token();
        let oauth = ConsoleOauthApp { client_id: CLIENT_ID.to_owned(), client_secret: fresh_token() };
        sign_people_in(&mut emulator.world(), &oauth, address);
        let one_time_codes = Arc::new(OneTimeCodes::default());
        let parts = parts(&emulator, &store, &clock, &models, &admin_token, &one_time_codes, (oauth, commands)).await?;
        let options = ServiceOptions {
            secret: secret.clone(),
            workers: WORKERS,
            caps: JobCaps { per_repo: 4, in_all: 64 },
            tries: 10,
            schedules: Schedules::App,
            trusted_proxies: Vec::new(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let ticking: Arc<dyn Clock> = clock.clone();
        let served =
            serve(listener, store.clone(), parts, ticking, options, Box::pin(async move { drop(stopped.await) }));
        let task = tokio::spawn(served);
        let scheduler = Scheduler { store: store.clone(), clock: clock.clone(), schedules: Schedules::App };
        install(&mut emulator.world(), &format!("http://{address}/webhooks/github"), secret.expose());
        Ok(Self { emulator, store, clock, address, admin_token, one_time_codes, begins, models, scheduler, stop, task })
    }

    pub(crate) fn people<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.emulator.world())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) async fn repo(&self, name: &str) -> Result<Repo> {
        self.store.repos().find(&name.parse()?).await?.with_context(|| format!("{name} never came into the store"))
    }

    /// Moves the time to this minute of the week, and runs the schedules.
    pub(crate) async fn until(&self, minute: i64) -> Result<()> {
        self.clock.move_to(self.begins + SignedDuration::from_mins(minute));
        self.scheduler.tick().await?;
        self.settle().await
    }

    /// Delivers GitHub's webhooks until there is nothing left to do. Time moves only to the next moment that a job or
    /// a write waits for.
    pub(crate) async fn settle(&self) -> Result<()> {
        let settling = async {
            let mut idle = 0;
            while idle < 2 {
                let told = self.emulator.deliver_pending().await;
                for delivery in &told {
                    let status = delivery.attempt.as_ref().map_or(0, |attempt| attempt.status);
                    if status != 202 {
                        bail!("the webhook {} was answered with {status}", delivery.event);
                    }
                }
                let now = self.now();
                let at_work = self.store.jobs().status(now).await?.running > 0
                    || self.store.outbox().is_sending(OutboxScope::Unattended, now).await?;
                let next = self.next_moment().await?;
                if at_work || !told.is_empty() || next.is_some_and(|next| next <= now) {
                    idle = 0;
                } else if let Some(next) = next {
                    // Checked twice, so that a job that has just started is not missed.
                    idle = 0;
                    tokio::time::sleep(Duration::from_millis(4)).await;
                    let still = self.store.jobs().status(now).await?.running == 0
                        && !self.store.outbox().is_sending(OutboxScope::Unattended, now).await?;
                    if still && self.next_moment().await? == Some(next) {
                        self.clock.move_to(next);
                    }
                } else {
                    idle += 1;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, settling).await {
            Ok(settled) => settled,
            Err(_) => bail!("the service did not come to rest within {} seconds", PATIENCE.as_secs()),
        }
    }

    /// The next moment that a job or a write waits for.
    async fn next_moment(&self) -> Result<Option<Timestamp>> {
        let queued = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
        let jobs = self.store.jobs().list(&queued, 1_000).await?;
        let job = jobs.iter().map(|job| job.run_after).min();
        let write = self.store.outbox().next_moment(OutboxScope::Unattended).await?;
        Ok([job, write].into_iter().flatten().min())
    }

    /// Fails if a job failed or GitHub got a request for a route that it does not have.
    pub(crate) async fn check_health(&self) -> Result<()> {
        self.emulator.assert_no_unknown_routes();
        let dead = JobFilter { state: Some(JobState::Dead), ..JobFilter::default() };
        if let Some(job) = self.store.jobs().list(&dead, 1).await?.first() {
            bail!("a job of the kind {} failed: {}", job.kind, job.error.as_deref().unwrap_or("no reason"));
        }
        let failed =
            self.store.deliveries().counts().await?.into_iter().find(|(state, _)| *state == DeliveryState::Dead);
        if let Some((_, count)) = failed.filter(|(_, count)| *count > 0) {
            bail!("{count} webhooks failed");
        }
        Ok(())
    }

    /// The address of the console.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the emulated GitHub's API.
    pub fn github_url(&self) -> String {
        self.emulator.url()
    }

    /// An address that signs in with the admin token.
    pub fn sign_in_url(&self) -> String {
        format!("{}/sign-in#{}", self.url(), self.admin_token.expose())
    }

    /// An address that signs in the first person who opens it.
    pub fn sign_in_once_url(&self) -> String {
        format!("{}{}", self.url(), self.one_time_codes.link(self.now()))
    }

    /// Uses the machine's own time from now on.
    pub fn follow_wall_clock(&self) {
        self.clock.follow_the_machine();
    }

    /// The finding that moved with its line over three pushes.
    pub fn moved_finding<'a>(&'a self, week: &'a Week) -> LocalBoxFuture<'a, Result<i64>> {
        Box::pin(async move {
            let repo = self.repo(BRINDLE_REPO).await?;
            let subject = ReviewSubject::Pull(item(week.pulls.line_ends.context("it was opened")?));
            let last = self.store.review().list(repo.id, Some(&subject), 1).await?;
            let last = last.first().context("it was reviewed")?;
            let sightings = self.store.review().sightings(last.id).await?;
            let found = sightings.iter().find(|sighting| sighting.finding.title == UNPINNED);
            Ok(found.context("it was found")?.id.get())
        })
    }

    pub fn stop(self) -> LocalBoxFuture<'static, Result<()>> {
        Box::pin(self.stop_service())
    }

    async fn stop_service(self) -> Result<()> {
        // A person in a browser may have requested any page.
        self.emulator.forgive_unknown_routes();
        // An error means that it has already stopped.
        let _ = self.stop.send(());
        self.task.await??;
        self.store.disconnect().await;
        Ok(())
    }
}

/// Lets people sign in to the console with the demo's GitHub.
fn sign_people_in(world: &mut World, oauth: &ConsoleOauthApp, address: SocketAddr) {
    let callback = format!("http://{address}/auth/github/callback");
    let mut program = canonry_testkit::github::OauthApp::new(&oauth.client_id, oauth.client_secret.expose(), &callback);
    program.person = Some(VISITOR.to_owned());
    world.oauth = Some(program);
}

/// The parts of the service, as `serve` makes them, with models that need no network.
async fn parts(
    emulator: &Emulator,
    store: &Store,
    clock: &Arc<DemoClock>,
    models: &Arc<LocalModels>,
    admin_token: &Secret,
    one_time_codes: &Arc<OneTimeCodes>,
    (oauth, commands): (ConsoleOauthApp, Vec<ConsoleCommand>),
) -> Result<ServeParts> {
    let api: url::Url = emulator.url().parse()?;
    let clock: Arc<dyn Clock> = clock.clone();
    let key = AppKey::new(&APP_ID.to_string(), &Secret::new(TEST_APP_PRIVATE_KEY))?;
    let github = GitHub::new(ClientOptions {
        api: api.clone(),
        clock: Arc::clone(&clock),
        ..ClientOptions::new(Auth::App(key))
    })?;
    let (metrics, wake_publisher, wake_worker) = (Metrics::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let access = ApiAccess::new(store.clone(), api.clone(), Some(admin_token.clone()), Arc::clone(&clock));
    let lookup = Arc::new(Lookup {
        store: store.clone(),
        detectors: models.clone(),
        clock: Arc::clone(&clock),
        mode: RetrievalMode::Hybrid,
        fixes: FixIndexes::default(),
        places: Semaphore::new(LOOKUPS_AT_ONCE),
    });
    let console = console_routes(ConsoleParts {
        store: store.clone(),
        github: Some(github.clone()),
        github_api: api.clone(),
        clock: Arc::clone(&clock),
        oauth: Some(oauth),
        public_url: None,
        admin_token: AdminToken::given(admin_token),
        form_key: form_key(store).await?,
        one_time_codes: Some(Arc::clone(one_time_codes)),
        wake_worker: Arc::clone(&wake_worker),
        wake_publisher: Arc::clone(&wake_publisher),
        version: env!("CARGO_PKG_VERSION"),
        commands,
        lookup: Some(Arc::clone(&lookup)),
        public_checks: Vec::new(),
    });
    let routes = operations_routes(Operations {
        store: store.clone(),
        github: Some(github.clone()),
        clock: Arc::clone(&clock),
        metrics: metrics.clone(),
        metrics_token: None,
    })
    .merge(api_routes(ApiParts { access: Arc::new(access), lookup }))
    .merge(console);
    let service = Arc::new(Service::new(ServiceParts {
        store: store.clone(),
        github: Some(github),
        is_app: true,
        detectors: models.clone(),
        reviewers: ReviewParts::default(),
        clock,
        monthly_cost: None,
        prices: None,
        retrieval: RetrievalMode::Hybrid,
        wake_publisher: Arc::clone(&wake_publisher),
    }));
    let publisher = Some(Arc::clone(&service) as Arc<dyn Publish>);
    Ok(ServeParts { handler: service, metrics, publisher, wake_publisher, wake_worker, routes })
}

/// A number of the emulated GitHub as an item number of the store.
pub(crate) fn item(number: u64) -> ItemNumber {
    let number = i64::try_from(number).ok().and_then(|number| ItemNumber::new(number).ok());
    number.expect("invariant: the demo's numbers are small")
}

/// A folder that only this user can read.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
