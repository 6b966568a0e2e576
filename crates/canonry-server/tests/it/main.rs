//! The service: through its front door, with its jobs, and against the emulated GitHub.

mod chaos;
mod clocks;
mod closing;
mod feedback;
mod grace;
mod mentions;
mod on_github;
mod plain;
mod reviews;
mod service;
mod story;
mod topics;
mod whole_service;
