//! Reviews of pull requests: pending ones that only their author sees, and submitted ones.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::time;
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::{PULLS, Permission};
use crate::github::pulls::pull::{Pull, find, simple_json};
use crate::github::pulls::review_comments::{NewComment, comment_json};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, check_length};
use crate::github::world::{Issue, World};

#[derive(Debug, Clone)]
pub struct Review {
    pub id: u64,
    pub author: String,
    /// The text above its comments; may be empty.
    pub body: String,
    pub state: ReviewState,
    /// The reviewed commit; GitHub changes it if a force-push removes that commit.
    pub commit_id: String,
    pub submitted_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewState {
    /// Started; only its author sees it.
    Pending,
    /// Submitted without a verdict.
    Commented,
    Approved,
    ChangesRequested,
}

impl ReviewState {
    /// The value in GitHub's JSON; webhooks write it in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Commented => "COMMENTED",
            Self::Approved => "APPROVED",
            Self::ChangesRequested => "CHANGES_REQUESTED",
        }
    }

    fn from_event(event: &str) -> Option<Self> {
        Some(match event {
            "COMMENT" => Self::Commented,
            "APPROVE" => Self::Approved,
            "REQUEST_CHANGES" => Self::ChangesRequested,
            _ => return None,
        })
    }
}

impl Pull {
    /// Whether a review waits for its author to submit it.
    pub(crate) fn is_pending(&self, review: u64) -> bool {
        self.reviews.iter().any(|candidate| candidate.id == review && candidate.state == ReviewState::Pending)
    }

    /// Whether a viewer can see a review and its comments.
    pub(crate) fn shows(&self, review: u64, viewer: Option<&str>) -> bool {
        let is_author = |review: &Review| viewer.is_some_and(|viewer| review.author.eq_ignore_ascii_case(viewer));
        let found = self.reviews.iter().find(|candidate| candidate.id == review);
        found.is_none_or(|review| review.state != ReviewState::Pending || is_author(review))
    }

    pub(crate) fn pending_of(&self, login: &str) -> Option<&Review> {
        let own = |review: &&Review| review.author.eq_ignore_ascii_case(login);
        self.reviews.iter().filter(own).find(|review| review.state == ReviewState::Pending)
    }
}

impl World {
    /// A user reviews a pull request as a whole; returns the review's id.
    pub fn review(&mut self, repo: &str, number: u64, by: &str, state: ReviewState, body: &str) -> u64 {
        let commit = self.pull(repo, number).head_sha.clone();
        let id = self.begin_review(repo, number, by, &commit, body);
        if state != ReviewState::Pending {
            self.submit_review(repo, number, id, state);
        }
        id
    }

    /// The reviews of a user, oldest first, including a pending one.
    pub fn reviews_by(&self, repo: &str, number: u64, login: &str) -> Vec<&Review> {
        self.pull(repo, number).reviews.iter().filter(|review| review.author.eq_ignore_ascii_case(login)).collect()
    }

    pub(crate) fn begin_review(&mut self, repo: &str, number: u64, by: &str, commit: &str, body: &str) -> u64 {
        let id = self.fresh_id();
        let review = Review {
            id,
            author: by.to_owned(),
            body: body.to_owned(),
            state: ReviewState::Pending,
            commit_id: commit.to_owned(),
            submitted_at: None,
        };
        self.get_mut(repo)
            .issues
            .get_mut(&number)
            .and_then(|issue| issue.pull.as_mut())
            .expect("a pull request")
            .reviews
            .push(review);
        id
    }

    pub(crate) fn submit_review(&mut self, repo: &str, number: u64, id: u64, state: ReviewState) {
        let at = self.stamp();
        let pull = self.pull_mut(repo, number);
        let review = pull.reviews.iter_mut().find(|review| review.id == id).expect("invariant: callers found it");
        review.state = state;
        review.submitted_at = Some(at);
        let by = review.author.clone();
        pull.requested_reviewers.retain(|login| !login.eq_ignore_ascii_case(&by));
        let mut comments = Vec::new();
        for comment in pull.review_comments.iter_mut().filter(|comment| comment.review == id) {
            (comment.created_at, comment.updated_at) = (at, at);
            comments.push(comment.id);
        }
        self.queue_review_event("submitted", repo, number, id, &by);
        for comment in comments {
            self.queue_review_comment_event("created", repo, number, comment, &by, json!({}));
        }
    }

