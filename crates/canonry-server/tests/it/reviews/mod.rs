//! Reviews by the service: webhooks in, git fetched, and the result on the emulated GitHub.

mod commits;
mod models;
mod other_bots;
mod outages;
mod pausing;
mod triggers;
