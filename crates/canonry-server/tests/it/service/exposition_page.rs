//! A strict parser of Prometheus' text format.

use std::collections::BTreeMap;

type Labels = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub(crate) struct Page {
    kinds: BTreeMap<String, String>,
    samples: Vec<(String, Labels, f64)>,
}

impl Page {
    /// Parses a page; panics if it violates the format.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end: {text}");
        let mut page = Self::default();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a help text");
                assert!(!help.is_empty() && !page.kinds.contains_key(name), "{line}");
                family = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                assert_eq!(name, family, "the type follows the help");
                page.kinds.insert(name.to_owned(), kind.to_owned());
            } else {
                let (name, labels, value) = sample(line);
                let of_family = name == family || page.kinds[&family] == "histogram" && name.starts_with(&family);
                assert!(of_family, "{name} stands in the family {family}");
                let known = page.samples.iter().any(|(other, with, _)| (other, with) == (&name, &labels));
                assert!(!known, "twice: {line}");
                page.samples.push((name, labels, value));
            }
        }
        page.check_histograms();
        page
    }

    /// The value of the sample with exactly these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: Labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.samples.iter().find(|(other, with, _)| other == name && *with == labels).map(|(.., value)| *value)
    }

    pub(crate) fn kind(&self, name: &str) -> Option<&str> {
        self.kinds.get(name).map(String::as_str)
    }

    pub(crate) fn families(&self) -> Vec<&str> {
        self.kinds.keys().map(String::as_str).collect()
    }

    fn check_histograms(&self) {
        for family in self.kinds.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut last: BTreeMap<Labels, (f64, f64)> = BTreeMap::new();
            for (_, labels, count) in self.samples.iter().filter(|(name, ..)| *name == format!("{family}_bucket")) {
                let mut labels = labels.clone();
                let bound: f64 = labels.remove("le").expect("a bound").parse().expect("a number");
                let before = last.insert(labels, (bound, *count)).unwrap_or((f64::NEG_INFINITY, 0.0));
                assert!(before.0 < bound && before.1 <= *count, "{family} does not grow at {bound}");
            }
            for (labels, (bound, count)) in last {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (&**name, &**value)).collect();
                assert_eq!((bound, Some(count)), (f64::INFINITY, self.value(&format!("{family}_count"), &labels)));
                assert!(self.value(&format!("{family}_sum"), &labels).is_some_and(|sum| sum >= 0.0));
            }
        }
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let (name, mut rest) = line.split_at(end);
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    assert!(!name.is_empty() && is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
            assert!(is_name(label), "{line}");
            let (value, after) = unescaped(after);
            labels.insert(label.to_owned(), value);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value: {line}"));
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
}

/// A label's value up to its closing quote, and the rest.
fn unescaped(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some(same @ ('\\' | '"')) => value.push(same),
                other => panic!("an unknown escape {other:?} in {text}"),
            },
            other => value.push(other),
        }
    }
    panic!("an open quote: {text}")
}
