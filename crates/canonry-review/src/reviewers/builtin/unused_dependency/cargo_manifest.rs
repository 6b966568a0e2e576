//! Reads what a `Cargo.toml` says about dependencies.

use std::collections::{BTreeMap, BTreeSet};

use super::toml_entries::{TomlEntry, TomlValue, toml_entries};

/// Larger manifests are not read: people do not write them.
const LARGEST: usize = 256 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CargoManifest {
    /// The name of the package; `None` for a workspace without one.
    pub(super) package: Option<String>,
    /// Those of `[dependencies]`, by name.
    pub(super) dependencies: BTreeMap<String, DeclaredDependency>,
    /// Those of tests, of build scripts and of single platforms.
    others: BTreeMap<String, DeclaredDependency>,
    /// Those that the crates of the workspace may refer to.
    pub(super) of_workspace: BTreeMap<String, DeclaredDependency>,
    pub(super) is_workspace: bool,
    /// Whether its workspace is not the nearest one above.
    pub(super) names_workspace: bool,
    /// Whether code of it may be outside of its folder.
    pub(super) reaches_outside: bool,
    /// The path of its build script, if it is named.
    pub(super) build_script: Option<String>,
    /// What its features switch on.
    features: Vec<String>,
    /// All texts in the tables that tools read, with `_` for `-`, such as the dependencies that cargo-machete ignores.
    metadata: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeclaredDependency {
    pub(super) name: String,
    /// The line that names it.
    pub(super) line: u32,
    /// The lines on which its statements begin.
    pub(super) lines: BTreeSet<u32>,
    pub(super) version: Option<String>,
    /// The package, if the dependency is renamed.
    pub(super) package: Option<String>,
    /// Whether the workspace says what it is.
    pub(super) is_inherited: bool,
    pub(super) has_features: bool,
    /// Whether it has a key that was not measured: it is optional, comes from git, or has another registry.
    pub(super) is_special: bool,
}

impl CargoManifest {
    /// `None` if the text cannot be read.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.len() > LARGEST {
            return None;
        }
        let mut manifest = Self::default();
        for entry in toml_entries(text)? {
            manifest.add(&entry);
        }
        Some(manifest)
    }

    fn add(&mut self, entry: &TomlEntry) {
        let keys = entry.keys();
        let texts = || entry.texts().iter().cloned();
        self.is_workspace |= keys[0] == "workspace";
        match keys[..] {
            ["package", "name"] => self.package = texts().next(),
            ["package", "build"] => {
                self.build_script = texts().next();
                self.reaches_outside |= entry.texts().iter().any(|path| path.contains(".."));
            }
            ["package", "workspace"] => self.names_workspace = true,
            ["package" | "workspace", "metadata", ..] => {
                self.metadata.extend(entry.texts().iter().map(|text| same(text)));
            }
            ["lib" | "bin" | "test" | "example" | "bench", ..] => {
                self.reaches_outside |= entry.texts().iter().any(|path| path.contains(".."));
            }
            ["features", ..] => self.features.extend(texts()),
            ["dependencies", name, ref rest @ ..] => declare(&mut self.dependencies, entry, 1, name, rest),
            ["workspace", "dependencies", name, ref rest @ ..] => {
                declare(&mut self.of_workspace, entry, 2, name, rest);
            }
            [table, name, ref rest @ ..] if is_other_table(table) => declare(&mut self.others, entry, 1, name, rest),
            ["target", _, table, name, ref rest @ ..] if table == "dependencies" || is_other_table(table) => {
                declare(&mut self.others, entry, 3, name, rest);
            }
            _ => {}
        }
    }

    /// The names and the packages of dependencies of all kinds.
    pub(super) fn names_and_packages(&self, workspace: Option<&Self>) -> (BTreeSet<String>, BTreeSet<String>) {
        let all = || self.dependencies.values().chain(self.others.values());
        let package = |one: &DeclaredDependency| {
            one.resolved(workspace).map_or_else(|| one.code_name(), |resolved| same(resolved.package()))
        };
        (all().map(DeclaredDependency::code_name).collect(), all().map(package).collect())
    }

    /// Whether a feature switches the dependency on, or one of its features.
    pub(super) fn has_feature_of(&self, name: &str) -> bool {
        self.features.iter().any(|feature| {
            let rest = feature.strip_prefix("dep:").unwrap_or(feature).strip_prefix(name);
            let rest = rest.map(|rest| rest.strip_prefix('?').unwrap_or(rest));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    pub(super) fn metadata_names(&self, name: &str) -> bool {
        self.metadata.contains(&same(name))
    }
}

impl DeclaredDependency {
    /// How code names it.
    pub(super) fn code_name(&self) -> String {
        same(&self.name)
    }

    pub(super) fn package(&self) -> &str {
        self.package.as_deref().unwrap_or(&self.name)
    }

    /// The dependency with what the workspace says about it; `None` if the workspace says nothing.
    pub(super) fn resolved(&self, workspace: Option<&CargoManifest>) -> Option<Self> {
        if !self.is_inherited {
            return Some(self.clone());
        }
        let shared = workspace?.of_workspace.get(&self.name)?;
        Some(Self {
            version: shared.version.clone(),
            package: shared.package.clone(),
            has_features: self.has_features || shared.has_features,
            is_special: self.is_special || shared.is_special,
            ..self.clone()
        })
    }
}

fn is_other_table(name: &str) -> bool {
    matches!(name, "dev-dependencies" | "dev_dependencies" | "build-dependencies" | "build_dependencies")
}

/// Cargo takes `-` and `_` for the same.
pub(super) fn same(name: &str) -> String {
    name.replace('-', "_")
}

/// Notes one key of a dependency, which is named at this place of the entry's path.
fn declare(table: &mut BTreeMap<String, DeclaredDependency>, entry: &TomlEntry, at: usize, name: &str, rest: &[&str]) {
    let line = entry.line_of_key(at);
    let new = || DeclaredDependency { name: name.to_owned(), line, ..DeclaredDependency::default() };
    let declared = table.entry(name.to_owned()).or_insert_with(new);
    declared.lines.extend([line, entry.line]);
    let bare = |expected: &str| entry.value == TomlValue::Bare(expected.to_owned());
    match (rest, &entry.value) {
        ([] | ["version"], TomlValue::Text(version)) => declared.version = Some(version.clone()),
        (["package"], TomlValue::Text(package)) => declared.package = Some(package.clone()),
        (["features"], TomlValue::Texts(features)) => declared.has_features |= !features.is_empty(),
        (["workspace"], _) if bare("true") => declared.is_inherited = true,
        (["optional"], _) if bare("false") => {}
        // With a version, a path says only where the workspace has it.
        (["default-features" | "default_features" | "public" | "path"], _) => {}
        _ => declared.is_special = true,
    }
}
