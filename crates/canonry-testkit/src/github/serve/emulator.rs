//! The handle of a running emulator: its address, its world, its records, its faults.

use canonry_boxed::boxed;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

use crate::github::serve::faults::{ArmedFault, FaultHandle};
use crate::github::serve::recorded::Recorded;
use crate::github::serve::server::{Inner, lock, run};
use crate::github::serve::webhooks::{Attempt, Delivery};
use crate::github::world::World;

/// The emulated GitHub, which serves on 127.0.0.1 from its own thread until it is dropped.
///
/// Dropping it panics if there was a request without a route.
pub struct Emulator {
    address: SocketAddr,
    shared: Arc<Mutex<Inner>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The locked world. Drop it before awaiting a request, because the server needs it too.
pub struct WorldGuard<'emulator> {
    inner: MutexGuard<'emulator, Inner>,
    before: Option<World>,
}

impl Deref for WorldGuard<'_> {
    type Target = World;

    fn deref(&self) -> &World {
        &self.inner.world
    }
}

impl DerefMut for WorldGuard<'_> {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.inner.world
    }
}

impl Drop for WorldGuard<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.inner.remember(before);
        }
    }
}

/// A client for services on this machine: without a proxy, and without the machine's certificates, which take long to
/// read.
pub fn loopback_client_builder() -> reqwest::ClientBuilder {
    // An error says that the process has a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().tls_certs_only([])
}

pub fn loopback_client() -> reqwest::Client {
    loopback_client_builder().build().expect("a client")
}

#[boxed]
impl Emulator {
    /// Serves a world on a free port of 127.0.0.1.
    pub async fn start(world: World) -> Self {
        Self::start_blocking(world)
    }

    /// The same for tests without a runtime. The server has its own thread and runtime either way, so
    /// it answers while the test blocks on a child process.
    pub fn start_blocking(mut world: World) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("a bound socket has an address");
        world.api_url = format!("http://{address}");
        let shared = Arc::new(Mutex::new(Inner::new(world)));
        let (stop, stopped) = oneshot::channel::<()>();
        let state = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime for the emulator").block_on(run(listener, state, stopped));
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The base of the API, for `--github-api`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The world, for reading or for changing it as people would.
    pub fn world(&self) -> WorldGuard<'_> {
        let mut inner = self.lock();
        inner.world.tick();
        inner.apply_due();
        let before = inner.history.is_some().then(|| inner.world.clone());
        WorldGuard { inner, before }
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    /// Every request so far that may have changed something.
    pub fn writes(&self) -> Vec<Recorded> {
        self.lock().requests.iter().filter(|request| request.is_write()).cloned().collect()
    }

    /// Every text that was ever sent to be written, even if the request failed: titles and bodies, comments inside
    /// reviews, outputs of check runs. They are kept when requests are forgotten.
    pub fn bodies_sent(&self) -> Vec<String> {
        self.lock().bodies_sent.clone()
    }

    pub fn forget_requests(&self) {
        let mut inner = self.lock();
        inner.forgotten += inner.requests.len();
        inner.requests.clear();
    }

    /// Keeps the JSON of answers from now on, to compare them with GitHub's description.
    pub fn keep_answers(&self) {
        self.lock().keeps_answers = true;
    }

    pub fn fault(&self, fault: ArmedFault) -> FaultHandle {
        let mut inner = self.lock();
        if fault.wants_history() {
            inner.keep_history();
        }
        inner.faults.add(fault)
    }

    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Sends all pending deliveries, oldest first, and returns them with their results.
    pub async fn deliver_pending(&self) -> Vec<Delivery> {
        let Some(webhook) = self.lock().world.webhook.clone() else { return Vec::new() };
        let pending = self.pending_deliveries();
        if pending.is_empty() {
            // Creating a client takes longer than checking that there is nothing to send.
            return Vec::new();
        }
        let client = loopback_client();
        let mut delivered = Vec::new();
        for mut delivery in pending {
            let (headers, body) = delivery.signed(&webhook.secret);
            let mut request = client.post(&webhook.url).body(body);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let status = request.send().await.map_or(0, |response| response.status().as_u16());
            delivery.attempt = self.note_attempt(delivery.id, status);
            delivered.push(delivery);
        }
        delivered
    }

    /// The pending deliveries, oldest first, for tests that send them themselves.
    pub fn pending_deliveries(&self) -> Vec<Delivery> {
        self.lock().world.deliveries.iter().filter(|delivery| delivery.attempt.is_none()).cloned().collect()
    }

    /// Records the result of a delivery: the receiver's status, or 0 if it could not be reached.
    pub fn note_attempt(&self, id: u64, status: u16) -> Option<Attempt> {
        let mut inner = self.lock();
        inner.world.tick();
        let attempt = Some(Attempt { at: inner.world.stamp(), status });
        let kept = inner.world.deliveries.iter_mut().find(|kept| kept.id == id)?;
        kept.attempt.clone_from(&attempt);
        attempt
    }

    /// # Panics
    /// If there was a request without a route.
    pub fn assert_no_unknown_routes(&self) {
        let unknown = self.lock().unknown.clone();
        assert!(unknown.is_empty(), "the emulator has no route for: {}", unknown.join(", "));
    }

    /// Forgets unknown routes, for tests that send them on purpose.
    pub fn forgive_unknown_routes(&self) {
        self.lock().unknown.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.shared)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the server has already ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if !std::thread::panicking() {
            self.assert_no_unknown_routes();
        }
    }
}
