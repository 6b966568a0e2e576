//! What people say to findings on GitHub, and what the next review makes of it.

mod answers;
mod reviewed;
mod suppression;
mod threads;
