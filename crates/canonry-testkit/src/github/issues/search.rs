//! Search for issues and pull requests, as far as scripts use it: words and the most common qualifiers.

use serde_json::json;

use crate::github::people::accounts::ISSUES_OR_PULLS;
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::serve::paging::{page_number, per_page};
use crate::github::world::{Issue, State, World};

#[derive(Default)]
struct Asked {
    repo: Option<String>,
    is_pull: Option<bool>,
    state: Option<State>,
    author: Option<String>,
    label: Option<String>,
    words: Vec<String>,
}

impl Asked {
    /// Words in quotes stay together. An unknown qualifier is an error, because ignoring it would find too much.
    fn read(text: &str) -> Result<Self, Answer> {
        let mut asked = Self::default();
        for (place, quoted) in text.split('"').enumerate() {
            if place % 2 == 1 {
                asked.words.push(quoted.to_lowercase());
                continue;
            }
            for word in quoted.split_whitespace() {
                let known = match word.split_once(':') {
                    Some(("repo", name)) => asked.repo.replace(name.to_owned()).is_none(),
                    Some(("is" | "type", "issue")) => asked.is_pull.replace(false).is_none(),
                    Some(("is" | "type", "pr" | "pull-request")) => asked.is_pull.replace(true).is_none(),
                    Some(("is" | "state", "open")) => asked.state.replace(State::Open).is_none(),
                    Some(("is" | "state", "closed")) => asked.state.replace(State::Closed).is_none(),
                    Some(("author", login)) => asked.author.replace(login.to_owned()).is_none(),
                    Some(("label", name)) => asked.label.replace(name.to_owned()).is_none(),
                    Some(_) => false,
                    None => {
                        asked.words.push(word.to_lowercase());
                        true
                    }
                };
                if !known {
                    return Err(Answer::invalid("Search", "q", "invalid"));
                }
            }
        }
        Ok(asked)
    }

    fn accepts(&self, repo: &Repo, issue: &Issue) -> bool {
        let text = format!("{}\n{}", issue.title, issue.body.as_deref().unwrap_or_default()).to_lowercase();
        self.repo.as_ref().is_none_or(|name| repo.full_name().eq_ignore_ascii_case(name))
            && self.is_pull.is_none_or(|is_pull| issue.pull.is_some() == is_pull)
            && self.state.is_none_or(|state| issue.state == state)
            && self.author.as_ref().is_none_or(|login| issue.author.eq_ignore_ascii_case(login))
            && self.label.as_ref().is_none_or(|name| issue.labels.iter().any(|other| other.eq_ignore_ascii_case(name)))
            && self.words.iter().all(|word| text.contains(word))
    }
}

/// `GET /search/issues`
pub(crate) fn issues(world: &mut World, call: &Call) -> Reply {
    let asked = match call.query("q").map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => Asked::read(text)?,
        None => return Err(Answer::invalid("Search", "q", "missing")),
    };
    let mut found = Vec::new();
    for (position, repo) in world.repos.iter().enumerate() {
        let within = Call { repo: Some(position), ..call.clone() };
        if world.may_read(&within, ISSUES_OR_PULLS).is_err() {
            continue;
        }
        found.extend(repo.issues.values().filter(|issue| asked.accepts(repo, issue)).map(|issue| (repo, issue)));
    }
    found.sort_by_key(|(_, issue)| std::cmp::Reverse((issue.updated_at, issue.number)));
    let page = found.iter().skip((page_number(call) - 1).saturating_mul(per_page(call))).take(per_page(call));
    let items = page.map(|(repo, issue)| {
        let mut value = world.issue_json(repo, issue);
        value["score"] = json!(1.0);
        value
    });
    Ok(Answer::ok(json!({
        "total_count": found.len(),
        "incomplete_results": false,
        "items": items.collect::<Vec<_>>(),
        "search_type": "lexical",
    })))
}
