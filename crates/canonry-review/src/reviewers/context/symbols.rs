//! Finds in the repository where changed functions are called, and where called functions are defined.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::RepoPath;

use super::outline::{Definition, Outline, is_name};
use crate::reviewers::FileToRead;

/// Shorter names are in too many files to say anything.
const LEAST_NAME: usize = 4;
/// A name that so many files contain is a common word.
const COMMON: usize = 25;
/// The callers of one function that are shown: the first ones show how it is used.
const CALLERS: usize = 4;
/// The most lines of a definition that are shown.
const SHOWN_LINES: usize = 12;
/// Lines around a call.
const AROUND_CALL: usize = 2;
/// The names that are searched for, of each kind.
const MOST_NAMES: usize = 60;

/// Names that every project defines many times.
const COMMON_NAMES: [&str; 24] = [
    "main",
    "init",
    "test",
    "tests",
    "setup",
    "tearDown",
    "constructor",
    "toString",
    "equals",
    "hashCode",
    "default",
    "clone",
    "from",
    "into",
    "next",
    "close",
    "open",
    "read",
    "write",
    "self",
    "this",
    "super",
    "assert",
    "println",
];

/// Code elsewhere in the repository that has to do with a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCode {
    pub name: String,
    pub path: RepoPath,
    /// The number of the first line of the code.
    pub line: u32,
    pub code: String,
    /// The changed files because of which it is shown.
    pub because_of: BTreeSet<RepoPath>,
}

/// The names that a change is about, with the changed files that contain them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedNames {
    /// Functions and types with changed lines.
    pub(super) changed: BTreeMap<String, BTreeSet<RepoPath>>,
    /// Functions that new lines call.
    pub(super) called: BTreeMap<String, BTreeSet<RepoPath>>,
    /// How many more names there are that are not searched for.
    pub(super) left_out: usize,
}

