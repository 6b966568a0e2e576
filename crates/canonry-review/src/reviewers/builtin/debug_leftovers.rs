//! Finds debugging statements that were left in the code.

use std::sync::LazyLock;

use canonry_domain::review::{Category, LineRange, Severity};
use regex::Regex;

use super::reading::{BuiltinRule, ReadFile, Remark};
use super::syntax::Language;

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "debug-leftover", check };

/// Statements that stop a program, or print for its author only. Printing as such is not reported: a command line
/// prints for its user, and a service may log that way.
static LEFTOVERS: LazyLock<Vec<(Language, Regex)>> = LazyLock::new(|| {
    [
        (Language::JavaScript, r"(?:^|[;{}\s])debugger\s*(?:;|\}|$)"),
        (Language::Rust, r"(?:^|[^\w!])dbg!\s*[(\[{]"),
        (Language::Python, r"(?:^|[^\w.])breakpoint\(\s*\)"),
        (Language::Python, r"^\s*(?:import|from)\s+(?:pdb|ipdb|pudb)\b"),
        (Language::Python, r"(?:^|[^\w.])(?:pdb|ipdb|pudb)\.set_trace\("),
        (Language::Ruby, r"(?:^|[^\w.:@])binding\.(?:pry|irb|b)\b"),
        (Language::Ruby, r"^\s*(?:byebug|debugger)\s*$"),
        (Language::Php, r"(?:^|[^\w>:$\\])(?:var_dump|dd)\s*\("),
        (Language::Php, r"(?:^|[^\w>:$])xdebug_break\s*\("),
        (Language::Elixir, r"(?:^|[^\w.])IEx\.pry\b"),
        (Language::Go, r"(?:^|[^\w.])(?:spew\.Dump|runtime\.Breakpoint)\("),
        (Language::CSharp, r"(?:^|[^\w])Debugger\.(?:Break|Launch)\(\s*\)"),
        (Language::Java, r"(?:^|[^\w.])Thread\.dumpStack\(\s*\)"),
    ]
    .into_iter()
    .map(|(language, pattern)| (language, Regex::new(pattern).expect("invariant: a constant pattern")))
    .collect()
});

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    files.iter().filter(|file| !file.place.is_sample).flat_map(leftovers).collect()
}

fn leftovers(file: &ReadFile<'_>) -> Vec<Remark> {
    let stops = |code: &str| {
        let own = LEFTOVERS.iter().filter(|(language, _)| file.language == Some(*language));
        own.flat_map(|(_, pattern)| pattern.find_iter(code)).any(|found| !is_definition(&code[..found.start()]))
    };
    let left_in = file.added_code().filter(|(_, line)| stops(&line.code));
    let remark = |number: u32| Remark {
        path: file.path().clone(),
        lines: LineRange::new(number, number),
        title: "Debugging code is left in",
        message: "It stops the program or prints its inner state. Remove it before merging.".to_owned(),
        severity: Severity::Medium,
        category: Category::Correctness,
    };
    left_in.map(|(number, _)| remark(number)).collect()
}

/// Whether a thing of that name is defined, as in `function dd($x)` and `def breakpoint()`.
fn is_definition(before: &str) -> bool {
    let before = before.trim_end();
    ["function", "def", "fn", "func", "macro_rules!"].iter().any(|word| before.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check_table;
    use super::RULE;

    #[test]
    fn what_is_left_in() {
        check_table(
            &RULE,
            &[
                ("src/a.ts", "f();\n  debugger;\nif (x) { debugger }\n", &[2, 3]),
                ("src/a.rs", "let a = dbg!(b);\n", &[1]),
                ("tests/a.rs", "dbg!(&x);\n", &[1]),
                ("src/a.rs", "fn b() { dbg!(1); }\n", &[1]),
                ("src/a.php", "public function f() { dd($x); }\n", &[1]),
                ("src/a.rs", "let x = r#\"a \"dbg!(0)\" b\"#;\nlet y = 'b';\ndbg!(x);\n", &[3]),
                ("app/a.rb", "x = %q(it's)\nbinding.pry\n", &[2]),
                ("app/a.rb", "x = <<~SQL\n  don't\n  binding.pry\nSQL\nbinding.pry\n", &[5]),
                ("src/a.py", "import pdb; pdb.set_trace()\nbreakpoint()\n", &[1, 2]),
                ("app/a.rb", "binding.pry\n  byebug\n", &[1, 2]),
                ("src/a.php", "var_dump($x);\n dd($y);\n", &[1, 2]),
                ("lib/a.ex", "require IEx; IEx.pry\n", &[1]),
                ("a.cs", "Debugger.Break();\n", &[1]),
                // Not reported: text, names, definitions, other things of the same name.
                ("src/a.ts", "// debugger;\nconst debugger_ = 'debugger;';\nopenDebugger();\nx.debugger;\n", &[]),
                ("src/a.rs", "// dbg!(x)\nlet s = \"dbg!(x)\"; my_dbg!(x);\n", &[]),
                ("src/a.py", "def breakpoint():\n    self.breakpoint()\n# pdb.set_trace()\nbreakpoint(3)\n", &[]),
                (
                    "src/a.php",
                    "$this->dd($x); Foo::dd(); add($x);\nfunction dd($x) {}\npublic static function dd($x) {}\n",
                    &[],
                ),
                ("app/a.rb", "debugger = 3\nbinding.local_variables\n", &[]),
                ("docs/a.ts", "debugger;\n", &[]),
                ("README.md", "debugger;\n", &[]),
                ("src/a.ts", "console.log(x);\n", &[]),
            ],
        );
    }
}
