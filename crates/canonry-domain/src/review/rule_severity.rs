//! What the rules of well-known tools are about, and how much they matter.
//!
//! A tool's own level says little: ruff calls a long line an error, gitleaks gives a leaked key no level at all. The
//! tables name families of rules by the beginning of their code, as the tools' own documentation defines them. The
//! longest matching beginning counts, so one code can differ from its family.

use crate::review::{Category, Severity};

/// The severity and the category of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleMeaning {
    pub severity: Severity,
    pub category: Category,
}

/// What a rule of a tool means; `None` for a tool that is not in the tables, whose own level then counts. `level` is
/// the severity that the tool's own level stands for.
pub fn rule_meaning(tool: &str, rule: &str, level: Severity) -> Option<RuleMeaning> {
    let rule = rule.trim();
    match tool.split_whitespace().next()? {
        "ruff" => Some(by_family(RUFF, rule).unwrap_or(STYLE)),
        "eslint" => {
            Some(by_family(ESLINT, rule).unwrap_or(RuleMeaning { severity: level.min(Severity::Medium), ..BUG }))
        }
        // Bandit has nothing but security rules, and its levels are made from the danger of the call.
        "bandit" => Some(by_family(BANDIT, rule).unwrap_or(security(level.min(Severity::Medium)))),
        "semgrep" => Some(semgrep(rule, level)),
        "clippy" | "clippy-driver" | "rustc" => Some(rust(rule)),
        "golangci-lint" => Some(by_family(GOLANGCI, rule).unwrap_or(STYLE)),
        // CodeQL's errors are proven by a data flow. Its scores and tags, where it has them, are read before.
        "codeql" => Some(RuleMeaning { severity: level, ..BUG }),
        "zizmor" => {
            let rule = rule.strip_prefix("zizmor/").unwrap_or(rule);
            Some(by_family(ZIZMOR, rule).unwrap_or(security(level.min(Severity::Medium))))
        }
        // The generic rules recognise a telling name beside a random text; the others the format of one vendor.
        "gitleaks" => Some(by_family(GITLEAKS, rule).unwrap_or(security(Severity::Critical))),
        _ => None,
    }
}

