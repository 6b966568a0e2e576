//! What a triage comment says, made of a stored record: texts of strangers are quoted, and secrets stay out.

use std::collections::BTreeMap;

use canonry_domain::{ClosesIn, Item, ItemNumber, ItemState, SimilarItem, Similarity, Suggestion, suggestion_text};
use canonry_github::quote_line;
use canonry_store::{NewTriageRecord, Repo, Store, StoreError};

use crate::close::row_evidence::facts_of;
use crate::online::detect_new::TopMatch;
use crate::retrieval::boilerplate::stored_boilerplate;

/// Characters of a title or a shared fact in a comment.
const QUOTED: usize = 200;
/// Characters of the judge's reasoning: a few sentences.
const REASONING_QUOTED: usize = 500;

/// The item that something is said about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) store: &'a Store,
    pub(crate) repo: &'a Repo,
    pub(crate) item: &'a Item,
    /// Whether it will be closed unless somebody objects.
    pub(crate) closes: Option<ClosesIn<'a>>,
}

/// What would be said about an item; `None` when the record names no target, or one without a score.
pub(crate) async fn suggestion_of(
    About { store, repo, item, closes }: About<'_>,
    record: &NewTriageRecord,
    closed: &[TopMatch],
    max_items: usize,
) -> Result<Option<String>, StoreError> {
    let (Some(target), Some(score)) = (record.target, record.target_score) else { return Ok(None) };
    // Those that the judge did not see are too far to be called similar.
    let shown = record.candidates.iter().filter(|one| one.judged && one.number != target);
    let shown: Vec<(ItemNumber, Similarity)> = shown.map(|one| (one.number, one.score)).collect();
    let numbers: Vec<ItemNumber> = shown.iter().map(|(number, _)| *number).chain([target]).collect();
    let items = store.corpus().items_by_number(repo.id, item.item_type, &numbers).await?;
    let items: BTreeMap<ItemNumber, Item> = items.into_iter().map(|item| (item.number, item)).collect();
    let titles: BTreeMap<ItemNumber, String> =
        items.values().map(|item| (item.number, quoted_title(&item.title))).collect();
    let title = |number: ItemNumber| titles.get(&number).map_or("", String::as_str);
    // An item may have been closed since.
    let is_open = |number: &ItemNumber| items.get(number).is_some_and(|item| item.state == ItemState::Open);
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
    let boilerplate = stored_boilerplate(store, repo, item.item_type).await?;
    let facts = items.get(&target).map(|target| facts_of(&repo.name, &boilerplate, item, target)).unwrap_or_default();
    let facts: Vec<String> = facts.iter().map(|fact| quote_line(fact, QUOTED)).collect();
    Ok(Some(suggestion_text(&Suggestion {
        item_type: item.item_type,
        verdict: record.verdict,
        target: SimilarItem { number: target, title: title(target), score },
        reasoning: &quote_line(&record.reasoning, REASONING_QUOTED),
        facts: &facts,
        open: &open,
        closed: &closed,
        max_items,
        closes,
    })))
}

fn quoted_title(title: &str) -> String {
    quote_line(title, QUOTED)
}
