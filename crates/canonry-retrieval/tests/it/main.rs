//! Retrieval compared with itself: built in steps or at once, before and after a snapshot.

mod incremental;
mod neighbours;
mod snapshots;
