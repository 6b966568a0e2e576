//! The `judge-speed` benchmark: how fast a scripted server judges items, and how fast their plan is made.

use super::example;
use crate::process::step;

pub(crate) fn run() -> anyhow::Result<()> {
    step("judging and planning", &mut example("canonry-triage", "judge_speed")?)
}
