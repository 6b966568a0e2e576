//! Parses a settings file section by section.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::check::{SettingFault, check, duplicate_key, no_mapping, unknown_key};
use crate::document::{Position, YamlContent, YamlKey, YamlNode, read_document};
use crate::schema::SCHEMA;
use crate::{ProblemEffect, RepoConfig, SettingsProblem, SettingsSection};

pub const SETTINGS_FILE: &str = ".canonry.yml";

/// The largest accepted file, in bytes: the default settings take about one thousand.
pub const MAX_FILE_BYTES: usize = 256 * 1024;

const OUTDATED_PLACEHOLDER: &str = "{confidence}";

/// A file with more unknown keys is not a settings file, and a problem for each key helps nobody.
const MAX_UNKNOWN_SECTIONS: usize = 50;

/// The parsed settings and the problems of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedSettings {
    /// The settings, with defaults for everything that the file does not set or sets wrongly.
    pub config: RepoConfig,
    /// Sorted by line and column.
    pub problems: Vec<SettingsProblem>,
}

impl ParsedSettings {
    /// Returns the first section that forbids all closes and plans because a mistake reset it to its defaults: the
    /// unreadable part may contain a protected label.
    pub fn unsafe_to_close_by(&self) -> Option<SettingsSection> {
        [SettingsSection::Close, SettingsSection::Triage].into_iter().find(|section| self.fell_back(*section))
    }

    /// Whether a section has its defaults because of a mistake, not by choice. A top-level key that was probably
    /// meant as the section, or as one of its keys, counts as a mistake too.
    pub fn fell_back(&self, section: SettingsSection) -> bool {
        self.problems.iter().any(|problem| match problem.effect {
            ProblemEffect::FileDefaults => true,
            ProblemEffect::SectionDefaults => problem.section == Some(section),
            ProblemEffect::EntryDropped | ProblemEffect::PlaceholderOutdated => false,
            ProblemEffect::KeyIgnored => problem
                .suggestion
                .as_deref()
                .is_some_and(|suggestion| suggestion.split('.').next() == Some(section.as_str())),
        })
    }

    fn all_defaults(at: Position, message: String) -> Self {
        Self {
            config: RepoConfig::default(),
            problems: vec![SettingsProblem {
                section: None,
                path: String::new(),
                line: at.line,
                column: at.column,
                message,
                suggestion: None,
                effect: ProblemEffect::FileDefaults,
            }],
        }
    }
}

/// Parses the bytes of a settings file, which may not be text.
pub fn parse_bytes(bytes: &[u8]) -> ParsedSettings {
    if bytes.len() > MAX_FILE_BYTES {
        return too_large(bytes.len());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let last_line = before.rsplit('\n').next().unwrap_or_default();
            let at = Position { line: 1 + before.matches('\n').count(), column: 1 + last_line.chars().count() };
            ParsedSettings::all_defaults(at, "the file is not UTF-8 text".to_owned())
        }
    }
}

/// Parses a settings file.
///
/// This never fails: [`ParsedSettings::problems`] lists what cannot be used, and the rest applies.
pub fn parse(text: &str) -> ParsedSettings {
    if text.len() > MAX_FILE_BYTES {
        return too_large(text.len());
    }
    let root = match read_document(text) {
        Ok(root) => root,
        Err(error) => return ParsedSettings::all_defaults(error.at, error.message),
    };
    match root.content.as_ref() {
        YamlContent::Null => ParsedSettings { config: RepoConfig::default(), problems: Vec::new() },
        YamlContent::Map(entries) => parse_sections(entries),
        _ => ParsedSettings::all_defaults(root.at, format!("the file {}", no_mapping(&root))),
    }
}

fn too_large(bytes: usize) -> ParsedSettings {
    ParsedSettings::all_defaults(
        Position { line: 1, column: 1 },
        format!("the file is too large: {bytes} bytes, limit {MAX_FILE_BYTES}; shorten it"),
    )
}

