//! Checks that the program accepts the commands that pages name.

use std::process::Stdio;

use canonry_testkit::browser::Page;
use serde_json::Value;

use crate::running::Home;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    command: String,
    /// Whether it can be copied as a complete command; in a sentence `canonry jobs` is a name.
    pub(crate) is_whole: bool,
    path: String,
}

/// Placeholders for the reader's own values, in capitals.
const PLACEHOLDERS: [(&str, &str); 7] = [
    ("NUMBER", "12"),
    ("ID", "12"),
    ("LOGIN", "mona"),
    ("LOGIN…", "mona"),
    ("FILE", "items.jsonl"),
    ("PATH:LINE", "src/app.js:41"),
    ("OWNER/NAME", "octo/cat"),
];

impl Named {
    /// The commands that a page names, in its footer and elsewhere.
    pub(crate) fn on(page: &Page, path: &str) -> Vec<Self> {
        let found = page.eval(
            "[...document.querySelectorAll('code')].map(one => [one.textContent, one.closest('footer') !== null])",
        );
        let found = found.as_array().expect("a list").iter();
        found
            .filter_map(|one| Some((one[0].as_str()?.trim(), one[1].as_bool()?)))
            .filter(|(text, _)| *text == "canonry" || text.starts_with("canonry "))
            .map(|(text, is_whole)| Self { command: text.to_owned(), is_whole, path: path.to_owned() })
            .collect()
    }
}

/// The commands that the program rejects, each with its page and the reason.
pub(crate) fn unknown(named: impl IntoIterator<Item = Named>) -> Vec<String> {
    let home = Home::new();
    named
        .into_iter()
        .filter_map(|one| refusal(&home, &one).map(|why| format!("{}: {}: {why}", one.path, one.command)))
        .collect()
}

/// Why the program rejects a command. No command gets further than its database, which cannot be opened.
fn refusal(home: &Home, named: &Named) -> Option<String> {
    let words: Vec<&str> = named.command.split_whitespace().skip(1).map(filled).collect();
    // This would start a demo; the search lists it with every other command.
    if words == ["demo"] {
        return None;
    }
    if words.contains(&"demo") {
        return Some("a demo would begin".to_owned());
    }
    let ran = home
        .canonry(&words)
        .arg("--json")
        .env("CANONRY_DATABASE_URL", "sqlite:/dev/null/none.db")
        .stderr(Stdio::null())
        .output()
        .expect("the program starts");
    if ran.status.code() != Some(2) {
        return None;
    }
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let why = document["error"]["message"].as_str().unwrap_or("wrong usage").to_owned();
    let is_incomplete = why.contains("required arguments were not provided") || why.contains("a command is missing");
    (named.is_whole || !is_incomplete).then_some(why)
}

fn filled(word: &str) -> &str {
    PLACEHOLDERS.iter().find(|(name, _)| *name == word).map_or(word, |(_, value)| value)
}
