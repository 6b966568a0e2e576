//! Finds evidence that proves nothing because many items of the repository contain it.

use canonry_boxed::boxed;
use canonry_domain::{Boilerplate, Item, ItemType};
use canonry_retrieval::{CommonFacts, FactCounter, TextFacts};
use canonry_store::{Repo, Store, StoreError};

use crate::close::row_evidence::evidence_text;
use crate::online::detect_new::{Detectors, common_facts_of};
use crate::retrieval::index_upkeep::off_async_threads;

/// The facts of an item that too many items contain: from the index if there is one, else from all texts.
#[boxed]
pub async fn common_evidence(
    store: &Store,
    repo: &Repo,
    boilerplate: &Boilerplate,
    item: &Item,
    with: Option<Detectors<'_>>,
) -> Result<CommonFacts, StoreError> {
    if let Some(with) = with.filter(|with| with.indexes.is_some()) {
        match common_facts_of(store, repo, item, with).await {
            Ok(common) => return Ok(common),
            Err(error) => {
                tracing::warn!(repo = %repo.name, %error, "there is no index for evidence; all texts are read");
            }
        }
    }
    common_facts_among(store, repo, item.item_type, boilerplate, std::iter::once(item)).await
}

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
