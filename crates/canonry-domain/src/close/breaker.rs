//! When people's objections stop all closing in a repository.

use jiff::SignedDuration;

/// So far back the breaker looks, in days.
pub const BREAKER_DAYS: i64 = 7;
/// The same as a length of time.
pub const BREAKER_WINDOW: SignedDuration = SignedDuration::from_hours(BREAKER_DAYS * 24);
/// So many objections within the window are too many.
const MOST_OBJECTIONS: u64 = 3;

/// Whether so many objections, since the breaker was last lifted and within [`BREAKER_WINDOW`], pull it.
pub const fn trips_breaker(recent: u64) -> bool {
    recent >= MOST_OBJECTIONS
}
