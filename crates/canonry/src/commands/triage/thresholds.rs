//! `thresholds`: the score at which Canonry comments, and why.

use anyhow::Result;
use canonry_domain::{Component, CurrentThreshold, ThresholdRule, ThresholdSource, ThresholdState, Thresholds};
use canonry_server::{ReportedAdjustment, ReportedThreshold, ThresholdReport, threshold_report};
use serde_json::{Value, json};

use crate::output::exit::Exit;
use crate::output::numbers::{percent, thousands, threshold};
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::output::terminal::paragraph;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Show the score from which Canonry comments, and why.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show the score from which Canonry comments, and why.\n\n\
        The threshold is learned from what people did with triaged issues: right suggestions may lower it, wrong ones raise \
        it, and where no level is right often enough Canonry stops commenting and keeps recording. A component (a label \
        `area/…` or `component/…`) has a threshold of its own once it has 20 outcomes and the repository 100. `canonry show` \
        shows what each issue taught.\n\n\
        With --check everything is recomputed from the recorded events; a difference to what is stored ends with status 1.",
    before_help = "Example:\n  canonry thresholds\n  canonry thresholds --repo octo/cat --check --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Recompute everything from the recorded events, and compare
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let found = threshold_report(&store, &repo).await?;
    let checked = if args.check { Some(store.learning().checked_thresholds(repo.id).await?) } else { None };
    store.disconnect().await;
    let differences = checked.as_ref().map(|checked| differences(&checked.stored, &checked.recomputed));
    let older_rules = checked.as_ref().is_some_and(|checked| checked.older_rules);
    let mut text = in_words(&repo.name.to_string(), &found, context);
    if let Some(differences) = &differences {
        text += &checked_in_words(differences, older_rules);
    }
    let report = Report::new(found.stats(), text)
        .of(&repo.name)
        .with("settings", found.settings)
        .with("thresholds", &found.thresholds)
        .with("adjustments", &found.adjustments);
    let Some(differences) = differences else { return Ok(report) };
    let shown: Vec<Value> = differences.iter().map(Difference::document).collect();
    let exit = if differences.is_empty() { Exit::Done } else { Exit::Failed };
    let check = json!({ "same": differences.is_empty(), "older_rules": older_rules, "differences": shown });
    Ok(report.with("check", check).ending(exit))
}

/// A threshold that is stored and computed differently; one of the two may be missing.
struct Difference<'a> {
    component: Option<&'a Component>,
    stored: Option<&'a ThresholdState>,
    computed: Option<&'a ThresholdState>,
}

impl Difference<'_> {
    fn document(&self) -> Value {
        json!({ "component": self.component, "stored": self.stored, "computed": self.computed })
    }
}

fn differences<'a>(stored: &'a Thresholds, computed: &'a Thresholds) -> Vec<Difference<'a>> {
    let repository =
        Difference { component: None, stored: Some(&stored.repository), computed: Some(&computed.repository) };
    let names: std::collections::BTreeSet<&Component> =
        stored.components.keys().chain(computed.components.keys()).collect();
    let components = names.into_iter().map(|name| Difference {
        component: Some(name),
        stored: stored.components.get(name),
        computed: computed.components.get(name),
    });
    std::iter::once(repository).chain(components).filter(|one| one.stored != one.computed).collect()
}

