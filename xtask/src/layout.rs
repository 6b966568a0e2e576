//! `cargo xtask layout`: prints the size of the code and checks its layout rules; `check` enforces them.

use std::collections::{BTreeMap, BTreeSet};
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

/// The crates that only tests use.
const FOR_TESTS: [&str; 2] = ["canonry-testkit", "canonry-testworld"];

/// The Rust files of the workspace, read once.
struct Sources {
    files: Vec<(PathBuf, String)>,
    /// Files and folders of modules that exist only in tests, whatever their names.
    test_modules: BTreeSet<PathBuf>,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilePlace {
    Code,
    /// A module beside the code that exists only in tests.
    TestModule,
    TestsOrExamples,
}

pub(crate) fn report() -> Result<()> {
    let sources = Sources::read()?;
    let mut crates: BTreeMap<String, LineCounts> = BTreeMap::new();
    for (path, text) in &sources.files {
        let counts = LineCounts::of(text, sources.place_of(path));
        crates.entry(crate_of(path)).or_default().add(&counts);
    }
    println!("{}", LineCounts::HEADING);
    let (mut product, mut all) = (LineCounts::default(), LineCounts::default());
    for (name, counts) in &crates {
        println!("{}", counts.row(name));
        all.add(counts);
        if !FOR_TESTS.contains(&name.as_str()) {
            product.add(counts);
        }
    }
    println!("{}", product.row(&format!("all without {}", FOR_TESTS.join(" and "))));
    println!("{}", all.row("all"));
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
        let test_modules = files.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
        Ok(Self { files, test_modules })
    }

    fn place_of(&self, path: &Path) -> FilePlace {
        let in_folder = path.iter().any(|part| part == "tests" || part == "examples" || part == "benches");
        match in_folder && !path.iter().any(|part| part == "src") {
            true => FilePlace::TestsOrExamples,
            false if path.ancestors().any(|path| self.test_modules.contains(&path.with_extension(""))) => {
                FilePlace::TestModule
            }
            false => FilePlace::Code,
        }
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

/// The modules that a file declares for tests only, as paths without the ending.
fn test_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(path);
    let is_root = ["mod", "lib", "main"].iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name));
    let folder = if is_root { folder.to_path_buf() } else { path.with_extension("") };
    let lines: Vec<&str> = text.lines().collect();
    let declared = lines.windows(2).filter(|pair| pair[0] == TEST_ONLY).filter_map(|pair| {
        let (_, name) = pair[1].strip_suffix(';')?.rsplit_once("mod ")?;
        Some(folder.join(name))
    });
    declared.collect()
}

const TEST_ONLY: &str = "#[cfg(test)]";

/// The lines of files; each is counted once.
#[derive(Debug, Default, PartialEq, Eq)]
struct LineCounts {
    code: usize,
    comments: usize,
    blank: usize,
    /// Test modules in files of code, and beside them.
    inner_tests: usize,
    /// The folders of tests and examples.
    outer_tests: usize,
}

impl LineCounts {
    const HEADING: &str =
        "| crate | all | code | docs and comments | blank | tests beside the code | tests and examples |
|---|--:|--:|--:|--:|--:|--:|";

    fn of(text: &str, place: FilePlace) -> Self {
        let mut counts = Self::default();
        let lines = text.lines().count();
        match place {
            FilePlace::TestsOrExamples => counts.outer_tests = lines,
            FilePlace::TestModule => counts.inner_tests = lines,
            FilePlace::Code => counts.count_code(text),
        }
        counts
    }

    fn count_code(&mut self, text: &str) {
        let mut previous = "";
        let (mut in_tests, mut to_the_end) = (false, false);
        for line in text.lines() {
            in_tests |= previous == TEST_ONLY && line.contains("mod ") && line.ends_with('{');
            // Tests are the last module of a file, and their texts may contain the brace that ends another module.
            to_the_end |= in_tests && line == "mod tests {";
            let trimmed = line.trim_start();
            match () {
                () if in_tests => self.inner_tests += 1,
                () if trimmed.is_empty() => self.blank += 1,
                () if trimmed.starts_with("//") => self.comments += 1,
                () => self.code += 1,
            }
            in_tests &= to_the_end || line != "}";
            previous = line;
        }
    }

    fn add(&mut self, other: &Self) {
        self.code += other.code;
        self.comments += other.comments;
        self.blank += other.blank;
        self.inner_tests += other.inner_tests;
        self.outer_tests += other.outer_tests;
    }

    fn row(&self, name: &str) -> String {
        let Self { code, comments, blank, inner_tests, outer_tests } = self;
        let all = code + comments + blank + inner_tests + outer_tests;
        format!("| {name} | {all} | {code} | {comments} | {blank} | {inner_tests} | {outer_tests} |")
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{FilePlace, LineCounts, Sources, test_modules, type_names};

    #[test]
    fn types_are_found_by_their_definition_outside_of_tests() {
        let text = "pub(crate) struct Shared<'a> {\n    enum Inner {}\n/// struct InWords\nstruct Private;\npub use a::type;\n\
                    #[cfg(test)]\nmod tests {\npub struct InTests;\n";
        let names: Vec<_> = type_names(text).collect();
        assert_eq!(names, [("Shared", true), ("Private", false)]);
    }
    #[test]
    fn every_line_is_counted_once_by_what_it_is_for() {
        let text = "//! Doc.\n\nfn code() {}\n#[cfg(test)]\npub(crate) mod samples {\n    fn a() {}\n}\n\n// Why.\n\
                    fn more() {}\n#[cfg(test)]\nmod tests {\n\n    // In tests.\n}\n";
        let code = LineCounts::of(text, FilePlace::Code);
        assert_eq!(code, LineCounts { code: 4, comments: 2, blank: 2, inner_tests: 7, outer_tests: 0 });
        assert_eq!(code.row("a"), "| a | 15 | 4 | 2 | 2 | 7 | 0 |");
        assert_eq!(LineCounts::of(text, FilePlace::TestsOrExamples).outer_tests, 15);
    }

    #[test]
    fn a_module_for_tests_counts_as_tests_under_any_name() {
        let text = "#[cfg(test)]\nmod sample;\nmod code;\n#[cfg(test)]\npub(crate) mod tests;\n";
        let own = Path::new("crates/a/src/output/mod.rs");
        let declared = test_modules(own, text);
        assert_eq!(declared, ["crates/a/src/output/sample", "crates/a/src/output/tests"].map(PathBuf::from));
        assert_eq!(test_modules(Path::new("crates/a/src/run.rs"), text)[0], Path::new("crates/a/src/run/sample"));
        let sources = Sources { files: Vec::new(), test_modules: declared.into_iter().collect() };
        for (path, place) in [
            ("crates/a/src/output/sample.rs", FilePlace::TestModule),
            ("crates/a/src/output/sample/more.rs", FilePlace::TestModule),
            ("crates/a/src/output/code.rs", FilePlace::Code),
            ("crates/a/tests/it/main.rs", FilePlace::TestsOrExamples),
            ("crates/canonry-testkit/src/lib.rs", FilePlace::Code),
        ] {
            assert_eq!(sources.place_of(Path::new(path)), place, "{path}");
        }
    }
}
