//! Triages one item: finds the verdict, records it, and queues a comment on GitHub if the repository wants comments.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{
    ActionReason, CommentDecision, Component, DESCRIPTION_RECEIVED, DESCRIPTION_REQUEST, GraceCandidate, Item,
    ItemNumber, ItemState, ItemType, Login, OnlineReason, OnlineVerdict, PLAN_LIFETIME, POSSIBLE_DUPLICATE, PairItem,
    Probability, RepoName, TriageMode, TriageReason, Verdict, WriteKey, WriteOrigin, decide_comment,
    has_protected_label, may_announce_close, triage_failed, withdrawn_text,
};
use canonry_github::outbox::{Outbox, OutboxError, Write};
use canonry_models::chat::BudgetRefusal;
use canonry_retrieval::CommonFacts;
use canonry_store::{
    NewTriageRecord, OutboxEntry, Repo, Store, StoreError, StoredTriageAction, StoredTriageRecord, TriageAction,
    TriageActionKind,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use crate::corpus::analyze_intent::{AnalyzeFailure, AnalyzeOptions, IntentExtractor, analyze_intent};
use crate::corpus::pull_changes::fetch_changes;
use crate::judge::known_duplicates::KnownDuplicates;
use crate::online::detect_new::{DetectError, DetectOptions, Detection, Detectors, common_facts_of, detect_item};
use crate::online::posted_triage::{PostedTriage, TriageKeys};
use crate::online::suggestion_comment::{SuggestedItem, suggestion_of};
use crate::online::triage_decision::{TriageDecision, TriageSituation, decide};
use crate::retrieval::embed::{EmbedFailure, EmbedOptions, EmbedSource, embed};

/// A repository's rules for triage.
#[derive(Debug, Clone, PartialEq)]
pub struct TriageRules {
    pub mode: TriageMode,
    /// The maximum number of items that a comment names, including the target.
    pub max_candidates: usize,
    pub exclude_labels: Vec<String>,
    /// Whether a comment asks for a description if an issue contains only its template.
    pub ask_for_description: bool,
    /// For how long no second comment is posted on the same item.
    pub cooldown: SignedDuration,
    /// The rules for announced closes; `None` if nothing is closed.
    pub grace: Option<GraceRules>,
}

/// The rules for closing sure duplicates to which nobody objects.
#[derive(Debug, Clone, PartialEq)]
pub struct GraceRules {
    pub hours: u32,
    pub min_close: Probability,
    /// Items with one of these labels are never closed.
    pub protected_labels: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriageOutcome {
    /// `None` if the item was not checked.
    pub verdict: Option<OnlineVerdict>,
    pub triage_id: Option<i64>,
    pub action: Option<TriageActionKind>,
    /// The reason for the action, or why the item was not checked, in one word.
    pub reason: String,
}

/// Why an item could not be triaged. It is safe to repeat it: nothing is written twice.
#[derive(Debug, thiserror::Error)]
pub enum TriageError {
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// The judge gave no usable answer. This is recorded and never posted; the judge may be asked again.
    #[error("failed to judge {repo} #{number}: {why}")]
    JudgeFailed { repo: RepoName, number: ItemNumber, why: String },
    /// The repository's other items could not be embedded.
    #[error(transparent)]
    Embed(#[from] Box<EmbedFailure>),
    /// The intent cards of the repository's other items could not be made.
    #[error(transparent)]
    Analyze(#[from] Box<AnalyzeFailure>),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

/// Triages one item: checks it, records the verdict, and queues what is to be written on GitHub. Nothing is sent from
/// here. Without an outbox it works as in shadow mode.
///
/// The item is used as given: a caller that got it from a webhook or from GitHub need not fetch it again, and right
/// before anything is sent the live issue is read ([`crate::TriageRecheck`]). The run id identifies the triage: a
/// second call with the same id continues where the first one ended, and neither records nor writes anything twice.
#[expect(clippy::too_many_arguments, reason = "who, what, with what and by which rules; each is another thing")]
#[boxed]
pub async fn triage_item(
    store: &Store,
    outbox: Option<&Outbox>,
    repo: &Repo,
    mut item: Item,
    with: Detectors<'_>,
    options: &DetectOptions,
    rules: &TriageRules,
    now: Timestamp,
) -> Result<TriageOutcome, TriageError> {
    if rules.mode == TriageMode::Off {
        return Ok(TriageOutcome::untouched("mode"));
    }
    if let Some(begun) = begun_before(store, repo, &item, &options.run_id).await? {
        let known = KnownDuplicates::load(store, repo, item.item_type, begun.record.effective_source).await?;
        let triage = TriageRun { store, outbox, repo, item: &item, known: &known, rules, now };
        let common = match triage.is_carried_out(begun.id).await? {
            true => CommonFacts::default(),
            false => common_facts_of(store, repo, &item, with).await?,
        };
        let neighbours = triage.named_items(&begun.record).await?;
        // A record does not contain the other items that the judge considered possible duplicates.
        let shown = ShownEvidence { common: &common, others: &[] };
        return triage.settle(begun, &neighbours, shown, None).await;
    }
    if let Some(why) = left_alone(&item, rules) {
        return Ok(TriageOutcome::untouched(why));
    }
    if let (ItemType::Pr, Some(github)) = (item.item_type, with.github) {
        let changes = fetch_changes(github, &repo.name, item.number).await.map_err(DetectError::from)?;
        item = store.corpus().upsert_pull_changes(repo, &item, changes, now).await?;
    }
    let found = match detect_item(store, repo, &item, with, options, now).await {
        Err(DetectError::TooFewEmbedded { .. }) => {
            catch_up(store, repo, with, now).await?;
            detect_item(store, repo, &item, with, options, now).await?
        }
        found => found?,
    };
    let Detection { detected, record, known, neighbours, common, others } = found;
    // In a cascade the local judge answers what the model could not be asked.
    let is_unasked = triage_failed(&detected.verdict.reason);
    let unasked = options.budget.refusal().filter(|_| is_unasked).map(BudgetRefusal::reason);
    if triage_failed(&detected.verdict.reason) && unasked.is_none() {
        let why = detected.judge_failure.unwrap_or_else(|| detected.verdict.reason.clone());
        return Err(TriageError::JudgeFailed { repo: repo.name.clone(), number: item.number, why });
    }
    let triage = TriageRun { store, outbox, repo, item: &item, known: &known, rules, now };
    triage.settle(record, &neighbours, ShownEvidence { common: &common, others: &others }, unasked).await
}

impl TriageOutcome {
    fn untouched(why: &str) -> Self {
        Self { verdict: None, triage_id: None, action: None, reason: why.to_owned() }
    }

    fn of(record: &StoredTriageRecord, action: &TriageAction) -> Self {
        let NewTriageRecord { verdict, target, confidence, reason, .. } = &record.record;
        let (verdict, target, confidence) = (*verdict, *target, *confidence);
        Self {
            verdict: Some(OnlineVerdict { verdict, target, confidence, reason: reason.clone() }),
            triage_id: Some(record.id),
            action: Some(action.action),
            reason: action.reason.to_string(),
        }
    }
}

/// The record of an earlier call with the same run id. The record of a failed judge counts only if it was settled.
async fn begun_before(
    store: &Store,
    repo: &Repo,
    item: &Item,
    run_id: &str,
) -> Result<Option<StoredTriageRecord>, StoreError> {
    let (item_type, number) = (item.item_type, item.number);
    let Some(id) = store.duplicates().triage_record_of_run(repo.id, item_type, number, run_id).await? else {
        return Ok(None);
    };
    let records = store.duplicates().triage_records_of(repo.id, item_type, number).await?;
    let record = records.into_iter().find(|record| record.id == id);
    let record = record.ok_or_else(|| StoreError::Damaged(format!("the triage record {id} is missing")))?;
    if !triage_failed(&record.record.reason) {
        return Ok(Some(record));
    }
    let actions = store.duplicates().triage_actions_of(repo.id, item_type, number).await?;
    Ok(actions.iter().any(|stored| stored.action.triage_id == id).then_some(record))
}

/// Why an item is not checked.
fn left_alone(item: &Item, rules: &TriageRules) -> Option<&'static str> {
    if item.gone.is_some() {
        return Some("gone");
    }
    if item.state == ItemState::Closed {
        return Some("closed");
    }
    has_protected_label(&item.labels, &rules.exclude_labels).then_some("excluded_label")
}

/// Only one task at a time embeds a whole repository: a task that waits finds it done.
static CATCHING_UP: Mutex<()> = Mutex::const_new(());

/// Embeds items without a vector, so that an imported repository can be compared with.
async fn catch_up(store: &Store, repo: &Repo, with: Detectors<'_>, now: Timestamp) -> Result<(), TriageError> {
    let _alone = CATCHING_UP.lock().await;
    let source = match with.extractor {
        None => EmbedSource::Raw,
        Some(extractor) => {
            // Cards by a model cost money for each item of the repository; the operator has to decide that.
            if matches!(extractor, IntentExtractor::Local) {
                let options = AnalyzeOptions { item_type: None, state: None, only_changed: true, workers: 1 };
                analyze_intent(store, repo, extractor, options, now, &mut |_| {}).await?;
            }
            EmbedSource::Intent(extractor.maker().extractor)
        }
    };
    let options = EmbedOptions { source, only_changed: true, ..EmbedOptions::default() };
    let report = embed(store, with.embedder, repo, options, now, &mut |_| {}).await?;
    tracing::info!(repo = %repo.name, embedded = report.embedded, "the repository is embedded");
    Ok(())
}

/// The suggestion, and what was posted before.
#[derive(Clone, Copy)]
struct SuggestionState<'a> {
    text: &'a str,
    said: &'a PostedTriage,
    /// Every target that was named, the last one first.
    named: &'a [ItemNumber],
    grace: Option<&'a GraceRules>,
}

/// What the comment needs in addition to the record.
#[derive(Clone, Copy)]
struct ShownEvidence<'a> {
    /// The facts of the item that many items contain.
    common: &'a CommonFacts,
    /// Other items that the judge considers possible duplicates, best first.
    others: &'a [ItemNumber],
}

/// An item whose record is stored.
struct TriageRun<'a> {
    store: &'a Store,
    outbox: Option<&'a Outbox>,
    repo: &'a Repo,
    item: &'a Item,
    known: &'a KnownDuplicates,
    rules: &'a TriageRules,
    now: Timestamp,
}

impl TriageRun<'_> {
    /// Whether all consequences of a record are stored, so that no text is needed for it any more.
    async fn is_carried_out(&self, triage_id: i64) -> Result<bool, StoreError> {
        let actions = self.actions().await?;
        let Some(stored) = actions.iter().find(|stored| stored.action.triage_id == triage_id) else {
            return Ok(false);
        };
        let key = match stored.action.action {
            TriageActionKind::Recorded | TriageActionKind::Withdrawn => return Ok(true),
            TriageActionKind::Commented => stored.action.comment_key.clone(),
            TriageActionKind::Edited => Some(self.keys().key(WriteOrigin::TriageEdit, triage_id).text),
        };
        let entries = self.store.outbox().of_item(self.repo.id, self.item.number).await?;
        Ok(entries.iter().any(|entry| Some(&entry.key) == key.as_ref()))
    }

    /// Decides what follows from the record, stores the decision, and then queues its writes. If the process is
    /// killed in between, the next call finds the decision and queues the writes.
    async fn settle(
        &self,
        record: StoredTriageRecord,
        neighbours: &BTreeMap<ItemNumber, Item>,
        ShownEvidence { common, others }: ShownEvidence<'_>,
        unasked: Option<TriageReason>,
    ) -> Result<TriageOutcome, TriageError> {
        let earlier = self.actions().await?;
        // The target of a person's ruling need not be a neighbour.
        let find = |number: ItemNumber| neighbours.get(&number).or_else(|| self.known.item(number));
        let target = record.record.named_item().and_then(|(number, _)| find(number));
        let grace = self.announced_grace(&record, target, &earlier).await?;
        let decided = earlier.iter().find(|stored| stored.action.triage_id == record.id);
        let decided_at = decided.map_or(self.now, |stored| stored.created_at);
        let suggested = SuggestedItem {
            repo: &self.repo.name,
            item: self.item,
            target,
            boilerplate: self.known.boilerplate(),
            common,
            others,
            max_items: self.rules.max_candidates,
            closes_at: grace.map(|grace| decided_at + SignedDuration::from_hours(i64::from(grace.hours))),
        };
        let is_asked = self.asks_for_description(&record);
        let text = match is_asked {
            true => DESCRIPTION_REQUEST.to_owned(),
            false => suggestion_of(suggested, &record.record).unwrap_or_default(),
        };
        let entries = self.store.outbox().of_item(self.repo.id, self.item.number).await?;
        let said = PostedTriage::read(&entries);
        let named = self.named_targets(&earlier, &entries).await?;
        let actions = match earlier.iter().any(|stored| stored.action.triage_id == record.id) {
            true => earlier,
            false => {
                let spoken = SuggestionState { text: &text, said: &said, named: &named, grace };
                let action = self.decide(&record, spoken, &earlier, unasked).await?;
                self.store.duplicates().record_triage_action(&action, self.now).await?;
                self.actions().await?
            }
        };
        let action = actions.iter().find(|stored| stored.action.triage_id == record.id);
        let Some(StoredTriageAction { action, .. }) = action else {
            return Err(StoreError::Damaged("a decision was stored and is missing".to_owned()).into());
        };
        // An earlier triage that is repeated must not undo the decision of a later one.
        if actions.first().is_some_and(|latest| latest.action.triage_id == record.id) {
            let is_labelled = record.record.fix.is_none() && !is_asked;
            self.carry_out(action, text, &said, &named, is_labelled).await?;
        }
        Ok(TriageOutcome::of(&record, action))
    }

    /// Whether the comment asks for a description instead of naming a similar issue.
    fn asks_for_description(&self, record: &StoredTriageRecord) -> bool {
        self.rules.ask_for_description
            && self.item.item_type == ItemType::Issue
            && !self.item.author.as_ref().is_some_and(Login::is_bot)
            && record.record.fix.is_none()
            && record.record.reason == OnlineReason::NoContent.to_string()
    }

    /// The rules of the close that the suggestion announces; `None` if it announces none. A triage that was decided
    /// before keeps its decision.
    async fn announced_grace(
        &self,
        record: &StoredTriageRecord,
        target: Option<&Item>,
        earlier: &[StoredTriageAction],
    ) -> Result<Option<&GraceRules>, StoreError> {
        let Some(grace) = self.rules.grace.as_ref().filter(|_| self.rules.mode == TriageMode::Grace) else {
            return Ok(None);
        };
        if let Some(decided) = earlier.iter().find(|stored| stored.action.triage_id == record.id) {
            let announced = ActionReason::Announced { hours: grace.hours };
            return Ok((decided.action.reason == announced).then_some(grace));
        }
        let (own, number) = (self.known.boilerplate().own(self.item), self.item.number);
        let candidate = GraceCandidate {
            item: &own,
            own_comments: self.known.own_comments(number),
            target: target.map(|item| PairItem { item, own_comments: self.known.own_comments(item.number) }),
            is_target_closing: match target {
                Some(target) => self.closes_onto_this(target.number).await?,
                None => false,
            },
            verdict: record.record.verdict,
            confidence: record.record.confidence,
            min_close: grace.min_close,
            protected_labels: &grace.protected_labels,
            maintainers: self.known.known_maintainers(),
            // Nobody is notified of an edited comment, and people may have answered it already.
            has_a_past: earlier.iter().any(|stored| stored.action.action != TriageActionKind::Recorded)
                || self.known.has_a_past(number)
                || !self.store.close().graces_of_item(self.repo.id, self.item.item_type, number).await?.is_empty(),
        };
        Ok(may_announce_close(&candidate).then_some(grace))
    }

    /// Whether another item is to be closed as a duplicate of this one.
    async fn closes_onto_this(&self, other: ItemNumber) -> Result<bool, StoreError> {
        let (pair, since) = ((other, self.item.number), self.now - PLAN_LIFETIME);
        self.store.plans().is_closing_towards(self.repo.id, self.item.item_type, pair, since).await
    }

    async fn decide(
        &self,
        record: &StoredTriageRecord,
        SuggestionState { text, said, named, grace }: SuggestionState<'_>,
        earlier: &[StoredTriageAction],
        unasked: Option<TriageReason>,
    ) -> Result<TriageAction, StoreError> {
        let mode = if self.outbox.is_some() { self.rules.mode } else { TriageMode::Shadow };
        let component = Component::of_labels(self.item.labels.iter().map(String::as_str));
        let thresholds = self.store.learning().thresholds(self.repo.id).await?;
        let governing = thresholds.governing(component.as_ref());
        let (target, score) = record.record.named_item().unzip();
        let is_asked = self.asks_for_description(record);
        // A comment about a fix is posted like one about a possible duplicate.
        let verdict = if record.record.fix.is_some() { Verdict::MaybeDuplicate } else { record.record.verdict };
        let is_withdrawn = earlier
            .iter()
            .find(|stored| stored.action.action != TriageActionKind::Recorded)
            .is_some_and(|stored| stored.action.action == TriageActionKind::Withdrawn)
            || said.is_ruled_apart;
        let decision = if let Some(why) = unasked {
            TriageDecision::Record(why)
        } else {
            decide(&TriageSituation {
                mode,
                verdict,
                target,
                speaking: match is_asked && mode.speaks() {
                    true => CommentDecision::Speak,
                    false => decide_comment(mode, verdict, score.flatten(), governing.current),
                },
                text,
                said,
                named,
                is_withdrawn,
                cooldown: self.rules.cooldown,
                now: self.now,
            })
        };
        let above =
            ActionReason::Rule(if is_asked { TriageReason::AskedForDescription } else { TriageReason::AboveThreshold });
        let speaks = grace.map_or_else(|| above.clone(), |grace| ActionReason::Announced { hours: grace.hours });
        let (action, reason, comment_key) = match decision {
            TriageDecision::Comment { generation } => {
                (TriageActionKind::Commented, speaks, Some(self.keys().comment(generation).text))
            }
            TriageDecision::Edit { comment_key } => (TriageActionKind::Edited, above, Some(comment_key)),
            TriageDecision::Withdraw { comment_key } => {
                (TriageActionKind::Withdrawn, TriageReason::NoLongerPredicted.into(), Some(comment_key))
            }
            TriageDecision::Record(why) => {
                let standing = said.standing.as_ref().map(|standing| standing.key.clone());
                (TriageActionKind::Recorded, why.into(), standing)
            }
        };
        Ok(TriageAction {
            triage_id: record.id,
            mode,
            component,
            threshold: governing.current,
            source: governing.source,
            action,
            reason,
            comment_key,
        })
    }

    /// Queues the writes of a decision. A write that is already stored under its key stays as it is. A comment about a
    /// fix has no label.
    async fn carry_out(
        &self,
        action: &TriageAction,
        text: String,
        said: &PostedTriage,
        named: &[ItemNumber],
        is_labelled: bool,
    ) -> Result<(), OutboxError> {
        let (Some(outbox), Some(comment_key)) = (self.outbox, action.comment_key.clone()) else { return Ok(()) };
        let (repo, number, keys, id) = (self.repo.id, self.item.number, self.keys(), action.triage_id);
        let label = POSSIBLE_DUPLICATE.to_owned();
        let (set_label, unlabel) = (Write::Label { name: label.clone() }, Write::Unlabel { name: label });
        match action.action {
            TriageActionKind::Recorded => {}
            TriageActionKind::Commented => {
                let comment = WriteKey { text: comment_key, ..keys.comment(said.generations + 1) };
                outbox.enqueue(repo, number, &comment, Write::Comment { body: text }).await?;
                if is_labelled {
                    outbox.enqueue(repo, number, &keys.key(WriteOrigin::TriageLabel, id), set_label).await?;
                }
            }
            TriageActionKind::Edited => {
                let edit = Write::EditComment { comment_key, body: text };
                outbox.enqueue(repo, number, &keys.key(WriteOrigin::TriageEdit, id), edit).await?;
                let has_label = said.was_labelled && !said.label_taken_off;
                if is_labelled && !has_label {
                    outbox.enqueue(repo, number, &keys.key(WriteOrigin::TriageLabel, id), set_label).await?;
                } else if has_label && !is_labelled {
                    outbox.enqueue(repo, number, &keys.key(WriteOrigin::TriageUnlabel, id), unlabel).await?;
                }
            }
            TriageActionKind::Withdrawn => {
                let is_request = said.standing.as_ref().and_then(|standing| standing.text.as_deref());
                let body = match is_request == Some(DESCRIPTION_REQUEST) {
                    true => DESCRIPTION_RECEIVED.to_owned(),
                    false => withdrawn_text(self.item.item_type, named.first().copied().unwrap_or(number)),
                };
                let edit = Write::EditComment { comment_key, body };
                outbox.enqueue_correction(repo, number, &keys.key(WriteOrigin::TriageEdit, id), edit).await?;
                if said.was_labelled {
                    outbox.enqueue_correction(repo, number, &keys.key(WriteOrigin::TriageUnlabel, id), unlabel).await?;
                }
            }
        }
        Ok(())
    }

    /// The items that a stored record names, in their current state.
    async fn named_items(&self, record: &NewTriageRecord) -> Result<BTreeMap<ItemNumber, Item>, StoreError> {
        let named = record.named_item().map(|(number, _)| number);
        let numbers: Vec<ItemNumber> = record.candidates.iter().map(|one| one.number).chain(named).collect();
        let items = self.store.corpus().items_by_number(self.repo.id, self.item.item_type, &numbers).await?;
        Ok(items.into_iter().map(|item| (item.number, item)).collect())
    }

    fn keys(&self) -> TriageKeys {
        TriageKeys { repo: self.repo.id, item_type: self.item.item_type, number: self.item.number }
    }

    async fn actions(&self) -> Result<Vec<StoredTriageAction>, StoreError> {
        self.store.duplicates().triage_actions_of(self.repo.id, self.item.item_type, self.item.number).await
    }

    /// Every target that was named on the item, the last one first. A refused comment named nothing.
    async fn named_targets(
        &self,
        actions: &[StoredTriageAction],
        entries: &[OutboxEntry],
    ) -> Result<Vec<ItemNumber>, StoreError> {
        let keys = self.keys();
        let is_named = |stored: &&StoredTriageAction| {
            let edit = keys.key(WriteOrigin::TriageEdit, stored.action.triage_id).text;
            let key = match stored.action.action {
                TriageActionKind::Commented => stored.action.comment_key.as_deref(),
                TriageActionKind::Edited => Some(edit.as_str()),
                TriageActionKind::Recorded | TriageActionKind::Withdrawn => None,
            };
            entries.iter().any(|entry| Some(entry.key.as_str()) == key && entry.is_sent_or_pending())
        };
        let named: Vec<&StoredTriageAction> = actions.iter().filter(is_named).collect();
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let records =
            self.store.duplicates().triage_records_of(self.repo.id, self.item.item_type, self.item.number).await?;
        let target = |stored: &StoredTriageAction| {
            let record = records.iter().find(|record| record.id == stored.action.triage_id);
            record.and_then(|record| record.record.named_item()).map(|(number, _)| number)
        };
        Ok(named.into_iter().filter_map(target).collect())
    }
}
