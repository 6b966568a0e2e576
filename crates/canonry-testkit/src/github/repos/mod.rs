//! Repositories, their files and real git behind them.

pub(crate) mod git_repositories;
pub(crate) mod releases;
pub(crate) mod repositories;
pub(crate) mod smart_http;

pub use git_repositories::GitRepository;
pub use releases::PublishedRelease;
pub use repositories::Repo;
