//! Withdraws Canonry's suggestion at once when a person rules that an item is not a duplicate.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, Login, POSSIBLE_DUPLICATE, WriteOrigin, ruled_apart_text};
use canonry_github::outbox::{Outbox, OutboxError, Write};
use canonry_store::{Repo, Store, TriageActionKind};

use crate::online::posted_triage::{PostedTriage, TriageKeys};

/// Edits the suggestion on an item to name the person who ruled, and removes the label. `false` if no standing
/// suggestion names the other item. `ruling` identifies the withdrawal, so that repeated calls make only one.
#[expect(clippy::too_many_arguments, reason = "where, which pair, who and by which ruling; each is another thing")]
#[boxed]
pub async fn withdraw_suggestion(
    store: &Store,
    outbox: &Outbox,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    target: ItemNumber,
    by: &Login,
    ruling: i64,
) -> Result<bool, OutboxError> {
    let actions = store.duplicates().triage_actions_of(repo.id, item_type, number).await?;
    let said = actions.iter().map(|stored| &stored.action).find(|action| action.action != TriageActionKind::Recorded);
    let Some(said) = said.filter(|action| action.action != TriageActionKind::Withdrawn) else { return Ok(false) };
    let records = store.duplicates().triage_records_of(repo.id, item_type, number).await?;
    let named = records.iter().find(|record| record.id == said.triage_id);
    let named = named.and_then(|record| record.record.named_item()).map(|(number, _)| number);
    let keys = TriageKeys { repo: repo.id, item_type, number };
    let entries = store.outbox().of_item(repo.id, number).await?;
    let so_far = PostedTriage::read(&entries);
    let Some(standing) = so_far.standing.filter(|_| named == Some(target)) else { return Ok(false) };
    let edit = Write::EditComment { comment_key: standing.key, body: ruled_apart_text(item_type, target, by) };
    outbox.enqueue(repo.id, number, &keys.key(WriteOrigin::RulingEdit, ruling), edit).await?;
    if so_far.was_labelled {
        let unlabel = Write::Unlabel { name: POSSIBLE_DUPLICATE.to_owned() };
        outbox.enqueue(repo.id, number, &keys.key(WriteOrigin::RulingUnlabel, ruling), unlabel).await?;
    }
    Ok(true)
}
