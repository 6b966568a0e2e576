//! Runs a review without a store: scope, texts, the built-in rules and a linter's report.

use std::collections::BTreeSet;

use canonry_domain::review::{CommitSha, Finding, RepoPath};
use canonry_review::reviewers::{read_sarif, read_with_rules};
use canonry_review::{
    HeadTexts, Repository, ReviewScope, ReviewerAnswer, ScopeRequest, find_scope, merge_findings, reviewers_by_file,
};

pub(crate) struct Reviewed {
    pub(crate) scope: ReviewScope,
    pub(crate) texts: HeadTexts,
    pub(crate) findings: Vec<Finding>,
    pub(crate) problems: Vec<String>,
}

impl Reviewed {
    /// `rule path:line` of each finding, in order; a finding of a whole file has the line 0.
    pub(crate) fn places(&self) -> Vec<String> {
        let mut places: Vec<String> = self.findings.iter().map(place).collect();
        places.sort();
        places
    }
}

fn place(finding: &Finding) -> String {
    let rule = finding.witnesses[0].rule.clone().unwrap_or_default();
    format!("{rule} {}:{}", finding.path, finding.lines.map_or(0, |lines| lines.first))
}

pub(crate) async fn reviewed(
    repository: &Repository,
    base: &CommitSha,
    head: &CommitSha,
    sarif: Option<&[u8]>,
) -> Reviewed {
    let request = ScopeRequest { base, head, last: None, full: false };
    let scope = find_scope(repository, request).await.expect("a scope");
    let linted = sarif.map(|bytes| read_sarif("lint.sarif", bytes, None)).unwrap_or_default();
    let spoken_of: BTreeSet<RepoPath> = linted.reported.iter().map(|one| one.path.clone()).collect();
    let texts = HeadTexts::read(repository.git(), head, &scope.changes, &spoken_of).await.expect("texts");
    let files: Vec<_> = scope.files_read().map(|change| texts.file(change)).collect();
    let heard: Vec<ReviewerAnswer> = vec![read_with_rules(&files), linted];
    let problems = heard.iter().flat_map(|heard| heard.problems.clone()).collect();
    let all: BTreeSet<RepoPath> = scope.changes.iter().map(|change| change.path.clone()).chain(spoken_of).collect();
    scope.file_maps(repository.git(), head, &all, reviewers_by_file(&heard, &all)).await.expect("maps");
    Reviewed { findings: merge_findings(heard, &texts), scope, texts, problems }
}

/// A report of one tool with these results: rule, path, line.
pub(crate) fn lint(results: &[(&str, &str, u32)]) -> Vec<u8> {
    let result = |(rule, path, line): &(&str, &str, u32)| {
        serde_json::json!({"ruleId": rule, "message": {"text": format!("{rule} is not allowed")}, "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": line}}}]})
    };
    let results: Vec<_> = results.iter().map(result).collect();
    let log =
        serde_json::json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": results}]});
    log.to_string().into_bytes()
}
