//! `canonicalize`: every cluster of duplicates, and which of its items stays open.

use anyhow::Result;
use canonry_domain::ItemType;
use canonry_triage::{CanonicalizeReport, canonicalize, cluster_document};
use serde_json::json;

use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::SourceOptions;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// List clusters of duplicates and which item stays open.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "List clusters of duplicates and which item stays open.\n\n\
        The item that stays open is the canonical. The choice is stored: it changes only when a person rules otherwise, \
        when the canonical is closed while another item is open, or when it leaves the cluster.",
    before_help = "Example:\n  canonry canonicalize\n  canonry canonicalize --repo octo/cat --type pr --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let done = canonicalize(&store, &repo, args.item_type.one(), args.source.source(), context.now).await?;
    store.disconnect().await;
    let members: usize = done.clusters.iter().map(|cluster| cluster.members.len()).sum();
    let stats = json!({ "clusters": done.clusters.len(), "members": members, "stored": done.stored });
    Ok(Report::new(stats, text(&done, &repo.name.to_string()))
        .of(&repo.name)
        .with("clusters", done.clusters.iter().map(cluster_document).collect::<Vec<_>>()))
}

fn text(done: &CanonicalizeReport, repo: &str) -> String {
    if done.clusters.is_empty() {
        let next = match done.judged {
            true => format!("Why an item is not one: canonry show NUMBER --repo {repo}"),
            false => format!("Next: canonry judge --repo {repo}"),
        };
        return format!("{repo} has no known duplicates.\n\n{next}\n");
    }
    let bold = anstyle::Style::new().bold();
    let mut text = format!("{} of duplicates.\n", counted(done.clusters.len() as u64, "cluster"));
    for cluster in &done.clusters {
        let word = cluster.item_type.in_words();
        text += &format!("\n{bold}{word} #{}{bold:#} stays open: {}\n", cluster.canonical, cluster.because);
        for member in &cluster.members {
            let mark = if member.number == cluster.canonical { '*' } else { ' ' };
            text += &format!("  {mark} #{:<7} {:<7} {}\n", member.number, member.state, one_line(&member.title));
        }
    }
    if !done.stored {
        text += &format!(
            "\nThe choice is not stored yet: maintainers' items come first, and the maintainers of {repo} are unknown.\n\
             Next: canonry maintainers refresh --repo {repo}\n"
        );
    }
    text
}
