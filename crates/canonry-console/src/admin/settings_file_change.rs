//! The settings file with one value changed, ready to be pasted.

use std::ops::Range;

use canonry_config::parse;
use canonry_domain::printable::block;

use crate::admin::settings_keys::plain;

/// The whole file with this value, which was checked, at `path`. Comments and the order of the keys stay. `None` if the
/// result would not mean exactly that: a file in an unusual style is changed by hand.
pub(crate) fn changed_file(text: &str, path: &str, value: &str) -> Option<String> {
    let changed = replace_value(text, path, value)?;
    let (before, after) = (parse(text), parse(&changed));
    let place = format!("/{}", path.replace('.', "/"));
    let mut wanted = plain(&before.config);
    *wanted.pointer_mut(&place)? = plain(&parse(&replace_value("", path, value)?).config).pointer(&place)?.clone();
    let is_right = plain(&after.config) == wanted && after.problems.len() <= before.problems.len();
    // The page spells unseen characters out, and a file with those would be pasted as another one.
    (is_right && changed != text && block(&changed) == changed).then_some(changed)
}

/// The text with this value at `path`, unchecked. Keys that are missing are added below their section.
pub(crate) fn replace_value(text: &str, path: &str, value: &str) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let keys: Vec<&str> = path.split('.').collect();
    let (mut block, mut indent) = (0..lines.len(), 0);
    for (depth, key) in keys.iter().enumerate() {
        indent = block.clone().find_map(|at| indent_of(&lines[at])).unwrap_or(indent);
        let named = |line: &String| -> Option<String> {
            let rest = line.get(indent..)?.strip_prefix(*key)?.strip_prefix(':')?;
            (indent_of(line) == Some(indent)).then(|| rest.to_owned())
        };
        let Some((at, rest)) = block.clone().find_map(|at| Some((at, named(&lines[at])?))) else {
            let end = last_line(&lines, block.clone()).map_or(block.start, |last| last + 1);
            let new = keys[depth..].iter().enumerate().map(|(below, key)| {
                let is_last = depth + below + 1 == keys.len();
                let value = if is_last { format!(" {value}") } else { String::new() };
                format!("{}{key}:{value}", " ".repeat(indent + 2 * below))
            });
            let new: Vec<String> = new.collect();
            lines.splice(end..end, new);
            return Some(lines.join("\n") + "\n");
        };
        let is_below = |line: &String| match indent_of(line) {
            Some(deep) => deep > indent || (deep == indent && line[deep..].starts_with("- ")),
            None => true,
        };
        let end = (at + 1..block.end).find(|next| !is_below(&lines[*next])).unwrap_or(block.end);
        if depth + 1 == keys.len() {
            let (old, comment) = match comment_start(&rest) {
                Some(start) => rest.split_at(rest[..start].trim_end().len()),
                None => (rest.as_str(), ""),
            };
            let last = last_line(&lines, at + 1..end).unwrap_or(at);
            // After a quote it may be a part of the value, and a comment between replaced lines has no place any more.
            let is_unclear = !comment.is_empty() && old.contains(['"', '\'']);
            if is_unclear || lines[at + 1..=last].iter().any(|line| comment_start(line).is_some()) {
                return None;
            }
            lines.splice(at..=last, [format!("{}{key}: {value}{comment}", " ".repeat(indent))]);
        } else if !rest.is_empty() && !rest.trim_start().starts_with('#') {
            return None;
        }
        block = at + 1..end;
        indent += 2;
    }
    Some(lines.join("\n") + "\n")
}

/// The number of spaces before a line's content; `None` for blank lines and comments.
fn indent_of(line: &str) -> Option<usize> {
    let content = line.trim_start_matches(' ');
    (!content.trim().is_empty() && !content.starts_with('#')).then(|| line.len() - content.len())
}

/// Where a comment begins. In quotes the same characters belong to a value.
fn comment_start(line: &str) -> Option<usize> {
    let mut hashes = line.match_indices('#').map(|(at, _)| at);
    hashes.find(|at| line[..*at].is_empty() || line[..*at].ends_with([' ', '\t']))
}

fn last_line(lines: &[String], block: Range<usize>) -> Option<usize> {
    block.rev().find(|at| indent_of(&lines[*at]).is_some())
}

#[cfg(test)]
mod tests {
    use super::changed_file;

    const FILE: &str = "# Ours.\ntriage:\n  # First only recorded.\n  mode: shadow  # since May\n  excludeLabels:\n  - question\n  \
                        - 'help wanted'\n\nclose:\n  graceHours: 48\n";

    #[test]
    fn one_value_changes_and_the_rest_stays() {
        let changed = |path, value| changed_file(FILE, path, value).expect("a change");
        assert_eq!(changed("triage.mode", "suggest"), FILE.replace("mode: shadow", "mode: suggest"));
        assert_eq!(changed("close.maxPerDay", "3"), format!("{FILE}  maxPerDay: 3\n"));
        assert_eq!(
            changed("triage.excludeLabels", "[later]"),
            FILE.replace("excludeLabels:\n  - question\n  - 'help wanted'", "excludeLabels: [later]")
        );
        assert_eq!(
            changed("triage.learning.targetPrecision", "0.9"),
            FILE.replace("wanted'\n", "wanted'\n  learning:\n    targetPrecision: 0.9\n")
        );
        assert_eq!(changed("review.enabled", "false"), format!("{FILE}review:\n  enabled: false\n"));
        assert_eq!(changed_file("", "triage.mode", "grace").as_deref(), Some("triage:\n  mode: grace\n"));
    }

    #[test]
    fn no_comment_is_lost() {
        let changed = |text: &str, value| changed_file(text, "triage.mode", value);
        let apostrophe = "triage:\n  mode: shadow  # don't raise before May\n";
        assert_eq!(changed(apostrophe, "suggest"), Some(apostrophe.replace("shadow", "suggest")));
        let quoted = "triage:\n  mode: 'shadow'\n";
        assert_eq!(changed(quoted, "suggest"), Some(quoted.replace("'shadow'", "suggest")));
        assert_eq!(changed("triage:\n  mode: 'shadow'  # until May\n", "suggest"), None);
        let labels = |entries: &str| format!("triage:\n  excludeLabels:\n{entries}\nclose:\n  graceHours: 48\n");
        let replaced = |entries: &str| changed_file(&labels(entries), "triage.excludeLabels", "[later]");
        for entries in ["  - a\n  # Asked too often.\n  - b", "  - a  # asked too often\n  - b", "# Ours.\n  - a"] {
            assert_eq!(replaced(entries), None, "{entries}");
        }
        let after = replaced("  - a\n# What follows is about closing.").expect("a change");
        assert!(after.contains("excludeLabels: [later]\n# What follows is about closing.\nclose:"), "{after}");
    }

    #[test]
    fn a_file_in_another_style_is_left_to_people() {
        for file in ["triage: {mode: shadow}\n", "{triage: {mode: shadow}}\n", "\"triage\":\n  mode: shadow\n"] {
            assert_eq!(changed_file(file, "triage.mode", "suggest"), None, "{file}");
        }
    }
}
