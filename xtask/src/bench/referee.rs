//! The `referee` benchmark: judged comments of several review tools, joined and ranked.

use super::{data, example};
use crate::process::step;

pub(crate) fn run() -> anyhow::Result<()> {
    for file in ["review/agreement.jsonl", "review/labelled_comments.jsonl"] {
        data(file)?;
    }
    step("joining and ranking comments", &mut example("canonry-review", "referee")?)
}
