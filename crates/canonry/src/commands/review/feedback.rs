//! `feedback`: people's reactions to findings, by pattern.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use canonry_config::RepoConfig;
use canonry_domain::review::Fingerprint;
use canonry_domain::{Login, Maintainers};
use canonry_review::{FeedbackReport, RatedPattern, feedback_report, read_settings};
use canonry_store::{Repo, Store};
use serde_json::{Value, json};

use crate::commands::start::config;
use crate::output::exit::{Refused, WrongUsage};
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;
use crate::session::local_clone::LocalClone;

/// Show, clear or restore reactions to findings.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example:\n  canonry feedback list\n  canonry feedback clear fp-79e99c7e --repo octo/cat --by mona"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(ListArgs),
    Clear(ClearArgs),
    Restore(RestoreArgs),
}

/// List the patterns that people reacted to, and which of them are hidden.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "List the patterns that people reacted to, and which of them are hidden.\n\n\
        Reactions change the confidence of a pattern's findings. They hide findings only where .canonry.yml sets \
        `feedback: {autoSuppress: {enabled: true}}`, and never a critical one, nor a major one about security or correctness: \
        a pattern that ever had such a finding is protected.",
    before_help = "Example:\n  canonry feedback list\n  canonry feedback list --repo octo/cat --json"
)]
struct ListArgs {
    #[command(flatten)]
    repo: RepoOption,
    /// The settings file [default: .canonry.yml of the default branch, in a clone of the repository; else the defaults]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Clear the reactions to one pattern, or to all.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Clear the reactions to one pattern, or to all.\n\n\
        Only later reactions count then. The cleared ones stay stored, with who cleared them and when. Clearing all patterns \
        needs --yes, or an answer at a terminal; `canonry feedback restore` reverts the last clear. Where the maintainers are \
        known (see `canonry maintainers`), only they may clear.",
    before_help = "Example:\n  canonry feedback clear fp-79e99c7e --by mona\n  \
        GITHUB_USER=mona canonry feedback clear --repo octo/cat --yes"
)]
struct ClearArgs {
    /// The pattern's fingerprint, as `canonry feedback list` shows it [default: every pattern]
    #[arg(value_name = "FINGERPRINT")]
    fingerprint: Option<Fingerprint>,
    #[command(flatten)]
    repo: RepoOption,
    /// Your login, which is stored with the clear
    #[arg(long, value_name = "LOGIN", env = "GITHUB_USER")]
    by: Option<Login>,
    /// Clear every pattern without a question
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Revert the last clear: what it cleared counts again.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Revert the last clear: what it cleared counts again.\n\nRun it again to revert the clear before that.",
    before_help = "Example:\n  canonry feedback restore --repo octo/cat --by mona"
)]
struct RestoreArgs {
    #[command(flatten)]
    repo: RepoOption,
    /// Your login, which is stored with it
    #[arg(long, value_name = "LOGIN", env = "GITHUB_USER")]
    by: Option<Login>,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    match args.action {
        Action::List(args) => list(&args).await,
        Action::Clear(args) => clear(&args, context).await,
        Action::Restore(args) => restore(&args, context).await,
    }
}

async fn list(args: &ListArgs) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let settings = settings(args.config.as_deref(), &repo).await?.feedback.auto_suppress;
    let report = feedback_report(&store, repo.id, &settings).await?;
    store.disconnect().await;
    let stats = json!({ "patterns": report.patterns.len(), "suppressed": report.hidden() });
    let documents: Vec<Value> = report.patterns.iter().map(document).collect();
    Ok(Report::new(stats, in_words(&report, &repo.name.to_string()))
        .of(&repo.name)
        .with("auto_suppress", report.settings.enabled)
        .with("patterns", documents))
}

/// Reads the settings that decide which findings are hidden: from the named file, or from the clone in the current
/// folder.
async fn settings(file: Option<&Path>, repo: &Repo) -> Result<RepoConfig> {
    if let Some(file) = file {
        let parsed = config::read(file)?
            .with_context(|| format!("there is no settings file {}; check the name", file.display()))?;
        return Ok(parsed.config);
    }
    let Ok(clone) = LocalClone::find(Path::new(".")).await else { return Ok(RepoConfig::default()) };
    if clone.repo_name().await.key() != repo.name.key() {
        return Ok(RepoConfig::default());
    }
    match clone.default_base().await.map(|(base, _)| base) {
        Ok(base) => Ok(read_settings(clone.git(), &base).await.config),
        Err(_) => Ok(RepoConfig::default()),
    }
}

