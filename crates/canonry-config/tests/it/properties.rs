//! Properties of every file and every configuration.

use canonry_config::{
    AutoSuppress, AutoSuppressThresholds, BudgetSettings, CloseSettings, FeedbackSettings, KnowledgeSettings,
    LearningSettings, MentionSettings, ModelBudget, PathGlob, PathInstruction, Pattern, ProblemEffect, RefereeSettings,
    RepoConfig, RetrievalSettings, ReviewSettings, ReviewTriggers, Reviewer, SettingsSection, SeverityCeiling,
    SeverityFloor, SeveritySettings, SuppressionRule, TriageSettings, config_hash, json_schema, parse, parse_bytes,
    to_yaml,
};
use canonry_domain::review::{AnswerableScope, Category, Severity};
use canonry_domain::{TargetPolicy, ThresholdRule, TriageMode};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::{select, subsequence};

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200)) {
        let parsed = parse_bytes(&bytes);
        prop_assert!(parsed.problems.iter().all(|problem| problem.line >= 1 && problem.column >= 1));
    }

    #[test]
    fn no_text_makes_it_panic(text in yaml_like()) {
        let parsed = parse(&text);
        // Everything that fell back or was dropped is reported.
        if parsed.problems.is_empty() {
            prop_assert_eq!(parse(&to_yaml(&parsed.config)), parsed);
        }
    }

    #[test]
    fn what_is_written_is_read_back(config in repo_config()) {
        let yaml = to_yaml(&config);
        let parsed = parse(&yaml);
        prop_assert_eq!(&parsed.problems, &vec![], "{}", yaml);
        prop_assert_eq!(&parsed.config, &config, "{}", yaml);
        prop_assert_eq!(config_hash(&parsed.config), config_hash(&config));
    }

    #[test]
    fn a_broken_section_changes_no_other(
        config in repo_config(),
        section in select(SettingsSection::ALL),
        broken in select(vec!["7", "[]", "~", "{nonsense: 1}", "text", "{a: {b: [c]}}"]),
    ) {
        let text = replace_section(&to_yaml(&config), section, broken);
        let parsed = parse(&text);

        let mut expected = config;
        reset(&mut expected, section);
        prop_assert_eq!(&parsed.config, &expected, "{}", text);
        prop_assert!(!parsed.problems.is_empty());
        for problem in &parsed.problems {
            prop_assert_eq!((problem.section, problem.effect), (Some(section), ProblemEffect::SectionDefaults));
        }
        for other in SettingsSection::ALL.iter().copied() {
            prop_assert_eq!(parsed.fell_back(other), other == section);
        }
    }

    #[test]
    fn an_editor_accepts_what_is_written(config in repo_config()) {
        let validator = jsonschema::draft202012::new(&json_schema()).expect("a valid schema");
        let value = serde_json::to_value(&config).expect("plain data");
        prop_assert!(validator.is_valid(&value), "{}", value);
    }
}

/// Replaces the value of one section; every section begins at the start of a line.
fn replace_section(yaml: &str, section: SettingsSection, value: &str) -> String {
    let mut text = format!("{section}: {value}\n");
    let mut inside = false;
    for line in yaml.split_inclusive('\n') {
        if !line.starts_with(' ') {
            inside = line.starts_with(&format!("{section}:"));
        }
        if !inside {
            text.push_str(line);
        }
    }
    text
}

fn reset(config: &mut RepoConfig, section: SettingsSection) {
    let defaults = RepoConfig::default();
    match section {
        SettingsSection::Review => config.review = defaults.review,
        SettingsSection::Feedback => config.feedback = defaults.feedback,
        SettingsSection::Knowledge => config.knowledge = defaults.knowledge,
        SettingsSection::Triage => config.triage = defaults.triage,
        SettingsSection::Close => config.close = defaults.close,
        SettingsSection::Mentions => config.mentions = defaults.mentions,
        SettingsSection::Budget => config.budget = defaults.budget,
    }
}

