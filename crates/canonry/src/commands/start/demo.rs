//! `demo`: a week of three sample repositories on a GitHub of their own, with the whole service and its console.

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
use crate::session::context::Context;

/// Where it listens unless it is told: a port that is easy to remember, or another one when it is taken.
const USUAL_PORT: u16 = 7414;

/// Show Canonry at work for a week on sample repositories, without an account, a key or a network.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show Canonry at work for a week on sample repositories, without an account, a key or a network.\n\n\
        A GitHub is started on this machine, with three invented projects, their people, issues, pull requests and code. \
        The service is installed on it and does what it would do elsewhere: it is told of everything by signed webhooks, \
        in a time that passes faster. A week is played: reports arrive and are compared, some are suggested as \
        duplicates, one is closed after its grace and another one reopened by its author, maintainers agree and \
        disagree, pushes are reviewed, and remarks that nobody wants are not made again. Then the console is open at \
        the address that is printed, and in your browser, until Ctrl-C. What it closes, reopens and writes is only on the \
        GitHub of this machine; --verbose prints where its API is, and a token for it.\n\n\
        The database is a temporary one, which is removed at the end. Commits are made and fetched with git.",
    after_help = "Example:\n  canonry demo\n  canonry demo --headless --json\n  canonry demo --keep demo --listen 127.0.0.1:9000"
)]
pub(crate) struct Args {
    /// Play the week, check how it ended, print that, and end
    #[arg(long)]
    headless: bool,
    /// Do not open the console in a browser; without a terminal and a desktop none is opened anyway
    #[arg(long)]
    no_open: bool,
    /// Keep the database in this folder, which is created
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
    let bar = context.counter("minutes of the week played");
    let demo = Demo::start(listener, folder.path(), context.now - WEEK).await?;
    let playing = async {
        let run_id = context.run_id.to_string();
        let played = play_week(&demo, &run_id, &|minutes| bar.set_position(minutes)).await;
        bar.finish_and_clear();
        played
    };
    tokio::pin!(stop);
    let (week, outcome) = tokio::select! {
        played = playing => played?,
        () = &mut stop => bail!("stopped before the week was over"),
    };
    if args.headless {
        // Whoever looks at it in a browser sees how it went; a machine with other rounding may differ by a verdict.
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
        // Where it fails nothing is said: the address was printed.
        let _ = open_in_browser::open(&demo.sign_in_once_url());
    }
    stop.await;
    demo.stop().await?;
    Ok(Report::written(Exit::Done))
}

async fn listen(wanted: Option<SocketAddr>) -> Result<TcpListener> {
    if let Some(address) = wanted {
        if !address.ip().is_loopback() {
            bail!("the demo is for this machine only; name an address such as 127.0.0.1:9000 with --listen");
        }
        return TcpListener::bind(address)
            .await
            .with_context(|| format!("the address {address} cannot be listened at; name another one with --listen"));
    }
    match TcpListener::bind(("127.0.0.1", USUAL_PORT)).await {
        Ok(listener) => Ok(listener),
        Err(_) => Ok(TcpListener::bind("127.0.0.1:0").await?),
    }
}

/// The reviews need it, and so does the GitHub that is started.
fn require_git() -> Result<()> {
    let found = Command::new("git").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("the demo's repositories have commits, and git is not found; install it and run the demo again"),
    }
}
