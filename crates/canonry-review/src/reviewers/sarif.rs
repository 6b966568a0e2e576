//! Reads results of other tools in SARIF 2.1.0.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use canonry_domain::review::{Category, RepoPath, ReviewerName, RuleMeaning, Severity, rule_meaning};
use serde_json::Value;

use super::json_problem::reason;
use super::report_text::{report_text, short_fix, short_name, tool_lines};
use super::sarif_log::{ArtifactLocation, Properties, SarifArtifact, SarifLog, SarifResult, SarifRule, SarifRun};
use super::tool_path::{absolute_path, uri_path};
use crate::findings::reviewer_answer::{RawFinding, ReviewerAnswer, title_and_rest};

/// The problems of one kind that are listed one by one.
const TOLD: usize = 5;

/// The results of one report that are used: nobody reads more, and all of them may be about one line.
const MOST_RESULTS: usize = 50_000;

/// The fingerprints of a tool that are kept, and the longest of them: they are stored with each finding.
const PARTIAL: usize = 10;
const LONGEST_PARTIAL: usize = 300;

/// The folders of a run below which absolute paths are searched; runs name one or two.
const FOLDERS: usize = 20;

/// The reasons for dropping results that are not about files of the repository.
const ABOUT_NO_FILE: &str = "without a file";
const OUTSIDE: &str = "outside the repository";

/// The length at which a text is no longer filled with its arguments: each may be used a thousand times.
const LONGEST_TEXT: usize = 16_000;

/// Reads a SARIF file. Unusable results become problems, and the others are kept. `name` is the file's name, for the
/// problems; `root` is the repository's folder as the tools saw it.
pub fn read_sarif(name: &str, bytes: &[u8], root: Option<&Path>) -> ReviewerAnswer {
    let mut heard = ReviewerAnswer::default();
    let text = report_text(name, bytes, &mut heard.problems);
    let log: SarifLog = match serde_json::from_str(&text) {
        Ok(log) => log,
        Err(error) => {
            heard.problems.push(format!("{name} is not used: it is not SARIF ({})", reason(&error)));
            return heard;
        }
    };
    // A missing version is accepted, another version is not: 1.0 had other names for everything.
    if let Some(version) = log.version.as_str().filter(|version| !version.starts_with("2.")) {
        let version: String = version.chars().take(20).collect();
        heard.problems.push(format!("{name} is not used: it is SARIF {version:?}, and only 2.1.0 is supported"));
        return heard;
    }
    if log.runs.is_empty() {
        heard.problems.push(format!("{name} is not used: it has no runs"));
    }
    let mut failed = BTreeSet::new();
    let mut is_complete = true;
    for (at, run) in log.runs.iter().enumerate() {
        let run: SarifRun = match serde_json::from_str(run.get()) {
            Ok(run) => run,
            Err(_) => {
                heard
                    .problems
                    .push(format!("{name}: run {} is not valid SARIF and is skipped; nothing counts as fixed", at + 1));
                is_complete = false;
                continue;
            }
        };
        let tool = ReviewerName::tool(&short_name(&run.tool.driver.name));
        let revision = run.version_control_provenance.iter().find_map(|one| one.revision_id.as_deref());
        heard.linted.extend(revision.map(|revision| (tool.clone(), short_name(revision))));
        if run.invocations.iter().any(|one| one.execution_successful == Some(false)) {
            heard
                .problems
                .push(format!("{name}: {tool} did not finish; no finding counts as fixed because of this report"));
            failed.insert(tool.clone());
        }
        if !RunReading::new(name, &run, root, tool.clone()).read(&mut heard) {
            failed.insert(tool);
        }
    }
    // Nobody knows which tool an unreadable run belongs to.
    heard.read.retain(|(tool, _)| is_complete && !failed.contains(tool));
    heard
}

struct RunReading<'a> {
    name: &'a str,
    run: &'a SarifRun<'a>,
    root: Option<&'a Path>,
    tool: ReviewerName,
    /// The rules by id: there may be as many as results.
    rules: HashMap<&'a str, &'a SarifRule<'a>>,
    /// Folders that the run itself names, shortest first: its bases, and the tool's working directory.
    folders: Vec<String>,
    /// The dropped results by reason: their number, and the first of them.
    dropped: BTreeMap<&'static str, (usize, Vec<String>)>,
    is_complete: bool,
}

