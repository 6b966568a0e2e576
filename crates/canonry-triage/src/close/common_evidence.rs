//! Finds evidence that proves nothing because many items of the repository contain it.

use canonry_domain::{Boilerplate, Item, ItemType};
use canonry_retrieval::{CommonFacts, FactCounter, TextFacts};
use canonry_store::{Repo, Store, StoreError};

use crate::close::row_evidence::evidence_text;
use crate::retrieval::index_upkeep::off_async_threads;

/// Texts that are read at once.
const PAGE: u32 = 500;

/// The facts of these items that too many items contain. All texts are read once for all items.
pub(crate) async fn common_facts_among(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    boilerplate: &Boilerplate,
    items: impl Iterator<Item = &Item>,
) -> Result<CommonFacts, StoreError> {
    let mut counter = FactCounter::default();
    for item in items {
        counter.add(&TextFacts::of(&evidence_text(&boilerplate.own(item))));
    }
    if counter.is_empty() { Ok(CommonFacts::default()) } else { counted(store, repo, item_type, counter).await }
}

/// All facts that too many items contain, for a run about many items whose texts do not fit in memory together.
pub(crate) async fn every_common_fact(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
) -> Result<CommonFacts, StoreError> {
    counted(store, repo, item_type, FactCounter::of_all()).await
}

async fn counted(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    mut counter: FactCounter,
) -> Result<CommonFacts, StoreError> {
    let mut after = None;
    loop {
        let page = store.corpus().texts_after(repo.id, item_type, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(counter.common()) };
        after = Some(last.number);
        counter = off_async_threads(move || {
            page.iter().for_each(|item| counter.count(&TextFacts::of(&format!("{}\n{}", item.title, item.body))));
            counter
        })
        .await;
    }
}
