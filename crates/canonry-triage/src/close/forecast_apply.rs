//! Forecasts what an apply of a plan will close, and what it will not.

use canonry_boxed::boxed;
use canonry_domain::{ApplyForecast, DAILY_LIMIT_WINDOW, apply_forecast};
use canonry_store::{CloseRunId, Repo, RowsLeft, Store, StoreError};
use jiff::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanForecast {
    pub approved_only: ApplyForecast,
    pub all: ApplyForecast,
    pub left: RowsLeft,
    /// Closes of the last 24 hours that no person approved.
    pub closed_today: u64,
}

/// Forecasts an apply of a plan. At most `max_per_day` items a day are closed without a person's approval.
#[boxed]
pub async fn forecast_apply(
    store: &Store,
    repo: &Repo,
    plan: CloseRunId,
    max_per_day: u32,
    now: Timestamp,
) -> Result<PlanForecast, StoreError> {
    let left = store.plans().rows_left(plan).await?;
    let closed_today = store.plans().closes_since(repo.id, now - DAILY_LIMIT_WINDOW).await?;
    let most = u64::from(max_per_day);
    Ok(PlanForecast {
        approved_only: apply_forecast(left.approved, 0, closed_today, most),
        all: apply_forecast(left.approved, left.unapproved, closed_today, most),
        left,
        closed_today,
    })
}
