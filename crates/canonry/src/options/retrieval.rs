//! The options of commands that compare texts: the embedder, the parts that count, the folder of the index.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, bail};
use canonry_domain::{Extractor, ItemType};
use canonry_models::{Embedder, LocalEmbedder, Provider, RemoteEmbedder, RemoteSettings};
use canonry_retrieval::RetrievalMode;
use canonry_store::{DatabaseUrl, Repo, Representation, Store};
use canonry_triage::{EmbedSource, Neighbourhood};
use etcetera::BaseStrategy as _;

use crate::output::exit::WrongUsage;
use crate::session::database::{DatabaseOption, create_private_folder};
use crate::session::model_patience::EmbedPatience;

/// Who turns texts into vectors.
#[derive(Debug, clap::Args)]
pub(crate) struct EmbedderOptions {
    /// The embedder: local (in this program), openai (any compatible service), voyage or gemini
    #[arg(long, value_name = "EMBEDDER", default_value = "local")]
    embedder: EmbedderKind,
    /// The remote embedder's model [default: the provider's usual one]
    #[arg(long, value_name = "MODEL")]
    embed_model: Option<String>,
    /// The remote embedder's base URL [default: the provider's own service]
    #[arg(long, value_name = "URL")]
    embed_base_url: Option<String>,
    #[command(flatten)]
    patience: EmbedPatience,
}

/// Which parts of retrieval count.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ModeOption {
    /// How items are compared: hybrid (vectors and words), dense (vectors) or lexical (words)
    #[arg(id = "retrieval", long = "retrieval", value_name = "MODE", default_value = "hybrid")]
    pub(crate) mode: RetrievalMode,
}

/// Which text items are compared by.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct SourceOptions {
    /// The text that is compared: raw (title and body) or intent (cards, see `canonry analyze-intent`) [default: intent
    /// where a model extracts the cards, else raw]
    #[arg(long, value_name = "SOURCE", value_enum, hide_possible_values = true)]
    source: Option<SourceWord>,
    /// The extractor of the cards: local, openai, anthropic, gemini or command
    #[arg(long, value_name = "EXTRACTOR", default_value = "local")]
    extractor: Extractor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SourceWord {
    Raw,
    Intent,
}

impl SourceOptions {
    pub(crate) fn source(self) -> EmbedSource {
        let by_default = if self.extractor == Extractor::Local { SourceWord::Raw } else { SourceWord::Intent };
        match self.source.unwrap_or(by_default) {
            SourceWord::Raw => EmbedSource::Raw,
            SourceWord::Intent => EmbedSource::Intent(self.extractor),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum EmbedderKind {
    Local,
    Remote(Provider),
}

impl FromStr for EmbedderKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match word {
            "local" => Self::Local,
            "openai" => Self::Remote(Provider::OpenAi),
            "voyage" => Self::Remote(Provider::Voyage),
            "gemini" => Self::Remote(Provider::Gemini),
            _ => return Err(format!("{word:?} is not an embedder; it must be one of local, openai, voyage, gemini")),
        })
    }
}

impl EmbedderOptions {
    /// Returns the embedder, with its stored calibration if there is one.
    pub(crate) async fn embedder(&self, store: &Store) -> Result<Box<dyn Embedder>> {
        match self.unless_local(store).await? {
            Some(remote) => Ok(remote),
            None => Ok(Box::new(LocalEmbedder::load()?)),
        }
    }

    /// Returns the remote embedder, with its stored calibration if there is one; `None` for the local embedder. The
    /// local embedder needs memory, so the caller loads it only when it is needed.
    pub(crate) async fn unless_local(&self, store: &Store) -> Result<Option<Box<dyn Embedder>>> {
        let EmbedderKind::Remote(provider) = self.embedder else {
            if self.embed_model.is_some() || self.embed_base_url.is_some() {
                let words = "--embed-model and --embed-base-url need a remote embedder; name one with --embedder";
                bail!(WrongUsage(words.to_owned()));
            }
            return Ok(None);
        };
        let mut settings = RemoteSettings::from_environment(provider);
        if let Some(model) = &self.embed_model {
            settings.model.clone_from(model);
        }
        if let Some(base_url) = &self.embed_base_url {
            settings.base_url.clone_from(base_url);
        }
        self.patience.apply(&mut settings);
        let embedder = RemoteEmbedder::new(settings.clone())?;
        let Some(stored) = store.corpus().calibration(embedder.model_id()).await? else {
            return Ok(Some(Box::new(embedder)));
        };
        settings.calibration = serde_json::from_value(stored)?;
        Ok(Some(Box::new(RemoteEmbedder::new(settings)?)))
    }
}

