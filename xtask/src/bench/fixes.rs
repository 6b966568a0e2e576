//! The `fixes` benchmark: how often the fix of an issue is found among the pull requests merged later.

use super::{data, example};
use crate::process::step;

pub(crate) fn run() -> anyhow::Result<()> {
    data("rust.jsonl.gz")?;
    step("fixes of issues", &mut example("canonry-retrieval", "fixes")?)
}
