//! `deliveries`: the webhooks that were received, and their state.

use anyhow::{Result, bail};
use canonry_domain::RepoName;
use canonry_server::{DeliveryView, JobView, replay};
use canonry_store::{Delivery, DeliveryFilter, DeliveryState, JobFilter};
use serde_json::{Value, json};

use crate::commands::operate::jobs::jobs_table;
use crate::output::printable::{block, one_line};
use crate::output::report::Report;
use crate::output::tables::table;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;

/// List, show or replay webhook deliveries.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry deliveries list --state dead\n  \
        canonry deliveries show 72d3162e-cc78-11e3-81ab-4c9367dc0958\n  \
        canonry deliveries replay 72d3162e-cc78-11e3-81ab-4c9367dc0958")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List deliveries, the latest first
    #[command(before_help = "Example:\n  canonry deliveries list --state dead")]
    List(ListArgs),
    /// Show a delivery with its jobs and its body
    #[command(before_help = "Example:\n  canonry deliveries show 72d3162e-cc78-11e3-81ab-4c9367dc0958")]
    Show(OneArgs),
    /// Queue a delivery again, whatever its state
    #[command(before_help = "Example:\n  canonry deliveries replay 72d3162e-cc78-11e3-81ab-4c9367dc0958")]
    Replay(OneArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only those in this state: queued, done, dead or ignored
    #[arg(long, value_name = "STATE")]
    state: Option<DeliveryState>,
    /// Only those of this event, such as issues
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Only those about this repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<RepoName>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// GitHub's id of the delivery
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    match args.action {
        Action::List(args) => list(args, context).await,
        Action::Show(args) => show(&args, context).await,
        Action::Replay(args) => {
            let store = args.database.open_known(context).await?;
            replay(&store, &args.id, context.now).await?;
            store.disconnect().await;
            Ok(Report::new(json!({ "queued": 1 }), format!("Queued the delivery {} again.\n", one_line(&args.id))))
        }
    }
}

async fn list(args: ListArgs, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let filter = DeliveryFilter { state: args.state, event: args.event, repo: args.repo, before: None };
    let deliveries = store.deliveries().list(&filter, args.limit).await?;
    store.disconnect().await;
    let text = if deliveries.is_empty() { "No deliveries.\n".to_owned() } else { shown(&deliveries, context) };
    Ok(Report::new(json!({ "deliveries": deliveries.len() }), text)
        .with("deliveries", deliveries.iter().map(DeliveryView::from).collect::<Vec<_>>()))
}

async fn show(args: &OneArgs, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let Some(delivery) = store.deliveries().get(&args.id).await? else {
        bail!("there is no delivery {}; see `canonry deliveries list`", args.id);
    };
    let payload = store.deliveries().payload(&args.id).await?;
    let of_delivery = JobFilter { delivery: Some(args.id.clone()), ..JobFilter::default() };
    let jobs = store.jobs().list(&of_delivery, u32::MAX).await?;
    store.disconnect().await;
    let payload: Option<Value> = payload.as_deref().map(serde_json::from_str).transpose()?;
    let mut text = shown(std::slice::from_ref(&delivery), context);
    if !jobs.is_empty() {
        text += &format!("\n{}\n", jobs_table(&jobs, context));
    }
    text += &match &payload {
        Some(payload) => format!("\n{}\n", block(&serde_json::to_string_pretty(payload)?)),
        None => "\nThe body was deleted after the delivery was handled.\n".to_owned(),
    };
    Ok(Report::new(json!({ "jobs": jobs.len() }), text)
        .with("delivery", DeliveryView::from(&delivery))
        .with("jobs", jobs.iter().map(JobView::from).collect::<Vec<_>>())
        .with("payload", payload))
}

fn shown(deliveries: &[Delivery], context: &Context) -> String {
    let mut shown = table(["received", "id", "event", "about", "state", "reason"]);
    for delivery in deliveries.iter().map(DeliveryView::from) {
        let about = match (delivery.repo, delivery.number) {
            (Some(repo), Some(number)) => format!("{repo}#{number}"),
            (Some(repo), None) => repo.to_string(),
            (None, _) => String::new(),
        };
        let reason = delivery.reason.map(one_line).unwrap_or_default();
        let state = delivery.state.to_owned();
        shown.add_row([
            context.when(delivery.received_at),
            one_line(delivery.id),
            one_line(&delivery.title),
            about,
            state,
            reason,
        ]);
    }
    format!("{shown}\n")
}
