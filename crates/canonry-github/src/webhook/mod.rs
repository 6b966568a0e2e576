//! Webhooks: whether they are GitHub's, and what they say.

mod event;
mod payloads;
mod signature;

pub use event::{Event, EventBody, NotJson, parse_event};
pub use payloads::{
    CheckEvent, CheckRun, Edited, InstallationEvent, InstallationRepositoriesEvent, InstalledRepo, IssueChanges,
    IssueCommentEvent, IssuesEvent, LabelEvent, PingEvent, PullLink, PullRequestEvent, PullRequestReviewCommentEvent,
    PullRequestReviewEvent, PullRequestReviewThreadEvent, PushEvent, RepositoryEvent, RestReview, RestReviewComment,
    ReviewThread, TextBefore,
};
pub use signature::{BadSignature, verify_signature};
