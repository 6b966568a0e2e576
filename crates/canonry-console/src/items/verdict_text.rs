//! The verdict on an item as text for the command line: the first sentence of the item's page.

use std::collections::BTreeMap;

use canonry_domain::Override;
use canonry_store::{Repo, Store, StoreError};
use canonry_triage::ItemReport;
use jiff::Timestamp;

use crate::items::item_page::{MOST_CLOSES, state_of};
use crate::items::verdict::{ItemFacts, verdict};

pub async fn item_verdict(
    store: &Store,
    repo: &Repo,
    report: &ItemReport,
    now: Timestamp,
) -> Result<String, StoreError> {
    let history = &report.history;
    let item = &history.item;
    let mut others = BTreeMap::new();
    for target in history.decisions.iter().filter_map(|decision| decision.target) {
        if let Some(other) = store.corpus().item(repo.id, item.item_type, target).await? {
            others.insert(target, other);
        }
    }
    let closes = store.close().closes_of_item(repo.id, item.item_type, item.number, MOST_CLOSES).await?;
    let in_force = |(ruled, removed): &(Override, Option<Timestamp>)| removed.is_none().then(|| ruled.clone());
    let rulings: Vec<Override> = history.rulings.iter().filter_map(in_force).collect();
    let sentence = verdict(&ItemFacts {
        item,
        state: state_of(item).0,
        others: &others,
        events: &history.outcome_events,
        rulings: &rulings,
        closes: &closes,
        graces: &history.graces,
        decisions: &history.decisions,
        records: &history.triage_records,
        cluster: report.cluster.as_ref().map(|cluster| (cluster.canonical, cluster.members.len() as u64)),
        now,
    });
    let target = sentence.target.map(|target| format!("#{target}")).unwrap_or_default();
    Ok(format!("{}{target}{}", sentence.before, sentence.after))
}
