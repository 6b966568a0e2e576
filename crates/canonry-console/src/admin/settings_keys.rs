//! What each setting does, its value, and a proposed change to the settings file.

use canonry_config::{KeyReference, Preset, RepoConfig, SETTINGS_FILE, parse, settings_reference};
use canonry_domain::RepoName;
use serde_json::Value;
use url::Url;

use crate::admin::settings_file_change::{changed_file, replace_value};
use crate::layout::markdown::markdown;
use crate::layout::marked_text::MarkedText;
use crate::layout::paging::link;

pub(crate) struct SettingsSectionView {
    pub(crate) name: String,
    pub(crate) meaning: String,
    pub(crate) keys: Vec<SettingView>,
    /// How many values differ from their defaults, in words.
    pub(crate) changed: Option<String>,
    /// Whether one of the section's settings is being changed.
    pub(crate) is_open: bool,
}

pub(crate) struct SettingView {
    pub(crate) path: String,
    /// The path without its section.
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) default: String,
    pub(crate) is_changed: bool,
    pub(crate) meaning: MarkedText,
    /// The address where a change is proposed.
    pub(crate) change: String,
}

/// A change of one setting that may still lack its value.
pub(crate) struct SettingChange {
    pub(crate) path: String,
    pub(crate) meaning: MarkedText,
    pub(crate) kind: String,
    pub(crate) range: String,
    pub(crate) choices: Vec<String>,
    pub(crate) value: String,
    /// The lines for the file, once the chosen value is valid.
    pub(crate) snippet: Option<String>,
    /// The whole file with the change, if there is a file that can be changed by a rule.
    pub(crate) file: Option<String>,
    pub(crate) problem: Option<String>,
}

/// An example settings file.
pub(crate) struct PresetChoice {
    pub(crate) name: &'static str,
    pub(crate) effect: &'static str,
    pub(crate) link: Option<String>,
}

pub(crate) fn settings_sections(config: &RepoConfig, here: &str, changed: Option<&str>) -> Vec<SettingsSectionView> {
    let (values, defaults) = (plain(config), plain(&RepoConfig::default()));
    let view = |key: KeyReference| {
        let (value, default) = (value_at(&values, &key.path), value_at(&defaults, &key.path));
        SettingView {
            is_changed: value != default,
            value: in_words(value),
            default: in_words(default),
            change: format!("{}#change", link(here, &[("change", &key.path)])),
            meaning: markdown(&key.meaning),
            name: key.path.split_once('.').map_or_else(|| key.path.clone(), |(_, name)| name.to_owned()),
            path: key.path,
        }
    };
    let sections = settings_reference().into_iter().map(|section| {
        let keys: Vec<SettingView> = section.keys.into_iter().filter(is_single).map(view).collect();
        let count = keys.iter().filter(|key| key.is_changed).count();
        SettingsSectionView {
            name: section.name,
            meaning: section.meaning,
            changed: (count > 0).then(|| format!("{count} set")),
            is_open: keys.iter().any(|key| Some(key.path.as_str()) == changed),
            keys,
        }
    });
    sections.collect()
}

/// The change of the setting at `path` to `value`, which may still be empty, in a file with this text; `None` for an
/// unknown setting.
pub(crate) fn setting_change(text: Option<&str>, path: &str, value: &str) -> Option<SettingChange> {
    let keys = settings_reference().into_iter().flat_map(|section| section.keys).filter(is_single);
    let key = keys.into_iter().find(|key| key.path == path)?;
    let (snippet, problem) = match snippet(path, value) {
        None => (None, None),
        Some(snippet) => match parse(&snippet).problems.first() {
            None => (Some(snippet), None),
            Some(problem) => (None, Some(problem.message.clone())),
        },
    };
    let current = in_words(value_at(&plain(&parse(text.unwrap_or_default()).config), path));
    let file = text.filter(|_| snippet.is_some()).and_then(|text| changed_file(text, path, value));
    Some(SettingChange {
        path: key.path,
        meaning: markdown(&key.meaning),
        kind: key.kind.replace('`', ""),
        range: key.range,
        choices: key.choices,
        value: if value.is_empty() { current } else { value.to_owned() },
        snippet,
        file,
        problem,
    })
}

pub(crate) fn presets(web: Option<&Url>, repo: &RepoName) -> Vec<PresetChoice> {
    let choice = |preset: &Preset| PresetChoice {
        name: preset.as_str(),
        effect: preset.effect(),
        link: web.and_then(|web| new_file(web, repo, &preset.file())),
    };
    Preset::ALL.iter().map(choice).collect()
}

