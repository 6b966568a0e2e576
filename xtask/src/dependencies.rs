//! Checks the dependency tree against deny.toml: licences, banned crates and sources.
//!
//! A part of `cargo deny check` that needs only cargo. CI on GitHub runs the complete check, with the database of
//! advisories.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::{cargo, quietly};

const RULES: &str = include_str!("../../deny.toml");
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check_dependencies() -> Result<()> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let metadata = quietly(&mut metadata)?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let problems: Vec<String> = packages.iter().filter_map(|package| problem(package, &rules())).collect();
    if problems.is_empty() { Ok(()) } else { bail!("{}; see deny.toml", problems.join("; ")) }
}

struct Rules {
    licences: BTreeSet<&'static str>,
    banned: BTreeSet<&'static str>,
}

/// The two lists that are read from deny.toml.
fn rules() -> Rules {
    let list = |begins: &str| {
        let (_, rest) = RULES.split_once(begins).expect("invariant: deny.toml has this list");
        rest.split_once("\n]").map_or(rest, |(list, _)| list)
    };
    let quoted = |line: &'static str| line.split('"').nth(1);
    let code = |line: &'static str| line.split('#').next().unwrap_or_default();
    Rules {
        licences: list("allow = [").lines().map(code).filter_map(quoted).collect(),
        banned: list("deny = [").lines().map(code).filter_map(quoted).collect(),
    }
}

/// What is wrong with a package; `None` for our own packages.
fn problem(package: &Value, rules: &Rules) -> Option<String> {
    let source = package["source"].as_str()?;
    let name = package["name"].as_str().unwrap_or_default();
    let licence = package["license"].as_str().unwrap_or_default();
    if source != CRATES_IO {
        return Some(format!("{name} comes from {source}"));
    }
    if rules.banned.contains(name) {
        return Some(format!("{name} is banned"));
    }
    let allowed = Licence { words: words(licence), at: 0, rules }.allows();
    (!allowed).then(|| format!("{name} has the licence {licence:?}"))
}

/// The words of an SPDX expression; old manifests write `/` for OR.
fn words(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// A parser for a licence expression: AND binds closer than OR, and WITH closest.
struct Licence<'a> {
    words: Vec<String>,
    at: usize,
    rules: &'a Rules,
}

impl Licence<'_> {
    fn allows(mut self) -> bool {
        self.any() == Some(true) && self.at == self.words.len()
    }

    /// `None` if something is missing; the same in the functions below.
    fn any(&mut self) -> Option<bool> {
        let mut allowed = self.all()?;
        while self.takes("OR") {
            allowed |= self.all()?;
        }
        Some(allowed)
    }

    fn all(&mut self) -> Option<bool> {
        let mut allowed = self.one()?;
        while self.takes("AND") {
            allowed &= self.one()?;
        }
        Some(allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let allowed = self.any()?;
            return self.takes(")").then_some(allowed);
        }
        let mut name = self.word()?;
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.word()?);
        }
        Some(self.rules.licences.contains(name.as_str()))
    }

    fn word(&mut self) -> Option<String> {
        let word = self.words.get(self.at).cloned()?;
        self.at += 1;
        Some(word)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.words.get(self.at).is_some_and(|next| next == word);
        self.at += usize::from(is_there);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CRATES_IO, problem, rules};

    #[test]
    fn licences_are_read_as_spdx_says() {
        let told = |licence: &str| {
            let package = json!({"name": "tide", "source": CRATES_IO, "license": licence});
            problem(&package, &rules())
        };
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "ISC AND (Apache-2.0 OR ISC) AND BSD-3-Clause",
        ] {
            assert_eq!(told(good), None, "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT OR", "(MIT", "MIT Apache-2.0", "MIT WITH odd-exception"] {
            assert_eq!(told(bad), Some(format!("tide has the licence {bad:?}")), "{bad}");
        }
    }

    #[test]
    fn banned_crates_and_other_sources_are_found() {
        let told =
            |name: &str, source: &str| problem(&json!({"name": name, "source": source, "license": "MIT"}), &rules());
        assert_eq!(told("paste", CRATES_IO).as_deref(), Some("paste is banned"));
        let git = "git+https://example.com/tide#1234";
        assert_eq!(told("tide", git), Some(format!("tide comes from {git}")));
        assert_eq!(problem(&json!({"name": "canonry", "source": null}), &rules()), None, "our own");
    }
}
