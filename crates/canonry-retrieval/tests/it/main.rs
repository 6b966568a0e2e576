//! Retrieval against itself: by parts as at once, and after a snapshot as before.

mod incremental;
mod neighbours;
mod snapshots;
