//! Answers why Canonry commented on an item or stayed silent, from the store.

use canonry_boxed::boxed;
use canonry_domain::mention::{WhyActions, WhyComment, WhyItem, WhyVerdict, why_text};
use canonry_domain::{
    DESCRIPTION_RECEIVED, DESCRIPTION_REQUEST, Extractor, ItemNumber, ItemType, OverrideKind, PairFact, TriageReason,
    Verdict,
};
use canonry_github::quote_line;
use canonry_store::{
    BrakeKind, GraceState, OutboxEntry, OutboxState, Repo, Store, StoreError, StoredTriageAction, TriageAction,
    TriageActionKind,
};
use jiff::Timestamp;

use crate::close::common_evidence::common_evidence;
use crate::close::row_evidence::facts_of;
use crate::grace::cancel_grace::why as why_it_ended;
use crate::online::detect_new::Detectors;
use crate::online::posted_triage::PostedTriage;
use crate::retrieval::boilerplate::stored_boilerplate;

/// The maximum number of characters of the judge's reasoning in the answer.
const QUOTED: usize = 300;

/// The answer to "why" about an item, ready to be posted. Without detectors all texts are read for the evidence.
#[boxed]
pub async fn why_item(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    with: Option<Detectors<'_>>,
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
        Some((target, _)) => facts_with(store, repo, item_type, (number, target), with).await?,
        None => Vec::new(),
    };
    let reasoning = quoted_reasoning(&record.provider, &record.reasoning);
    let entries = store.outbox().of_item(repo.id, number).await?;
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
            comment: comment_of(&actions, action, &entries),
            reason: &action.reason,
        }),
    };
    Ok(why_text(&WhyItem { said: Some(said), ..why }))
}

/// What became of the item's comment, according to the outbox, seen from its latest action.
fn comment_of(actions: &[StoredTriageAction], latest: &TriageAction, entries: &[OutboxEntry]) -> WhyComment {
    let posted = PostedTriage::read(entries);
    let is_wanted = matches!(latest.action, TriageActionKind::Commented | TriageActionKind::Edited)
        || latest.reason == TriageReason::SaidAlready;
    let Some(standing) = posted.standing else {
        return match (is_wanted, posted.last_said_at) {
            (false, _) => WhyComment::Unwanted,
            (true, None) => WhyComment::Unsent,
            (true, Some(_)) => WhyComment::Deleted,
        };
    };
    let is_sent = entries.iter().any(|entry| entry.key == standing.key && entry.state == OutboxState::Sent);
    let is_about_the_description =
        standing.text.as_deref().is_some_and(|text| [DESCRIPTION_REQUEST, DESCRIPTION_RECEIVED].contains(&text));
    let last = actions.iter().map(|stored| stored.action.action).find(|action| *action != TriageActionKind::Recorded);
    match last {
        _ if !is_sent => WhyComment::Unsent,
        _ if is_wanted => WhyComment::Posted,
        _ if is_about_the_description => WhyComment::Unwanted,
        Some(TriageActionKind::Withdrawn) => WhyComment::Withdrawn,
        _ if posted.is_ruled_apart => WhyComment::Withdrawn,
        _ => WhyComment::Earlier,
    }
}

/// The kind of pair, in the words of the compiled-in judge. What both texts share follows there, unchecked; the answer
/// itself names what proves something. The author of one of the texts could dictate a model's words.
fn quoted_reasoning(provider: &str, reasoning: &str) -> String {
    if provider != Extractor::Local.as_str() {
        return String::new();
    }
    let kind = reasoning.split_once("; both ").map_or(reasoning, |(kind, _)| kind);
    quote_line(kind, QUOTED)
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
    (number, target): (ItemNumber, ItemNumber),
    with: Option<Detectors<'_>>,
) -> Result<Vec<PairFact>, StoreError> {
    let items = store.corpus().items_by_number(repo.id, item_type, &[number, target]).await?;
    let find = |wanted: ItemNumber| items.iter().find(|item| item.number == wanted);
    let (Some(one), Some(other)) = (find(number), find(target)) else { return Ok(Vec::new()) };
    let boilerplate = stored_boilerplate(store, repo, item_type).await?;
    let common = common_evidence(store, repo, &boilerplate, one, with).await?;
    Ok(facts_of(&repo.name, &boilerplate, &common, one, other))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_domain::mention::{WhyItem, WhyVerdict, why_text};
    use canonry_domain::{ItemNumber, ItemType, PairFact, Similarity, Verdict};
    use canonry_testkit::public_text::{assert_readable, words_in_sight};

    use super::quoted_reasoning;
    use crate::judge::local::answer::{LocalCandidate, LocalText, judge_locally};

    const CRASH: &str = "Opening a workspace with more than fifty folders crashes the window.\n\n\
        ```\nerror: tree renderer used 80% of `anchor.rs` during relayout\n```\n\nIt started after the update.";

    #[test]
    fn evidence_is_not_quoted_a_second_time() {
        let text = |number| LocalText {
            number: ItemNumber::new(number).expect("positive"),
            item_type: ItemType::Issue,
            title: "Window crashes with many folders",
            body: CRASH,
            labels: &[],
            author: None,
            created_at: None,
            changes: None,
            base_branch: None,
            common: None,
        };
        let parts: BTreeMap<String, f64> =
            ["lexical", "title", "evidence", "words"].map(|part| (part.to_owned(), 1.0)).into();
        let candidate = LocalCandidate { text: text(7), score: Similarity::ONE, parts: &parts };
        let reasoning = judge_locally(&text(9), &[candidate]).reasoning;
        assert!(reasoning.contains("; both show `"), "the judge names what both share: {reasoning}");
        let quoted = quoted_reasoning("local", &reasoning);
        assert_readable(&quoted);
        assert!(quoted.contains("#&ZeroWidthSpace;7") && !quoted.contains("both show"), "{quoted}");
        assert_eq!(quoted_reasoning("openai", &reasoning), "");
        let facts = [PairFact::Message("tree renderer used 80% of `anchor.rs` during relayout".to_owned())];
        let said = WhyVerdict {
            item_type: ItemType::Issue,
            verdict: Verdict::Duplicate,
            target: ItemNumber::new(7).ok(),
            gate: "accepted",
            reasoning: &quoted,
            facts: &facts,
            fix: None,
            done: None,
        };
        let text = why_text(&WhyItem { said: Some(said), ..WhyItem::default() });
        assert_readable(&text);
        assert!(text.matches("during relayout").count() == 1 && words_in_sight(&text) <= 60, "{text}");
    }
}
