//! `feedback`: what people's reactions say about patterns of findings.

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
use crate::session::local_clone::LocalClone;
use crate::session::reviewed_repo::ReviewedRepoOption;

/// Show or clear what people's reactions say about patterns of findings.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  canonry feedback list --repo octo/cat\n  canonry feedback clear fp-79e99c7e --repo octo/cat --by mona"
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

/// List the patterns that people reacted to, and which of them that hides.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "List the patterns that people reacted to, and which of them that hides.\n\n\
        Reactions move the confidence of a pattern's findings. They hide findings only where .canonry.yml says \
        `feedback: {autoSuppress: {enabled: true}}`, and never a CRITICAL one, nor a MAJOR one about security or correctness: \
        a pattern that ever had such a finding is protected.",
    after_help = "Example:\n  canonry feedback list\n  canonry feedback list --repo octo/cat --json"
)]
struct ListArgs {
    #[command(flatten)]
    repo: ReviewedRepoOption,
    /// The settings file [default: .canonry.yml of the default branch, in a clone of the repository; else the defaults]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Let the reactions so far count no more, for one pattern or for all.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Let the reactions so far count no more, for one pattern or for all.\n\n\
        They stay in the record, with who cleared them and when; only later ones count. To clear all patterns takes --yes, \
        or an answer at a terminal; `canonry feedback restore` undoes the last clear. Where the maintainers are known (see \
        `canonry maintainers`), only they may.",
    after_help = "Example:\n  canonry feedback clear fp-79e99c7e --by mona\n  \
        GITHUB_USER=mona canonry feedback clear --repo octo/cat --yes"
)]
struct ClearArgs {
    /// The pattern's fingerprint, as `canonry feedback list` shows it [default: every pattern]
    #[arg(value_name = "FINGERPRINT")]
    fingerprint: Option<Fingerprint>,
    #[command(flatten)]
    repo: ReviewedRepoOption,
    /// Who clears them
    #[arg(long, value_name = "LOGIN", env = "GITHUB_USER")]
    by: Option<Login>,
    /// Clear every pattern without being asked
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Undo the last clear: what it cleared counts again.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Undo the last clear: what it cleared counts again.\n\nRun again, it undoes the clear before that.",
    after_help = "Example:\n  canonry feedback restore --repo octo/cat --by mona"
)]
struct RestoreArgs {
    #[command(flatten)]
    repo: ReviewedRepoOption,
    /// Who undoes it
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

/// The settings that hold for hiding: of a file that was named, or of the clone that a person stands in.
async fn settings(file: Option<&Path>, repo: &Repo) -> Result<RepoConfig> {
    if let Some(file) = file {
        let parsed = config::read(file)?
            .with_context(|| format!("there is no settings file {}; check its name", file.display()))?;
        return Ok(parsed.config);
    }
    let Ok(clone) = LocalClone::find(Path::new(".")).await else { return Ok(RepoConfig::default()) };
    if clone.repo_name().await.key() != repo.name.key() {
        return Ok(RepoConfig::default());
    }
    match clone.default_base().await {
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
        return format!("Nobody reacted to a finding in {repo}, or all reactions were cleared.\n");
    }
    let mut shown = table(["pattern", "title", "up", "down", "people", "rejected on", ""]);
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
    let mut text = format!("{} in {repo}:\n{}\n", counted(patterns.len() as u64, "pattern"), shown.trim_fmt());
    if !report.settings.enabled {
        text += "\nReactions move confidence; nothing is hidden by them, as feedback.autoSuppress.enabled is false.\n";
    }
    text
}

/// Who asks, if they may clear feedback and bring it back.
async fn maintainer<'a>(store: &Store, repo: &Repo, by: Option<&'a Login>) -> Result<&'a Login> {
    let Some(by) = by else {
        bail!(WrongUsage("say who you are, with --by LOGIN or GITHUB_USER: it is kept with the record".to_owned()));
    };
    if let Some(list) = store.repos().maintainers(repo.id).await?
        && !list.logins.iter().collect::<Maintainers>().contains(by)
    {
        bail!(Refused(format!(
            "only maintainers clear feedback, and {by} is none of {}; see `canonry maintainers list --repo {}`",
            repo.name, repo.name
        )));
    }
    Ok(by)
}

/// Whether every pattern is to be cleared: by --yes, or typed at a terminal.
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
        "nothing was cleared: to clear every pattern of {} takes --yes; to clear one, name it as `canonry feedback list` does",
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
        None => format!("No clear is in force in {}: there was nothing to undo.\n", repo.name),
        Some(undone) => format!(
            "The clear of {} by {} is undone: the reactions to {} count again.\n",
            undone.at,
            one_line(undone.by.as_str()),
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
            format!("No reaction counted for {fingerprint} in {}; see `canonry feedback list`.\n", repo.name)
        }
        (None, 0) => format!("No reaction counted in {}: there was nothing to clear.\n", repo.name),
        (_, count) => {
            format!(
                "The reactions to {} in {name} count no more; later ones will.\n\
                 Undo it with: canonry feedback restore --repo {name} --by {by}\n",
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
