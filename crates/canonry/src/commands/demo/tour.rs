//! What the week came to in words, and what to look at in the console.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use canonry_domain::review::ReviewSubject;
use canonry_github::Clock as _;
use serde::Serialize;
use serde_json::json;

use super::folder::DemoFolder;
use super::outcome::Outcome;
use super::pull_story::PRINTED;
use super::running::{Running, VISITOR, item};
use super::story::{B, T, Week};
use crate::context::Context;
use crate::json::document;
use crate::report::Report;
use crate::tables::{counted, table};

/// A page worth a look.
#[derive(Debug, Serialize)]
struct Sight {
    what: &'static str,
    path: String,
}

/// The end of a demo that nobody looks at in a browser.
pub(super) fn headless(week: &Week, outcome: &Outcome, folder: &DemoFolder, took: Duration) -> Result<Report> {
    let mut text = told(outcome, took) + "\nTry next:\n";
    let url = folder.kept_database().map(|file| format!("sqlite:{}", file.display()));
    if let Some(url) = &url {
        let closed = week.number("gzip-closed")?;
        text += &format!(
            "  canonry show --db {url} --repo {B} --number {closed}\n  \
             canonry canonicalize --db {url} --repo {B}\n  \
             canonry thresholds --db {url} --repo {T}\n  \
             canonry report-audit --db {url} --repo {B} --sweep\n  \
             canonry stats --db {url} --repo {B}\n"
        );
    } else {
        text += "  canonry demo                               the same, with the console open\n  \
                 canonry demo --headless --keep demo        the same, with a database to look into\n";
    }
    Ok(Report::new(outcome, text).with("seconds", took.as_secs_f64()).with("database", url))
}

/// An address that signs in whoever opens it first.
pub(super) fn sign_in_once(demo: &Running) -> String {
    format!("http://{}{}", demo.address, demo.one_time_codes.link(demo.clock.now()))
}

/// What a person sees while the console is open.
pub(super) async fn guided(
    demo: &Running,
    week: &Week,
    outcome: &Outcome,
    folder: &DemoFolder,
    took: Duration,
    opens: bool,
    is_verbose: bool,
) -> Result<Report> {
    let sights = sights(demo, week, outcome).await?;
    let base = format!("http://{}", demo.address);
    let once = sign_in_once(demo);
    let sign_in = format!("{base}/sign-in#{}", demo.admin_token.expose());
    let mut text = told(outcome, took);
    let how =
        if opens { "Your browser opens the console. If it does not, open this" } else { "Open this in your browser" };
    text += &format!(
        "\n{how}; it signs you in once, within 15 minutes:\n  {once}\nAfter that, sign in with the token in this link:\n  \
         {sign_in}\n\nThen look at\n"
    );
    for sight in &sights {
        text += &format!("  {:<54}{base}{}\n", sight.what, sight.path);
    }
    text += &format!(
        "\nWho signs in with GitHub there is {VISITOR}, who maintains brindle and may only read the others.\n\
         That GitHub runs beside it until you press Ctrl-C.\n"
    );
    let github = is_verbose.then(|| (demo.emulator.url(), demo.personal_token()));
    if let Some((api, token)) = &github {
        let token = token.expose();
        text += &format!(
            "\nIts API, and a token of {VISITOR}, for a client of yours:\n  {api}\n  {token}\n  \
             curl -H 'authorization: Bearer {token}' {api}/repos/{B}/issues\n"
        );
    }
    if let Some(file) = folder.kept_database() {
        text += &format!("The database is {} and stays.\n", file.display());
    }
    Ok(Report::new(outcome, text)
        .with("seconds", took.as_secs_f64())
        .with("console", &base)
        .with("sign_in", &sign_in)
        .with("sign_in_once", &once)
        .with("github", github.map(|(api, token)| json!({ "api": api, "token": token.expose() })))
        .with("sights", &sights)
        .with("database", folder.kept_database()))
}

/// Prints it at once: the command ends much later.
pub(super) fn print(report: &Report, context: &Context) -> Result<()> {
    let mut stdout = anstream::stdout().lock();
    if context.json {
        stdout.write_all(document(&report.envelope(context)).as_bytes())?;
    } else {
        stdout.write_all(report.text().as_bytes())?;
    }
    stdout.flush()?;
    Ok(())
}

