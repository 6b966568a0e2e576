//! `init`: makes the database, or brings its schema up to date.

use anyhow::Result;
use canonry_store::{NEWEST_SCHEMA, OpenError, SchemaVersion, Store};
use serde_json::json;

use crate::context::Context;
use crate::database::DatabaseOption;
use crate::report::Report;

/// Make the database, or bring its schema up to date.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  canonry init\n  canonry init --db postgres://canonry@db.example/canonry")]
pub(crate) struct Args {
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let chosen = args.database.choose()?;
    let before = match Store::schema_version(&chosen.url).await {
        Ok(version) => version,
        Err(OpenError::Absent { .. }) => SchemaVersion(0),
        Err(error) => return Err(error.into()),
    };
    chosen.create_data_folder()?;
    let store = Store::open(&chosen.url, context.now).await?;
    store.close().await;

    let (url, newest) = (&chosen.url, NEWEST_SCHEMA.0);
    let (action, mut text) = match before.0 {
        0 => ("created", format!("Created the database {url} (schema {newest}).\n")),
        same if same == newest => ("unchanged", format!("The database {url} is up to date (schema {newest}).\n")),
        older => ("migrated", format!("Brought the database {url} from schema {older} to {newest}.\n")),
    };
    text.push_str(
        "\nNext:\n  canonry doctor                             check every part\n  \
         canonry sync --repo OWNER/NAME             bring in items from GitHub\n  \
         canonry import --repo OWNER/NAME FILE      bring in items from a file\n  \
         canonry demo                               see it work on sample repositories\n",
    );
    Ok(Report::new(json!({}), text)
        .with("database", url.to_string())
        .with("action", action)
        .with("schema", json!({ "before": before.0, "after": newest })))
}
