//! Plans applied and undone against the emulated GitHub, on both engines: whatever has changed, whatever
//! goes wrong and wherever it is killed, every item is closed once, commented once and labelled once,
//! and what was reported is what GitHub shows.

mod apply;
mod changed;
mod failures;
mod kills;
mod links;
mod parts;
mod refused;
mod setting;
mod sigkill;
mod together;
mod undo;
mod unreadable;
