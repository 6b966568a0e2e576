//! `maintainers`: who maintains a repository.

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

/// List or set who maintains a repository.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "List or set who maintains a repository, or fetch the list from GitHub.\n\n\
        Canonry never closes items of maintainers.",
    before_help = "Example:\n  canonry maintainers list\n  canonry maintainers set mona hubot --repo octo/cat"
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
#[command(before_help = "Example:\n  canonry maintainers list")]
struct ListArgs {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Set the maintainers, in place of GitHub's list.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry maintainers set mona hubot --repo octo/cat")]
struct SetArgs {
    /// Their logins
    #[arg(required = true, value_name = "LOGIN")]
    logins: Vec<Login>,
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Fetch from GitHub who can push; replaces a list that was set.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  GITHUB_TOKEN=… canonry maintainers refresh --repo octo/cat")]
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
            Ok(report(&repo.name, list.as_ref(), context))
        }
        Action::Set(args) => {
            let store = args.database.open_known(context).await?;
            let repo = args.repo.find(&store).await?;
            let list = store.repos().set_maintainers(repo.id, MaintainerSource::Set, &args.logins, context.now).await?;
            store.disconnect().await;
            Ok(report(&repo.name, Some(&list), context))
        }
        Action::Refresh(args) => {
            let github = args.github.client(&context.counter("collaborators"))?;
            let store = args.database.open(context).await?;
            let name = args.repo.name_to_fetch(&store).await?;
            let list = refresh_maintainers(&store, &github, &name).await?;
            store.disconnect().await;
            Ok(report(&name, Some(&list), context))
        }
    }
}

fn report(repo: &RepoName, list: Option<&MaintainerList>, context: &Context) -> Report {
    let count = list.map_or(0, |list| list.logins.len() as u64);
    Report::new(json!({ "maintainers": count }), text(repo, list, context))
        .of(repo)
        .with("maintainers", list.map_or(Value::Null, document))
}

fn document(list: &MaintainerList) -> Value {
    json!({ "source": list.source.as_str(), "written_at": list.written_at, "logins": list.logins })
}

fn text(repo: &RepoName, list: Option<&MaintainerList>, context: &Context) -> String {
    let Some(list) = list else {
        return format!(
            "The maintainers of {repo} are not known yet.\n\nNext:\n  \
             canonry maintainers refresh --repo {repo}      fetch them from GitHub\n  \
             canonry maintainers set LOGIN… --repo {repo}   set them yourself\n"
        );
    };
    let source = match list.source {
        MaintainerSource::Set => "set by hand",
        MaintainerSource::Github => "from GitHub",
    };
    let mut text = format!(
        "{} of {repo}, {source}, {}:\n",
        counted(list.logins.len() as u64, "maintainer"),
        context.when(list.written_at)
    );
    for login in &list.logins {
        text.push_str(&format!("  {}\n", one_line(login.as_str())));
    }
    text
}
