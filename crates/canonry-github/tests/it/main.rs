//! Tests the client and the outbox against the emulated GitHub.

mod github;
mod outbox;
