//! Finds focused tests, which keep all other tests from running.

use std::sync::LazyLock;

use canonry_domain::review::{Category, LineRange, Severity};
use regex::Regex;

use super::reading::{BuiltinRule, ReadFile, Remark};
use super::syntax::Language;

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "focused-test", check };

/// Patterns that focus a test, matched on lines with blanked strings and comments.
static FOCUS: LazyLock<Vec<(Language, Regex)>> = LazyLock::new(|| {
    [
        // Also `it.concurrent.only.each` and `test.describe.only`; a test has a name, so a string or a table follows.
        (Language::JavaScript, r"(?:^|[^\w.$])(?:describe|context|suite|it|test|specify|bench)(?:\.\w+)*\.only(?:\.\w+)*\s*[(`]"),
        // `model.fit(x)` and a project's own function `fit` are something else.
        (Language::JavaScript, r#"(?:^|[^\w.$])(?:fdescribe|fcontext|fit|ddescribe|iit)\s*\(\s*['"`]"#),
        (Language::Ruby, r#"^\s*(?:fdescribe|fcontext|fit|fspecify|fscenario|ffeature)\s*\(?\s*['":A-Z]"#),
        (Language::Ruby, r"^\s*(?:describe|context|it|specify|scenario|feature)\b.*(?:,\s*:focus\b|\bfocus:\s*true|:focus\s*=>\s*true)"),
        (Language::Go, r#"(?:^|[^\w.])F(?:It|Describe|Context|When|Specify|Entry|DescribeTable|DescribeTableSubtree)\(\s*["`]"#),
        (Language::Swift, r#"(?:^|[^\w.])f(?:it|describe|context)\(\s*""#),
    ]
    .into_iter()
    .map(|(language, pattern)| (language, Regex::new(pattern).expect("invariant: a constant pattern")))
    .collect()
});

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().filter(|file| file.place.is_test && !file.place.is_sample).flat_map(focused).collect()
}

fn focused(file: &ReadFile<'_>) -> Vec<Remark> {
    let is_focus =
        |code: &str| FOCUS.iter().any(|(language, pattern)| file.language == Some(*language) && pattern.is_match(code));
    let found = file.added_code().filter(|(_, line)| is_focus(&line.code));
    found
        .map(|(line, _)| Remark {
            path: file.path().clone(),
            lines: LineRange::new(line, line),
            title: "A focused test keeps the others from running",
            message: "With this the other tests are skipped, and the run is green all the same. Remove the focus."
                .to_owned(),
            severity: Severity::Major,
            category: Category::Correctness,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check_table;
    use super::RULE;

    #[test]
    fn what_is_focused() {
        check_table(
            &RULE,
            &[
                ("a.test.js", "it.only('x', () => {});\n", &[1]),
                (
                    "a.test.ts",
                    "describe('a', () => {\n  test.only(`x`, f);\n  it.only.each`a`('x', f);\n});\n",
                    &[2, 3],
                ),
                ("e2e/a.ts", "test.describe.only('x', () => {});\n", &[1]),
                ("a.spec.js", "fdescribe('x', f);\n  fit(\"y\", f);\n", &[1, 2]),
                (
                    "spec/a_spec.rb",
                    "fit 'x' do\nend\nit 'y', :focus do\nend\ncontext 'z', focus: true do\nend\n",
                    &[1, 3, 5],
                ),
                ("a_test.go", "FIt(\"x\", func() {})\n", &[1]),
                // Not reported.
                ("a.test.js", "// it.only('x', f);\n", &[]),
                ("a.test.js", "const code = \"it.only('x', f)\";\n", &[]),
                ("a.test.js", "const code = `\n  it.only('x', f)\n`;\n", &[]),
                ("a.test.js", "model.fit('x'); fit(data, 3); audit('x'); benefit('y');\n", &[]),
                ("a.test.js", "myit.only('x'); options.only('y'); it.onlyIf('z');\n", &[]),
                ("src/a.js", "it.only('x', f);\n", &[]),
                ("tests/fixtures/a.test.js", "it.only('x', f);\n", &[]),
                ("spec/a_spec.rb", "model.fit 'x'\nfit = 3\nfit(data)\n", &[]),
                ("a_test.go", "f.FIt(\"x\"); NotFIt(\"y\")\n", &[]),
                ("tests/a.py", "model.fit(x)\nit.only('x')\n", &[]),
            ],
        );
    }
}
