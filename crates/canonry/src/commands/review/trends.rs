//! `trends`: the reviews of a repository, day by day.

use anyhow::Result;
use canonry_store::ReviewDay;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::commands::review::stats::rounded;
use crate::output::numbers::thousands;
use crate::output::report::Report;
use crate::output::tables::table;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Show reviews and findings by day.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry trends\n  canonry trends --repo octo/cat --days 90 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// How many days, today included; days begin at midnight UTC
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3660))]
    days: u32,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let today = context.now.to_zoned(TimeZone::UTC).date();
    let from = today.checked_sub(i64::from(args.days - 1).days())?;
    let days = store.review().days(repo.id, from, args.days).await?;
    store.disconnect().await;
    let total = |count: fn(&ReviewDay) -> u64| days.iter().map(count).sum::<u64>();
    let stats = json!({
        "reviews": total(|day| day.reviews),
        "findings": total(|day| day.findings),
        "suppressed": total(|day| day.suppressed),
    });
    Ok(Report::new(stats, in_words(&days, &repo.name.to_string()))
        .of(&repo.name)
        .with("days", days.iter().map(document).collect::<Vec<_>>()))
}

fn document(day: &ReviewDay) -> Value {
    json!({
        "date": day.date.to_string(),
        "reviews": day.reviews,
        "findings": day.findings,
        "suppressed": day.suppressed,
        "avg_confidence": rounded(day.avg_confidence),
    })
}

fn in_words(days: &[ReviewDay], repo: &str) -> String {
    let with_reviews: Vec<&ReviewDay> = days.iter().filter(|day| day.reviews > 0).collect();
    if with_reviews.is_empty() {
        return format!("No reviews of {repo} in the last {} days.\n\nNext: canonry review --base main\n", days.len());
    }
    let mut shown = table(["day", "reviews", "findings", "hidden", "confidence"]).with_numbers_from(1);
    for day in with_reviews {
        let confidence = day.avg_confidence.map_or_else(String::new, |confidence| format!("{confidence:.0} %"));
        shown.add_row([
            day.date.to_string(),
            thousands(day.reviews),
            thousands(day.findings),
            thousands(day.suppressed),
            confidence,
        ]);
    }
    format!("{repo}, days with reviews in the last {}:\n{shown}\n", days.len())
}
