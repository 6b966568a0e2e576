//! The `judge` benchmark: the offline judge's verdict on every issue and pull request at the time it was filed.

use super::{data, example, folder};
use crate::process::step;

pub(crate) fn run() -> anyhow::Result<()> {
    data("rust.jsonl.gz")?;
    let vectors = folder()?.join("vectors");
    step("vectors of every set, by the compiled-in model", example("canonry-models", "embed_sets")?.arg(&vectors))?;
    step("verdicts", example("canonry-triage", "judge_replay")?.arg("--vectors").arg(&vectors))
}
