//! The result of the week as text, and the console pages to visit.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use canonry_demo::{BRINDLE_REPO, Demo, DemoOutcome, TIDEPOOL_REPO, VISITOR, Week};
use serde::Serialize;
use serde_json::json;

use super::folder::DemoFolder;
use crate::output::json::document;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;

#[derive(Debug, Serialize)]
struct Sight {
    what: &'static str,
    path: String,
}

/// The result of a demo without a browser.
pub(super) fn headless(week: &Week, outcome: &DemoOutcome, folder: &DemoFolder, took: Duration) -> Result<Report> {
    let mut text = summary(outcome, took) + "\nTry next:\n";
    let url = folder.kept_database().map(|file| format!("sqlite:{}", file.display()));
    if let Some(url) = &url {
        let closed = week.number("gzip-closed")?;
        text += &format!(
            "  canonry show {closed} --db {url} --repo {BRINDLE_REPO}\n  \
             canonry canonicalize --db {url} --repo {BRINDLE_REPO}\n  \
             canonry thresholds --db {url} --repo {TIDEPOOL_REPO}\n  \
             canonry report-audit --db {url} --repo {BRINDLE_REPO} --sweep\n  \
             canonry stats --db {url} --repo {BRINDLE_REPO}\n"
        );
    } else {
        text += "  canonry demo                           the same, with the console\n  \
                 canonry demo --headless --keep demo    the same, and keep the database\n";
    }
    Ok(Report::new(outcome, text).with("seconds", took.as_secs_f64()).with("database", url))
}

/// The text that is shown while the console is open.
pub(super) async fn guided(
    demo: &Demo,
    week: &Week,
    outcome: &DemoOutcome,
    folder: &DemoFolder,
    took: Duration,
    opens: bool,
    is_verbose: bool,
) -> Result<Report> {
    let sights = sights(demo, week, outcome).await?;
    let base = demo.url();
    let once = demo.sign_in_once_url();
    let sign_in = demo.sign_in_url();
    let mut text = summary(outcome, took);
    let how =
        if opens { "Your browser opens the console. If it does not, open this" } else { "Open this in your browser" };
    text += &format!(
        "\n{how}; it signs you in once, within 15 minutes:\n  {once}\nAfter that, sign in with the token in this link:\n  \
         {sign_in}\n\nPages to visit:\n"
    );
    for sight in &sights {
        text += &format!("  {}\n    {base}{}\n", sight.what, sight.path);
    }
    text += &format!(
        "\nSign-in with GitHub makes you {VISITOR}, who maintains brindle and may only read the other repositories.\n\
         The console and the emulated GitHub run until you press Ctrl-C.\n"
    );
    let github = is_verbose.then(|| (demo.github_url(), demo.personal_token()));
    if let Some((api, token)) = &github {
        let token = token.expose();
        text += &format!(
            "\nThe emulated GitHub's API, and a token of {VISITOR}:\n  {api}\n  {token}\n  \
             curl -H 'authorization: Bearer {token}' {api}/repos/{BRINDLE_REPO}/issues\n"
        );
    }
    if let Some(file) = folder.kept_database() {
        text += &format!("The database is kept: {}\n", file.display());
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

/// Prints the report at once, because the command ends much later.
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

async fn sights(demo: &Demo, week: &Week, outcome: &DemoOutcome) -> Result<Vec<Sight>> {
    let plan = outcome.plan.id.context("there is a plan")?;
    let issue = |repo: &str, key: &str| Ok::<_, anyhow::Error>(format!("/r/{repo}/issues/{}", week.number(key)?));
    let finding = demo.moved_finding(week).await?;
    Ok(vec![
        Sight { what: "The map of duplicates", path: format!("/r/{BRINDLE_REPO}/clusters") },
        Sight { what: "A plan to review and apply", path: format!("/r/{BRINDLE_REPO}/plans/{plan}") },
        Sight {
            what: "An issue that was closed after its grace period, and why",
            path: issue(BRINDLE_REPO, "gzip-closed")?,
        },
        Sight { what: "An issue that its author reopened", path: issue(BRINDLE_REPO, "sort-reopened")? },
        Sight { what: "The threshold after three wrong suggestions", path: format!("/r/{TIDEPOOL_REPO}/learning") },
        Sight { what: "A finding over three pushes", path: format!("/r/{BRINDLE_REPO}/findings/{finding}") },
    ])
}

fn summary(outcome: &DemoOutcome, took: Duration) -> String {
    let DemoOutcome { triage, review, plan, audit, .. } = outcome;
    let mut text = format!(
        "A week of {} with {}, {} and {}, played in {} seconds.\n",
        counted(outcome.repositories as u64, "sample repository"),
        counted(outcome.issues as u64, "issue"),
        counted(outcome.pull_requests as u64, "pull request"),
        counted(outcome.webhooks, "webhook"),
        took.as_secs()
    );
    let lesson = |kind: &str| outcome.lessons.get(kind).copied().unwrap_or_default();
    let threshold =
        |at: usize| outcome.threshold[at].map_or_else(|| "no comments".to_owned(), |level| format!("{level} %"));
    let mut rows = table(["what", "count"]);
    for (what, count) in [
        ("new issues triaged", triage.looked_at.to_string()),
        ("suggested as duplicates", triage.suggested.to_string()),
        ("closed after their grace period", triage.closed_after_grace.to_string()),
        ("closed by a maintainer's ruling", triage.closed_by_ruling.to_string()),
        ("announced closes that people cancelled", triage.called_off.to_string()),
        ("announced closes still waiting", triage.waiting.to_string()),
        ("closes that the author reverted", triage.objections.to_string()),
        ("predictions that were right", lesson("confirmed").to_string()),
        ("predictions that were wrong", lesson("false_positive").to_string()),
        ("duplicates missed", lesson("missed").to_string()),
        ("threshold in tidepool, before and after", format!("{} → {}", threshold(0), threshold(1))),
        ("pull request reviews", review.reviews.to_string()),
        ("inline comments, none of them twice", review.remarks.to_string()),
        ("findings fixed, moved, dismissed", format!("{}, {}, {}", review.fixed, review.moved, review.dismissed)),
        ("findings hidden after three people rejected them", review.hidden_by_feedback.to_string()),
        ("clusters of duplicates in brindle", plan.clusters.to_string()),
        ("items that the plan closes, leaves open", format!("{}, {}", plan.close, plan.skip)),
        ("right and wrong answers in an audit of the judge", format!("{}, {}", audit.tp, audit.fp)),
    ] {
        rows.add_row([what.to_owned(), count]);
    }
    text += &format!("{rows}\n");
    text
}
