//! Tests reviews on the emulated GitHub: what people see there, push after push, and whatever goes wrong in between.

mod hostile;
mod kills;
mod limits;
mod referee;
mod setting;
mod story;
mod suggestions;
mod threads;
mod trouble;
