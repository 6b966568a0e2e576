//! The house pages against a filled store and an emulated GitHub: who sees what, what is refused, and how people sign in.

mod hidden;
mod lists;
mod pages;
mod refusals;
mod setting;
mod setup;
mod signing_in;
