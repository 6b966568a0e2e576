//! The section `review`: what is reviewed, by which reviewers, and which findings are shown.

use canonry_domain::review::{AnswerableScope, Category, Severity};
use canonry_domain::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PathGlob, Pattern};

/// What is reviewed, by whom, and which findings are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReviewSettings {
    /// Whether the service reviews pull requests. Off by default, because a review is public.
    pub enabled: bool,
    /// Which events start a review.
    pub triggers: ReviewTriggers,
    /// Who reviews; the operator configures how `llm` and `command` are run.
    #[schemars(length(max = 5))]
    pub reviewers: Vec<Reviewer>,
    /// Which findings a change is answerable for; others are only counted. A CRITICAL finding on a changed line is always
    /// shown.
    pub scope: AnswerableScope,
    /// What the `llm` reviewer may read in one review; files beyond it are reported as not read.
    pub model_budget: ModelBudget,
    /// Logins whose pull requests are not reviewed.
    #[schemars(length(max = 200), inner(length(min = 1, max = 100)))]
    pub skip_authors: Vec<String>,
    /// Paths in which nothing is reviewed, CRITICAL findings included.
    #[schemars(length(max = 200), extend("x-entries" = "independent"))]
    pub skip_paths: Vec<PathGlob>,
    /// Instructions to the `llm` reviewer for files at certain paths.
    #[schemars(length(max = 100), extend("x-entries" = "independent"))]
    pub path_instructions: Vec<PathInstruction>,
    /// Categories to report; empty reports all.
    #[schemars(length(max = 5))]
    pub focus_areas: Vec<Category>,
    /// Categories not to report.
    #[schemars(length(max = 5))]
    pub ignored_areas: Vec<Category>,
    /// The filter by severity, one of several that stack; CRITICAL findings pass it.
    pub severity: SeveritySettings,
    /// Patterns whose findings have at least a given severity; they also match `tool/rule`, such as `ruff/S602`.
    #[schemars(length(max = 100), extend("x-entries" = "independent"))]
    pub severity_floors: Vec<SeverityFloor>,
    /// Patterns whose findings have at most a given severity; they also match `tool/rule`. CRITICAL findings, credentials
    /// and findings with a security score of 7 or more keep theirs, and a floor wins.
    #[schemars(length(max = 100), extend("x-entries" = "independent"))]
    pub severity_ceilings: Vec<SeverityCeiling>,
    /// Findings not to report: a pattern, or a pattern with limits; CRITICAL findings are never suppressed.
    #[schemars(length(max = 100), extend("x-entries" = "independent"))]
    pub suppressions: Vec<SuppressionRule>,
    /// The confidence below which a finding is folded away.
    #[schemars(range(min = 0, max = 100))]
    pub min_confidence: u8,
    /// How many findings are commented inline at most.
    #[schemars(range(min = 1, max = 25))]
    pub max_comments: u8,
    /// Other review bots whose comments are weighed beside Canonry's findings.
    pub referee: RefereeSettings,
    /// The language of the review, as a language tag such as `en` or `pt-BR`.
    #[schemars(
        regex(pattern = r"^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$"),
        extend("patternErrorMessage" = "must be a language tag such as `en` or `pt-BR`")
    )]
    pub output_language: String,
}

/// Which events start a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReviewTriggers {
    /// Review when a pull request is opened.
    pub on_opened: bool,
    /// Review when a draft becomes ready for review.
    pub on_ready_for_review: bool,
    /// Review when someone asks Canonry for a review.
    pub on_review_requested: bool,
    /// Review every push to an open pull request.
    pub on_synchronize: bool,
}

text_enum! {
    /// Who reviews.
    #[derive(JsonSchema)]
    pub enum Reviewer: "a reviewer" {
        /// Deterministic checks that need no key.
        Builtin = "builtin",
        /// A language model of the operator's choice.
        Llm = "llm",
        /// Results of other tools in SARIF.
        Sarif = "sarif",
        /// Results of other tools in the Reviewdog Diagnostic Format.
        Rdjson = "rdjson",
        /// A program of the operator's choice.
        Command = "command",
    }
}

/// The filter by severity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SeveritySettings {
    /// The lowest severity that is reported.
    pub min_level: Severity,
}

/// Other review bots whose comments are weighed beside Canonry's findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RefereeSettings {
    /// Logins of the bots, with or without `[bot]`. Empty: comments of other bots and people are not read.
    #[schemars(length(max = 50), inner(length(min = 1, max = 100)))]
    pub bots: Vec<String>,
}

/// Instructions to the `llm` reviewer for files at certain paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathInstruction {
    /// The files meant, as globs in which `*` stays within a folder and `**` crosses folders.
    #[schemars(length(min = 1, max = 20))]
    pub paths: Vec<PathGlob>,
    /// What to look for in them.
    #[schemars(length(min = 1, max = 4000))]
    pub instructions: String,
}

/// The least severity of findings that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeverityFloor {
    /// What the finding's title, message or `tool/rule` must match: text, `glob:…` or `regex:…`.
    pub pattern: Pattern,
    /// The lowest severity of such a finding.
    pub severity: Severity,
}

/// The greatest severity of findings that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeverityCeiling {
    /// What the finding's title, message or `tool/rule` must match: text, `glob:…` or `regex:…`.
    pub pattern: Pattern,
    /// The highest severity of such a finding.
    pub severity: Severity,
}

/// What the `llm` reviewer may read in one review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelBudget {
    /// The most files that the `llm` reviewer reads in one review.
    #[schemars(range(min = 1, max = 100000))]
    pub max_files: u32,
    /// The most tokens of the change that the `llm` reviewer reads in one review, at three characters each.
    #[schemars(range(min = 1000, max = 10000000))]
    pub max_tokens: u32,
}

/// Findings not to report. An empty list of severities, categories or paths means all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenSuppression")]
pub struct SuppressionRule {
    /// What the finding's title or message must match.
    pub pattern: Pattern,
    /// The severities it is limited to.
    pub severity: Vec<Severity>,
    /// The categories it is limited to.
    pub category: Vec<Category>,
    /// The files it is limited to.
    pub paths: Vec<PathGlob>,
}

/// A suppression as people write it: a pattern alone, or with limits.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenSuppression {
    /// A pattern alone: text, `glob:…` or `regex:…`.
    Pattern(Pattern),
    /// A pattern with limits.
    Limited(LimitedSuppression),
}

/// A pattern with limits.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LimitedSuppression {
    /// What the finding's title or message must match: text, `glob:…` or `regex:…`.
    pattern: Pattern,
    /// The severities it is limited to; empty means all but CRITICAL.
    #[serde(default)]
    #[schemars(length(max = 4))]
    severity: Vec<Severity>,
    /// The categories it is limited to; empty means all.
    #[serde(default)]
    #[schemars(length(max = 5))]
    category: Vec<Category>,
    /// The files it is limited to, as globs; empty means all.
    #[serde(default)]
    #[schemars(length(max = 20))]
    paths: Vec<PathGlob>,
}

impl From<WrittenSuppression> for SuppressionRule {
    fn from(written: WrittenSuppression) -> Self {
        match written {
            WrittenSuppression::Pattern(pattern) => {
                Self { pattern, severity: Vec::new(), category: Vec::new(), paths: Vec::new() }
            }
            WrittenSuppression::Limited(limited) => Self {
                pattern: limited.pattern,
                severity: limited.severity,
                category: limited.category,
                paths: limited.paths,
            },
        }
    }
}
