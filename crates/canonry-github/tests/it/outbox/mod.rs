//! Tests the outbox against the emulated GitHub, on both engines: whatever goes wrong and wherever it is killed, no
//! write is lost, none is doubled, and what it reports is what GitHub shows.

mod close;
mod crowd;
mod kills;
mod plain;
mod pull_kills;
mod pull_writes;
mod reviews;
mod setting;
mod sigkill;
mod trouble;
