//! `doctor`: checks every part, and says how to fix each problem.

use std::path::Path;

use anyhow::Result;
use canonry_config::SETTINGS_FILE;
use canonry_domain::{TriageReason, clock_trouble};
use canonry_github::{GitHub, GitHubError};
use canonry_models::{Embedder as _, LocalEmbedder};
use canonry_store::{DatabaseUrl, NEWEST_SCHEMA, OpenError, Repo, Representation, Store};
use canonry_triage::{brakes_in_force, is_judge_proven};
use serde::Serialize;
use serde_json::json;

use crate::commands::start::config::read;
use crate::commands::triage::show::grace::brake_in_words;
use crate::output::error_message::error_message;
use crate::output::exit::Exit;
use crate::output::printable::one_line;
use crate::output::reasons::row_reason;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::output::terminal::paragraph;
use crate::session::context::Context;
use crate::session::database::{ChosenDatabase, DatabaseOption};
use crate::session::github::{GithubOption, TOKEN_VARIABLE, is_app, token};

/// Check the database, GitHub access and the settings file.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Check the database, GitHub access and the settings file.\n\n\
        Nothing is changed. For each repository it reports a pause, announced closes and judges without proof. GitHub is \
        asked whether it accepts the App's key or the token, if there is one. The exit status is 1 if a check fails.",
    before_help = "Example:\n  canonry doctor\n  canonry doctor --offline --json"
)]
pub(crate) struct Args {
    /// Do not ask GitHub about the token or the App
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    message: String,
    advice: Option<String>,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, message: message.into(), advice: None }
    }

    fn warn(name: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, message: message.into(), advice: Some(advice.into()) }
    }

    fn fail(name: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Fail, message: message.into(), advice: Some(advice.into()) }
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let mut checks = Vec::new();
    match args.database.choose() {
        Ok(chosen) => check_database(&chosen, &mut checks, context).await,
        Err(error) => checks.push(Check::fail("database", error_message(&error), "name a database with --db")),
    }
    check_github(&args, &mut checks).await;
    checks.push(check_settings(Path::new(SETTINGS_FILE)));

    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let stats = json!({ "ok": count(Status::Ok), "warn": count(Status::Warn), "fail": count(Status::Fail) });
    let exit = if count(Status::Fail) > 0 { Exit::Failed } else { Exit::Done };
    Ok(Report::new(stats, text(&checks)).with("checks", &checks).ending(exit))
}

async fn check_database(chosen: &ChosenDatabase, checks: &mut Vec<Check>, context: &Context) {
    if let Some(folder) = &chosen.data_folder {
        checks.push(if folder.is_dir() {
            Check::ok("data folder", folder.display().to_string())
        } else {
            Check::warn(
                "data folder",
                format!("{} does not exist yet", folder.display()),
                "run `canonry init` to create it",
            )
        });
    }
    let url = chosen.url.to_string();
    match Store::schema_version(&chosen.url).await {
        Ok(found) if found.0 == 0 => {
            checks.push(Check::fail(
                "database",
                format!("{url} answers, but is empty"),
                format!("run `canonry init --db {url}`"),
            ));
        }
        Ok(found) if found < NEWEST_SCHEMA => {
            checks.push(Check::fail(
                "database",
                format!("{url} has schema {}; this program needs {}", found.0, NEWEST_SCHEMA.0),
                format!("run `canonry init --db {url}`"),
            ));
        }
        Ok(found) if found > NEWEST_SCHEMA => {
            checks.push(Check::fail(
                "database",
                format!("{url} has schema {}; this program knows schemas up to {}", found.0, NEWEST_SCHEMA.0),
                "install a newer canonry",
            ));
        }
        Ok(found) => {
            checks.push(Check::ok("database", format!("{url} answers and has schema {}", found.0)));
            checks.push(check_rights(&chosen.url).await);
            checks.push(check_corpus(&chosen.url).await);
            for (name, checked) in [
                ("vectors", check_vectors(&chosen.url).await),
                ("brakes", check_brakes(&chosen.url, context).await),
                ("judges", check_judges(&chosen.url).await),
            ] {
                match checked {
                    Ok(found) => checks.extend(found),
                    Err(error) => {
                        checks.push(Check::fail(name, error_message(&error), "restore the database from a backup"));
                    }
                }
            }
        }
        Err(OpenError::Absent { .. }) => {
            checks.push(Check::fail(
                "database",
                format!("there is no database at {url}"),
                "run `canonry init`, or name another database with --db",
            ));
        }
        Err(error) => {
            checks.push(Check::fail("database", error_message(&error.into()), "name another database with --db"));
        }
    }
}

