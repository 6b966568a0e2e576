//! Whole reviews, through the real store on both engines and real git repositories.

mod coverage;
mod crashes;
mod failures;
mod feedback;
mod gaps;
mod memory;
mod model;
mod project;
mod races;
mod safety;
mod scopes;
mod story;
#[path = "../repositories/test_repository.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod test_repository;
