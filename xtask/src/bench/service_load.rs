//! Sends thousands of webhooks: signed, posted over many connections, and each answer timed.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::watched::processor_time;
use crate::tools;

/// The webhook secret of every server here.
pub(crate) const SECRET: &str = "the same for both";

/// A server that takes longer to answer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A body as GitHub would send it, and its signature.
#[derive(Clone, Debug)]
pub(crate) struct SignedWebhook {
    body: Vec<u8>,
    signature: String,
}

/// The address for webhooks, and the status that means a webhook is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'static str,
    pub(crate) accepted: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) deliveries: usize,
    pub(crate) seconds: f64,
    /// The processor time of sending, which the server could not use.
    pub(crate) cpu_seconds: f64,
    /// Of each delivery, in milliseconds, the shortest first.
    latencies: Vec<f64>,
}

impl Load {
    pub(crate) fn rate(&self) -> f64 {
        self.deliveries as f64 / self.seconds
    }

    /// The time within which this share of the deliveries was answered, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

/// GitHub's own example of an event, on which each webhook is based. The published examples are those of repository
/// hooks; an App's deliveries also contain the installation.
pub(crate) fn example(event: &str, action: &str) -> Result<Value> {
    let file = tools::install(&tools::WEBHOOK_EXAMPLES)?.join("package/api.github.com/index.json");
    let events: Vec<Value> = serde_json::from_slice(&std::fs::read(file)?)?;
    let examples = events.into_iter().find(|known| known["name"] == event).context("no example of that event")?;
    let examples = examples["examples"].as_array().cloned().unwrap_or_default();
    // The largest example is a transferred issue; the others are typical.
    let mut fitting: Vec<Value> = examples.into_iter().filter(|example| example["action"] == action).collect();
    fitting.sort_by_key(|example| example.to_string().len());
    let middle = fitting.len() / 2;
    let mut example = fitting.into_iter().nth(middle).context("no example of that action")?;
    example["installation"] = json!({ "id": 7, "node_id": "MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uNw==" });
    Ok(example)
}

pub(crate) fn about(example: &Value, repo: &str, number: usize, action: &str) -> SignedWebhook {
    let mut body = example.clone();
    body["action"] = json!(action);
    body["repository"]["full_name"] = json!(repo);
    body["issue"]["id"] = json!(1_000_000 + number);
    body["issue"]["number"] = json!(number);
    body["issue"]["title"] = json!(format!("Spelling error in the README file, paragraph {number}"));
    let body = body.to_string().into_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("invariant: HMAC takes any key");
    mac.update(&body);
    let signature = mac.finalize().into_bytes().iter().fold(String::from("sha256="), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    SignedWebhook { body, signature }
}

impl SignedWebhook {
    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }
}

/// Posts the webhooks in turn, over and over, for this long. `run` makes the ids of one load different from those of
/// another.
pub(crate) fn post_for(
    door: Door,
    connections: usize,
    webhooks: &[SignedWebhook],
    run: &str,
    time: Duration,
) -> Result<Load> {
    let posted = AtomicU64::new(0);
    let end = Instant::now() + time;
    post(door, connections, "issues", |_, _| {
        let number = posted.fetch_add(1, Ordering::Relaxed);
        let webhook = &webhooks[usize::try_from(number).ok()? % webhooks.len()];
        (Instant::now() < end).then(|| (webhook, format!("{run}-{number:012}")))
    })
}

/// Posts what `next` returns for a connection and the number of its delivery, until it returns nothing. A refused
/// delivery is an error: a rate of refusals must not be measured.
pub(crate) fn post<'a>(
    door: Door,
    connections: usize,
    event: &str,
    next: impl Fn(usize, usize) -> Option<(&'a SignedWebhook, String)> + Sync,
) -> Result<Load> {
    let next = &next;
    let own_time = || std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| processor_time(&stat));
    let (began, busy) = (Instant::now(), own_time());
    let results: Vec<Result<Vec<f64>>> = thread::scope(|scope| {
        let senders: Vec<_> =
            (0..connections).map(|at| scope.spawn(move || sender(door, event, |number| next(at, number)))).collect();
        senders.into_iter().map(|sender| sender.join().unwrap_or_else(|_| bail!("a sender panicked"))).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    let cpu_seconds = own_time().zip(busy).map_or(f64::NAN, |(now, before)| now - before);
    let mut latencies = Vec::new();
    for result in results {
        latencies.extend(result?);
    }
    latencies.sort_by(f64::total_cmp);
    Ok(Load { deliveries: latencies.len(), seconds, cpu_seconds, latencies })
}

fn sender<'a>(
    door: Door,
    event: &str,
    next: impl Fn(usize) -> Option<(&'a SignedWebhook, String)>,
) -> Result<Vec<f64>> {
    let mut connection = TcpStream::connect(door.address).context("the server does not listen")?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut latencies = Vec::new();
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    while let Some((webhook, id)) = next(latencies.len()) {
        request.clear();
        write!(
            request,
            "POST {} HTTP/1.1\r\nhost: {}\r\nuser-agent: GitHub-Hookshot/load\r\naccept: */*\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nx-github-event: {event}\r\n\
             x-github-delivery: {id}\r\nx-hub-signature-256: {}\r\n\r\n",
            door.path,
            door.address,
            webhook.body.len(),
            webhook.signature
        )?;
        request.extend_from_slice(&webhook.body);
        let began = Instant::now();
        connection.write_all(&request)?;
        let status = read_answer(&mut connection, &mut answer)?;
        latencies.push(began.elapsed().as_secs_f64() * 1000.0);
        ensure!(status == door.accepted, "{id} was answered with {status}: {}", String::from_utf8_lossy(&answer));
    }
    Ok(latencies)
}

/// Reads one complete answer and returns its status.
fn read_answer(connection: &mut TcpStream, answer: &mut Vec<u8>) -> Result<u16> {
    answer.clear();
    let mut chunk = [0; 4096];
    loop {
        let read = connection.read(&mut chunk)?;
        ensure!(read > 0, "the server hung up: {}", String::from_utf8_lossy(answer));
        answer.extend_from_slice(&chunk[..read]);
        if let Some(status) = complete(answer)? {
            return Ok(status);
        }
    }
}

/// The status once the answer is complete.
fn complete(answer: &[u8]) -> Result<Option<u16>> {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = (std::str::from_utf8(&answer[..end])?, &answer[end + 4..]);
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).context("an answer without a status")?;
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    let mut is_there = body.ends_with(b"0\r\n\r\n");
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("content-length") {
            is_there = body.len() >= value.trim().parse()?;
        }
    }
    Ok(is_there.then_some(status))
}

#[cfg(test)]
mod tests {
    use super::{Load, complete};

    #[test]
    fn an_answer_ends_where_its_headers_say() {
        let sized = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(complete(sized).expect("HTTP"), Some(202));
        assert_eq!(complete(&sized[..sized.len() - 1]).expect("HTTP"), None);
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nok\n\r\n0\r\n\r\n";
        assert_eq!(complete(chunked).expect("HTTP"), Some(200));
        assert_eq!(complete(&chunked[..chunked.len() - 2]).expect("HTTP"), None);
        assert_eq!(complete(b"HTTP/1.1 200 OK\r\n").expect("HTTP"), None);
        assert!(complete(b"nonsense\r\n\r\n0\r\n\r\n").is_err());
    }

    #[test]
    fn quantiles_are_answers_that_were_given() {
        let load = Load { deliveries: 5, seconds: 2.0, cpu_seconds: 0.1, latencies: vec![1.0, 2.0, 3.0, 4.0, 100.0] };
        assert_eq!((load.quantile(0.5), load.quantile(0.99), load.rate()), (3.0, 100.0, 2.5));
    }
}
