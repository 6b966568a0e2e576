//! Decides which files are read first if not all can be read.

use canonry_domain::review::RepoPath;

/// How much harm a defect in a file can do, most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileRisk {
    /// Permissions, secrets, databases, builds and deployments.
    Security,
    Code,
    Test,
    Documentation,
    /// Written by a program: lock files, bundles, snapshots.
    Generated,
}

/// Words of a path that hint at something to protect. Whole words only: `author` is not `auth`.
const GUARDED: [&str; 44] = [
    "acl",
    "admin",
    "apikey",
    "auth",
    "authentication",
    "authenticator",
    "authorization",
    "authorize",
    "authz",
    "cert",
    "certs",
    "cors",
    "credential",
    "credentials",
    "crypto",
    "cryptography",
    "csrf",
    "encryption",
    "iam",
    "jwt",
    "login",
    "middleware",
    "migration",
    "migrations",
    "oauth",
    "password",
    "passwords",
    "payment",
    "payments",
    "permission",
    "permissions",
    "policy",
    "query",
    "sandbox",
    "saml",
    "secret",
    "secrets",
    "security",
    "session",
    "sessions",
    "sql",
    "sso",
    "token",
    "upload",
];

const LOCK_FILES: [&str; 14] = [
    "cargo.lock",
    "composer.lock",
    "flake.lock",
    "gemfile.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pipfile.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "yarn.lock",
];

const GENERATED_FOLDERS: [&str; 9] = [
    "dist",
    "generated",
    "node_modules",
    "third_party",
    "vendor",
    "vendored",
    "__generated__",
    "__snapshots__",
    "snapshots",
];

const TEST_FOLDERS: [&str; 12] = [
    "__tests__",
    "cypress",
    "e2e",
    "fixtures",
    "mocks",
    "playwright",
    "spec",
    "specs",
    "test",
    "testdata",
    "testing",
    "tests",
];

impl FileRisk {
    pub(super) fn of(path: &RepoPath) -> Self {
        let lower = path.as_str().to_lowercase();
        let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let within = |known: &[&str]| folders.split('/').any(|folder| known.contains(&folder));
        let is_generated = LOCK_FILES.contains(&name)
            || within(&GENERATED_FOLDERS)
            || matches!(extension, "lock" | "map" | "snap" | "svg")
            || [".min", ".pb", "_pb2", ".g", ".generated", "_generated"].iter().any(|end| stem.ends_with(end));
        if is_generated {
            return Self::Generated;
        }
        let is_test = within(&TEST_FOLDERS)
            || [".test", ".spec", "_test", "_spec"].iter().any(|end| stem.ends_with(end))
            || stem.starts_with("test_");
        if is_test {
            return Self::Test;
        }
        let is_text = matches!(extension, "adoc" | "md" | "mdx" | "rst" | "txt")
            || within(&["doc", "docs", "documentation"])
            || ["authors", "changelog", "copying", "license", "readme"].contains(&stem);
        if is_text {
            return Self::Documentation;
        }
        let builds =
            name == "dockerfile" || folders.starts_with(".github") || matches!(extension, "tf" | "sql" | "env");
        let names = path.as_str().split(|character: char| !character.is_alphanumeric());
        let is_guarded = names.flat_map(humps).any(|word| GUARDED.contains(&word.to_lowercase().as_str()));
        if builds || is_guarded { Self::Security } else { Self::Code }
    }
}

/// What writes a file that nobody writes by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenBy {
    /// A lock file.
    PackageManager,
    /// Whatever fills the folder in these first bytes of the path.
    Folder(usize),
    /// A program, as the file's name says.
    Generator,
}

/// What writes a file, by its path alone: its content is the change's own.
pub(crate) fn written_by(path: &RepoPath) -> Option<WrittenBy> {
    let name = path.as_str().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    if LOCK_FILES.contains(&name.as_str()) {
        return Some(WrittenBy::PackageManager);
    }
    let mut end = 0;
    for (at, folder) in path.as_str().split('/').enumerate() {
        end += folder.len() + usize::from(at > 0);
        let is_known = GENERATED_FOLDERS.contains(&folder.to_ascii_lowercase().as_str());
        if is_known && end < path.as_str().len() {
            return Some(WrittenBy::Folder(end));
        }
    }
    let is_generated = matches!(extension, "map" | "snap")
        || [".min", ".pb", "_pb2", ".g", ".generated", "_generated"].iter().any(|end| stem.ends_with(end));
    is_generated.then_some(WrittenBy::Generator)
}

fn humps(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut was_lower = false;
    for (at, character) in name.char_indices() {
        if character.is_uppercase() && was_lower {
            words.push(&name[start..at]);
            start = at;
        }
        was_lower = character.is_lowercase() || character.is_numeric();
    }
    words.push(&name[start..]);
    words
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::RepoPath;

    use super::{FileRisk, WrittenBy, written_by};

    #[test]
    fn files_that_programs_write() {
        for (path, expected) in [
            ("web/package-lock.json", Some(WrittenBy::PackageManager)),
            ("go/vendor/a/b.go", Some(WrittenBy::Folder(9))),
            ("Vendor/a.go", Some(WrittenBy::Folder(6))),
            ("src/vendor", None),
            ("web/app.min.js", Some(WrittenBy::Generator)),
            ("api/pool_pb2.py", Some(WrittenBy::Generator)),
            ("logo.svg", None),
            ("src/auth.rs", None),
        ] {
            assert_eq!(written_by(&RepoPath::new(path).expect("a path")), expected, "{path}");
        }
    }

    #[test]
    fn risks_by_path() {
        for (path, expected) in [
            ("src/auth/check.rs", FileRisk::Security),
            ("web/UserSession.ts", FileRisk::Security),
            (".github/workflows/ci.yml", FileRisk::Security),
            ("db/migrations/0001_users.py", FileRisk::Security),
            ("Dockerfile", FileRisk::Security),
            ("src/author.rs", FileRisk::Code),
            ("src/tokenizer.rs", FileRisk::Code),
            ("src/contest.rs", FileRisk::Code),
            ("tests/auth.rs", FileRisk::Test),
            ("pkg/login_test.go", FileRisk::Test),
            ("README.md", FileRisk::Documentation),
            ("docs/security.html", FileRisk::Documentation),
            ("LICENSE", FileRisk::Documentation),
            ("Cargo.lock", FileRisk::Generated),
            ("web/app.min.js", FileRisk::Generated),
            ("vendor/auth/a.go", FileRisk::Generated),
        ] {
            assert_eq!(FileRisk::of(&RepoPath::new(path).expect("a path")), expected, "{path}");
        }
        assert!(FileRisk::Security < FileRisk::Code && FileRisk::Test < FileRisk::Documentation);
    }
}
