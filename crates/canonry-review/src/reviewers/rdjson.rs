//! Reads results of other tools in the Reviewdog Diagnostic Format: one document, or one diagnostic per line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use canonry_domain::review::{Category, ReviewerName, RuleMeaning, Severity, rule_meaning};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json_problem::reason;
use super::report_text::{report_text, short_fix, short_name, tool_lines};
use super::tool_path::plain_path;
use crate::findings::reviewer_answer::{RawFinding, ReviewerAnswer, title_and_rest};

const TOLD: usize = 5;

/// The diagnostics of one report that are used: nobody reads more, and all of them may be about one line.
const MOST: usize = 50_000;

/// Reads diagnostics. Unusable ones become problems, and the others are kept. `name` is the file's name, for the
/// problems; `root` is the repository's folder as the tools saw it.
pub fn read_rdjson(name: &str, bytes: &[u8], root: Option<&Path>) -> ReviewerAnswer {
    let mut reading = RdjsonReader {
        root,
        heard: ReviewerAnswer::default(),
        tools: BTreeSet::new(),
        elsewhere: BTreeSet::new(),
        problems: Vec::new(),
        more: 0,
        is_complete: true,
    };
    let text = report_text(name, bytes, &mut reading.heard.problems);
    match serde_json::from_str::<RdjsonDocument>(&text) {
        Ok(document) => {
            // A tool without diagnostics has read the files as well.
            reading.tools.extend(document.source.iter().filter_map(tool_of));
            let (source, severity) = (document.source.as_ref(), document.severity.as_ref());
            for (at, diagnostic) in document.diagnostics.iter().enumerate() {
                reading.diagnostic(&format!("diagnostic {}", at + 1), diagnostic.get(), source, severity);
            }
        }
        // A document on one line would have parsed: this is not a document, but it may be lines.
        Err(error) => {
            let has_location =
                |line: &str| serde_json::from_str::<RdjsonProbe>(line).is_ok_and(|line| line.location.is_some());
            if !text.split('\n').any(has_location) {
                if !text.trim().is_empty() {
                    reading.heard.problems.push(format!("{name} is not used: it is not rdjson ({})", reason(&error)));
                }
                return reading.heard;
            }
            for (at, line) in text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                reading.diagnostic(&format!("line {}", at + 1), line, None, None);
            }
        }
    }
    reading.finish(name)
}

struct RdjsonReader<'a> {
    root: Option<&'a Path>,
    heard: ReviewerAnswer,
    tools: BTreeSet<ReviewerName>,
    /// Tools that report files outside of the repository.
    elsewhere: BTreeSet<ReviewerName>,
    problems: Vec<String>,
    more: usize,
    /// Whether everything that may be a finding was read. Nobody knows which tool an unreadable part belongs to.
    is_complete: bool,
}

