//! The breaker: decides when objections stop all automatic closing in a repository.

use jiff::SignedDuration;

/// The number of days whose objections the breaker counts.
pub const BREAKER_DAYS: i64 = 7;
/// `BREAKER_DAYS` as a duration.
pub const BREAKER_WINDOW: SignedDuration = SignedDuration::from_hours(BREAKER_DAYS * 24);
/// This many objections within the window trip the breaker.
const MOST_OBJECTIONS: u64 = 3;

/// Whether this number of objections trips the breaker. Only objections since the breaker was last reset and within
/// [`BREAKER_WINDOW`] count.
pub const fn trips_breaker(recent: u64) -> bool {
    recent >= MOST_OBJECTIONS
}
