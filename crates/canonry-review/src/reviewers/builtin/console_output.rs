//! Finds console output in files that print nothing else.

use std::sync::LazyLock;

use canonry_domain::review::{Category, LineRange, Severity};
use regex::Regex;

use super::reading::{BuiltinRule, ReadFile, Remark};
use super::syntax::Language;

/// A rule separate from the debug leftovers: rejecting this rule must not silence the other.
pub(super) const RULE: BuiltinRule = BuiltinRule { id: "console-output", check };

static CONSOLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w.$])console\.(?:log|debug|trace|dir)\s*\(").expect("invariant: a constant pattern")
});

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().filter(|file| !file.place.is_sample && prints_stand_out(file)).flat_map(prints).collect()
}

fn prints(file: &ReadFile<'_>) -> Vec<Remark> {
    let printing = file.added_code().filter(|(number, line)| CONSOLE.is_match(&line.code) && !is_meant(file, *number));
    let remark = |number: u32| Remark {
        path: file.path().clone(),
        lines: LineRange::new(number, number),
        title: "Something is printed to the console",
        message: "Nothing else in this file prints to the console. Remove it, or use the logger.".to_owned(),
        severity: Severity::Minor,
        category: Category::Style,
    };
    printing.map(|(number, _)| remark(number)).collect()
}

/// Whether a print in this file stands out: the file is no script and no test, and no other line prints.
fn prints_stand_out(file: &ReadFile<'_>) -> bool {
    file.language == Some(Language::JavaScript)
        && !file.place.is_script
        && !file.place.is_test
        && !file.lines.first().is_some_and(|line| line.starts_with("#!"))
        && !file.text.is_some_and(|text| text.contains("process.argv") || text.contains("process.stdout") || text.contains("no-console"))
        && !(1_u32..).zip(&file.code).any(|(number, line)| !file.added.contains(&number) && line.code.contains("console."))
        // A new file that prints many times does so on purpose.
        && file.code.iter().filter(|line| CONSOLE.is_match(&line.code)).count() <= 3
}

/// Whether the print is intended: a comment explains it, a debug flag guards it, or it reports that a server has
/// started.
fn is_meant(file: &ReadFile<'_>, line: u32) -> bool {
    let guarded = |at: u32| {
        file.code_at(at).is_some_and(|line| {
            let code = line.code.to_lowercase();
            code.contains("debug") && !code.contains("console.debug")
                || code.contains("verbose")
                || code.contains("__dev__")
                || code.contains("node_env")
                || code.contains(".listen(")
        })
    };
    file.is_explained(line) || guarded(line) || (line > 1 && guarded(line - 1))
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::{check_table, new_file};
    use super::super::reading::{FileToRead, ReadFile};
    use super::RULE;

    #[test]
    fn printing_is_told_only_where_it_stands_out() {
        check_table(
            &RULE,
            &[
                ("src/a.tsx", "const a = 1;\nconsole.log(a);\n", &[2]),
                ("src/a.js", "console.debug(x);\n", &[1]),
                ("src/a.js", "f();\nlisten(x); console.log(x);\n", &[2]),
                ("scripts/a.js", "console.log(x);\n", &[]),
                ("bin/run.js", "console.log(x);\n", &[]),
                ("src/a.js", "#!/usr/bin/env node\nconsole.log(x);\n", &[]),
                ("src/a.js", "const [, , name] = process.argv;\nconsole.log(name);\n", &[]),
                ("src/a.js", "console.log(1);\nconsole.log(2);\nconsole.log(3);\nconsole.log(4);\n", &[]),
                ("src/a.js", "/* eslint-disable no-console */\nconsole.log(1);\n", &[]),
                ("src/a.js", "// tell the user where it listens\nconsole.log(url);\n", &[]),
                ("src/a.js", "if (options.debug) {\n  console.log(x);\n}\n", &[]),
                ("src/a.js", "app.listen(3000, () => console.log(`on ${port}`));\n", &[]),
                ("src/a.js", "server.listen(port, () => {\n  console.log('ready');\n});\n", &[]),
                ("src/a.js", "console.error(x); console.warn(y); logger.console.log(z);\n", &[]),
                ("src/a.test.js", "console.log(x);\n", &[]),
                ("vite.config.ts", "console.log(x);\n", &[]),
                ("README.md", "console.log(1)\n", &[]),
            ],
        );
        let text = "console.log('old');\nconsole.log('new');\n";
        let mut change = new_file("src/a.js", text);
        change.added.remove(0);
        let file = FileToRead { change: &change, text: Some(text), bytes: None };
        assert_eq!((RULE.check)(&[ReadFile::of(file)]), [], "printing is what this file does");
    }
}
