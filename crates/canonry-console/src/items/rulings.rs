//! Maintainers' rulings on items, and cancelling announced closes.

use axum::extract::Path;
use canonry_domain::{ItemNumber, ItemState, ItemType, OverrideKind};
use canonry_server::queue_cancel_grace;
use canonry_store::{GraceState, NewOverride, Representation, StoreError};
use canonry_triage::{RulingError, Statement, rule_pair};

use crate::layout::errors::{PageError, PageResult};
use crate::layout::form::{Form, PathFields};
use crate::layout::formatting::item_path;
use crate::layout::page::{back_to, repo_path};
use crate::layout::paging::{number_in, own_path, part_in};
use crate::sign_in::visit::{MaintainerOf, RepoVisit};

const NOTE_LIMIT: usize = 500;

/// Rules that an item is a duplicate, is different from another one, or stays open as the canonical.
pub(crate) async fn rule(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let (item_type, number): (ItemType, ItemNumber) = (part_in(&path, "type")?, part_in(&path, "number")?);
    // On a cluster's page the form names one of its members.
    let number = match form.one("item") {
        Some(chosen) => {
            let chosen: ItemNumber = chosen.parse().map_err(PageError::BadForm)?;
            in_cluster(&at, item_type, number, chosen).await?;
            chosen
        }
        None => number,
    };
    let note: Option<String> = form.one("note").map(|note| note.chars().take(NOTE_LIMIT).collect());
    let kind: OverrideKind = form
        .needed("kind")?
        .parse()
        .map_err(|unknown: canonry_domain::UnknownText| PageError::BadForm(unknown.to_string()))?;
    let other = match kind {
        OverrideKind::Canonical => None,
        _ => Some(form.needed("other")?.parse::<ItemNumber>().map_err(PageError::BadForm)?),
    };
    at.record("rule", &format!("{item_type}/{number} {kind}")).await?;
    let mut said = store_ruling(&at, item_type, kind, (number, other), note.as_deref()).await?;
    if matches!(kind, OverrideKind::NotDuplicate | OverrideKind::Excluded) {
        let graces = at.console.store.close().graces_of_item(at.repo.id, item_type, number).await?;
        if graces.iter().any(|grace| grace.state == GraceState::Waiting && Some(grace.target) == other) {
            cancel_close(&at, item_type, number).await?;
            said += " The announced close is cancelled.";
        }
    }
    let href = item_path(&repo_path(&at.repo), item_type, number);
    let then = form.one("then").map_or(href.as_str(), |then| own_path(Some(then)));
    Ok(back_to(then, &said))
}

/// Refuses an item that is not a member of the form's cluster. On a cluster with many pages the number is typed, and
/// the page would otherwise report a change of this cluster when another one changed.
async fn in_cluster(
    at: &RepoVisit,
    item_type: ItemType,
    canonical: ItemNumber,
    chosen: ItemNumber,
) -> Result<(), PageError> {
    if chosen == canonical {
        return Ok(());
    }
    for representation in [Representation::Raw, Representation::Intent] {
        let of = at.console.store.duplicates().canonicals_of(at.repo.id, item_type, representation, &[chosen]).await?;
        if of.get(&chosen) == Some(&canonical) {
            return Ok(());
        }
    }
    Err(PageError::BadForm(format!("#{chosen} is not in the cluster of #{canonical}; rule it on its own page")))
}

async fn store_ruling(
    at: &RepoVisit,
    item_type: ItemType,
    kind: OverrideKind,
    (number, other): (ItemNumber, Option<ItemNumber>),
    note: Option<&str>,
) -> Result<String, PageError> {
    let (store, by, now) = (&at.console.store, at.visit.login(), at.console.now());
    let item = store.corpus().item(at.repo.id, item_type, number).await?;
    let is_open = item.is_some_and(|item| item.state == ItemState::Open);
    let Some(other) = other else {
        let new = NewOverride { item_type, kind, item: number, other: None, note, by };
        store.duplicates().add_override(at.repo.id, new, now).await.map_err(|error| refused(error.into()))?;
        let open = if is_open { ": it stays open" } else { "" };
        return Ok(format!(
            "#{number} is ruled the canonical of its cluster{open}. Recompute the clusters to see it there."
        ));
    };
    let statement = Statement { note, by };
    rule_pair(store, &at.repo, item_type, kind, (number, other), statement, now).await.map_err(refused)?;
    Ok(match kind {
        OverrideKind::NotDuplicate => {
            format!("#{number} and #{other} are ruled different problems.")
        }
        OverrideKind::Excluded => {
            format!("#{number} will not be closed as a duplicate of #{other} or its cluster.")
        }
        OverrideKind::Duplicate | OverrideKind::Canonical => {
            let next = if is_open { " Nothing is closed yet: the next close plan can close it." } else { "" };
            format!("#{number} is ruled a duplicate of #{other}.{next}")
        }
    })
}

/// Shows an error that the person can correct.
fn refused(error: RulingError) -> PageError {
    match error {
        RulingError::Itself => PageError::BadForm(RulingError::Itself.to_string()),
        RulingError::Store(StoreError::UnknownItem { item_type, number }) => {
            PageError::BadForm(format!("there is no {} #{number} in this repository", item_type.in_words()))
        }
        RulingError::Store(error) => PageError::Store(error),
    }
}

pub(crate) async fn remove(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let id = number_in(&path, "id")?;
    // The id may belong to another repository: then nothing is done and nothing is recorded.
    let newest = at.console.store.duplicates().override_pages(at.repo.id, id.checked_add(1), 1).await?;
    let is_removed = newest.first().is_some_and(|ruling| ruling.id == id) && {
        at.record("remove ruling", &id.to_string()).await?;
        at.console.store.duplicates().remove_override(at.repo.id, id, at.console.now()).await?
    };
    let said = if is_removed { "Ruling removed." } else { "There is no such ruling in force." };
    let settings = format!("{}/settings", repo_path(&at.repo));
    Ok(back_to(form.one("then").map_or(settings.as_str(), |then| own_path(Some(then))), said))
}

/// Cancels the announced close of an item. The service carries it out and edits the comment that announced the close,
/// if any.
pub(crate) async fn cancel_grace(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let found = at.console.store.close().grace(number_in(&path, "id")?).await?;
    let grace = found.filter(|grace| grace.repo.id == at.repo.id).ok_or(PageError::NotFound)?;
    let href = item_path(&repo_path(&at.repo), grace.item_type, grace.number);
    let back = form.one("then").map_or(href.as_str(), |then| own_path(Some(then)));
    if grace.state != GraceState::Waiting {
        return Ok(back_to(back, "This close is not announced any more."));
    }
    at.record("cancel grace", &format!("{}/{}", grace.item_type, grace.number)).await?;
    cancel_close(&at, grace.item_type, grace.number).await?;
    Ok(back_to(back, &format!("Close cancelled. #{} stays open.", grace.number)))
}

async fn cancel_close(at: &RepoVisit, item_type: ItemType, number: ItemNumber) -> Result<(), PageError> {
    queue_cancel_grace(&at.console.store, &at.repo, item_type, number, at.visit.login(), at.console.now()).await?;
    at.console.wake_worker.notify_one();
    Ok(())
}
