//! `cargo xtask layout`: prints the size of the code and checks its layout rules; `check` enforces them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// A folder with more modules than this is hard to search.
const MOST_SIBLINGS: usize = 24;

/// Names that mean nothing outside their file. A type is a noun.
const RIDDLES: [&str; 24] = [
    "About", "Asked", "Ended", "Fate", "Found", "Heard", "Held", "Judged", "Kept", "Known", "Look", "Made", "Named",
    "Said", "Seen", "Shown", "Standing", "Taken", "Then", "Told", "Unheard", "Wanted", "When", "Written",
];

/// Each command has its own type of this name.
const IN_EVERY_COMMAND: [&str; 1] = ["Args"];

/// The Rust files of the workspace, read once.
struct Sources {
    files: Vec<(PathBuf, String)>,
}

pub(crate) fn report() -> Result<()> {
    let sources = Sources::read()?;
    let mut lines = Lines::default();
    println!("| crate | all | code | docs and comments | tests, testkit and examples |\n|---|--:|--:|--:|--:|");
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    for (path, text) in &sources.files {
        crates.entry(crate_of(path)).or_default().count(path, text);
    }
    for (name, counted) in &crates {
        println!("{}", counted.row(name));
        lines.add(counted);
    }
    println!("{}", lines.row("all"));
    for problem in sources.problems() {
        println!("{problem}");
    }
    Ok(())
}

pub(crate) fn check() -> Result<()> {
    let problems = Sources::read()?.problems();
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
}

impl Sources {
    fn read() -> Result<Self> {
        let mut files = Vec::new();
        for root in ["crates", "xtask"] {
            collect(Path::new(root), &mut files)?;
        }
        files.sort();
        Ok(Self { files })
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (folder, count) in self.siblings() {
            if count > MOST_SIBLINGS {
                problems.push(format!("{} has {count} modules; sort them into folders", folder.display()));
            }
        }
        let mut types: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
        for (path, text) in self.files.iter().filter(|(path, _)| !is_test(path)) {
            for (name, is_shared) in type_names(text) {
                if is_shared && !IN_EVERY_COMMAND.contains(&name) {
                    types.entry(name).or_default().push(path);
                }
                if RIDDLES.contains(&name) {
                    problems.push(format!("{}: `{name}` is no noun that a stranger would search for", path.display()));
                }
            }
        }
        for (name, places) in types.into_iter().filter(|(_, places)| places.len() > 1) {
            let places: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
            problems.push(format!("`{name}` is the name of {} types: {}", places.len(), places.join(", ")));
        }
        problems.extend(self.unknown_files(include_str!("../../ARCHITECTURE.md")));
        problems
    }

    /// The files that ARCHITECTURE.md names and no crate has.
    fn unknown_files(&self, text: &str) -> Vec<String> {
        let named = text.split('`').filter(|word| word.ends_with(".rs"));
        let unknown = named.filter(|word| !self.files.iter().any(|(path, _)| path.ends_with(word)));
        unknown.map(|word| format!("ARCHITECTURE.md names {word}, which is in no crate")).collect()
    }

    /// The number of modules in each folder of product code; a file and a folder of the same name are one module.
    fn siblings(&self) -> BTreeMap<PathBuf, usize> {
        let mut modules: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        for (path, _) in self.files.iter().filter(|(path, _)| !is_test(path)) {
            let mut module = path.with_extension("");
            while let Some(folder) = module.parent().filter(|folder| !folder.ends_with("src")).map(Path::to_path_buf) {
                modules.entry(folder.clone()).or_default().push(module);
                module = folder;
            }
            let Some(folder) = module.parent() else { continue };
            modules.entry(folder.to_path_buf()).or_default().push(module.clone());
        }
        let distinct = |mut names: Vec<PathBuf>| {
            names.retain(|name| !name.ends_with("mod") && !name.ends_with("lib") && !name.ends_with("main"));
            names.sort();
            names.dedup();
            names.len()
        };
        modules.into_iter().map(|(folder, names)| (folder, distinct(names))).collect()
    }
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, String)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            files.push((path, text));
        }
    }
    Ok(())
}

fn crate_of(path: &Path) -> String {
    let mut parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    let first = parts.next().unwrap_or_default();
    if first == "crates" { parts.next().unwrap_or_default() } else { first }
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "examples" || part == "tests.rs")
        || path.starts_with("crates/canonry-testkit")
        || path.starts_with("crates/canonry-testworld")
}

/// The types that a file defines outside of its tests, and whether other files can use them.
fn type_names(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let code = text.split_once("\n#[cfg(test)]\nmod ").map_or(text, |(code, _)| code);
    code.lines().filter_map(|line| {
        let is_shared = line.starts_with("pub");
        let words: Vec<&str> = line.split_whitespace().collect();
        let kind = words.iter().position(|word| ["struct", "enum", "trait", "type", "union"].contains(word))?;
        let is_definition = !line.starts_with([' ', '/']) && kind <= usize::from(is_shared);
        let name = words.get(kind + 1)?.split(|letter: char| !letter.is_alphanumeric()).next()?;
        is_definition.then_some((name, is_shared))
    })
}

#[derive(Default)]
struct Lines {
    all: usize,
    code: usize,
    comments: usize,
    tests: usize,
}

impl Lines {
    fn count(&mut self, path: &Path, text: &str) {
        let mut in_tests = is_test(path);
        let mut previous = "";
        for line in text.lines() {
            in_tests |= previous == "#[cfg(test)]" && line.starts_with("mod ") && line.ends_with('{');
            let trimmed = line.trim_start();
            self.all += 1;
            match () {
                () if in_tests => self.tests += 1,
                () if trimmed.starts_with("//") => self.comments += 1,
                () if !trimmed.is_empty() => self.code += 1,
                () => {}
            }
            previous = line;
        }
    }

    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
    }

    fn row(&self, name: &str) -> String {
        format!("| {name} | {} | {} | {} | {} |", self.all, self.code, self.comments, self.tests)
    }
}

#[cfg(test)]
mod tests {
    use super::type_names;

    #[test]
    fn types_are_found_by_their_definition_outside_of_tests() {
        let text = "pub(crate) struct Shared<'a> {\n    enum Inner {}\n/// struct InWords\nstruct Private;\npub use a::type;\n\
                    #[cfg(test)]\nmod tests {\npub struct InTests;\n";
        let names: Vec<_> = type_names(text).collect();
        assert_eq!(names, [("Shared", true), ("Private", false)]);
    }
}
