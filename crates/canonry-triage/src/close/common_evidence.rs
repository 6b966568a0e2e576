//! Finds evidence that proves nothing because many items of the repository contain it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use canonry_domain::{ItemType, PairFact};
use canonry_retrieval::is_common;
use canonry_store::{Repo, Store, StoreError};
use regex::RegexSet;

use crate::retrieval::index_upkeep::off_async_threads;

/// Texts that are read at once.
const PAGE: u32 = 500;
/// Facts of one set: a larger one exceeds the size limit of compiled expressions.
const FACTS_PER_SET: usize = 100;

/// Removes the facts that too many items contain. Plans have no index at hand, so all texts are read once for all
/// rows of a plan: 25,000 issues take about a second.
pub(crate) async fn remove_common<K: Ord>(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    facts: &mut BTreeMap<K, Vec<PairFact>>,
) -> Result<(), StoreError> {
    let texts: BTreeSet<String> = facts.values().flatten().map(|fact| fact.text().to_owned()).collect();
    if texts.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = texts.into_iter().collect();
    let sets: Arc<Vec<RegexSet>> = Arc::new(texts.chunks(FACTS_PER_SET).map(set_of).collect());
    let (mut counts, mut items, mut after) = (vec![0; texts.len()], 0, None);
    loop {
        let page = store.corpus().texts_after(repo.id, item_type, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        (after, items) = (Some(last.number), items + page.len());
        let sets = Arc::clone(&sets);
        counts = off_async_threads(move || {
            for text in page.iter().map(|item| format!("{}\n{}", item.title, item.body)) {
                for (at, set) in sets.iter().enumerate() {
                    set.matches(&text).iter().for_each(|found| counts[at * FACTS_PER_SET + found] += 1);
                }
            }
            counts
        })
        .await;
    }
    let common: BTreeSet<&str> =
        texts.iter().zip(counts).filter(|(_, count)| is_common(*count, items)).map(|(text, _)| text.as_str()).collect();
    facts.values_mut().for_each(|facts| facts.retain(|fact| !common.contains(fact.text())));
    Ok(())
}

/// Finds each text as whole words, in any case. Texts that cannot be compiled are never found and count as rare.
fn set_of(texts: &[String]) -> RegexSet {
    let is_word = |character: Option<char>| character.is_some_and(|character| character.is_alphanumeric());
    let boundary = |is_word: bool| if is_word { r"\b" } else { "" };
    let pattern = |text: &String| {
        let (before, after) = (boundary(is_word(text.chars().next())), boundary(is_word(text.chars().last())));
        format!("(?i){before}{}{after}", regex::escape(text))
    };
    RegexSet::new(texts.iter().map(pattern)).unwrap_or_else(|_| RegexSet::empty())
}
