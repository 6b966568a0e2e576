//! `pull_request_review_thread`: resolving the thread of a finding rejects the finding; unresolving it withdraws
//! that.

use canonry_domain::review::DismissalKind;
use canonry_domain::{GithubId, ItemNumber};
use canonry_github::GitHubError;
use canonry_github::webhook::PullRequestReviewThreadEvent;
use canonry_review::{FindingThread, dismiss_in_thread, dismisser, reopen_thread};
use canonry_store::Repo;
use jiff::SignedDuration;

use super::items::no_item;
use super::webhook::Webhook;
use crate::jobs::job_handler::JobError;

/// How long one of our threads may be unknown: a crash may come between posting a review and recording it, and
/// GitHub's lists lag behind its webhooks.
const RECORDED_WITHIN: SignedDuration = SignedDuration::from_mins(15);
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(1);

pub(super) async fn review_thread(
    hook: Webhook<'_>,
    repo: &Repo,
    about: &PullRequestReviewThreadEvent,
) -> Result<(), JobError> {
    let Ok(number) = ItemNumber::new(about.pull_request.number) else { return Err(no_item()) };
    let resolved = match hook.action() {
        "resolved" => true,
        "unresolved" => false,
        _ => return Err(JobError::ignored("the thread was neither resolved nor reopened")),
    };
    let own = hook.own_login().await?;
    // Canonry resolves the threads of fixed findings, which says nothing about whether the finding was right.
    if let Some(why) = hook.not_a_person(own, None) {
        return Err(JobError::ignored(why));
    }
    let by = hook.event.sender.as_ref().and_then(|sender| sender.to_login());
    let first = about.thread.comments.iter().find(|comment| comment.in_reply_to_id.is_none());
    let (Some(by), Some(first)) = (by, first) else { return Err(JobError::ignored("the event names no person")) };
    let (store, now) = (hook.service.store(), hook.service.now());
    let thread = FindingThread { repo: repo.id, number, thread: GithubId(first.id) };
    await_record(hook, repo, thread).await?;
    if thread.posted(store).await?.is_none() {
        return Err(JobError::ignored("the thread is about no finding"));
    }
    if !resolved {
        let withdrawn = reopen_thread(store, thread, now).await?;
        let nothing = "nobody had dismissed the finding by resolving it";
        return if withdrawn { Ok(()) } else { Err(JobError::ignored(nothing)) };
    }
    let author = about.pull_request.user.as_ref().and_then(|author| author.to_login());
    let Some(dismisser) = dismisser(store, hook.service.github(), repo, &by, author.as_ref()).await? else {
        return Err(JobError::ignored("only the author and maintainers can dismiss a finding"));
    };
    dismiss_in_thread(store, thread, DismissalKind::Resolved, &by, dismisser, now).await?;
    Ok(())
}

/// Postpones events of a thread while our comment that began it is not recorded yet: GitHub sends the event at once,
/// and the process that posted the comment may be slow or have crashed.
pub(super) async fn await_record(hook: Webhook<'_>, repo: &Repo, thread: FindingThread) -> Result<(), JobError> {
    let now = hook.service.now();
    let Some(github) = hook.service.github() else { return Ok(()) };
    if now.duration_since(hook.received_at()) >= RECORDED_WITHIN || thread.posted(hook.service.store()).await?.is_some()
    {
        return Ok(());
    }
    let first = match github.review_comment(&repo.name, thread.thread).await {
        Ok(first) => first,
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !hook.service.outbox().await?.wrote_review_comment(&first) {
        return Ok(());
    }
    Err(JobError::Postpone {
        reason: "the comment of this thread is not recorded yet".to_owned(),
        until: now + LOOK_AGAIN,
    })
}