impl RdjsonReader<'_> {
    fn diagnostic(&mut self, at: &str, diagnostic: &str, source: Option<&RdjsonSource>, severity: Option<&Value>) {
        if self.heard.reported.len() >= MOST {
            self.more += 1;
            self.is_complete = false;
            return;
        }
        match serde_json::from_str::<Diagnostic>(diagnostic) {
            Ok(diagnostic) => match self.reported(diagnostic, source, severity) {
                Ok(reported) => {
                    self.tools.insert(reported.reviewer.clone());
                    self.heard.reported.push(reported);
                }
                Err(why) => self.leave_out(at, why),
            },
            Err(error) => {
                self.is_complete = false;
                self.leave_out(at, if error.is_data() { "has another format" } else { "is no JSON" });
            }
        }
    }

    fn leave_out(&mut self, at: &str, why: &str) {
        match self.problems.len() < TOLD {
            true => self.problems.push(format!("{at} {why}")),
            false => self.more += 1,
        }
    }

    fn reported(
        &mut self,
        diagnostic: Diagnostic,
        source: Option<&RdjsonSource>,
        severity: Option<&Value>,
    ) -> Result<RawFinding, &'static str> {
        if diagnostic.message.trim().is_empty() {
            self.is_complete = false;
            return Err("says nothing");
        }
        let location = diagnostic.location.ok_or("is about no file")?;
        let reviewer = diagnostic.source.as_ref().or(source).and_then(tool_of);
        let reviewer = reviewer.unwrap_or_else(|| ReviewerName::tool("rdjson"));
        let Ok(path) = plain_path(&location.path, self.root) else {
            self.elsewhere.insert(reviewer);
            return Err("is about a file outside of the repository");
        };
        let range = location.range.unwrap_or_default();
        let lines = tool_lines(range.start.and_then(|one| one.line), range.end.and_then(|one| one.line));
        let (title, message) = title_and_rest(&diagnostic.message);
        let rule = diagnostic.code.and_then(|code| code.value).map(|rule| short_name(&rule));
        let rule = rule.filter(|rule| !rule.is_empty());
        let level = severity_of(diagnostic.severity.as_ref().or(severity));
        let own = RuleMeaning { severity: level, category: Category::Correctness };
        let meaning = rule_meaning(reviewer.as_str(), rule.as_deref().unwrap_or_default(), level).unwrap_or(own);
        Ok(RawFinding {
            reviewer,
            rule,
            title,
            message,
            path,
            lines,
            severity: meaning.severity,
            category: meaning.category,
            partial: BTreeMap::new(),
            tags: BTreeSet::new(),
            fix: diagnostic
                .suggestions
                .into_iter()
                .flatten()
                .find_map(|one| one.text)
                .map(|text| short_fix(&text).into()),
            is_serious: false,
            removed_code: None,
        })
    }

    fn finish(mut self, name: &str) -> ReviewerAnswer {
        let told = self.problems.into_iter().map(|problem| format!("{name}: {problem}; it is left out"));
        self.heard.problems.extend(told);
        if self.more > 0 {
            self.heard.problems.push(format!("{name}: {} more are left out", self.more));
        }
        // A tool that reports only files elsewhere may have seen the repository under another path.
        for reported in &self.heard.reported {
            self.elsewhere.remove(&reported.reviewer);
        }
        let looked = |tool: &ReviewerName| self.is_complete && !self.elsewhere.contains(tool);
        if let Some(last) = self.heard.problems.last_mut().filter(|_| !self.is_complete || !self.elsewhere.is_empty()) {
            last.push_str("; nothing counts as fixed");
        }
        self.heard.read = self.tools.into_iter().filter(looked).map(|tool| (tool, None)).collect();
        self.heard
    }
}

fn tool_of(source: &RdjsonSource) -> Option<ReviewerName> {
    source
        .name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| ReviewerName::tool(&short_name(name)))
}

/// A word, or its number in the format's enumeration.
fn severity_of(severity: Option<&Value>) -> Severity {
    match severity {
        Some(Value::String(word)) if word.eq_ignore_ascii_case("error") => Severity::Major,
        Some(Value::String(word)) if word.eq_ignore_ascii_case("info") => Severity::Minor,
        Some(Value::Number(number)) if number.as_u64() == Some(1) => Severity::Major,
        Some(Value::Number(number)) if number.as_u64() == Some(3) => Severity::Minor,
        _ => Severity::Medium,
    }
}

#[derive(Deserialize)]
struct RdjsonDocument<'a> {
    source: Option<RdjsonSource>,
    severity: Option<Value>,
    /// Parsed one by one, so that an invalid diagnostic does not spoil the others.
    #[serde(borrow)]
    diagnostics: Vec<&'a RawValue>,
}

