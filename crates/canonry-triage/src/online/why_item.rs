//! Answers why Canonry commented on an item or stayed silent, from the store.

use canonry_boxed::boxed;
use canonry_domain::mention::{WhyActions, WhyItem, WhyVerdict, why_text};
use canonry_domain::{Extractor, ItemNumber, ItemType, OverrideKind, PairFact, Verdict};
use canonry_github::quote_line;
use canonry_store::{BrakeKind, GraceState, Repo, Store, StoreError, TriageActionKind};
use jiff::Timestamp;

use crate::close::common_evidence::common_facts_among;
use crate::close::row_evidence::facts_of;
use crate::grace::cancel_grace::why as why_it_ended;
use crate::retrieval::boilerplate::stored_boilerplate;

/// The maximum number of characters of the judge's reasoning in the answer.
const QUOTED: usize = 300;

/// The answer to "why" about an item, ready to be posted.
#[boxed]
pub async fn why_item(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<String, StoreError> {
    let records = store.duplicates().triage_records_of(repo.id, item_type, number).await?;
    let actions = store.duplicates().triage_actions_of(repo.id, item_type, number).await?;
    let rulings = rulings_about(store, repo, item_type, number).await?;
    let graces = store.close().graces_of_item(repo.id, item_type, number).await?;
    let waiting = graces.iter().find(|grace| grace.state == GraceState::Waiting);
    let ended = graces.first().filter(|grace| matches!(grace.state, GraceState::Cancelled | GraceState::Refused));
    let closed = last_close(store, repo, item_type, number).await?;
    let why = WhyItem {
        said: None,
        rulings,
        closing: waiting.map(|grace| (grace.due_at, grace.target)),
        left_open: ended
            .filter(|_| closed.is_none())
            .map(|grace| (grace.target, why_it_ended(grace.reason.as_deref().unwrap_or_default()))),
        closed,
        is_paused: store.close().brake_in_force(repo.id, BrakeKind::Pause).await?.is_some(),
        is_breaker_in_force: store.close().brake_in_force(repo.id, BrakeKind::Breaker).await?.is_some(),
    };
    let Some(stored) = records.first() else { return Ok(why_text(&why)) };
    let record = &stored.record;
    let action = actions.iter().find(|action| action.action.triage_id == stored.id).map(|stored| &stored.action);
    let is_named = record.verdict != Verdict::NotDuplicate || record.fix.is_some();
    let facts = match record.named_item().filter(|_| is_named) {
        Some((target, _)) => facts_with(store, repo, item_type, number, target).await?,
        None => Vec::new(),
    };
    // The compiled-in judge names what both texts share. The author of one of the texts could dictate a model's words.
    let is_own = record.provider == Extractor::Local.as_str();
    let reasoning = if is_own { quote_line(&record.reasoning, QUOTED) } else { String::new() };
    let said = WhyVerdict {
        item_type,
        verdict: record.verdict,
        target: record.target,
        gate: &record.reason,
        reasoning: &reasoning,
        facts: &facts,
        fix: record.fix.as_ref(),
        done: action.map(|action| WhyActions {
            mode: action.mode,
            threshold: action.threshold,
            is_said: matches!(action.action, TriageActionKind::Commented | TriageActionKind::Edited)
                || action.reason == "said_already",
            reason: &action.reason,
        }),
    };
    Ok(why_text(&WhyItem { said: Some(said), ..why }))
}

async fn rulings_about(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<Vec<(OverrideKind, Option<ItemNumber>)>, StoreError> {
    let all = store.duplicates().overrides(repo.id, Some(item_type)).await?;
    // Each pair is shown from the side of this item.
    let about = all.into_iter().filter_map(|ruled| match (ruled.item == number, ruled.other == Some(number)) {
        (true, _) => Some((ruled.kind, ruled.other)),
        (false, true) if ruled.kind == OverrideKind::NotDuplicate => Some((ruled.kind, Some(ruled.item))),
        _ => None,
    });
    Ok(about.collect())
}

async fn last_close(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<Option<(Timestamp, ItemNumber)>, StoreError> {
    let closes = store.plans().applied_closes(repo.id, item_type).await?;
    let last = closes.into_iter().rfind(|close| close.number == number).filter(|close| close.undone_at.is_none());
    Ok(last.map(|close| (close.applied_at, close.target)))
}

async fn facts_with(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    target: ItemNumber,
) -> Result<Vec<PairFact>, StoreError> {
    let items = store.corpus().items_by_number(repo.id, item_type, &[number, target]).await?;
    let find = |wanted: ItemNumber| items.iter().find(|item| item.number == wanted);
    let (Some(one), Some(other)) = (find(number), find(target)) else { return Ok(Vec::new()) };
    let boilerplate = stored_boilerplate(store, repo, item_type).await?;
    let common = common_facts_among(store, repo, item_type, &boilerplate, std::iter::once(one)).await?;
    Ok(facts_of(&repo.name, &boilerplate, &common, one, other))
}
