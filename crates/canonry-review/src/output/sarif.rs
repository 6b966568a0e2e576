//! Writes a report in SARIF 2.1.0, with the status of every finding since the last review.

use canonry_domain::review::{FindingStatus, HiddenBy, LineRange, ReviewSubject, ShownAs, gaps_in_words};
use serde_json::{Map, Value, json};

use super::counts::gaps;
use super::diagnostic::{message, relative_uri, rule_id};
use super::run_facts::notes;
use super::sarif_rules::{SarifRuleTable, level, security_severity};
use crate::run::report::{ReportedFinding, ReviewReport};

/// The base id of all paths: the root of the repository, wherever it is.
const ROOT: &str = "%SRCROOT%";

/// The whole log with one run. It contains fixed findings as absent and hidden findings as suppressed.
pub fn sarif(report: &ReviewReport) -> Value {
    log(report, &report.findings.iter().collect::<Vec<_>>())
}

/// The log for GitHub's code scanning, which treats every result as an open alert: it contains open findings only.
pub fn code_scanning(report: &ReviewReport) -> Value {
    log(report, &report.standing().collect::<Vec<_>>())
}

fn log(report: &ReviewReport, findings: &[&ReportedFinding]) -> Value {
    let rules = SarifRuleTable::of(findings.iter().map(|one| &one.sighting.finding));
    let results: Vec<Value> = findings.iter().map(|one| result(one, &rules)).collect();
    let mut log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "Canonry",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.into_values(),
            }},
            // The part before the last slash is the same for every run, so that a later run replaces an earlier one.
            "automationDetails": {"id": format!("canonry/{}", report.head)},
            "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
            "invocations": [invocation(report)],
            "results": results,
            "properties": {
                "mode": report.mode().as_str(),
                "reason": report.reason.to_string(),
                "baseSha": report.base,
                "headSha": report.head,
                "subject": report.subject.to_string(),
            },
        }],
    });
    if let Some(provenance) = provenance(report) {
        log["runs"][0]["versionControlProvenance"] = json!([provenance]);
    }
    log
}

/// Where the code comes from; `None` for a repository that is not on GitHub, because the format requires an address.
fn provenance(report: &ReviewReport) -> Option<Value> {
    if report.repo.owner() == "local" {
        return None;
    }
    let mut provenance = json!({
        "repositoryUri": format!("https://github.com/{}", report.repo),
        "revisionId": report.head,
        "mappedTo": {"uriBaseId": ROOT},
    });
    if let ReviewSubject::Branch(branch) = &report.subject {
        provenance["branch"] = branch.as_str().into();
    }
    Some(provenance)
}

/// How the run went. A gap makes it unsuccessful: a reader must not take silence for a fix.
fn invocation(report: &ReviewReport) -> Value {
    let notification = |level: &str, text: String| json!({"level": level, "message": {"text": text}});
    let problems = report.reviewers.iter().flat_map(|one| {
        one.problems.iter().map(move |problem| notification("error", format!("{}: {problem}", one.name)))
    });
    let skipped = report.coverage.skipped.iter().map(|one| {
        let level = if one.gap { "warning" } else { "note" };
        let mut skipped = notification(level, format!("The file was not read: {}", one.why));
        skipped["locations"] = json!([{"physicalLocation": {"artifactLocation": artifact(one.path.as_str())}}]);
        skipped
    });
    let notes = notes(report).map(|note| notification("note", note));
    let notifications: Vec<Value> = problems.chain(skipped).chain(notes).collect();
    json!({
        "executionSuccessful": gaps_in_words(&gaps(report)).is_none(),
        "toolExecutionNotifications": notifications,
    })
}

fn artifact(path: &str) -> Value {
    json!({"uri": relative_uri(path), "uriBaseId": ROOT})
}