/// Generates text from pieces that mean something to a YAML parser, which random letters rarely do.
fn yaml_like() -> impl Strategy<Value = String> {
    let pieces = vec![
        "review:",
        "close:",
        "triage:",
        "mode:",
        "off",
        "suppressions:",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ": ",
        "\"",
        "'",
        "&a ",
        "*a",
        "|\n",
        ">-\n",
        "#",
        "!!str ",
        "!x",
        "---",
        "...",
        "%YAML 1.2\n",
        "? ",
        "<<: ",
        "~",
        "7",
        "-.5",
        ".nan",
        "regex:(",
        "\t",
        "\r",
        "\u{feff}",
        "é",
        "\u{0}",
        "\\u",
        "maxComments: 3",
        "pattern: x",
    ];
    let piece = prop_oneof![8 => select(pieces).prop_map(str::to_owned), 1 => any::<String>()];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn repo_config() -> impl Strategy<Value = RepoConfig> {
    let sections =
        (review(), feedback(), knowledge(), triage(), close(), "[A-Za-z0-9][A-Za-z0-9-]{0,38}", 0.0..=100_000.0f64);
    sections.prop_map(|(review, feedback, knowledge, triage, close, handle, monthly_cost_usd)| RepoConfig {
        review,
        feedback,
        knowledge,
        triage,
        close,
        mentions: MentionSettings { handle },
        budget: BudgetSettings { monthly_cost_usd },
    })
}

fn review() -> impl Strategy<Value = ReviewSettings> {
    let who = (
        any::<[bool; 5]>(),
        subsequence(
            vec![Reviewer::Builtin, Reviewer::Llm, Reviewer::Sarif, Reviewer::Rdjson, Reviewer::Command],
            0..=5,
        ),
        labels(),
        vec(path_glob(), 0..3),
    );
    let what = (
        vec(path_instruction(), 0..3),
        categories(),
        categories(),
        severity(),
        vec((pattern(), severity()), 0..3),
        vec((pattern(), severity()), 0..3),
        vec(suppression(), 0..3),
    );
    let scope = (select(AnswerableScope::ALL), 1..=100_000u32, 1_000..=10_000_000u32);
    let how = (scope, 0..=100u8, 1..=25u8, "[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}");
    (who, what, how).prop_map(|(who, what, how)| {
        let (switches, reviewers, skip_authors, skip_paths) = who;
        let (path_instructions, focus_areas, ignored_areas, min_level, floors, ceilings, suppressions) = what;
        let ((scope, max_files, max_tokens), min_confidence, max_comments, output_language) = how;
        ReviewSettings {
            enabled: switches[0],
            triggers: ReviewTriggers {
                on_opened: switches[1],
                on_ready_for_review: switches[2],
                on_review_requested: switches[3],
                on_synchronize: switches[4],
            },
            reviewers,
            scope,
            model_budget: ModelBudget { max_files, max_tokens },
            skip_authors: skip_authors.clone(),
            skip_paths,
            path_instructions,
            focus_areas,
            ignored_areas,
            severity: SeveritySettings { min_level },
            severity_floors: floors
                .into_iter()
                .map(|(pattern, severity)| SeverityFloor { pattern, severity })
                .collect(),
            severity_ceilings: ceilings
                .into_iter()
                .map(|(pattern, severity)| SeverityCeiling { pattern, severity })
                .collect(),
            suppressions,
            min_confidence,
            max_comments,
            referee: RefereeSettings { bots: skip_authors },
            output_language,
        }
    })
}

fn feedback() -> impl Strategy<Value = FeedbackSettings> {
    (any::<bool>(), 1..=50u32, 1..=50u32, 1..=50u32).prop_map(
        |(enabled, min_thumbs_down, min_distinct_reactors, min_distinct_prs)| FeedbackSettings {
            auto_suppress: AutoSuppress {
                enabled,
                thresholds: AutoSuppressThresholds { min_thumbs_down, min_distinct_reactors, min_distinct_prs },
            },
        },
    )
}

fn knowledge() -> impl Strategy<Value = KnowledgeSettings> {
    (any::<[bool; 3]>(), 1..=20u32, option::of(0.0..=2.0f64), 0..=5000u32).prop_map(
        |(switches, top_k, distance_threshold, max_context_chars)| KnowledgeSettings {
            share_global: switches[0],
            share_within_owner: switches[1],
            retrieval: RetrievalSettings { enabled: switches[2], top_k, distance_threshold, max_context_chars },
        },
    )
}

fn triage() -> impl Strategy<Value = TriageSettings> {
    let modes = TriageMode::ALL;
    let rules = ThresholdRule::ALL;
    let numbers = (50..=95u8, 1..=8u8, 0..=8760u32, 0.5..=0.99f64);
    let all = (select(modes), numbers, labels(), select(rules), any::<bool>());
    all.prop_map(|(mode, numbers, exclude_labels, rule, ask_for_description)| TriageSettings {
        mode,
        duplicate_threshold: numbers.0,
        max_candidates: numbers.1,
        exclude_labels,
        cooldown_hours: numbers.2,
        ask_for_description,
        learning: LearningSettings { rule, target_precision: numbers.3 },
    })
}

fn close() -> impl Strategy<Value = CloseSettings> {
    let policies = TargetPolicy::ALL;
    let message = prop_oneof![Just(None), text(1, 300).prop_map(Some)];
    let numbers = (0.0..=1.0f64, 0.0..=1.0f64, 1..=8760u32, 0..=1000u32);
    (numbers, select(policies), labels(), message).prop_map(|(numbers, target_policy, protected_labels, message)| {
        CloseSettings {
            min_edge: numbers.0,
            min_close: numbers.1,
            target_policy,
            grace_hours: numbers.2,
            protected_labels,
            max_per_day: numbers.3,
            message,
        }
    })
}

fn path_instruction() -> impl Strategy<Value = PathInstruction> {
    (vec(path_glob(), 1..3), text(1, 200)).prop_map(|(paths, instructions)| PathInstruction { paths, instructions })
}

fn suppression() -> impl Strategy<Value = SuppressionRule> {
    (pattern(), vec(severity(), 0..=4), categories(), vec(path_glob(), 0..3))
        .prop_map(|(pattern, severity, category, paths)| SuppressionRule { pattern, severity, category, paths })
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![text(1, 100), "glob:[a-z*?]{1,20}", "regex:[a-z.]{1,20}", "regex:(a|b)\\\\s+c",]
        .prop_filter_map("not a pattern", |text| Pattern::new(text).ok())
}

fn path_glob() -> impl Strategy<Value = PathGlob> {
    prop_oneof!["[a-z*?/.]{1,20}", text(1, 30)].prop_filter_map("not a glob", |text| PathGlob::new(text).ok())
}

fn severity() -> impl Strategy<Value = Severity> {
    select(Severity::ALL)
}

fn categories() -> impl Strategy<Value = Vec<Category>> {
    let all = vec![
        Category::Security,
        Category::Correctness,
        Category::Performance,
        Category::Style,
        Category::Documentation,
    ];
    subsequence(all, 0..=5)
}

fn labels() -> impl Strategy<Value = Vec<String>> {
    vec(text(1, 50), 0..4)
}

/// Generates words that YAML reads as other types, lines, and arbitrary characters.
fn text(min: usize, max: usize) -> impl Strategy<Value = String> {
    let tricky = vec![
        "off",
        "null",
        "~",
        "7",
        "1e3",
        ".nan",
        "- a",
        "a: b",
        "a #b",
        " a",
        "a ",
        "\n",
        "a\n\nb\n",
        "\ta",
        "'",
        "\"",
        "{",
        "[]",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`",
        "|",
        ">",
        "?",
        "---",
        "...",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{0}",
        "\u{7f}",
        "é",
        "=",
        "<<",
        "0x1",
        "2020-01-01",
    ];
    prop_oneof![
        select(tricky).prop_map(str::to_owned),
        vec(any::<char>(), min..=max).prop_map(|chars| chars.into_iter().collect()),
        vec(proptest::char::range(' ', '~'), min..=max).prop_map(|chars| chars.into_iter().collect()),
    ]
}
