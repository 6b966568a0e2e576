//! A repository as plain data, for tests that make and apply plans and simulate people's answers.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    ClosePlan, Cluster, ContentVersion, EarlierClose, Edge, Item, ItemNumber, ItemRecord, ItemState, ItemType,
    Maintainers, Override, OverrideKind, PlanInput, PlanItem, PlanRules, Probability, SkipReason, StateReason,
    TargetPolicy, clusters, has_content, merge_record, plan_closes,
};
use jiff::Timestamp;

pub(crate) fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a number")
}

pub(crate) fn at(moment: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + moment * 3_600).expect("a time")
}

pub(crate) fn rules(policy: TargetPolicy) -> PlanRules {
    PlanRules { min_close: Probability::new(0.9).expect("valid"), policy, protected_labels: vec!["security".into()] }
}

/// One repository and its history. `boss` maintains it.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) items: BTreeMap<ItemNumber, Item>,
    pub(crate) reopened: BTreeMap<ItemNumber, Timestamp>,
    pub(crate) in_progress: BTreeSet<ItemNumber>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) stored: BTreeMap<ItemNumber, ItemNumber>,
    pub(crate) earlier: Vec<EarlierClose>,
    pub(crate) maintainers: Maintainers,
    pub(crate) now: i64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            items: BTreeMap::new(),
            reopened: BTreeMap::new(),
            in_progress: BTreeSet::new(),
            edges: Vec::new(),
            overrides: Vec::new(),
            stored: BTreeMap::new(),
            earlier: Vec::new(),
            maintainers: ["boss".parse().expect("a login")].iter().collect(),
            now: 1_000,
        }
    }

    /// Adds an open issue by a contributor, with a change.
    pub(crate) fn item(&mut self, item_number: i64, change: impl FnOnce(&mut Item)) {
        let record = ItemRecord {
            state: Some(ItemState::Open),
            author: Some("reporter".parse().expect("a login")),
            assignees: Some(Vec::new()),
            created_at: Some(at(item_number)),
            body: Some("The program stops when the settings are opened.".to_owned()),
            ..ItemRecord::new(ItemType::Issue, number(item_number), "Crash when the settings are opened")
        };
        let mut item = merge_record(None, record).item;
        change(&mut item);
        self.items.insert(item.number, item);
    }

    pub(crate) fn plain_items(&mut self, numbers: impl IntoIterator<Item = i64>) {
        numbers.into_iter().for_each(|item_number| self.item(item_number, |_| {}));
    }

    /// Adds an edge between the current texts.
    pub(crate) fn edge(&mut self, source: i64, target: i64, confidence: f64) {
        let version =
            |item: i64| self.items.get(&number(item)).map_or(ContentVersion::FIRST, |item| item.content_version);
        self.edges.push(Edge {
            source: number(source),
            target: number(target),
            confidence: Probability::new(confidence).expect("valid"),
            source_version: version(source),
            target_version: version(target),
            human: false,
        });
    }

    pub(crate) fn rule(&mut self, kind: OverrideKind, item: i64, other: Option<i64>) {
        let created_at = self.tick();
        self.overrides.push(Override {
            id: created_at.as_second(),
            item_type: ItemType::Issue,
            kind,
            item: number(item),
            other: other.map(number),
            note: None,
            created_at,
            created_by: None,
        });
    }

    pub(crate) fn change(&mut self, item: i64, change: impl FnOnce(&mut Item)) {
        change(self.items.get_mut(&number(item)).expect("an item"));
    }

    pub(crate) fn tick(&mut self) -> Timestamp {
        self.now += 1;
        at(self.now)
    }

    pub(crate) fn reopen(&mut self, item: ItemNumber) {
        let now = self.tick();
        let item = self.items.get_mut(&item).expect("an item");
        (item.state, item.state_reason, item.closed_at) = (ItemState::Open, Some(StateReason::Reopened), None);
        self.reopened.insert(item.number, now);
    }

    fn with_input<T>(&self, then: impl FnOnce(&PlanInput<'_>) -> T) -> T {
        let known = |item: &Item| self.in_progress.contains(&item.number).then_some(number(99_999));
        let items: BTreeMap<ItemNumber, PlanItem<'_>> = self
            .items
            .iter()
            .map(|(number, item)| {
                let reopened_at = self.reopened.get(number).copied();
                let has_content = has_content(&item.title, &item.body);
                (*number, PlanItem { item, has_content, reopened_at, fixed_by: known(item), own_comments: 0 })
            })
            .collect();
        then(&PlanInput {
            item_type: ItemType::Issue,
            items: &items,
            edges: &self.edges,
            overrides: &self.overrides,
            stored: &self.stored,
            earlier: &self.earlier,
            maintainers: &self.maintainers,
        })
    }

    pub(crate) fn plan(&self, policy: TargetPolicy) -> ClosePlan {
        self.with_input(|input| plan_closes(input, &rules(policy)))
    }

    pub(crate) fn clusters(&self) -> Vec<Cluster> {
        self.with_input(clusters)
    }

    /// Closes the items of a plan, re-points others, and stores the canonicals.
    pub(crate) fn apply(&mut self, plan: &ClosePlan) {
        let closed_at = self.tick();
        self.stored = plan.canonicals();
        for row in plan.closes() {
            let item = self.items.get_mut(&row.number).expect("an item");
            (item.state, item.state_reason) = (ItemState::Closed, Some(StateReason::Duplicate));
            item.closed_at = Some(closed_at);
            for closed in std::iter::once(row.number).chain(row.repoint.iter().copied()) {
                let reversed_at = None;
                self.earlier.push(EarlierClose { number: closed, target: row.target, closed_at, reversed_at });
            }
        }
    }

    /// The rows of a plan: the target of a close, or the reason for the skip.
    pub(crate) fn rows(&self, policy: TargetPolicy) -> BTreeMap<i64, Result<i64, SkipReason>> {
        let plan = self.plan(policy);
        plan.rows().map(|row| (row.number.get(), row.skip.map_or(Ok(row.target.get()), Err))).collect()
    }
}
