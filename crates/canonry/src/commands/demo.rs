//! `demo`: the sample repositories in a store of their own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use canonry_domain::{Item, ItemNumber, ItemType, Login, RepoName};
use canonry_store::{DatabaseUrl, ItemCounts, MaintainerSource, Repo, Store};
use canonry_testkit::samples::{ALL, Sample};
use canonry_triage::import;
use comfy_table::CellAlignment;
use serde_json::{Value, json};

use crate::commands::show::item_document;
use crate::context::Context;
use crate::printable::one_line;
use crate::report::Report;
use crate::tables::{counted, table};

/// Show Canonry at work on sample repositories, without an account or a key.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show Canonry at work on sample repositories, without an account or a key.\n\n\
        Two invented repositories are imported into a temporary database, which is removed at the end.",
    after_help = "Example:\n  canonry demo\n  canonry demo --keep demo"
)]
pub(crate) struct Args {
    /// Keep the database and the sample files in this folder, which is created
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let folder = DemoFolder::create(args.keep, context)?;
    let url = DatabaseUrl::Sqlite(folder.path.join("canonry.db"));
    let store = Store::open(&url, context.now).await?;
    let mut filled = Vec::new();
    for sample in &ALL {
        filled.push(fill(&store, sample, &folder.path, context).await?);
    }
    let example = example(&store, &filled).await?;
    store.close().await;

    let items: u64 = filled.iter().map(|(_, counts)| counts.total()).sum();
    let stats = json!({ "repositories": filled.len(), "items": items });
    let kept = folder.is_kept.then(|| url.to_string());
    let repos: Vec<Value> = filled.iter().map(|(repo, counts)| counts_document(&repo.name, *counts)).collect();
    Ok(Report::new(stats, text(&filled, example.as_ref(), kept.as_deref()))
        .with("repositories", repos)
        .with("example", example.as_ref().map(|(duplicate, _)| item_document(duplicate)))
        .with("database", kept))
}

/// The demo's folder; one that nobody wanted to keep is removed, also when the demo fails.
struct DemoFolder {
    path: PathBuf,
    is_kept: bool,
}

impl DemoFolder {
    fn create(keep: Option<PathBuf>, context: &Context) -> Result<Self> {
        let is_kept = keep.is_some();
        let path = keep.unwrap_or_else(|| std::env::temp_dir().join(format!("canonry-demo-{}", context.run_id)));
        // Not made with its parents, and never one that exists: what is in it would be overwritten.
        fs::create_dir(&path).with_context(|| {
            format!("the folder {} cannot be created; name one that does not exist yet with --keep", path.display())
        })?;
        Ok(Self { path, is_kept })
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // A leftover in the system's folder for temporary files is no reason to fail.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

async fn fill(store: &Store, sample: &Sample, folder: &Path, context: &Context) -> Result<(Repo, ItemCounts)> {
    let name: RepoName = sample.repo.parse()?;
    let file = folder.join(format!("{}.jsonl", name.name()));
    fs::write(&file, sample.items).with_context(|| format!("{} cannot be written", file.display()))?;
    import(store, vec![file], None, context.now, &mut |_| {}).await?;
    let repo = store.ensure_repo(&name, context.now).await?;
    let logins: Vec<Login> = sample.maintainers.iter().map(|login| login.parse()).collect::<Result<_, _>>()?;
    store.set_maintainers(repo.id, MaintainerSource::Set, &logins, context.now).await?;
    let counts = store.item_counts(repo.id).await?;
    Ok((repo, counts))
}

/// The first issue that people closed as a duplicate, and the one that it repeats.
async fn example(store: &Store, filled: &[(Repo, ItemCounts)]) -> Result<Option<(Item, Item)>> {
    let Some((repo, _)) = filled.first() else {
        return Ok(None);
    };
    for (number, item_type) in store.item_numbers(repo.id).await? {
        if let Some(pair) = duplicate_and_target(store, repo, item_type, number).await? {
            return Ok(Some(pair));
        }
    }
    Ok(None)
}

async fn duplicate_and_target(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<Option<(Item, Item)>> {
    let Some(item) = store.item(repo.id, item_type, number).await? else {
        return Ok(None);
    };
    let Some(target) = item.duplicate_of else {
        return Ok(None);
    };
    Ok(store.item(repo.id, item_type, target).await?.map(|target| (item, target)))
}

fn counts_document(name: &RepoName, counts: ItemCounts) -> Value {
    json!({
        "repo": name,
        "open_issues": counts.open_issues, "closed_issues": counts.closed_issues,
        "open_prs": counts.open_prs, "closed_prs": counts.closed_prs,
    })
}

fn text(filled: &[(Repo, ItemCounts)], example: Option<&(Item, Item)>, kept: Option<&str>) -> String {
    let items: u64 = filled.iter().map(|(_, counts)| counts.total()).sum();
    let mut text = format!(
        "Imported {} with {} into a database of their own.\n",
        counted(filled.len() as u64, "sample repository"),
        counted(items, "item")
    );
    let mut counts = table(["repository", "open issues", "closed issues", "open PRs", "closed PRs"]);
    for (repo, count) in filled {
        let numbers = [count.open_issues, count.closed_issues, count.open_prs, count.closed_prs];
        let mut row = vec![repo.name.to_string()];
        row.extend(numbers.map(|number| number.to_string()));
        counts.add_row(row);
    }
    for column in counts.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    text.push_str(&format!("{}\n", counts.trim_fmt()));
    if let Some((duplicate, target)) = example {
        text.push_str("\nTwo reports of one problem, as people found out:\n");
        for (item, end) in [(duplicate, "closed as its duplicate"), (target, "the first report")] {
            text.push_str(&format!("  #{:<5}{}  ({end})\n", item.number.get(), one_line(&item.title)));
        }
    }
    text.push_str("\nTry next:\n");
    match (kept, filled.first(), example) {
        (Some(url), Some((repo, _)), Some((duplicate, _))) => text.push_str(&format!(
            "  canonry show --db {url} --repo {name} --number {number}\n  \
             canonry export --db {url} --repo {name} --state open\n  \
             canonry maintainers list --db {url} --repo {name}\n",
            name = repo.name,
            number = duplicate.number
        )),
        _ => text.push_str(
            "  canonry demo --keep demo                   the same, with a database to look into\n  \
             canonry init                               a database of your own\n  \
             canonry import --repo OWNER/NAME FILE      with your own items\n",
        ),
    }
    text
}
