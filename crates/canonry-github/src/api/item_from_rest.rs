//! Converts GitHub's items into Canonry's records.

use canonry_domain::{GithubId, InvalidNumber, ItemNumber, ItemRecord, ItemState, ItemType, Login, StateReason};
use jiff::Timestamp;

use crate::api::{RestIssue, RestLabel, RestPull, RestUser};

/// The record of an issue or, in lists of issues, of a pull request.
///
/// `asked_at` is the time of the request. Unknown values, such as a new state reason, count as absent.
pub fn item_from_issue(issue: &RestIssue, asked_at: Timestamp) -> Result<ItemRecord, InvalidNumber> {
    let item_type = if issue.pull_request.is_some() { ItemType::Pr } else { ItemType::Issue };
    let merged_at = issue.pull_request.as_ref().and_then(|pull| pull.merged_at);
    Ok(ItemRecord {
        github_id: Some(GithubId(issue.id)),
        body: Some(issue.body.clone().unwrap_or_default()),
        state: issue.state.parse().ok(),
        state_reason: state_reason(issue.state_reason.as_deref()),
        merged: Some(merged_at.is_some()),
        draft: Some(issue.draft.unwrap_or(false)),
        author: author(issue.user.as_ref()),
        assignees: Some(logins(&issue.assignees)),
        has_milestone: Some(issue.milestone.is_some()),
        locked: Some(issue.locked),
        labels: Some(label_names(&issue.labels)),
        comments: count(Some(issue.comments)),
        created_at: issue.created_at,
        updated_at: issue.updated_at,
        closed_at: closed_at(&issue.state, issue.closed_at),
        url: issue.html_url.clone(),
        synced_at: Some(asked_at),
        ..ItemRecord::new(item_type, ItemNumber::new(issue.number)?, issue.title.clone())
    })
}

/// The record of a pull request. It contains no id: the id as a pull request is not the item's id, which is the id as
/// an issue.
pub fn item_from_pull(pull: &RestPull, asked_at: Timestamp) -> Result<ItemRecord, InvalidNumber> {
    Ok(ItemRecord {
        body: Some(pull.body.clone().unwrap_or_default()),
        state: pull.state.parse().ok(),
        merged: Some(pull.merged_at.is_some()),
        draft: Some(pull.draft),
        author: author(pull.user.as_ref()),
        assignees: Some(logins(&pull.assignees)),
        has_milestone: Some(pull.milestone.is_some()),
        locked: Some(pull.locked),
        labels: Some(label_names(&pull.labels)),
        comments: count(pull.comments),
        review_comments: count(pull.review_comments),
        created_at: pull.created_at,
        updated_at: pull.updated_at,
        closed_at: closed_at(&pull.state, pull.closed_at),
        url: pull.html_url.clone(),
        base_branch: Some(pull.base.branch.clone()).filter(|branch| !branch.is_empty()),
        synced_at: Some(asked_at),
        ..ItemRecord::new(ItemType::Pr, ItemNumber::new(pull.number)?, pull.title.clone())
    })
}

fn state_reason(word: Option<&str>) -> Option<Option<StateReason>> {
    match word {
        None => Some(None),
        Some(word) => word.parse().ok().map(Some),
    }
}

/// An open item has no closing date, whatever the answer contains.
fn closed_at(state: &str, closed_at: Option<Timestamp>) -> Option<Option<Timestamp>> {
    match state.parse() {
        Ok(ItemState::Open) => Some(None),
        _ => closed_at.map(Some),
    }
}

/// GitHub shows a deleted account's texts under the account `ghost`.
fn author(user: Option<&RestUser>) -> Option<Login> {
    match user {
        Some(user) => user.to_login(),
        None => "ghost".parse().ok(),
    }
}

fn logins(users: &[RestUser]) -> Vec<Login> {
    users.iter().filter_map(RestUser::to_login).collect()
}

fn label_names(labels: &[RestLabel]) -> Vec<String> {
    labels.iter().map(|label| label.name.clone()).collect()
}

fn count(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::{item_from_issue, item_from_pull};
    use crate::api::{RestIssue, RestPull};
    use canonry_domain::{GithubId, ItemState, ItemType, StateReason};
    use jiff::Timestamp;
    use serde_json::json;

    const ASKED: Timestamp = Timestamp::UNIX_EPOCH;

    fn issue(value: serde_json::Value) -> RestIssue {
        serde_json::from_value(value).expect("lenient")
    }

    #[test]
    fn a_closed_issue_keeps_its_reason() {
        let record = item_from_issue(
            &issue(json!({
                "id": 7_000_000_000_i64, "number": 3, "title": "T", "body": null, "state": "closed",
                "state_reason": "duplicate", "user": null, "assignees": [{"login": "ann"}],
                "labels": [{"name": "bug"}], "comments": 2, "closed_at": "2026-02-01T00:00:00Z",
            })),
            ASKED,
        )
        .expect("a number");
        assert_eq!((record.item_type, record.github_id), (ItemType::Issue, Some(GithubId(7_000_000_000))));
        assert_eq!((record.state, record.state_reason), (Some(ItemState::Closed), Some(Some(StateReason::Duplicate))));
        assert_eq!((record.body.as_deref(), record.comments), (Some(""), Some(2)));
        assert_eq!(record.author.map(|author| author.to_string()).as_deref(), Some("ghost"));
        assert_eq!(record.closed_at, Some(Some("2026-02-01T00:00:00Z".parse().expect("valid"))));
    }

    #[test]
    fn a_merged_pull_request_is_told_in_both_shapes() {
        let merged = json!({"merged_at": "2026-02-01T00:00:00Z"});
        let seen =
            item_from_issue(&issue(json!({"id": 1, "number": 2, "state": "closed", "pull_request": merged})), ASKED);
        let seen = seen.expect("a number");
        assert_eq!((seen.item_type, seen.merged), (ItemType::Pr, Some(true)));
        let pull: RestPull = serde_json::from_value(
            json!({"id": 9, "number": 2, "state": "closed", "merged_at": "2026-02-01T00:00:00Z", "review_comments": 4, "base": {"ref": "main"}}),
        )
        .expect("lenient");
        let seen = item_from_pull(&pull, ASKED).expect("a number");
        assert_eq!(seen.base_branch.as_deref(), Some("main"));
        assert_eq!(
            (seen.item_type, seen.merged, seen.github_id, seen.review_comments),
            (ItemType::Pr, Some(true), None, Some(4))
        );
    }

    #[test]
    fn unknown_words_are_not_said() {
        let record =
            item_from_issue(&issue(json!({"id": 1, "number": 2, "state": "ajar", "state_reason": "boredom"})), ASKED);
        let record = record.expect("a number");
        assert_eq!((record.state, record.state_reason), (None, None));
        assert!(item_from_issue(&issue(json!({"id": 1, "number": 0})), ASKED).is_err());
    }
}
