//! Tests of issue outcomes: each rule as a table, and properties for every history.

mod course;
mod events;
mod evidence;
mod histories;
mod lessons;
