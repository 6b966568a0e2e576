//! `stats`: what the reviews of a repository came to.

use anyhow::Result;
use canonry_domain::Since;
use canonry_domain::review::Severity;
use canonry_store::{GlobalPattern, ReviewStatistics};
use comfy_table::CellAlignment;
use serde_json::{Map, Value, json};

use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::reviewed_repo::ReviewedRepoOption;

/// Show what the reviews of a repository came to: findings by severity, what was hidden, what was fixed.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show what the reviews of a repository came to: findings by severity, what was hidden, what was fixed.\n\n\
        A finding counts once, however many reviews saw it: in the review that first told of it. With --global the counts of \
        patterns over all repositories of this database are shown that share them (knowledge.shareGlobal in .canonry.yml): \
        fingerprints and numbers, no repository and no text.",
    after_help = "Example:\n  canonry stats --repo octo/cat --since 30d\n  canonry stats --json\n  canonry stats --global"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: ReviewedRepoOption,
    /// Only reviews since then: a number of days such as 30d, or a date such as 2026-02-01
    #[arg(long, value_name = "SINCE", conflicts_with = "global")]
    since: Option<Since>,
    /// Counts of patterns over all repositories that share them
    #[arg(long, conflicts_with = "repo")]
    global: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

/// So many patterns are shown.
const PATTERNS: u32 = 50;

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    if args.global {
        store.findings().recompute_global_patterns().await?;
        let patterns = store.findings().global_patterns(PATTERNS).await?;
        store.disconnect().await;
        return Ok(Report::new(json!({ "patterns": patterns.len() }), global_in_words(&patterns))
            .with("patterns", patterns.iter().map(global_document).collect::<Vec<_>>()));
    }
    let repo = args.repo.find(&store).await?;
    let since = args.since.map(|since| since.moment(context.now));
    let found = store.review().statistics(repo.id, since).await?;
    store.disconnect().await;
    let figures = figures(&found);
    let text = in_words(&found, &repo.name.to_string());
    let report = Report::new(&figures, text).of(&repo.name);
    Ok(figures.into_iter().fold(report, |report, (key, value)| report.with(&key, value)).with("since", since))
}

/// An average as people read it, and as scripts compare it.
pub(crate) fn rounded(average: Option<f64>) -> Option<f64> {
    average.map(|average| (average * 100.0).round() / 100.0)
}

const SEVERITIES: [Severity; 4] = [Severity::Critical, Severity::Major, Severity::Medium, Severity::Minor];

fn figures(found: &ReviewStatistics) -> Map<String, Value> {
    let count = |severity: Severity| found.by_severity.get(&severity).copied().unwrap_or_default();
    let mut by_severity = Map::new();
    let mut severities = Map::new();
    for severity in SEVERITIES {
        let counts = count(severity);
        by_severity.insert(severity.to_string(), json!(counts.shown + counts.suppressed));
        severities.insert(severity.to_string(), json!({ "shown": counts.shown, "suppressed": counts.suppressed }));
    }
    let files: Vec<Value> =
        found.top_files.iter().map(|file| json!({ "path": file.path, "findings": file.findings })).collect();
    let figures = json!({
        "reviews": found.reviews,
        "subjects": found.subjects,
        "findings": found.findings,
        "shown": found.shown,
        "suppressed": found.suppressed,
        "fixed": found.fixed,
        "by_severity": by_severity,
        "severities": severities,
        "avg_findings_per_review": rounded(found.avg_findings_per_review),
        "avg_confidence": rounded(found.avg_confidence),
        "fixed_rate": rounded(found.fixed_rate),
        "top_files": files,
    });
    match figures {
        Value::Object(figures) => figures,
        _ => unreachable!("invariant: written as an object"),
    }
}

fn in_words(found: &ReviewStatistics, repo: &str) -> String {
    if found.reviews == 0 {
        return format!("No review of {repo} is stored for that time.\n\nNext: canonry review --base main\n");
    }
    let mut text = format!(
        "{} of {} in {repo}: {}, {} hidden.\n",
        counted(found.reviews, "review"),
        counted(found.subjects, "change"),
        counted(found.shown, "finding"),
        found.suppressed
    );
    if let Some(rate) = found.fixed_rate {
        text += &format!("Fixed by now: {} of the shown ones ({:.0} %).\n", found.fixed, rate * 100.0);
    }
    if let (Some(findings), Some(confidence)) = (found.avg_findings_per_review, found.avg_confidence) {
        text += &format!("On average {findings:.1} findings a review, with a confidence of {confidence:.0} %.\n");
    }
    let mut shown = table(["severity", "shown", "hidden"]);
    for severity in SEVERITIES {
        let counts = found.by_severity.get(&severity).copied().unwrap_or_default();
        shown.add_row([severity.to_string(), counts.shown.to_string(), counts.suppressed.to_string()]);
    }
    align_numbers(&mut shown);
    text += &format!("\n{}\n", shown.trim_fmt());
    if !found.top_files.is_empty() {
        let mut files = table(["file", "findings"]);
        for file in &found.top_files {
            files.add_row([one_line(file.path.as_str()), file.findings.to_string()]);
        }
        align_numbers(&mut files);
        text += &format!("\n{}\n", files.trim_fmt());
    }
    text
}

/// Numbers stand below each other; the first column is words.
pub(crate) fn align_numbers(table: &mut comfy_table::Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn global_document(pattern: &GlobalPattern) -> Value {
    json!({
        "fingerprint": pattern.fingerprint,
        "severity": pattern.severity,
        "category": pattern.category,
        "shown": pattern.shown,
        "fixed": pattern.fixed,
        "dismissed": pattern.dismissed,
        "thumbs_up": pattern.thumbs_up,
        "thumbs_down": pattern.thumbs_down,
    })
}

fn global_in_words(patterns: &[GlobalPattern]) -> String {
    if patterns.is_empty() {
        return "No repository shares its counts; one does with `knowledge: {shareGlobal: true}` in its .canonry.yml.\n".to_owned();
    }
    let mut shown = table(["pattern", "severity", "category", "shown", "fixed", "dismissed", "up", "down"]);
    for pattern in patterns {
        shown.add_row([
            pattern.fingerprint.to_string(),
            pattern.severity.to_string(),
            pattern.category.to_string(),
            pattern.shown.to_string(),
            pattern.fixed.to_string(),
            pattern.dismissed.to_string(),
            pattern.thumbs_up.to_string(),
            pattern.thumbs_down.to_string(),
        ]);
    }
    format!("{}:\n{}\n", counted(patterns.len() as u64, "shared pattern"), shown.trim_fmt())
}
