//! The service: through its front door, with its jobs, and against the emulated GitHub.

mod chaos;
mod closing;
mod feedback;
mod grace;
mod mentions;
mod on_github;
mod reviews;
mod service;
mod story;
mod world;
