//! One run of the program: parse, execute, print.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::sync::OnceLock;

use anyhow::{Result, anyhow};
use canonry_domain::RepoName;
use canonry_github::process_mark;
use canonry_store::Store;
use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches as _};
use jiff::Timestamp;
use serde_json::{Value, json};
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::Arguments;
use crate::commands::Command;
use crate::options::run_id::RunId;
use crate::output::error_message::error_message;
use crate::output::exit::Exit;
use crate::output::json::document;
use crate::output::logging;
use crate::output::printable::one_line;
use crate::output::report::{Report, envelope};
use crate::session::context::Context;
use crate::version::long_version;

/// Runs the program with these arguments, the first of which is its own name.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = arguments.collect();
    let now = canonry_domain::whole_micros(Timestamp::now());
    let run_id = RunId::new(now, rand::random());
    let mut program = Arguments::program();
    if words.iter().any(|word| word == "--version") {
        program = program.long_version(long_version());
    }
    let parsed = program.try_get_matches_from(&words).and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)?;
        Ok((matches, arguments))
    });
    let (matches, arguments) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return wrong_usage(&error, &words, &run_id),
    };
    logging::start(arguments.output.verbose, arguments.output.quiet, arguments.command.service_log());
    let (command, repo) = named_command(&matches);
    let Arguments { output, command: requested } = arguments;
    let context = Context {
        now,
        run_id,
        command,
        json: output.json || requested.prints_json(),
        verbose: output.verbose > 0,
        quiet: output.quiet,
    };
    let printed = match execute(requested, &context) {
        Ok(report) => print_report(&report, &context, repo.as_ref()).map(|()| report.exit),
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Done),
        Err(error) => print_error(&error_message(&error), &context, repo.as_ref()).map(|()| Exit::of(&error)),
    };
    match printed {
        Ok(exit) => exit,
        // The reader of the output has closed it, as in `canonry show … | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(_) => Exit::Failed,
    }
}

/// Runs a command until its end, or until it is interrupted. Every write to the store is a transaction, so the store
/// stays consistent wherever the command stops.
fn execute(command: Command, context: &Context) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        if command.handles_interruption() {
            return command.run(context).await;
        }
        let interruption = interruption()?;
        tracing::debug!(run_id = %context.run_id, command = context.command, "listening for signals");
        tokio::select! {
            result = command.run(context) => result,
            () = interruption => {
                release_leases().await;
                Err(anyhow!(
                    "interrupted; what was stored is kept, and running the command again continues from there"
                ))
            }
        }
    });
    // A thread that still reads a file or stdin must not delay the end.
    runtime.shutdown_background();
    result
}

/// The store in which this process has leases for closing and writing.
static LEASED: OnceLock<Store> = OnceLock::new();

/// Releases the leases of this process when it is interrupted, so that the next run does not wait for them to expire.
pub(crate) fn release_leases_when_stopped(store: &Store) {
    // A second call is ignored: a process runs only one command.
    let _ = LEASED.set(store.clone());
}

async fn release_leases() {
    if let Some(store) = LEASED.get()
        && let Err(error) = store.outbox().release_leases_with_mark(process_mark()).await
    {
        tracing::warn!(%error, "the leases for closing could not be released; they expire by themselves");
    }
}

/// Completes when a person or the system wants the program to stop. Signals are caught from this call on, not from
/// the first poll.
#[cfg(unix)]
pub(crate) fn interruption() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
pub(crate) fn interruption() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// The command's name and the repository that `--repo` names.
fn named_command(matches: &ArgMatches) -> (String, Option<RepoName>) {
    let mut words = Vec::new();
    let mut repo = None;
    let mut level = matches;
    while let Some((word, below)) = level.subcommand() {
        words.push(word);
        level = below;
        if let Ok(Some(name)) = level.try_get_one::<RepoName>("repo") {
            repo = Some(name.clone());
        }
    }
    (words.join(" "), repo)
}

fn print_report(report: &Report, context: &Context, named_repo: Option<&RepoName>) -> io::Result<()> {
    let Some(result) = &report.document else {
        return Ok(());
    };
    let mut stdout = anstream::stdout().lock();
    if context.json {
        stdout.write_all(document(&result.envelope(context, named_repo)).as_bytes())?;
    } else {
        stdout.write_all(result.text().as_bytes())?;
    }
    stdout.flush()
}

fn print_error(message: &str, context: &Context, named_repo: Option<&RepoName>) -> io::Result<()> {
    if context.json {
        let mut envelope = envelope(&context.command, &context.run_id.to_string(), named_repo);
        envelope.insert("error".to_owned(), json!({ "message": message }));
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(document(&Value::Object(envelope)).as_bytes())?;
        stdout.flush()?;
    }
    complain(message);
    Ok(())
}

/// Prints an error to stderr. A closed stderr is no reason for another failure.
fn complain(message: &str) {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let _ = writeln!(anstream::stderr().lock(), "{red}error:{red:#} {message}");
}

/// Prints clap's message: help and version to stdout, wrong usage to stderr and, with `--json`, also as a document.
fn wrong_usage(error: &clap::Error, words: &[OsString], run_id: &RunId) -> Exit {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let wants_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if wants_json && !is_help {
        let mut envelope = envelope(&known_words(words), &run_id.to_string(), None);
        envelope.insert("error".to_owned(), json!({ "message": sentence(error) }));
        let mut stdout = anstream::stdout().lock();
        let _ = stdout.write_all(document(&Value::Object(envelope)).as_bytes());
        let _ = stdout.flush();
    }
    // A closed stdout or stderr does not change the exit status.
    let _ = error.print();
    if is_help { Exit::Done } else { Exit::Usage }
}

/// The words among the arguments that name a command.
fn known_words(words: &[OsString]) -> String {
    let mut known = Vec::new();
    let mut level = Arguments::program();
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(below) = level.find_subcommand(word).cloned() {
            known.push(word);
            level = below;
        }
    }
    known.join(" ")
}

/// The first paragraph of clap's message on one line, without "error:".
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.trim_start_matches("error:").split_whitespace().collect();
    // Clap's own list of commands also names the hidden one.
    match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing; see `canonry --help`".to_owned()
        }
        _ => one_line(&words.join(" ")),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}
