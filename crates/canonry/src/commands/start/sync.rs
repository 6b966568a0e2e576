//! `sync`: fetches what changed on GitHub into the store.

use anyhow::{Result, anyhow};
use canonry_domain::{ItemType, RepoName, Since};
use canonry_github::GitHub;
use canonry_store::Store;
use canonry_triage::{
    ActorsReport, CHANGES_PER_SYNC, ChangesReport, OutcomesReport, SweepReport, SyncFailure, SyncOptions, SyncReport,
    own_login, read_templates, resolve_actors, sweep, sync, sync_changes, sync_outcomes,
};
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};

use crate::options::item_filter::ItemFilterOptions;
use crate::output::numbers::thousands;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::{RepoOption, find_named};

/// Fetch issues and pull requests from GitHub.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Fetch issues and pull requests from GitHub.\n\n\
        The first run reads the whole repository, a hundred items per request; later runs read what changed since. An \
        interrupted run continues where it stopped. Then the changes of open pull requests and of those closed in the \
        last 90 days are fetched, one request each, newest first.",
    before_help = "Example:\n  GITHUB_TOKEN=… canonry sync --repo octo/cat\n  canonry sync --repo octo/cat --since 30d --dry-run"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    filter: ItemFilterOptions,
    /// Only items that changed since then: a number of days such as 30d, or a date such as 2026-02-01
    #[arg(long, value_name = "SINCE")]
    since: Option<Since>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Also fetch the target of each closed duplicate, and who closed each triaged issue; one request each
    #[arg(long, conflicts_with = "dry_run")]
    outcomes: bool,
    /// Also find items that were deleted, transferred or converted to discussions
    #[arg(long, conflicts_with = "dry_run")]
    sweep: bool,
    /// The maximum number of requests for changes and base branches of pull requests; 0 fetches none
    #[arg(long, value_name = "COUNT", default_value_t = CHANGES_PER_SYNC)]
    changes: u64,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let bar = context.counter("items from GitHub");
    let github = args.github.client(&bar)?;
    let store = if args.dry_run { args.database.open_existing().await? } else { args.database.open(context).await? };
    let options = SyncOptions {
        item_type: args.filter.item_type(),
        state: args.filter.state(),
        since: args.since.map(|since| since.moment(context.now)),
        only_new: false,
        dry_run: args.dry_run,
    };
    let asked = args.repo.name_to_fetch(&store).await?;
    let done = sync(&store, &github, &asked, options, &mut |so_far| bar.set_position(so_far.fetched)).await;
    let done = done.map_err(|failure| stopped(&failure))?;
    // The current name of the repository: a former name redirects only until another repository takes it.
    let name = done.repo.clone().unwrap_or(asked);
    // Template files affect how issues are compared. If they cannot be read, the templates are learned from the issues.
    if !args.dry_run
        && done.inserted > 0
        && let Some(repo) = store.repos().find(&name).await?
        && let Err(error) = read_templates(&store, &github, &repo, context.now).await
    {
        tracing::info!(%error, "the template files could not be read");
    }
    let mut more = Further::default();
    if args.outcomes {
        begin(&bar, "outcomes from GitHub");
        more.outcomes =
            Some(sync_outcomes(&store, &github, &name, &mut |so_far| bar.set_position(so_far.asked)).await?);
        if let Some(repo) = store.repos().find(&name).await? {
            let own = own_login(&github).await?;
            more.actors = Some(resolve_actors(&store, &github, &repo, own.as_ref(), context.now).await?);
        }
    }
    if args.sweep {
        begin(&bar, "items that are still there");
        more.sweep = Some(sweep(&store, &github, &name, &mut |listed| bar.set_position(listed)).await?);
    }
    if !args.dry_run && args.changes > 0 && args.filter.item_type() != Some(ItemType::Issue) {
        more.changes = Some(fetch_changes(&store, &github, &name, args.changes, &bar).await?);
    }
    bar.finish_and_clear();
    store.disconnect().await;
    Ok(report(&done, &name, args.dry_run, &more))
}

fn begin(bar: &ProgressBar, what: &str) {
    bar.set_message(what.to_owned());
    bar.set_position(0);
}

/// Fetches missing changes of pull requests.
pub(crate) async fn fetch_changes(
    store: &Store,
    github: &GitHub,
    name: &RepoName,
    requests: u64,
    bar: &ProgressBar,
) -> Result<ChangesReport> {
    begin(bar, "pull requests with changes");
    let repo = find_named(store, name).await?;
    Ok(sync_changes(store, github, &repo, requests, &mut |stored| bar.set_position(stored)).await?)
}

/// Returns the error of a run that ended early: the cause, and how many items are already stored.
pub(crate) fn stopped(failure: &SyncFailure) -> anyhow::Error {
    match failure.so_far.fetched {
        0 => anyhow!("{}", failure.cause),
        kept => anyhow!("{} ({} are already stored)", failure.cause, counted(kept, "item")),
    }
}

