//! Finds tests that were disabled without a reason.

use std::sync::LazyLock;

use canonry_domain::review::{Category, LineRange, Severity};
use regex::Regex;

use super::reading::{BuiltinRule, ReadFile, Remark};
use super::syntax::Language;

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "disabled-test", check };

/// Patterns that disable a test and have no place for a reason, matched on lines with blanked strings and comments.
/// `test.skip(condition)` is a decision at run time: only a name in a string makes it a disabled test.
static DISABLED: LazyLock<Vec<(Language, Regex)>> = LazyLock::new(|| {
    [
        (
            Language::JavaScript,
            r#"(?:^|[^\w.$])(?:describe|context|suite|it|test|specify)(?:\.\w+)*\.skip(?:\.\w+)*\s*(?:\(\s*['"`]|`)"#,
        ),
        (Language::JavaScript, r#"(?:^|[^\w.$])(?:xdescribe|xcontext|xit|xtest|xspecify)\s*\(\s*['"`]"#),
        (Language::Rust, r"^\s*#\[ignore\]"),
        (Language::Python, r"^\s*@(?:pytest\.mark\.skip|unittest\.skip|skip)\s*(?:\(\s*\))?\s*$"),
        (Language::Ruby, r#"^\s*(?:xdescribe|xcontext|xit|xspecify|xscenario)\s*\(?\s*['"]"#),
        (Language::Java, r"^\s*@(?:Disabled|Ignore)\s*(?:\(\s*\))?\s*$"),
        (Language::Kotlin, r"^\s*@(?:Disabled|Ignore)\s*(?:\(\s*\))?\s*$"),
        (Language::CSharp, r"^\s*\[Ignore\]"),
        (Language::Go, r#"(?:^|[^\w.])(?:XIt|XDescribe|XContext|PIt|PDescribe|PContext)\(\s*["`]"#),
    ]
    .into_iter()
    .map(|(language, pattern)| (language, Regex::new(pattern).expect("invariant: a constant pattern")))
    .collect()
});

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().filter(|file| !file.place.is_sample).flat_map(disabled).collect()
}

fn disabled(file: &ReadFile<'_>) -> Vec<Remark> {
    // Rust keeps tests beside the code; in other languages they have their own files.
    if !file.place.is_test && file.language != Some(Language::Rust) {
        return Vec::new();
    }
    let is_off = |code: &str| {
        DISABLED.iter().any(|(language, pattern)| file.language == Some(*language) && pattern.is_match(code))
    };
    let found = file.added_code().filter(|(number, line)| is_off(&line.code) && !file.is_explained(*number));
    found
        .map(|(line, _)| Remark {
            path: file.path().clone(),
            lines: LineRange::new(line, line),
            title: "A test is switched off without a reason",
            message: "Nobody will know when it may run again. Say why, best with an issue to follow, or fix it."
                .to_owned(),
            severity: Severity::Medium,
            category: Category::Correctness,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check_table;
    use super::RULE;

    #[test]
    fn what_is_switched_off() {
        check_table(
            &RULE,
            &[
                ("a.test.js", "it.skip('x', f);\nxit('y', f);\ndescribe.skip(\"z\", f);\n", &[1, 2, 3]),
                ("src/lib.rs", "#[test]\n#[ignore]\nfn f() {}\n", &[2]),
                (
                    "tests/test_a.py",
                    "@pytest.mark.skip\ndef test_a(): pass\n@pytest.mark.skip()\ndef test_b(): pass\n",
                    &[1, 3],
                ),
                ("src/test/ATest.java", "@Disabled\nvoid a() {}\n", &[1]),
                ("spec/a_spec.rb", "xit 'x' do\nend\n", &[1]),
                // Not reported: a reason, a condition, a string, no test.
                ("a.test.js", "// flaky on Windows, #12\nit.skip('x', f);\nxit('y', f); // see #13\n", &[]),
                ("a.test.js", "test.skip(browser === 'x', 'reason');\ntest.skip(({ os }) => os);\n", &[]),
                ("a.test.js", "const s = \"it.skip('x')\";\ncursor.skip('x'); query.skip(3); boxit('x');\n", &[]),
                ("src/a.js", "it.skip('x', f);\n", &[]),
                ("src/lib.rs", "#[ignore = \"slow\"]\nfn f() {}\n", &[]),
                ("src/lib.rs", "// takes an hour\n#[ignore]\nfn f() {}\n", &[]),
                (
                    "tests/test_a.py",
                    "@pytest.mark.skip(reason='x')\n@pytest.mark.skipif(True, reason='y')\n@unittest.skip('z')\n",
                    &[],
                ),
                ("src/test/ATest.java", "@Disabled(\"until #3\")\nvoid a() {}\n", &[]),
                ("docs/a.test.js", "it.skip('x', f);\n", &[]),
            ],
        );
    }
}
