//! Finds the dependencies that a change adds to a manifest and that may be unused: those of which nothing says why they
//! are there.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::cargo_manifest::{CargoManifest, DeclaredDependency, same};

/// The longest name that crates.io accepts.
const LONGEST_NAME: usize = 64;

/// The dependencies that a manifest gains; more of them are a reorganisation.
const MOST_NEW: usize = 50;

/// Lists of dependencies that tools leave alone: cargo-machete's, cargo-shear's and cargo-udeps'.
static TOOL_LIST: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"ignored|normal\s*=\s*\[").expect("invariant: a constant pattern"));

/// A manifest before and after a change.
pub(super) struct ManifestChange<'a> {
    pub(super) before: &'a CargoManifest,
    pub(super) now: &'a CargoManifest,
    /// The text of `now`.
    pub(super) text: &'a str,
    /// The numbers of the lines that the change added.
    pub(super) added: &'a BTreeSet<u32>,
}

impl ManifestChange<'_> {
    /// The dependencies with new names; empty if they are too many.
    pub(super) fn new_names(&self) -> Vec<&DeclaredDependency> {
        let (names, _) = self.before.names_and_packages(None);
        let new = self.now.dependencies.values().filter(|one| !names.contains(&one.code_name()));
        let new: Vec<&DeclaredDependency> = new.take(MOST_NEW + 1).collect();
        if new.len() > MOST_NEW { Vec::new() } else { new }
    }

    /// The new dependencies that code has to name, by line.
    pub(super) fn candidates(&self, workspace: Option<&CargoManifest>) -> Vec<DeclaredDependency> {
        let Some(package) = self.now.package.as_deref() else { return Vec::new() };
        let (_, packages) = self.before.names_and_packages(workspace);
        let is_listed = |name: &str| {
            self.now.metadata_names(name) || workspace.is_some_and(|workspace| workspace.metadata_names(name))
        };
        let resolved = self.new_names().into_iter().filter_map(|one| one.resolved(workspace));
        let mut candidates: Vec<DeclaredDependency> = resolved
            .filter(|one| self.added.contains(&one.line) && !packages.contains(&same(one.package())))
            .filter(|one| is_plain(one) && !is_special_name(one, package))
            .filter(|one| !self.now.has_feature_of(&one.name) && !is_listed(&one.name) && !self.is_explained(one))
            .collect();
        candidates.sort_by_key(|one| one.line);
        candidates
    }

    /// Whether a line about the dependency has a comment or a comment above it, or is part of a list for tools.
    fn is_explained(&self, one: &DeclaredDependency) -> bool {
        let lines: Vec<&str> = self.text.lines().collect();
        let line_at = |at: Option<usize>| at.and_then(|at| lines.get(at)).copied().unwrap_or_default();
        let is_comment = |line: &str| line.trim_start().starts_with('#');
        (0..lines.len()).zip(1..).any(|(at, number)| {
            let [above, line, below] = [at.checked_sub(1), Some(at), Some(at + 1)].map(line_at);
            let behind_texts = line.rsplit('"').next().unwrap_or_default();
            (one.lines.contains(&number) || names(line, &one.name))
                && (is_comment(above)
                    || is_comment(line)
                    || behind_texts.contains('#')
                    || TOOL_LIST.is_match(line)
                    || [above, line, below].iter().any(|line| line.contains("ignored") || line.contains("machete")))
        })
    }
}

/// Whether a dependency says nothing that gives a reason for it: features, an exact or bounded version, its own source.
fn is_plain(one: &DeclaredDependency) -> bool {
    let is_open = |version: &str| !version.trim_start().starts_with('=') && !version.contains('<');
    !one.is_special && !one.has_features && one.version.as_deref().is_some_and(is_open)
}

