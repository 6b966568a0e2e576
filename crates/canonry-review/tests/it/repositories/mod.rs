//! Real git repositories, built by the tests: what differs, what a review reads, and what is fetched.

mod changes;
mod excerpts;
mod fetches;
mod scopes;
pub(crate) mod test_repository;
