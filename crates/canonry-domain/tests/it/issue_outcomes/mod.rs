//! What became of an issue: each rule about outcomes as a table, and what holds for every history.

mod course;
mod events;
mod evidence;
mod histories;
mod lessons;
