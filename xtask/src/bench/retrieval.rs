//! The `retrieval` benchmark: how often the known original is among the neighbours, on six public sets.

use std::path::PathBuf;

use super::{data, example, folder};
use crate::process::step;

/// Names a folder of vectors that `embed_sets` made with another model, such as one that was never trained on a set.
const VECTORS: &str = "CANONRY_BENCH_VECTORS";

pub(crate) fn run() -> anyhow::Result<()> {
    data("rust.jsonl.gz")?;
    let vectors = match std::env::var_os(VECTORS).filter(|value| !value.is_empty()) {
        Some(vectors) => PathBuf::from(vectors),
        None => {
            let vectors = folder()?.join("vectors");
            let mut embed = example("canonry-models", "embed_sets")?;
            step("vectors of every set, by the compiled-in model", embed.arg(&vectors))?;
            vectors
        }
    };
    let mut baselines = example("canonry-retrieval", "baselines")?;
    baselines.arg("--vectors").arg(&vectors);
    // Plain methods with the published model, if its vectors exist.
    let published = folder()?.join("minilm");
    if published.is_dir() {
        baselines.arg("--plain-vectors").arg(published);
    }
    step("quality", &mut baselines)
}
