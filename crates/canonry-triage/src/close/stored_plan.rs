//! Loads a stored plan, with people's decisions about its rows and the results of applying it.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemType, Login};
use canonry_store::{CloseMode, CloseRun, CloseRunId, CloseRunRow, Repo, Store, StoreError};
use jiff::Timestamp;

use crate::close::plan_close::PlannedRow;

#[derive(Debug, Clone, PartialEq)]
pub struct StoredPlan {
    pub run: CloseRun,
    pub rows: Vec<PlannedRow>,
}

/// `None` if the repository has no such plan.
#[boxed]
pub async fn stored_plan(store: &Store, repo: &Repo, id: CloseRunId) -> Result<Option<StoredPlan>, StoreError> {
    let run = store.plans().run(id).await?;
    let Some(run) = run.filter(|run| run.repo.id == repo.id && run.mode == CloseMode::Plan) else {
        return Ok(None);
    };
    let rows = store.plans().rows(id).await?;
    let results: BTreeMap<(ItemType, ItemNumber), String> = match store.plans().apply_of(id).await? {
        Some(apply) => store
            .plans()
            .rows(apply.id)
            .await?
            .into_iter()
            .filter_map(|row| Some(((row.item_type, row.number), result_of(&row)?)))
            .collect(),
        None => BTreeMap::new(),
    };
    let mut titles = BTreeMap::new();
    for item_type in ItemType::ALL {
        let named = rows.iter().filter(|row| row.item_type == *item_type);
        let mut numbers: Vec<ItemNumber> =
            named.flat_map(|row| std::iter::once(row.number).chain(row.target)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let items = store.corpus().items_by_number(repo.id, *item_type, &numbers).await?;
        titles.extend(items.into_iter().map(|item| ((*item_type, item.number), item.title)));
    }
    let title = |item_type, number| titles.get(&(item_type, number)).cloned().unwrap_or_default();
    let rows = rows
        .into_iter()
        .filter_map(|row| {
            let target = row.target?;
            Some(PlannedRow {
                item_type: row.item_type,
                number: row.number,
                title: title(row.item_type, row.number),
                target,
                target_title: title(row.item_type, target),
                skip: row.skip,
                confidence: row.confidence,
                evidence: serde_json::from_value(row.evidence).unwrap_or_default(),
                approved: row.approved,
                approved_by: row.approved_by,
                approved_at: row.approved_at,
                result: results.get(&(row.item_type, row.number)).cloned(),
            })
        })
        .collect();
    Ok(Some(StoredPlan { run, rows }))
}

/// Records a person's decision about rows. Returns the number of rows it was recorded for.
pub async fn set_rows_approved(
    store: &Store,
    plan: CloseRunId,
    rows: impl Iterator<Item = (ItemType, ItemNumber)>,
    approved: Option<bool>,
    by: Option<&Login>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let mut by_type: BTreeMap<ItemType, Vec<ItemNumber>> = BTreeMap::new();
    for (item_type, number) in rows {
        by_type.entry(item_type).or_default().push(number);
    }
    let mut noted = 0;
    for (item_type, numbers) in by_type {
        noted += store.plans().set_approved(plan, item_type, &numbers, approved, by, now).await?;
    }
    Ok(noted)
}

fn result_of(row: &CloseRunRow) -> Option<String> {
    let result = row.result.as_ref()?;
    Some(match &result.reason {
        Some(reason) => format!("{}: {reason}", result.outcome.as_str()),
        None => result.outcome.as_str().to_owned(),
    })
}
