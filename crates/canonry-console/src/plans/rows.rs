//! One page of a plan's rows, grouped by the item that stays open.

use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemState, ItemType, SkipReason};
use canonry_store::{PlanSummary, ReviewedRow};

use crate::console::Console;
use crate::layout::errors::PageError;
use crate::layout::formatting::{item_path, score};
use crate::layout::page::repo_path;
use crate::layout::paging::PAGE;
use crate::plans::pair::{ApprovalView, ResultView, approval_view, can_be_undone, result_view};
use crate::plans::selection::{PlanSelection, write_item};
use crate::sign_in::visit::RepoVisit;

pub(crate) struct TargetGroup {
    pub(crate) target: Option<TargetLine>,
    pub(crate) rows: Vec<RowLine>,
}

pub(crate) struct TargetLine {
    pub(crate) number: ItemNumber,
    pub(crate) title: String,
    pub(crate) is_open: bool,
    pub(crate) href: String,
}

pub(crate) struct RowLine {
    /// `row-issue-12`.
    pub(crate) id: String,
    /// `issue/12`, as forms name it.
    pub(crate) item: String,
    pub(crate) number: ItemNumber,
    pub(crate) title: String,
    pub(crate) href: String,
    pub(crate) confidence: Option<String>,
    pub(crate) reason: Option<&'static str>,
    pub(crate) approval: Option<ApprovalView>,
    pub(crate) result: Option<ResultView>,
    pub(crate) is_current: bool,
    pub(crate) is_left: bool,
    pub(crate) undo: Option<String>,
}

/// A page of rows and one extra. If the selected row is not on it, the page begins with that row.
pub(crate) async fn rows_of(
    console: &Console,
    plan: &PlanSummary,
    selection: PlanSelection,
    row: Option<(ItemType, ItemNumber)>,
) -> Result<(PlanSelection, Vec<ReviewedRow>), PageError> {
    let rows = console.store.plans().rows_page(plan, selection.filter(), selection.after, PAGE + 1).await?;
    let Some(row) = row else { return Ok((selection, rows)) };
    let is_chosen = |reviewed: &ReviewedRow| (reviewed.row.item_type, reviewed.row.number) == row;
    if rows.iter().take(PAGE as usize).any(is_chosen) {
        return Ok((selection, rows));
    }
    let before = console.store.plans().row_before(plan, selection.filter(), row.0, row.1).await?;
    let from = console.store.plans().rows_page(plan, selection.filter(), before, PAGE + 1).await?;
    // A row that does not match the filter, such as one that was just decided, is on no page of the list.
    if from.first().is_some_and(is_chosen) {
        return Ok((PlanSelection { after: before, ..selection }, from));
    }
    Ok((selection, rows))
}

/// The rows grouped by the item that stays open, with their titles.
pub(crate) async fn groups(
    at: &RepoVisit,
    path: &str,
    rows: Vec<ReviewedRow>,
    selection: &PlanSelection,
    current: Option<(ItemType, ItemNumber)>,
) -> Result<Vec<TargetGroup>, PageError> {
    let (base, now) = (repo_path(&at.repo), at.console.now());
    let mut items = BTreeMap::new();
    for &item_type in ItemType::ALL {
        let of_type = rows.iter().filter(|row| row.row.item_type == item_type);
        let mut numbers: Vec<ItemNumber> =
            of_type.flat_map(|row| std::iter::once(row.row.number).chain(row.row.target)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let found = at.items(item_type, &numbers).await?;
        items.extend(found.into_iter().map(|item| ((item_type, item.number), (item.title, item.state))));
    }
    let mut groups: Vec<TargetGroup> = Vec::new();
    let mut last = None;
    for reviewed in rows {
        let row = &reviewed.row;
        let key = (row.item_type, row.target);
        if last != Some(key) {
            let target = row.target.and_then(|number| {
                let (title, state) = items.get(&(row.item_type, number))?.clone();
                let href = item_path(&base, row.item_type, number);
                Some(TargetLine { number, title, is_open: state == ItemState::Open, href })
            });
            groups.push(TargetGroup { target, rows: Vec::new() });
            last = Some(key);
        }
        let item = write_item(row.item_type, row.number);
        let line = RowLine {
            id: format!("row-{}-{}", row.item_type, row.number),
            href: selection.link(&format!("{path}/rows/{item}")),
            number: row.number,
            title: items.get(&(row.item_type, row.number)).map(|(title, _)| title.clone()).unwrap_or_default(),
            confidence: row.confidence.map(|confidence| score(confidence.get())),
            reason: row.skip.map(|reason| reason.in_words()),
            approval: approval_view(&reviewed, now),
            result: result_view(&reviewed, now),
            is_current: current == Some((row.item_type, row.number)),
            is_left: row.skip.is_none_or(|skip| skip == SkipReason::Excluded) && row.result.is_none(),
            undo: (at.can_maintain() && can_be_undone(&reviewed))
                .then(|| format!("{}#undo-row", selection.link(&format!("{path}/rows/{item}")))),
            item,
        };
        if let Some(group) = groups.last_mut() {
            group.rows.push(line);
        }
    }
    Ok(groups)
}
