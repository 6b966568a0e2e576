//! Everything known about the duplicates of one repository, type and representation.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    Boilerplate, ClosePlan, Cluster, ContentVersion, EarlierClose, Edge, Item, ItemNumber, ItemState, ItemType,
    Maintainers, Override, OverrideKind, PlanInput, PlanItem, PlanRules, Rulings, clusters, fixed_issues, plan_closes,
};
use canonry_store::{ItemFilter, Repo, Representation, Store, StoreError};
use jiff::Timestamp;

use crate::retrieval::boilerplate::stored_boilerplate;

/// The input for judging and planning. Contains texts only of items that an edge or a person names.
pub(crate) struct KnownDuplicates {
    item_type: ItemType,
    items: BTreeMap<ItemNumber, Item>,
    boilerplate: Boilerplate,
    edges: Vec<Edge>,
    by_source: BTreeMap<ItemNumber, Edge>,
    overrides: Vec<Override>,
    rulings: Rulings,
    stored: BTreeMap<ItemNumber, ItemNumber>,
    earlier: Vec<EarlierClose>,
    reopened: BTreeMap<ItemNumber, Timestamp>,
    fixed_by: BTreeMap<ItemNumber, ItemNumber>,
    own_comments: BTreeMap<ItemNumber, u32>,
    maintainers: Maintainers,
    are_maintainers_known: bool,
    canonicals: BTreeMap<ItemNumber, ItemNumber>,
    joined: ItemGroups,
}

impl KnownDuplicates {
    pub(crate) async fn load(
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
        representation: Representation,
    ) -> Result<Self, StoreError> {
        let edges = store.judge().accepted_edges(repo.id, item_type, representation).await?;
        let overrides = store.duplicates().overrides(repo.id, Some(item_type)).await?;
        let stored = store.duplicates().canonicals(repo.id, item_type, representation).await?;
        let earlier: Vec<EarlierClose> = store
            .plans()
            .applied_closes(repo.id, item_type)
            .await?
            .into_iter()
            .map(|close| EarlierClose {
                number: close.number,
                target: close.target,
                closed_at: close.applied_at,
                reversed_at: close.reversed_at(),
            })
            .collect();
        let mut named: BTreeSet<ItemNumber> = edges.iter().flat_map(|edge| [edge.source, edge.target]).collect();
        named.extend(overrides.iter().flat_map(|ruled| std::iter::once(ruled.item).chain(ruled.other)));
        named.extend(stored.iter().flat_map(|(item, canonical)| [*item, *canonical]));
        named.extend(earlier.iter().flat_map(|close| [close.number, close.target]));
        let named: Vec<ItemNumber> = named.into_iter().collect();
        let items = store.corpus().items_by_number(repo.id, item_type, &named).await?;
        let reopened = match item_type {
            ItemType::Issue => store.learning().reopened_numbers(repo.id).await?,
            ItemType::Pr => Vec::new(),
        };
        let list = store.repos().maintainers(repo.id).await?;
        let rulings = Rulings::of(item_type, &overrides);
        let mut known = Self {
            item_type,
            items: items.into_iter().map(|item| (item.number, item)).collect(),
            boilerplate: stored_boilerplate(store, repo, item_type).await?,
            by_source: edges.iter().map(|edge| (edge.source, *edge)).collect(),
            edges,
            overrides,
            rulings,
            stored,
            earlier,
            reopened: reopened.into_iter().collect(),
            fixed_by: BTreeMap::new(),
            own_comments: store.outbox().own_comments(repo.id, None).await?,
            are_maintainers_known: list.is_some(),
            maintainers: list.map(|list| list.logins.into_iter().collect()).unwrap_or_default(),
            canonicals: BTreeMap::new(),
            joined: ItemGroups::default(),
        };
        known.settle();
        Ok(known)
    }

    /// Reads which open pull requests say that they fix an issue; only plans need this.
    pub(crate) async fn read_fixes(&mut self, store: &Store, repo: &Repo) -> Result<(), StoreError> {
        if self.item_type != ItemType::Issue {
            return Ok(());
        }
        let filter =
            ItemFilter { item_type: Some(ItemType::Pr), state: Some(ItemState::Open), ..ItemFilter::default() };
        let mut after = None;
        loop {
            let pulls = store.corpus().items_after(repo.id, filter, after, PAGE).await?;
            let Some(last) = pulls.last() else { return Ok(()) };
            after = Some((last.number, last.item_type));
            for pull in &pulls {
                for issue in fixed_issues(&repo.name, &format!("{}\n\n{}", pull.title, pull.body)) {
                    self.fixed_by.entry(issue).or_insert(pull.number);
                }
            }
        }
    }

