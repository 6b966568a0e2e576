//! Webhooks: queued events, signed delivery, and the App's delivery list.

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::github::issues::issue::time;
use crate::github::people::app::require_app;
use crate::github::serve::call::{Answer, Call, Reply, extended};
use crate::github::serve::paging::{link, per_page};
use crate::github::world::World;

/// The previous commit of a new branch.
const NO_COMMIT: &str = "0000000000000000000000000000000000000000";

/// Where webhooks go.
#[derive(Debug, Clone)]
pub struct Webhook {
    pub url: String,
    /// The secret of `X-Hub-Signature-256`.
    pub secret: String,
}

/// One delivery; a redelivery makes another with the same `guid`.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub id: u64,
    /// The delivery id of the header, shared by all attempts.
    pub guid: String,
    /// The event (`issues`, `issue_comment`, …).
    pub event: String,
    pub action: Option<String>,
    pub payload: Value,
    pub installation_id: Option<u64>,
    pub repository_id: Option<u64>,
    pub redelivery: bool,
    /// The result; `None` while it waits for [`deliver_pending`](super::Emulator::deliver_pending).
    pub attempt: Option<Attempt>,
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub at: Timestamp,
    /// The receiver's status; 0 if it could not be reached.
    pub status: u16,
}

impl Attempt {
    fn succeeded(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Delivery {
    /// The headers and the body as they are sent.
    pub fn signed(&self, secret: &str) -> (Vec<(String, String)>, String) {
        let body = self.payload.to_string();
        let headers = [
            ("content-type", String::from("application/json")),
            ("user-agent", String::from("GitHub-Hookshot/emulated")),
            ("x-github-event", self.event.clone()),
            ("x-github-delivery", self.guid.clone()),
            ("x-github-hook-id", String::from("1")),
            ("x-hub-signature-256", signature(secret, body.as_bytes())),
        ];
        (headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), body)
    }
}

impl World {
    /// Sends webhooks to this URL from now on.
    pub fn send_webhooks_to(&mut self, url: &str, secret: &str) {
        self.webhook = Some(Webhook { url: url.to_owned(), secret: secret.to_owned() });
    }

    /// Queues a `ping`.
    pub fn ping(&mut self) {
        let extra = json!({ "zen": "Keep it logically awesome.", "hook_id": 1, "hook": { "type": "App", "id": 1, "active": true } });
        self.queue_event("ping", None, None, None, extra);
    }

    /// Queues the delivery with that `guid` again.
    ///
    /// # Panics
    /// If there is none.
    pub fn redeliver(&mut self, guid: &str) {
        let found = self.deliveries.iter().find(|delivery| delivery.guid == guid).cloned();
        let mut delivery = found.unwrap_or_else(|| panic!("no delivery {guid}"));
        delivery.id = self.fresh_id();
        delivery.redelivery = true;
        delivery.attempt = None;
        self.deliveries.push(delivery);
    }

    /// Queues an event with the common fields of every payload and `extra` on top.
    pub(crate) fn queue_event(
        &mut self,
        event: &str,
        action: Option<&str>,
        repo: Option<usize>,
        by: Option<&str>,
        extra: Value,
    ) {
        if self.webhook.is_none() {
            return;
        }
        let mut payload = json!({});
        if let Some(action) = action {
            payload["action"] = json!(action);
        }
        let repository = repo.map(|position| &self.repos[position]);
        let repository_id = repository.map(|repository| repository.id);
        let mut installation_id =
            repository.and_then(|repository| self.installation_of(repository)).map(|found| found.id);
        if let Some(repository) = repository {
            payload["repository"] = self.repo_json(repository);
        }
        if let Some(by) = by {
            payload["sender"] = self.user_json(by);
        }
        if let Some(id) = installation_id {
            payload["installation"] = json!({ "id": id, "node_id": format!("MDQ6_{id}") });
        }
        payload = extended(payload, extra);
        installation_id = installation_id.or_else(|| payload["installation"]["id"].as_u64());
        let id = self.fresh_id();
        self.deliveries.push(Delivery {
            id,
            guid: guid(id),
            event: event.to_owned(),
            action: action.map(str::to_owned),
            payload,
            installation_id,
            repository_id,
            redelivery: false,
            attempt: None,
        });
    }

    /// `issues` for issues, `pull_request` for pull requests.
    pub(crate) fn queue_issue_event(&mut self, action: &str, position: usize, number: u64, by: &str, extra: Value) {
        if self.webhook.is_none() {
            return;
        }
        let repo = &self.repos[position];
        let issue = &repo.issues[&number];
        let (event, mut payload) = match crate::github::pulls::pull::full_json(self, repo, issue) {
            Ok(pull) => ("pull_request", json!({ "number": number, "pull_request": pull.body })),
            Err(_) => ("issues", json!({ "issue": self.issue_json(repo, issue) })),
        };
        payload = extended(payload, extra);
        self.queue_event(event, Some(action), Some(position), Some(by), payload);
    }

