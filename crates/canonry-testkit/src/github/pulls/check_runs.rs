//! Check runs: the results of an App for a commit.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::time;
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::{Actor, CHECKS, Token, TokenKind};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, required_text};
use crate::github::world::World;

/// The maximum length of a text in the output of a check run on GitHub, in characters.
const LONGEST_OUTPUT: usize = 65_535;
const STATUSES: [&str; 3] = ["queued", "in_progress", "completed"];
const CONCLUSIONS: [&str; 8] =
    ["action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale", "timed_out"];

#[derive(Debug, Clone)]
pub struct CheckRun {
    pub id: u64,
    /// Id of its suite; each commit has one suite.
    pub suite: u64,
    pub name: String,
    pub head_sha: String,
    /// The App's own id for the run; may be empty.
    pub external_id: String,
    /// `queued`, `in_progress` or `completed`.
    pub status: String,
    /// `success`, `neutral`, `failure`, `action_required`, …; only if the run is completed.
    pub conclusion: Option<String>,
    pub details_url: Option<String>,
    pub title: Option<String>,
    pub summary: Option<String>,
    pub text: Option<String>,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

impl World {
    /// A user requests a check run again.
    pub fn rerequest_check_run(&mut self, repo: &str, check_run: u64, by: &str) {
        let position = self.position(repo);
        let home = &self.repos[position];
        let found = home.check_runs.iter().find(|run| run.id == check_run);
        let run = found.unwrap_or_else(|| panic!("{repo} has no check run {check_run}"));
        let payload = json!({ "check_run": run_json(self, home, run) });
        self.queue_event("check_run", Some("rerequested"), Some(position), Some(by), payload);
    }

    /// A user requests all checks of a commit again.
    pub fn rerequest_check_suite(&mut self, repo: &str, head_sha: &str, by: &str) {
        let position = self.position(repo);
        let home = &self.repos[position];
        let id = home.check_runs.iter().find(|run| run.head_sha == head_sha).map_or(0, |run| run.suite);
        let suite = json!({
            "id": id,
            "node_id": format!("CS_{id}"),
            "head_sha": head_sha,
            "status": "queued",
            "conclusion": null,
            "app": self.app_json(),
            "pull_requests": pulls_of(self, home, head_sha),
        });
        let payload = json!({ "check_suite": suite });
        self.queue_event("check_suite", Some("rerequested"), Some(position), Some(by), payload);
    }
}

/// `POST …/check-runs`
pub(crate) fn create(world: &mut World, call: &Call) -> Reply {
    may_check(world, call)?;
    let name = required_text(call, "CheckRun", "name")?;
    let head_sha = required_text(call, "CheckRun", "head_sha")?;
    let repo = call.repo(world);
    if repo.git.is_some() && !repo.has_commit(&head_sha) {
        return Err(Answer::message(422, &format!("No commit found for SHA: {head_sha}")));
    }
    let suite = repo.check_runs.iter().find(|run| run.head_sha == head_sha).map(|run| run.suite);
    let mut run = CheckRun {
        id: 0,
        suite: 0,
        name,
        head_sha,
        external_id: String::new(),
        status: String::from("queued"),
        conclusion: None,
        details_url: None,
        title: None,
        summary: None,
        text: None,
        started_at: world.stamp(),
        completed_at: None,
    };
    change(world, call, &mut run)?;
    run.id = world.fresh_id();
    run.suite = suite.unwrap_or_else(|| world.fresh_id());
    let value = run_json(world, call.repo(world), &run);
    call.repo_mut(world).check_runs.push(run);
    Ok(Answer::json(201, value))
}

/// `GET …/check-runs/{check_run_id}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CHECKS)?;
    let position = find(world, call)?;
    let repo = call.repo(world);
    Ok(Answer::ok(run_json(world, repo, &repo.check_runs[position])))
}

/// `PATCH …/check-runs/{check_run_id}`
pub(crate) fn update(world: &mut World, call: &Call) -> Reply {
    may_check(world, call)?;
    let position = find(world, call)?;
    let mut run = call.repo(world).check_runs[position].clone();
    if call.field("name").is_some() {
        run.name = required_text(call, "CheckRun", "name")?;
    }
    change(world, call, &mut run)?;
    world.revision += 1;
    let value = run_json(world, call.repo(world), &run);
    call.repo_mut(world).check_runs[position] = run;
    Ok(Answer::ok(value))
}