impl<'a> RunReading<'a> {
    fn new(name: &'a str, run: &'a SarifRun<'a>, root: Option<&'a Path>, tool: ReviewerName) -> Self {
        let rules = run.tool.driver.rules.iter().chain(run.tool.extensions.iter().flat_map(|one| &one.rules));
        // The first rule with an id counts.
        let rules = rules.collect::<Vec<_>>().into_iter().rev().map(|rule| (rule.id.as_str(), rule)).collect();
        let ran_in = run.invocations.iter().filter_map(|one| one.working_directory.as_ref());
        let named = run.original_uri_base_ids.values().chain(ran_in).filter_map(|one| one.uri.as_deref());
        let folders: BTreeSet<String> = named.filter_map(absolute_path).filter(|folder| folder.len() > 1).collect();
        // The shortest is the root of the repository, if the others are folders in it.
        let mut folders: Vec<String> = folders.into_iter().collect();
        folders.sort_by_key(String::len);
        folders.truncate(FOLDERS);
        Self { name, run, root, tool, rules, folders, dropped: BTreeMap::new(), is_complete: true }
    }

    /// Reads the run. Returns whether everything that may be a finding could be read.
    fn read(mut self, heard: &mut ReviewerAnswer) -> bool {
        let before = heard.reported.len();
        for (at, result) in self.run.results.iter().enumerate() {
            if heard.reported.len() >= MOST_RESULTS {
                let (name, tool, left) = (self.name, &self.tool, self.run.results.len() - at);
                let why = format!("after the first {MOST_RESULTS}; no finding counts as fixed because of this report");
                heard.problems.push(format!("{name}: {} of {tool} left out, {why}", results(left)));
                self.is_complete = false;
                break;
            }
            let Ok(result) = serde_json::from_str::<SarifResult>(result.get()) else {
                self.leave_out("because they are not valid SARIF", "a result in another format");
                continue;
            };
            // A result that is suppressed in the source, or that reports no problem, is not a finding.
            let is_finding = result.kind.as_deref().is_none_or(|kind| matches!(kind, "fail" | "open" | "review"));
            let accepted = |status: Option<&str>| status.is_none_or(|status| status == "accepted");
            let is_suppressed = result.suppressions.iter().any(|one| accepted(one.status.as_deref()));
            if is_finding && result.baseline_state.as_deref() != Some("absent") {
                // A comment in the change itself cannot silence a critical finding.
                let reported = self.reported(&result);
                heard.reported.extend(reported.filter(|one| !is_suppressed || one.severity == Severity::Critical));
            }
        }
        let used = heard.reported.len() > before;
        for (why, (number, shown)) in &self.dropped {
            let more = if *number > TOLD { format!(" and {} more", number - TOLD) } else { String::new() };
            let (name, tool, shown) = (self.name, &self.tool, shown.join(", "));
            // A result about no file is never a finding. A tool that reports only files elsewhere may have seen the
            // repository under another path.
            let may_be_findings = *why != ABOUT_NO_FILE && (*why != OUTSIDE || !used);
            self.is_complete &= !may_be_findings;
            let fixed = if may_be_findings { "; no finding counts as fixed because of this report" } else { "" };
            let told = format!("{name}: {} of {tool} left out, {why}: {shown}{more}{fixed}", results(*number));
            if may_be_findings { heard.problems.push(told) } else { heard.notes.push(told) }
        }
        if self.is_complete {
            heard.read.push((self.tool.clone(), self.targets()));
        }
        self.is_complete
    }

    fn leave_out(&mut self, why: &'static str, what: &str) {
        let (number, shown) = self.dropped.entry(why).or_default();
        *number += 1;
        if shown.len() < TOLD {
            shown.push(short_name(what).chars().take(100).collect());
        }
    }

    /// The files that the tool analysed, if the run lists them.
    fn targets(&self) -> Option<BTreeSet<RepoPath>> {
        let is_target = |artifact: &&SarifArtifact| artifact.roles.iter().any(|role| role == "analysisTarget");
        let targets = self.run.artifacts.iter().filter(is_target);
        let paths: BTreeSet<RepoPath> = targets.filter_map(|one| self.path(one.location.as_ref()?).ok()).collect();
        (!paths.is_empty()).then_some(paths)
    }

