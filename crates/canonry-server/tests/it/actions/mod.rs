//! Triage in GitHub Actions: the same outcome as with the service, whatever happens to the runs and to their state.

mod hiccups;
mod kills;
mod reviews;
mod two_weeks;
