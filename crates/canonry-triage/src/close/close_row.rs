//! Processes one row of a plan, from the last check to the recorded result.

use canonry_config::{CloseSettings, RepoConfig};
use canonry_domain::{
    ClosingText, DAILY_LIMIT_WINDOW, GithubId, ItemNumber, ItemType, Maintainers, POSSIBLE_DUPLICATE, PairFact,
    RowSnapshot, SkipReason, WriteOrigin, closing_comment, comment_if_refused,
};
use canonry_github::api::RestIssue;
use canonry_github::outbox::{Close, CloseAs, Write};
use canonry_store::{CloseOutcome, CloseResult, CloseRun, CloseRunId, CloseRunRow, OutboxState};
use serde_json::Value;

use crate::close::close_recheck::{LookError, PlannedClose, RowCheck, WithdrawnClose};
use crate::close::close_refusal::{CloseRefusal, withdrawn};
use crate::close::close_report::RowResult;
use crate::close::close_writes::{CloseContext, ClosingError, RowItem, WriteEnd, close_key, row_key};
use crate::close::live_item::is_gone;
use crate::close::row_evidence::RowEvidence;
use crate::grace::grace_recheck::GraceWatch;
use crate::online::listening_service::is_service_listening;
use crate::online::suggestion_comment::quoted_title;

/// The result of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowOutcome {
    pub(crate) result: RowResult,
    pub(crate) reason: Option<String>,
    /// Whether the row is finished. Otherwise the next run continues or retries it.
    pub(crate) is_final: bool,
}

/// The plan that rows belong to, and what they are checked against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanRows<'a> {
    pub(crate) closing: CloseContext<'a>,
    pub(crate) plan: &'a CloseRun,
    pub(crate) run: CloseRunId,
    pub(crate) maintainers: &'a Maintainers,
    pub(crate) config: &'a RepoConfig,
    /// The grace period that the plan's only row comes from, if any.
    pub(crate) watch: Option<&'a GraceWatch<'a>>,
}

