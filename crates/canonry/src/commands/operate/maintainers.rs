//! `maintainers`: who may decide about a repository.

use anyhow::Result;
use canonry_domain::{Login, RepoName};
use canonry_store::{MaintainerList, MaintainerSource};
use canonry_triage::refresh_maintainers;
use serde_json::{Value, json};

use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::RepoOption;

/// See, set or ask GitHub who maintains a repository; items of maintainers are never closed by Canonry.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  canonry maintainers set --repo octo/cat mona hubot\n  canonry maintainers list --repo octo/cat"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(ListArgs),
    Set(SetArgs),
    Refresh(RefreshArgs),
}

/// Show the maintainers and where the list comes from.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  canonry maintainers list --repo octo/cat")]
struct ListArgs {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Name the maintainers; the list stands in for what GitHub says.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  canonry maintainers set --repo octo/cat mona hubot")]
struct SetArgs {
    /// Their logins
    #[arg(required = true, value_name = "LOGIN")]
    logins: Vec<Login>,
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Ask GitHub who may push; a list that was set is replaced.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  GITHUB_TOKEN=… canonry maintainers refresh --repo octo/cat")]
struct RefreshArgs {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    match args.action {
        Action::List(args) => {
            let store = args.database.open_existing().await?;
            let repo = args.repo.find(&store).await?;
            let list = store.repos().maintainers(repo.id).await?;
            Ok(report(&repo.name, list.as_ref()))
        }
        Action::Set(args) => {
            let store = args.database.open_known(context).await?;
            let repo = args.repo.find(&store).await?;
            let list = store.repos().set_maintainers(repo.id, MaintainerSource::Set, &args.logins, context.now).await?;
            store.disconnect().await;
            Ok(report(&repo.name, Some(&list)))
        }
        Action::Refresh(args) => {
            let github = args.github.client(&context.counter("collaborators"))?;
            let store = args.database.open(context).await?;
            let list = refresh_maintainers(&store, &github, &args.repo.name).await?;
            store.disconnect().await;
            Ok(report(&args.repo.name, Some(&list)))
        }
    }
}

fn report(repo: &RepoName, list: Option<&MaintainerList>) -> Report {
    let count = list.map_or(0, |list| list.logins.len() as u64);
    Report::new(json!({ "maintainers": count }), text(repo, list))
        .of(repo)
        .with("maintainers", list.map_or(Value::Null, document))
}

fn document(list: &MaintainerList) -> Value {
    json!({ "source": list.source.as_str(), "written_at": list.written_at, "logins": list.logins })
}

fn text(repo: &RepoName, list: Option<&MaintainerList>) -> String {
    let Some(list) = list else {
        return format!(
            "Nobody knows yet who maintains {repo}.\n\nNext:\n  canonry maintainers refresh --repo {repo}      as GitHub says\n  \
             canonry maintainers set --repo {repo} LOGIN…   as you say\n"
        );
    };
    let source = match list.source {
        MaintainerSource::Set => "set by hand",
        MaintainerSource::Github => "as GitHub says",
    };
    let mut text =
        format!("{} of {}, {source} on {}:\n", counted(list.logins.len() as u64, "maintainer"), repo, list.written_at);
    for login in &list.logins {
        text.push_str(&format!("  {}\n", one_line(login.as_str())));
    }
    text
}
