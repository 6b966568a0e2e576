#![doc = include_str!("../README.md")]

mod actions;
mod admin;
mod github_writes;
mod handlers;
mod http;
mod intake;
mod jobs;
mod review;
mod serve;
mod service;

pub use actions::*;
pub use admin::*;
pub use github_writes::*;
pub use http::*;
pub use intake::*;
pub use jobs::*;
pub use review::*;

pub use serve::{DRAIN, ServeParts, ServeSummary, ServiceOptions, serve};
pub use service::{DatabasePlace, Service, ServiceParts};
