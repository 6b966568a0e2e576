//! Orders from the console, run by jobs against the emulated GitHub on both engines: every item once, wherever a job
//! is interrupted, and nothing that a rule or GitHub forbids.

mod kills;
mod late_listing;
mod meanwhile;
mod orders;
mod refusals;