    /// Recomputes the clusters from the edges.
    fn settle(&mut self) {
        self.joined = ItemGroups::default();
        self.canonicals.clear();
        for cluster in self.clusters() {
            for member in cluster.members() {
                self.canonicals.insert(*member, cluster.canonical());
                self.joined.join(*member, cluster.canonical());
            }
        }
    }

    fn with_input<T>(&self, has_content: impl Fn(&Item) -> bool, then: impl FnOnce(&PlanInput<'_>) -> T) -> T {
        let items: BTreeMap<ItemNumber, PlanItem<'_>> = self
            .items
            .iter()
            .map(|(number, item)| {
                let (reopened_at, fixed_by) = (self.reopened.get(number).copied(), self.fixed_by.get(number).copied());
                let has_content = has_content(item);
                let own_comments = self.own_comments(*number);
                (*number, PlanItem { item, has_content, reopened_at, fixed_by, own_comments })
            })
            .collect();
        then(&PlanInput {
            item_type: self.item_type,
            items: &items,
            edges: &self.edges,
            overrides: &self.overrides,
            stored: &self.stored,
            earlier: &self.earlier,
            maintainers: &self.maintainers,
        })
    }

    pub(crate) fn clusters(&self) -> Vec<Cluster> {
        // Clusters do not depend on the texts, and they are computed for every new item.
        self.with_input(|_| true, clusters)
    }

    pub(crate) fn plan(&self, rules: &PlanRules) -> ClosePlan {
        self.with_input(|item| self.boilerplate.leaves_content(item), |input| plan_closes(input, rules))
    }

    /// Keeps the item that was announced to people as the canonical of a pair for which none is stored.
    pub(crate) fn keep_canonical(&mut self, number: ItemNumber, target: ItemNumber) {
        if !self.stored.contains_key(&number) && !self.stored.contains_key(&target) {
            self.stored.insert(number, target);
            self.stored.insert(target, target);
            self.settle();
        }
    }

    pub(crate) fn maintainers(&self) -> &Maintainers {
        &self.maintainers
    }

    /// `None` if the list of maintainers was never fetched or set.
    pub(crate) fn known_maintainers(&self) -> Option<&Maintainers> {
        self.are_maintainers_known.then_some(&self.maintainers)
    }

    pub(crate) fn own_comments(&self, number: ItemNumber) -> u32 {
        self.own_comments.get(&number).copied().unwrap_or(0)
    }

    /// Whether an item was closed by Canonry before, was reopened, or was ruled about.
    pub(crate) fn has_a_past(&self, number: ItemNumber) -> bool {
        self.earlier.iter().any(|close| close.number == number)
            || self.overrides.iter().any(|ruled| ruled.item == number || ruled.other == Some(number))
            || self.reopened.contains_key(&number)
    }

    pub(crate) fn item_type(&self) -> ItemType {
        self.item_type
    }

    /// The parts of the items' texts that are not their own.
    pub(crate) fn boilerplate(&self) -> &Boilerplate {
        &self.boilerplate
    }

    pub(crate) fn item(&self, number: ItemNumber) -> Option<&Item> {
        self.items.get(&number)
    }

    /// The canonical of the cluster that an item was in when this was loaded.
    pub(crate) fn canonical_of(&self, number: ItemNumber) -> Option<ItemNumber> {
        self.canonicals.get(&number).copied()
    }

    /// An id of the cluster that an item is in now.
    pub(crate) fn cluster_of(&self, number: ItemNumber) -> Option<ItemNumber> {
        self.joined.root(number)
    }

    /// Adds an accepted edge, and removes the source's earlier edge.
    pub(crate) fn accept(&mut self, edge: Edge) {
        if self.by_source.get(&edge.source).is_some_and(|before| before.target != edge.target) {
            self.forget_edge_of(edge.source);
        }
        self.by_source.insert(edge.source, edge);
        self.joined.join(edge.source, edge.target);
    }

    /// Removes an item's edge. A cluster that it held together falls apart.
    pub(crate) fn forget_edge_of(&mut self, source: ItemNumber) {
        if self.by_source.remove(&source).is_some() {
            self.joined = ItemGroups::default();
            let edges: Vec<Edge> = self.by_source.values().filter(|edge| self.counts(edge)).copied().collect();
            for edge in edges {
                self.joined.join(edge.source, edge.target);
            }
            for (item, of) in self.rulings.duplicates() {
                self.joined.join(item, of);
            }
        }
    }

    /// For each cluster one item whose edge can be replaced without splitting the cluster: the canonical, if it is
    /// such an item.
    ///
    /// Every item has at most one edge. So a cluster either has one item without an edge, or its edges contain
    /// exactly one cycle, and any one edge of the cycle can be removed.
    pub(crate) fn free_members(&self) -> BTreeSet<ItemNumber> {
        let fresh = |number: ItemNumber| self.fresh_edge_of(number).map(|edge| edge.target);
        let free = |cluster: &Cluster| {
            let mut at = cluster.canonical();
            let mut passed = BTreeSet::from([at]);
            while let Some(next) = fresh(at) {
                at = next;
                if !passed.insert(at) {
                    break;
                }
            }
            // Here `at` has no edge, or is on the cycle. The canonical is preferred if it is on the cycle as well.
            let mut round = vec![at];
            let mut next = fresh(at);
            while let Some(number) = next.filter(|number| *number != at) {
                round.push(number);
                next = fresh(number);
            }
            let human = |number: &ItemNumber| self.edge_of(*number).is_some_and(|edge| edge.human);
            let canonical = round.iter().find(|number| **number == cluster.canonical());
            canonical.into_iter().chain(&round).copied().find(|number| !human(number))
        };
        self.clusters().iter().filter_map(free).collect()
    }

    /// The item's accepted edge, whichever versions of the texts it is about.
    pub(crate) fn edge_of(&self, source: ItemNumber) -> Option<&Edge> {
        self.by_source.get(&source)
    }

    /// The item's accepted edge, if it is valid.
    pub(crate) fn fresh_edge_of(&self, source: ItemNumber) -> Option<&Edge> {
        self.edge_of(source).filter(|edge| self.counts(edge))
    }

    /// Whether both texts are still those that were judged, both items exist, and nobody ruled that they are not
    /// duplicates.
    fn counts(&self, edge: &Edge) -> bool {
        let there = |number| self.items.get(&number).filter(|item| item.gone.is_none());
        let (Some(source), Some(target)) = (there(edge.source), there(edge.target)) else { return false };
        let judged = (edge.source_version, edge.target_version);
        let same_texts = edge.human || judged == (source.content_version, target.content_version);
        same_texts && !self.rulings.are_apart(edge.source, edge.target)
    }

    /// For each member the item that may be named for its cluster: the canonical if it passes, otherwise the first
    /// that passes.
    pub(crate) fn stand_ins(&self, passes: impl Fn(ItemNumber) -> bool) -> BTreeMap<ItemNumber, ItemNumber> {
        let mut stand_ins = BTreeMap::new();
        for cluster in self.clusters() {
            let canonical = Some(cluster.canonical()).filter(|canonical| passes(*canonical));
            let first = || cluster.members().iter().copied().find(|member| passes(*member));
            let chosen = canonical.or_else(first).unwrap_or(cluster.canonical());
            stand_ins.extend(cluster.members().iter().map(|member| (*member, chosen)));
        }
        stand_ins
    }

    pub(crate) fn version_of(&self, number: ItemNumber) -> Option<ContentVersion> {
        self.items.get(&number).map(|item| item.content_version)
    }

    /// What a person ruled the item to be a duplicate of; of several rulings, the last.
    pub(crate) fn ruled_duplicate_of(&self, number: ItemNumber) -> Option<ItemNumber> {
        let holds = |of: ItemNumber| self.rulings.duplicates().any(|ruled| ruled == (number, of));
        let ruled = self.overrides.iter().filter(|ruled| ruled.item == number && ruled.kind == OverrideKind::Duplicate);
        let latest = ruled.filter_map(|ruled| Some((ruled.created_at, ruled.id, ruled.other?)));
        latest.filter(|(_, _, of)| holds(*of)).max().map(|(_, _, of)| of)
    }

    pub(crate) fn ruled_not_duplicates(&self, one: ItemNumber, other: ItemNumber) -> bool {
        self.rulings.are_apart(one, other)
    }
}

const PAGE: u32 = 500;

/// Groups of items that belong together; they only grow.
#[derive(Default)]
struct ItemGroups {
    parent: BTreeMap<ItemNumber, ItemNumber>,
}

impl ItemGroups {
    fn root(&self, number: ItemNumber) -> Option<ItemNumber> {
        let mut at = *self.parent.get(&number)?;
        while let Some(above) = self.parent.get(&at).filter(|above| **above != at) {
            at = *above;
        }
        Some(at)
    }

    fn join(&mut self, one: ItemNumber, other: ItemNumber) {
        for number in [one, other] {
            self.parent.entry(number).or_insert(number);
        }
        let (one, other) = (self.root(one), self.root(other));
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            self.parent.insert(one.max(other), one.min(other));
        }
    }
}