fn result(one: &ReportedFinding, rules: &SarifRuleTable) -> Value {
    let finding = &one.sighting.finding;
    let id = rule_id(finding);
    let mut location = json!({"artifactLocation": artifact(finding.path.as_str())});
    if let Some(lines) = finding.lines {
        location["region"] = json!({"startLine": lines.first, "endLine": lines.last});
    }
    let mut result = json!({
        "ruleId": id,
        "ruleIndex": rules.index_of(&id),
        "level": level(finding.severity),
        "message": {"text": message(finding)},
        "locations": [{"physicalLocation": location}],
        "baselineState": baseline_state(one),
        // An empty list means that it is not suppressed; a missing list would leave that open.
        "suppressions": suppressions(one),
        "properties": properties(one),
    });
    if let Some((lines, code)) = finding.lines.zip(finding.replacement.as_ref()) {
        result["fixes"] = json!([replacing(finding.path.as_str(), lines, code)]);
    }
    let fingerprints = partial_fingerprints(one);
    if !fingerprints.is_empty() {
        result["partialFingerprints"] = Value::Object(fingerprints);
    }
    result
}

/// A fix that replaces whole lines, their ends included.
fn replacing(path: &str, lines: LineRange, code: &str) -> Value {
    let deleted =
        json!({"startLine": lines.first, "startColumn": 1, "endLine": lines.last.saturating_add(1), "endColumn": 1});
    json!({
        "description": {"text": "Replace these lines."},
        "artifactChanges": [{
            "artifactLocation": artifact(path),
            "replacements": [{"deletedRegion": deleted, "insertedContent": {"text": format!("{code}\n")}}],
        }],
    })
}

/// The status in the format's terms: a finding that moved with its code is the same; a finding that came back was
/// absent last time.
fn baseline_state(one: &ReportedFinding) -> &'static str {
    match one.sighting.status {
        FindingStatus::New | FindingStatus::Reopened => "new",
        FindingStatus::Fixed => "absent",
        FindingStatus::Same | FindingStatus::Moved | FindingStatus::Dismissed if one.sighting.code_unchanged => {
            "unchanged"
        }
        FindingStatus::Same | FindingStatus::Moved | FindingStatus::Dismissed => "updated",
    }
}

fn suppressions(one: &ReportedFinding) -> Vec<Value> {
    if one.shown != ShownAs::Suppressed || one.is_fixed() {
        return Vec::new();
    }
    let why = match &one.hidden_by {
        Some(HiddenBy::Dismissal) => "A person dismissed it, and its code is unchanged.".to_owned(),
        Some(HiddenBy::Feedback) => "People keep rejecting findings of its pattern.".to_owned(),
        Some(HiddenBy::Pattern(pattern)) => {
            format!("The repository's settings suppress it by the pattern \"{pattern}\".")
        }
        Some(HiddenBy::Area) => "The repository's settings exclude its category.".to_owned(),
        Some(HiddenBy::Scope) => "It is off the changed lines or older than the change (review.scope).".to_owned(),
        Some(HiddenBy::SecondReading) => "A second reading did not confirm it.".to_owned(),
        Some(HiddenBy::Severity) => "It is below the minimum severity of the repository's settings.".to_owned(),
        None => "It is not shown.".to_owned(),
    };
    vec![json!({"kind": "external", "status": "accepted", "justification": why})]
}

/// The tools' own fingerprints, and one of the title with the code: it stays the same when the code moves.
fn partial_fingerprints(one: &ReportedFinding) -> Map<String, Value> {
    let finding = &one.sighting.finding;
    let own =
        finding.code.as_ref().map(|code| ("canonryCode/v1".to_owned(), format!("{}:{code}", finding.fingerprint)));
    let tools = finding.partial.iter().map(|(name, value)| (name.clone(), value.clone()));
    tools.chain(own).map(|(name, value)| (name, Value::String(value))).collect()
}

