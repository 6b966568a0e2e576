//! Guesses the purpose of a file from its path.

use canonry_domain::review::RepoPath;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilePlace {
    pub(super) is_test: bool,
    /// Test data, examples and documentation: their content is not real.
    pub(super) is_sample: bool,
}

const TEST_FOLDERS: [&str; 12] = [
    "test",
    "tests",
    "spec",
    "specs",
    "__tests__",
    "testing",
    "e2e",
    "cypress",
    "playwright",
    "integration-tests",
    "unittests",
    "androidtest",
];

const SAMPLE_FOLDERS: [&str; 22] = [
    "fixture",
    "fixtures",
    "__fixtures__",
    "testdata",
    "test-data",
    "test_data",
    "sample",
    "samples",
    "example",
    "examples",
    "demo",
    "demos",
    "mock",
    "mocks",
    "__mocks__",
    "__snapshots__",
    "snapshots",
    "golden",
    "goldens",
    "doc",
    "docs",
    "documentation",
];

impl FilePlace {
    pub(super) fn of(path: &RepoPath) -> Self {
        let path = path.as_str().to_lowercase();
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let within = |known: &[&str]| folders.split('/').any(|folder| known.contains(&folder));
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let named_test = stem.ends_with(".test")
            || stem.ends_with(".spec")
            || stem.ends_with(".cy")
            || stem.ends_with("_test")
            || stem.ends_with("_spec")
            || stem.starts_with("test_")
            || (matches!(extension, "java" | "kt" | "cs" | "php" | "swift")
                && (stem.ends_with("test") || stem.ends_with("tests")))
            || stem == "conftest";
        let named_sample = ["example", "sample", "template", "dist", "tmpl"]
            .iter()
            .any(|word| name.split('.').any(|part| part == *word));
        Self {
            is_test: named_test || within(&TEST_FOLDERS),
            is_sample: named_sample || within(&SAMPLE_FOLDERS) || matches!(extension, "md" | "mdx" | "rst" | "adoc"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FilePlace;
    use canonry_domain::review::RepoPath;

    #[test]
    fn places() {
        for (path, expected) in [
            ("src/app.ts", ""),
            ("src/latest/contest.ts", ""),
            ("src/app.test.ts", "test"),
            ("src/__tests__/app.ts", "test"),
            ("pkg/a_test.go", "test"),
            ("tests/fixtures/key.pem", "test sample"),
            ("docs/guide.md", "sample"),
            (".env.example", "sample"),
            ("scripts/release.js", ""),
            ("src/test/java/FooTest.java", "test"),
            ("src/Attest.java", "test"),
        ] {
            let place = FilePlace::of(&RepoPath::new(path).expect("a path"));
            let words = [(place.is_test, "test"), (place.is_sample, "sample")];
            let seen: Vec<&str> = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
            assert_eq!(seen.join(" "), expected, "{path}");
        }
    }
}
