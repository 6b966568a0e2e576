//! Accepts connections: limits how many are open at once, and how long an idle or slow client may keep one.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::http::address_limits::AddressPlaces;
use crate::http::body_timeouts::TimedBody;
use crate::http::trusted_proxies::TrustedProxies;
use crate::http::write_timeouts::TakingStream;

/// Request headers are far smaller. It is also the largest part of a body that is read at once, so that slow senders
/// on all connections use 32 MiB.
const MAX_HEAD: usize = 64 * 1024;
/// The machine has no file handles or no memory left; an immediate retry would only waste CPU.
const NO_MEANS: Duration = Duration::from_secs(1);

/// The answer to an address that has used all of its places.
const CROWDED: &str = "this address has too many connections; try again later\n";
/// Seconds after which the address may try again: slow clients are disconnected in little more.
const TRY_AGAIN: &str = "10";

/// What strangers may use before they have sent anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Connections at once. A further client waits until one of them ends.
    pub(crate) most: usize,
    /// Connections of one address at once, or requests if a trusted proxy forwards their addresses. More are refused.
    pub(crate) per_address: usize,
    /// How long a request's headers may take, counted from the moment the connection could have sent them. A
    /// connection that is idle for as long is closed too.
    pub(crate) headers: Duration,
    /// How long a request's body may take. Longer than the routes' own limits: they can say what is wrong, and this
    /// is for a route without a limit.
    pub(crate) body: Duration,
    /// How long a finished part of an answer may wait until the client accepts some of it; a handler may take as long
    /// as it likes to produce it. Linux reports free room when a third of its buffer, at most 4 MiB, is empty: a
    /// client that accepts 22 KB/s is never cut off, and most answers are smaller than the buffer.
    pub(crate) taking: Duration,
}

impl ConnectionLimits {
    /// Half of the 1,024 open files that most systems allow a process: the database, GitHub and models need some too.
    /// GitHub opens a few dozen connections, so a quarter of them is enough for one address.
    pub(crate) const USUAL: Self = Self {
        most: 512,
        per_address: 128,
        headers: Duration::from_secs(10),
        body: Duration::from_secs(15),
        taking: Duration::from_mins(1),
    };
}

/// Serves requests with `routes` until it is stopped; then it waits for the answers under way. Handlers get the
/// client's address from [`ConnectInfo`]: behind one of these proxies, the address that the proxy forwards. Dropping
/// this future closes all connections.
pub(crate) async fn serve_connections(
    listener: TcpListener,
    routes: Router,
    limits: ConnectionLimits,
    proxies: TrustedProxies,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(limits.most));
    let addresses = AddressPlaces::new(limits.per_address);
    let routes = RequestAnswerer {
        routes: TowerToHyperService::new(routes),
        limits,
        proxies: Arc::new(proxies),
        forwarded: AddressPlaces::new(limits.per_address),
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.headers).max_buf_size(MAX_HEAD);
    let (told, mut open) = (stop.clone(), JoinSet::new());
    loop {
        tokio::select! {
            (place, stream, peer) = next(&listener, &places) => {
                // A proxy may use all connections; the clients behind it have their own places.
                let own = if routes.proxies.trusts(peer.ip()) { Ok(None) } else { addresses.take(peer.ip()).map(Some).ok_or(()) };
                let Ok(own) = own else {
                    turn_away(stream, peer);
                    continue;
                };
                let talk = talk(http.clone(), stream, peer, routes.clone(), told.clone());
                open.spawn(async move {
                    talk.await;
                    drop((place, own));
                });
            }
            // A panic of a handler is already logged. Its connection is gone, and the others continue.
            Some(_) = open.join_next() => {}
            () = until_told(&mut stop) => break,
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

/// The next client, once there is a place.
async fn next(listener: &TcpListener, places: &Arc<Semaphore>) -> (OwnedSemaphorePermit, TcpStream, SocketAddr) {
    let place = match Arc::clone(places).try_acquire_owned() {
        Ok(place) => place,
        Err(_) => {
            tracing::debug!("the limit of connections is reached; new ones wait");
            Arc::clone(places).acquire_owned().await.expect("invariant: nobody closes the semaphore")
        }
    };
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (place, stream, peer),
            // The client disconnected before its turn.
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted; retrying");
                tokio::time::sleep(NO_MEANS).await;
            }
        }
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Sends the refusal and disconnects, without waiting for anything.
fn turn_away(stream: TcpStream, peer: SocketAddr) {
    tracing::debug!(%peer, "an address has reached its limit of connections; the next one is refused");
    let length = CROWDED.len();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: {TRY_AGAIN}\r\ncontent-length: {length}\r\n\
        connection: close\r\n\r\n{CROWDED}"
    );
    // Written into the empty buffer of a new socket. A client that does not read it sees the end of the connection.
    if let Ok(mut stream) = stream.into_std() {
        let _ = io::Write::write_all(&mut stream, answer.as_bytes());
    }
}