/// Checks that the database can be written: it tries a write and rolls it back.
async fn check_rights(url: &DatabaseUrl) -> Check {
    let tried = async { anyhow::Ok(Store::open_existing(url).await?.try_to_write().await?) };
    let place = url.file().map_or_else(|| url.to_string(), |path| path.display().to_string());
    match tried.await {
        Ok(()) => Check::ok("rights", format!("{place} can be written")),
        Err(error) => Check::fail(
            "rights",
            format!("{place} cannot be written: {}", error_message(&error)),
            "change its permissions, or use another account",
        ),
    }
}

async fn check_corpus(url: &DatabaseUrl) -> Check {
    match count_items(url).await {
        Ok((0, _)) => Check::warn(
            "corpus",
            "the database has no repository yet",
            "import one with `canonry sync` or `canonry import`",
        ),
        Ok((repos, items)) => {
            Check::ok("corpus", format!("{} with {}", counted(repos, "repository"), counted(items, "item")))
        }
        Err(error) => Check::fail("corpus", error_message(&error), "restore the database from a backup"),
    }
}

async fn count_items(url: &DatabaseUrl) -> Result<(u64, u64)> {
    let store = Store::open_existing(url).await?;
    let repos = store.repos().list().await?;
    let mut items = 0;
    for repo in &repos {
        items += store.corpus().item_counts(repo.id).await?.total();
    }
    Ok((repos.len() as u64, items))
}

/// Warns about repositories with fewer vectors of the current local model than of an older one (under 90 %). The older
/// model is no longer searched.
async fn check_vectors(url: &DatabaseUrl) -> Result<Vec<Check>> {
    let store = Store::open_existing(url).await?;
    let embedder = LocalEmbedder::load()?;
    let present = embedder.model_id();
    let mut checks = Vec::new();
    for repo in store.repos().list().await? {
        let models = store.corpus().embedding_models(repo.id, Representation::Raw).await?;
        let of = |wanted: &str| models.iter().find(|(model, _)| model == wanted).map_or(0, |(_, count)| *count);
        let former = models.iter().filter(|(model, _)| model.starts_with("local:") && model != present);
        if let Some((former, count)) = former.max_by_key(|(_, count)| *count)
            && of(present) * 10 < count * 9
        {
            let message = format!(
                "{}: {} embedded by {present}, {} by the older {former}, which is no longer used",
                repo.name,
                counted(of(present), "item"),
                counted(*count, "item"),
            );
            checks.push(Check::warn("vectors", message, format!("run `canonry embed --repo {}`", repo.name)));
        }
    }
    Ok(checks)
}

/// Reports pauses, announced closes, and budgets for which the model's prices are unknown.
async fn check_brakes(url: &DatabaseUrl, context: &Context) -> Result<Vec<Check>> {
    let store = Store::open_existing(url).await?;
    let mut checks = Vec::new();
    for repo in store.repos().list().await? {
        for brake in brakes_in_force(&store, repo.id).await? {
            let advice = format!("run `canonry resume --repo {}`", repo.name);
            checks.push(Check::warn(brake.kind.as_str(), brake_in_words(&repo.name, &brake, context), advice));
        }
        checks.extend(waiting_closes(&store, &repo, context).await?);
        if store.duplicates().last_triage_reason(repo.id).await?.is_some_and(|reason| reason == TriageReason::NoPrices)
        {
            let message =
                format!("{} has a budget, but the model's prices are unknown, so no model is asked", repo.name);
            let advice = "start `canonry serve` with --input-price and --output-price, or remove budget.monthlyCostUsd";
            checks.push(Check::fail("budget", message, advice));
        }
    }
    Ok(checks)
}

/// Warns about judges in use that no audit has proven: their answers close nothing.
async fn check_judges(url: &DatabaseUrl) -> Result<Vec<Check>> {
    let store = Store::open_existing(url).await?;
    let mut checks = Vec::new();
    for repo in store.repos().list().await? {
        for judge in store.judge().judges_in_use(repo.id).await? {
            if is_judge_proven(&store, &repo, &judge).await? {
                continue;
            }
            let name = one_line(&format!("{} {}", judge.provider, judge.model));
            let message = format!(
                "the judge {name} has not passed an audit in {}, so its answers close nothing there",
                repo.name
            );
            let advice = format!(
                "run `canonry judge-audit --repo {} --cheap-provider {} --cheap-model MODEL --strong-provider …`",
                repo.name, judge.provider
            );
            checks.push(Check::warn("judge", message, advice));
        }
    }
    Ok(checks)
}