    fn reported(&mut self, result: &SarifResult) -> Option<RawFinding> {
        let rule = self.rule_of(result);
        let rule_id = result
            .rule_id
            .clone()
            .or_else(|| result.rule.as_ref()?.id.clone())
            .or_else(|| rule.map(|rule| rule.id.clone()))
            .map(|id| short_name(&id));
        let text = text_of(result, rule);
        let named = || rule_id.clone().unwrap_or_else(|| "a result without a rule".to_owned());
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            self.leave_out("which say nothing", &named());
            return None;
        };
        let location = result.locations.iter().find_map(|location| location.physical_location.as_ref());
        let Some((location, artifact)) = location.and_then(|one| Some((one, one.artifact_location.as_ref()?))) else {
            self.leave_out(ABOUT_NO_FILE, &named());
            return None;
        };
        let path = match self.path(artifact) {
            Ok(path) => path,
            Err(why) => {
                self.leave_out(why, &named());
                return None;
            }
        };
        let region = location.region.as_ref();
        let lines = tool_lines(region.and_then(|one| one.start_line), region.and_then(|one| one.end_line));
        let properties = Properties::of(result.properties);
        let of_rule = Properties::of(rule.and_then(|rule| rule.properties));
        let tags: BTreeSet<String> = [&properties, &of_rule].into_iter().flat_map(tags_of).collect();
        let (title, message) = title_and_rest(&text);
        let level = level_of(result, rule);
        let own = RuleMeaning { severity: level, category: Category::Correctness };
        let meaning = rule_meaning(self.tool.as_str(), rule_id.as_deref().unwrap_or_default(), level).unwrap_or(own);
        let category = category_of(&tags).unwrap_or(meaning.category);
        let scored = [&properties, &of_rule].into_iter().find_map(security_severity).and_then(scored_severity);
        let is_serious = scored.is_some() || (self.tool.as_str() == "codeql" && category == Category::Security);
        Some(RawFinding {
            reviewer: self.tool.clone(),
            rule: rule_id,
            title,
            message,
            path,
            lines,
            severity: scored.unwrap_or(meaning.severity),
            category,
            partial: result
                .partial_fingerprints
                .iter()
                .chain(&result.fingerprints)
                .filter_map(|(name, value)| Some((name, value.as_str()?)))
                .filter(|(name, value)| name.len() + value.len() <= LONGEST_PARTIAL)
                .take(PARTIAL)
                .map(|(name, value)| (name.clone(), value.to_owned()))
                .collect(),
            tags: tags.into_iter().filter_map(|tag| weakness(&tag)).collect(),
            fix: result
                .fixes
                .iter()
                .find_map(|fix| fix.description.as_ref()?.text.as_deref())
                .map(|text| short_fix(text).into()),
            is_serious,
            removed_code: None,
        })
    }

    fn path(&self, location: &ArtifactLocation) -> Result<RepoPath, &'static str> {
        let indexed = || self.run.artifacts.get(usize::try_from(location.index?).ok()?)?.location.as_ref();
        let (uri, base) = match &location.uri {
            Some(uri) => (uri.clone(), location.uri_base_id.as_ref()),
            None => {
                indexed().and_then(|one| Some((one.uri.clone()?, one.uri_base_id.as_ref()))).ok_or(ABOUT_NO_FILE)?
            }
        };
        let base = base.and_then(|base| self.run.original_uri_base_ids.get(base)).and_then(|base| base.uri.clone());
        match (uri_path(&uri, self.root), base) {
            // A base that is itself inside the repository, such as `src/`.
            (Ok(path), Some(base)) => match uri_path(&base, self.root) {
                Ok(base) => RepoPath::new(&format!("{base}/{path}")).map_err(|_| OUTSIDE),
                Err(_) => Ok(path),
            },
            (Ok(path), None) => Ok(path),
            (Err(_), _) => self.below_a_known_folder(&uri).ok_or(OUTSIDE),
        }
    }

    /// The path of an absolute URI below a folder that the run itself names.
    fn below_a_known_folder(&self, uri: &str) -> Option<RepoPath> {
        self.folders.iter().find_map(|root| uri_path(uri, Some(Path::new(root))).ok())
    }

    fn rule_of(&self, result: &SarifResult) -> Option<&'a SarifRule<'a>> {
        let reference = result.rule.as_ref();
        let component = reference.and_then(|rule| rule.tool_component.as_ref()?.index);
        let rules = match component.and_then(|index| usize::try_from(index).ok()) {
            Some(index) => &self.run.tool.extensions.get(index)?.rules,
            None => &self.run.tool.driver.rules,
        };
        let index =
            result.rule_index.or(reference.and_then(|rule| rule.index)).and_then(|index| usize::try_from(index).ok());
        let id = result.rule_id.as_deref().or(reference.and_then(|rule| rule.id.as_deref()));
        // If both are given they should agree; a sub-rule `a/b` belongs to the rule `a`.
        let by_id = || {
            let id = id?;
            let families = id.rmatch_indices('/').take(10).map(|(at, _)| &id[..at]);
            std::iter::once(id).chain(families).find_map(|id| self.rules.get(id)).copied()
        };
        index.and_then(|index| rules.get(index)).or_else(by_id)
    }
}

