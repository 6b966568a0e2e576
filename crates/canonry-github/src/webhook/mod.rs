//! Verifies and parses webhooks.

mod event;
mod payloads;
mod signature;

pub use crate::api::{RestReview, RestReviewComment};
#[cfg(test)]
pub(crate) use event::known_events;
pub use event::{Event, EventBody, NotJson, parse_event};
pub use payloads::{
    BaseBefore, CheckEvent, CheckRun, Edited, InstallationEvent, InstallationRepositoriesEvent, InstalledRepo,
    IssueChanges, IssueCommentEvent, IssuesEvent, LabelEvent, LinkedRepo, PingEvent, PullLink, PullLinkBase,
    PullRequestEvent, PullRequestReviewCommentEvent, PullRequestReviewEvent, PullRequestReviewThreadEvent, PushEvent,
    RepositoryEvent, ReviewThread, TextBefore,
};
pub use signature::{BadSignature, verify_signature};
