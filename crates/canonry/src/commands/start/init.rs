//! `init`: creates or migrates the database; with `--config` it writes a settings file instead.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

use anyhow::{Context as _, Result};
use canonry_config::{Preset, SETTINGS_FILE};
use canonry_store::{NEWEST_SCHEMA, OpenError, SchemaVersion, Store};
use serde_json::json;

use crate::output::exit::Refused;
use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;

/// Create or migrate the database, or write a settings file.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example:\n  canonry init\n  canonry init --db postgres://canonry@db.example/canonry\n  canonry init --config=suggest"
)]
pub(crate) struct Args {
    /// Write a commented .canonry.yml into this folder instead, unless there is one: shadow (nothing is public), suggest
    /// (comments), grace (closes after a grace period) or review (reviews pull requests) [default preset: shadow]
    #[arg(
        long,
        value_name = "PRESET",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "shadow",
        value_parser = preset
    )]
    config: Option<Preset>,
    #[command(flatten)]
    database: DatabaseOption,
}

fn preset(name: &str) -> Result<Preset, String> {
    let all: Vec<&str> = Preset::ALL.iter().map(|preset| preset.as_str()).collect();
    name.parse().map_err(|_| format!("the presets are {}", all.join(", ")))
}

/// Writes a settings file. It never overwrites an existing file, which belongs to the user.
fn write_settings(preset: Preset) -> Result<Report> {
    let file = match OpenOptions::new().write(true).create_new(true).open(SETTINGS_FILE) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Refused(format!(
                "{SETTINGS_FILE} already exists and was not changed; check it with `canonry config check`"
            ))
            .into());
        }
        opened => opened,
    };
    let written = file.and_then(|mut file| file.write_all(preset.file().as_bytes()));
    written.with_context(|| format!("{SETTINGS_FILE} cannot be written"))?;
    let effect = preset.effect();
    let text = format!(
        "Wrote {SETTINGS_FILE} (preset {preset}).\n\nOnce it is on the default branch, the service {effect}.\n\
         `canonry config check` finds mistakes after an edit.\n"
    );
    Ok(Report::new(json!({}), text)
        .with("file", SETTINGS_FILE)
        .with("preset", preset.as_str())
        .with("action", "created"))
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    if let Some(preset) = args.config {
        return write_settings(preset);
    }
    let chosen = args.database.choose()?;
    let before = match Store::schema_version(&chosen.url).await {
        Ok(version) => version,
        Err(OpenError::Absent { .. }) => SchemaVersion(0),
        Err(error) => return Err(error.into()),
    };
    chosen.create_data_folder()?;
    let store = Store::open(&chosen.url, context.now).await?;
    store.disconnect().await;

    let (url, newest) = (&chosen.url, NEWEST_SCHEMA.0);
    let (action, mut text) = match before.0 {
        0 => ("created", format!("Created the database {url} (schema {newest}).\n")),
        same if same == newest => ("unchanged", format!("The database {url} is up to date (schema {newest}).\n")),
        older => ("migrated", format!("Migrated the database {url} from schema {older} to {newest}.\n")),
    };
    text.push_str(
        "\nNext:\n  canonry doctor                             check the setup\n  \
         canonry sync --repo OWNER/NAME             fetch items from GitHub\n  \
         canonry import --repo OWNER/NAME FILE      import items from a file\n  \
         canonry demo                               see it work on sample repositories\n",
    );
    Ok(Report::new(json!({}), text)
        .with("database", url.to_string())
        .with("action", action)
        .with("schema", json!({ "before": before.0, "after": newest })))
}