/// `GET …/commits/{ref}/check-runs`: the newest of each name, unless all are requested.
pub(crate) fn list_of_commit(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CHECKS)?;
    let repo = call.repo(world);
    let name = call.param("ref");
    let sha = repo.commit_named(name).unwrap_or_else(|| name.to_owned());
    let own_app = world.app.as_ref().map(|app| app.id.to_string());
    let app = call.query("app_id").is_none_or(|wanted| own_app.as_deref() == Some(wanted));
    let matching = |run: &&CheckRun| {
        app && run.head_sha == sha
            && call.query("check_name").is_none_or(|wanted| run.name == wanted)
            && call.query("status").is_none_or(|wanted| run.status == wanted)
    };
    let mut runs: Vec<&CheckRun> = repo.check_runs.iter().rev().filter(matching).collect();
    if call.query("filter") != Some("all") {
        let newest: Vec<&CheckRun> = runs.clone();
        runs.retain(|run| newest.iter().find(|other| other.name == run.name).is_some_and(|first| first.id == run.id));
    }
    let mut answer = numbered_under_repo(world, call, &runs, |run| run_json(world, repo, run));
    answer.body = Some(json!({ "total_count": runs.len(), "check_runs": answer.body }));
    Ok(answer)
}

/// People can see check runs; only Apps can create them.
fn may_check(world: &World, call: &Call) -> Result<(), Answer> {
    world.may_write(call, CHECKS)?;
    match &call.actor {
        Actor::Token(Token { kind: TokenKind::Installation { .. }, .. }) => Ok(()),
        _ => Err(Answer::message(403, "You must authenticate via a GitHub App.")),
    }
}

fn find(world: &World, call: &Call) -> Result<usize, Answer> {
    let id = call.number("check_run_id")?;
    call.repo(world).check_runs.iter().position(|run| run.id == id).ok_or_else(Answer::not_found)
}

/// Applies the fields of a request. A conclusion completes a run; an earlier status removes the conclusion.
fn change(world: &World, call: &Call, run: &mut CheckRun) -> Result<(), Answer> {
    let text = |name: &str| call.field(name).and_then(Value::as_str);
    let known = |name: &str, words: &[&str]| match text(name) {
        Some(word) if !words.contains(&word) => Err(Answer::invalid("CheckRun", name, "invalid")),
        word => Ok(word.map(str::to_owned)),
    };
    let (status, conclusion) = (known("status", &STATUSES)?, known("conclusion", &CONCLUSIONS)?);
    if conclusion.is_some() {
        run.status = String::from("completed");
        run.conclusion = conclusion;
        run.completed_at = Some(world.stamp());
    } else if let Some(status) = status {
        if status == "completed" && run.conclusion.is_none() {
            return Err(Answer::invalid("CheckRun", "conclusion", "missing_field"));
        }
        if status != "completed" {
            (run.conclusion, run.completed_at) = (None, None);
        }
        run.status = status;
    }
    if let Some(id) = text("external_id") {
        id.clone_into(&mut run.external_id);
    }
    run.details_url = text("details_url").map(str::to_owned).or(run.details_url.take());
    if let Some(output) = call.field("output") {
        let part = |name: &str| output.get(name).and_then(Value::as_str).map(str::to_owned);
        for name in ["summary", "text"] {
            let length = part(name).map_or(0, |text| text.chars().count());
            if length > LONGEST_OUTPUT {
                let why = format!("Only {LONGEST_OUTPUT} characters are allowed; {length} were supplied.");
                return Err(Answer::invalid_because("CheckRun", name, &why));
            }
        }
        // GitHub requires both in every output.
        let missing = |name: &str| Answer::invalid("CheckRun", name, "missing_field");
        run.title = Some(part("title").ok_or_else(|| missing("title"))?);
        run.summary = Some(part("summary").ok_or_else(|| missing("summary"))?);
        run.text = part("text");
    }
    Ok(())
}

fn pulls_of(world: &World, repo: &Repo, head_sha: &str) -> Vec<Value> {
    let side = |branch: &str, sha: &str| {
        let home = json!({ "id": repo.id, "url": repo.api(&world.api_url), "name": repo.name });
        json!({ "ref": branch, "sha": sha, "repo": home })
    };
    let pulls = repo.issues.values().filter_map(|issue| Some((issue, issue.pull.as_ref()?)));
    // GitHub does not show which pull requests from forks a commit belongs to.
    pulls
        .filter(|(_, pull)| pull.head_sha == head_sha && pull.fork.is_none())
        .map(|(issue, pull)| {
            json!({
                "id": issue.id,
                "number": issue.number,
                "url": format!("{}/pulls/{}", repo.api(&world.api_url), issue.number),
                "head": side(&pull.head_ref, &pull.head_sha),
                "base": side(&pull.base_ref, &pull.base_sha),
            })
        })
        .collect()
}

fn run_json(world: &World, repo: &Repo, run: &CheckRun) -> Value {
    let url = format!("{}/check-runs/{}", repo.api(&world.api_url), run.id);
    let html = format!("https://github.com/{}/runs/{}", repo.full_name(), run.id);
    json!({
        "id": run.id,
        "node_id": format!("CR_{}", run.id),
        "name": run.name,
        "head_sha": run.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": html,
        "details_url": run.details_url.as_ref().unwrap_or(&html),
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": time(run.started_at),
        "completed_at": run.completed_at.map(time),
        "output": {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": 0,
            "annotations_url": format!("{url}/annotations"),
        },
        "check_suite": { "id": run.suite },
        "app": world.app_json(),
        "pull_requests": pulls_of(world, repo, &run.head_sha),
    })
}
