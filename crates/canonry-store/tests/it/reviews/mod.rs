//! Reviews in the store, on both engines: claims, completed reviews, feedback on findings, and statistics.

mod claiming;
mod feedback;
mod figures;
mod memory;
mod pages;
mod posting;
mod recording;
pub(crate) mod setting;
