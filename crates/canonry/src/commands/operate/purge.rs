//! `purge`: deletes what is stored about a repository.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use canonry_domain::RepoName;
use canonry_store::{BrakeKind, JobFilter, JobState, PurgePlace, Repo, RepoAccess, RepoId, Representation, Store};
use canonry_triage::remove_indexes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::options::retrieval::present_snapshots_of;
use crate::output::exit::Refused;
use crate::output::numbers::thousands;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::{find_named, listed};

/// Delete everything stored about a repository.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Delete everything stored about a repository, or the vectors of one model.\n\n\
        Its items, vectors, decisions, plans, rulings, reviews, webhooks with their bodies, jobs, unsent writes, console \
        activity, and the indexes on this machine's disk. Nothing on GitHub is changed. It cannot be undone, and people's \
        rulings are deleted too. Rows are deleted in small transactions, so that others can work; an interrupted purge \
        continues when it is run again, and the repository is paused until then. It refuses while something of the repository \
        is being closed or reopened, or a job about it runs.\n\n\
        A service that still gets webhooks of the repository starts over with the next one: remove the App or the webhook \
        first. Backups are not changed.",
    before_help = "Example:\n  canonry purge --repo octo/cat --dry-run\n  canonry purge --repo octo/cat --yes\n  \
        canonry purge --repo octo/cat --vectors-of openai:text-embedding-3-small --yes"
)]
pub(crate) struct Args {
    /// The repository
    #[arg(id = "repo", long, value_name = "OWNER/NAME")]
    repo: RepoName,
    /// Only the vectors of this model, as --dry-run names it
    #[arg(long, value_name = "MODEL")]
    vectors_of: Option<String>,
    /// Count what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Confirm the deletion
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

/// How many rows or items one transaction deletes, together with the rows that refer to them. A transaction takes about
/// 10 ms, both with 10,000 items and with 40,000.
const AT_ONCE: u32 = 100;
/// The owner of the lease, the same for every purge: a purge that continues after a kill does not have to wait for the
/// lease of the killed purge.
const OWNER: &str = "purge";
/// How long the lease lasts. If this process is killed, no other process closes or reopens items in the repository
/// until the lease ends.
const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// How often the lease is renewed: a third of `LEASE`, so that two renewals may come late.
const RENEWAL: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = match args.yes {
        true => args.database.open_known(context).await?,
        false => args.database.open_existing().await?,
    };
    let report = match &args.vectors_of {
        Some(model) => purge_vectors(&args, model, &store, context).await,
        None => purge_repo(&args, &store, context).await,
    };
    store.disconnect().await;
    report
}

async fn purge_repo(args: &Args, store: &Store, context: &Context) -> Result<Report> {
    let asked = &args.repo;
    let repo = store.repos().find(asked).await?;
    let name = repo.as_ref().map_or(asked, |repo| &repo.name);
    let kept = store.maintenance().rows_about(name).await?;
    let rows: u64 = kept.iter().map(|(_, rows)| rows).sum();
    if repo.is_none() && rows == 0 {
        return unknown(store, name).await;
    }
    let remarks = match &repo {
        Some(repo) => watched(store, repo).await?,
        None => Vec::new(),
    };
    if args.dry_run {
        let models = match &repo {
            Some(repo) => models_of(store, repo).await?,
            None => Vec::new(),
        };
        let text = foretold(name, &kept, rows, &models, &remarks);
        let models: Vec<Value> =
            models.iter().map(|(model, vectors)| json!({ "model": model, "vectors": vectors })).collect();
        return Ok(Report::new(json!({ "rows": rows }), text)
            .of(name)
            .with("dry_run", true)
            .with("tables", by_table(&kept))
            .with("models", models)
            .with("remarks", remarks));
    }
    confirmed(args, name)?;
    if let Some(repo) = &repo {
        hold_back(store, repo).await?;
    }
    delete_all(store, name, repo.as_ref().map(|repo| repo.id), context).await?;
    let indexes = remove_files(args, name, None)?;
    let mut text = format!("Deleted {} about {name}", counted(rows, "row"));
    if indexes > 0 {
        text += &format!(", and {} on this machine's disk", counted_indexes(indexes));
    }
    text += ".\n";
    text += &told(&remarks);
    Ok(Report::new(json!({ "rows": rows, "indexes": indexes }), text)
        .of(name)
        .with("dry_run", false)
        .with("tables", by_table(&kept))
        .with("remarks", remarks))
}

