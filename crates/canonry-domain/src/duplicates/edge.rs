//! Accepted edges, and which of them are still valid.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ContentVersion, ItemNumber, PlanItem, Probability, Rulings};

/// An accepted decision: the source is a duplicate of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    pub source: ItemNumber,
    pub target: ItemNumber,
    pub confidence: Probability,
    pub source_version: ContentVersion,
    pub target_version: ContentVersion,
    /// Whether a person made the decision: such an edge does not become stale when a text changes.
    pub human: bool,
}

/// The valid edges, and the sources whose edge is stale.
pub(crate) struct EdgeGraph {
    outgoing: BTreeMap<ItemNumber, BTreeMap<ItemNumber, Probability>>,
    neighbours: BTreeMap<ItemNumber, BTreeSet<ItemNumber>>,
    stale: BTreeMap<ItemNumber, ItemNumber>,
}

impl EdgeGraph {
    /// An edge is valid if both items are known and still exist, if nobody ruled that they are not duplicates, and if
    /// both texts are the judged ones.
    pub(crate) fn of(items: &BTreeMap<ItemNumber, PlanItem<'_>>, edges: &[Edge], rulings: &Rulings) -> Self {
        let mut graph = Self { outgoing: BTreeMap::new(), neighbours: BTreeMap::new(), stale: BTreeMap::new() };
        let present = |number| items.get(&number).map(|known| known.item).filter(|item| item.gone.is_none());
        for edge in edges {
            let (Some(source), Some(target)) = (present(edge.source), present(edge.target)) else { continue };
            if edge.source == edge.target || rulings.are_apart(edge.source, edge.target) {
                continue;
            }
            let judged = (edge.source_version, edge.target_version);
            if edge.human || judged == (source.content_version, target.content_version) {
                graph.join(edge.source, edge.target, edge.confidence);
            } else {
                graph.stale.insert(edge.source, edge.target);
            }
        }
        for (item, of) in rulings.duplicates() {
            if present(item).is_some() && present(of).is_some() {
                graph.join(item, of, Probability::ONE);
            }
        }
        graph
    }

    fn join(&mut self, source: ItemNumber, target: ItemNumber, confidence: Probability) {
        let known = self.outgoing.entry(source).or_default().entry(target).or_insert(confidence);
        *known = (*known).max(confidence);
        self.neighbours.entry(source).or_default().insert(target);
        self.neighbours.entry(target).or_default().insert(source);
    }

    pub(crate) fn confidence(&self, source: ItemNumber, target: ItemNumber) -> Option<Probability> {
        self.outgoing.get(&source)?.get(&target).copied()
    }

    pub(crate) fn targets(&self, source: ItemNumber) -> impl Iterator<Item = (ItemNumber, Probability)> + '_ {
        self.outgoing.get(&source).into_iter().flatten().map(|(target, confidence)| (*target, *confidence))
    }

    /// The target of the item's stale edge.
    pub(crate) fn stale_target(&self, source: ItemNumber) -> Option<ItemNumber> {
        self.stale.get(&source).copied()
    }

    /// Every item with a stale edge, and that edge's target.
    pub(crate) fn stale(&self) -> impl Iterator<Item = (ItemNumber, ItemNumber)> + '_ {
        self.stale.iter().map(|(source, target)| (*source, *target))
    }

    /// The connected components, each with at least two items, by their lowest number.
    pub(crate) fn components(&self) -> Vec<BTreeSet<ItemNumber>> {
        let mut seen: BTreeSet<ItemNumber> = BTreeSet::new();
        let mut components = Vec::new();
        for start in self.neighbours.keys() {
            if !seen.insert(*start) {
                continue;
            }
            let mut members = BTreeSet::from([*start]);
            let mut waiting = vec![*start];
            while let Some(number) = waiting.pop() {
                for neighbour in self.neighbours.get(&number).into_iter().flatten() {
                    if seen.insert(*neighbour) {
                        members.insert(*neighbour);
                        waiting.push(*neighbour);
                    }
                }
            }
            components.push(members);
        }
        components
    }
}
