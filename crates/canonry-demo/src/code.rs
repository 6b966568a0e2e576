//! The code of the demo's repository brindle, before the week and after each push.

/// The files of the default branch.
pub(crate) const AT_FIRST: [(&str, &str); 5] = [
    ("README.md", "# brindle\n\nLooks at tables in the terminal: CSV, Parquet, SQLite, Excel, JSON lines.\n"),
    (EXPORT, EXPORT_BEFORE),
    (EXPORT_TESTS, EXPORT_TESTS_BEFORE),
    ("site/src/keys.ts", "export const keys = new Map([\n  [\"?\", \"help\"],\n  [\"H\", \"hide the column\"],\n]);\n"),
    (
        "site/src/search.ts",
        "export function search(pages: string[], word: string): string[] {\n  return pages.filter((page) => page.includes(word));\n}\n",
    ),
];

pub(crate) const EXPORT: &str = "crates/brindle-tui/src/export.rs";
pub(crate) const EXPORT_TESTS: &str = "crates/brindle-tui/tests/export.rs";
pub(crate) const SITE_WORKFLOW: &str = ".github/workflows/site.yml";

const EXPORT_BEFORE: &str = "\
//! Writes the rows that are shown to a file.

use std::io::{self, Write};

pub fn export(rows: &[Vec<String>], out: &mut impl Write) -> io::Result<()> {
    for row in rows {
        write!(out, \"{}\\r\\n\", row.join(\",\"))?;
    }
    Ok(())
}
";

const EXPORT_TESTS_BEFORE: &str = "\
use brindle_tui::export::export;

#[test]
fn an_empty_table_is_an_empty_file() {
    let mut out = Vec::new();
    export(&[], &mut out).expect(\"written\");
    assert!(out.is_empty());
}
";

/// The first push of the pull request about line ends: it has three findings.
pub(crate) const EXPORT_PUSHED: &str = "\
//! Writes the rows that are shown to a file.

use std::io::{self, Write};

/// How lines end in a file that we write.
fn line_end(from: Option<&str>) -> &'static str {
    let found = dbg!(from.is_some_and(|text| text.contains(\"\\r\\n\")));
    if found { \"\\r\\n\" } else { \"\\n\" }
}

pub fn export(rows: &[Vec<String>], from: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    let end = line_end(from);
    for row in rows {
        write!(out, \"{}{end}\", row.join(\",\"))?;
    }
    Ok(())
}
";

pub(crate) const EXPORT_TESTS_PUSHED: &str = "\
use brindle_tui::export::export;

#[test]
fn an_empty_table_is_an_empty_file() {
    let mut out = Vec::new();
    export(&[], None, &mut out).expect(\"written\");
    assert!(out.is_empty());
}

#[test]
#[ignore]
fn a_file_from_windows_keeps_its_line_ends() {
    let mut out = Vec::new();
    export(&[vec![\"a\".to_owned()]], Some(\"x\\r\\n\"), &mut out).expect(\"written\");
    assert_eq!(out, b\"a\\r\\n\");
}
";

/// An own action at its branch: the team wants it so.
pub(crate) const SITE_PUSHED: &str = "\
on: push
jobs:
  site:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@8f4b7f84864484a7bf31766abe9204da3cbe65b3
      - uses: brindle-tables/site-tools@main
";

/// The second push: the debugging code is gone, and the action has moved down.
pub(crate) const EXPORT_FIXED: &str = "\
//! Writes the rows that are shown to a file.

use std::io::{self, Write};

/// How lines end in a file that we write: as in the file that they come from.
fn line_end(from: Option<&str>) -> &'static str {
    if from.is_some_and(|text| text.contains(\"\\r\\n\")) { \"\\r\\n\" } else { \"\\n\" }
}

pub fn export(rows: &[Vec<String>], from: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    let end = line_end(from);
    for row in rows {
        write!(out, \"{}{end}\", row.join(\",\"))?;
    }
    Ok(())
}
";

pub(crate) const SITE_MOVED: &str = "\
on: push
permissions: {contents: read}
concurrency: site
jobs:
  site:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@8f4b7f84864484a7bf31766abe9204da3cbe65b3
      - uses: brindle-tables/site-tools@main
";

/// The third push touches no finding.
pub(crate) const CHANGELOG: &str = "## Unreleased\n\n- `:export` writes the line ends of the file that is open.\n";

/// A page of the site with a forgotten storage bucket key in it. The key is put together here so that
/// secret scanners do not report this file.
pub(crate) fn keys_with_secret() -> String {
    format!(
        "export const keys = new Map([\n  [\"?\", \"help\"],\n  [\"H\", \"hide the column\"],\n]);\n\n\
         const bucket = {{ key: \"AKIA{}\" }};\n\n\
         export function pressed(key: string): string {{\n  return keys.get(key) ?? bucket.key;\n}}\n",
        "4Q7TZC2M5XWLR8NB"
    )
}

pub(crate) const KEYS_WITHOUT_SECRET: &str = "\
export const keys = new Map([
  [\"?\", \"help\"],
  [\"H\", \"hide the column\"],
]);

export function pressed(key: string): string {
  return keys.get(key) ?? \"\";
}
";

pub(crate) const SEARCH_WITHOUT_CASE: &str = "\
export function search(pages: string[], word: string): string[] {
  return pages.filter((page) => page.toLowerCase().includes(word.toLowerCase()));
}
";

pub(crate) const THEME: &str = "\
export function theme(): \"dark\" | \"light\" {
  const dark = matchMedia(\"(prefers-color-scheme: dark)\").matches;
  return dark ? \"dark\" : \"light\";
}
";

/// A workflow that uses the team's own action at its branch.
pub(crate) const CHECKS_SITE: &str = "\
on: pull_request
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@8f4b7f84864484a7bf31766abe9204da3cbe65b3
      - uses: brindle-tables/site-tools@main
";
