//! Sends requests to GitHub: paced, retried, cached, read page by page.

pub(crate) mod client;
pub(crate) mod error;
pub(crate) mod etag_cache;
pub(crate) mod github_time;
pub(crate) mod graphql;
pub(crate) mod link_header;
pub(crate) mod pages;
pub(crate) mod rate_budget;
pub(crate) mod read;
pub(crate) mod transport;
pub(crate) mod write;

pub use canonry_clock::{Clock, ManualClock, ScaledClock, SystemClock};
pub use client::{ClientOptions, GitHub};
pub use error::GitHubError;
pub use etag_cache::{Etag, EtagCache, MemoryEtags};
pub use github_time::GithubTime;
pub use pages::{Page, Pages};
pub use rate_budget::{RateLeft, WaitReason, Waiting};
pub use read::Answer;
pub use write::WriteError;
