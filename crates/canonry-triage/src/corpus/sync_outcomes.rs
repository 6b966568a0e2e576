//! `sync --outcomes`: finds the targets of issues that people closed as duplicates.

use canonry_boxed::boxed;
use std::collections::BTreeSet;

use canonry_domain::{
    Item, ItemNumber, ItemState, ItemType, Login, OutcomeEvent, OutcomeKind, RepoName, closed_as_duplicate,
    explains_closing, named_duplicate,
};
use canonry_github::api::RestTimelineEvent;
use canonry_github::{GitHub, GitHubError};
use canonry_store::{ItemFilter, Repo, Store};
use tokio::sync::OnceCell;

use crate::corpus::identify::{identify, remember};
use crate::corpus::resolve_actors::{ActorRoles, IssueTimeline, known_maintainers};
use crate::corpus::sync::SyncError;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomesReport {
    /// Issues closed as duplicates whose target was unknown.
    pub asked: u64,
    /// The issues whose target is known now, with the target.
    pub learned: Vec<(ItemNumber, ItemNumber)>,
    /// Issues that are no longer available.
    pub gone: u64,
}

const PAGE: u32 = 200;

/// Reads the timeline of each issue that people closed as a duplicate without a known target.
///
/// GitHub's REST timeline says that an issue was marked as a duplicate, but not of which one, so the target is what
/// the closer or a maintainer wrote around the close. A close or a comment by a bot is no evidence. If the close is
/// in the outcome log, the comment is recorded there too.
#[boxed]
pub async fn sync_outcomes(
    store: &Store,
    github: &GitHub,
    asked: &RepoName,
    progress: &mut (dyn FnMut(&OutcomesReport) + Send),
) -> Result<OutcomesReport, SyncError> {
    let identified = identify(store, github, asked).await?;
    let repo = remember(store, asked, &identified, github.now()).await?;
    let maintainers = known_maintainers(store, &repo).await?;
    let log = CommentLog { store, github, repo: &repo, maintainers: &maintainers, own: OnceCell::new() };
    let closed = ItemFilter { item_type: Some(ItemType::Issue), state: Some(ItemState::Closed), with_gone: false };
    let mut report = OutcomesReport::default();
    let mut after = None;
    loop {
        let items = store.corpus().items_after(repo.id, closed, after, PAGE).await?;
        let Some(last) = items.last() else { return Ok(report) };
        after = Some((last.number, last.item_type));
        for item in items.iter().filter(|item| closed_as_duplicate(item) && item.duplicate_of.is_none()) {
            report.asked += 1;
            match github.timeline(&repo.name, item.number).all().await {
                Ok(timeline) => {
                    if let Some((target, comment)) = target_of(&repo.name, item, &timeline, &maintainers) {
                        store.corpus().set_duplicate_of(repo.id, item.item_type, item.number, target).await?;
                        if let Some(comment) = comment {
                            log.add(item, target, comment).await?;
                        }
                        report.learned.push((item.number, target));
                    }
                }
                Err(GitHubError::Gone { .. } | GitHubError::NotFound { .. } | GitHubError::Moved { .. }) => {
                    report.gone += 1;
                }
                Err(error) => return Err(error.into()),
            }
            progress(&report);
        }
    }
}

/// The account that we write with, if GitHub reports one: the token of a workflow belongs to no user, and its writes
/// appear as a bot's.
#[boxed]
pub async fn own_login(github: &GitHub) -> Result<Option<Login>, GitHubError> {
    match github.own_login().await {
        Ok(own) => Ok(Some(own)),
        Err(error) if error.is_passing() => Err(error),
        Err(error) => {
            tracing::debug!(%error, "GitHub did not say whose token this is");
            Ok(None)
        }
    }
}

struct CommentLog<'a> {
    store: &'a Store,
    github: &'a GitHub,
    repo: &'a Repo,
    maintainers: &'a BTreeSet<Login>,
    /// Fetched once, and only if there is something to record.
    own: OnceCell<Option<Login>>,
}

impl CommentLog<'_> {
    /// Adds a comment that names a target to the log of an issue, if the log contains the issue's close.
    async fn add(&self, item: &Item, target: ItemNumber, comment: &RestTimelineEvent) -> Result<(), SyncError> {
        let known = self.store.learning().outcome_events(self.repo.id, item.number).await?;
        let is_told = known.iter().any(|event| event.comment.is_some_and(|id| Some(id.0) == comment.id));
        let is_closed = known.iter().any(|event| event.kind == OutcomeKind::Closed);
        let Some(written_at) = comment.created_at.filter(|_| is_closed && !is_told) else { return Ok(()) };
        let own = self.own.get_or_try_init(|| own_login(self.github)).await?;
        let people = ActorRoles { own: own.as_ref(), maintainers: self.maintainers };
        let issue = IssueTimeline { repo: &self.repo.name, item, people };
        let told: Vec<OutcomeEvent> = issue.naming(comment, Some(target), written_at).into_iter().collect();
        self.store.learning().record_outcome_events(self.repo.id, &told, self.github.now()).await?;
        Ok(())
    }
}

/// The last target that a person named around the last close, and the comment that names it, if any.
fn target_of<'a>(
    repo: &RepoName,
    item: &Item,
    timeline: &'a [RestTimelineEvent],
    maintainers: &BTreeSet<Login>,
) -> Option<(ItemNumber, Option<&'a RestTimelineEvent>)> {
    let closing = timeline.iter().rev().find(|event| event.event == "closed")?;
    let closer = person(closing)?;
    let closed_at = closing.created_at?;
    let explaining = timeline.iter().rev().filter(|event| {
        event.event == "commented"
            && event.created_at.is_some_and(|at| explains_closing(at, closed_at))
            && person(event).is_some_and(|login| login == closer || maintainers.contains(&login))
    });
    let in_comments =
        explaining.filter_map(|event| Some((named_duplicate(repo, event.body.as_deref()?)?, Some(event))));
    // The reporter's own text counts only if GitHub gives no reason that would outrank it.
    let in_body = item.state_reason.is_none().then(|| named_duplicate(repo, &item.body)).flatten();
    in_comments.chain(in_body.map(|target| (target, None))).find(|(target, _)| *target != item.number)
}

/// The actor of an event, unless it is a bot.
fn person(event: &RestTimelineEvent) -> Option<Login> {
    let user = event.actor.as_ref()?;
    if user.is_bot() { None } else { user.to_login() }
}
