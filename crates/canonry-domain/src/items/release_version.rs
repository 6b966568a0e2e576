//! Versions in the names of releases, and the version that a report says it is about.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

/// A version of two to four numbers, such as 1.4 or 2.10.3. Pre-releases are no versions here: their order is unknown.
#[derive(Debug, Clone, Eq)]
pub struct ReleaseVersion(Vec<u64>);

impl ReleaseVersion {
    /// The version in the name of a release: `v1.4`, `1.4.2`, `canonry-1.4.2`.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let found = TAG.captures(tag.trim())?;
        Self::parse(&found["version"])
    }

    /// The version that a report names as its own, in a line such as "Version: 1.4", "canonry 1.4.2" or below a heading
    /// "Version". Versions of anything else do not count.
    pub fn of_report(text: &str, product: &str) -> Option<Self> {
        let mut is_below_heading = false;
        for line in text.lines().map(|line| line.trim().trim_start_matches(MARKS).trim_start()) {
            if line.is_empty() {
                continue;
            }
            if let Some(found) = LINE.captures(line) {
                let label = found["label"].trim().trim_end_matches([':', '=', '*', '`', ' ']).to_lowercase();
                let named = label.strip_suffix("version").unwrap_or(&label).trim();
                let is_own = named.eq_ignore_ascii_case(product) || (named.is_empty() && !label.is_empty());
                if is_own || (label.is_empty() && is_below_heading) {
                    return Self::parse(&found["version"]);
                }
            }
            let heading = line.trim_end_matches([':', '*', ' ']).to_lowercase();
            is_below_heading = heading == "version" || heading == format!("{} version", product.to_lowercase());
        }
        None
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers: Result<Vec<u64>, _> = text.split('.').map(str::parse).collect();
        numbers.ok().map(Self)
    }
}

impl Ord for ReleaseVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.0.len().max(other.0.len());
        let padded = |version: &Self| (0..length).map(|at| version.0.get(at).copied().unwrap_or(0)).collect::<Vec<_>>();
        padded(self).cmp(&padded(other))
    }
}

impl PartialOrd for ReleaseVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ReleaseVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

/// What markdown puts before a line.
const MARKS: [char; 6] = ['#', '*', '-', '>', '+', ' '];

const NUMBERS: &str = r"(?<version>\d{1,9}(?:\.\d{1,9}){1,3})";

static TAG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"^\D*{NUMBERS}$")).expect("invariant: the pattern is constant"));

static LINE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = format!(r"^(?<label>[^\d]{{0,60}}?)[vV`]{{0,2}}{NUMBERS}[`*]{{0,3}}(?:[\s,;)].*|\.?)$");
    Regex::new(&pattern).expect("invariant: the pattern is constant")
});

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::ReleaseVersion;

    fn of_tag(tag: &str) -> Option<Vec<u64>> {
        ReleaseVersion::of_tag(tag).map(|version| version.0)
    }

    #[test]
    fn the_names_of_releases() {
        for (tag, expected) in [
            ("v1.4", Some(vec![1, 4])),
            ("1.4.2", Some(vec![1, 4, 2])),
            ("canonry-v1.4.2", Some(vec![1, 4, 2])),
            ("release/2024.11.3", Some(vec![2024, 11, 3])),
            ("v1", None),
            ("nightly", None),
            ("v1.4.0-rc.1", None),
            ("v1.4.0-beta", None),
            ("", None),
        ] {
            assert_eq!(of_tag(tag), expected, "{tag}");
        }
    }

    #[test]
    fn only_the_version_of_the_product_counts() {
        for (text, expected) in [
            ("It stops.\n\nVersion: 1.5.0\nOS: Debian 12.4", Some("1.5.0")),
            ("- **Version**: v1.5.0", Some("1.5.0")),
            ("### Version\n\n1.5.0\n\n### OS\n\n12.4", Some("1.5.0")),
            ("$ canonry --version\ncanonry 1.5.0 (abc1234)", Some("1.5.0")),
            ("Canonry version: `1.5`", Some("1.5")),
            ("Python version: 3.11.2", None),
            ("rustc 1.80.0", None),
            ("### OS\n\n12.4", None),
            ("It worked in 1.4 and stops since 1.5.", None),
            ("Version: 1.5.0-rc1", None),
            ("Version: latest", None),
        ] {
            assert_eq!(ReleaseVersion::of_report(text, "canonry"), expected.and_then(ReleaseVersion::of_tag), "{text}");
        }
    }

    proptest! {
        #[test]
        fn versions_are_ordered_number_by_number(one in proptest::collection::vec(0..30_u64, 2..5), other in proptest::collection::vec(0..30_u64, 2..5)) {
            let written = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
            let (a, b) = (ReleaseVersion::of_tag(&written(&one)), ReleaseVersion::of_tag(&written(&other)));
            prop_assert!(a.is_some() && b.is_some());
            let longer = |numbers: &[u64]| { let mut all = numbers.to_vec(); all.resize(4, 0); all };
            prop_assert_eq!(a.cmp(&b), longer(&one).cmp(&longer(&other)));
        }

        #[test]
        fn no_report_is_too_strange(text in "[a-zV0-9.:`*#\\n -]{0,80}") {
            ReleaseVersion::of_report(&text, "canonry");
        }
    }
}
