//! The Homebrew formula, which installs the archives of a release.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::PackageFile;
use super::project::Project;

/// `sums` has the SHA-256 of each archive by its target.
pub(crate) fn formula(project: &Project, sums: &BTreeMap<String, String>) -> Result<PackageFile> {
    let Project { version, description, repository, .. } = project;
    let source = |target: &str| -> Result<String> {
        let sum = sums.get(target).with_context(|| format!("there is no archive for {target}"))?;
        let url = format!("{repository}/releases/download/v{version}/canonry-v{version}-{target}.tar.gz");
        Ok(format!("      url \"{url}\"\n      sha256 \"{sum}\"\n"))
    };
    let system = |name: &str, arm: &str, intel: &str| -> Result<String> {
        let (arm, intel) = (source(arm)?, source(intel)?);
        Ok(format!("  on_{name} do\n    on_arm do\n{arm}    end\n    on_intel do\n{intel}    end\n  end\n"))
    };
    let macos = system("macos", "aarch64-apple-darwin", "x86_64-apple-darwin")?;
    let linux = system("linux", "aarch64-unknown-linux-musl", "x86_64-unknown-linux-musl")?;
    // Homebrew wants no full stop.
    let description = description.trim_end_matches('.');
    let text = format!(
        r##"class Canonry < Formula
  desc "{description}"
  homepage "{repository}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]

{macos}
{linux}
  def install
    bin.install "canonry"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/canonry.bash" => "canonry"
    zsh_completion.install "completions/canonry.zsh" => "_canonry"
    fish_completion.install "completions/canonry.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/canonry --version")
  end
end
"##
    );
    Ok(PackageFile { name: "canonry.rb".to_owned(), bytes: text.into_bytes() })
}
