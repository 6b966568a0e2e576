//! What a triage comment says, made of a stored record: texts of strangers are quoted, and secrets stay out.

use std::collections::BTreeMap;

use canonry_domain::{
    Boilerplate, ClosesIn, Item, ItemNumber, ItemState, RepoName, SimilarItem, Similarity, SuggestionComment,
    suggestion_text,
};
use canonry_github::quote_line;
use canonry_store::NewTriageRecord;

use crate::close::row_evidence::facts_of;
use crate::online::detect_new::TopMatch;

/// Characters of a title or a shared fact in a comment.
const QUOTED: usize = 200;
/// Characters of the judge's reasoning: a few sentences.
const REASONING_QUOTED: usize = 500;

/// The item that a suggestion is about.
#[derive(Clone, Copy)]
pub(crate) struct SuggestedItem<'a> {
    pub(crate) repo: &'a RepoName,
    pub(crate) item: &'a Item,
    pub(crate) boilerplate: &'a Boilerplate,
    /// Whether it will be closed unless somebody objects.
    pub(crate) closes: Option<ClosesIn<'a>>,
}

/// What would be said about an item; `None` when the record names no target, or one without a score. `neighbours` are the
/// items that the record names.
pub(crate) fn suggestion_of(
    SuggestedItem { repo, item, boilerplate, closes }: SuggestedItem<'_>,
    record: &NewTriageRecord,
    neighbours: &BTreeMap<ItemNumber, Item>,
    closed: &[TopMatch],
    max_items: usize,
) -> Option<String> {
    let (target, score) = record.target.zip(record.target_score)?;
    // Those that the judge did not see are too far to be called similar.
    let shown = record.candidates.iter().filter(|one| one.judged && one.number != target);
    let shown: Vec<(ItemNumber, Similarity)> = shown.map(|one| (one.number, one.score)).collect();
    let titles: BTreeMap<ItemNumber, String> =
        neighbours.values().map(|item| (item.number, quoted_title(&item.title))).collect();
    let title = |number: ItemNumber| titles.get(&number).map_or("", String::as_str);
    // An item may have been closed since.
    let is_open = |number: &ItemNumber| neighbours.get(number).is_some_and(|item| item.state == ItemState::Open);
    let open: Vec<SimilarItem<'_>> = shown
        .iter()
        .filter(|(number, _)| is_open(number))
        .map(|(number, score)| SimilarItem { number: *number, title: title(*number), score: *score })
        .collect();
    let closed_titles: Vec<String> = closed.iter().map(|one| quoted_title(&one.title)).collect();
    let closed: Vec<SimilarItem<'_>> = closed
        .iter()
        .zip(&closed_titles)
        .map(|(one, title)| SimilarItem { number: one.number, title, score: one.similarity })
        .collect();
    let facts = neighbours.get(&target).map(|target| facts_of(repo, boilerplate, item, target)).unwrap_or_default();
    let facts: Vec<String> = facts.iter().map(|fact| quote_line(fact, QUOTED)).collect();
    Some(suggestion_text(&SuggestionComment {
        item_type: item.item_type,
        verdict: record.verdict,
        target: SimilarItem { number: target, title: title(target), score },
        reasoning: &quote_line(&record.reasoning, REASONING_QUOTED),
        facts: &facts,
        open: &open,
        closed: &closed,
        max_items,
        closes,
    }))
}

fn quoted_title(title: &str) -> String {
    quote_line(title, QUOTED)
}
