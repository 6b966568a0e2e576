//! Applies and undoes plans against the emulated GitHub, on both engines. Whatever has changed, whatever fails and
//! wherever it is killed, every item is closed once, commented on once and labelled once, and the report matches what
//! GitHub shows.

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