async fn purge_vectors(args: &Args, model: &str, store: &Store, context: &Context) -> Result<Report> {
    let repo = find_named(store, &args.repo).await?;
    let models = models_of(store, &repo).await?;
    let Some(vectors) = models.iter().find(|(known, _)| known == model).map(|(_, vectors)| *vectors) else {
        let known: Vec<&str> = models.iter().map(|(known, _)| known.as_str()).collect();
        let known = if known.is_empty() { "nothing".to_owned() } else { known.join(" and ") };
        bail!("{} has no vectors of {model}; it has those of {known}", repo.name);
    };
    let of = counted(vectors, "vector");
    let report = |stats: Value, text: String| Report::new(stats, text).of(&repo.name).with("model", model);
    if args.dry_run {
        let text = format!(
            "{name} has {of} of {model}.\n\nTo delete: canonry purge --repo {name} --vectors-of {model} --yes\n",
            name = repo.name
        );
        return Ok(report(json!({ "rows": vectors }), text).with("dry_run", true));
    }
    confirmed(args, &repo.name)?;
    let bar = context.counter("transactions");
    let mut after = Some(0);
    while let Some(place) = after {
        let begun = Instant::now();
        after = store.maintenance().purge_vectors(repo.id, model, place, AT_ONCE).await?;
        bar.inc(1);
        let_others_in(begun).await;
    }
    bar.finish_and_clear();
    let indexes = remove_files(args, &repo.name, Some(model))?;
    let text = format!("Deleted {of} of {model} in {}.\n", repo.name);
    Ok(report(json!({ "rows": vectors, "indexes": indexes }), text).with("dry_run", false))
}

fn confirmed(args: &Args, name: &RepoName) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    let of = args.vectors_of.as_ref().map(|model| format!(" --vectors-of {model}")).unwrap_or_default();
    bail!(Refused(format!(
        "nothing is deleted without --yes; see what is stored with `canonry purge --repo {name}{of} --dry-run`"
    )))
}

/// Keeps other processes from closing, reopening and writing in a repository until it is deleted. Refuses if another
/// process is doing so now.
async fn hold_back(store: &Store, repo: &Repo) -> Result<()> {
    // The current time is read again, because counting may have taken long since the command began.
    let (name, now) = (&repo.name, Timestamp::now());
    let filter = JobFilter { state: Some(JobState::Running), repo: Some(name.clone()), ..JobFilter::default() };
    let running = store.jobs().list(&filter, AT_ONCE).await?;
    if let Some(job) = running.iter().find(|job| job.lease_until.is_some_and(|until| until > now)) {
        bail!(Refused(format!(
            "job {} ({}) about {name} is running; wait for it or stop the service, then run the command again",
            job.id, job.kind
        )));
    }
    if !store.close().take_lease(repo.id, OWNER, now, now + LEASE).await? {
        let who = store.close().lease(repo.id).await?.map_or_else(|| "somebody".to_owned(), |lease| lease.owner);
        bail!(Refused(format!(
            "{who} is closing or reopening items in {name}; run `canonry purge` again when {who} is done"
        )));
    }
    // The pause stays if this process is killed: a half-deleted repository has lost rulings, and Canonry must not act
    // on it.
    let why = format!("a purge was interrupted; continue it with `canonry purge --repo {name} --yes`");
    store.close().set_brake(repo.id, BrakeKind::Pause, None, &why, now).await?;
    Ok(())
}