/// The GitHub page that creates the file with this text on the default branch.
pub(crate) fn new_file(web: &Url, repo: &RepoName, text: &str) -> Option<String> {
    let mut address = on_default_branch(web, repo, "new", None)?;
    address.query_pairs_mut().append_pair("filename", SETTINGS_FILE).append_pair("value", text);
    Some(address.into())
}

/// The GitHub page that edits the file on the default branch.
pub(crate) fn edit_file(web: &Url, repo: &RepoName) -> Option<String> {
    on_default_branch(web, repo, "edit", Some(SETTINGS_FILE)).map(Into::into)
}

fn on_default_branch(web: &Url, repo: &RepoName, action: &str, file: Option<&str>) -> Option<Url> {
    let mut address = web.clone();
    let parts = [repo.owner(), repo.name(), action, "HEAD"];
    address.path_segments_mut().ok()?.pop_if_empty().extend(parts).extend(file);
    Some(address)
}

/// A key inside a list entry has no value of its own.
fn is_single(key: &KeyReference) -> bool {
    !key.path.contains("[]")
}

pub(crate) fn plain(config: &RepoConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

fn value_at<'a>(values: &'a Value, path: &str) -> &'a Value {
    values.pointer(&format!("/{}", path.replace('.', "/"))).unwrap_or(&Value::Null)
}

/// A value as the file would contain it.
fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::Array(entries) => {
            let entries: Vec<String> = entries.iter().map(in_words).collect();
            format!("[{}]", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// The lines that set a value, one key a line; `None` without a value, or if it has several lines.
fn snippet(path: &str, value: &str) -> Option<String> {
    if value.is_empty() || value.chars().any(char::is_control) {
        return None;
    }
    replace_value("", path, value)
}

#[cfg(test)]
mod tests {
    use canonry_config::parse;

    use super::{edit_file, new_file, presets, setting_change, settings_sections};

    #[test]
    fn every_setting_is_shown_with_its_value_and_meaning() {
        let config = parse("triage:\n  mode: suggest\n").config;
        let sections = settings_sections(&config, "/r/a/b/settings", None);
        let triage = sections.iter().find(|section| section.name == "triage").expect("the section");
        let mode = triage.keys.iter().find(|key| key.path == "triage.mode").expect("the key");
        assert_eq!((mode.value.as_str(), mode.is_changed, triage.changed.as_deref()), ("suggest", true, Some("1 set")));
        assert!(
            !triage.is_open && sections.iter().all(|section| section.name == "triage" || section.changed.is_none())
        );
        assert_eq!(mode.change, "/r/a/b/settings?change=triage.mode#change");
        for key in sections.iter().flat_map(|section| &section.keys) {
            assert!(!key.meaning.to_string().is_empty() && !key.path.contains("[]"), "{}", key.path);
        }
    }

    #[test]
    fn a_change_is_a_snippet_that_the_parser_takes() {
        let change = |path, value| setting_change(None, path, value).expect("a setting");
        let mode = change("triage.mode", "suggest");
        assert_eq!(mode.snippet.as_deref(), Some("triage:\n  mode: suggest\n"));
        assert!(mode.choices.contains(&"grace".to_owned()) && mode.problem.is_none());
        let nested = change("triage.learning.targetPrecision", "0.9").snippet.expect("valid");
        assert_eq!(nested, "triage:\n  learning:\n    targetPrecision: 0.9\n");
        assert_eq!(parse(&nested).problems, []);
        let wrong = change("close.maxPerDay", "many");
        assert!(wrong.snippet.is_none() && wrong.problem.is_some());
        let hidden = change("triage.mode", "suggest\nclose:\n  maxPerDay: 1000");
        assert!(hidden.snippet.is_none(), "one setting at a time");
        assert!(setting_change(None, "triage.nothing", "1").is_none());
        assert!(change("triage.mode", "").snippet.is_none());
        let whole = setting_change(Some("close:\n  maxPerDay: 3\n"), "triage.mode", "suggest").expect("a setting");
        assert_eq!(whole.file.as_deref(), Some("close:\n  maxPerDay: 3\ntriage:\n  mode: suggest\n"));
    }

    #[test]
    fn links_lead_to_the_default_branch_with_the_text_filled_in() {
        let (web, repo) = ("https://github.com/".parse().expect("an address"), "octo/cat".parse().expect("a name"));
        assert_eq!(edit_file(&web, &repo).as_deref(), Some("https://github.com/octo/cat/edit/HEAD/.canonry.yml"));
        let new = new_file(&web, &repo, "a: b & c\n").expect("an address");
        assert_eq!(new, "https://github.com/octo/cat/new/HEAD?filename=.canonry.yml&value=a%3A+b+%26+c%0A");
        let presets = presets(Some(&web), &repo);
        assert!(presets.len() > 3 && presets.iter().all(|preset| preset.link.is_some()));
    }
}
