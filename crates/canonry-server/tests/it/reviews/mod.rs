//! Reviews by the service: webhooks in, git fetched, and what then stands on the emulated GitHub.

mod commits;
mod models;
mod outages;
mod pausing;
mod triggers;