async fn delete_all(store: &Store, name: &RepoName, repo: Option<RepoId>, context: &Context) -> Result<()> {
    let bar = context.counter("transactions");
    let mut place = Some(PurgePlace::default());
    let mut renewed = Instant::now();
    while let Some(at) = place {
        let begun = Instant::now();
        if renewed.elapsed() >= RENEWAL
            && let Some(repo) = repo
        {
            let now = Timestamp::now();
            if !store.close().take_lease(repo, OWNER, now, now + LEASE).await? {
                bail!("somebody began to close items in {name} during the purge; run the command again");
            }
            renewed = Instant::now();
        }
        place = store.maintenance().purge_some(name, repo, at, AT_ONCE).await.with_context(|| {
            format!("the purge of {name} did not finish; run `canonry purge --repo {name} --yes` again")
        })?;
        bar.inc(1);
        let_others_in(begun).await;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Sleeps as long as the last transaction took, so that other writers get half of the time: SQLite allows one writer at
/// a time and does not queue the others.
async fn let_others_in(begun: Instant) {
    tokio::time::sleep(begun.elapsed()).await;
}

fn remove_files(args: &Args, name: &RepoName, model: Option<&str>) -> Result<u64> {
    let Some(folder) = present_snapshots_of(&args.database)? else { return Ok(0) };
    remove_indexes(&folder, name, model).with_context(|| {
        format!("the indexes of {name} in {} could not be removed; delete them yourself", folder.display())
    })
}

async fn unknown(store: &Store, name: &RepoName) -> Result<Report> {
    match store.repos().list().await?.as_slice() {
        [] => bail!("nothing is stored about {name}: the database has no repository"),
        known => bail!("nothing is stored about {name}; check the name: the database has {}", listed(known)),
    }
}

/// Warns if a webhook would store the purged repository again, and explains how to prevent it.
async fn watched(store: &Store, repo: &Repo) -> Result<Vec<String>> {
    if repo.github_id.is_none() || store.repos().access(repo.id).await? != RepoAccess::Active {
        return Ok(Vec::new());
    }
    Ok(vec![match store.repos().installation(repo.id).await? {
        Some(installation) => format!(
            "The App is installed on {name} (installation {id}), so the next webhook stores it again. Remove the App from the \
             repository on GitHub, then purge again.",
            name = repo.name,
            id = installation.0
        ),
        None => format!(
            "If a service on this database still gets webhooks of {}, the next one stores it again. Delete the webhook on \
             GitHub, then purge again.",
            repo.name
        ),
    }])
}

/// Returns the models that embedded a repository's items, each with its number of vectors.
async fn models_of(store: &Store, repo: &Repo) -> Result<Vec<(String, u64)>> {
    let mut models = store.corpus().embedding_models(repo.id, Representation::Raw).await?;
    models.extend(store.corpus().embedding_models(repo.id, Representation::Intent).await?);
    Ok(models)
}

fn by_table(kept: &[(&'static str, u64)]) -> Map<String, Value> {
    kept.iter().map(|(table, rows)| ((*table).to_owned(), json!(rows))).collect()
}

fn foretold(
    name: &RepoName,
    kept: &[(&'static str, u64)],
    rows: u64,
    models: &[(String, u64)],
    remarks: &[String],
) -> String {
    let mut shown = table(["table", "rows"]).with_numbers_from(1);
    for (table, rows) in kept.iter().filter(|(_, rows)| *rows > 0) {
        shown.add_row([(*table).to_owned(), thousands(*rows)]);
    }
    let mut text = format!("{} about {name}:\n\n{shown}\n", counted(rows, "row"));
    for (model, vectors) in models {
        text += &format!("{} of {model}\n", counted(*vectors, "vector"));
    }
    text += &told(remarks);
    text + &format!("\nTo delete: canonry purge --repo {name} --yes\n")
}

fn told(remarks: &[String]) -> String {
    remarks.iter().map(|remark| format!("\n{remark}\n")).collect()
}

fn counted_indexes(count: u64) -> String {
    if count == 1 { "1 index".to_owned() } else { format!("{} indexes", thousands(count)) }
}
