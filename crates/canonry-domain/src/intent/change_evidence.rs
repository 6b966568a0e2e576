//! Extracts facts from the changed paths and lines of a pull request, by counting only.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use crate::PullChanges;
use crate::intent::card_answer::clean;
use crate::intent::text_evidence::first_chars;

/// The facts counted in a pull request's changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeFacts {
    /// The changed parts of the tree, those with the most files first.
    pub(crate) components: Vec<String>,
    pub(crate) files: Vec<String>,
    /// The identifiers on changed lines, the most frequent first.
    pub(crate) identifiers: Vec<String>,
    /// All counts in one sentence; empty if nothing is known.
    pub(crate) summary: String,
    pub(crate) risks: Vec<String>,
}

/// The maximum number of paths that are read; a larger change affects the whole tree.
const PATHS_LIMIT: usize = 2_000;
/// The maximum number of characters of a diff that are searched for identifiers.
const DIFF_LIMIT: usize = 100_000;
/// The maximum number of characters of a path.
const PATH_LIMIT: usize = 160;
/// The maximum number of entries of each list.
const KEPT: usize = 12;
/// The maximum number of identifiers in the summary: a sentence has room for a few.
const NAMED: usize = 6;

pub(crate) fn change_facts(changes: &PullChanges) -> ChangeFacts {
    let files: Vec<String> = changes
        .files
        .iter()
        .take(PATHS_LIMIT)
        .map(|path| clean(first_chars(path, PATH_LIMIT)))
        .filter(|path| !path.is_empty())
        .collect();
    let (added, removed) = changed_lines(&changes.diff);
    let identifiers = identifiers(&changes.diff);
    ChangeFacts {
        components: components(&files),
        summary: summary(changes, added, removed, &identifiers),
        risks: risks(&files, added, removed),
        identifiers,
        files: files.into_iter().take(KEPT).collect(),
    }
}

/// Folders that only contain other folders, in many layouts: they do not name a component.
const HOLDERS: &[&str] =
    &["src", "lib", "libs", "app", "apps", "packages", "crates", "pkg", "internal", "source", "main", "modules"];

fn components(files: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in files {
        *counts.entry(component(path)).or_default() += 1;
    }
    let mut counted: Vec<(String, usize)> = counts.into_iter().collect();
    counted.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    counted.into_iter().take(KEPT).map(|(component, _)| component).collect()
}

/// The folder of a path, up to the second level that names something. A file at the root is its own component.
fn component(path: &str) -> String {
    let Some((folder, _)) = path.trim_start_matches("./").rsplit_once('/') else {
        return path.to_owned();
    };
    let mut named = 0;
    let mut taken = Vec::new();
    for segment in folder.split('/') {
        taken.push(segment);
        named += usize::from(!HOLDERS.contains(&segment));
        if named == 2 {
            break;
        }
    }
    taken.join("/")
}

fn changed_lines(diff: &str) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    for line in diff.lines().filter(|line| !is_header(line)) {
        added += usize::from(line.starts_with('+'));
        removed += usize::from(line.starts_with('-'));
    }
    (added, removed)
}

fn is_header(line: &str) -> bool {
    line.starts_with("+++ ") || line.starts_with("--- ")
}

fn identifiers(diff: &str) -> Vec<String> {
    let mut seen: HashMap<&str, (usize, usize)> = HashMap::new();
    let changed = first_chars(diff, DIFF_LIMIT).lines().filter(|line| line.starts_with(['+', '-']) && !is_header(line));
    let found = changed.flat_map(|line| IDENTIFIER.find_iter(&line[1..])).map(|found| found.as_str());
    for (place, identifier) in found.filter(|identifier| is_telling(identifier)).enumerate() {
        seen.entry(identifier).or_insert((0, place)).0 += 1;
    }
    let mut seen: Vec<(&str, (usize, usize))> = seen.into_iter().collect();
    seen.sort_by(|one, other| other.1.0.cmp(&one.1.0).then(one.1.1.cmp(&other.1.1)));
    seen.into_iter().take(KEPT).map(|(identifier, _)| identifier.to_owned()).collect()
}

/// Whether an identifier consists of several words: `read_to_end`, `HashMap`. Single words are keywords and `self`.
fn is_telling(identifier: &str) -> bool {
    let camel =
        identifier.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    camel || identifier.trim_matches('_').contains('_')
}

fn summary(changes: &PullChanges, added: usize, removed: usize, identifiers: &[String]) -> String {
    let mut parts = Vec::new();
    match changes.files.len() {
        0 => {}
        1 => parts.push("1 file changed".to_owned()),
        files => parts.push(format!("{files} files changed")),
    }
    if added + removed > 0 {
        parts.push(format!("{added} lines added, {removed} removed"));
    }
    if !identifiers.is_empty() {
        parts.push(format!("names {}", identifiers[..identifiers.len().min(NAMED)].join(", ")));
    }
    parts.join("; ")
}

