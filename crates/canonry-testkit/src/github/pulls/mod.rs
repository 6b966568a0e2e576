//! Pull requests: commits, diffs, reviews and checks.

pub(crate) mod check_runs;
pub(crate) mod commits;
pub(crate) mod conversation;
pub(crate) mod pull;
pub(crate) mod pull_changes;
pub(crate) mod pull_diff;
pub(crate) mod review_comments;
pub(crate) mod review_threads;
pub(crate) mod reviews;

pub use check_runs::CheckRun;
pub use commits::Commit;
pub use pull::{Pull, PullCommit};
pub use pull_changes::NewPull;
pub use pull_diff::{ChangedFile, Side};
pub use review_comments::ReviewComment;
pub use review_threads::ReviewThread;
pub use reviews::{Review, ReviewState};
