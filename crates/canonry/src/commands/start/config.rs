//! `config`: a repository's settings file, checked and explained.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use canonry_config::{
    MAX_FILE_BYTES, ParsedSettings, SETTINGS_FILE, SettingsProblem, config_hash, json_schema, parse_bytes, to_yaml,
};
use serde_json::{Value, json};

use crate::output::exit::Exit;
use crate::output::printable::{block, one_line};
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;

/// Check or show a repository's settings (.canonry.yml).
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example:\n  canonry config check\n  canonry config show\n  canonry config schema > canonry.schema.json"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Check(CheckArgs),
    Show(ShowArgs),
    Schema(SchemaArgs),
}

/// Find mistakes in a settings file, with line, column and the nearest key.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry config check\n  canonry config check path/to/.canonry.yml")]
struct CheckArgs {
    /// The file [default: .canonry.yml in the current folder]
    file: Option<PathBuf>,
}

/// Show the settings in force, defaults included.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry config show\n  canonry config show path/to/.canonry.yml")]
struct ShowArgs {
    /// The file [default: .canonry.yml in the current folder; without one, the defaults]
    file: Option<PathBuf>,
}

/// Print the JSON Schema of the settings file, for editors.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry config schema > canonry.schema.json")]
struct SchemaArgs {}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    match args.action {
        Action::Check(args) => check(args.file.as_deref()),
        Action::Show(args) => show(args.file.as_deref()),
        Action::Schema(SchemaArgs {}) => {
            let schema = json_schema();
            let text = format!("{}\n", serde_json::to_string_pretty(&schema)?);
            Ok(Report::new(json!({}), text).with("schema", schema))
        }
    }
}

fn check(file: Option<&Path>) -> Result<Report> {
    let path = file.unwrap_or(Path::new(SETTINGS_FILE));
    let parsed = read(path)?.ok_or_else(|| {
        anyhow!("there is no file {}; name one, or see the defaults with `canonry config show`", path.display())
    })?;
    let mut text = String::new();
    for problem in &parsed.problems {
        text.push_str(&format!("{}\n", in_words(path, problem)));
    }
    let valid = parsed.problems.is_empty();
    text.push_str(&match parsed.problems.len() as u64 {
        0 => format!("{} is valid.\n", path.display()),
        count => format!("\n{} in {}.\n", counted(count, "mistake"), path.display()),
    });
    Ok(Report::new(json!({ "problems": parsed.problems.len() }), text)
        .with("file", path)
        .with("valid", valid)
        .with("problems", &parsed.problems)
        .with("config_hash", config_hash(&parsed.config))
        .ending(if valid { Exit::Done } else { Exit::Failed }))
}

fn show(file: Option<&Path>) -> Result<Report> {
    let path = file.unwrap_or(Path::new(SETTINGS_FILE));
    let parsed = match (read(path)?, file) {
        (Some(parsed), _) => Some(parsed),
        (None, None) => None,
        (None, Some(named)) => return Err(anyhow!("there is no file {}; check the name", named.display())),
    };
    let source = if parsed.is_some() { path.display().to_string() } else { "the defaults".to_owned() };
    let ParsedSettings { config, problems } = parsed
        .unwrap_or_else(|| ParsedSettings { config: canonry_config::RepoConfig::default(), problems: Vec::new() });
    let mut text = format!("# Settings in force, from {}.\n", one_line(&source));
    for problem in &problems {
        text.push_str(&format!("# {}\n", in_words(path, problem)));
    }
    text.push_str(&block(&to_yaml(&config)));
    let from_file = if source == "the defaults" { Value::Null } else { json!(path) };
    Ok(Report::new(json!({ "problems": problems.len() }), text)
        .with("file", from_file)
        .with("settings", &config)
        .with("problems", &problems)
        .with("config_hash", config_hash(&config)))
}

/// Writes a problem as `PATH:LINE:COLUMN: …`, as compilers do, so that editors can jump to it.
fn in_words(path: &Path, problem: &SettingsProblem) -> String {
    let said = problem.to_string();
    let place = format!("line {}, column {}: ", problem.line, problem.column);
    let said = said.strip_prefix(&place).unwrap_or(&said);
    one_line(&format!("{}:{}:{}: {said}", path.display(), problem.line, problem.column))
}

/// Reads a settings file; `None` if there is none. It reads at most one byte beyond the size limit.
pub(crate) fn read(path: &Path) -> Result<Option<ParsedSettings>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Some(parse_bytes(&bytes)))
}