/// What was done after the sync itself.
#[derive(Debug, Default)]
pub(crate) struct Further {
    outcomes: Option<OutcomesReport>,
    actors: Option<ActorsReport>,
    sweep: Option<SweepReport>,
    pub(crate) changes: Option<ChangesReport>,
}

/// Reports what a run did, for `sync` and `refresh`.
pub(crate) fn report(done: &SyncReport, name: &RepoName, dry_run: bool, more: &Further) -> Report {
    let mut stats = Map::new();
    let counts = [
        ("fetched", done.fetched),
        ("inserted", done.inserted),
        ("updated", done.updated),
        ("content_changed", done.content_changed),
        ("unchanged", done.unchanged),
        ("pages", done.pages),
    ];
    let outcomes = more.outcomes.iter().flat_map(|outcomes| {
        [
            ("outcomes_asked", outcomes.asked),
            ("outcomes_learned", outcomes.learned.len() as u64),
            ("outcomes_gone", outcomes.gone),
        ]
    });
    let actors =
        more.actors.iter().flat_map(|actors| [("actors_asked", actors.asked), ("actors_resolved", actors.resolved)]);
    let sweep = more.sweep.iter().flat_map(|sweep| {
        [("swept", sweep.checked), ("gone", sweep.gone.len() as u64), ("back", sweep.back.len() as u64)]
    });
    let changes = more.changes.iter().flat_map(|changes| {
        [
            ("changes_stored", changes.stored),
            ("changes_left", changes.left),
            ("base_branches_stored", changes.base_branches),
        ]
    });
    for (counter, count) in counts.into_iter().chain(outcomes).chain(actors).chain(sweep).chain(changes) {
        stats.insert(counter.to_owned(), json!(count));
    }
    let mut report = Report::new(stats, text(done, name, dry_run, more))
        .of(name)
        .with("dry_run", dry_run)
        .with("not_modified", done.not_modified)
        .with("renamed_from", &done.renamed_from);
    if let Some(outcomes) = &more.outcomes {
        let learned =
            outcomes.learned.iter().map(|(number, target)| json!({ "number": number, "duplicate_of": target }));
        report = report.with("learned", learned.collect::<Vec<Value>>());
    }
    if let Some(sweep) = &more.sweep {
        let gone = sweep.gone.iter().map(|(number, how)| json!({ "number": number, "gone": how }));
        report = report.with("gone", gone.collect::<Vec<Value>>());
    }
    if let Some(stopped) = more.changes.as_ref().and_then(|changes| changes.stopped.as_ref()) {
        report = report.with("changes_stopped", stopped);
    }
    report
}

fn text(done: &SyncReport, name: &RepoName, dry_run: bool, more: &Further) -> String {
    let mut text = String::new();
    if let Some(former) = &done.renamed_from {
        text.push_str(&format!("{former} is now called {name}.\n"));
    }
    if done.inserted + done.updated == 0 {
        text.push_str(&format!("Nothing new in {name}.\n"));
    } else {
        let fetched = if dry_run { "Would store" } else { "Fetched" };
        text.push_str(&format!("{fetched} {} of {name}.\n", counted(done.fetched, "item")));
        let mut counts = table(["new", "changed", "unchanged"]).with_numbers_from(0);
        counts.add_row([done.inserted, done.updated, done.unchanged].map(thousands));
        text.push_str(&format!("{counts}\n"));
    }
    if let Some(outcomes) = &more.outcomes {
        text.push_str(&format!(
            "\nClosed duplicates without a known target: {}; found now: {}.\n",
            outcomes.asked,
            outcomes.learned.len()
        ));
        for (number, target) in &outcomes.learned {
            text.push_str(&format!("  #{number} is a duplicate of #{target}\n"));
        }
    }
    if let Some(actors) = more.actors.as_ref().filter(|actors| actors.asked > 0) {
        text.push_str(&format!(
            "\nTriaged issues closed or reopened by somebody unknown: {}; found now: {}.\n",
            actors.asked, actors.resolved
        ));
    }
    if let Some(sweep) = &more.sweep {
        text.push_str(&format!(
            "\nChecked {}; {} left the repository.\n",
            counted(sweep.checked, "item"),
            sweep.gone.len()
        ));
        for (number, how) in &sweep.gone {
            text.push_str(&format!("  #{number} {how}\n"));
        }
    }
    if let Some(changes) = more.changes.as_ref().filter(|changes| changes.stored + changes.left > 0) {
        text.push_str(&format!("\n{}\n", changes_line(changes)));
    }
    text
}

fn changes_line(changes: &ChangesReport) -> String {
    let mut line = format!("Changes of {} stored", counted(changes.stored, "pull request"));
    if changes.left > 0 {
        line.push_str(&format!("; {} left for the next sync", thousands(changes.left)));
    }
    if let Some(why) = &changes.stopped {
        line.push_str(&format!(": {why}"));
    }
    line.push('.');
    line
}
