//! The text that many items of a repository share (boilerplate): learned when enough has changed, used for every
//! comparison.

use canonry_boxed::boxed;
use canonry_domain::{Boilerplate, BoilerplateLearner, ItemType};
use canonry_store::{Repo, Store, StoreError, StoredBoilerplate};
use jiff::Timestamp;

use crate::retrieval::index_upkeep::off_async_threads;

const PAGE: u32 = 500;
/// Boilerplate is learned again after one in this many texts is new: every text in a small repository, every 250th in
/// one of 50,000, where learning takes two seconds.
const LEARNED_AFTER: u64 = 200;

/// The stored boilerplate; empty before it was first learned.
#[boxed]
pub async fn stored_boilerplate(store: &Store, repo: &Repo, item_type: ItemType) -> Result<Boilerplate, StoreError> {
    Ok(store.corpus().boilerplate(repo.id, item_type).await?.unwrap_or_default().boilerplate)
}

/// The boilerplate, learned again if enough texts have changed. If this changes an item's own text, the item's vector
/// is outdated. `texts` is the result of `count_texts`, if known.
pub(crate) async fn refresh_boilerplate(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    texts: Option<u64>,
    now: Timestamp,
) -> Result<Boilerplate, StoreError> {
    let stored = store.corpus().boilerplate(repo.id, item_type).await?;
    let texts = match texts {
        Some(texts) => texts,
        None => store.corpus().count_texts(repo.id, item_type).await?,
    };
    if let Some(stored) = &stored
        && texts.abs_diff(stored.texts) < (stored.texts / LEARNED_AFTER).max(1)
    {
        return Ok(stored.boilerplate.clone());
    }
    let files = stored.as_ref().map(|stored| stored.boilerplate.clone()).unwrap_or_default();
    learn(store, repo, item_type, stored.as_ref(), &files, now).await
}

/// Keeps the lines of template files permanently: issues that were made with a former version still contain it.
pub(crate) async fn keep_templates(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    templates: &Boilerplate,
    now: Timestamp,
) -> Result<(), StoreError> {
    let stored = store.corpus().boilerplate(repo.id, item_type).await?;
    let known = stored.as_ref().map(|stored| stored.boilerplate.clone()).unwrap_or_default();
    let files = known.clone().with_files_of(templates);
    if files != known {
        learn(store, repo, item_type, stored.as_ref(), &files, now).await?;
    }
    Ok(())
}

async fn learn(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    stored: Option<&StoredBoilerplate>,
    files: &Boilerplate,
    now: Timestamp,
) -> Result<Boilerplate, StoreError> {
    let (texts, since) =
        (store.corpus().count_texts(repo.id, item_type).await?, store.corpus().index_version(repo.id).await?.version);
    let mut learner = BoilerplateLearner::default();
    let mut after = None;
    loop {
        let page = store.corpus().texts_after(repo.id, item_type, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.number);
        learner = off_async_threads(move || {
            for text in &page {
                learner.read(text.number, text.author.as_ref(), &text.title, &text.body);
            }
            learner
        })
        .await;
    }
    let (before, files) = (stored.map(|stored| stored.boilerplate.clone()), files.clone());
    let (boilerplate, changed) = off_async_threads(move || {
        let boilerplate = learner.learn().with_files_of(&files);
        let changed = learner.changed(before.as_ref(), &boilerplate);
        (boilerplate, changed)
    })
    .await;
    let learned = StoredBoilerplate { boilerplate, texts };
    store.corpus().write_boilerplate(repo.id, item_type, &learned, &changed, since, now).await?;
    Ok(learned.boilerplate)
}