async fn waiting_closes(store: &Store, repo: &Repo, context: &Context) -> Result<Option<Check>> {
    let graces = store.close().waiting_graces(Some(repo.id)).await?;
    let Some(first) = graces.first() else { return Ok(None) };
    let count = counted(graces.len() as u64, "item");
    let message = format!(
        "{count} of {} will be closed unless somebody objects, {} #{} first, on {}",
        repo.name,
        first.item_type.in_words(),
        first.number,
        context.due(first.due_at)
    );
    let held = graces.iter().find_map(|grace| Some((grace, grace.reason.as_deref()?)));
    Ok(Some(match held {
        None => Check::ok("closes", message),
        Some((grace, why)) => {
            let why = row_reason(why);
            let advice = format!("see `canonry show {} --repo {}`", grace.number, repo.name);
            Check::warn("closes", format!("{message}; #{} waits: {why}", grace.number), advice)
        }
    }))
}

async fn check_github(args: &Args, checks: &mut Vec<Check>) {
    let (check, client) = check_credentials(args).await;
    checks.push(check);
    let Some(time) = client.as_ref().and_then(GitHub::github_time) else { return };
    checks.push(match clock_trouble(time.skew) {
        None => Check::ok("clock", "agrees with GitHub's clock"),
        Some(trouble) => {
            Check::fail("clock", format!("{trouble}, so nothing is closed"), "set this machine's clock with NTP")
        }
    });
}

/// Checks that GitHub accepts the credentials, and returns the client that it used.
async fn check_credentials(args: &Args) -> (Check, Option<GitHub>) {
    // An App has priority over a token, as in every other command.
    let (name, another) = match (is_app(), token()) {
        (true, _) => ("github app", "check CANONRY_APP_ID and the App's private key".to_owned()),
        (false, Some(_)) => ("github token", format!("set {TOKEN_VARIABLE} to another token")),
        (false, None) => {
            let check = Check::warn(
                "github token",
                format!("{TOKEN_VARIABLE} is not set; `canonry import` works without it, `canonry sync` does not"),
                format!("set {TOKEN_VARIABLE} to a token that can read your repositories, or configure a GitHub App"),
            );
            return (check, None);
        }
    };
    let client = match args.github.impatient_client() {
        Ok(client) => client,
        Err(error) if is_app() => return (Check::fail(name, one_line(&error_message(&error)), another), None),
        Err(error) => return (Check::fail(name, error_message(&error), "check --github-api"), None),
    };
    if args.offline {
        let set = if is_app() { "CANONRY_APP_ID and a key are" } else { "GITHUB_TOKEN is" };
        return (Check::ok(name, format!("{set} set; not checked with GitHub")), None);
    }
    let check = match client.own_login().await {
        Ok(login) => Check::ok(name, format!("GitHub accepts it, as {}", one_line(login.as_str()))),
        Err(error @ GitHubError::Unauthorized { .. }) => Check::fail(name, one_line(&error.to_string()), another),
        // Tokens of installations and of CI jobs have no account.
        Err(GitHubError::Forbidden { .. }) if !is_app() => {
            Check::ok(name, "GitHub accepts it; it belongs to no account")
        }
        Err(error) => Check::warn(name, one_line(&error.to_string()), "try again, or use --offline"),
    };
    (check, Some(client))
}

fn check_settings(path: &Path) -> Check {
    let name = "settings";
    match read(path) {
        Ok(None) => Check::ok(name, format!("no {} here; every setting has its default", path.display())),
        Ok(Some(parsed)) if parsed.problems.is_empty() => Check::ok(name, format!("{} is valid", path.display())),
        Ok(Some(parsed)) => Check::fail(
            name,
            format!("{} has {}", path.display(), counted(parsed.problems.len() as u64, "mistake")),
            "see `canonry config check`",
        ),
        Err(error) => Check::fail(name, error_message(&error), "check the file's permissions"),
    }
}

/// The column in which every message begins.
const MESSAGE_COLUMN: usize = 20;

fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let (word, colour) = match check.status {
            Status::Ok => ("ok  ", anstyle::AnsiColor::Green),
            Status::Warn => ("warn", anstyle::AnsiColor::Yellow),
            Status::Fail => ("fail", anstyle::AnsiColor::Red),
        };
        let style = colour.on_default().bold();
        let message = paragraph(MESSAGE_COLUMN, &check.message);
        text.push_str(&format!("{style}{word}{style:#}  {:<13} {}", check.name, message.trim_start()));
        if let Some(advice) = &check.advice {
            text.push_str(&paragraph(MESSAGE_COLUMN + 1, &format!("→ {advice}")));
        }
    }
    text
}