    fn queue_review_event(&mut self, action: &str, repo: &str, number: u64, id: u64, by: &str) {
        if self.webhook.is_none() {
            return;
        }
        let position = self.position(repo);
        let home = &self.repos[position];
        let issue = &home.issues[&number];
        let review = issue.pull.as_ref().and_then(|pull| pull.reviews.iter().find(|review| review.id == id));
        let mut review = review.map_or(Value::Null, |review| review_json(self, home, number, review));
        review["state"] = json!(review["state"].as_str().unwrap_or_default().to_lowercase());
        let payload = json!({ "review": review, "pull_request": simple_json(self, home, issue) });
        self.queue_event("pull_request_review", Some(action), Some(position), Some(by), payload);
    }
}

/// `GET …/pulls/{pull_number}/reviews`
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (issue, pull) = find(world, call)?;
    let seen: Vec<&Review> = pull.reviews.iter().filter(|review| pull.shows(review.id, call.actor.login())).collect();
    let repo = call.repo(world);
    Ok(numbered_under_repo(world, call, &seen, |review| review_json(world, repo, issue.number, review)))
}

/// `GET …/pulls/{pull_number}/reviews/{review_id}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (issue, _, review) = find_review(world, call)?;
    Ok(Answer::ok(review_json(world, call.repo(world), issue.number, review)))
}

/// `GET …/pulls/{pull_number}/reviews/{review_id}/comments`
pub(crate) fn comments(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (issue, pull, review) = find_review(world, call)?;
    let of_review: Vec<_> = pull.review_comments.iter().filter(|comment| comment.review == review.id).collect();
    let repo = call.repo(world);
    Ok(numbered_under_repo(world, call, &of_review, |comment| {
        let mut value = comment_json(world, repo, issue.number, pull, comment);
        // GitHub shows these fields only in the other lists.
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| !name.ends_with("line") && !name.ends_with("side") && name != "subject_type");
        }
        value
    }))
}

