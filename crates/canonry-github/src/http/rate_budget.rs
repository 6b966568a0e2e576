//! Tracks the rate budget: how many requests GitHub's headers still allow, and until when to wait.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::http::error::{clock_time, header, message_of};

/// Without any advice GitHub asks clients to wait at least a minute after a secondary limit.
const SECONDARY_PAUSE: SignedDuration = SignedDuration::from_secs(60);
/// Clocks differ slightly; one more second avoids asking just too early.
const CLOCK_MARGIN: SignedDuration = SignedDuration::from_secs(1);

/// A wait, for the `on_wait` callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub reason: WaitReason,
    pub until: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitReason {
    RateLimit,
    SecondaryLimit,
    /// GitHub or the network failed; the request is retried.
    Retry,
    /// Another process closes or reopens in the repository, or was killed while it did.
    CloseLease,
    /// Another process writes to the item, or was killed while it did.
    WriteLease,
    /// A write has to wait: for its turn, or until it is known whether an interrupted one reached GitHub.
    Write,
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            WaitReason::RateLimit => "for GitHub's rate limit",
            WaitReason::SecondaryLimit => "because GitHub asks for fewer requests",
            WaitReason::Retry => "to ask GitHub again after a failure",
            WaitReason::CloseLease => "for another process that closes or reopens in this repository, at the longest",
            WaitReason::WriteLease => "for another process that writes to the same item, at the longest",
            WaitReason::Write => "to keep GitHub's pace, or to see whether an interrupted write reached GitHub",
        };
        write!(formatter, "waiting until {} {reason}", clock_time(self.until))
    }
}

/// How much of the hourly budget is left, from the latest answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLeft {
    pub limit: i64,
    pub remaining: i64,
    /// When the next window begins.
    pub reset: Timestamp,
}

impl RateLeft {
    fn read(headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| header(headers, name)?.parse::<i64>().ok();
        // Other resources (search, code scanning) have budgets of their own.
        if header(headers, "x-ratelimit-resource").is_some_and(|resource| resource != "core") {
            return None;
        }
        Some(Self {
            limit: number("x-ratelimit-limit").unwrap_or(0),
            remaining: number("x-ratelimit-remaining")?,
            reset: Timestamp::from_second(number("x-ratelimit-reset")?).ok()?,
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct RateBudget {
    accounts: Mutex<HashMap<String, Account>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Account {
    left: Option<RateLeft>,
    blocked: Option<Waiting>,
}

impl RateBudget {
    /// The wait before the next request, if any.
    pub(crate) fn blocked(&self, account: &str, now: Timestamp) -> Option<Waiting> {
        self.with(account, |account| account.blocked.filter(|waiting| waiting.until > now))
    }

    /// The latest known budget of every account, by name.
    pub(crate) fn all_left(&self) -> Vec<(String, RateLeft)> {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left: Vec<(String, RateLeft)> =
            accounts.iter().filter_map(|(name, account)| Some((name.clone(), account.left?))).collect();
        left.sort_by(|a, b| a.0.cmp(&b.0));
        left
    }

    /// Whether an account has less than a fifth of its hourly budget left.
    pub(crate) fn is_low(&self, account: &str, now: Timestamp) -> bool {
        let left = self.with(account, |account| account.left);
        left.is_some_and(|left| left.reset > now && left.remaining.saturating_mul(5) < left.limit)
    }

    /// Records an answer. `Some` if GitHub refused the request for a limit: then the request was not carried out.
    /// `limited_before` counts such refusals in a row.
    pub(crate) fn note(
        &self,
        account: &str,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
        limited_before: u32,
    ) -> Option<Waiting> {
        let left = RateLeft::read(headers);
        let refused = limit_of(status, headers, body, left, now, limited_before);
        self.with(account, |account| {
            account.left = left.or(account.left);
            let used_up = left
                .filter(|left| left.remaining <= 0 && left.reset > now)
                .map(|left| Waiting { reason: WaitReason::RateLimit, until: left.reset + CLOCK_MARGIN });
            if let Some(waiting) = refused.or(used_up) {
                account.blocked = Some(waiting);
            }
        });
        refused
    }

    fn with<T>(&self, account: &str, work: impl FnOnce(&mut Account) -> T) -> T {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        work(accounts.entry(account.to_owned()).or_default())
    }
}

/// Whether an answer is a refusal for a limit, and until when to wait then.
fn limit_of(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    left: Option<RateLeft>,
    now: Timestamp,
    limited_before: u32,
) -> Option<Waiting> {
    if status != StatusCode::FORBIDDEN && status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    // Refusals in a row double the shortest pause, so that a wrong clock or an unhelpful header does not turn into
    // hammering.
    let grown = SECONDARY_PAUSE.saturating_mul(1 << limited_before.min(6));
    if let Some(seconds) = retry_after(headers) {
        return Some(Waiting { reason: WaitReason::SecondaryLimit, until: now + seconds });
    }
    if let Some(left) = left.filter(|left| left.remaining <= 0) {
        let least = if limited_before == 0 { now + CLOCK_MARGIN } else { now + grown };
        return Some(Waiting { reason: WaitReason::RateLimit, until: (left.reset + CLOCK_MARGIN).max(least) });
    }
    let message = message_of(body).to_lowercase();
    // The last message follows wrong tokens from the same address, and also hits correct tokens.
    let says_so = ["rate limit", "abuse detection", "number of login attempts exceeded"];
    let says_so = says_so.iter().any(|words| message.contains(words));
    (status == StatusCode::TOO_MANY_REQUESTS || says_so)
        .then_some(Waiting { reason: WaitReason::SecondaryLimit, until: now + grown })
}

/// `Retry-After` in seconds, at most a day: a longer time is a mistake.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<SignedDuration> {
    let seconds: i64 = header(headers, "retry-after")?.parse().ok()?;
    Some(SignedDuration::from_secs(seconds.clamp(1, 86_400)))
}

#[cfg(test)]
mod tests {
    use super::{RateBudget, WaitReason};
    use jiff::Timestamp;
    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    const NOW: i64 = 1_800_000_000;

    fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).expect("valid")))
            .collect()
    }

