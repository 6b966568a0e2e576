//! Faults on demand: which request fails, and how.

use canonry_boxed::boxed;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::github::serve::call::Answer;
use crate::github::serve::recorded::Recorded;

type Predicate = Arc<dyn Fn(&Recorded) -> bool + Send + Sync>;

/// A fault of one or more requests. Begin with [`Fault::on`], end with an effect.
#[derive(Clone)]
pub struct Fault {
    method: String,
    pattern: String,
    predicate: Option<Predicate>,
    first: usize,
    times: usize,
    chance: Option<(f64, u64)>,
}

/// A fault with its effect, ready for [`Emulator::fault`](super::Emulator::fault).
pub struct ArmedFault {
    fault: Fault,
    effect: Effect,
}

/// When a late change is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// After this many further requests have been answered.
    AfterRequests(usize),
    /// As soon as the world's clock shows this time.
    At(Timestamp),
}

/// How old a stale answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// As the world was before the last N changes.
    Changes(usize),
    /// As the world was N seconds ago.
    Seconds(i64),
}

#[derive(Debug, Clone)]
pub(crate) enum Effect {
    Answer(Answer),
    Drop,
    ApplyAndDrop,
    ApplyAndAnswer(Answer),
    ApplyLate(Late, Option<Answer>),
    Stale(Age),
    Truncate,
    Headers(Vec<(String, String)>),
    Rewrite(Rewriter),
    Hold(Holder, Moment),
    Hang(Moment),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    BeforeApplying,
    AfterApplying,
}

impl Fault {
    /// Requests with this method (`*` for any) and path. In the pattern `*` matches one segment and `**` any number
    /// of them; paths by id are matched by name: `/repos/*/*/issues/7/comments`, `/**/comments`.
    pub fn on(method: &str, pattern: &str) -> Self {
        Self {
            method: method.to_owned(),
            pattern: pattern.to_owned(),
            predicate: None,
            first: 1,
            times: 1,
            chance: None,
        }
    }

    /// Only requests that also satisfy this predicate.
    #[must_use]
    pub fn when(mut self, predicate: impl Fn(&Recorded) -> bool + Send + Sync + 'static) -> Self {
        self.predicate = Some(Arc::new(predicate));
        self
    }

    /// The n-th matching request, counted from 1 after the fault is set.
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Self {
        self.first = nth;
        self
    }

    /// How many matching requests in a row; the default is one.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Every matching request from the first on.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Each matching request with this probability (0 to 1). The same seed selects the same requests, in the order of
    /// their arrival.
    #[must_use]
    pub fn sometimes(mut self, chance: f64, seed: u64) -> Self {
        self.chance = Some((chance, seed));
        self.always()
    }

    /// Answers with this status and a plain message; nothing is applied.
    pub fn answer(self, status: u16) -> ArmedFault {
        self.answer_with(Answer::message(status, "The emulator was told to fail"))
    }

    /// Gives this answer; nothing is applied.
    pub fn answer_with(self, answer: Answer) -> ArmedFault {
        self.arm(Effect::Answer(answer))
    }

    /// Ends the connection without applying anything.
    pub fn drop_connection(self) -> ArmedFault {
        self.arm(Effect::Drop)
    }

    /// Applies the change, then ends the connection without an answer.
    pub fn apply_and_drop(self) -> ArmedFault {
        self.arm(Effect::ApplyAndDrop)
    }

    /// Never answers and applies nothing, so the client times out.
    pub fn hang(self) -> ArmedFault {
        self.arm(Effect::Hang(Moment::BeforeApplying))
    }

    /// Applies the change and never answers.
    pub fn apply_and_hang(self) -> ArmedFault {
        self.arm(Effect::Hang(Moment::AfterApplying))
    }

    /// Applies the change but answers this status.
    pub fn apply_and_answer(self, status: u16) -> ArmedFault {
        self.arm(Effect::ApplyAndAnswer(Answer::message(status, "The emulator was told to fail")))
    }

    /// Ends the connection now and applies the change later.
    pub fn drop_and_apply_late(self, late: Late) -> ArmedFault {
        self.arm(Effect::ApplyLate(late, None))
    }

    /// Answers this status now and applies the change later.
    pub fn answer_and_apply_late(self, status: u16, late: Late) -> ArmedFault {
        let answer = Answer::message(status, "The emulator was told to fail");
        self.arm(Effect::ApplyLate(late, Some(answer)))
    }

    /// Answers as the world was some time ago, at most back to the moment when the fault was set.
    pub fn stale(self, age: Age) -> ArmedFault {
        self.arm(Effect::Stale(age))
    }

    /// Applies the change and answers, but the body ends in the middle.
    pub fn truncate(self) -> ArmedFault {
        self.arm(Effect::Truncate)
    }

    pub fn with_headers(self, headers: &[(&str, &str)]) -> ArmedFault {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.arm(Effect::Headers(headers))
    }

