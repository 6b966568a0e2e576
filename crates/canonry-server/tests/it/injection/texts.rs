//! The texts of the suite.

use std::collections::BTreeSet;

use serde::Deserialize;

/// GitHub accepts no longer title.
const LONGEST_TITLE: usize = 256;

/// As many letters in a row are no accident.
pub(crate) const RECOGNISED: usize = 20;

/// A hostile text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InjectionText {
    pub(crate) kind: String,
    pub(crate) place: InjectionPlace,
    /// What it wants, in words for people.
    pub(crate) tries: String,
    pub(crate) demands: Demand,
    /// The path of a diff that needs a certain file.
    pub(crate) path: Option<String>,
    /// How often the text is repeated.
    #[serde(default = "once")]
    times: usize,
    text: String,
}

/// Where a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InjectionPlace {
    Title,
    Body,
    Comment,
    Branch,
    File,
    Diff,
}

impl InjectionPlace {
    pub(crate) const ALL: [Self; 6] = [Self::Title, Self::Body, Self::Comment, Self::Branch, Self::File, Self::Diff];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Body => "body",
            Self::Comment => "comment",
            Self::Branch => "branch",
            Self::File => "file",
            Self::Diff => "diff",
        }
    }
}

/// The answer that a model gives if it obeys the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Demand {
    /// A yes to the first candidate.
    Near,
    /// A yes to #5.
    Far,
    /// A yes to #4242.
    Outside,
    No,
    /// The text itself.
    Garbage,
}

fn once() -> usize {
    1
}

impl InjectionText {
    pub(crate) fn whole(&self) -> String {
        self.text.repeat(self.times)
    }

    /// Whether a prompt still shows this text, however it is escaped, or its beginning.
    pub(crate) fn is_in(&self, prompt: &str) -> bool {
        let words: String = letters(&self.whole()).chars().take(RECOGNISED).collect();
        prompt.contains(self.text.trim()) || words.chars().count() == RECOGNISED && letters(prompt).contains(&words)
    }

    /// The title and body of a carrier with this text in one of them.
    pub(crate) fn put_into(&self, title: &str, body: &str) -> (String, String) {
        put(self.place, &self.whole(), title, body)
    }
}

/// A title and a body with a text in one of them: behind the title, or after the first paragraph.
pub(crate) fn put(place: InjectionPlace, text: &str, title: &str, body: &str) -> (String, String) {
    match place {
        InjectionPlace::Title => {
            (format!("{title} {text}").chars().take(LONGEST_TITLE).collect::<String>(), body.to_owned())
        }
        _ => (title.to_owned(), body.replacen("\n\n", &format!("\n\n{text}\n\n"), 1)),
    }
}

pub(crate) fn all() -> Vec<InjectionText> {
    serde_json::from_str(include_str!("texts.json")).expect("well-formed")
}

pub(crate) fn at(places: &[InjectionPlace]) -> Vec<InjectionText> {
    all().into_iter().filter(|text| places.contains(&text.place)).collect()
}

/// The kinds, in the order of the file.
pub(crate) fn kinds() -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for text in all() {
        if !kinds.contains(&text.kind) {
            kinds.push(text.kind);
        }
    }
    kinds
}

/// Letters and digits alone: how much of a text is recognised in another one, however it is escaped.
pub(crate) fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).collect()
}

#[test]
fn there_are_enough_texts_of_every_kind_at_every_place() {
    let texts = all();
    assert!(texts.len() >= 200, "{}", texts.len());
    let different: BTreeSet<_> = texts.iter().map(|text| (text.place, text.whole(), text.path.clone())).collect();
    assert_eq!(different.len(), texts.len(), "each is another one");
    for kind in kinds() {
        assert!(texts.iter().filter(|text| text.kind == kind).count() >= 5, "{kind}");
    }
    for place in InjectionPlace::ALL {
        assert!(texts.iter().filter(|text| text.place == place).count() >= 20, "{place:?}");
    }
}
