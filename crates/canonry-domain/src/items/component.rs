//! Reads the component of a project that an item belongs to from its labels.

use serde::{Deserialize, Serialize};

use crate::text::text_newtype::text_newtype;

/// The prefixes of labels that name a component; GitHub ignores the letter case of labels.
const PREFIXES: [&str; 2] = ["area/", "component/"];

/// A component: the part after the prefix of a label such as `area/auth`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Component(String);

text_newtype!(Component);

impl Component {
    /// The component of the first label that names one.
    pub fn of_labels<'a>(labels: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        labels.into_iter().find_map(Self::of_label)
    }

    fn of_label(label: &str) -> Option<Self> {
        let rest = PREFIXES.iter().find_map(|prefix| {
            let (start, rest) = label.split_at_checked(prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then(|| rest.trim())
        })?;
        (!rest.is_empty()).then(|| Self(rest.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Component;

    #[test]
    fn the_first_label_that_names_a_component() {
        for (labels, expected) in [
            (vec!["bug", "area/auth", "component/api"], Some("auth")),
            (vec!["component/api"], Some("api")),
            (vec!["Area/Sign in"], Some("Sign in")),
            (vec!["area/", "area/ ", "area/ui/menu"], Some("ui/menu")),
            (vec!["kind/bug", "type/x", "subarea/auth", "area"], None),
            (vec!["äreal/x", "é"], None),
            (vec![], None),
        ] {
            let found = Component::of_labels(labels.iter().copied());
            assert_eq!(found.as_ref().map(Component::as_str), expected, "{labels:?}");
        }
    }
}