/// `POST …/pulls/{pull_number}/reviews`
pub(crate) fn create(world: &mut World, call: &Call) -> Reply {
    let (issue, pull) = find(world, call)?;
    let number = issue.number;
    may_review(world, call, issue)?;
    let by = call.login();
    if pull.pending_of(&by).is_some() {
        return Err(unprocessable(&["User can only have one pending review per pull request"]));
    }
    let body = call.field("body").and_then(Value::as_str).unwrap_or_default();
    check_length("PullRequestReview", "body", body)?;
    let commit = call.field("commit_id").and_then(Value::as_str).unwrap_or(&pull.head_sha).to_owned();
    let files = pull.files_at(&commit).ok_or_else(|| unprocessable(&["Commit is not part of the pull request"]))?;
    let given = call.field("comments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let comments: Vec<NewComment> =
        given.iter().map(|value| NewComment::read(files, value)).collect::<Result<_, _>>()?;
    let state =
        call.field("event").map(|event| read_event(event, issue, &by, body, !comments.is_empty())).transpose()?;
    let repo = call.repo(world).full_name();
    let id = world.begin_review(&repo, number, &by, &commit, body);
    for comment in comments {
        world.add_review_comment(&repo, number, id, comment);
    }
    if let Some(state) = state {
        world.submit_review(&repo, number, id, state);
    }
    Ok(Answer::ok(shown(world, call, number, id)))
}

/// `PUT …/pulls/{pull_number}/reviews/{review_id}`
pub(crate) fn edit(world: &mut World, call: &Call) -> Reply {
    let (number, id) = own_review(world, call)?;
    let body = call.field("body").and_then(Value::as_str).unwrap_or_default().to_owned();
    check_length("PullRequestReview", "body", &body)?;
    let repo = call.repo(world).full_name();
    let pull = world.pull_mut(&repo, number);
    let pending = pull.is_pending(id);
    let review = pull.reviews.iter_mut().find(|review| review.id == id).ok_or_else(Answer::not_found)?;
    review.body = body;
    if !pending {
        world.queue_review_event("edited", &repo, number, id, &call.login());
    }
    Ok(Answer::ok(shown(world, call, number, id)))
}

/// `DELETE …/pulls/{pull_number}/reviews/{review_id}`: only pending ones.
pub(crate) fn delete(world: &mut World, call: &Call) -> Reply {
    let (number, id) = own_review(world, call)?;
    if !find(world, call)?.1.is_pending(id) {
        return Err(unprocessable(&["Can not delete a non-pending pull request review"]));
    }
    let value = shown(world, call, number, id);
    let repo = call.repo(world).full_name();
    world.revision += 1;
    let issue = world.get_mut(&repo).issues.get_mut(&number).ok_or_else(Answer::not_found)?;
    let pull = issue.pull.as_mut().ok_or_else(Answer::not_found)?;
    let gone: Vec<u64> =
        pull.review_comments.iter().filter(|comment| comment.review == id).map(|comment| comment.id).collect();
    pull.threads.retain(|thread| !gone.contains(&thread.comment));
    pull.review_comments.retain(|comment| comment.review != id);
    pull.reviews.retain(|review| review.id != id);
    Ok(Answer::ok(value))
}

/// `POST …/pulls/{pull_number}/reviews/{review_id}/events`
pub(crate) fn submit(world: &mut World, call: &Call) -> Reply {
    let (number, id) = own_review(world, call)?;
    let (issue, pull, review) = find_review(world, call)?;
    if review.state != ReviewState::Pending {
        return Err(unprocessable(&["Can not submit a review that is not pending"]));
    }
    let body = call.field("body").and_then(Value::as_str).unwrap_or(&review.body).to_owned();
    check_length("PullRequestReview", "body", &body)?;
    let comments = pull.review_comments.iter().any(|comment| comment.review == id);
    let event = call.field("event").unwrap_or(&Value::Null);
    let state = read_event(event, issue, &call.login(), &body, comments)?;
    let repo = call.repo(world).full_name();
    let pull = world.pull_mut(&repo, number);
    let review = pull.reviews.iter_mut().find(|review| review.id == id).ok_or_else(Answer::not_found)?;
    review.body = body;
    world.submit_review(&repo, number, id, state);
    Ok(Answer::ok(shown(world, call, number, id)))
}

/// 422 in the form for refused reviews: sentences instead of fields.
pub(crate) fn unprocessable(errors: &[&str]) -> Answer {
    let mut answer = Answer::message(422, "Unprocessable Entity");
    if let Some(body) = &mut answer.body {
        body["errors"] = json!(errors);
    }
    answer
}

/// A user may review every pull request that they can see, unless the conversation is locked.
pub(crate) fn may_review(world: &World, call: &Call, issue: &Issue) -> Result<(), Answer> {
    let permission = world.may_write(call, PULLS)?;
    if issue.locked && permission < Permission::Write {
        return Err(Answer::message(403, "Unable to create review because the conversation is locked."));
    }
    Ok(())
}

fn read_event(event: &Value, issue: &Issue, by: &str, body: &str, comments: bool) -> Result<ReviewState, Answer> {
    let state = event.as_str().and_then(ReviewState::from_event);
    let state = state.ok_or_else(|| unprocessable(&["Event is not included in the list"]))?;
    let own = issue.author.eq_ignore_ascii_case(by);
    match state {
        ReviewState::Approved if own => Err(unprocessable(&["Can not approve your own pull request"])),
        ReviewState::ChangesRequested if own => {
            Err(unprocessable(&["Can not request changes on your own pull request"]))
        }
        ReviewState::ChangesRequested | ReviewState::Commented if body.trim().is_empty() && !comments => {
            Err(unprocessable(&["Review body can't be blank"]))
        }
        state => Ok(state),
    }
}

fn find_review<'world>(
    world: &'world World,
    call: &Call,
) -> Result<(&'world Issue, &'world Pull, &'world Review), Answer> {
    let (issue, pull) = find(world, call)?;
    let id = call.number("review_id")?;
    let seen = |review: &&Review| review.id == id && pull.shows(id, call.actor.login());
    let review = pull.reviews.iter().find(seen).ok_or_else(Answer::not_found)?;
    Ok((issue, pull, review))
}

fn own_review(world: &World, call: &Call) -> Result<(u64, u64), Answer> {
    let (issue, _, review) = find_review(world, call)?;
    may_review(world, call, issue)?;
    if !review.author.eq_ignore_ascii_case(&call.login()) {
        return Err(Answer::message(403, "Must have admin rights to Repository."));
    }
    Ok((issue.number, review.id))
}

fn shown(world: &World, call: &Call, number: u64, id: u64) -> Value {
    let repo = call.repo(world);
    let pull = repo.issues.get(&number).and_then(|issue| issue.pull.as_ref());
    let review = pull.and_then(|pull| pull.reviews.iter().find(|review| review.id == id));
    review.map_or(Value::Null, |review| review_json(world, repo, number, review))
}

fn review_json(world: &World, repo: &Repo, number: u64, review: &Review) -> Value {
    let html = format!("https://github.com/{}/pull/{number}#pullrequestreview-{}", repo.full_name(), review.id);
    let pull_url = format!("{}/pulls/{number}", repo.api(&world.api_url));
    let mut value = json!({
        "id": review.id,
        "node_id": format!("PRR_{}", review.id),
        "user": world.user_json(&review.author),
        "body": review.body,
        "state": review.state.as_str(),
        "html_url": html,
        "pull_request_url": pull_url,
        "author_association": world.association(repo, &review.author),
        "_links": { "html": { "href": html }, "pull_request": { "href": pull_url } },
        "commit_id": review.commit_id,
    });
    if let Some(at) = review.submitted_at {
        value["submitted_at"] = json!(time(at));
    }
    value
}
