//! The `judge-model` benchmark: a model behind an OpenAI-compatible server as a judge, on pairs whose truth is known.

use super::{data, example};
use crate::process::step;

pub(crate) fn run(options: &[String]) -> anyhow::Result<()> {
    data("adjudicated/rust.jsonl")?;
    step("pairs", example("canonry-triage", "judge_model")?.args(options))
}
