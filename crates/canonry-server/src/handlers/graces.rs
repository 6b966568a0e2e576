//! Webhooks that end a grace at once or object to a close.

use canonry_domain::{GraceEnd, ItemNumber, ItemType, POSSIBLE_DUPLICATE, fixed_issues, has_protected_label};
use canonry_github::api::{RestLabel, RestUser};
use canonry_github::item_from_issue;
use canonry_github::webhook::{IssueCommentEvent, IssuesEvent, PullRequestEvent};
use canonry_store::{ObjectionKind, Repo};
use canonry_triage::{Objections, cancel_grace};

use super::webhook::Webhook;
use crate::handlers::repo_settings::RepoSettings;
use crate::jobs::job_handler::JobError;

pub(super) async fn on_comment(hook: Webhook<'_>, repo: &Repo, about: &IssueCommentEvent) -> Result<(), JobError> {
    let Ok(record) = item_from_issue(&about.issue, hook.received_at()) else { return Ok(()) };
    let by = about.comment.user.as_ref();
    if hook.action() != "created" || is_own(hook, by).await? || by.is_some_and(RestUser::is_bot) {
        return Ok(());
    }
    cancel(hook, repo, record.item_type, record.number, GraceEnd::HumanCommented).await
}

/// A person reviewed a pull request, at a line or as a whole.
pub(super) async fn on_review(hook: Webhook<'_>, repo: &Repo, number: ItemNumber) -> Result<(), JobError> {
    cancel(hook, repo, ItemType::Pr, number, GraceEnd::HumanCommented).await
}

pub(super) async fn on_issue(
    hook: Webhook<'_>,
    repo: &Repo,
    number: ItemNumber,
    about: &IssuesEvent,
) -> Result<(), JobError> {
    let is_edited = about.changes.title.is_some() || about.changes.body.is_some();
    on_change(hook, repo, ItemType::Issue, number, is_edited, about.label.as_ref()).await
}

/// A pull request changed; it may also fix issues.
pub(super) async fn on_pull(
    hook: Webhook<'_>,
    repo: &Repo,
    number: ItemNumber,
    about: &PullRequestEvent,
) -> Result<(), JobError> {
    let is_edited = about.changes.title.is_some() || about.changes.body.is_some();
    on_change(hook, repo, ItemType::Pr, number, is_edited, about.label.as_ref()).await?;
    let pull = &about.pull_request;
    if matches!(hook.action(), "opened" | "edited" | "reopened") && pull.state == "open" {
        let text = format!("{}\n\n{}", pull.title, pull.body.as_deref().unwrap_or_default());
        for issue in fixed_issues(&repo.name, &text) {
            cancel(hook, repo, ItemType::Issue, issue, GraceEnd::LinkedPull).await?;
        }
    }
    Ok(())
}

async fn on_change(
    hook: Webhook<'_>,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    is_edited: bool,
    label: Option<&RestLabel>,
) -> Result<(), JobError> {
    let sender = hook.event.sender.as_ref();
    if is_own(hook, sender).await? {
        // Canonry's account may belong to a person.
        if hook.action() == "reopened" && sender.is_some_and(|sender| !sender.is_bot()) {
            object(hook, repo, item_type, number, sender, true).await?;
        }
        return Ok(());
    }
    let end = match hook.action() {
        "deleted" | "transferred" => GraceEnd::Gone,
        "closed" => GraceEnd::Closed,
        "reopened" => GraceEnd::Reopened,
        "edited" if is_edited => GraceEnd::Edited,
        // New commits: the judged change is no longer the proposed one.
        "synchronize" => GraceEnd::Edited,
        "assigned" => GraceEnd::Assigned,
        "milestoned" => GraceEnd::Milestoned,
        "locked" => GraceEnd::Locked,
        "pinned" => GraceEnd::Pinned,
        "unlabeled" if label.is_some_and(|label| label.name.eq_ignore_ascii_case(POSSIBLE_DUPLICATE)) => {
            GraceEnd::LabelRemoved
        }
        "labeled" if is_protected(hook, repo, label).await? => GraceEnd::Protected,
        _ => return Ok(()),
    };
    cancel(hook, repo, item_type, number, end).await?;
    if end == GraceEnd::Reopened && sender.is_some_and(|sender| !sender.is_bot()) {
        object(hook, repo, item_type, number, sender, false).await?;
    }
    Ok(())
}

/// Records the objection of a person who reopened an item that Canonry may have closed.
async fn object(
    hook: Webhook<'_>,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    sender: Option<&RestUser>,
    is_own: bool,
) -> Result<(), JobError> {
    let service = hook.service;
    let outbox = if service.github().is_some() { Some(service.outbox().await?) } else { None };
    let settings = RepoSettings::last_read(service, repo).await?;
    let objections = Objections { store: service.store(), outbox, repo, handle: settings.handle() };
    let by = sender.and_then(RestUser::to_login);
    if is_own && objections.is_undoing(item_type, number).await? {
        return Ok(());
    }
    if objections.object(item_type, number, ObjectionKind::Reopened, by.as_ref(), service.now()).await? {
        service.wake_publisher();
    }
    Ok(())
}

async fn cancel(
    hook: Webhook<'_>,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    end: GraceEnd,
) -> Result<(), JobError> {
    let service = hook.service;
    let outbox = if service.github().is_some() { Some(service.outbox().await?) } else { None };
    if cancel_grace(service.store(), outbox, repo, item_type, number, end, service.now()).await? {
        service.wake_publisher();
    }
    Ok(())
}

async fn is_own(hook: Webhook<'_>, user: Option<&RestUser>) -> Result<bool, JobError> {
    let own = hook.own_login().await?;
    Ok(own.is_some() && user.and_then(RestUser::to_login).as_ref() == own)
}

/// Whether a label keeps items open, by the settings as last read. The settings are read again right before a close.
async fn is_protected(hook: Webhook<'_>, repo: &Repo, label: Option<&RestLabel>) -> Result<bool, JobError> {
    let Some(label) = label else { return Ok(false) };
    let settings = RepoSettings::last_read(hook.service, repo).await?;
    let (config, label) = (settings.config(), [label.name.clone()]);
    Ok(has_protected_label(&label, &config.close.protected_labels)
        || has_protected_label(&label, &config.triage.exclude_labels))
}
