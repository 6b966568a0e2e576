//! Finds committed files that a program generated.

use std::collections::BTreeMap;

use canonry_domain::review::{Category, Severity};

use super::reading::{BuiltinRule, ReadFile, Remark};
use crate::change::file_change::{ChangeKind, ContentKind};

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "committed-output", check };

/// Folders that package managers, compilers and tools fill, and what they contain. `dist`, `build`, `out` and `vendor`
/// are not listed: they are often committed on purpose.
const FOLDERS: [(&str, &str); 12] = [
    ("node_modules", "installed packages"),
    ("bower_components", "installed packages"),
    (".venv", "an installed Python"),
    ("site-packages", "installed packages"),
    ("__pycache__", "compiled Python"),
    (".pytest_cache", "a cache of the tests"),
    (".mypy_cache", "a cache of the type checker"),
    (".gradle", "a cache of the build"),
    (".terraform", "downloaded providers"),
    (".next", "built pages"),
    (".nyc_output", "measurements of the tests"),
    (".idea", "settings of one person's editor"),
];

/// File name endings of files that nobody writes by hand.
const ENDS: [(&str, &str); 8] = [
    (".pyc", "compiled Python"),
    (".class", "compiled Java"),
    (".o", "compiled code"),
    (".obj", "compiled code"),
    (".swp", "a swap file of an editor"),
    (".ds_store", "a file of the Finder"),
    ("thumbs.db", "a file of the Explorer"),
    (".tfstate", "the state of Terraform, which holds secrets in plain text"),
];

/// One remark for each folder, or for the generated files in each folder: three thousand files are one mistake.
fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    let mut found: BTreeMap<(String, &str), (&ReadFile<'_>, usize)> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.change.kind == ChangeKind::Added && !file.place.is_sample && !file.place.is_test)
    {
        if let Some(key) = output(file) {
            found.entry(key).or_insert((file, 0)).1 += 1;
        }
    }
    let remark = |((folder, what), (file, count)): ((String, &str), (&ReadFile<'_>, usize))| Remark {
        path: file.path().clone(),
        lines: None,
        title: "Files that a program makes are committed",
        message: match count {
            1 => format!("This is {what}. Take it out of the commit, and name it in .gitignore."),
            count => format!(
                "{count} files in {folder} are {what}. Take them out of the commit, and name the folder in .gitignore."
            ),
        },
        severity: Severity::Medium,
        category: Category::Style,
    };
    found.into_iter().map(remark).collect()
}

fn output(file: &ReadFile<'_>) -> Option<(String, &'static str)> {
    let path = file.path().as_str();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut seen = String::new();
    for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
        seen.push_str(folder);
        // A shared editor configuration is committed on purpose; the state of one person's editor is not.
        if let Some((known, what)) = FOLDERS.iter().find(|(known, _)| *known == folder)
            && (*known != ".idea" || matches!(name, "workspace.xml" | "tasks.xml" | "usage.statistics.xml"))
        {
            return Some((seen, what));
        }
        seen.push('/');
    }
    let name = name.to_lowercase();
    // A 3D model also has the ending `.obj`, and is text.
    let is_model = |end: &str| end == ".obj" && file.change.content != ContentKind::Binary;
    let (_, what) = ENDS.iter().find(|(end, _)| {
        name.ends_with(end) && (name.len() > end.len() || *end == ".ds_store" || *end == "thumbs.db") && !is_model(end)
    })?;
    Some((if folders.is_empty() { ".".to_owned() } else { folders.to_owned() }, what))
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::{check_table, new_file};
    use super::super::reading::{FileToRead, ReadFile};
    use super::RULE;
    use crate::change::file_change::{ChangeKind, ContentKind};

    #[test]
    fn what_a_program_made() {
        check_table(
            &RULE,
            &[
                ("node_modules/left-pad/index.js", "x", &[0]),
                ("web/node_modules/a/package.json", "x", &[0]),
                ("app/__pycache__/a.cpython-312.pyc", "x", &[0]),
                ("build/Main.class", "x", &[0]),
                (".DS_Store", "x", &[0]),
                (".idea/workspace.xml", "x", &[0]),
                ("infra/terraform.tfstate", "x", &[0]),
                // Not reported.
                ("dist/index.js", "x", &[]),
                ("vendor/lib/a.go", "x", &[]),
                (".idea/codeStyles/Project.xml", "x", &[]),
                ("tests/fixtures/node_modules/a/index.js", "x", &[]),
                ("src/first.class.ts", "x", &[]),
                ("src/node_modules.ts", "x", &[]),
                ("assets/video.o.txt", "x", &[]),
                ("assets/teapot.obj", "v 0.1 0.2 0.3\n", &[]),
            ],
        );
        let mut compiled = new_file("src/main.obj", "");
        compiled.content = ContentKind::Binary;
        let found = (RULE.check)(&[ReadFile::of(FileToRead { change: &compiled, text: None, bytes: None })]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_folder_is_one_mistake() {
        let changes: Vec<_> = (0..3_000).map(|at| new_file(&format!("node_modules/p{at}/index.js"), "x")).collect();
        let files: Vec<_> =
            changes.iter().map(|change| ReadFile::of(FileToRead { change, text: None, bytes: None })).collect();
        let found = (RULE.check)(&files);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].message.starts_with("3000 files in node_modules are installed packages."),
            "{}",
            found[0].message
        );
        let mut edited = new_file("node_modules/p/index.js", "x");
        edited.kind = ChangeKind::Modified;
        assert_eq!((RULE.check)(&[ReadFile::of(FileToRead { change: &edited, text: None, bytes: None })]), []);
    }
}
