//! Tests real git repositories, built by the tests: the differences, what a review reads, and what is fetched.

mod changes;
mod excerpts;
mod fetches;
mod scopes;
pub(crate) mod test_repository;
