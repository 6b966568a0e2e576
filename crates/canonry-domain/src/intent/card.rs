//! Intent cards: what an item wants, in short fields by which two items can be compared.

use serde::{Deserialize, Serialize};

use crate::{Item, ItemType, Probability, PullChanges, TEXT_LIMIT, text_enum};

/// The version of [`IntentCard`]'s format; stored cards of other versions are ignored.
pub const CARD_SCHEMA_VERSION: u32 = 1;
/// The version of the models' extraction prompt and of the rules of the `local` extractor.
pub const CARD_PROMPT_VERSION: u32 = 1;
/// The version of the text that [`render`] makes of a card; a text of another version is embedded again.
pub const CARD_RENDER_VERSION: u32 = 1;

/// What an item is about, the evidence for it, and what is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntentCard {
    pub problem_statement: String,
    pub desired_outcome: String,
    /// What distinguishes this item from others: errors, frames, names in code.
    pub important_signals: Vec<String>,
    pub scope_boundaries: Vec<String>,
    /// Facts that are stated in the item, each with its source.
    pub evidence_facts: Vec<EvidenceFact>,
    pub reported_claims: Vec<String>,
    pub inference: Vec<String>,
    /// Questions that the author did not answer or could not answer.
    pub unknowns: Vec<String>,
    pub missing_info: Vec<String>,
    /// Whether the item says too little to be compared.
    pub insufficient_context: bool,
    pub extraction_confidence: Probability,
    /// The changes of a pull request; always `None` for an issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeIntent>,
}

/// A fact that is stated in an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceFact {
    pub fact: String,
    pub source: EvidenceSource,
}

text_enum! {
    /// The part of an item that a fact comes from.
    pub enum EvidenceSource: "a source of evidence" {
        Title = "title",
        Body = "body",
        Diff = "diff",
        FileContext = "file_context",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeIntent {
    pub key_changed_components: Vec<String>,
    pub behavioural_intent: String,
    pub change_summary: String,
    pub risk_notes: Vec<String>,
}

text_enum! {
    /// The provider that makes the cards.
    pub enum Extractor: "a provider" {
        Local = "local",
        OpenAi = "openai",
        Anthropic = "anthropic",
        Gemini = "gemini",
        Command = "command",
    }
}

/// The parts of an item from which a card is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntentSource<'a> {
    pub item_type: ItemType,
    pub title: &'a str,
    pub body: &'a str,
    /// The changes of a pull request; `None` if unknown.
    pub changes: Option<&'a PullChanges>,
}

impl<'a> From<&'a Item> for IntentSource<'a> {
    fn from(item: &'a Item) -> Self {
        Self { item_type: item.item_type, title: &item.title, body: &item.body, changes: item.changes.as_ref() }
    }
}

/// The text of a card that is embedded. The same card always gives the same text.
///
/// The text omits what is unknown, missing or inferred. That describes the report and not the problem: two reports of
/// one problem would differ by it, and two poor reports of different problems would agree.
pub fn render(card: &IntentCard) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut add = |label: &str, text: &str| {
        if !text.is_empty() {
            lines.push(if label.is_empty() { text.to_owned() } else { format!("{label}: {text}") });
        }
    };
    add("", &card.problem_statement);
    add("Wanted", &card.desired_outcome);
    if let Some(change) = &card.change {
        add("Behaviour", &change.behavioural_intent);
        add("Change", &change.change_summary);
        add("Components", &change.key_changed_components.join("; "));
        add("Risks", &change.risk_notes.join("; "));
    }
    add("Signals", &card.important_signals.join("; "));
    add("Scope", &card.scope_boundaries.join("; "));
    add("Reported", &card.reported_claims.join("; "));
    // A signal is often a fact too, and repeating it would double its weight.
    let facts: Vec<&str> =
        card.evidence_facts.iter().map(|fact| fact.fact.as_str()).filter(|fact| !is_signal(card, fact)).collect();
    add("Facts", &facts.join("; "));
    lines.join("\n").chars().take(TEXT_LIMIT).collect()
}

fn is_signal(card: &IntentCard, fact: &str) -> bool {
    card.important_signals.iter().any(|signal| signal == fact)
}

#[cfg(test)]
mod tests {
    use super::{ChangeIntent, EvidenceFact, EvidenceSource, IntentCard, render};
    use crate::{Probability, TEXT_LIMIT};

    fn card() -> IntentCard {
        let fact = |fact: &str, source| EvidenceFact { fact: fact.to_owned(), source };
        IntentCard {
            problem_statement: "Sync stops after a rename".to_owned(),
            desired_outcome: String::new(),
            important_signals: vec!["error: no such file".to_owned(), "`sync_all`".to_owned()],
            scope_boundaries: Vec::new(),
            evidence_facts: vec![
                fact("error: no such file", EvidenceSource::Body),
                fact("version 1.2.3", EvidenceSource::Title),
            ],
            reported_claims: vec!["It worked before".to_owned()],
            inference: vec!["The cache is stale".to_owned()],
            unknowns: vec!["The system".to_owned()],
            missing_info: Vec::new(),
            insufficient_context: false,
            extraction_confidence: Probability::new(0.7).expect("in range"),
            change: None,
        }
    }

    #[test]
    fn a_card_is_embedded_as_what_it_says_about_the_problem() {
        insta::assert_snapshot!(render(&card()), @r"
        Sync stops after a rename
        Signals: error: no such file; `sync_all`
        Reported: It worked before
        Facts: version 1.2.3
        ");
        let change = ChangeIntent {
            key_changed_components: vec!["src/sync".to_owned()],
            behavioural_intent: "Renames are followed".to_owned(),
            change_summary: "1 file".to_owned(),
            risk_notes: vec!["no test changes".to_owned()],
        };
        insta::assert_snapshot!(render(&IntentCard { change: Some(change), ..card() }), @r"
        Sync stops after a rename
        Behaviour: Renames are followed
        Change: 1 file
        Components: src/sync
        Risks: no test changes
        Signals: error: no such file; `sync_all`
        Reported: It worked before
        Facts: version 1.2.3
        ");
    }

    #[test]
    fn the_text_is_bounded_and_may_be_empty() {
        let long = IntentCard { reported_claims: vec!["ä".repeat(9_000)], ..card() };
        assert_eq!(render(&long).chars().count(), TEXT_LIMIT);
        let empty = IntentCard {
            problem_statement: String::new(),
            important_signals: Vec::new(),
            evidence_facts: Vec::new(),
            reported_claims: Vec::new(),
            ..card()
        };
        assert_eq!(render(&empty), "");
    }

    #[test]
    fn a_card_survives_storing() {
        let text = serde_json::to_string(&card()).expect("serialises");
        assert_eq!(serde_json::from_str::<IntentCard>(&text).expect("reads"), card());
    }
}
