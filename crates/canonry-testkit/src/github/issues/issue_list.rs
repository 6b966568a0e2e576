//! The list of a repository's issues and pull requests: filters, order, cursors.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use crate::github::people::accounts::ISSUES_OR_PULLS;
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::serve::paging::{cursor, link, page_number, per_page, read_cursor};
use crate::github::world::{Issue, State, World};

/// `GET …/issues`
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let repo = call.repo(world);
    if !repo.issues_enabled {
        return Err(Answer::message(410, "Issues are disabled for this repo"));
    }
    let order = Order::read(call, "created")?;
    let filter = Filter::read(call)?;
    let matching = |issue: &&Issue| filter.accepts(issue);
    let (page, next) = cut(world, call, repo, &order, matching)?;
    let answer = Answer::ok(page.iter().map(|issue| world.issue_json(repo, issue)).collect());
    Ok(with_next(world, call, repo, answer, "issues", next))
}

/// One page of the matching issues, and the cursor after it if there are more.
///
/// A debug build reads a list of 25,000 in 250 requests, so only the page is sorted: one pass finds the position
/// after a cursor, a selection finds the page.
pub(crate) fn cut<'world>(
    world: &World,
    call: &Call,
    repo: &'world Repo,
    order: &Order,
    matching: impl Fn(&&Issue) -> bool,
) -> Result<(Vec<&'world Issue>, Option<String>), Answer> {
    let size = per_page(call);
    let after = call.query("after").map(read_cursor).transpose()?;
    let skip = match after {
        Some(_) => 0,
        None => (page_number(call) - 1).saturating_mul(size),
    };
    if skip >= world.deepest_offset {
        return Err(Answer::message(
            422,
            "Pagination with the page parameter is not supported for large datasets, please use cursor based pagination (after/before)",
        ));
    }
    let mut keyed: Vec<((i64, u64), &Issue)> = Vec::new();
    for issue in repo.issues.values() {
        let key = order.key(issue);
        if after.is_none_or(|after| order.compare(after, key) == Ordering::Less) && matching(&issue) {
            keyed.push((key, issue));
        }
    }
    let end = skip.saturating_add(size);
    let more = keyed.len() > end;
    if more {
        keyed.select_nth_unstable_by(end, |left, right| order.compare(left.0, right.0));
        keyed.truncate(end);
    }
    keyed.sort_unstable_by(|left, right| order.compare(left.0, right.0));
    let page = keyed.split_off(skip.min(keyed.len()));
    let next = page.last().filter(|_| more).map(|((key, number), _)| cursor(*key, *number));
    Ok((page.into_iter().map(|(_, issue)| issue).collect(), next))
}

/// Adds the `Link` to the next page, with the cursor and, as on GitHub, also a page number.
pub(crate) fn with_next(
    world: &World,
    call: &Call,
    repo: &Repo,
    answer: Answer,
    collection: &str,
    next: Option<String>,
) -> Answer {
    let Some(next) = next else { return answer };
    let base = format!("{}/repositories/{}/{collection}", world.api_url, repo.id);
    let page = (page_number(call) + 1).to_string();
    answer.header("link", &link(call, &base, &[("after", &next), ("page", &page)], "next"))
}

pub(crate) struct Order {
    by: By,
    descending: bool,
}

#[derive(Clone, Copy)]
enum By {
    Created,
    Updated,
    Comments,
}

impl Order {
    pub(crate) fn read(call: &Call, default: &str) -> Result<Self, Answer> {
        let by = match call.query("sort").unwrap_or(default) {
            "created" => By::Created,
            "updated" => By::Updated,
            "comments" | "popularity" | "long-running" => By::Comments,
            _ => return Err(Answer::invalid("Issue", "sort", "invalid")),
        };
        let descending = match call.query("direction") {
            Some("asc") => false,
            Some("desc") | None => true,
            Some(_) => return Err(Answer::invalid("Issue", "direction", "invalid")),
        };
        Ok(Self { by, descending })
    }

    fn key(&self, issue: &Issue) -> (i64, u64) {
        let key = match self.by {
            By::Created => issue.created_at.as_second(),
            By::Updated => issue.updated_at.as_second(),
            By::Comments => i64::try_from(issue.comments).unwrap_or(i64::MAX),
        };
        (key, issue.number)
    }

    fn compare(&self, left: (i64, u64), right: (i64, u64)) -> Ordering {
        if self.descending { right.cmp(&left) } else { left.cmp(&right) }
    }
}

struct Filter {
    state: Option<State>,
    since: Option<Timestamp>,
    labels: Vec<String>,
    creator: Option<String>,
    assignee: Option<String>,
}

impl Filter {
    fn read(call: &Call) -> Result<Self, Answer> {
        let since = match call.query("since") {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| Answer::invalid("Issue", "since", "invalid"))?),
        };
        let labels = call.query("labels").unwrap_or_default();
        let labels = labels.split(',').filter(|name| !name.is_empty()).map(str::to_lowercase).collect();
        Ok(Self {
            state: read_state(call)?,
            since,
            labels,
            creator: call.query("creator").map(str::to_lowercase),
            assignee: call.query("assignee").map(str::to_lowercase),
        })
    }

    fn accepts(&self, issue: &Issue) -> bool {
        let has_label = |name: &String| issue.labels.iter().any(|label| label.to_lowercase() == *name);
        let assigned = |login: &String| match login.as_str() {
            "*" => !issue.assignees.is_empty(),
            "none" => issue.assignees.is_empty(),
            login => issue.assignees.iter().any(|assignee| assignee.eq_ignore_ascii_case(login)),
        };
        self.state.is_none_or(|state| issue.state == state)
            && self.since.is_none_or(|since| issue.updated_at >= since)
            && self.labels.iter().all(has_label)
            && self.creator.as_ref().is_none_or(|creator| issue.author.eq_ignore_ascii_case(creator))
            && self.assignee.as_ref().is_none_or(assigned)
    }
}

/// `state=`; the default is open.
pub(crate) fn read_state(call: &Call) -> Result<Option<State>, Answer> {
    match call.query("state") {
        None | Some("open") => Ok(Some(State::Open)),
        Some("closed") => Ok(Some(State::Closed)),
        Some("all") => Ok(None),
        Some(_) => Err(Answer::invalid("Issue", "state", "invalid")),
    }
}

/// The base of numbered `Link`s: the path by the repository's id, as on GitHub.
pub(crate) fn base_by_id(world: &World, call: &Call) -> String {
    let repo = call.repo(world);
    let prefix = format!("/repos/{}/{}", repo.owner, repo.name);
    let rest = call.named_path.get(prefix.len()..).unwrap_or_default();
    format!("{}/repositories/{}{rest}", world.api_url, repo.id)
}

/// A numbered page of a list under a repository.
pub(crate) fn numbered_under_repo<T>(world: &World, call: &Call, entries: &[T], show: impl Fn(&T) -> Value) -> Answer {
    crate::github::serve::paging::numbered(call, &base_by_id(world, call), entries, show)
}