    fn core(remaining: i64, reset: i64) -> HeaderMap {
        headers(&[
            ("x-ratelimit-limit", "5000".to_owned()),
            ("x-ratelimit-remaining", remaining.to_string()),
            ("x-ratelimit-reset", reset.to_string()),
        ])
    }

    /// The wait in seconds after one answer, and whether the answer itself was refused.
    fn after(status: u16, headers: &HeaderMap, body: &str, limited_before: u32) -> (Option<(WaitReason, i64)>, bool) {
        let (budget, now) = (RateBudget::default(), Timestamp::from_second(NOW).expect("valid"));
        let status = StatusCode::from_u16(status).expect("valid");
        let refused = budget.note("a", status, headers, body.as_bytes(), now, limited_before).is_some();
        assert!(budget.blocked("b", now).is_none(), "accounts are apart");
        let waiting = budget.blocked("a", now);
        (waiting.map(|waiting| (waiting.reason, waiting.until.as_second() - NOW)), refused)
    }

    #[test]
    fn a_budget_is_low_below_a_fifth_until_it_begins_again() {
        let (budget, now) = (RateBudget::default(), Timestamp::from_second(NOW).expect("valid"));
        let is_low = |remaining: i64, reset: i64| {
            budget.note("a", StatusCode::OK, &core(remaining, reset), b"", now, 0);
            budget.is_low("a", now)
        };
        assert_eq!([is_low(1_000, NOW + 60), is_low(999, NOW), is_low(999, NOW + 60)], [false, false, true]);
        // What one account has used up leaves the others theirs.
        assert_eq!([budget.is_low("b", now), budget.is_low("a", now)], [false, true]);
    }

    #[test]
    fn every_kind_of_limit_is_told() {
        let none = HeaderMap::new();
        let secondary = r#"{"message":"You have exceeded a secondary rate limit"}"#;
        let logins = r#"{"message":"Maximum number of login attempts exceeded. Please try again later."}"#;
        let retry = headers(&[("retry-after", "7".to_owned())]);
        let search = headers(&[
            ("x-ratelimit-resource", "search".to_owned()),
            ("x-ratelimit-remaining", "0".to_owned()),
            ("x-ratelimit-reset", (NOW + 60).to_string()),
        ]);
        assert_eq!(after(200, &core(10, NOW + 100), "", 0), (None, false));
        assert_eq!(after(200, &core(0, NOW + 100), "", 0), (Some((WaitReason::RateLimit, 101)), false));
        assert_eq!(after(403, &core(0, NOW + 3600), "", 0), (Some((WaitReason::RateLimit, 3601)), true));
        assert_eq!(after(403, &core(0, NOW - 100), "", 0), (Some((WaitReason::RateLimit, 1)), true));
        assert_eq!(after(403, &core(0, NOW - 100), "", 1), (Some((WaitReason::RateLimit, 120)), true));
        assert_eq!(after(429, &retry, "", 0), (Some((WaitReason::SecondaryLimit, 7)), true));
        assert_eq!(after(403, &core(10, NOW + 9), secondary, 0), (Some((WaitReason::SecondaryLimit, 60)), true));
        assert_eq!(after(403, &none, secondary, 2), (Some((WaitReason::SecondaryLimit, 240)), true));
        assert_eq!(after(403, &core(10, NOW + 9), logins, 0), (Some((WaitReason::SecondaryLimit, 60)), true));
        assert_eq!(after(429, &none, "", 0), (Some((WaitReason::SecondaryLimit, 60)), true));
        assert_eq!(after(403, &core(10, NOW + 9), r#"{"message":"Must have admin rights"}"#, 0), (None, false));
        assert_eq!(after(200, &search, "", 0), (None, false));
    }
}
