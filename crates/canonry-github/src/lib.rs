#![doc = include_str!("../README.md")]

pub mod api;
mod app_access;
mod app_manifest;
mod auth;
mod back_off;
mod client;
mod clock;
mod clone;
mod close_facts;
mod error;
mod etag_cache;
mod github_time;
mod graphql;
mod item_from_rest;
mod lenient;
mod link_header;
mod marker;
mod oauth;
pub mod outbox;
mod pacing;
mod pages;
mod process_mark;
mod quote;
mod rate_budget;
mod read;
mod secret;
mod transport;
pub mod webhook;
mod write;

pub use app_access::{APP_EVENTS, APP_PERMISSIONS};
pub use app_manifest::{CreatedApp, app_manifest, created_app};
pub use auth::{AppKey, Auth, Scope};
pub use client::{ClientOptions, GitHub};
pub use clock::{Clock, ManualClock, ScaledClock, SystemClock};
pub use clone::web_address;
pub use close_facts::FactError;
pub use error::GitHubError;
pub use etag_cache::{Etag, EtagCache, MemoryEtags};
pub use github_time::GithubTime;
pub use item_from_rest::{item_from_issue, item_from_pull};
pub use marker::{InvalidMarker, Marker, MarkerSigner};
pub use oauth::{OauthClient, code_challenge};
pub use pacing::{
    ORDINARY_WRITES_PER_HOUR, ORDINARY_WRITES_PER_MINUTE, WRITES_PER_HOUR, WRITES_PER_MINUTE, next_write_at,
};
pub use pages::{Page, Pages};
pub use process_mark::{is_process_gone, process_mark};
pub use quote::{quote_block, quote_line};
pub use rate_budget::{RateLeft, WaitReason, Waiting};
pub use read::Answer;
pub use secret::Secret;
pub use write::WriteError;