fn in_words(repo: &str, report: &ThresholdReport, context: &Context) -> String {
    let settings = &report.settings;
    let Some(own) = report.thresholds.first() else { return String::new() };
    let bold = anstyle::Style::new().bold();
    let (holds, end) = match own.current {
        CurrentThreshold::From(level) => (format!("In {repo} Canonry comments at {level} % and above"), ""),
        CurrentThreshold::Silent => (
            format!("Canonry stopped commenting in {repo}: too many of its suggestions were wrong"),
            "; it keeps recording",
        ),
    };
    let source = match own.source {
        ThresholdSource::Configured => "as configured".to_owned(),
        ThresholdSource::Learned => {
            format!("learned from {}; {} % is configured", counted(own.total, "outcome"), settings.configured)
        }
    };
    let rule = match settings.rule {
        ThresholdRule::PrecisionTarget => format!(
            "The rule precision-target wants {} of suggestions to be right.",
            percent(settings.wanted_precision.get())
        ),
        other => format!("The rule is {other}."),
    };
    let opening = paragraph(0, &format!("{holds} ({source}{end}). {rule}"));
    let rest = silence(report);
    let rest = if rest.is_empty() { rest } else { paragraph(0, rest.trim_end()) };
    let mut text = format!("{bold}{}{bold:#}\n{rest}\n", opening.trim_end());
    let mut shown = table(["issues", "threshold", "source", "outcomes", "right", "wrong", "missed", "no duplicate"])
        .with_numbers_from(3);
    for row in &report.thresholds {
        shown.add_row([
            name(row.component.as_ref()),
            threshold(row.current),
            row.source.to_string(),
            thousands(row.total),
            thousands(row.confirmed),
            thousands(row.false_positives),
            thousands(row.missed),
            thousands(row.true_negatives),
        ]);
    }
    text += &format!("{shown}\n\nWhy:\n");
    for row in &report.thresholds {
        text += &why(row);
    }
    if !report.adjustments.is_empty() {
        text += "\nChanges of more than 5 %, newest first:\n";
        for one in &report.adjustments {
            text += &changed(one, context);
        }
    }
    text
}

/// Names the components for which Canonry stopped commenting, and explains how to make it comment again.
fn silence(report: &ThresholdReport) -> String {
    let silent: Vec<&ReportedThreshold> =
        report.thresholds.iter().filter(|row| row.current == CurrentThreshold::Silent).collect();
    let components: Vec<String> =
        silent.iter().filter_map(|row| row.component.as_ref()).map(|one| one_line(one.as_str())).collect();
    let about = match components.as_slice() {
        [] if silent.is_empty() => return String::new(),
        [] => String::new(),
        named => format!("It does not comment on issues of {}. ", named.join(", ")),
    };
    format!(
        "{about}`canonry show` shows what each issue taught; a lower triage.learning.targetPrecision or another \
         triage.learning.rule in .canonry.yml makes Canonry comment again.\n"
    )
}

fn name(component: Option<&Component>) -> String {
    component.map_or_else(|| "all issues".to_owned(), |component| one_line(component.as_str()))
}

fn why(row: &ReportedThreshold) -> String {
    paragraph(2, &format!("{}: {}", name(row.component.as_ref()), row.reason))
}

fn changed(one: &ReportedAdjustment, context: &Context) -> String {
    let mut text = format!(
        "  {}  {}: {} → {} after {}",
        context.when(one.at),
        name(one.component.as_ref()),
        threshold(one.previous_threshold),
        threshold(one.new_threshold),
        counted(one.sample_count, "outcome"),
    );
    if context.verbose {
        text += &format!(" (α {:.1}, β {:.1})", one.alpha, one.beta);
    }
    text + "\n"
}

fn checked_in_words(differences: &[Difference<'_>], older_rules: bool) -> String {
    if differences.is_empty() {
        return "\nRecomputed from all events: the same as stored.\n".to_owned();
    }
    let mut text =
        "\nThese thresholds differ from the stored ones when they are recomputed from all events:\n".to_owned();
    for one in differences {
        let state = |state: Option<&ThresholdState>| {
            state.map_or_else(
                || "none".to_owned(),
                |state| format!("{} after {}", threshold(state.current), counted(state.counts.total, "outcome")),
            )
        };
        text +=
            &format!("  {}: stored {}, recomputed {}\n", name(one.component), state(one.stored), state(one.computed));
    }
    if older_rules {
        text += "An older version learned the stored thresholds; the next command that writes, such as `canonry sync` or \
            `canonry serve`, recomputes it.\n";
    }
    text
}
