//! `pull_request_review_comment`: commands in a review thread, and the answer "won't fix" to a finding.

use canonry_domain::review::{DismissalKind, is_refusal};
use canonry_domain::{GithubId, ItemNumber, ItemType, WriteKey, WriteOrigin};
use canonry_github::outbox::{ReactTo, ReactionContent, Write};
use canonry_github::webhook::{PullRequestReviewCommentEvent, RestReviewComment};
use canonry_review::{FindingThread, dismiss_in_thread, dismisser, withdraw_wont_fix};
use canonry_store::{MentionPlace, Repo};

use super::graces::on_review;
use super::items::no_item;
use super::mentions::{PostedComment, handle_mention};
use super::review_threads::await_record;
use super::webhook::Webhook;
use crate::jobs::job_handler::JobError;

pub(super) async fn review_comment(
    hook: Webhook<'_>,
    repo: &Repo,
    about: &PullRequestReviewCommentEvent,
) -> Result<(), JobError> {
    let Ok(number) = ItemNumber::new(about.pull_request.number) else { return Err(no_item()) };
    match hook.action() {
        "created" => {}
        "deleted" => return deleted(hook, repo, number, about).await,
        _ => return Err(JobError::ignored("only new comments are answered")),
    }
    let own = hook.own_login().await?;
    if let Some(why) = hook.not_a_person(own, about.comment.user.as_ref()) {
        return Err(JobError::ignored(why));
    }
    on_review(hook, repo, number).await?;
    let Some(user) = &about.comment.user else { return Err(JobError::ignored("GitHub names no author")) };
    let (comment, in_reply_to) = (GithubId(about.comment.id), about.comment.in_reply_to_id.map(GithubId));
    let comment_at = PostedComment {
        place: MentionPlace::Review,
        comment,
        text: &about.comment.body,
        by: user,
        written_at: about.comment.created_at,
        number,
        item_type: ItemType::Pr,
        author: about.pull_request.user.as_ref(),
        in_reply_to,
    };
    if let Some(handled) = handle_mention(hook, repo, comment_at).await? {
        return handled.ignored.map_or(Ok(()), |reason| Err(JobError::ignored(reason)));
    }
    let (Some(thread), Some(by)) = (in_reply_to, user.to_login()) else {
        return Err(JobError::ignored("it is no reply to a finding"));
    };
    if !is_refusal(&about.comment.body) {
        return Err(JobError::ignored("it does not dismiss the finding"));
    }
    let thread = FindingThread { repo: repo.id, number, thread };
    await_record(hook, repo, thread).await?;
    if thread.posted(hook.service.store()).await?.is_none() {
        return Err(JobError::ignored("the thread is about no finding"));
    }
    let author = about.pull_request.user.as_ref().and_then(|author| author.to_login());
    let store = hook.service.store();
    let Some(dismisser) = dismisser(store, hook.service.github(), repo, &by, author.as_ref()).await? else {
        return Err(JobError::ignored("only the author and maintainers can dismiss a finding"));
    };
    dismiss_in_thread(store, thread, DismissalKind::WontFix, &by, dismisser, hook.service.now()).await?;
    acknowledge(hook, repo, number, comment).await?;
    Ok(())
}

/// A person who deletes their "won't fix" withdraws it, unless another comment of theirs in the thread says it too.
async fn deleted(
    hook: Webhook<'_>,
    repo: &Repo,
    number: ItemNumber,
    about: &PullRequestReviewCommentEvent,
) -> Result<(), JobError> {
    let (store, comment) = (hook.service.store(), &about.comment);
    let by = comment.user.as_ref().filter(|user| !user.is_bot()).and_then(|user| user.to_login());
    let (Some(thread), Some(by)) = (comment.in_reply_to_id, by) else {
        return Err(JobError::ignored("the deleted comment was no reply to a finding"));
    };
    let at = FindingThread { repo: repo.id, number, thread: GithubId(thread) };
    if !is_refusal(&comment.body) || at.posted(store).await?.is_none() {
        return Err(JobError::ignored("the deleted comment dismissed no finding"));
    }
    if let Some(github) = hook.service.github() {
        let others = github.review_comments(&repo.name, number).all().await?;
        let says_so = |one: &RestReviewComment| {
            one.id != comment.id
                && one.in_reply_to_id == Some(thread)
                && one.user.as_ref().and_then(|user| user.to_login()).as_ref() == Some(&by)
                && is_refusal(&one.body)
        };
        if others.iter().any(says_so) {
            return Err(JobError::ignored("another comment by the same person still dismisses the finding"));
        }
    }
    let withdrawn = withdraw_wont_fix(store, at, &by, hook.service.now()).await?;
    if withdrawn { Ok(()) } else { Err(JobError::ignored("no dismissal depended on it")) }
}

/// A thumb acknowledges the answer; a reply would only make the thread longer.
async fn acknowledge(hook: Webhook<'_>, repo: &Repo, number: ItemNumber, comment: GithubId) -> Result<(), JobError> {
    let Some(github_id) = repo.github_id.filter(|_| hook.service.github().is_some()) else { return Ok(()) };
    let key = WriteKey::on_github(WriteOrigin::DismissalAnswer, github_id, number, comment.0).with_record(comment.0);
    let write = Write::React { on: ReactTo::ReviewComment(comment), content: ReactionContent::PlusOne };
    hook.service.outbox().await?.enqueue(repo.id, number, &key, write).await?;
    hook.service.wake_publisher();
    Ok(())
}
