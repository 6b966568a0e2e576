//! The DevTools protocol over two pipes: JSON messages, each terminated by a zero byte.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The browser answers faster than this even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Both pipes, the received messages and the pending calls.
#[derive(Debug)]
pub(super) struct Connection {
    input: Mutex<(u64, ChildStdin)>,
    heard: Arc<(Mutex<Heard>, Condvar)>,
}

#[derive(Debug, Default)]
struct Heard {
    /// Pending calls; answers to other calls are not kept.
    awaited: BTreeSet<u64>,
    answers: BTreeMap<u64, Value>,
    /// Events by session, in the order of arrival.
    events: BTreeMap<String, Vec<Value>>,
    has_ended: bool,
}

impl Connection {
    pub(super) fn new(input: ChildStdin, output: ChildStdout) -> Self {
        let heard = Arc::new((Mutex::new(Heard::default()), Condvar::new()));
        let listener = Arc::clone(&heard);
        thread::spawn(move || listen(output, &listener));
        Self { input: Mutex::new((0, input)), heard }
    }

    /// Calls a method and waits for its answer.
    ///
    /// # Panics
    /// If the browser answers with an error, does not answer, or has ended.
    pub(super) fn call(&self, session: Option<&str>, method: &str, parameters: &Value) -> Value {
        self.try_call(session, method, parameters).unwrap_or_else(|error| panic!("{method} {parameters}: {error}"))
    }

    /// The same, but returns the browser's error as a sentence.
    pub(super) fn try_call(&self, session: Option<&str>, method: &str, parameters: &Value) -> Result<Value, String> {
        let id = self.send(session, method, parameters)?;
        self.answer(id)
    }

    /// Calls several methods without waiting in between, then waits for all answers.
    ///
    /// # Panics
    /// As [`Self::call`] does.
    pub(super) fn call_all(&self, session: &str, calls: &[(&str, Value)]) {
        let sent: Vec<_> =
            calls.iter().map(|(method, parameters)| self.send(Some(session), method, parameters)).collect();
        for ((method, parameters), sent) in calls.iter().zip(sent) {
            sent.and_then(|id| self.answer(id)).unwrap_or_else(|error| panic!("{method} {parameters}: {error}"));
        }
    }

    fn answer(&self, id: u64) -> Result<Value, String> {
        let mut heard = self.lock();
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(mut answer) = heard.answers.remove(&id) {
                return match answer.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap_or("an error without words").to_owned()),
                    None => Ok(answer["result"].take()),
                };
            }
            let left = patience.saturating_duration_since(Instant::now());
            if heard.has_ended || left.is_zero() {
                return Err(if heard.has_ended { "the browser has ended" } else { "no answer in time" }.to_owned());
            }
            heard = self.heard.1.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Calls a method without waiting for the answer.
    pub(super) fn send_last(&self, method: &str) {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let message = json!({"id": 0, "method": method});
        // If the browser has already ended, the message is not needed.
        let _ = write!(input.1, "{message}\0").and_then(|()| input.1.flush());
    }

    pub(super) fn events<T>(&self, session: &str, read: impl FnOnce(&[Value]) -> T) -> T {
        read(self.lock().events.get(session).map(Vec::as_slice).unwrap_or_default())
    }

    pub(super) fn forget(&self, session: &str) {
        self.lock().events.remove(session);
    }

    /// Waits until the session's events satisfy a condition; false after `limit`.
    pub(super) fn wait_for(&self, session: &str, limit: Duration, is_enough: impl Fn(&[Value]) -> bool) -> bool {
        let patience = Instant::now() + limit;
        let mut heard = self.lock();
        loop {
            if is_enough(heard.events.get(session).map(Vec::as_slice).unwrap_or_default()) {
                return true;
            }
            let left = patience.saturating_duration_since(Instant::now());
            if left.is_zero() || heard.has_ended {
                return false;
            }
            heard = self.heard.1.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn send(&self, session: Option<&str>, method: &str, parameters: &Value) -> Result<u64, String> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.0 += 1;
        let id = input.0;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.lock().awaited.insert(id);
        write!(input.1, "{message}\0").and_then(|()| input.1.flush()).map_err(|error| error.to_string())?;
        Ok(id)
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads until the browser closes its end.
fn listen(output: ChildStdout, heard: &(Mutex<Heard>, Condvar)) {
    let mut output = BufReader::new(output);
    let mut message = Vec::new();
    while matches!(output.read_until(0, &mut message), Ok(1..)) {
        if let Ok(value) = serde_json::from_slice::<Value>(message.strip_suffix(&[0]).unwrap_or(&message)) {
            heard.0.lock().unwrap_or_else(PoisonError::into_inner).take(value);
            heard.1.notify_all();
        }
        message.clear();
    }
    heard.0.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
    heard.1.notify_all();
}

impl Heard {
    fn take(&mut self, message: Value) {
        if let Some(id) = message["id"].as_u64() {
            if self.awaited.remove(&id) {
                self.answers.insert(id, message);
            }
        } else if let Some(session) = message["sessionId"].as_str() {
            self.events.entry(session.to_owned()).or_default().push(message);
        }
    }
}
