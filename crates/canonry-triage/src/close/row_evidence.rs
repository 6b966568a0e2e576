//! Why a plan closes an item: what the two texts share, and the judge's reasoning. Stored with the row.

use canonry_domain::{Boilerplate, ClosePath, Item, ItemNumber, PairFact, RepoName, is_library_code, redact};
use canonry_retrieval::{CommonFacts, FactKind, FoundFact, SharedFact, TextFacts, shared_facts};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowEvidence {
    /// What both texts contain, formatted like [`PairFact`], the strongest evidence first. Untrusted text.
    pub facts: Vec<String>,
    pub reasoning: Option<String>,
    pub path: Option<ClosePath>,
    /// Items that were closed as duplicates of this one before, and will now refer to its target.
    pub repoint: Vec<ItemNumber>,
}

/// How many facts of a pair are stored; a comment chooses from them.
const FACTS_KEPT: usize = 6;

/// The evidence that two items share in their own text, without secrets.
pub(crate) fn facts_of(
    repo: &RepoName,
    boilerplate: &Boilerplate,
    common: &CommonFacts,
    one: &Item,
    other: &Item,
) -> Vec<PairFact> {
    let [one, other] = [one, other].map(|item| evidence_text(&boilerplate.own(item)));
    let mut facts = Vec::new();
    for shared in telling_facts(repo, common, &one, &other) {
        let [text, other_text] = [&shared.text, &shared.other_text].map(|text| redact(text));
        let shown = match shared.kind {
            FactKind::Error => PairFact::of_error(&text, &other_text),
            FactKind::Quote => vec![PairFact::Message(text)],
            FactKind::Frame => vec![PairFact::Frame(text)],
            FactKind::Code => vec![PairFact::Name(text)],
            FactKind::Version => vec![PairFact::Version(text)],
        };
        for fact in shown {
            if !facts.contains(&fact) && facts.len() < FACTS_KEPT {
                facts.push(fact);
            }
        }
    }
    facts
}

/// The evidence that two texts share, the strongest first. Some shared facts prove nothing: the name of the repository,
/// code of a runtime or a library, and what many items contain.
pub fn telling_facts(repo: &RepoName, common: &CommonFacts, one: &str, other: &str) -> Vec<SharedFact> {
    telling_facts_which(repo, common, one, other, |_| true)
}

/// Like [`telling_facts`], of the facts for which `is_wanted` returns true in both texts.
pub(crate) fn telling_facts_which(
    repo: &RepoName,
    common: &CommonFacts,
    one: &str,
    other: &str,
    is_wanted: impl Fn(&FoundFact<'_>) -> bool,
) -> Vec<SharedFact> {
    let is_telling = |found: &FoundFact<'_>| {
        let names_repo =
            [repo.name(), repo.owner()].iter().any(|name| found.text.to_lowercase() == name.to_lowercase());
        let is_library = match found.kind {
            FactKind::Frame => is_library_code(Some(repo), found.text, found.line),
            FactKind::Code => is_library_code(Some(repo), found.text, ""),
            FactKind::Error | FactKind::Quote | FactKind::Version => false,
        };
        !names_repo && !is_library && !common.contains(found) && is_wanted(found)
    };
    let facts = |text: &str| TextFacts::of_which(text, is_telling);
    shared_facts(&facts(one), &facts(other))
}

/// The text of an item in which evidence is searched: its title, then its body on the next line.
pub fn evidence_text(item: &Item) -> String {
    format!("{}\n{}", item.title, item.body)
}

#[cfg(test)]
mod tests {
    use canonry_domain::{Boilerplate, Item, ItemNumber, ItemRecord, ItemType, evidence_sentences, merge_record};
    use canonry_retrieval::CommonFacts;

    use super::facts_of;

    fn item(number: i64, body: &str) -> Item {
        let number = ItemNumber::new(number).expect("positive");
        let record = ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(ItemType::Issue, number, "It stops") };
        merge_record(None, record).item
    }

    fn said(one: &str, other: &str) -> Option<String> {
        let repo = "tide/pool".parse().expect("a name");
        let (one, other) = (item(1, one), item(2, other));
        evidence_sentences(&facts_of(&repo, &Boilerplate::default(), &CommonFacts::default(), &one, &other))
    }

    #[test]
    fn two_panics_share_their_message_and_place_and_no_runtime_frame() {
        let report = |before: &str| {
            format!(
                "{before}\n```\nthread 'main' panicked at crates/store/src/sqlite.rs:88:40:\n\
                 read-only database handle cannot begin an immediate transaction\nstack backtrace:\n   \
                 0: rust_begin_unwind\n   1: core::panicking::panic_fmt\n   2: store::sqlite::begin\n   3: std::rt::lang_start\n```"
            )
        };
        insta::assert_snapshot!(said(&report("Opening fails."), &report("It dies at once.")).expect("evidence"), @"Both show `read-only database handle cannot begin an immediate transaction` at `sqlite.rs:88:40`. Both stack traces contain `store::sqlite::begin`.");
    }

    #[test]
    fn what_proves_nothing_is_not_shown() {
        for (one, other) in [
            ("    at java.lang.Thread.run(Thread.java:748)", "    at java.lang.Thread.run(Thread.java:748)"),
            ("`tokio::spawn` of tide/pool", "tokio::spawn in pool"),
            ("I use 1.2.3 here", "seen on 1.2.3"),
            ("error: aborting due to previous error", "error: aborting due to previous error"),
        ] {
            assert_eq!(said(one, other), None, "{one}");
        }
    }
}