async fn sights(demo: &Running, week: &Week, outcome: &Outcome) -> Result<Vec<Sight>> {
    let plan = outcome.plan.id.context("there is a plan")?;
    let issue = |repo: &str, key: &str| Ok::<_, anyhow::Error>(format!("/r/{repo}/issues/{}", week.number(key)?));
    let finding = moving_finding(demo, week).await?;
    Ok(vec![
        Sight { what: "the duplicate map", path: format!("/r/{B}/clusters") },
        Sight { what: "a plan to review, and to apply", path: format!("/r/{B}/plans/{plan}") },
        Sight { what: "a report that was closed after its grace, and why", path: issue(B, "gzip-closed")? },
        Sight { what: "one that its author opened again", path: issue(B, "sort-reopened")? },
        Sight { what: "what three wrong suggestions have taught it", path: format!("/r/{T}/learning") },
        Sight { what: "the life of a remark over three pushes", path: format!("/r/{B}/findings/{finding}") },
    ])
}

/// The remark that moved with its line.
async fn moving_finding(demo: &Running, week: &Week) -> Result<i64> {
    let repo = demo.repo(B).await?;
    let subject = ReviewSubject::Pull(item(week.pulls.line_ends.context("it was opened")?));
    let last = demo.store.reviews(repo.id, Some(&subject), 1).await?;
    let last = last.first().context("it was reviewed")?;
    let sightings = demo.store.review_sightings(last.id).await?;
    let found = sightings.iter().find(|sighting| sighting.finding.title == PRINTED);
    Ok(found.context("it was found")?.id.get())
}

fn told(outcome: &Outcome, took: Duration) -> String {
    let Outcome { triage, review, plan, audit, .. } = outcome;
    let mut text = format!(
        "A week of {} with {} and {}, told by {} and played in {} seconds.\n",
        counted(outcome.repositories as u64, "sample repository"),
        counted(outcome.issues as u64, "issue"),
        counted(outcome.pull_requests as u64, "pull request"),
        counted(outcome.webhooks, "webhook"),
        took.as_secs()
    );
    let lesson = |kind: &str| outcome.lessons.get(kind).copied().unwrap_or_default();
    let threshold = |at: usize| outcome.threshold[at].map_or_else(|| "silence".to_owned(), |level| level.to_string());
    let mut rows = table(["what", "how many"]);
    for (what, count) in [
        ("new issues, each compared with what was there", triage.looked_at.to_string()),
        ("of these suggested as duplicates", triage.suggested.to_string()),
        ("closed after their grace", triage.closed_after_grace.to_string()),
        ("closed because a maintainer said so", triage.closed_by_ruling.to_string()),
        ("closes that people called off", triage.called_off.to_string()),
        ("closes that still wait", triage.waiting.to_string()),
        ("closes that an author took back", triage.objections.to_string()),
        ("suggestions and verdicts that people confirmed", lesson("confirmed").to_string()),
        ("that were wrong", lesson("false_positive").to_string()),
        ("duplicates that were missed", lesson("missed").to_string()),
        ("score from which it speaks in tidepool, before and after", format!("{} → {}", threshold(0), threshold(1))),
        ("reviews of pull requests", review.reviews.to_string()),
        ("remarks at lines, none of them twice", review.remarks.to_string()),
        (
            "findings that were fixed, moved, dismissed",
            format!("{}, {}, {}", review.fixed, review.moved, review.dismissed),
        ),
        ("findings hidden because three people did not want them", review.hidden_by_feedback.to_string()),
        ("clusters of duplicates in brindle", plan.clusters.to_string()),
        ("that a plan would close, and leaves open", format!("{}, {}", plan.close, plan.skip)),
        ("right and wrong edges in an audit of its judge", format!("{}, {}", audit.tp, audit.fp)),
    ] {
        rows.add_row([what.to_owned(), count]);
    }
    text += &format!("{}\n", rows.trim_fmt());
    text
}