impl PlanRows<'_> {
    /// Closes the item of one row, unless a person excluded it.
    pub(crate) async fn close(
        &self,
        row: &CloseRunRow,
        target: ItemNumber,
        approved_only: bool,
    ) -> Result<RowOutcome, ClosingError> {
        let item = RowItem { item_type: row.item_type, number: row.number };
        let key = close_key(self.plan.id, item);
        let snapshot: RowSnapshot = match serde_json::from_value(row.snapshot.clone()) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let words = format!("the stored snapshot of this row cannot be read: {error}");
                return self.record(item, CloseOutcome::Failed, Some(words), &key.text).await;
            }
        };
        let planned = PlannedClose {
            closing: self.closing,
            item,
            target,
            key: &key.text,
            plan: self.plan,
            approved_only,
            snapshot: &snapshot,
            maintainers: self.maintainers,
            protected_labels: &self.config.close.protected_labels,
            watch: self.watch,
        };
        let entry = match self.closing.store.outbox().of_key(&key.text).await? {
            Some(begun) => begun,
            None => {
                if self.is_below_own_minimum(row) {
                    let reason = SkipReason::LowConfidence.to_string();
                    return self.record(item, CloseOutcome::Skipped, Some(reason), &key.text).await;
                }
                if row.approved != Some(true) && self.is_daily_limit_reached().await? {
                    return Ok(skipped_for_now(SkipReason::DailyLimit));
                }
                let original = match planned.look(&self.closing.repo.name).await {
                    Ok(RowCheck::Fit(original)) => original,
                    Ok(RowCheck::Unfit(refusal)) => {
                        return self.record(item, CloseOutcome::Skipped, Some(refusal.to_string()), &key.text).await;
                    }
                    Err(LookError::Store(error)) => return Err(error.into()),
                    Err(LookError::GitHub(error)) if is_gone(&error) => {
                        return self.record(item, CloseOutcome::Failed, Some(error.to_string()), &key.text).await;
                    }
                    Err(LookError::GitHub(error)) => return Ok(failed_for_now(error.to_string())),
                    Err(error @ LookError::Unreadable(_)) => {
                        return self.record(item, CloseOutcome::Skipped, Some(error.to_string()), &key.text).await;
                    }
                    Err(LookError::Unclear(words)) => return Ok(failed_for_now(words)),
                };
                let write = self.close_write(row, target, &original, self.heard_handle().await?);
                self.closing.outbox.enqueue(self.closing.repo.id, item.number, &key, write).await?
            }
        };
        let entry = self.closing.outbox.publish(entry.id, &planned).await?;
        self.finish(item, WriteEnd::of(&entry), &key.text).await
    }

    /// Ends a close that has begun and must not continue: nothing more is sent, and a comment that announced it is
    /// corrected. `None` if it was never begun.
    pub(crate) async fn withdraw(&self, item: RowItem, why: &str) -> Result<Option<RowOutcome>, ClosingError> {
        let key = close_key(self.plan.id, item);
        let Some(begun) = self.closing.store.outbox().of_key(&key.text).await? else { return Ok(None) };
        let reason = withdrawn(why);
        let entry = self
            .closing
            .outbox
            .publish(begun.id, &WithdrawnClose { closing: self.closing, key: &key.text, reason: &reason })
            .await?;
        self.finish(item, WriteEnd::of(&entry), &key.text).await.map(Some)
    }

    /// Withdraws closes that other plans have begun on an item, before this plan begins. Returns the items that those
    /// plans named as the target.
    pub(crate) async fn withdraw_other_plans(&self, item: RowItem) -> Result<Vec<RowItem>, ClosingError> {
        let CloseContext { store, repo, github, .. } = self.closing;
        let mut touched = Vec::new();
        for entry in store.outbox().of_item(repo.id, item.number).await? {
            let is_close = entry.source.origin == WriteOrigin::Close && entry.state == OutboxState::Pending;
            let other = entry.source.record.filter(|plan| is_close && *plan != self.plan.id.get());
            let Some(other) = other else { continue };
            let Some(plan) = store.plans().run(CloseRunId::new(other)).await? else { continue };
            let Some(run) = store.plans().begin_apply(plan.id, &plan.run_id, github.now()).await? else { continue };
            let rows = PlanRows { plan: &plan, run: run.id, watch: None, ..*self };
            rows.withdraw(item, &format!("plan {} came after it", self.plan.id.get())).await?;
            let theirs = store.plans().rows(plan.id).await?;
            let theirs = theirs.iter().filter(|row| (row.item_type, row.number) == (item.item_type, item.number));
            touched.extend(theirs.filter_map(|row| row.target).map(|number| RowItem { number, ..item }));
        }
        Ok(touched)
    }

    /// Whether the repository requires more confidence than the default and the row has less, whatever it was planned
    /// with.
    fn is_below_own_minimum(&self, row: &CloseRunRow) -> bool {
        let own = self.config.close.min_close;
        own > CloseSettings::default().min_close && row.confidence.is_none_or(|confidence| confidence.get() < own)
    }

    /// The daily limit applies to closes without a person's approval.
    async fn is_daily_limit_reached(&self) -> Result<bool, ClosingError> {
        let since = self.closing.github.now() - DAILY_LIMIT_WINDOW;
        let closed = self.closing.store.plans().closes_since(self.closing.repo.id, since).await?;
        Ok(closed >= u64::from(self.config.close.max_per_day))
    }

    /// The handle that commands begin with, if a service receives them. Closes of a grace period are made by a
    /// service.
    async fn heard_handle(&self) -> Result<Option<&str>, ClosingError> {
        let CloseContext { store, github, repo, .. } = self.closing;
        let is_heard = self.watch.is_some() || is_service_listening(store, repo, github.now()).await?;
        Ok(is_heard.then_some(self.config.mentions.handle.as_str()))
    }

    fn close_write(&self, row: &CloseRunRow, target: ItemNumber, original: &RestIssue, handle: Option<&str>) -> Write {
        let title = quoted_title(&original.title);
        let facts = shared_facts(&row.evidence);
        let comment = closing_comment(&ClosingText {
            item_type: row.item_type,
            target,
            target_title: Some(&title),
            facts: &facts,
            approved: row.approved == Some(true),
            handle,
            template: self.config.close.message.as_deref(),
        });
        let close_as = match row.item_type {
            ItemType::Issue => CloseAs::DuplicateOf(GithubId(original.id)),
            ItemType::Pr => CloseAs::Pull,
        };
        Write::Close(Close { close_as, comment, comment_if_refused: comment_if_refused(row.item_type, target) })
    }

    /// Labels a closed item, and records how the row ended.
    async fn finish(&self, item: RowItem, ended: WriteEnd, key: &str) -> Result<RowOutcome, ClosingError> {
        match ended {
            WriteEnd::Pending(words) => {
                Ok(RowOutcome { result: RowResult::Pending, reason: Some(words), is_final: false })
            }
            WriteEnd::Sent(receipt) if receipt.objected => {
                let words = "somebody reopened it before the close was confirmed; it stays open".to_owned();
                self.record(item, CloseOutcome::Applied { objected: true }, Some(words), key).await
            }
            WriteEnd::Sent(_) => {
                let label = Write::Label { name: POSSIBLE_DUPLICATE.to_owned() };
                let reason = match self
                    .closing
                    .write(item.number, &row_key(WriteOrigin::CloseLabel, self.plan.id, item), label)
                    .await?
                {
                    WriteEnd::Sent(_) => None,
                    WriteEnd::Pending(words) => {
                        return Ok(RowOutcome { result: RowResult::Pending, reason: Some(words), is_final: false });
                    }
                    WriteEnd::Refused(words) | WriteEnd::Failed(words) => {
                        Some(format!("closed, but the label {POSSIBLE_DUPLICATE} could not be set: {words}"))
                    }
                };
                self.record(item, CloseOutcome::Applied { objected: false }, reason, key).await
            }
            WriteEnd::Refused(words) if CloseRefusal::of(&words).is_rule() => {
                self.record(item, CloseOutcome::Skipped, Some(words), key).await
            }
            WriteEnd::Refused(words) | WriteEnd::Failed(words) => {
                self.record(item, CloseOutcome::Failed, Some(words), key).await
            }
        }
    }

    async fn record(
        &self,
        item: RowItem,
        outcome: CloseOutcome,
        reason: Option<String>,
        key: &str,
    ) -> Result<RowOutcome, ClosingError> {
        let CloseContext { store, github, .. } = self.closing;
        let result = CloseResult { outcome, reason: reason.as_deref(), outbox_key: Some(key) };
        store.plans().record_close_result(self.run, item.item_type, item.number, result, github.now()).await?;
        Ok(RowOutcome { result: outcome.into(), reason, is_final: true })
    }
}

fn skipped_for_now(reason: SkipReason) -> RowOutcome {
    RowOutcome { result: RowResult::Skipped, reason: Some(reason.to_string()), is_final: false }
}

fn failed_for_now(words: String) -> RowOutcome {
    RowOutcome { result: RowResult::Failed, reason: Some(words), is_final: false }
}

/// The facts that both items share, as stored in the plan.
fn shared_facts(evidence: &Value) -> Vec<PairFact> {
    let evidence: RowEvidence = serde_json::from_value(evidence.clone()).unwrap_or_default();
    evidence.facts.iter().filter_map(|fact| PairFact::parse(fact)).collect()
}