fn document(rated: &RatedPattern) -> Value {
    let pattern = &rated.pattern;
    json!({
        "fingerprint": pattern.fingerprint,
        "pattern": pattern.key,
        "title": pattern.title,
        "thumbs_up": pattern.feedback.thumbs_up,
        "thumbs_down": pattern.feedback.thumbs_down,
        "reactors": pattern.feedback.reactors,
        "pull_requests": pattern.feedback.pull_requests,
        "suppressed": rated.hidden,
        "protected": pattern.protected,
    })
}

fn in_words(report: &FeedbackReport, repo: &str) -> String {
    let patterns = &report.patterns;
    if patterns.is_empty() {
        return format!("No reactions to findings in {repo}, or all were cleared.\n");
    }
    let mut shown = table(["pattern", "title", "up", "down", "people", "rejected on", "state"]);
    for rated in patterns {
        let pattern = &rated.pattern;
        shown.add_row([
            pattern.fingerprint.to_string(),
            one_line(&pattern.title),
            pattern.feedback.thumbs_up.to_string(),
            pattern.feedback.thumbs_down.to_string(),
            pattern.feedback.reactors.to_string(),
            counted(u64::from(pattern.feedback.pull_requests), "pull request"),
            rated.what().to_owned(),
        ]);
    }
    let mut text = format!("{} in {repo}:\n{shown}\n", counted(patterns.len() as u64, "pattern"));
    if !report.settings.enabled {
        text += "\nReactions change the confidence only; they hide nothing, because feedback.autoSuppress.enabled is false.\n";
    }
    text
}

/// Returns the login of the person who runs the command if they may clear and restore feedback.
async fn maintainer<'a>(store: &Store, repo: &Repo, by: Option<&'a Login>) -> Result<&'a Login> {
    let Some(by) = by else {
        bail!(WrongUsage("add --by LOGIN or set GITHUB_USER; your login is stored with the change".to_owned()));
    };
    if let Some(list) = store.repos().maintainers(repo.id).await?
        && !list.logins.iter().collect::<Maintainers>().contains(by)
    {
        bail!(Refused(format!(
            "only maintainers may do this, and {by} does not maintain {}; see `canonry maintainers list --repo {}`",
            repo.name, repo.name
        )));
    }
    Ok(by)
}

/// Requires a confirmation before every pattern is cleared: --yes, or a phrase typed at a terminal.
fn confirm_all(args: &ClearArgs, repo: &Repo) -> Result<()> {
    if args.fingerprint.is_some() || args.yes {
        return Ok(());
    }
    let phrase = format!("clear all in {}", repo.name);
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        write!(anstream::stderr().lock(), "This clears the reactions to every pattern. Type “{phrase}” to confirm: ")?;
        let mut answer = String::new();
        stdin.lock().read_line(&mut answer)?;
        if answer.trim() == phrase {
            return Ok(());
        }
    }
    bail!(Refused(format!(
        "nothing was cleared; add --yes to clear every pattern of {}, or name one from `canonry feedback list`",
        repo.name
    )))
}

async fn restore(args: &RestoreArgs, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let by = maintainer(&store, &repo, args.by.as_ref()).await?;
    let undone = store.findings().undo_feedback_clear(repo.id, None, by, context.now, context.now).await?;
    store.disconnect().await;
    let text = match &undone {
        None => format!("Nothing to restore: no clear is in force in {}.\n", repo.name),
        Some(undone) => format!(
            "Reverted the clear by {} ({}): the reactions to {} count again.\n",
            one_line(undone.by.as_str()),
            context.when(undone.at),
            counted(undone.patterns, "pattern")
        ),
    };
    let restored = undone.map_or(0, |undone| undone.patterns);
    Ok(Report::new(json!({ "restored": restored }), text).of(&repo.name).with("by", by))
}

async fn clear(args: &ClearArgs, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let by = maintainer(&store, &repo, args.by.as_ref()).await?;
    confirm_all(args, &repo)?;
    let cleared = store.findings().clear_feedback(repo.id, args.fingerprint.as_ref(), by, context.now).await?;
    store.disconnect().await;
    let text = match (&args.fingerprint, cleared) {
        (Some(fingerprint), 0) => {
            format!("No reactions to {fingerprint} in {}; see `canonry feedback list`.\n", repo.name)
        }
        (None, 0) => format!("Nothing to clear: {} has no reactions that count.\n", repo.name),
        (_, count) => {
            format!(
                "Cleared the reactions to {} in {name}; later ones will count.\n\
                 To revert: canonry feedback restore --repo {name} --by {by}\n",
                counted(count, "pattern"),
                name = repo.name
            )
        }
    };
    Ok(Report::new(json!({ "cleared": cleared }), text)
        .of(&repo.name)
        .with("fingerprint", &args.fingerprint)
        .with("by", by))
}
