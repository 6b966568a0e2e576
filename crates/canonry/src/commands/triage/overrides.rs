//! `override`: a person's rulings, which outrank every judge.

use anyhow::{Result, bail};
use canonry_domain::{ItemNumber, ItemType, Override, OverrideKind};
use canonry_store::{NewOverride, Repo, Store};
use canonry_triage::{RulingError, Statement, rule_pair};
use serde_json::{Value, json};

use crate::commands::triage::show::find;
use crate::output::exit::WrongUsage;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Rule that two items are, or are not, duplicates.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Rule that two items are, or are not, duplicates, or which item of a cluster stays open.\n\n\
        A ruling outranks every judge until it is removed.",
    before_help = "Example:\n  canonry override not-duplicate 12 34 --note 'another platform'\n  \
        canonry override canonical 12\n  canonry override list --repo octo/cat\n  canonry override remove 3"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Rule that an item is a duplicate of another
    #[command(before_help = "Example:\n  canonry override duplicate 12 34")]
    Duplicate(PairArgs),
    /// Rule that two items are not duplicates of each other
    #[command(before_help = "Example:\n  canonry override not-duplicate 12 34 --note 'another platform'")]
    NotDuplicate(PairArgs),
    /// Rule that an item is the one of its cluster that stays open
    #[command(before_help = "Example:\n  canonry override canonical 12")]
    Canonical(OneArgs),
    /// Remove a ruling
    #[command(before_help = "Example:\n  canonry override remove 3")]
    Remove(RemoveArgs),
    /// List the rulings in force
    #[command(before_help = "Example:\n  canonry override list")]
    List(ListArgs),
}

#[derive(Debug, clap::Args)]
struct PairArgs {
    /// The item
    #[arg(value_name = "A")]
    item: ItemNumber,
    /// The other item
    #[arg(value_name = "B")]
    other: ItemNumber,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// The item
    #[arg(value_name = "N")]
    item: ItemNumber,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, clap::Args)]
struct CommonArgs {
    #[command(flatten)]
    repo: RepoOption,
    /// The type of the items: issue or pr [default: whichever has that number]
    #[arg(long = "type", value_name = "TYPE")]
    item_type: Option<ItemType>,
    /// The reason, kept with the ruling
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The ruling's id, as `canonry override list` shows it
    #[arg(value_name = "ID")]
    id: i64,
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    match args.action {
        Action::Duplicate(args) => {
            rule(OverrideKind::Duplicate, args.item, Some(args.other), &args.common, context).await
        }
        Action::NotDuplicate(args) => {
            rule(OverrideKind::NotDuplicate, args.item, Some(args.other), &args.common, context).await
        }
        Action::Canonical(args) => rule(OverrideKind::Canonical, args.item, None, &args.common, context).await,
        Action::Remove(args) => remove(&args, context).await,
        Action::List(args) => {
            let store = args.database.open_existing().await?;
            let repo = args.repo.find(&store).await?;
            let overrides = store.duplicates().overrides(repo.id, None).await?;
            let stats = json!({ "overrides": overrides.len() });
            Ok(Report::new(stats, list(&overrides, context))
                .of(&repo.name)
                .with("overrides", overrides.iter().map(document).collect::<Vec<_>>()))
        }
    }
}

async fn rule(
    kind: OverrideKind,
    item: ItemNumber,
    other: Option<ItemNumber>,
    common: &CommonArgs,
    context: &Context,
) -> Result<Report> {
    if other == Some(item) {
        bail!(WrongUsage(RulingError::Itself.to_string()));
    }
    let store = common.database.open_known(context).await?;
    let repo = common.repo.find(&store).await?;
    let item_type = type_of(&store, &repo, common.item_type, item, other).await?;
    let (note, now) = (common.note.as_deref(), context.now);
    let stated = Statement { note, by: None };
    let ruled = match other {
        Some(other) => rule_pair(&store, &repo, item_type, kind, (item, other), stated, now).await?,
        None => {
            store
                .duplicates()
                .add_override(repo.id, NewOverride { item_type, kind, item, other, note, by: None }, now)
                .await?
        }
    };
    store.disconnect().await;
    let words = match (kind, other) {
        (OverrideKind::Duplicate, Some(other)) => format!("#{item} is a duplicate of #{other}"),
        (OverrideKind::NotDuplicate, Some(other)) => format!("#{item} and #{other} are not duplicates"),
        _ => format!("#{item} stays open in its cluster"),
    };
    let text =
        format!("Ruled: {words}.\nTo remove the ruling: canonry override remove {} --repo {}\n", ruled.id, repo.name);
    Ok(Report::new(json!({ "overrides": 1 }), text).of(&repo.name).with("override", document(&ruled)))
}

/// Returns the type of both items; they must have the same type.
async fn type_of(
    store: &Store,
    repo: &Repo,
    item_type: Option<ItemType>,
    item: ItemNumber,
    other: Option<ItemNumber>,
) -> Result<ItemType> {
    let found = find(store, repo, item_type, item).await?.item_type;
    if let Some(other) = other {
        let other_type = find(store, repo, item_type.or(Some(found)), other).await?.item_type;
        if other_type != found {
            bail!(
                "#{item} and #{other} are an issue and a pull request; only items of the same type can be duplicates"
            );
        }
    }
    Ok(found)
}

async fn remove(args: &RemoveArgs, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let removed = store.duplicates().remove_override(repo.id, args.id, context.now).await?;
    store.disconnect().await;
    if !removed {
        bail!(
            "{name} has no ruling {id} in force; see `canonry override list --repo {name}`",
            name = repo.name,
            id = args.id
        );
    }
    let text = format!("Removed ruling {}; the next plan does not follow it.\n", args.id);
    Ok(Report::new(json!({ "removed": 1 }), text).of(&repo.name).with("removed", args.id))
}

pub(crate) fn document(ruled: &Override) -> Value {
    json!({
        "id": ruled.id,
        "type": ruled.item_type,
        "kind": ruled.kind,
        "item": ruled.item,
        "other": ruled.other,
        "note": ruled.note,
        "created_at": ruled.created_at,
        "created_by": ruled.created_by,
    })
}

fn list(overrides: &[Override], context: &Context) -> String {
    if overrides.is_empty() {
        return "No rulings are in force.\n".to_owned();
    }
    let mut shown = table(["id", "ruling", "note", "by", "since"]);
    for ruled in overrides {
        let (kind, item) = (ruled.item_type.in_words(), ruled.item);
        let words = match (ruled.kind, ruled.other) {
            (OverrideKind::Duplicate, Some(other)) => format!("{kind} #{item} is a duplicate of #{other}"),
            (OverrideKind::NotDuplicate, Some(other)) => format!("{kind} #{item} and #{other} are not duplicates"),
            (OverrideKind::Excluded, Some(other)) => {
                format!("{kind} #{item} is excluded: not to be closed as a duplicate of #{other}")
            }
            _ => format!("{kind} #{item} stays open"),
        };
        let note = ruled.note.as_deref().map(one_line).unwrap_or_default();
        let by = ruled.created_by.as_ref().map(ToString::to_string).unwrap_or_default();
        shown.add_row([ruled.id.to_string(), words, note, by, context.when(ruled.created_at)]);
    }
    format!("{}:\n{shown}\n", counted(overrides.len() as u64, "ruling"))
}