/// A change that removes more lines than this, and twice as many as it adds, is a risk.
const MANY_REMOVED: usize = 100;

fn risks(files: &[String], added: usize, removed: usize) -> Vec<String> {
    let any = |wanted: &Regex| files.iter().any(|path| wanted.is_match(path));
    let mut risks = Vec::new();
    if any(&MIGRATION) {
        risks.push("changes a database migration");
    }
    if any(&MANIFEST) {
        risks.push("changes dependencies");
    }
    if any(&PIPELINE) {
        risks.push("changes continuous integration");
    }
    if any(&CODE) && !any(&TEST) {
        risks.push("changes code without tests");
    }
    if removed > MANY_REMOVED && removed > 2 * added {
        risks.push("removes far more than it adds");
    }
    risks.into_iter().map(str::to_owned).collect()
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| pattern("[A-Za-z_][A-Za-z0-9_]{2,60}"));
static MIGRATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?:^|/)(?:migrations?|migrate)/|\.sql$"));
static MANIFEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|/)(?:Cargo\.(?:toml|lock)|package(?:-lock)?\.json|yarn\.lock|pnpm-lock\.yaml|go\.(?:mod|sum)|requirements[^/]*\.txt|pyproject\.toml|poetry\.lock|uv\.lock|Gemfile(?:\.lock)?|pom\.xml|build\.gradle(?:\.kts)?|composer\.(?:json|lock))$",
    )
});
static PIPELINE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|/)(?:\.github/(?:workflows|actions)/|\.gitlab-ci\.yml$|\.circleci/|Jenkinsfile$)"));
static TEST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:^|[/_.-])(?:tests?|specs?|testing|__tests__|fixtures|snapshots)(?:[/_.-]|$)"));
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\.(?:rs|py|js|jsx|ts|tsx|go|java|kt|rb|php|c|h|cc|cpp|hpp|cs|swift|scala|ex|exs|erl|hs|ml|clj|lua|pl|sh|vue|svelte|zig)$",
    )
});

#[cfg(test)]
mod tests {
    use super::{change_facts, component};
    use crate::PullChanges;

    fn changes(files: &[&str], diff: &str) -> PullChanges {
        PullChanges { files: files.iter().map(|path| (*path).to_owned()).collect(), diff: diff.to_owned() }
    }

    #[test]
    fn components_are_named_by_their_folders() {
        for (path, expected) in [
            ("crates/canonry-store/src/open.rs", "crates/canonry-store/src"),
            ("src/librustc/middle/ty/mod.rs", "src/librustc/middle"),
            ("activerecord/lib/active_record/base.rb", "activerecord/lib/active_record"),
            ("./docs/a.md", "docs"),
            ("README.md", "README.md"),
        ] {
            assert_eq!(component(path), expected, "{path}");
        }
        let facts = change_facts(&changes(&["b/x/1.rs", "a/x/1.rs", "b/x/2.rs"], ""));
        assert_eq!(facts.components, ["b/x", "a/x"]);
    }

    #[test]
    fn counts_and_names_make_a_summary() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-let a = read_all(x);\n+let b = readToEnd(read_all(x));\n+return b;\n";
        let facts = change_facts(&changes(&["src/x.rs"], diff));
        assert_eq!(facts.summary, "1 file changed; 2 lines added, 1 removed; names read_all, readToEnd");
        assert_eq!(facts.identifiers, ["read_all", "readToEnd"]);
        assert_eq!(change_facts(&PullChanges::default()).summary, "");
    }

    #[test]
    fn risks_are_seen_in_the_paths() {
        let risks = |files: &[&str]| change_facts(&changes(files, "")).risks.join(", ");
        assert_eq!(risks(&["src/a.rs"]), "changes code without tests");
        assert_eq!(risks(&["src/a.rs", "tests/a.rs"]), "");
        assert_eq!(risks(&["src/a_test.go", "src/a.go"]), "");
        assert_eq!(risks(&["README.md"]), "");
        assert_eq!(
            risks(&["Cargo.lock", "db/migrate/1.rb", ".github/workflows/ci.yml", "spec/a.rb"]),
            "changes a database migration, changes dependencies, changes continuous integration"
        );
        let facts = change_facts(&changes(&["a.txt"], &"-gone\n".repeat(101)));
        assert_eq!(facts.risks, ["removes far more than it adds"]);
    }

    #[test]
    fn an_enormous_change_is_bounded() {
        let huge =
            PullChanges { files: vec!["a/".repeat(5_000); 50_000], diff: "+some_name other_name\n".repeat(500_000) };
        let facts = change_facts(&huge);
        assert_eq!((facts.files.len(), facts.components.len(), facts.identifiers.len()), (12, 1, 2));
        assert!(facts.summary.starts_with("50000 files changed; 500000 lines added, 0 removed"));
    }
}
