//! Reads an item from GitHub right before a write.

use canonry_domain::{
    ItemNumber, ItemSnapshot, ItemState, ItemType, LiveItem, Login, RepoName, content_hash, fixed_issues,
};
use canonry_github::api::{RestComment, RestIssue, RestTimelineEvent, RestUser};
use canonry_github::outbox::Outbox;
use canonry_github::{FactError, GitHubError};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::close::close_writes::{CloseContext, RowItem};

/// The item of a row as it is now.
#[derive(Debug)]
pub(crate) struct LiveSource {
    pub(crate) item: LiveItem,
    /// When a person last reopened the item, ever. The corpus knows only the reopenings that it observed.
    pub(crate) reopened_by_person_at: Option<Timestamp>,
}

/// Reads an item that is to be closed, and what happened to it since `planned`. A person who ruled at `ruled_at` that
/// it is a duplicate knew what had happened by then.
pub(crate) async fn live_source(
    closing: CloseContext<'_>,
    repo: &RepoName,
    RowItem { item_type, number }: RowItem,
    planned: &ItemSnapshot,
    planned_at: Timestamp,
    ruled_at: Option<Timestamp>,
) -> Result<LiveSource, FactError> {
    let github = closing.github;
    let issue = github.issue_to_close(repo, number).await?;
    let mut item = live_item(item_type, &issue);
    if item.state != ItemState::Open {
        return Ok(LiveSource { item, reopened_by_person_at: None });
    }
    // Everything that the snapshot contains had happened by the item's last change.
    let since = planned.updated_at.or(planned.last_synced_at).unwrap_or(planned_at);
    let comments = github.comments_before_close(repo, number, since).await?;
    let timeline = github.timeline_before_close(repo, number).await?;
    let ours = |comment: &RestComment| closing.outbox.wrote(comment);
    item.human_commented_since = commented_since(&issue, &comments, planned, since, ours)
        || timeline
            .iter()
            .any(|event| !is_own_review(closing.outbox, event) && reviewed_at(event).is_some_and(|at| at > since));
    item.pinned = is_pinned(&timeline);
    item.linked_open_pr = item_type == ItemType::Issue && is_linked(repo, number, &timeline);
    item.reopened_since = reopenings(&timeline).any(|(at, _)| at > since && ruled_at.is_none_or(|ruled| ruled <= at));
    let reopened_by_person_at = reopenings(&timeline).filter(|(_, person)| *person).map(|(at, _)| at).max();
    Ok(LiveSource { item, reopened_by_person_at })
}

