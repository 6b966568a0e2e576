#![doc = include_str!("../README.md")]

pub mod api;
mod auth;
mod back_off;
mod client;
mod clock;
mod error;
mod etag_cache;
mod item_from_rest;
mod lenient;
mod link_header;
mod marker;
pub mod outbox;
mod pacing;
mod pages;
mod quote;
mod rate_budget;
mod read;
mod secret;
mod transport;
pub mod webhook;
mod write;

pub use auth::{AppKey, Auth, Scope};
pub use client::{ClientOptions, GitHub};
pub use clock::{Clock, ManualClock, ScaledClock, SystemClock};
pub use error::GitHubError;
pub use etag_cache::{Etag, EtagCache, MemoryEtags};
pub use item_from_rest::{item_from_issue, item_from_pull};
pub use marker::{InvalidMarker, Marker, MarkerSigner};
pub use pacing::{WRITES_PER_HOUR, WRITES_PER_MINUTE, next_write_at};
pub use pages::{Page, Pages};
pub use quote::{quote_block, quote_line};
pub use rate_budget::{RateLeft, WaitReason, Waiting};
pub use read::Answer;
pub use secret::Secret;
pub use write::WriteError;
