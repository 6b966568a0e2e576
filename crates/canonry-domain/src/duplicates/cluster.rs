//! Clusters: items joined by edges, each with the one that stays open.

use std::collections::BTreeSet;

use crate::close::earlier_close::EarlierCloses;
use crate::duplicates::canonical::choose_canonical;
use crate::duplicates::edge::EdgeGraph;
use crate::{ItemNumber, PlanInput, Rulings};

/// At least two items that are one problem. Only [`clusters`] and a plan make them, so the clusters
/// of one answer never share an item and the canonical is always a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    members: BTreeSet<ItemNumber>,
    canonical: ItemNumber,
    because: String,
}

impl Cluster {
    /// All its items, the canonical among them.
    pub fn members(&self) -> &BTreeSet<ItemNumber> {
        &self.members
    }

    pub fn canonical(&self) -> ItemNumber {
        self.canonical
    }

    /// Why that one, in one short phrase.
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

/// The same, from what a plan has already worked out.
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
