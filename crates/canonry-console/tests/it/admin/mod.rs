//! The pages of a filled store and an emulated GitHub: who sees what, what is refused, and how people sign in.

mod app_setup;
mod hidden_repositories;
mod lists;
mod pages;
mod refused_actions;
mod search;
mod settings_changes;
mod signing_in;
