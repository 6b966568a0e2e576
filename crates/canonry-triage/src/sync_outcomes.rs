//! `sync --outcomes`: learns what the issues that people closed as duplicates are duplicates of.

use std::collections::HashSet;

use canonry_domain::{
    Item, ItemNumber, ItemState, ItemType, Login, RepoName, closed_as_duplicate, explains_closing, named_duplicate,
};
use canonry_github::api::RestTimelineEvent;
use canonry_github::{GitHub, GitHubError};
use canonry_store::{ItemFilter, Store};

use crate::identify::{identify, remember};
use crate::sync::SyncError;

/// What was learned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomesReport {
    /// Issues closed as duplicates whose target was not known.
    pub asked: u64,
    /// Those whose target is known now, with it.
    pub learned: Vec<(ItemNumber, ItemNumber)>,
    /// Those that cannot be asked about any more.
    pub gone: u64,
}

/// A page of items at a time.
const PAGE: u32 = 200;

/// Reads the timeline of each issue that people closed as a duplicate without a known target.
///
/// GitHub's REST timeline says that an issue was marked as a duplicate, but not of what, so the target
/// is what the closer or a maintainer wrote around the closing. A closing or a comment by a bot is no evidence.
pub async fn sync_outcomes(
    store: &Store,
    github: &GitHub,
    asked: &RepoName,
    progress: &mut (dyn FnMut(&OutcomesReport) + Send),
) -> Result<OutcomesReport, SyncError> {
    let identified = identify(store, github, asked).await?;
    let repo = remember(store, asked, &identified, github.now()).await?;
    let maintainers: HashSet<Login> =
        store.maintainers(repo.id).await?.map(|list| list.logins.into_iter().collect()).unwrap_or_default();
    let closed = ItemFilter { item_type: Some(ItemType::Issue), state: Some(ItemState::Closed), with_gone: false };
    let mut report = OutcomesReport::default();
    let mut after = None;
    loop {
        let items = store.items_after(repo.id, closed, after, PAGE).await?;
        let Some(last) = items.last() else { return Ok(report) };
        after = Some((last.number, last.item_type));
        for item in items.iter().filter(|item| closed_as_duplicate(item) && item.duplicate_of.is_none()) {
            report.asked += 1;
            match github.timeline(&repo.name, item.number).all().await {
                Ok(timeline) => {
                    if let Some(target) = target_of(&repo.name, item, &timeline, &maintainers) {
                        store.set_duplicate_of(repo.id, item.item_type, item.number, target).await?;
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

/// The last target that a person named around the last closing.
fn target_of(
    repo: &RepoName,
    item: &Item,
    timeline: &[RestTimelineEvent],
    maintainers: &HashSet<Login>,
) -> Option<ItemNumber> {
    let closing = timeline.iter().rev().find(|event| event.event == "closed")?;
    let closer = person(closing)?;
    let closed_at = closing.created_at?;
    let explaining = timeline.iter().rev().filter(|event| {
        event.event == "commented"
            && event.created_at.is_some_and(|at| explains_closing(at, closed_at))
            && person(event).is_some_and(|login| login == closer || maintainers.contains(&login))
    });
    let in_comments = explaining.filter_map(|event| named_duplicate(repo, event.body.as_deref()?));
    // The reporter's own text counts only where GitHub gives no reason that would outrank it.
    let in_body = item.state_reason.is_none().then(|| named_duplicate(repo, &item.body)).flatten();
    in_comments.chain(in_body).find(|target| *target != item.number)
}

/// Who did something, unless a bot did.
fn person(event: &RestTimelineEvent) -> Option<Login> {
    let user = event.actor.as_ref()?;
    if user.is_bot() { None } else { user.to_login() }
}
