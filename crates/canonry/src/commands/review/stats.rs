//! `stats`: figures of a repository's reviews.

use anyhow::Result;
use canonry_domain::Since;
use canonry_domain::review::{BotRecord, Severity};
use canonry_review::bot_documents;
use canonry_store::{GlobalPattern, ReviewStatistics};
use serde_json::{Map, Value, json};

use crate::output::numbers::{percent, thousands};
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Show review statistics: findings, hidden, fixed.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show review statistics: findings, hidden, fixed.\n\n\
        A finding counts once, in the review that first reported it. --global shows the patterns of all repositories in this \
        database that share them (knowledge.shareGlobal in .canonry.yml): fingerprints and counts, no repository and no text.",
    before_help = "Example:\n  canonry stats\n  canonry stats --repo octo/cat --since 30d --json\n  canonry stats --global"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only reviews since then: a number of days such as 30d, or a date such as 2026-02-01
    #[arg(long, value_name = "SINCE", conflicts_with = "global")]
    since: Option<Since>,
    /// Patterns of all repositories that share them
    #[arg(long, conflicts_with = "repo")]
    global: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

/// How many patterns are shown at most.
const PATTERNS: u32 = 50;

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    if args.global {
        let patterns = store.findings().global_patterns(PATTERNS).await?;
        store.disconnect().await;
        return Ok(Report::new(json!({ "patterns": patterns.len() }), global_in_words(&patterns))
            .with("patterns", patterns.iter().map(global_document).collect::<Vec<_>>()));
    }
    let repo = args.repo.find(&store).await?;
    let since = args.since.map(|since| since.moment(context.now));
    let found = store.review().statistics(repo.id, since).await?;
    let bots = store.findings().bot_records(repo.id).await?;
    store.disconnect().await;
    let figures = figures(&found);
    let text = in_words(&found, &repo.name.to_string()) + &bots_in_words(&bots);
    let report = Report::new(&figures, text).of(&repo.name);
    // Without review.referee.bots there are none.
    let report = if bots.is_empty() { report } else { report.with("bots", bot_documents(&bots)) };
    Ok(figures.into_iter().fold(report, |report, (key, value)| report.with(&key, value)).with("since", since))
}

/// How often other bots were right in this repository, at any time.
fn bots_in_words(bots: &[BotRecord]) -> String {
    if bots.is_empty() {
        return String::new();
    }
    let mut shown =
        table(["bot", "comments", "also by others", "right", "decided", "share", "95 % interval"]).with_numbers_from(1);
    for one in bots {
        let interval = one.share.interval();
        shown.add_row([
            one_line(one.login.as_str()),
            thousands(one.remarks),
            thousands(one.agreed),
            thousands(one.share.right),
            thousands(one.share.all()),
            one.share.value().map_or_else(|| "–".to_owned(), percent),
            format!("{} to {}", percent(interval.low), percent(interval.high)),
        ]);
    }
    format!("\nOther bots, by what people made of their comments:\n\n{shown}\n")
}

/// Rounds an average to two decimals, so that people can read it and scripts can compare it.
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
        return format!("No reviews of {repo} in that time.\n\nNext: canonry review --base main\n");
    }
    let mut text = format!(
        "{} of {} in {repo}: {}, {} hidden.\n",
        counted(found.reviews, "review"),
        counted(found.subjects, "change"),
        counted(found.shown, "finding"),
        thousands(found.suppressed)
    );
    if let Some(rate) = found.fixed_rate {
        text += &format!("Fixed: {} of the shown findings ({}).\n", thousands(found.fixed), percent(rate));
    }
    if let (Some(findings), Some(confidence)) = (found.avg_findings_per_review, found.avg_confidence) {
        text += &format!("Average: {findings:.1} findings per review, confidence {confidence:.0} %.\n");
    }
    let mut shown = table(["severity", "shown", "hidden"]).with_numbers_from(1);
    for severity in SEVERITIES {
        let counts = found.by_severity.get(&severity).copied().unwrap_or_default();
        shown.add_row([severity.to_string(), thousands(counts.shown), thousands(counts.suppressed)]);
    }
    text += &format!("\n{shown}\n");
    if !found.top_files.is_empty() {
        let mut files = table(["file", "findings"]).with_numbers_from(1);
        for file in &found.top_files {
            files.add_row([one_line(file.path.as_str()), thousands(file.findings)]);
        }
        text += &format!("\n{files}\n");
    }
    text
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
        return "No repository shares its counts. To share them, set `knowledge: {shareGlobal: true}` in its .canonry.yml.\n".to_owned();
    }
    let heading = ["pattern", "severity", "category", "shown", "fixed", "dismissed", "up", "down"];
    let mut shown = table(heading).with_numbers_from(3);
    for pattern in patterns {
        shown.add_row([
            pattern.fingerprint.to_string(),
            pattern.severity.to_string(),
            pattern.category.to_string(),
            thousands(pattern.shown),
            thousands(pattern.fixed),
            thousands(pattern.dismissed),
            thousands(pattern.thumbs_up),
            thousands(pattern.thumbs_down),
        ]);
    }
    format!("{}:\n{shown}\n", counted(patterns.len() as u64, "shared pattern"))
}
