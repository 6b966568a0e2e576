//! The text that many items of a repository share: learned when enough has changed, read by everybody who compares.

use canonry_boxed::boxed;
use canonry_domain::{Boilerplate, BoilerplateLearner, ItemType};
use canonry_store::{Repo, Store, StoreError, StoredBoilerplate};
use jiff::Timestamp;

use crate::retrieval::index_upkeep::off_async_threads;

/// Texts that are read at once.
const PAGE: u32 = 500;
/// It is learned again after one in so many texts is new: every one in a small repository, every 250th in one of 50,000,
/// where it takes two seconds.
const LEARNED_AFTER: u64 = 200;

/// What is known of the shared text; nothing before somebody learned it.
#[boxed]
pub async fn stored_boilerplate(store: &Store, repo: &Repo, item_type: ItemType) -> Result<Boilerplate, StoreError> {
    Ok(store.corpus().boilerplate(repo.id, item_type).await?.unwrap_or_default().boilerplate)
}

/// The same, learned again where enough texts have changed. What it takes from or gives to an item makes the item's vector
/// outdated. `texts` is what `count_texts` counts, where that is known.
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

/// Keeps the lines of template files for good: a former version stays in the issues that were made with it.
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