type Family = (&'static str, RuleMeaning);

const fn meaning(severity: Severity, category: Category) -> RuleMeaning {
    RuleMeaning { severity, category }
}

const fn security(severity: Severity) -> RuleMeaning {
    meaning(severity, Category::Security)
}

/// The program fails or does something else than it says, whenever the line runs.
const BROKEN: RuleMeaning = meaning(Severity::Major, Category::Correctness);
/// The line is often a mistake.
const BUG: RuleMeaning = meaning(Severity::Medium, Category::Correctness);
const STYLE: RuleMeaning = meaning(Severity::Minor, Category::Style);
const SLOW: RuleMeaning = meaning(Severity::Minor, Category::Performance);
const TEXT: RuleMeaning = meaning(Severity::Minor, Category::Documentation);
const DANGER: RuleMeaning = security(Severity::Major);
const RISK: RuleMeaning = security(Severity::Medium);
const HINT: RuleMeaning = security(Severity::Minor);

fn by_family(families: &[Family], rule: &str) -> Option<RuleMeaning> {
    let fitting = families.iter().filter(|(begins, _)| rule.starts_with(begins));
    fitting.max_by_key(|(begins, _)| begins.len()).map(|(_, meaning)| *meaning)
}

/// Ruff's codes are those of the linters that it replaces. What is not listed is style: `E`, `W`, `I`, `N`, `UP`, ….
const RUFF: &[Family] = &[
    ("invalid-syntax", BROKEN),
    ("E9", BROKEN),
    ("F", BUG),
    ("F40", STYLE),
    ("F841", STYLE),
    // Format strings that raise, comparisons that are always the same, syntax errors, undefined names.
    ("F50", BROKEN),
    ("F52", BROKEN),
    ("F63", BROKEN),
    ("F70", BROKEN),
    ("F72", BROKEN),
    ("F82", BROKEN),
    ("PLE", BROKEN),
    ("PLW", BUG),
    ("B", BUG),
    ("BLE", STYLE),
    ("ASYNC", BUG),
    ("RUF006", BUG),
    ("PERF", SLOW),
    ("C4", SLOW),
    ("D", TEXT),
    ("DJ", STYLE),
    ("DTZ", BUG),
    ("DOC", TEXT),
    // flake8-bandit: as bandit's own codes below.
    ("S", RISK),
    ("SIM", STYLE),
    ("SLF", STYLE),
    ("SLOT", STYLE),
    ("S101", STYLE),
    ("S102", DANGER),
    ("S11", HINT),
    ("S201", DANGER),
    ("S202", DANGER),
    ("S311", HINT),
    ("S4", HINT),
    ("S50", DANGER),
    ("S602", DANGER),
    ("S605", DANGER),
    ("S609", DANGER),
    ("S603", HINT),
    ("S606", HINT),
    ("S607", HINT),
    ("S701", DANGER),
];

const BANDIT: &[Family] = &[
    ("B101", HINT),
    ("B102", DANGER),
    ("B11", HINT),
    ("B2", DANGER),
    ("B3", RISK),
    ("B311", HINT),
    // Imports of modules that can be used dangerously.
    ("B4", HINT),
    // TLS, SSH and YAML without their checks.
    ("B50", DANGER),
    ("B508", RISK),
    ("B509", RISK),
    ("B6", RISK),
    ("B602", DANGER),
    ("B605", DANGER),
    ("B609", DANGER),
    ("B613", DANGER),
    ("B603", HINT),
    ("B606", HINT),
    ("B607", HINT),
    ("B7", RISK),
    ("B701", DANGER),
];

/// What is not listed is decided by the project: it calls a rule an error or a warning, and neither is proof of harm.
const ESLINT: &[Family] = &[
    ("no-eval", DANGER),
    ("no-implied-eval", DANGER),
    ("no-new-func", DANGER),
    ("@typescript-eslint/no-implied-eval", DANGER),
    ("no-script-url", RISK),
    ("react/no-danger", RISK),
    ("security/", RISK),
    // It reports every `a[b]`.
    ("security/detect-object-injection", HINT),
    ("no-secrets/", DANGER),
    ("constructor-super", BROKEN),
    ("for-direction", BROKEN),
    ("no-class-assign", BROKEN),
    ("no-const-assign", BROKEN),
    ("no-dupe-args", BROKEN),
    ("no-func-assign", BROKEN),
    ("no-import-assign", BROKEN),
    ("no-invalid-regexp", BROKEN),
    ("no-obj-calls", BROKEN),
    ("no-this-before-super", BROKEN),
    ("no-undef", BROKEN),
    ("no-undef-init", STYLE),
    ("no-undefined", STYLE),
    ("no-unsafe-negation", BROKEN),
    ("react-hooks/rules-of-hooks", BROKEN),
    ("@stylistic/", STYLE),
    ("prettier/", STYLE),
    ("import/order", STYLE),
    ("simple-import-sort/", STYLE),
    ("jsdoc/", TEXT),
    ("tsdoc/", TEXT),
    ("arrow-", STYLE),
    ("brace-style", STYLE),
    ("camelcase", STYLE),
    ("comma-", STYLE),
    ("curly", STYLE),
    ("eol-last", STYLE),
    ("indent", STYLE),
    ("key-spacing", STYLE),
    ("keyword-spacing", STYLE),
    ("max-", STYLE),
    ("no-console", STYLE),
    ("no-mixed-spaces-and-tabs", STYLE),
    ("no-multi", STYLE),
    ("no-trailing-spaces", STYLE),
    ("no-unused-vars", STYLE),
    ("no-var", STYLE),
    ("object-", STYLE),
    ("padded-blocks", STYLE),
    ("prefer-", STYLE),
    ("quote", STYLE),
    ("semi", STYLE),
    ("sort-", STYLE),
    ("space-", STYLE),
    ("@typescript-eslint/naming-convention", STYLE),
    ("@typescript-eslint/no-explicit-any", STYLE),
    ("@typescript-eslint/no-unused-vars", STYLE),
];

/// Its rules are linters. What is not listed is style.
const GOLANGCI: &[Family] = &[
    ("typecheck", BROKEN),
    ("govet", BUG),
    ("staticcheck", BUG),
    ("errcheck", BUG),
    ("errorlint", BUG),
    ("bodyclose", BUG),
    ("rowserrcheck", BUG),
    ("sqlclosecheck", BUG),
    ("spancheck", BUG),
    ("contextcheck", BUG),
    ("noctx", BUG),
    ("durationcheck", BUG),
    ("copyloopvar", BUG),
    ("exportloopref", BUG),
    ("gocheckcompilerdirectives", BUG),
    ("loggercheck", BUG),
    ("makezero", BUG),
    ("nilerr", BUG),
    ("nilnesserr", BUG),
    ("reassign", BUG),
    ("testifylint", BUG),
    ("zerologlint", BUG),
    ("gosec", RISK),
    ("bidichk", DANGER),
    ("prealloc", SLOW),
    ("perfsprint", SLOW),
    ("misspell", TEXT),
    ("godot", TEXT),
    ("godox", TEXT),
    ("dupword", TEXT),
];

const ZIZMOR: &[Family] = &[
    ("template-injection", DANGER),
    ("dangerous-triggers", DANGER),
    ("hardcoded-container-credentials", DANGER),
    ("known-vulnerable-actions", DANGER),
    ("impostor-commit", DANGER),
    ("github-env", DANGER),
    ("insecure-commands", DANGER),
    ("bot-conditions", DANGER),
    ("unpinned-uses", RISK),
    ("excessive-permissions", RISK),
    ("artipacked", RISK),
];

const GITLEAKS: &[Family] =
    &[("generic-api-key", DANGER), ("curl-auth", DANGER), ("jwt", DANGER), ("hashicorp-tf-password", DANGER)];

/// The ids of the public registry say what a rule is about: `python.lang.security.audit.eval-detected`. A rule for an
/// audit points at places to look at, not at errors.
fn semgrep(rule: &str, level: Severity) -> RuleMeaning {
    let has = |part: &str| rule.split('.').any(|one| one == part);
    if has("secrets") {
        DANGER
    } else if has("security") {
        security(if has("audit") { level.min(Severity::Medium) } else { level })
    } else if has("correctness") {
        RuleMeaning { severity: level, ..BUG }
    } else if has("performance") {
        SLOW
    } else if has("best-practice") || has("maintainability") || has("portability") || has("compatibility") {
        STYLE
    } else {
        // A project's own rule: its author chose the level.
        RuleMeaning { severity: level, ..BUG }
    }
}

/// Clippy's group `correctness` is code that is outright wrong; an error of the compiler has a number.
fn rust(rule: &str) -> RuleMeaning {
    let is_number = rule.len() == 5 && rule.starts_with('E') && rule[1..].bytes().all(|byte| byte.is_ascii_digit());
    match rule.strip_prefix("clippy::") {
        _ if is_number => BROKEN,
        Some(lint) if CLIPPY_CORRECTNESS.contains(&lint) => BROKEN,
        Some(lint) if lint.starts_with("suspicious_") || lint.starts_with("await_holding_") => BUG,
        Some(lint) if lint.ends_with("_doc") || lint.starts_with("doc_") || lint.starts_with("missing_") => TEXT,
        None if rule == "unconditional_recursion"
            || rule.starts_with("invalid_")
            || rule.starts_with("overflowing_") =>
        {
            BUG
        }
        _ => STYLE,
    }
}

const CLIPPY_CORRECTNESS: &[&str] = &[
    "absurd_extreme_comparisons",
    "almost_swapped",
    "approx_constant",
    "bad_bit_mask",
    "derive_ord_xor_partial_ord",
    "derived_hash_with_manual_eq",
    "eager_transmute",
    "eq_op",
    "erasing_op",
    "if_let_mutex",
    "ifs_same_cond",
    "impossible_comparisons",
    "ineffective_bit_mask",
    "infinite_iter",
    "invalid_regex",
    "invisible_characters",
    "iter_next_loop",
    "iterator_step_by_zero",
    "let_underscore_lock",
    "match_str_case_mismatch",
    "mem_replace_with_uninit",
    "min_max",
    "mistyped_literal_suffixes",
    "modulo_one",
    "mut_from_ref",
    "never_loop",
    "non_octal_unix_permissions",
    "not_unsafe_ptr_arg_deref",
    "out_of_bounds_indexing",
    "overly_complex_bool_expr",
    "panicking_unwrap",
    "possible_missing_comma",
    "read_line_without_trim",
    "recursive_format_impl",
    "reversed_empty_ranges",
    "self_assignment",
    "size_of_in_element_count",
    "suspicious_splitn",
    "transmuting_null",
    "unconditional_recursion",
    "uninit_assumed_init",
    "uninit_vec",
    "unit_cmp",
    "unsound_collection_transmute",
    "unused_io_amount",
    "vec_resize_to_zero",
    "while_immutable_condition",
    "wrong_transmute",
    "zst_offset",
];

#[cfg(test)]
mod tests {
    use super::rule_meaning;
    use crate::review::{Category, Severity, is_protected};

    #[test]
    fn codes_and_not_levels_decide() {
        use Severity::{Critical, Major, Medium, Minor};
        for (tool, rule, level, severity, category) in [
            ("ruff", "E501", Major, Minor, Category::Style),
            ("ruff", "F401", Major, Minor, Category::Style),
            ("ruff", "F821", Major, Major, Category::Correctness),
            ("ruff", "B006", Major, Medium, Category::Correctness),
            ("ruff", "BLE001", Major, Minor, Category::Style),
            ("ruff", "D100", Major, Minor, Category::Documentation),
            ("ruff", "S602", Major, Major, Category::Security),
            ("ruff", "S101", Major, Minor, Category::Style),
            ("ruff", "SIM102", Major, Minor, Category::Style),
            ("ruff", "UP006", Major, Minor, Category::Style),
            ("eslint", "semi", Major, Minor, Category::Style),
            ("eslint", "no-eval", Medium, Major, Category::Security),
            ("eslint", "no-undef", Medium, Major, Category::Correctness),
            ("eslint", "react/jsx-key", Major, Medium, Category::Correctness),
            ("bandit", "B403", Minor, Minor, Category::Security),
            ("bandit", "B602", Major, Major, Category::Security),
            ("bandit", "B999", Major, Medium, Category::Security),
            ("semgrep oss", "python.lang.security.audit.eval-detected", Major, Medium, Category::Security),
            ("semgrep", "generic.secrets.security.detected-aws-key", Medium, Major, Category::Security),
            ("semgrep", "rules.no-steps", Major, Major, Category::Correctness),
            ("clippy", "clippy::eq_op", Major, Major, Category::Correctness),
            ("clippy", "clippy::needless_return", Major, Minor, Category::Style),
            ("clippy", "E0308", Major, Major, Category::Correctness),
            ("golangci-lint", "lll", Major, Minor, Category::Style),
            ("golangci-lint", "typecheck", Major, Major, Category::Correctness),
            ("codeql", "js/useless-assignment", Medium, Medium, Category::Correctness),
            ("zizmor", "zizmor/template-injection", Major, Major, Category::Security),
            ("zizmor", "zizmor/unpinned-uses", Major, Medium, Category::Security),
            ("gitleaks", "aws-access-token", Medium, Critical, Category::Security),
            ("gitleaks", "generic-api-key", Medium, Major, Category::Security),
        ] {
            let found = rule_meaning(tool, rule, level).expect("a known tool");
            assert_eq!((found.severity, found.category), (severity, category), "{tool} {rule}");
        }
        assert_eq!(rule_meaning("somelint", "E501", Major), None);
        assert_eq!(rule_meaning("", "E501", Major), None);
    }

    #[test]
    fn an_error_of_style_is_not_protected_and_a_leak_is() {
        let protected = |tool, rule, level| {
            let found = rule_meaning(tool, rule, level).expect("a known tool");
            is_protected(found.severity, found.category)
        };
        assert!(!protected("ruff", "I001", Severity::Major) && !protected("eslint", "some/rule", Severity::Major));
        assert!(protected("gitleaks", "jwt", Severity::Minor) && protected("zizmor", "github-env", Severity::Minor));
    }
}