fn results(number: usize) -> String {
    if number == 1 { "1 result".to_owned() } else { format!("{number} results") }
}

/// The severity of a security score; `None` for a score below 7, which says less than the rule itself.
fn scored_severity(score: f64) -> Option<Severity> {
    match score {
        score if score >= 9.0 => Some(Severity::Critical),
        score if score >= 7.0 => Some(Severity::Major),
        _ => None,
    }
}

/// The severity that the tool's own level stands for.
fn level_of(result: &SarifResult, rule: Option<&SarifRule>) -> Severity {
    let configured = || rule?.default_configuration.as_ref()?.level.as_deref();
    match result.level.as_deref().or_else(configured).unwrap_or("warning") {
        "error" => Severity::Major,
        "note" | "none" => Severity::Minor,
        _ => Severity::Medium,
    }
}

/// A number, or a number in a string: tools differ.
fn security_severity(properties: &Properties) -> Option<f64> {
    let value = &properties.security_severity;
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|score| score.is_finite())
}

fn tags_of(properties: &Properties) -> Vec<String> {
    let tags = properties.tags.as_array().into_iter().flatten();
    tags.filter_map(Value::as_str).map(str::to_lowercase).take(50).collect()
}

/// The category that the tags name; `None` if they name none.
fn category_of(tags: &BTreeSet<String>) -> Option<Category> {
    let has = |words: &[&str]| {
        tags.iter().any(|tag| words.iter().any(|word| tag.split(['/', ':', ' ']).any(|part| part == *word)))
    };
    if has(&["security", "vulnerability"]) || tags.iter().any(|tag| weakness(tag).is_some()) {
        Some(Category::Security)
    } else if has(&["performance", "efficiency"]) {
        Some(Category::Performance)
    } else if has(&["style", "maintainability", "readability", "convention", "formatting", "complexity"]) {
        Some(Category::Style)
    } else if has(&["documentation", "docs"]) {
        Some(Category::Documentation)
    } else {
        None
    }
}

/// `cwe-89` from `external/cwe/cwe-089` and the like.
fn weakness(tag: &str) -> Option<String> {
    let tag = tag.to_lowercase();
    let digits: String = tag.split("cwe-").nth(1)?.chars().take_while(char::is_ascii_digit).collect();
    Some(format!("cwe-{}", digits.parse::<u32>().ok()?))
}

fn text_of(result: &SarifResult, rule: Option<&SarifRule>) -> Option<String> {
    let message = &result.message;
    let looked_up = || rule?.message_strings.get(message.id.as_ref()?)?.text.as_deref();
    let described = || rule?.short_description.as_ref()?.text.as_deref();
    let text = message.text.as_deref().or_else(looked_up).or_else(described)?;
    Some(filled(text, &message.arguments))
}

/// A text with its arguments in place of `{0}`, `{1}`, …; placeholders in arguments are not replaced.
fn filled(text: &str, arguments: &[String]) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{').filter(|_| !arguments.is_empty() && filled.len() < LONGEST_TEXT) {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
        let argument = rest[..digits].parse::<usize>().ok().and_then(|index| arguments.get(index));
        match argument.zip(rest[digits..].strip_prefix('}')) {
            Some((argument, behind)) => {
                filled.extend(argument.chars().take(LONGEST_TEXT));
                rest = behind;
            }
            None => filled.push('{'),
        }
    }
    filled + rest
}
