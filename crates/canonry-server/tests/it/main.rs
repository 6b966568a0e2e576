//! The service: its HTTP interface, its jobs, and its work on the emulated GitHub.

mod actions;
mod chaos;
mod closing;
mod feedback;
mod grace;
mod injection;
mod mentions;
mod on_github;
mod reviews;
mod service;
mod story;
mod world;
