//! What people say to findings on an emulated GitHub: their thumbs, and their words in threads.

mod polling;
#[path = "../pipeline/project.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod project;
mod setting;
#[path = "../repositories/test_repository.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod test_repository;
mod threads;
