//! What a maintainer can do beside an item's verdict: rule on the pair, and undo a ruling, an announced close or a
//! close.

use canonry_domain::{ItemNumber, ItemState, Override, OverrideKind};
use canonry_store::{CloseMode, CloseOutcome, GraceState, ItemClose};
use canonry_triage::ItemHistory;

use crate::plans::selection::write_item;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct VerdictActions {
    /// The best candidate, which a ruling is about.
    pub(crate) target: Option<ItemNumber>,
    pub(crate) can_rule_same: bool,
    pub(crate) can_rule_different: bool,
    /// The current ruling about the pair.
    pub(crate) ruling: Option<i64>,
    /// The announced close that is not cancelled.
    pub(crate) grace: Option<i64>,
    /// The row of the plan that closed the item, where it can be undone.
    pub(crate) close: Option<String>,
}

impl VerdictActions {
    pub(crate) fn new(
        history: &ItemHistory,
        closes: &[ItemClose],
        in_force: &[Override],
        target: Option<ItemNumber>,
        path: &str,
    ) -> Self {
        let item = &history.item;
        let is_pair = |ruled: &&Override| match ruled.kind {
            OverrideKind::Duplicate | OverrideKind::Excluded => ruled.item == item.number && ruled.other == target,
            OverrideKind::NotDuplicate => {
                (ruled.item == item.number && ruled.other == target)
                    || (Some(ruled.item) == target && ruled.other == Some(item.number))
            }
            OverrideKind::Canonical => false,
        };
        let ruled = in_force.iter().rev().find(is_pair).filter(|_| target.is_some());
        let kind = ruled.map(|ruled| ruled.kind);
        let is_applied = |close: &ItemClose, mode: CloseMode| {
            let result = close.row.result.as_ref();
            close.mode == mode && result.is_some_and(|result| matches!(result.outcome, CloseOutcome::Applied { .. }))
        };
        let closed = closes.iter().find(|close| is_applied(close, CloseMode::Apply)).filter(|closed| {
            let is_undone = closes.iter().any(|close| is_applied(close, CloseMode::Undo) && close.plan == closed.plan);
            item.state == ItemState::Closed && !is_undone
        });
        Self {
            target,
            can_rule_same: target.is_some() && kind != Some(OverrideKind::Duplicate),
            can_rule_different: target.is_some() && kind != Some(OverrideKind::NotDuplicate),
            ruling: ruled.map(|ruled| ruled.id),
            grace: history.graces.iter().find(|grace| grace.state == GraceState::Waiting).map(|grace| grace.id),
            close: closed.map(|close| {
                let row = write_item(item.item_type, item.number);
                format!("{path}/plans/{}/rows/{row}#undo-row", close.plan)
            }),
        }
    }
}