/// The field that distinguishes a diagnostic from other JSON.
#[derive(Deserialize)]
struct RdjsonProbe {
    location: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RdjsonSource {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Diagnostic {
    #[serde(default)]
    message: String,
    location: Option<RdjsonLocation>,
    severity: Option<Value>,
    source: Option<RdjsonSource>,
    code: Option<RdjsonCode>,
    suggestions: Option<Vec<RdjsonSuggestion>>,
}

#[derive(Deserialize)]
struct RdjsonLocation {
    path: String,
    range: Option<RdjsonRange>,
}

#[derive(Deserialize, Default)]
struct RdjsonRange {
    start: Option<RdjsonPosition>,
    end: Option<RdjsonPosition>,
}

#[derive(Deserialize)]
struct RdjsonPosition {
    line: Option<i64>,
}

#[derive(Deserialize)]
struct RdjsonCode {
    value: Option<String>,
}

#[derive(Deserialize)]
struct RdjsonSuggestion {
    text: Option<String>,
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{LineRange, ReviewerName, Severity};

    use super::read_rdjson;

    #[test]
    fn a_document() {
        let document = r#"{"source": {"name": "ShellCheck"}, "severity": "INFO", "diagnostics": [
            {"message": "Quote this.\nGlobbing.", "location": {"path": "bin/run.sh", "range": {"start": {"line": 3, "column": 1}, "end": {"line": 4}}},
             "severity": "ERROR", "code": {"value": "SC2086", "url": "x"}, "suggestions": [{"range": {}, "text": "\"$a\""}]},
            {"message": "Whole file", "location": {"path": "./a%20b"}, "source": {"name": "other"}, "severity": 2},
            {"message": "By default", "location": {"path": "a"}}
        ]}"#;
        let heard = read_rdjson("r.json", document.as_bytes(), None);
        let seen: Vec<_> = (heard.reported.iter())
            .map(|one| {
                (
                    one.reviewer.as_str(),
                    one.rule.as_deref(),
                    one.title.as_str(),
                    one.path.as_str(),
                    one.lines,
                    one.severity,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("shellcheck", Some("SC2086"), "Quote this.", "bin/run.sh", LineRange::new(3, 4), Severity::Major),
                ("other", None, "Whole file", "a%20b", None, Severity::Medium),
                ("shellcheck", None, "By default", "a", None, Severity::Minor),
            ]
        );
        assert_eq!(heard.reported[0].message, "Globbing.");
        assert_eq!(heard.reported[0].fix.as_ref().and_then(|fix| fix.words.as_deref()), Some("\"$a\""));
        assert_eq!(heard.problems, [""; 0]);
        assert_eq!(heard.read, [(ReviewerName::tool("other"), None), (ReviewerName::tool("shellcheck"), None)]);
    }

    #[test]
    fn lines() {
        let lines = "{\"message\": \"One\", \"location\": {\"path\": \"a\"}, \"source\": {\"name\": \"x\"}}\n\nnonsense\n\
            {\"message\": \"\", \"location\": {\"path\": \"a\"}}\n{\"message\": \"Out\", \"location\": {\"path\": \"../b\"}}\n\
            {\"message\": \"Nowhere\"}\n{\"message\": 7}\n{\"message\": 8}\n{\"message\": 9}\n";
        let heard = read_rdjson("r.jsonl", lines.as_bytes(), None);
        assert_eq!(heard.reported.len(), 1);
        assert_eq!(
            heard.problems,
            [
                "r.jsonl: line 3 is no JSON; it is left out",
                "r.jsonl: line 4 says nothing; it is left out",
                "r.jsonl: line 5 is about a file outside of the repository; it is left out",
                "r.jsonl: line 6 is about no file; it is left out",
                "r.jsonl: line 7 has another format; it is left out",
                "r.jsonl: 2 more are left out; nothing counts as fixed",
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_fixes_nothing() {
        let good = r#"{"message": "One", "location": {"path": "a"}, "source": {"name": "x"}}"#;
        let elsewhere = r#"{"message": "Out", "location": {"path": "/usr/b.h"}, "source": {"name": "x"}}"#;
        let nowhere = r#"{"message": "Nowhere", "source": {"name": "x"}}"#;
        let heard = |lines: &[&str]| read_rdjson("r", lines.join("\n").as_bytes(), None);
        for (lines, reads) in [
            (vec![good], 1),
            (vec![good, elsewhere, nowhere], 1),
            (vec![good, &good[..40]], 0),
            (vec![good, r#"{"message": "", "location": {"path": "a"}}"#], 0),
            (vec![good, r#"{"message": 7}"#], 0),
            (vec![elsewhere], 0),
        ] {
            let heard = heard(&lines);
            assert_eq!(heard.read.len(), reads, "{lines:?}");
            let told = heard.problems.last().is_some_and(|last| last.ends_with("; nothing counts as fixed"));
            assert_eq!(told, reads == 0, "{:?}", heard.problems);
        }
        let moved = format!(r#"{{"source": {{"name": "x"}}, "diagnostics": [{elsewhere}]}}"#);
        assert_eq!(read_rdjson("r", moved.as_bytes(), None).read, []);
    }

    #[test]
    fn a_tool_with_nothing_to_say_has_looked() {
        let heard = read_rdjson("r", br#"{"source": {"name": "x"}, "diagnostics": []}"#, None);
        assert_eq!(heard.read, [(ReviewerName::tool("x"), None)]);
        let empty = read_rdjson("r", b" \n", None);
        assert_eq!((empty.problems.len(), empty.read.len()), (0, 0));
    }

    #[test]
    fn what_is_no_rdjson_is_told() {
        let cut = read_rdjson("r", br#"{"source": {"name": "x"}, "diagnostics": [{"mess"#, None);
        assert_eq!(cut.problems, ["r is not used: it is not rdjson (it ends early, line 1, column 48)"]);
        assert_eq!(cut.read, []);
        let other = read_rdjson("r", br#"{"runs": []}"#, None);
        assert_eq!(other.problems, ["r is not used: it is not rdjson (it has another format, line 1, column 12)"]);
    }
}
