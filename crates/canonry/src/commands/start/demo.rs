//! `demo`: a week of three sample repositories on an emulated GitHub, with the whole service and its console.

mod folder;
mod open_in_browser;
mod tour;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use canonry_demo::{Demo, WEEK, check_outcome, play_week};
use tokio::net::TcpListener;

use self::folder::DemoFolder;
use crate::output::exit::Exit;
use crate::output::report::Report;
use crate::run::interruption;
use crate::session::console_commands::console_commands;
use crate::session::context::Context;

/// The default port. If it is in use, the operating system chooses a free port.
const USUAL_PORT: u16 = 7414;

/// Show a week of Canonry on sample repositories, offline.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show a week of Canonry on sample repositories, offline.\n\n\
        It needs no account, no key and no network. An emulated GitHub starts on this machine with three sample projects: \
        people, issues, pull requests and code. The service is installed on it and gets signed webhooks, in a time that runs \
        faster. In that week reports arrive and are compared, some are suggested as duplicates, one is closed after its grace \
        period and another reopened by its author, maintainers agree and disagree, pushes are reviewed, and remarks that \
        people rejected are not repeated. Then the console opens in your browser, at the printed address, until Ctrl-C. All \
        writes go to the emulated GitHub; --verbose prints its API address and a token.\n\n\
        The database is temporary and removed at the end. It needs git.",
    before_help = "Example:\n  canonry demo\n  canonry demo --headless --json\n  canonry demo --keep demo --listen 127.0.0.1:9000"
)]
pub(crate) struct Args {
    /// Play the week, check and print the result, and exit
    #[arg(long)]
    headless: bool,
    /// Do not open a browser; without a terminal and a desktop none is opened anyway
    #[arg(long)]
    no_open: bool,
    /// Keep the database in this new folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// The address to listen at, on this machine [default: 127.0.0.1:7414, or a free port when that is taken]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    require_git()?;
    let stop = interruption()?;
    let began = Instant::now();
    let folder = DemoFolder::create(args.keep, context)?;
    let listener = listen(args.listen).await?;
    let bar = context.counter("minutes of the week");
    let demo = Demo::start(listener, folder.path(), context.now - WEEK, console_commands()).await?;
    let playing = async {
        let run_id = context.run_id.to_string();
        let played = play_week(&demo, &run_id, &|minutes| bar.set_position(minutes)).await;
        bar.finish_and_clear();
        played
    };
    tokio::pin!(stop);
    let (week, outcome) = tokio::select! {
        played = playing => played?,
        () = &mut stop => bail!("interrupted before the week was over; run `canonry demo` again"),
    };
    if args.headless {
        // Only a headless run checks the outcome: on a machine with other rounding a verdict may differ, which does not
        // matter in a browser.
        check_outcome(&demo, &week, &outcome).await?;
        demo.stop().await?;
        return tour::headless(&week, &outcome, &folder, began.elapsed());
    }
    demo.follow_wall_clock();
    let opens = !args.no_open && open_in_browser::is_wanted(context);
    tour::print(
        &tour::guided(&demo, &week, &outcome, &folder, began.elapsed(), opens, context.verbose).await?,
        context,
    )?;
    if opens {
        // If this fails, the user still has the printed URL.
        let _ = open_in_browser::open(&demo.sign_in_once_url());
    }
    stop.await;
    demo.stop().await?;
    Ok(Report::written(Exit::Done))
}

async fn listen(wanted: Option<SocketAddr>) -> Result<TcpListener> {
    if let Some(address) = wanted {
        if !address.ip().is_loopback() {
            bail!("the demo listens on this machine only; use an address such as --listen 127.0.0.1:9000");
        }
        return TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen at {address}; choose another address with --listen"));
    }
    match TcpListener::bind(("127.0.0.1", USUAL_PORT)).await {
        Ok(listener) => Ok(listener),
        Err(_) => Ok(TcpListener::bind("127.0.0.1:0").await?),
    }
}

/// Checks that git is installed: the reviews and the emulated GitHub need it.
fn require_git() -> Result<()> {
    let found = Command::new("git").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("git is not installed; install it and run `canonry demo` again"),
    }
}
