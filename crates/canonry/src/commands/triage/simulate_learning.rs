//! `simulate-learning`: where each learning rule moves the threshold, on simulated repositories.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use canonry_triage::{LearningSimulation, SimulationOptions, learning_html, simulate_learning};
use serde_json::json;

use crate::output::file::OutputFile;
use crate::output::numbers::percent;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;

/// Simulate where each learning rule takes the threshold.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Simulate where each learning rule takes the threshold.\n\n\
        The simulated repositories are good, bad, good and then bad, or right from some score on. Nothing of yours is \
        read: this helps to choose `triage.learning.rule`, and shows what a rule does with few outcomes and with many.",
    before_help = "Example:\n  canonry simulate-learning --html learning.html\n  \
        canonry simulate-learning --repositories 400 --outcomes 3000 --seed 7 --json"
)]
pub(crate) struct Args {
    /// How many repositories, the four kinds in turn
    #[arg(long, value_name = "COUNT", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repositories: u32,
    /// How many outcomes each of them gets
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    outcomes: u32,
    /// The seed; the same seed gives the same figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Write an HTML report with the curves to this file
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    // A file that cannot be written fails before the simulation, not after it.
    let run_id = context.run_id.to_string();
    let page = args.html.as_deref().map(|path| OutputFile::create(path, &run_id)).transpose()?;
    let simulation = simulate_learning(SimulationOptions {
        repositories: args.repositories as usize,
        outcomes: args.outcomes as usize,
        seed: args.seed,
    });
    if let Some(mut page) = page {
        page.write_all(learning_html(&simulation).as_bytes())?;
        page.finish()?;
    }
    let mut text = text(&simulation);
    if let Some(path) = &args.html {
        text += &format!("\nWrote the curves to {}.\n", path.display());
    }
    let stats = json!({
        "repositories": args.repositories, "outcomes": args.outcomes, "curves": simulation.curves.len(),
    });
    Ok(Report::new(stats, text)
        .with("seed", args.seed)
        .with("configured", simulation.configured)
        .with("wanted_precision", simulation.wanted)
        .with("repositories", &simulation.repositories)
        .with("summary", simulation.summary())
        .with("curves", &simulation.curves)
        .with("conclusions", simulation.conclusions())
        .with("html", &args.html))
}

fn text(simulation: &LearningSimulation) -> String {
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
    let mut shown = table(["repositories", "rule", "silent at 50", "silent", "threshold", "right", "near wanted"]);
    for row in simulation.summary() {
        let of_all = |count: usize| format!("{count} of {}", row.repositories);
        shown.add_row([
            row.kind.as_str().to_owned(),
            row.rule.to_string(),
            row.silent_early.map_or_else(|| "–".to_owned(), of_all),
            of_all(row.silent),
            row.median_threshold.to_string(),
            share(row.mean_precision),
            of_all(row.near_wanted),
        ]);
    }
    let mut text = format!(
        "Simulated {} with {} each (seed {}). All start at {} %; {} of the comments should be right.\n\n{shown}\n\n\
         Silent at 50: no comments any more after 50 outcomes. The other columns are about the end: the median threshold, \
         the share of comments that are right, and how many repositories come within 10 % of the wanted share.\n\n",
        counted(simulation.options.repositories as u64, "repository"),
        counted(simulation.options.outcomes as u64, "outcome"),
        simulation.options.seed,
        simulation.configured,
        share(Some(simulation.wanted.get())),
    );
    for sentence in simulation.conclusions() {
        text += &format!("{sentence}\n");
    }
    text
}
