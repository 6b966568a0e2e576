#![doc = include_str!("../README.md")]

mod admin;
mod charts;
mod clusters;
mod console;
mod home;
mod items;
mod layout;
mod learning;
mod plans;
mod reviews;
mod routes;
mod sign_in;

pub use console::{AdminToken, ConsoleCommand, ConsoleOauthApp, ConsoleParts};
pub use items::verdict_text::item_verdict;
pub use routes::console_routes;
pub use sign_in::{OneTimeCodes, form_key, fresh_token};