    /// Applies the change, and answers with another body than GitHub would.
    pub fn rewrite(self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> ArmedFault {
        self.arm(Effect::Rewrite(Rewriter(Arc::new(change))))
    }

    /// Holds the request before it is applied until the gate is released.
    pub fn hold(self) -> (ArmedFault, Gate) {
        self.hold_at(Moment::BeforeApplying)
    }

    /// Applies the change and holds the answer until the gate is released.
    pub fn hold_answer(self) -> (ArmedFault, Gate) {
        self.hold_at(Moment::AfterApplying)
    }

    fn hold_at(self, moment: Moment) -> (ArmedFault, Gate) {
        let (arrived, arrivals) = watch::channel(0_usize);
        let (open, opened) = watch::channel(false);
        let holder = Holder { arrived: Arc::new(arrived), opened };
        (self.arm(Effect::Hold(holder, moment)), Gate { arrivals, open })
    }

    fn arm(self, effect: Effect) -> ArmedFault {
        ArmedFault { fault: self, effect }
    }

    fn matches(&self, request: &Recorded) -> bool {
        (self.method == "*" || self.method.eq_ignore_ascii_case(&request.method))
            && path_matches(&self.pattern, &request.named_path)
            && self.predicate.as_ref().is_none_or(|predicate| predicate(request))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fault({} {}, from {}, {} times)", self.method, self.pattern, self.first, self.times)
    }
}

/// A function that changes an answer's body.
#[derive(Clone)]
pub(crate) struct Rewriter(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl Rewriter {
    pub(crate) fn rewrite(&self, body: &mut Value) {
        (self.0)(body);
    }
}

impl fmt::Debug for Rewriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Rewriter")
    }
}

/// A test waits here for a held request and releases it.
#[derive(Debug)]
pub struct Gate {
    arrivals: watch::Receiver<usize>,
    open: watch::Sender<bool>,
}

#[boxed]
impl Gate {
    /// Waits until a request is held here.
    pub async fn arrived(&mut self) {
        let arrivals = self.arrivals.wait_for(|&count| count > 0).await;
        arrivals.expect("the emulator lives as long as the test waits");
    }

    /// Releases the held request and all later ones. Dropping the gate does the same.
    pub fn release(self) {
        self.open.send_replace(true);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Holder {
    arrived: Arc<watch::Sender<usize>>,
    opened: watch::Receiver<bool>,
}

impl Holder {
    pub(crate) async fn wait(mut self) {
        self.arrived.send_modify(|count| *count += 1);
        // An error means that the gate was dropped, which releases the request.
        let _ = self.opened.wait_for(|&open| open).await;
    }
}

/// Counts how often a fault has applied.
#[derive(Debug, Clone)]
pub struct FaultHandle(Arc<AtomicUsize>);

impl FaultHandle {
    /// How many requests the fault has affected so far.
    pub fn hits(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The faults that are set, and how many matching requests each has seen.
#[derive(Default)]
pub(crate) struct Faults(Vec<Active>);

struct Active {
    armed: ArmedFault,
    seen: usize,
    hits: Arc<AtomicUsize>,
}

impl Faults {
    pub(crate) fn add(&mut self, armed: ArmedFault) -> FaultHandle {
        let hits = Arc::new(AtomicUsize::new(0));
        self.0.push(Active { armed, seen: 0, hits: Arc::clone(&hits) });
        FaultHandle(hits)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The effects on this request: any number of holds and headers, and only the first of all others.
    pub(crate) fn strike(&mut self, request: &Recorded) -> Vec<Effect> {
        let mut effects: Vec<Effect> = Vec::new();
        for active in &mut self.0 {
            let fault = &active.armed.fault;
            if !fault.matches(request) {
                continue;
            }
            active.seen += 1;
            let due = active.seen >= fault.first
                && active.seen - fault.first < fault.times
                && fault.chance.is_none_or(|(chance, seed)| drawn(seed, active.seen) < chance);
            let joins = |effect: &Effect| matches!(effect, Effect::Hold(..) | Effect::Headers(_));
            if due && (joins(&active.armed.effect) || effects.iter().all(joins)) {
                active.hits.fetch_add(1, Ordering::SeqCst);
                effects.push(active.armed.effect.clone());
            }
        }
        effects
    }
}

impl ArmedFault {
    pub(crate) fn wants_history(&self) -> bool {
        matches!(self.effect, Effect::Stale(_))
    }
}

/// The n-th random number of a seed, 0 to 1 (SplitMix64).
fn drawn(seed: u64, nth: usize) -> f64 {
    let mut mixed = seed.wrapping_add((nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // A float represents 53 bits exactly.
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

fn path_matches(pattern: &str, path: &str) -> bool {
    fn walk(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => (0..=path.len()).any(|skip| walk(rest, &path[skip..])),
            (Some((&part, rest)), Some((&segment, tail))) => (part == "*" || part == segment) && walk(rest, tail),
            _ => false,
        }
    }
    let pattern: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
    let path: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    walk(&pattern, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chance_strikes_about_as_often_as_it_says_and_the_same_ones_again() {
        let struck = |seed: u64| (0..10_000).filter(|&nth| drawn(seed, nth) < 0.1).collect::<Vec<usize>>();
        for seed in 0..5 {
            assert!((900..1_100).contains(&struck(seed).len()), "{}", struck(seed).len());
            assert_eq!(struck(seed), struck(seed));
        }
        assert_ne!(struck(1), struck(2));
    }

    #[test]
    fn patterns_match_whole_paths() {
        assert!(path_matches("/repos/*/*/issues", "/repos/acme/widgets/issues"));
        assert!(!path_matches("/repos/*/*/issues", "/repos/acme/widgets/issues/1"));
        assert!(path_matches("/**/comments", "/repos/acme/widgets/issues/1/comments"));
        assert!(path_matches("/**", "/user"));
        assert!(!path_matches("/**/comments", "/repos/acme/widgets/issues/comments/5"));
    }
}
