//! Canonry's activity in the last 7 and 30 days, as figures with a trend.

use canonry_charts::trend_line;
use canonry_store::{ActivityDay, RepoScope};

use crate::charts::Svg;
use crate::console::Console;
use crate::layout::errors::PageError;
use crate::layout::formatting::thousands;

const WEEK: usize = 7;
const MONTH: u16 = 30;

pub(crate) struct ActivityFigure {
    pub(crate) label: &'static str,
    pub(crate) week: String,
    pub(crate) month: String,
    pub(crate) detail: Option<String>,
    pub(crate) trend: Svg,
}

pub(crate) async fn activity_figures(
    console: &Console,
    scope: RepoScope<'_>,
) -> Result<Vec<ActivityFigure>, PageError> {
    let days = console.store.console().activity_days(scope, console.now(), MONTH).await?;
    Ok(vec![
        ActivityFigure { detail: outcomes(&days), ..figure("Suggestions", &days, |day| day.suggestions) },
        figure("Closes", &days, |day| day.closes),
        figure("Undone", &days, |day| day.undone),
        figure("Reviews", &days, |day| day.reviews),
        figure("Findings fixed", &days, |day| day.fixed),
    ])
}

fn figure(label: &'static str, days: &[ActivityDay], of: fn(&ActivityDay) -> u64) -> ActivityFigure {
    let counts: Vec<u64> = days.iter().map(of).collect();
    let week: u64 = counts.iter().rev().take(WEEK).sum();
    let month: u64 = counts.iter().sum();
    let description = format!("{label} in the last {MONTH} days: {month}, {week} of them in the last {WEEK}");
    ActivityFigure {
        label,
        week: thousands(week),
        month: thousands(month),
        detail: None,
        trend: Svg::new(trend_line(&counts, &description)),
    }
}

/// `7 of 9 right`: the outcomes of suggestions that people reacted to.
fn outcomes(days: &[ActivityDay]) -> Option<String> {
    let sum = |of: fn(&ActivityDay) -> u64| days.iter().map(of).sum::<u64>();
    let (right, wrong) = (sum(|day| day.confirmed), sum(|day| day.rejected));
    match (sum(|day| day.suggestions), right + wrong) {
        (0, _) => None,
        (_, 0) => Some("no outcome yet".to_owned()),
        (suggestions, decided) => {
            let open = suggestions.saturating_sub(decided);
            let open = if open == 0 { String::new() } else { format!(", {} open", thousands(open)) };
            Some(format!("{} of {} right{open}", thousands(right), thousands(decided)))
        }
    }
}
