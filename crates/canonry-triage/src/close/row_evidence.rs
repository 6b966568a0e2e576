//! Why a plan closes an item: what the two texts share, and what the judge said. Stored with the row.

use canonry_domain::{Boilerplate, ClosePath, Item, ItemNumber, RepoName, redact};
use canonry_retrieval::{SharedFact, TextFacts, shared_facts};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowEvidence {
    /// What both texts hold, each in words, the most telling first. Text of strangers.
    pub facts: Vec<String>,
    pub reasoning: Option<String>,
    pub path: Option<ClosePath>,
    /// Items that were closed in favour of this one before, and will point at its target.
    pub repoint: Vec<ItemNumber>,
}

/// Facts that a comment names: a person reads a few.
const FACTS_TOLD: usize = 4;

/// What two items share of their own text, in words and without secrets.
pub(crate) fn facts_of(repo: &RepoName, boilerplate: &Boilerplate, one: &Item, other: &Item) -> Vec<String> {
    let [one, other] = [one, other].map(|item| evidence_text(&boilerplate.own(item)));
    let shared = shared_evidence(repo, &one, &other);
    shared.iter().take(FACTS_TOLD).map(|fact| redact(&fact.to_string())).collect()
}

/// What two texts share, the most telling first. That both name the repository says nothing.
pub fn shared_evidence(repo: &RepoName, one: &str, other: &str) -> Vec<SharedFact> {
    let mut shared = shared_facts(&TextFacts::of(one), &TextFacts::of(other));
    shared.retain(|fact| {
        let text = fact.text.to_lowercase();
        text != repo.name().to_lowercase() && text != repo.owner().to_lowercase()
    });
    shared
}

/// The text of an item that evidence is looked for in: its title, and its body from the next line on.
pub fn evidence_text(item: &Item) -> String {
    format!("{}\n{}", item.title, item.body)
}
