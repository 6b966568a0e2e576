//! Which repository and item a webhook is about, and the job it causes.

use canonry_domain::{ItemNumber, RepoName};
use canonry_github::webhook::{Event, EventBody};
use canonry_store::{Fate, NewDelivery, NewJob};
use serde_json::{Value, json};

/// The kind of all jobs that webhooks cause.
const KIND: &str = "webhook";

/// A webhook with everything that its rows need.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sorted<'a> {
    id: &'a str,
    event: &'a Event,
    repo: Option<RepoName>,
    number: Option<ItemNumber>,
    key: String,
    payload: Value,
    ignored: Option<String>,
}

/// Sorts a webhook; `id` is GitHub's id of the delivery.
pub(crate) fn sort<'a>(id: &'a str, event: &'a Event) -> Sorted<'a> {
    let repo: Option<RepoName> = event.repository.as_ref().and_then(|repo| repo.full_name.parse().ok());
    let number = |part: &str| ItemNumber::new(event.raw[part]["number"].as_i64()?).ok();
    // A number means nothing without its repository.
    let number = repo.as_ref().and_then(|_| number("issue").or_else(|| number("pull_request")));
    let key = match (&repo, number, event.installation_id) {
        (Some(repo), Some(number), _) => format!("{}#{number}", repo.key()),
        (Some(repo), None, _) => repo.key(),
        (None, _, Some(installation)) => format!("installation/{installation}"),
        (None, _, None) => format!("delivery/{id}"),
    };
    let ignored = (event.body == EventBody::Ignored)
        .then(|| format!("Canonry does not act on the event {}, or not on one of this shape", event.name));
    let payload = json!({ "event": event.name, "action": event.action });
    Sorted { id, event, repo, number, key, payload, ignored }
}

impl Sorted<'_> {
    /// The delivery as it is stored; `body` is what came.
    pub(crate) fn delivery<'a>(&'a self, body: &'a str) -> NewDelivery<'a> {
        NewDelivery {
            id: self.id,
            event: &self.event.name,
            action: self.event.action.as_deref(),
            repo: self.repo.as_ref(),
            number: self.number,
            payload: body,
            fate: match &self.ignored {
                Some(reason) => Fate::Ignored(reason),
                None => Fate::Job(self.job()),
            },
        }
    }

    /// The job that it causes, or would cause if it were not ignored.
    pub(crate) fn job(&self) -> NewJob<'_> {
        NewJob { key: &self.key, repo: self.repo.as_ref(), kind: KIND, payload: &self.payload }
    }
}

#[cfg(test)]
mod tests {
    use super::sort;
    use canonry_github::webhook::parse_event;
    use canonry_store::Fate;

    fn sorted(name: &str, body: &str) -> (String, Option<i64>, bool) {
        let event = parse_event(name, body.as_bytes()).expect("JSON");
        let sorted = sort("d1", &event);
        let new = sorted.delivery(body);
        let has_job = matches!(new.fate, Fate::Job(_));
        (sorted.key.clone(), new.number.map(|number| number.get()), has_job)
    }

    #[test]
    fn the_key_is_the_narrowest_thing_it_is_about() {
        let repo = r#""repository":{"id":1,"full_name":"Octo/Cat"}"#;
        for (name, body, key, number, has_job) in [
            ("issues", format!(r#"{{{repo},"issue":{{"id":1,"number":7}}}}"#), "octo/cat#7", Some(7), true),
            ("pull_request", format!(r#"{{{repo},"pull_request":{{"number":8}}}}"#), "octo/cat#8", Some(8), false),
            ("push", format!(r#"{{{repo},"ref":"refs/heads/main"}}"#), "octo/cat", None, true),
            ("brand_new", format!(r#"{{{repo},"issue":{{"number":-1}}}}"#), "octo/cat", None, false),
            (
                "brand_new",
                r#"{"issue":{"number":7},"installation":{"id":5}}"#.to_owned(),
                "installation/5",
                None,
                false,
            ),
            ("ping", r#"{"zen":"z","hook_id":1}"#.to_owned(), "delivery/d1", None, true),
            ("issues", r#"{"repository":{"id":1,"full_name":"../.."}}"#.to_owned(), "delivery/d1", None, false),
        ] {
            assert_eq!(sorted(name, &body), (key.to_owned(), number, has_job), "{name} {body}");
        }
    }
}
