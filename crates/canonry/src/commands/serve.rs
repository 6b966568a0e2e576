//! `serve`: takes GitHub's webhooks in and works on what they ask for, until it is told to stop.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use canonry_github::{Secret, SystemClock};
use canonry_server::{NoHandlers, ServiceOptions, serve};
use canonry_store::JobCaps;
use serde_json::json;
use tokio::net::TcpListener;

use crate::context::Context;
use crate::database::DatabaseOption;
use crate::report::Report;
use crate::run::interruption;
use crate::tables::counted;

/// The variable that holds the webhooks' secret. Never an option: arguments are seen by every process.
const SECRET_VARIABLE: &str = "CANONRY_WEBHOOK_SECRET";

/// Take in GitHub's webhooks, and work on them.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Take in GitHub's webhooks, and work on them.\n\n\
        Point the App's webhook at http://HOST/webhooks/github and put its secret into CANONRY_WEBHOOK_SECRET. A \
        webhook is answered once it is stored; a kill at any moment loses nothing. This version stores and checks \
        webhooks, and has no handler for them yet: each ends as ignored and says so. /healthz answers while the \
        program lives, /readyz while the database answers too.\n\n\
        SIGTERM and Ctrl-C stop it: nothing new is taken in, and work in hand may end within 30 seconds.",
    after_help = "Example:\n  CANONRY_WEBHOOK_SECRET=... canonry serve --listen 0.0.0.0:8080\n  \
        CANONRY_WEBHOOK_SECRET=... canonry serve --db postgres://canonry@db/canonry"
)]
pub(crate) struct Args {
    /// The address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// How many jobs this process does at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// How many jobs of one repository run at once, all processes together
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_repo: u32,
    /// How many jobs run at once, all processes together
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    max_jobs: u32,
    /// How often a job is tried before it is given up
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let secret = std::env::var(SECRET_VARIABLE).map(|text| Secret::new(&text)).ok();
    let Some(secret) = secret.filter(|secret| !secret.expose().is_empty()) else {
        bail!(
            "{SECRET_VARIABLE} is not set; put the secret of the App's webhook into it, without which nobody's word can be trusted"
        );
    };
    let stop = interruption()?;
    let store = args.database.open(context).await?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!("the address {} cannot be listened at; name another one with --listen", args.listen)
    })?;
    if !context.quiet {
        // That stderr is closed is no reason not to serve.
        let _ = writeln!(anstream::stderr().lock(), "listening at http://{}", listener.local_addr()?);
    }
    let caps = JobCaps { per_repo: args.max_per_repo, in_all: args.max_jobs };
    let options = ServiceOptions { secret, workers: args.workers, caps, tries: args.tries };
    let served = serve(listener, store.clone(), Arc::new(NoHandlers), Arc::new(SystemClock), options, stop).await?;
    store.close().await;
    let mut text = format!("Stopped after {}.\n", counted(served.tries, "job"));
    if !served.drained {
        text += "Some work did not end in time; it is begun again by whoever runs next.\n";
    }
    Ok(Report::new(json!({ "jobs": served.tries, "drained": served.drained }), text))
}
