//! Clusters: items joined by edges, each with the canonical that stays open.

use std::collections::BTreeSet;

use crate::close::earlier_close::EarlierCloses;
use crate::duplicates::canonical::choose_canonical;
use crate::duplicates::edge::EdgeGraph;
use crate::{ItemNumber, PlanInput, Rulings};

/// At least two items that are the same problem. Only [`clusters`] and a plan make them, so the clusters of one result
/// never share an item, and the canonical is always a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    members: BTreeSet<ItemNumber>,
    canonical: ItemNumber,
    because: String,
}

impl Cluster {
    /// All items of the cluster, including the canonical.
    pub fn members(&self) -> &BTreeSet<ItemNumber> {
        &self.members
    }

    pub fn canonical(&self) -> ItemNumber {
        self.canonical
    }

    /// Why that item is the canonical, in one short phrase.
    pub fn because(&self) -> &str {
        &self.because
    }
}

/// The clusters of one repository, type and representation, by their lowest number.
pub fn clusters(input: &PlanInput<'_>) -> Vec<Cluster> {
    let rulings = Rulings::of(input.item_type, input.overrides);
    let graph = EdgeGraph::of(input.items, input.edges, &rulings);
    clusters_of(input, &rulings, &graph, &EarlierCloses::of(input))
}

/// The same, from data that a plan has already computed.
pub(crate) fn clusters_of(
    input: &PlanInput<'_>,
    rulings: &Rulings,
    graph: &EdgeGraph,
    earlier: &EarlierCloses,
) -> Vec<Cluster> {
    let cluster = |members: BTreeSet<ItemNumber>| {
        let (canonical, because) = choose_canonical(input, rulings, earlier, &members);
        Cluster { members, canonical, because }
    };
    graph.components().into_iter().map(cluster).collect()
}
