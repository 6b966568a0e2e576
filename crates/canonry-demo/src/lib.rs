#![doc = include_str!("../README.md")]

mod after_the_week;
mod clock;
mod code;
mod demo;
mod expectations;
mod models;
mod outcome;
mod pull_requests;
mod truth;
mod week;
mod world;

use anyhow::Result;
use futures_util::future::LocalBoxFuture;
use jiff::SignedDuration;

pub use demo::{Demo, VISITOR};
pub use outcome::DemoOutcome;
pub use week::{BRINDLE_REPO, TIDEPOOL_REPO, Week};

use outcome::PlanCounts;
use truth::SampleTruth;
use week::QUILLNOTE_REPO;

/// The length of the demo's week; it ends now.
pub const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Plays the week, and what maintainers do before and after it. `on_minute` gets the number of minutes that have
/// passed.
///
/// Fails if something happened that must never happen.
pub fn play_week<'a>(
    demo: &'a Demo,
    run_id: &'a str,
    on_minute: &'a (dyn Fn(u64) + Send + Sync),
) -> LocalBoxFuture<'a, Result<(Week, DemoOutcome)>> {
    Box::pin(async move {
        demo.settle().await?;
        for repo in [BRINDLE_REPO, TIDEPOOL_REPO, QUILLNOTE_REPO] {
            after_the_week::find_duplicates(demo, repo, run_id).await?;
        }
        let week = week::play(demo, on_minute).await?;
        let mut plan = PlanCounts::default();
        for repo in [TIDEPOOL_REPO, QUILLNOTE_REPO, BRINDLE_REPO] {
            plan = PlanCounts::of(&after_the_week::find_duplicates(demo, repo, run_id).await?);
        }
        let mut outcome = outcome::count(demo, &week).await?;
        outcome.plan = plan;
        after_the_week::audit(demo, TIDEPOOL_REPO, SampleTruth::of(&week)?, run_id).await?;
        outcome.audit = after_the_week::audit(demo, BRINDLE_REPO, SampleTruth::of(&week)?, run_id).await?.into();
        outcome.adjudicated = after_the_week::adjudicate(demo, TIDEPOOL_REPO, &week, "mirela-k").await?
            + after_the_week::adjudicate(demo, BRINDLE_REPO, &week, "ottilie").await?;
        demo.check_health().await?;
        expectations::check_safety(demo, &week)?;
        Ok((week, outcome))
    })
}

/// Fails if the week did not go as described.
pub fn check_outcome<'a>(demo: &'a Demo, week: &'a Week, outcome: &'a DemoOutcome) -> LocalBoxFuture<'a, Result<()>> {
    Box::pin(expectations::check_story(demo, week, outcome))
}