    /// `push`; a new branch has no `before`.
    #[expect(clippy::too_many_arguments, reason = "a push is all of this")]
    pub(crate) fn queue_push(
        &mut self,
        position: usize,
        branch: &str,
        by: &str,
        before: Option<&str>,
        after: &str,
        paths: &[&str],
        forced: bool,
    ) {
        let commit = json!({ "id": after, "message": "", "added": [], "removed": [], "modified": paths });
        let extra = json!({
            "ref": format!("refs/heads/{branch}"), "before": before.unwrap_or(NO_COMMIT), "after": after,
            "base_ref": null, "created": before.is_none(), "deleted": false, "forced": forced, "commits": [commit],
            "head_commit": commit, "pusher": { "name": by },
        });
        self.queue_event("push", None, Some(position), Some(by), extra);
    }

    pub(crate) fn queue_comment_event(&mut self, action: &str, position: usize, comment: u64, by: &str, extra: Value) {
        if self.webhook.is_none() {
            return;
        }
        let repo = &self.repos[position];
        let comment = &repo.comments[&comment];
        let issue = self.issue_json(repo, &repo.issues[&comment.issue]);
        let mut payload = json!({ "issue": issue, "comment": self.comment_json(repo, comment) });
        payload = extended(payload, extra);
        self.queue_event("issue_comment", Some(action), Some(position), Some(by), payload);
    }
}

/// `GET /app/hook/deliveries`: attempted deliveries, newest first.
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    let cursor = call.query("cursor").map(str::parse::<u64>).transpose();
    let cursor = cursor.map_err(|_| Answer::message(422, "The cursor is invalid."))?;
    let wanted = call.query("status");
    let matching = |delivery: &&Delivery| {
        let status = delivery.attempt.as_ref().is_some_and(|attempt| match wanted {
            Some("success") => attempt.succeeded(),
            Some("failure") => !attempt.succeeded(),
            _ => true,
        });
        status && cursor.is_none_or(|cursor| delivery.id < cursor)
    };
    let mut deliveries: Vec<&Delivery> = world.deliveries.iter().filter(matching).collect();
    deliveries.sort_by_key(|delivery| std::cmp::Reverse(delivery.id));
    let more = deliveries.len() > per_page(call);
    deliveries.truncate(per_page(call));
    let answer = Answer::ok(deliveries.iter().filter_map(|delivery| delivery_json(delivery)).collect());
    let base = format!("{}/app/hook/deliveries", world.api_url);
    Ok(match deliveries.last().filter(|_| more) {
        Some(last) => answer.header("link", &link(call, &base, &[("cursor", &last.id.to_string())], "next")),
        None => answer,
    })
}

/// `GET /app/hook/deliveries/{delivery_id}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    let delivery = find(world, call)?;
    let mut value = delivery_json(delivery).ok_or_else(Answer::not_found)?;
    value["url"] = json!(world.webhook.as_ref().map(|webhook| webhook.url.as_str()));
    value["request"] = json!({ "headers": { "X-GitHub-Delivery": delivery.guid }, "payload": delivery.payload });
    value["response"] = json!({ "headers": {}, "payload": "" });
    Ok(Answer::ok(value))
}

/// `POST /app/hook/deliveries/{delivery_id}/attempts`
pub(crate) fn redeliver(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    let guid = find(world, call)?.guid.clone();
    world.redeliver(&guid);
    Ok(Answer::json(202, json!({})))
}

fn find<'world>(world: &'world World, call: &Call) -> Result<&'world Delivery, Answer> {
    let id = call.number("delivery_id")?;
    world.deliveries.iter().find(|delivery| delivery.id == id).ok_or_else(Answer::not_found)
}

fn delivery_json(delivery: &Delivery) -> Option<Value> {
    let attempt = delivery.attempt.as_ref()?;
    let status = match attempt.status {
        0 => String::from("failed to connect to host"),
        200..300 => String::from("OK"),
        status => format!("Invalid HTTP Response: {status}"),
    };
    Some(json!({
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": time(attempt.at),
        "redelivery": delivery.redelivery,
        "duration": 0.1,
        "status": status,
        "status_code": attempt.status,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repository_id,
        "throttled_at": null,
    }))
}

/// `sha256=` and the HMAC of the body in hexadecimal digits.
fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("invariant: any key length will do");
    mac.update(body);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

/// A UUID-shaped delivery id, the same in every run of a test.
fn guid(id: u64) -> String {
    let hash = Sha256::digest(id.to_be_bytes());
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}
