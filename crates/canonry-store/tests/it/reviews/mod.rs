//! Reviews in the store, told on both engines: claims, completed reviews, what people say about findings, and figures.

mod claiming;
mod feedback;
mod figures;
mod memory;
mod pages;
mod posting;
mod recording;
pub(crate) mod setting;