impl ChangedNames {
    /// The names in the changed files, without those that a model is not shown: the thousands of names in a minified file
    /// would take the places of the others.
    pub(super) fn of(files: &[FileToRead<'_>], not_shown: &BTreeMap<RepoPath, &'static str>) -> Self {
        let mut names = Self::default();
        for file in files.iter().filter(|file| !not_shown.contains_key(&file.change.path)) {
            let (Some(text), path) = (file.text, &file.change.path) else { continue };
            let lines: Vec<&str> = text.lines().collect();
            let outline = Outline::of(&lines);
            let defined: BTreeSet<&str> = outline.definitions().iter().map(|one| one.name.as_str()).collect();
            let add = |to: &mut BTreeMap<String, BTreeSet<RepoPath>>, name: &str| {
                to.entry(name.to_owned()).or_default().insert(path.clone());
            };
            for (line, text) in &file.change.added {
                if let Some(one) = outline.innermost(*line).filter(|one| is_telling(&one.name)) {
                    add(&mut names.changed, &one.name);
                }
                for name in called_names(text).filter(|name| is_telling(name) && !defined.contains(name)) {
                    add(&mut names.called, name);
                }
            }
        }
        names.called.retain(|name, _| !names.changed.contains_key(name));
        let mut left_out = 0;
        for names in [&mut names.changed, &mut names.called] {
            while names.len() > MOST_NAMES {
                names.pop_last();
                left_out += 1;
            }
        }
        names.left_out = left_out;
        names
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.called.is_empty()
    }
}

/// Callers of changed functions, and definitions of called ones, in these texts.
pub(super) fn search(
    names: &ChangedNames,
    texts: &BTreeMap<RepoPath, String>,
    changed: &BTreeSet<&RepoPath>,
) -> (Vec<FoundCode>, Vec<FoundCode>) {
    let mut files_with: BTreeMap<&str, usize> = BTreeMap::new();
    let words: BTreeMap<&RepoPath, BTreeSet<&str>> = texts
        .iter()
        .map(|(path, text)| {
            let all: BTreeSet<&str> = text.split(|c| !is_name(c)).collect();
            let known = |name: &&&str| names.changed.contains_key(**name) || names.called.contains_key(**name);
            (path, all.iter().filter(known).copied().collect())
        })
        .collect();
    words.values().flatten().for_each(|name| *files_with.entry(*name).or_default() += 1);
    let is_common = |name: &str| files_with.get(name).is_some_and(|files| *files > COMMON);
    let (mut callers, mut definitions) = (Vec::new(), Vec::new());
    for (path, own) in &words {
        let text = &texts[*path];
        let wanted: Vec<&str> = own.iter().copied().filter(|name| !is_common(name)).collect();
        if wanted.is_empty() {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        let outline = Outline::of(&lines);
        for name in wanted {
            if let Some(because_of) = names.called.get(name)
                && let Some(one) = outline.definitions().iter().find(|one| one.name == name)
            {
                definitions.push(found(name, path, definition_lines(one), &lines, because_of));
            }
            // The changed files are shown themselves.
            if let Some(because_of) = names.changed.get(name).filter(|_| !changed.contains(path))
                && let Some(at) = call_of(name, &lines)
            {
                let range = at.saturating_sub(AROUND_CALL)..(at + AROUND_CALL + 1).min(lines.len());
                callers.push(found(name, path, range, &lines, because_of));
            }
        }
    }
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    callers.retain(|one: &FoundCode| {
        let count = shown.entry(one.name.clone()).or_default();
        *count += 1;
        *count <= CALLERS
    });
    (callers, definitions)
}

fn found(
    name: &str,
    path: &RepoPath,
    range: std::ops::Range<usize>,
    lines: &[&str],
    because_of: &BTreeSet<RepoPath>,
) -> FoundCode {
    FoundCode {
        name: name.to_owned(),
        path: path.clone(),
        line: u32::try_from(range.start + 1).unwrap_or(u32::MAX),
        code: lines[range].join("\n"),
        because_of: because_of.clone(),
    }
}

fn definition_lines(one: &Definition) -> std::ops::Range<usize> {
    let first = one.first as usize - 1;
    first..(one.last as usize).min(first + SHOWN_LINES)
}

/// The first line that names a function and does not define it.
fn call_of(name: &str, lines: &[&str]) -> Option<usize> {
    let outline = Outline::of(lines);
    let is_definition =
        |at: usize| outline.definitions().iter().any(|one| one.first as usize == at + 1 && one.name == name);
    lines.iter().enumerate().find_map(|(at, line)| {
        let is_import = ["use ", "import ", "from ", "#include", "require"]
            .iter()
            .any(|begin| line.trim_start().starts_with(begin));
        let is_named = line.split(|c| !is_name(c)).any(|word| word == name);
        (is_named && !is_import && !is_definition(at)).then_some(at)
    })
}

/// The names before a parenthesis.
fn called_names(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('(').filter_map(|(at, _)| {
        let before = &line[..at];
        let start = before
            .rfind(|c: char| !is_name(c))
            .map_or(0, |place| place + before[place..].chars().next().map_or(1, char::len_utf8));
        Some(&before[start..]).filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'))
    })
}

fn is_telling(name: &str) -> bool {
    name.chars().count() >= LEAST_NAME && !COMMON_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use canonry_domain::review::RepoPath;

    use super::{ChangedNames, FoundCode, search};
    use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
    use crate::reviewers::FileToRead;

    fn path(text: &str) -> RepoPath {
        RepoPath::exact(text).expect("a path")
    }

    fn change(name: &str, text: &str, added: &[u32]) -> FileChange {
        let lines: Vec<&str> = text.lines().collect();
        FileChange {
            kind: ChangeKind::Modified,
            path: path(name),
            old_path: None,
            content: ContentKind::Text,
            blob: None,
            hunks: Vec::new(),
            added: added.iter().map(|line| (*line, lines[*line as usize - 1].to_owned())).collect(),
            removed: 0,
        }
    }

    fn names(text: &str, added: &[u32]) -> ChangedNames {
        let change = change("src/pool.rs", text, added);
        ChangedNames::of(&[FileToRead { change: &change, text: Some(text), bytes: None }], &BTreeMap::new())
    }

    fn shown(found: &[FoundCode]) -> Vec<String> {
        found
            .iter()
            .map(|one| format!("{} {}:{} {}", one.name, one.path, one.line, one.code.replace('\n', "|")))
            .collect()
    }

    const POOL: &str = "fn rise(by: u8) {\n    let depth = measure(by);\n    low(depth);\n    new(by);\n}\n\nfn other() {\n    measured();\n}\n";

    #[test]
    fn names_of_a_change() {
        let names = names(POOL, &[2, 4]);
        assert_eq!(names.changed.keys().collect::<Vec<_>>(), ["rise"]);
        // `low` and `new` are too short to be found again.
        assert_eq!(names.called.keys().collect::<Vec<_>>(), ["measure"]);
        assert!(ChangedNames::of(&[], &BTreeMap::new()).is_empty());
    }

    #[test]
    fn names_beyond_the_limit_are_counted() {
        let calls: String = (0..70).map(|at| format!("call_{at}();\n")).collect();
        let names = names(&calls, &(1..=70).collect::<Vec<_>>());
        assert_eq!((names.called.len(), names.left_out), (60, 10));
    }

    #[test]
    fn a_file_that_is_not_shown_takes_no_places() {
        let calls: String = (0..70).map(|at| format!("aaaa_{at}();\n")).collect();
        let minified = change("web/app.min.js", &calls, &(1..=70).collect::<Vec<_>>());
        let own = change("src/pool.rs", POOL, &[2]);
        let files = [(&minified, calls.as_str()), (&own, POOL)].map(|(change, text)| FileToRead {
            change,
            text: Some(text),
            bytes: None,
        });
        let names = ChangedNames::of(&files, &BTreeMap::from([(path("web/app.min.js"), "generated")]));
        assert_eq!(names.called.keys().collect::<Vec<_>>(), ["measure"]);
        assert_eq!(names.left_out, 0);
    }

    #[test]
    fn callers_and_definitions_are_found_in_other_files() {
        let texts = BTreeMap::from([
            (path("src/pool.rs"), POOL.to_owned()),
            (
                path("src/measure.py"),
                "import x\n\ndef measure(by):\n    return by\n\ndef measured(): pass\n".to_owned(),
            ),
            (
                path("src/tide.rs"),
                "use pool::rise;\n\nfn tide() {\n    one();\n    pool.rise(3);\n    two();\n}\n".to_owned(),
            ),
            (path("src/word.md"), "The sunrise and risen things.\n".to_owned()),
        ]);
        let own = path("src/pool.rs");
        let (callers, definitions) = search(&names(POOL, &[2]), &texts, &BTreeSet::from([&own]));
        assert_eq!(shown(&callers), ["rise src/tide.rs:3 fn tide() {|    one();|    pool.rise(3);|    two();|}"]);
        assert_eq!(shown(&definitions), ["measure src/measure.py:3 def measure(by):|    return by"]);
        assert_eq!(definitions[0].because_of, BTreeSet::from([own]));
    }

    #[test]
    fn common_names_say_nothing() {
        let mut texts: BTreeMap<RepoPath, String> =
            (0..26).map(|at| (path(&format!("src/f{at}.rs")), "fn a() { rise(1); }\n".to_owned())).collect();
        let own = path("src/pool.rs");
        assert_eq!(search(&names(POOL, &[2]), &texts, &BTreeSet::from([&own])).0, []);
        while texts.len() > 25 {
            texts.pop_last();
        }
        // Of many callers a few are shown.
        assert_eq!(search(&names(POOL, &[2]), &texts, &BTreeSet::from([&own])).0.len(), 4);
    }
}
