//! The comment that a stored triage record leads to, whether or not it is posted.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, Verdict};
use canonry_store::{NewTriageRecord, Repo, Store, StoreError};

use crate::close::common_evidence::common_facts_among;
use crate::online::suggestion_comment::{SuggestedItem, suggestion_of};
use crate::retrieval::boilerplate::stored_boilerplate;

/// The suggestion for an item by its record; `None` if the record has no target or the verdict is "not a duplicate".
#[boxed]
pub async fn suggestion_preview(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    record: &NewTriageRecord,
) -> Result<Option<String>, StoreError> {
    let Some(target) = record.target.filter(|_| record.verdict != Verdict::NotDuplicate) else { return Ok(None) };
    let items = store.corpus().items_by_number(repo.id, item_type, &[number, target]).await?;
    let find = |wanted: ItemNumber| items.iter().find(|item| item.number == wanted);
    let Some(item) = find(number) else { return Ok(None) };
    let boilerplate = stored_boilerplate(store, repo, item_type).await?;
    let common = common_facts_among(store, repo, item_type, &boilerplate, std::iter::once(item)).await?;
    let suggested = SuggestedItem {
        repo: &repo.name,
        item,
        target: find(target),
        boilerplate: &boilerplate,
        common: &common,
        others: &[],
        max_items: 1,
        closes_at: None,
    };
    Ok(suggestion_of(suggested, record))
}