/// Names of dependencies that code often does not name: those with native code, those of the same project, and those
/// that only unite the features of others.
fn is_special_name(one: &DeclaredDependency, package: &str) -> bool {
    let family = |name: &str| name.split(['-', '_']).next().unwrap_or_default().to_owned();
    let is_name = |name: &str| {
        name.len() <= LONGEST_NAME && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    !is_name(&one.name)
        || one.name.ends_with("-sys")
        || one.package().ends_with("-sys")
        || one.name.contains("hack")
        || family(&one.name) == family(package)
}

/// Whether a line has the name as a word of its own.
fn names(line: &str, name: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    line.match_indices(name)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + name.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::super::cargo_manifest::CargoManifest;
    use super::ManifestChange;

    const BEFORE: &str = "[package]\nname = \"tide-pool\"\n\n[dependencies]\nserde = \"1\"\n";

    /// `line name` of what may be unused, after a change from the first manifest to the second.
    fn candidates(before: &str, text: &str, workspace: &str) -> Vec<String> {
        let manifest = |text| CargoManifest::read(text).expect("a manifest");
        let (before, now, workspace) = (manifest(before), manifest(text), manifest(workspace));
        let added = (1..=999).collect();
        let change = ManifestChange { before: &before, now: &now, text, added: &added };
        let found = change.candidates(Some(&workspace));
        assert!(found.len() <= change.new_names().len(), "{text}");
        found.iter().map(|one| format!("{} {}", one.line, one.name)).collect()
    }

    #[test]
    fn what_a_change_adds() {
        for (added, expected) in [
            ("rand = \"0.8\"\n", &["6 rand"][..]),
            ("rand = { version = \"0.8\", default-features = false, features = [], optional = false }\n", &["6 rand"]),
            ("rand.version = \"0.8\"\nlog = \"0.4\"\n", &["6 rand", "7 log"]),
            ("\n[dependencies.rand]\nversion = \"0.8\"\n", &["7 rand"]),
            ("\"rand\" = '>=0.8'\n", &["6 rand"]),
            ("dice = { package = \"rand\", version = \"0.8\" }\n", &["6 dice"]),
            ("rand = { version = \"0.8\", path = \"../rand\" }\n", &["6 rand"]),
            ("rand = \"0.8\"\n\n[features]\nfast = [\"serde/std\", \"rand_core\"]\n", &["6 rand"]),
            ("rand = \"0.8\"\n\n[dev-dependencies]\nlog = \"0.4\"\n", &["6 rand"]),
            // Not candidates: another kind, another source, a version for a reason.
            ("rand = { version = \"0.8\", optional = true }\n", &[]),
            ("\n[dev-dependencies]\nrand = \"0.8\"\n", &[]),
            ("\n[build-dependencies]\nrand = \"0.8\"\n", &[]),
            ("\n[target.'cfg(unix)'.dependencies]\nrand = \"0.8\"\n", &[]),
            ("rand = { git = \"https://a.dev/rand\", version = \"0.8\" }\n", &[]),
            ("rand = { path = \"../rand\" }\n", &[]),
            ("rand = { version = \"0.8\", registry = \"own\" }\n", &[]),
            ("rand = \"=0.8.5\"\n", &[]),
            ("rand = \">=0.8, <0.10\"\n", &[]),
            ("rand = { version = \"0.8\", features = [\"std\"] }\n", &[]),
            ("[dependencies.rand]\nversion = \"0.8\"\nfeatures = [\n  \"std\",\n]\n", &[]),
            // Something says why it is there.
            ("rand = \"0.8\" # for the macro\n", &[]),
            ("# for the macro\nrand = \"0.8\"\n", &[]),
            ("[dependencies.rand]\nversion = \"0.8\" # for the macro\n", &[]),
            ("rand = \"0.8\"\n# rand is for the macro\n", &[]),
            ("rand = \"0.8\"\n\n[features]\nstd = [\"rand/std\"]\n", &[]),
            ("rand = \"0.8\"\n\n[features]\nstd = [\n  \"serde\", \"rand?/std\",\n]\n", &[]),
            ("rand = \"0.8\"\n\n[package.metadata.cargo-machete]\nignored = [\"rand\"]\n", &[]),
            ("rand = \"0.8\"\n\n[package.metadata.cargo-shear]\nignored = [\n\n  \"log\",\n  \"rand\",\n\n]\n", &[]),
            ("rand = \"0.8\"\n\n[package.metadata.cargo-udeps.ignore]\nnormal = [\"rand\"]\n", &[]),
            // Names of what code does not name.
            ("openssl-sys = \"0.9\"\n", &[]),
            ("ssl = { package = \"openssl-sys\", version = \"0.9\" }\n", &[]),
            ("tide-rock = \"0.1\"\n", &[]),
            ("workspace-hack = \"0.1\"\n", &[]),
            ("\"rand{{x}}\" = \"0.1\"\n", &[]),
        ] {
            assert_eq!(candidates(BEFORE, &format!("{BEFORE}{added}"), ""), *expected, "{added}");
        }
        let other = BEFORE.replace("tide-pool", "pool");
        assert_eq!(candidates(BEFORE, &format!("{other}tide-rock = \"0.1\"\n"), ""), ["6 tide-rock"]);
        let many: String = (0..51).map(|at| format!("a{at} = \"1\"\n")).collect();
        assert_eq!(candidates(BEFORE, &format!("{BEFORE}{many}"), ""), [""; 0], "too many");
        assert_eq!(candidates(BEFORE, &format!("{BEFORE}{}", &many[10..]), "").len(), 50);
        assert_eq!(candidates(BEFORE, "[dependencies]\nrand = \"0.8\"\n", ""), [""; 0], "no package");
    }

    #[test]
    fn what_was_there_before_is_not_added() {
        let before = format!(
            "{BEFORE}dice = {{ package = \"rand\", version = \"0.8\" }}\n[dev-dependencies]\nlog = \"0.4\"\n\
             [target.'cfg(unix)'.dependencies]\nnix = \"0.29\"\n[build-dependencies]\ncc = \"1\"\n"
        );
        let now = "[package]\nname = \"tide-pool\"\n[dependencies]\ncc = \"1\"\nlog = \"0.5\"\nnix = \"0.30\"\n\
            rand = \"0.9\"\nserde = \"2\"\nregex = \"1\"\n";
        assert_eq!(candidates(&before, now, ""), ["9 regex"]);
        // What stands on a line of the base is not new either.
        let (before, now) = (CargoManifest::default(), CargoManifest::read(BEFORE).expect("a manifest"));
        let added = [1, 2].into();
        let change = ManifestChange { before: &before, now: &now, text: BEFORE, added: &added };
        assert_eq!(change.candidates(None), []);
    }

    #[test]
    fn a_workspace_says_what_a_dependency_is() {
        let shared = |line: &str| format!("[workspace]\nmembers = [\"*\"]\n[workspace.dependencies]\n{line}\n");
        for (added, workspace, expected) in [
            ("rand = { workspace = true }\n", shared("rand = \"0.8\""), &["6 rand"][..]),
            ("rand.workspace = true\n", shared("rand = { version = \"0.8\", default-features = false }"), &["6 rand"]),
            ("dice.workspace = true\n", shared("dice = { package = \"rand\", version = \"0.8\" }"), &["6 dice"]),
            ("rand.workspace = true\n", shared("rand = { version = \"0.8\", path = \"rand\" }"), &["6 rand"]),
            ("rand.workspace = true\n", shared("log = \"0.4\""), &[]),
            ("rand.workspace = true\n", shared("rand = { path = \"rand\" }"), &[]),
            ("rand.workspace = true\n", shared("rand = \"=0.8.5\""), &[]),
            ("rand.workspace = true\n", shared("rand = { version = \"0.8\", features = [\"std\"] }"), &[]),
            ("rand = { workspace = true, features = [\"std\"] }\n", shared("rand = \"0.8\""), &[]),
            ("rand = { workspace = true, optional = true }\n", shared("rand = \"0.8\""), &[]),
            ("ssl.workspace = true\n", shared("ssl = { package = \"openssl-sys\", version = \"0.9\" }"), &[]),
            ("other.workspace = true\n", shared("other = { package = \"serde\", version = \"1\" }"), &[]),
            (
                "rand.workspace = true\n",
                shared("rand = \"0.8\"\n[workspace.metadata.cargo-machete]\nignored = [\n\"rand\"]"),
                &[],
            ),
        ] {
            assert_eq!(candidates(BEFORE, &format!("{BEFORE}{added}"), &workspace), *expected, "{added}{workspace}");
        }
        let before = format!("{BEFORE}dice.workspace = true\n");
        let workspace = shared("dice = { package = \"rand\", version = \"0.8\" }");
        assert_eq!(candidates(&before, &format!("{BEFORE}rand = \"0.8\"\n"), &workspace), [""; 0], "another name");
    }
}
