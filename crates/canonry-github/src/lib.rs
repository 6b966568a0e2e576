#![doc = include_str!("../README.md")]

pub mod api;
mod auth;
mod http;
pub mod outbox;
mod text;
pub mod webhook;

pub use api::{FactError, item_from_issue, item_from_pull, web_address};
pub use auth::*;
pub use http::*;
pub use outbox::{
    ORDINARY_WRITES_PER_HOUR, ORDINARY_WRITES_PER_MINUTE, WRITES_PER_HOUR, WRITES_PER_MINUTE, is_process_gone,
    next_write_at, process_mark,
};
pub use text::*;
