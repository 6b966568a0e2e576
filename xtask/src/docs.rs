//! `cargo xtask docs`: writes the parts of docs/ that the program generates.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, quietly, root, step};

/// The arguments of `canonry reference`, and the file that each writes.
const GENERATED: [(&str, &str); 4] = [
    ("commands", "docs/commands.md"),
    ("mentions", "docs/mentions.md"),
    ("configuration", "docs/configuration.md"),
    ("schema", "docs/canonry.schema.json"),
];

pub(crate) fn write() -> Result<()> {
    build()?;
    for (part, file) in GENERATED {
        let path = root().join(file);
        fs::write(&path, reference(part)?).with_context(|| file.to_owned())?;
        eprintln!("{file}");
    }
    Ok(())
}

pub(crate) fn check() -> Result<()> {
    build()?;
    let mut stale = Vec::new();
    for (part, file) in GENERATED {
        let expected = reference(part)?;
        if fs::read(root().join(file)).ok().as_deref() != Some(&expected) {
            stale.push(file);
        }
    }
    if !stale.is_empty() {
        bail!("not up to date: {}; run `cargo xtask docs`", stale.join(", "));
    }
    Ok(())
}

/// A separate step, so that a build's progress and errors are visible.
fn build() -> Result<()> {
    step("build", cargo().args(["build", "--package", "canonry", "--all-features"]))
}

fn reference(part: &str) -> Result<Vec<u8>> {
    let output = quietly(cargo().args(["run", "--quiet", "--package", "canonry", "--all-features"]).args([
        "--",
        "reference",
        part,
    ]))?;
    Ok(output.stdout)
}
