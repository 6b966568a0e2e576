//! `canonicalize`: lists every cluster, and which of its items stays open.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemState, ItemType};
use canonry_store::{Repo, Representation, Store, StoreError};
use jiff::Timestamp;

use crate::judge::judge_items::representation_of;
use crate::judge::known_duplicates::KnownDuplicates;
use crate::retrieval::embed::EmbedSource;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalizedCluster {
    pub item_type: ItemType,
    pub canonical: ItemNumber,
    pub because: String,
    /// All its items by number, including the canonical one.
    pub members: Vec<ClusterMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterMember {
    pub number: ItemNumber,
    pub title: String,
    pub state: ItemState,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CanonicalizeReport {
    pub clusters: Vec<CanonicalizedCluster>,
    /// Whether the chosen canonicals were stored, so that they stay the same. They are not stored as long as the
    /// maintainers are unknown, because maintainers' items are preferred.
    pub stored: bool,
    /// Whether something was judged, so that no clusters means no duplicates.
    pub judged: bool,
}

#[boxed]
pub async fn canonicalize(
    store: &Store,
    repo: &Repo,
    item_type: Option<ItemType>,
    source: EmbedSource,
    now: Timestamp,
) -> Result<CanonicalizeReport, StoreError> {
    let representation = representation_of(source);
    let stored = store.repos().maintainers(repo.id).await?.is_some();
    let judged = store.judge().has_decisions(repo.id).await?;
    let mut report = CanonicalizeReport { clusters: Vec::new(), stored, judged };
    for item_type in ItemType::one_or_all(item_type) {
        let known = KnownDuplicates::load(store, repo, item_type, representation).await?;
        let clusters = known.cluster_lines();
        if stored {
            let canonicals: BTreeMap<ItemNumber, ItemNumber> = clusters
                .iter()
                .flat_map(|cluster| cluster.members.iter().map(|member| (member.number, cluster.canonical)))
                .collect();
            store.duplicates().set_canonicals(repo.id, item_type, representation, &canonicals, now).await?;
        }
        report.clusters.extend(clusters);
    }
    Ok(report)
}

#[boxed]
pub async fn cluster_of(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    representation: Representation,
) -> Result<Option<CanonicalizedCluster>, StoreError> {
    let known = KnownDuplicates::load(store, repo, item_type, representation).await?;
    let holds = |cluster: &CanonicalizedCluster| cluster.members.iter().any(|member| member.number == number);
    Ok(known.cluster_lines().into_iter().find(holds))
}

impl KnownDuplicates {
    fn cluster_lines(&self) -> Vec<CanonicalizedCluster> {
        let member = |number: &ItemNumber| {
            let item = self.item(*number)?;
            Some(ClusterMember { number: item.number, title: item.title.clone(), state: item.state })
        };
        self.clusters()
            .iter()
            .map(|cluster| CanonicalizedCluster {
                item_type: self.item_type(),
                canonical: cluster.canonical(),
                because: cluster.because().to_owned(),
                members: cluster.members().iter().filter_map(member).collect(),
            })
            .collect()
    }
}