fn parse_sections(entries: &[(YamlKey, YamlNode)]) -> ParsedSettings {
    let mut config = RepoConfig::default();
    let mut problems = Vec::new();
    for (key, _) in entries {
        if key.text.parse::<SettingsSection>().is_ok() {
            continue;
        }
        if problems.len() == MAX_UNKNOWN_SECTIONS {
            return ParsedSettings::all_defaults(
                key.at,
                format!("the file has more than {MAX_UNKNOWN_SECTIONS} unknown sections"),
            );
        }
        let fault = unknown_key(&SCHEMA, key, "");
        problems.push(problem(fault, None, ProblemEffect::KeyIgnored));
    }
    for section in SettingsSection::ALL.iter().copied() {
        let mut written = entries.iter().filter(|(key, _)| key.text == section.as_str());
        let Some((first, node)) = written.next() else {
            continue;
        };
        let (read, faults) = match written.next() {
            // It is unknown which of the two was meant, so neither counts.
            Some((second, _)) => (Read::Defaults, vec![duplicate_key(second, first.at, "")]),
            None => read_section(&mut config, section, node),
        };
        if matches!(read, Read::Written) {
            problems.extend(outdated_placeholder(section, node));
        }
        // If the section falls back to its defaults, its lists do too.
        let effect = match read {
            Read::Written => ProblemEffect::EntryDropped,
            Read::Defaults => ProblemEffect::SectionDefaults,
        };
        problems.extend(faults.into_iter().map(|fault| problem(fault, Some(section), effect)));
    }
    problems.sort_by_key(|problem| (problem.line, problem.column));
    ParsedSettings { config, problems }
}

enum Read {
    Written,
    Defaults,
}

/// Sets a section of the settings, unless the whole section is invalid.
fn read_section(config: &mut RepoConfig, section: SettingsSection, node: &YamlNode) -> (Read, Vec<SettingFault>) {
    let schema = &SCHEMA["properties"][section.as_str()];
    let (value, mut faults) = check(schema, node, section.as_str());
    let Some(value) = value else {
        return (Read::Defaults, faults);
    };
    let filled = match section {
        SettingsSection::Review => fill(&mut config.review, value),
        SettingsSection::Feedback => fill(&mut config.feedback, value),
        SettingsSection::Knowledge => fill(&mut config.knowledge, value),
        SettingsSection::Triage => fill(&mut config.triage, value),
        SettingsSection::Close => fill(&mut config.close, value),
        SettingsSection::Mentions => fill(&mut config.mentions, value),
        SettingsSection::Budget => fill(&mut config.budget, value),
    };
    // The schema is generated from the types, so this cannot fail; if it ever did, the section must count as fallen
    // back to its defaults and not as read.
    if let Err(error) = filled {
        faults.push(SettingFault {
            path: section.to_string(),
            at: node.at,
            message: format!("`{section}` cannot be used: {error}"),
            suggestion: None,
        });
        return (Read::Defaults, faults);
    }
    (Read::Written, faults)
}

/// A closing comment that names a confidence: comments contain no percentages any more.
fn outdated_placeholder(section: SettingsSection, node: &YamlNode) -> Option<SettingsProblem> {
    let (SettingsSection::Close, YamlContent::Map(entries)) = (section, node.content.as_ref()) else { return None };
    let (key, _) = entries.iter().find(|(key, value)| {
        let YamlContent::Text(text) = value.content.as_ref() else { return false };
        key.text == "message" && text.contains(OUTDATED_PLACEHOLDER)
    })?;
    let path = format!("{section}.{}", key.text);
    let message = format!("`{path}` contains `{OUTDATED_PLACEHOLDER}`: remove it, comments contain no percentages");
    let fault = SettingFault { path, at: key.at, message, suggestion: None };
    Some(problem(fault, Some(section), ProblemEffect::PlaceholderOutdated))
}

fn fill<T: DeserializeOwned>(slot: &mut T, value: Value) -> Result<(), serde_json::Error> {
    *slot = serde_json::from_value(value)?;
    Ok(())
}

fn problem(fault: SettingFault, section: Option<SettingsSection>, effect: ProblemEffect) -> SettingsProblem {
    SettingsProblem {
        section,
        path: fault.path,
        line: fault.at.line,
        column: fault.at.column,
        message: fault.message,
        suggestion: fault.suggestion,
        effect,
    }
}
