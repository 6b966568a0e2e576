//! `cargo xtask check`: everything that must pass before tests run.

use anyhow::Result;

use crate::dependencies::check_dependencies;
use crate::layout;
use crate::process::{cargo, step};

pub(crate) fn check() -> Result<()> {
    step("fmt", cargo().args(["fmt", "--all", "--check"]))?;
    check_dependencies()?;
    layout::check()?;
    step(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--all-features"]).args(["--", "-D", "warnings"]),
    )?;
    step(
        "rustdoc",
        cargo().args(["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}