impl EmbedderOptions {
    /// Returns the remote embedder, for commands that make sense only with a remote one; refuses the local one.
    pub(crate) async fn remote(&self, store: &Store) -> Result<Box<dyn Embedder>> {
        if matches!(self.embedder, EmbedderKind::Local) {
            let words =
                "the local model is calibrated already; name a remote one with --embedder openai, voyage or gemini";
            bail!(WrongUsage(words.to_owned()));
        }
        self.embedder(store).await
    }
}

/// Loads the items of one type for comparison.
pub(crate) async fn neighbourhood(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    embedder: &dyn Embedder,
    source: EmbedSource,
    database: &DatabaseOption,
) -> Result<Neighbourhood> {
    let key = source.key(embedder.model_id());
    let snapshots = snapshots_of(database)?;
    let calibration = embedder.calibration().clone();
    Ok(Neighbourhood::load(store, repo, item_type, key, calibration, snapshots.as_deref()).await?)
}

/// Refuses to compare by vectors if no item has a vector, and names the command to run first.
pub(crate) async fn require_vectors(
    store: &Store,
    repo: &Repo,
    embedder: &dyn Embedder,
    mode: RetrievalMode,
    neighbourhoods: &[Neighbourhood],
) -> Result<()> {
    let embedded: usize = neighbourhoods.iter().map(Neighbourhood::embedded).sum();
    let items: usize = neighbourhoods.iter().map(|neighbourhood| neighbourhood.rows().len()).sum();
    if mode == RetrievalMode::Lexical || items == 0 {
        return Ok(());
    }
    if embedded > 0 {
        // Nine in ten, as `detect-new` requires. Fewer are normal while `embed` runs, but the gap is reported.
        if embedded * 10 < items * 9 {
            tracing::warn!(
                "only {embedded} of {items} items of {name} are embedded by {model}; the others are not found; run `canonry embed --repo {name}{by}`",
                name = repo.name,
                model = embedder.model_id(),
                by = options_of(embedder.model_id()),
            );
        }
        return Ok(());
    }
    let others = store.corpus().embedding_models(repo.id, Representation::Raw).await?;
    let others: Vec<String> = others.into_iter().map(|(model, _)| model).collect();
    let others = if others.is_empty() { String::new() } else { format!(" (but by {})", others.join(" and ")) };
    bail!(
        "{name} is not embedded by {model} yet{others}; run `canonry embed --repo {name}{by}` first, or use --retrieval lexical",
        name = repo.name,
        model = embedder.model_id(),
        by = options_of(embedder.model_id()),
    )
}

/// Returns the options that select a model on the command line.
fn options_of(model: &str) -> String {
    match model.split_once(':') {
        Some((provider, model)) if provider != "local" => format!(" --embedder {provider} --embed-model {model}"),
        _ => String::new(),
    }
}

/// Returns the folder that keeps the indexes of a database between runs, and creates it if it is missing.
pub(crate) fn snapshots_of(database: &DatabaseOption) -> Result<Option<PathBuf>> {
    Ok(snapshot_folder(&database.choose()?.url))
}

/// Returns the folder that keeps the indexes of a database if it exists; creates nothing.
pub(crate) fn present_snapshots_of(database: &DatabaseOption) -> Result<Option<PathBuf>> {
    Ok(snapshot_place(&database.choose()?.url).filter(|folder| folder.is_dir()))
}

/// Returns the folder for indexes, and creates it if it is missing. `None` if it cannot be created; then every run
/// builds its index.
fn snapshot_folder(url: &DatabaseUrl) -> Option<PathBuf> {
    let folder = snapshot_place(url)?;
    create_private_folder(&folder).ok()?;
    // A folder that an earlier version created is readable by all users. If the folder belongs to another user, this
    // call fails, and that user decides about its permissions.
    #[cfg(unix)]
    let _ = std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700));
    Some(folder)
}

/// Returns the path of the folder for indexes: next to a SQLite database, in the cache folder for PostgreSQL.
fn snapshot_place(url: &DatabaseUrl) -> Option<PathBuf> {
    Some(match url {
        DatabaseUrl::Sqlite(file) => {
            let mut name = file.file_name()?.to_owned();
            name.push(".index");
            file.with_file_name(name)
        }
        DatabaseUrl::Postgres(_) => {
            let place: String =
                url.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            etcetera::choose_base_strategy().ok()?.cache_dir().join("canonry").join(place)
        }
    })
}
