//! Real git repositories, built by the tests: what differs, what a review reads, and what is fetched.

mod changes;
mod excerpts;
mod fetches;
mod scopes;
mod story;
pub(crate) mod test_repository;