/// Reads the item that another is to be closed as a duplicate of; `None` if it no longer exists.
pub(crate) async fn live_target(
    closing: CloseContext<'_>,
    repo: &RepoName,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<Option<(LiveItem, RestIssue)>, FactError> {
    match closing.github.target_of_close(repo, number).await {
        Ok(issue) => Ok(Some((live_item(item_type, &issue), issue))),
        Err(FactError::GitHub(error)) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the error means that the item was deleted, transferred or converted to a discussion.
pub(crate) fn is_gone(error: &GitHubError) -> bool {
    matches!(error, GitHubError::NotFound { .. } | GitHubError::Gone { .. } | GitHubError::Moved { .. })
}

fn live_item(item_type: ItemType, issue: &RestIssue) -> LiveItem {
    // As the corpus stores texts: without characters that a database cannot store.
    let storable = |text: &str| text.replace('\0', "\u{fffd}");
    let body = issue.body.as_deref().unwrap_or_default();
    LiveItem {
        content_hash: content_hash(item_type, &storable(&issue.title), &storable(body)),
        // An unknown state counts as closed, so that nothing is closed because of it.
        state: issue.state.parse().unwrap_or(ItemState::Closed),
        locked: issue.locked,
        author: issue.user.as_ref().and_then(RestUser::to_login),
        assignees: issue.assignees.iter().filter_map(RestUser::to_login).collect(),
        labels: issue.labels.iter().map(|label| label.name.clone()).collect(),
        milestone: issue.milestone.is_some(),
        linked_open_pr: false,
        pinned: false,
        reopened_since: false,
        human_commented_since: false,
    }
}

/// Whether a person commented after the snapshot. GitHub's times have whole seconds, so a comment in the same second
/// as the snapshot counts if there are more comments than the snapshot knew.
fn commented_since(
    issue: &RestIssue,
    comments: &[RestComment],
    planned: &ItemSnapshot,
    since: Timestamp,
    ours: impl Fn(&RestComment) -> bool,
) -> bool {
    let since = since.as_second();
    let second = |comment: &RestComment| comment.created_at.map_or(i64::MAX, Timestamp::as_second);
    let by_person = |comment: &RestComment| !ours(comment) && !comment.user.as_ref().is_some_and(RestUser::is_bot);
    if comments.iter().any(|comment| second(comment) > since && by_person(comment)) {
        return true;
    }
    let later = comments.iter().filter(|comment| second(comment) > since).count();
    let ours_then = comments.iter().filter(|comment| second(comment) == since && ours(comment)).count();
    let known = issue.comments - count(later) - count(ours_then);
    known > i64::from(planned.comments) && comments.iter().any(|comment| second(comment) == since && by_person(comment))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// When a person reviewed the pull request, if the event is a review.
pub(crate) fn reviewed_at(event: &RestTimelineEvent) -> Option<Timestamp> {
    if event.event != "reviewed" {
        return None;
    }
    let by = event.other.get("user").and_then(|user| serde_json::from_value::<RestUser>(user.clone()).ok());
    if by.is_some_and(|by| by.is_bot()) {
        return None;
    }
    event.other.get("submitted_at").and_then(Value::as_str).and_then(|at| at.parse().ok())
}

/// Whether an event is a review that the outbox wrote; the account alone does not show that.
pub(crate) fn is_own_review(outbox: &Outbox, event: &RestTimelineEvent) -> bool {
    let as_comment = || {
        let id = event.id.unwrap_or_default();
        let text = event.body.as_deref().or_else(|| event.other.get("body")?.as_str())?;
        serde_json::from_value(json!({"id": id, "user": event.other.get("user")?, "body": text})).ok()
    };
    event.event == "reviewed" && as_comment().is_some_and(|comment| outbox.wrote(&comment))
}

/// When commits were pushed to a pull request, if the event is a push. For a commit GitHub gives only the time when
/// it was made; a commit without a readable time counts as new.
pub(crate) fn pushed_at(event: &RestTimelineEvent) -> Option<Timestamp> {
    let made = || {
        let moment = |who: &str| event.other.get(who)?.get("date")?.as_str()?.parse::<Timestamp>().ok();
        moment("committer").max(moment("author"))
    };
    match event.event.as_str() {
        "committed" => Some(made().unwrap_or(Timestamp::MAX)),
        "head_ref_force_pushed" => Some(event.created_at.unwrap_or(Timestamp::MAX)),
        _ => None,
    }
}

pub(crate) fn is_pinned(timeline: &[RestTimelineEvent]) -> bool {
    let last = timeline.iter().rev().find(|event| matches!(event.event.as_str(), "pinned" | "unpinned"));
    last.is_some_and(|event| event.event == "pinned")
}

/// Whether an open pull request says that it fixes the issue, or a person linked one by hand. GitHub's REST API does
/// not say which pull request was linked by hand, so it counts as open.
pub(crate) fn is_linked(repo: &RepoName, number: ItemNumber, timeline: &[RestTimelineEvent]) -> bool {
    let times = |word: &str| timeline.iter().filter(|event| event.event == word).count();
    if times("connected") > times("disconnected") {
        return true;
    }
    let open_pulls = timeline.iter().filter(|event| event.event == "cross-referenced").filter_map(|event| {
        let issue: RestIssue = serde_json::from_value(event.other.get("source")?.get("issue")?.clone()).ok()?;
        (issue.pull_request.is_some() && issue.state == "open").then_some(issue)
    });
    open_pulls.into_iter().any(|pull| {
        let text = format!("{}\n\n{}", pull.title, pull.body.as_deref().unwrap_or_default());
        fixed_issues(repo, &text).contains(&number)
    })
}

/// When the item was reopened, and whether a person did it. Our own reopenings undo a close at the request of a
/// person.
pub(crate) fn reopenings(timeline: &[RestTimelineEvent]) -> impl Iterator<Item = (Timestamp, bool)> + '_ {
    timeline.iter().filter(|event| event.event == "reopened").map(|event| {
        let by_bot = event.actor.as_ref().is_some_and(RestUser::is_bot);
        (event.created_at.unwrap_or(Timestamp::MAX), !by_bot)
    })
}

/// Whether the last close of a closed item is the one that followed our comment.
pub(crate) fn last_close_is_ours(
    own: &Login,
    issue: &RestIssue,
    timeline: &[RestTimelineEvent],
    commented_at: Option<Timestamp>,
) -> bool {
    let own_account = |user: Option<&RestUser>| user.and_then(RestUser::to_login).is_some_and(|login| login == *own);
    let since = commented_at.unwrap_or(Timestamp::MIN);
    let after = |event: &&RestTimelineEvent| event.created_at.is_none_or(|at| at >= since);
    let mut later = timeline.iter().filter(after);
    // The account may be a person's, who may have reopened and closed the item by hand.
    let reopened = later.clone().any(|event| event.event == "reopened");
    let closings: Vec<&RestTimelineEvent> = later.by_ref().filter(|event| event.event == "closed").collect();
    match closings.last() {
        Some(last) => !reopened && own_account(last.actor.as_ref()),
        // The timeline may lag behind.
        None => own_account(issue.closed_by.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ItemNumber, RepoName};
    use canonry_github::api::{RestIssue, RestTimelineEvent};
    use serde_json::{Value, json};

    use super::{is_linked, is_pinned, last_close_is_ours, pushed_at, reviewed_at};

    fn timeline(events: &[Value]) -> Vec<RestTimelineEvent> {
        events.iter().map(|event| serde_json::from_value(event.clone()).expect("lenient")).collect()
    }

    fn mention(state: &str, body: &str) -> Value {
        let pull = json!({"id": 1, "number": 9, "state": state, "title": "t", "body": body, "pull_request": {}});
        json!({"event": "cross-referenced", "source": {"type": "issue", "issue": pull}})
    }

    #[test]
    fn open_pull_requests_that_fix_an_issue_are_linked_to_it() {
        let repo: RepoName = "acme/widgets".parse().expect("valid");
        let linked = |events: &[Value]| is_linked(&repo, ItemNumber::new(3).expect("valid"), &timeline(events));
        assert!(linked(&[mention("open", "Fixes #3")]));
        assert!(linked(&[mention("closed", "Fixes #3"), mention("open", "closes acme/widgets#3")]));
        assert!(!linked(&[mention("closed", "Fixes #3"), mention("open", "See #3"), mention("open", "Fixes #4")]));
        assert!(linked(&[json!({"event": "connected"})]));
        assert!(!linked(&[json!({"event": "connected"}), json!({"event": "disconnected"})]));
    }

    #[test]
    fn the_last_word_on_pins_counts() {
        let pinned =
            |words: &[&str]| is_pinned(&timeline(&words.iter().map(|word| json!({"event": word})).collect::<Vec<_>>()));
        assert!(pinned(&["pinned", "labeled"]));
        assert!(!pinned(&["pinned", "unpinned"]));
        assert!(!pinned(&[]));
    }

    #[test]
    fn reviews_by_people_have_a_time() {
        let review = |by: &str| {
            let user = json!({"login": by});
            json!({"event": "reviewed", "user": user, "submitted_at": "2026-02-01T00:00:00Z"})
        };
        let events = timeline(&[review("ann"), review("lint[bot]"), json!({"event": "labeled"})]);
        let times: Vec<bool> = events.iter().map(|event| reviewed_at(event).is_some()).collect();
        assert_eq!(times, [true, false, false]);
    }

    #[test]
    fn pushes_have_a_time() {
        let at = "2026-02-01T00:00:00Z";
        let events = timeline(&[
            json!({"event": "committed", "committer": {"date": at}, "author": {"date": "2026-01-01T00:00:00Z"}}),
            json!({"event": "head_ref_force_pushed", "created_at": at}),
            json!({"event": "committed", "sha": "1"}),
            json!({"event": "labeled", "created_at": at}),
        ]);
        let times: Vec<_> = events.iter().map(pushed_at).collect();
        let at = Some(at.parse().expect("valid"));
        assert_eq!(times, [at, at, Some(jiff::Timestamp::MAX), None]);
    }

    #[test]
    fn only_the_close_behind_our_comment_is_ours() {
        let own = "canonry-bot".parse().expect("valid");
        let event = |word: &str, by: &str, second: u8| json!({"event": word, "actor": {"login": by}, "created_at": format!("2026-02-01T00:00:{second:02}Z")});
        let issue: RestIssue =
            serde_json::from_value(json!({"id": 1, "number": 3, "closed_by": {"login": "canonry-bot"}}))
                .expect("valid");
        let commented = Some("2026-02-01T00:00:10Z".parse().expect("valid"));
        let ours = |events: &[Value]| last_close_is_ours(&own, &issue, &timeline(events), commented);
        let us = event("closed", "canonry-bot", 11);
        assert!(ours(&[]));
        assert!(ours(&[event("closed", "ann", 2), event("reopened", "ann", 3), us.clone()]));
        assert!(!ours(&[us.clone(), event("reopened", "ann", 12), event("closed", "ann", 13)]));
        // The same account, by hand.
        assert!(!ours(&[us, event("reopened", "canonry-bot", 12), event("closed", "canonry-bot", 13)]));
        assert!(!ours(&[event("closed", "ann", 12)]));
    }
}
