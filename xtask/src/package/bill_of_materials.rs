//! The bill of materials of a release (CycloneDX, JSON): every crate that is compiled into the program.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::PackageFile;
use super::project::Project;

/// `lock` is Cargo.lock, which has the checksum of each crate from the registry.
pub(crate) fn bill_of_materials(project: &Project, lock: &str) -> Result<PackageFile> {
    let packages = project.metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let packages: BTreeMap<&str, &Value> = packages.iter().map(|package| (word(package, "id"), package)).collect();
    let nodes = project.metadata["resolve"]["nodes"].as_array().context("cargo metadata resolves nothing")?;
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|node| (word(node, "id"), node)).collect();
    let is_program =
        |id: &&&str| packages.get(**id).is_some_and(|one| one["name"] == "canonry" && one["source"].is_null());
    let root = *nodes.keys().find(is_program).context("cargo metadata does not resolve canonry")?;
    let mut seen = BTreeSet::from([root]);
    let mut waiting = vec![root];
    let mut dependencies = Vec::new();
    while let Some(id) = waiting.pop() {
        let needs: Vec<&str> = nodes.get(id).map(|node| compiled_dependencies(node)).unwrap_or_default();
        waiting.extend(needs.iter().filter(|need| seen.insert(*need)));
        let names: BTreeSet<String> = needs.iter().filter_map(|need| Some(purl(packages.get(need)?))).collect();
        dependencies.push((packages.get(id).map(|one| purl(one)).unwrap_or_default(), names));
    }
    dependencies.sort();
    let sums = checksums(lock);
    let components: Vec<Value> =
        seen.iter().filter(|id| **id != root).filter_map(|id| Some(component(packages.get(id)?, &sums))).collect();
    let dependencies: Vec<Value> =
        dependencies.iter().map(|(name, needs)| json!({"ref": name, "dependsOn": needs})).collect();
    let mut program = component(packages[root], &sums);
    program["type"] = json!("application");
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": program},
        "components": components,
        "dependencies": dependencies,
    });
    Ok(PackageFile { name: format!("canonry-{}.cdx.json", project.version), bytes: format!("{bill:#}\n").into_bytes() })
}

/// Dependencies of tests are not part of the program; those of build scripts are, because they can put code into it.
fn compiled_dependencies(node: &Value) -> Vec<&str> {
    let all = node["deps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_compiled =
        |one: &&Value| one["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"));
    all.iter().filter(is_compiled).map(|one| word(one, "pkg")).collect()
}

fn component(package: &Value, sums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (word(package, "name"), word(package, "version"));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // Old manifests write a slash for OR.
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ").replace("  ", " ")}]);
    }
    if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", word(package, "name"), word(package, "version"))
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]\n").skip(1);
    packages.filter_map(|one| Some(((value(one, "name")?, value(one, "version")?), value(one, "checksum")?))).collect()
}