fn properties(one: &ReportedFinding) -> Value {
    let finding = &one.sighting.finding;
    let category = finding.category.as_str();
    let tags = finding.tags.iter().map(String::as_str).filter(|tag| *tag != category);
    let tags: Vec<&str> = std::iter::once(category).chain(tags).collect();
    let witnesses: Vec<Value> =
        finding.witnesses.iter().map(|by| json!({"reviewer": by.reviewer, "rule": by.rule})).collect();
    let mut properties = json!({
        "tags": tags,
        "severity": finding.severity.as_str(),
        "confidence": one.confidence.get(),
        "fingerprint": finding.fingerprint,
        "status": one.sighting.status.as_str(),
        "visibility": one.shown.as_str(),
        "witnesses": witnesses,
    });
    if let Some(score) = security_severity(finding.severity, finding.category) {
        properties["security-severity"] = score.into();
    }
    if let Some(history) = one.history {
        properties["history"] = json!({"fixed": history.fixed, "total": history.total});
    }
    properties
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canonry_domain::review::{Category, FindingStatus, HiddenBy, Severity, ShownAs};
    use serde_json::{Value, json};

    use super::{code_scanning, sarif};
    use crate::output::sample::{finding, hidden, report, skipped, with_status};
    use crate::run::report::{ReviewReport, ReviewerRun};

    fn story() -> ReviewReport {
        let mut other = finding("src/b.rs", 3, "SQL injection", Severity::Minor);
        other.sighting.finding.category = Category::Style;
        other.sighting.finding.witnesses[0].rule = Some("rule-12".into());
        let mut whole = finding("we\\ird", 1, "Large file", Severity::Medium);
        whole.sighting.finding.lines = None;
        let mut report = report(vec![
            finding("src/ü b.rs", 12, "SQL injection", Severity::Critical),
            with_status(finding("a.rs", 1, "Same", Severity::Major), FindingStatus::Same, true),
            with_status(finding("a.rs", 2, "Same, edited", Severity::Major), FindingStatus::Same, false),
            with_status(finding("a.rs", 3, "Moved", Severity::Major), FindingStatus::Moved, true),
            with_status(finding("a.rs", 4, "Reopened", Severity::Major), FindingStatus::Reopened, false),
            hidden(
                with_status(finding("a.rs", 5, "Dismissed", Severity::Major), FindingStatus::Dismissed, true),
                HiddenBy::Dismissal,
            ),
            hidden(finding("a.rs", 6, "Naming", Severity::Minor), HiddenBy::Pattern("nam\"ing".into())),
            other,
            whole,
            with_status(finding("a.rs", 7, "Fixed", Severity::Major), FindingStatus::Fixed, true),
        ]);
        report.reviewers.push(ReviewerRun {
            name: "llm".into(),
            findings: 0,
            files: 0,
            problems: vec!["no answer".into()],
            notes: Vec::new(),
        });
        report.coverage.skipped =
            vec![skipped("big file.txt", "it is too large", true), skipped("a.bin", "it is binary", false)];
        report.notes = vec!["two commits without a common one".into()];
        report
    }

    #[test]
    fn what_became_of_each_is_in_the_formats_words() {
        let log = sarif(&story());
        let results = log["runs"][0]["results"].as_array().expect("results");
        let states: Vec<_> = (results.iter())
            .map(|one| {
                let title = one["message"]["text"].as_str().expect("a text");
                (
                    title,
                    one["baselineState"].as_str().expect("a state"),
                    one["suppressions"].as_array().expect("a list").len(),
                )
            })
            .collect();
        assert_eq!(
            states,
            [
                ("SQL injection", "new", 0),
                ("Same", "unchanged", 0),
                ("Same, edited", "updated", 0),
                ("Moved", "unchanged", 0),
                ("Reopened", "new", 0),
                ("Dismissed", "unchanged", 1),
                ("Naming", "new", 1),
                ("SQL injection", "new", 0),
                ("Large file", "new", 0),
                ("Fixed", "absent", 0),
            ]
        );
        assert_eq!(
            results[6]["suppressions"][0],
            json!({"kind": "external", "status": "accepted",
                "justification": "The repository's settings suppress it by the pattern \"nam\"ing\"."})
        );
    }

    #[test]
    fn a_replacement_is_a_fix() {
        let mut one = finding("a.rs", 5, "Naming", Severity::Minor);
        one.sighting.finding.replacement = Some("    let x = 1;".into());
        let log = sarif(&report(vec![one]));
        assert_eq!(
            log["runs"][0]["results"][0]["fixes"],
            json!([{"description": {"text": "Replace these lines."}, "artifactChanges": [{
                "artifactLocation": {"uri": "a.rs", "uriBaseId": "%SRCROOT%"},
                "replacements": [{
                    "deletedRegion": {"startLine": 5, "startColumn": 1, "endLine": 6, "endColumn": 1},
                    "insertedContent": {"text": "    let x = 1;\n"}}]}]}])
        );
    }

    #[test]
    fn one_result_in_full() {
        let log = sarif(&story());
        let run = &log["runs"][0];
        assert_eq!(
            run["results"][0],
            json!({
                "ruleId": "semgrep/rule-12", "ruleIndex": 0, "level": "error",
                "message": {"text": "SQL injection"},
                "locations": [{"physicalLocation": {
                    "artifactLocation": {"uri": "src/%C3%BC%20b.rs", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 12, "endLine": 12}}}],
                "baselineState": "new", "suppressions": [],
                "properties": {"tags": ["security"], "severity": "critical", "confidence": 95,
                    "fingerprint": run["results"][0]["properties"]["fingerprint"], "status": "new",
                    "visibility": "inline", "witnesses": [{"reviewer": "semgrep", "rule": "rule-12"}],
                    "security-severity": "9.5"},
                "partialFingerprints": run["results"][0]["partialFingerprints"],
            })
        );
        // One rule has findings of two categories: it gets the higher level and neither tag.
        assert_eq!(
            run["tool"]["driver"]["rules"][0],
            json!({"id": "semgrep/rule-12", "shortDescription": {"text": "SQL injection"},
                "defaultConfiguration": {"level": "error"}})
        );
        assert_eq!(
            run["invocations"][0],
            json!({"executionSuccessful": false, "toolExecutionNotifications": [
                {"level": "error", "message": {"text": "llm: no answer"}},
                {"level": "warning", "message": {"text": "The file was not read: it is too large"},
                 "locations": [{"physicalLocation": {"artifactLocation": {"uri": "big%20file.txt", "uriBaseId": "%SRCROOT%"}}}]},
                {"level": "note", "message": {"text": "The file was not read: it is binary"},
                 "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.bin", "uriBaseId": "%SRCROOT%"}}}]},
                {"level": "note", "message": {"text": "two commits without a common one"}}]})
        );
        assert_eq!(
            run["versionControlProvenance"],
            json!([{"repositoryUri": "https://github.com/octo/widgets", "revisionId": "b".repeat(40),
                "mappedTo": {"uriBaseId": "%SRCROOT%"}, "branch": "topic"}])
        );
    }

    #[test]
    fn code_scanning_gets_what_stands() {
        let log = code_scanning(&story());
        check(&log);
        let results = log["runs"][0]["results"].as_array().expect("results");
        let titles: Vec<&str> = results.iter().filter_map(|one| one["message"]["text"].as_str()).collect();
        assert_eq!(
            titles,
            ["SQL injection", "Same", "Same, edited", "Moved", "Reopened", "SQL injection", "Large file"]
        );
        assert!(results.iter().all(|one| one["suppressions"] == json!([]) && one["baselineState"] != "absent"));
        let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
        assert_eq!(rules.len(), 5, "of what is left out there is no rule either");
    }

    #[test]
    fn a_repository_that_github_does_not_have_has_no_address() {
        let mut local = story();
        local.repo = "local/widgets".parse().expect("a name");
        let log = sarif(&local);
        check(&log);
        assert_eq!(log["runs"][0].get("versionControlProvenance"), None);
        assert!(!log.to_string().contains("github.com/local"), "{log}");
        assert_eq!(log["runs"][0]["properties"]["headSha"], "b".repeat(40));
    }

    /// Checks everything that is written against the rules of SARIF 2.1.0, by the sections of the standard.
    fn check(log: &Value) {
        let keys = |value: &Value, allowed: &[&str]| {
            for key in value.as_object().expect("an object").keys() {
                assert!(allowed.contains(&key.as_str()), "{key} in {value}");
            }
        };
        keys(log, &["$schema", "version", "runs"]);
        assert_eq!(log["version"], "2.1.0");
        for run in log["runs"].as_array().expect("3.13.4: runs") {
            keys(
                run,
                &[
                    "tool",
                    "automationDetails",
                    "originalUriBaseIds",
                    "versionControlProvenance",
                    "invocations",
                    "results",
                    "properties",
                ],
            );
            let driver = &run["tool"]["driver"];
            assert!(driver["name"].as_str().is_some_and(|name| !name.is_empty()), "3.19.8: name");
            assert!(
                driver["informationUri"].as_str().is_some_and(|uri| uri.starts_with("https://")),
                "3.19.17: absolute"
            );
            let version: Vec<&str> = driver["semanticVersion"].as_str().expect("3.19.12").split('.').collect();
            assert_eq!(version.len(), 3);
            let rules = driver["rules"].as_array().expect("rules");
            let ids: BTreeSet<&str> = rules.iter().map(|rule| rule["id"].as_str().expect("3.49.3: id")).collect();
            assert_eq!(ids.len(), rules.len(), "an id is one rule's");
            for rule in rules {
                keys(rule, &["id", "shortDescription", "defaultConfiguration", "properties"]);
                assert!(rule["shortDescription"]["text"].as_str().is_some_and(|text| !text.is_empty()), "3.12.3");
                assert!(
                    ["error", "warning", "note"]
                        .contains(&rule["defaultConfiguration"]["level"].as_str().expect("a level"))
                );
            }
            for base in run["originalUriBaseIds"].as_object().expect("3.14.14").values() {
                keys(base, &["description"]);
            }
            for invocation in run["invocations"].as_array().expect("3.14.11") {
                keys(invocation, &["executionSuccessful", "toolExecutionNotifications"]);
                assert!(invocation["executionSuccessful"].is_boolean(), "3.20.14: required");
                for notification in invocation["toolExecutionNotifications"].as_array().expect("3.20.21") {
                    keys(notification, &["level", "message", "locations"]);
                    assert!(notification["message"]["text"].is_string(), "3.58.5: message");
                }
            }
            for provenance in run["versionControlProvenance"].as_array().into_iter().flatten() {
                assert!(
                    provenance["repositoryUri"].as_str().is_some_and(|uri| uri.contains("://")),
                    "3.23.3: absolute"
                );
            }
            for result in run["results"].as_array().expect("results") {
                check_result(result, rules, &run["originalUriBaseIds"]);
            }
        }
    }

    fn check_result(result: &Value, rules: &[Value], bases: &Value) {
        let known = [
            "ruleId",
            "ruleIndex",
            "level",
            "message",
            "locations",
            "baselineState",
            "suppressions",
            "properties",
            "partialFingerprints",
        ];
        assert!(result.as_object().expect("a result").keys().all(|key| known.contains(&key.as_str())));
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("3.27.6")).expect("small");
        assert_eq!(rules[index]["id"], result["ruleId"], "3.27.5: the rule at the index has the id");
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().expect("3.27.10")));
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "3.27.11: required");
        assert!(
            ["new", "unchanged", "updated", "absent"].contains(&result["baselineState"].as_str().expect("3.27.24"))
        );
        for suppression in result["suppressions"].as_array().expect("3.27.23: with one, all have the list") {
            assert_eq!(
                (&suppression["kind"], &suppression["status"]),
                (&json!("external"), &json!("accepted")),
                "3.35"
            );
        }
        for location in result["locations"].as_array().expect("3.27.12") {
            let physical = &location["physicalLocation"];
            let artifact = &physical["artifactLocation"];
            let uri = artifact["uri"].as_str().expect("3.4.3");
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte);
            assert!(uri.bytes().all(is_allowed) && !uri.starts_with('/'), "RFC 3986: {uri}");
            assert!(bases.get(artifact["uriBaseId"].as_str().expect("a base")).is_some(), "3.4.4");
            if let Some(region) = physical.get("region") {
                let (first, last) = (region["startLine"].as_u64(), region["endLine"].as_u64());
                assert!(first.is_some_and(|first| first >= 1) && first <= last, "3.30.5: {region}");
            }
        }
        if let Some(fingerprints) = result.get("partialFingerprints") {
            assert!(fingerprints.as_object().expect("3.27.17").values().all(Value::is_string));
        }
        let tags: Vec<&str> = result["properties"]["tags"]
            .as_array()
            .expect("3.8.2")
            .iter()
            .map(|tag| tag.as_str().expect("a tag"))
            .collect();
        assert_eq!(tags.len(), tags.iter().collect::<BTreeSet<_>>().len(), "3.8.2: tags are a set");
    }

    #[test]
    fn the_rules_of_the_format_hold() {
        check(&sarif(&story()));
        check(&sarif(&report(vec![])));
        assert_eq!(sarif(&report(vec![]))["runs"][0]["results"], json!([]));
        let mut low = finding("a.rs", 1, "x", Severity::Minor);
        low.shown = ShownAs::LowConfidence;
        low.sighting.finding.tags = ["security".to_owned(), "cwe-89".to_owned()].into();
        check(&sarif(&report(vec![low])));
    }
}