#[derive(Clone)]
struct RequestAnswerer {
    routes: TowerToHyperService<Router>,
    limits: ConnectionLimits,
    proxies: Arc<TrustedProxies>,
    /// Requests under way by the client address that trusted proxies forward.
    forwarded: AddressPlaces,
}

impl RequestAnswerer {
    async fn answer(self, mut request: Request<Incoming>, peer: SocketAddr) -> Result<Response, Infallible> {
        let asks = self.proxies.forwarded_for(peer.ip(), request.headers());
        // Kept until the answer is there.
        let _place = match asks.map(|asks| self.forwarded.take(asks)) {
            Some(None) => {
                let answer = (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, TRY_AGAIN)], CROWDED);
                return Ok(answer.into_response());
            }
            place => place,
        };
        let asks = asks.map_or(peer, |asks| SocketAddr::new(asks, peer.port()));
        request.extensions_mut().insert(ConnectInfo(asks));
        self.routes.call(request.map(|body| TimedBody::new(body, self.limits.body))).await
    }
}

/// Serves one connection, request by request.
async fn talk(
    http: http1::Builder,
    stream: TcpStream,
    peer: SocketAddr,
    answering: RequestAnswerer,
    mut stop: watch::Receiver<bool>,
) {
    // An answer is one small packet, and the next request of the connection waits for it. Without this option,
    // connections are only slower.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(TakingStream::new(stream, answering.limits.taking));
    let service = service_fn(move |request| answering.clone().answer(request, peer));
    let mut connection = pin!(http.serve_connection(stream, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = until_told(&mut stop) => {
            // Closes an idle connection at once, and another one after its answer.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection broke");
    }
}

async fn until_told(stop: &mut watch::Receiver<bool>) {
    // If the sender is gone, the service is stopping too.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;

    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::extract::ConnectInfo;
    use axum::http::StatusCode;
    use axum::routing::{get, post};
    use futures_util::{StreamExt as _, stream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::{Notify, watch};
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::{ConnectionLimits, serve_connections};
    use crate::http::trusted_proxies::TrustedProxies;

    const LONG: Duration = Duration::from_secs(600);
    const PATIENT: ConnectionLimits =
        ConnectionLimits { most: 8, per_address: 8, headers: LONG, body: LONG, taking: LONG };
    /// More than the sockets of both sides buffer.
    const MUCH: usize = 32 * 1024 * 1024;

    struct Door {
        address: SocketAddr,
        stop: watch::Sender<bool>,
        task: JoinHandle<()>,
        begun: Arc<Notify>,
        gate: Arc<Notify>,
    }

    impl Door {
        /// `/who` answers with the client's address; `/slow` reports that it has begun and waits for the gate;
        /// `/much` is a large answer; `/parts` sends its second part after minutes; `/echo` returns the request's
        /// body.
        async fn open(limits: ConnectionLimits) -> Self {
            Self::behind(TrustedProxies::default(), limits).await
        }

        async fn behind(proxies: TrustedProxies, limits: ConnectionLimits) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("bound");
            let (begun, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let (begins, opens) = (Arc::clone(&begun), Arc::clone(&gate));
            let slow = async move || {
                begins.notify_one();
                opens.notified().await;
                "at last"
            };
            let who = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
            let much = async || vec![b'm'; MUCH];
            let parts = async || {
                let second = async {
                    tokio::time::sleep(LONG).await;
                    Ok::<_, std::io::Error>("second")
                };
                Body::from_stream(stream::once(async { Ok("first") }).chain(stream::once(second)))
            };
            let echo = async |body: Body| match to_bytes(body, 1_000).await {
                Ok(body) => (StatusCode::OK, body),
                Err(error) => (StatusCode::REQUEST_TIMEOUT, error.to_string().into()),
            };
            let routes = Router::new()
                .route("/who", get(who))
                .route("/slow", get(slow))
                .route("/much", get(much))
                .route("/parts", get(parts))
                .route("/echo", post(echo));
            let (stop, stopped) = watch::channel(false);
            let task = tokio::spawn(serve_connections(listener, routes, limits, proxies, stopped));
            Self { address, stop, task, begun, gate }
        }

        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.expect("it listens")
        }
    }

    async fn ask(stream: &mut TcpStream, path: &str) {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: tide\r\n\r\n").as_bytes()).await.expect("sent");
    }

    /// Reads the answer up to its end, which must be `body`.
    async fn hears(stream: &mut TcpStream, body: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(body) {
            let mut some = [0; 512];
            let length = stream.read(&mut some).await.expect("reads");
            assert_ne!(length, 0, "it hung up after {text:?}");
            text += std::str::from_utf8(&some[..length]).expect("text");
        }
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        text
    }

    async fn who(stream: &mut TcpStream) {
        ask(stream, "/who").await;
        let own = stream.local_addr().expect("bound").to_string();
        hears(stream, &own).await;
    }

    /// Nothing more arrives, because the server has disconnected.
    async fn is_over(stream: &mut TcpStream) {
        let mut rest = Vec::new();
        // A reset means the same as an end.
        if stream.read_to_end(&mut rest).await.is_ok() {
            assert_eq!(String::from_utf8_lossy(&rest), "");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_too_long_for_the_headers_is_hung_up_on() {
        let door = Door::open(ConnectionLimits::USUAL).await;
        let begun = Instant::now();
        let mut silent = door.connect().await;
        let mut stuck = door.connect().await;
        stuck.write_all(b"GET /who HTTP/1.1\r\nHo").await.expect("sent");
        // One header each second, for as long as the server reads.
        let mut endless = door.connect().await;
        let sending = async {
            let (mut reading, mut writing) = endless.split();
            writing.write_all(b"GET /who HTTP/1.1\r\n").await.expect("sent");
            let talking = async {
                while writing.write_all(b"x: y\r\n").await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            };
            let mut some = [0; 512];
            tokio::select! {
                () = talking => {}
                read = reading.read(&mut some) => assert!(matches!(read, Ok(0) | Err(_)), "{read:?}"),
            }
        };
        tokio::join!(is_over(&mut silent), is_over(&mut stuck), sending);
        let took = begun.elapsed();
        assert!((10..12).contains(&took.as_secs()), "{took:?}");
        who(&mut door.connect().await).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_too_long_for_the_body_is_answered_and_hung_up_on() {
        let door = Door::open(ConnectionLimits::USUAL).await;
        let begun = Instant::now();
        let head = b"POST /echo HTTP/1.1\r\nHost: tide\r\nContent-Length: 100\r\n\r\n";
        let mut silent = door.connect().await;
        silent.write_all(head).await.expect("sent");
        // One byte each second.
        let mut dripping = door.connect().await;
        dripping.write_all(head).await.expect("sent");
        let (mut hearing, mut drips) = dripping.split();
        let dripping = async {
            loop {
                let _ = drips.write_all(b"a").await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let mut told = [String::new(), String::new()];
        let [first, second] = &mut told;
        let hearing = async { tokio::join!(silent.read_to_string(first), hearing.read_to_string(second)) };
        tokio::select! {
            () = dripping => {}
            ends = hearing => assert!(ends.0.is_ok(), "{ends:?}"),
        }
        let took = begun.elapsed();
        assert!((15..60).contains(&took.as_secs()), "{took:?}");
        for told in told {
            assert!(told.starts_with("HTTP/1.1 408 ") && told.ends_with("too long to arrive"), "{told:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_takes_the_answer_is_hung_up_on() {
        let door = Door::open(ConnectionLimits { most: 1, ..ConnectionLimits::USUAL }).await;
        let begun = Instant::now();
        let mut deaf = door.connect().await;
        ask(&mut deaf, "/much").await;
        // Waits for the only place.
        who(&mut door.connect().await).await;
        let took = begun.elapsed();
        assert!((60..600).contains(&took.as_secs()), "{took:?}");
        let mut rest = Vec::new();
        let _ = deaf.read_to_end(&mut rest).await;
        assert!(rest.len() < MUCH, "it was cut off");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_in_parts_is_not_cut_off() {
        let door = Door::open(ConnectionLimits::USUAL).await;
        let begun = Instant::now();
        let mut patient = door.connect().await;
        ask(&mut patient, "/parts").await;
        hears(&mut patient, "6\r\nsecond\r\n0\r\n\r\n").await;
        assert!(begun.elapsed() >= LONG);
    }

    #[tokio::test]
    async fn who_comes_to_a_full_house_waits_and_the_others_do_not() {
        let door = Door::open(ConnectionLimits { most: 2, ..PATIENT }).await;
        let (mut first, mut second) = (door.connect().await, door.connect().await);
        who(&mut first).await;
        who(&mut second).await;
        let mut third = door.connect().await;
        ask(&mut third, "/who").await;
        for _ in 0..20 {
            who(&mut first).await;
            who(&mut second).await;
        }
        let too_early = third.try_read(&mut [0; 1]).expect_err("it waits");
        assert_eq!(too_early.kind(), std::io::ErrorKind::WouldBlock);
        drop(first);
        let own = third.local_addr().expect("bound").to_string();
        hears(&mut third, &own).await;
        who(&mut second).await;
    }

    /// Only Linux has a second local address without configuration.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn one_address_does_not_take_all_places() {
        let door = Door::open(ConnectionLimits { per_address: 4, ..PATIENT }).await;
        let mut slow = Vec::new();
        for _ in 0..4 {
            let mut stream = door.connect().await;
            stream.write_all(b"POST /echo HTTP/1.1\r\nHost: tide\r\nContent-Length: 100\r\n\r\n").await.expect("sent");
            slow.push(stream);
        }
        for _ in 0..20 {
            let mut told = String::new();
            door.connect().await.read_to_string(&mut told).await.expect("reads");
            assert!(told.starts_with("HTTP/1.1 503 ") && told.ends_with("try again later\n"), "{told:?}");
        }
        // Another address of this machine.
        let other = tokio::net::TcpSocket::new_v4().expect("a socket");
        other.bind("127.0.0.2:0".parse().expect("an address")).expect("bound");
        who(&mut other.connect(door.address).await.expect("it listens")).await;
        slow.pop();
        let free = async {
            loop {
                let mut stream = door.connect().await;
                ask(&mut stream, "/who").await;
                let mut some = [0; 512];
                if stream.read(&mut some).await.is_ok_and(|length| some[..length].starts_with(b"HTTP/1.1 200")) {
                    break;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), free).await.expect("who hangs up leaves a place");
    }

    #[tokio::test]
    async fn behind_a_proxy_those_it_speaks_for_are_counted() {
        let proxies = TrustedProxies(vec!["127.0.0.0/8".parse().expect("a network")]);
        let door = Door::behind(proxies, ConnectionLimits { per_address: 2, most: 20, ..PATIENT }).await;
        let through = async |path: &str, address: &str| {
            let mut stream = door.connect().await;
            let request = format!("GET {path} HTTP/1.1\r\nHost: tide\r\nX-Forwarded-For: {address}\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("sent");
            stream
        };
        let mut slow = Vec::new();
        for _ in 0..2 {
            slow.push(through("/slow", "198.51.100.1").await);
            door.begun.notified().await;
        }
        let mut told = [0; 512];
        let length = through("/who", "198.51.100.1").await.read(&mut told).await.expect("reads");
        assert!(told[..length].starts_with(b"HTTP/1.1 503 "), "{:?}", String::from_utf8_lossy(&told[..length]));
        for other in ["198.51.100.2", "198.51.100.3", "198.51.100.4"] {
            let mut stream = through("/who", other).await;
            let port = stream.local_addr().expect("bound").port();
            hears(&mut stream, &format!("{other}:{port}")).await;
        }
        for mut stream in slow {
            door.gate.notify_one();
            hears(&mut stream, "at last").await;
        }
        let mut stream = through("/who", "198.51.100.1").await;
        let port = stream.local_addr().expect("bound").port();
        hears(&mut stream, &format!("198.51.100.1:{port}")).await;
    }

    #[tokio::test]
    async fn told_to_stop_it_closes_idle_connections_and_answers_requests_under_way() {
        let door = Door::open(PATIENT).await;
        let (mut fresh, mut idle, mut busy) = (door.connect().await, door.connect().await, door.connect().await);
        who(&mut idle).await;
        ask(&mut busy, "/slow").await;
        door.begun.notified().await;
        door.stop.send_replace(true);
        is_over(&mut fresh).await;
        is_over(&mut idle).await;
        assert!(TcpStream::connect(door.address).await.is_err(), "nobody listens any more");
        assert!(!door.task.is_finished());
        door.gate.notify_one();
        let answer = hears(&mut busy, "at last").await;
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        is_over(&mut busy).await;
        door.task.await.expect("it ends");
    }

    #[tokio::test]
    async fn headers_beyond_all_measure_are_refused() {
        let door = Door::open(PATIENT).await;
        let mut stream = door.connect().await;
        stream.write_all(b"GET /who HTTP/1.1\r\nx: ").await.expect("sent");
        // The server may disconnect during this write.
        let _ = stream.write_all(&vec![b'y'; 2 * super::MAX_HEAD]).await;
        let mut some = [0; 512];
        if let Ok(length) = stream.read(&mut some).await {
            let text = String::from_utf8_lossy(&some[..length]).into_owned();
            assert!(text.starts_with("HTTP/1.1 431 "), "{text:?}");
        }
        who(&mut door.connect().await).await;
    }
}
