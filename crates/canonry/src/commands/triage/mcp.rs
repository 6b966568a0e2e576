//! `mcp`: answers a coding agent over standard input and output.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use canonry_domain::{PullChanges, RepoName};
use canonry_github::SystemClock;
use canonry_mcp::{Caller, McpServer, RepoAccess, serve_stdio};
use canonry_store::{Repo, Store};
use canonry_triage::{DEFAULT_INDEX_MEMORY, FixIndexes, IndexCache, LOOKUPS_AT_ONCE, Lookup};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::options::chat::Models;
use crate::options::retrieval::{EmbedderOptions, ModeOption, snapshots_of};
use crate::output::exit::Exit;
use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::detector_source::ServiceModels;
use crate::session::known_repo::{RepoOption, find_named};
use crate::session::local_clone::change_in;

/// Answer a coding agent's questions over MCP (stdio).
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Answer a coding agent's questions over MCP, on standard input and output.\n\n\
        The agent can check a draft or a change, search, read an item with its duplicates and fixes, and read the open \
        findings of a pull request. No tool writes, and no language model is asked. `canonry serve` answers the same at \
        /mcp. How to tell an agent about it: docs/agents.md.",
    before_help = "Example:\n  claude mcp add canonry -- canonry mcp\n  canonry mcp --repo octo/cat --db sqlite:canonry.db"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    mode: ModeOption,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, _: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let detectors = ServiceModels {
        models: Models::local(),
        remote_embedder: args.embedder.unless_local(&store).await?,
        local_embedder: OnceLock::new(),
        snapshots: snapshots_of(&args.database)?,
        indexes: IndexCache::new(DEFAULT_INDEX_MEMORY as usize * 1_000_000),
    };
    let lookup = Lookup {
        store: store.clone(),
        detectors: Arc::new(detectors),
        clock: Arc::new(SystemClock),
        mode: args.mode.mode,
        fixes: FixIndexes::default(),
        places: Semaphore::new(LOOKUPS_AT_ONCE),
    };
    let access = LocalAccess { store: store.clone(), meant: args.repo };
    let server = McpServer::new(Arc::new(lookup), Arc::new(access), env!("CARGO_PKG_VERSION"));
    serve_stdio(server).await.map_err(|error| anyhow!("the agent's connection failed: {error}"))?;
    store.disconnect().await;
    Ok(Report::written(Exit::Done))
}

/// The user of this machine may read the whole database.
struct LocalAccess {
    store: Store,
    /// The repository of calls that name none.
    meant: RepoOption,
}

impl RepoAccess for LocalAccess {
    fn repo<'a>(&'a self, name: Option<&'a str>, _: Caller<'a>) -> BoxFuture<'a, Result<Repo, String>> {
        Box::pin(async move {
            let found = match name {
                Some(name) => match name.parse::<RepoName>() {
                    Ok(name) => find_named(&self.store, &name).await,
                    Err(error) => return Err(error.to_string()),
                },
                None => self.meant.find(&self.store).await,
            };
            found.map_err(|error| format!("{error:#}"))
        })
    }

    fn change_in<'a>(&'a self, range: &'a str) -> BoxFuture<'a, Result<(String, PullChanges), String>> {
        Box::pin(async move {
            let change = change_in(range).await.map_err(|error| format!("{error:#}"))?;
            Ok((change.messages, change.changes))
        })
    }
}
