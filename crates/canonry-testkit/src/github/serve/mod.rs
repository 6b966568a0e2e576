//! Serves the world over HTTP: routes, limits, faults and records.

pub(crate) mod call;
pub(crate) mod emulator;
pub(crate) mod faults;
pub(crate) mod graphql;
pub(crate) mod graphql_document;
pub(crate) mod paging;
pub(crate) mod rate_limit;
pub(crate) mod recorded;
pub(crate) mod routes;
pub(crate) mod server;
pub(crate) mod webhooks;

pub use call::Answer;
pub use emulator::{Emulator, WorldGuard, loopback_client, loopback_client_builder};
pub use faults::{Age, ArmedFault, Fault, FaultHandle, Gate, Late};
pub use rate_limit::{RateLimits, SecondaryLimit};
pub use recorded::Recorded;
pub use routes::{Route, routes};
pub use webhooks::{Attempt, Delivery, Webhook};
