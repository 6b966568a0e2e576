//! The `retrieval` benchmark: how often the known original is among the neighbours, on six public sets.

use super::{data, example, folder};
use crate::process::step;

pub(crate) fn run() -> anyhow::Result<()> {
    data("rust.jsonl.gz")?;
    let vectors = folder()?.join("vectors");
    step("vectors of every set, by the compiled-in model", example("canonry-models", "embed_sets")?.arg(&vectors))?;
    step("quality", example("canonry-retrieval", "baselines")?.arg("--vectors").arg(&vectors))
}
