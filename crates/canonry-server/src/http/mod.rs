//! Connections and bodies: limits on number, size and time.

pub(crate) mod address_limits;
pub(crate) mod body_budget;
pub(crate) mod body_timeouts;
pub(crate) mod connections;
pub(crate) mod trusted_proxies;
pub(crate) mod write_timeouts;

pub use trusted_proxies::{InvalidProxy, TrustedProxy};
