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
        (Language::JavaScript, r"^\s*pending\(\s*\)\s*;?\s*$"),
        (
            Language::Python,
            r"^\s*@(?:pytest\.mark\.(?:skip|xfail)|unittest\.(?:skip|expectedFailure)|skip)\s*(?:\(\s*\))?\s*$",
        ),
        (Language::Python, r"^\s*pytest\.(?:skip|xfail)\(\s*\)\s*$"),
        (Language::Ruby, r"^\s*(?:pending|skip)\s*(?:\(\s*\))?\s*$"),
        (Language::Ruby, r"^\s*(?:it|specify|scenario|describe|context)\b.*,\s*:(?:skip|pending)\b"),
        (Language::Php, r"->mark(?:TestSkipped|TestIncomplete)\(\s*\)"),
        (Language::Elixir, r"^\s*@(?:module|describe)?tag :skip\s*$"),
        (Language::Swift, r"^\s*throw XCTSkip\(\s*\)\s*$"),
        (Language::Go, r"^\s*[tb]\.Skip(?:Now)?\(\s*\)\s*$"),
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
    let found = file
        .added_code()
        .filter(|(number, line)| is_off(&line.code) && !has_reason(file, *number) && !is_conditional(file, *number));
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

/// The lines around the mark that may give the reason: attributes and the beginning of the test.
const NEAR: u32 = 8;

/// Whether a comment gives a reason: on the line, above it and its attributes, or at the start of the test's body.
fn has_reason(file: &ReadFile<'_>, line: u32) -> bool {
    let mut above = (line.saturating_sub(NEAR).max(1)..line).rev();
    let mut below = line + 1..line + NEAR;
    let is_attribute = |at: &u32| {
        let code = file.code_at(*at).map_or("", |line| line.code.trim());
        code.starts_with("#[") || code.starts_with('@') || code.starts_with('[')
    };
    let speaks = |at: &u32| file.is_explained(*at);
    file.is_explained(line)
        || above.by_ref().take_while(is_attribute).any(|at| speaks(&at))
        || below
            .by_ref()
            .take_while(|at| is_attribute(at) || opens(file, at - 1) || opens(file, *at))
            .any(|at| speaks(&at))
}

/// Whether the code of a line goes on in the next one: a head of a function, or nothing but a comment.
fn opens(file: &ReadFile<'_>, line: u32) -> bool {
    let code = file.code_at(line).map_or("", |line| line.code.trim());
    code.ends_with(['{', '(', ',', ':', '|']) || code.ends_with("do") || code.ends_with("=>") || code.ends_with(']')
}

/// Whether the test is skipped under a condition only.
fn is_conditional(file: &ReadFile<'_>, line: u32) -> bool {
    let above =
        (1..line).rev().filter_map(|at| file.code_at(at)).map(|line| line.code.trim()).find(|code| !code.is_empty());
    above.is_some_and(|code| {
        let words = [
            "if ", "if(", "unless ", "else", "elif ", "} else", "case ", "when ", "except", "rescue", "} catch",
            "catch",
        ];
        words.iter().any(|word| code.starts_with(word)) || (code.starts_with("guard ") && code.contains("else"))
    })
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
                ("a_test.go", "func TestA(t *testing.T) {\n\tt.Skip()\n}\n", &[2]),
                ("tests/test_a.py", "@pytest.mark.xfail\ndef test_a(): pass\n", &[1]),
                ("spec/a_spec.rb", "it 'x' do\n  pending\n  f\nend\nit 'y', :skip do\nend\n", &[2, 5]),
                ("src/lib.rs", "#[test]\n#[ignore]\nfn f() {\n    g();\n    // here is the sum\n    h();\n}\n", &[2]),
                // Not reported: a reason, a condition, a string, no test.
                ("a.test.js", "// flaky on Windows, #12\nit.skip('x', f);\nxit('y', f); // see #13\n", &[]),
                ("a.test.js", "test.skip(browser === 'x', 'reason');\ntest.skip(({ os }) => os);\n", &[]),
                ("a.test.js", "const s = \"it.skip('x')\";\ncursor.skip('x'); query.skip(3); boxit('x');\n", &[]),
                ("src/a.js", "it.skip('x', f);\n", &[]),
                ("src/lib.rs", "#[ignore = \"slow\"]\nfn f() {}\n", &[]),
                ("src/lib.rs", "// takes an hour\n#[ignore]\nfn f() {}\n", &[]),
                ("src/lib.rs", "// takes an hour\n#[test]\n#[ignore]\nfn f() {}\n", &[]),
                ("src/lib.rs", "#[ignore]\n#[test]\nfn f() {\n    // takes an hour\n    g();\n}\n", &[]),
                ("a.test.js", "it.skip('x', () => {\n  // flaky on Windows, #12\n  f();\n});\n", &[]),
                ("a_test.go", "func TestA(t *testing.T) {\n\tif testing.Short() {\n\t\tt.Skip()\n\t}\n}\n", &[]),
                ("a_test.go", "func TestA(t *testing.T) {\n\tt.Skip(\"needs a network\")\n}\n", &[]),
                ("spec/a_spec.rb", "it 'x' do\n  pending 'until 2.0'\n  skip if old?\nend\n", &[]),
                ("tests/test_a.py", "@pytest.mark.xfail(reason='x', strict=True)\ndef test_a(): pass\n", &[]),
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
