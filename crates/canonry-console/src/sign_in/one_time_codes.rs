//! Links that sign an operator in once, for the demo: the person who started it on this machine opens one and is
//! signed in.
//!
//! A service must have no GET that changes something, because mail scanners and browsers open links ahead of people.
//! So the route answers only if these codes exist.

use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq as _;

use crate::sign_in::github_round_trip::random_text;

/// How long a link is valid.
const OPENED_WITHIN: SignedDuration = SignedDuration::from_mins(15);

#[derive(Default)]
pub struct OneTimeCodes(Mutex<Vec<(String, Timestamp)>>);

impl OneTimeCodes {
    /// The path of a link that signs in once, within a quarter of an hour.
    pub fn link(&self, now: Timestamp) -> String {
        let code = random_text();
        let path = format!("/sign-in/once/{code}");
        self.codes().push((code, now + OPENED_WITHIN));
        path
    }

    /// Whether a code may sign in. Each code works only once.
    pub(crate) fn redeem(&self, shown: &str, now: Timestamp) -> bool {
        let mut codes = self.codes();
        codes.retain(|(_, until)| now <= *until);
        let found = codes.iter().position(|(code, _)| code.as_bytes().ct_eq(shown.as_bytes()).into());
        found.map(|at| codes.swap_remove(at)).is_some()
    }

    fn codes(&self) -> std::sync::MutexGuard<'_, Vec<(String, Timestamp)>> {
        // The list is never half written.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{OPENED_WITHIN, OneTimeCodes};

    #[test]
    fn a_code_is_good_once_and_for_a_while() {
        let (codes, now) = (OneTimeCodes::default(), Timestamp::from_second(1_800_000_000).expect("in range"));
        let code = |path: String| path.strip_prefix("/sign-in/once/").expect("its path").to_owned();
        let (one, other, late) = (code(codes.link(now)), code(codes.link(now)), code(codes.link(now)));
        assert!(!codes.redeem("", now) && !codes.redeem(&one[1..], now));
        assert!(codes.redeem(&one, now) && !codes.redeem(&one, now));
        assert!(codes.redeem(&other, now + OPENED_WITHIN));
        assert!(!codes.redeem(&late, now + OPENED_WITHIN + SignedDuration::from_secs(1)));
    }
}
