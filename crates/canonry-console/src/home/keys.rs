//! The page of all keyboard shortcuts.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::page::{NavSection, PageFrame, html};
use crate::layout::theme::Theme;
use crate::sign_in::cookies::theme_of;
use crate::sign_in::visit::SignedIn;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/help/keys", get(show))
}

#[derive(Template)]
#[template(path = "home/keys.html")]
struct KeysPage {
    page: PageFrame,
    groups: &'static [KeyGroup],
}

struct KeyGroup {
    heading: &'static str,
    keys: &'static [(&'static [&'static str], &'static str)],
}

/// Each key presses a visible control.
const GROUPS: &[KeyGroup] = &[
    KeyGroup {
        heading: "Everywhere",
        keys: &[
            (&["?"], "keyboard shortcuts"),
            (&["/"], "search"),
            (&["f"], "the filter of a list"),
            (&["Esc"], "leave a field or menu"),
            (&["g", "o"], "home"),
        ],
    },
    KeyGroup {
        heading: "Lists",
        keys: &[
            (&["j"], "next row"),
            (&["k"], "previous row"),
            (&["Enter"], "open the row"),
            (&["n"], "next page"),
            (&["p"], "first page"),
        ],
    },
    KeyGroup {
        heading: "In a repository",
        keys: &[
            (&["g", "h"], "overview"),
            (&["g", "i"], "items"),
            (&["g", "c"], "duplicates"),
            (&["g", "p"], "plans"),
            (&["g", "n"], "announced closes"),
            (&["g", "r"], "reviews"),
            (&["g", "f"], "findings"),
            (&["g", "t"], "patterns"),
            (&["g", "l"], "thresholds"),
            (&["g", "q"], "adjudicate"),
            (&["g", "a"], "audits"),
            (&["g", "j"], "jobs"),
            (&["g", "d"], "deliveries"),
            (&["g", "y"], "activity"),
            (&["g", "s"], "settings"),
        ],
    },
    KeyGroup {
        heading: "Reviewing a plan",
        keys: &[
            (&["j"], "next row, with both texts"),
            (&["k"], "previous row"),
            (&["a"], "approve"),
            (&["x"], "exclude"),
            (&["u"], "reset the row"),
            (&["d"], "both texts line by line, or side by side"),
            (&["A"], "the field that confirms applying"),
        ],
    },
    KeyGroup {
        heading: "Adjudication",
        keys: &[
            (&["1"], "the same problem"),
            (&["2"], "different problems"),
            (&["3"], "cannot tell"),
            (&["s"], "skip"),
            (&["n"], "start again after the last case"),
        ],
    },
    KeyGroup { heading: "Simulating gates", keys: &[(&["r"], "reset all gates")] },
];

async fn show(headers: HeaderMap, visit: Result<SignedIn, PageError>) -> PageResult {
    let page = match visit {
        Ok(SignedIn(visit)) => visit.page("Keyboard shortcuts", NavSection::None),
        // Visible without signing in.
        Err(_) => {
            PageFrame { theme: Theme::of(theme_of(&headers).as_deref()), ..PageFrame::bare("Keyboard shortcuts") }
        }
    };
    html(&KeysPage { page, groups: GROUPS })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::GROUPS;

    fn templates(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                found.extend(templates(&path));
            } else if path.extension().is_some_and(|ending| ending == "html") {
                found.push(path);
            }
        }
        found
    }

    /// Every key of a page is listed, and every listed key does something.
    #[test]
    fn the_keys_are_those_of_the_pages() {
        let told: BTreeSet<&str> = GROUPS
            .iter()
            .flat_map(|group| group.keys)
            .filter(|(keys, _)| keys.len() == 1)
            .map(|(keys, _)| keys[0])
            .collect();
        let mut pressed: BTreeSet<String> = ["/", "f", "Esc", "j", "k", "Enter"].map(str::to_owned).into();
        for path in templates(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
            let text = std::fs::read_to_string(&path).expect("text");
            let keys = text.split("data-key=\"").skip(1).filter_map(|rest| rest.split('"').next());
            pressed.extend(keys.map(str::to_owned));
        }
        assert_eq!(told, pressed.iter().map(String::as_str).collect());
    }
}
