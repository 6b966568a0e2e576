//! Properties of plans that hold for any history.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    ClosePath, ClosePlan, EarlierClose, GoneReason, ItemNumber, ItemState, OverrideKind, TargetPolicy,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, TestCaseError, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::Index;

use crate::close_plans::world::{World, number};

/// An event in a repository. Items have any number, which is mapped to an existing item.
#[derive(Debug, Clone)]
enum Event {
    Edge { source: i64, target: i64, confidence: f64 },
    Override { kind: OverrideKind, item: i64, other: i64 },
    Edited(i64),
    ClosedByPerson(i64),
    Reopened(i64),
    Gone(i64),
    Undone(i64),
    ObjectedTo(i64),
    Commented(i64),
    Unrelated,
    Judged,
    Applied(TargetPolicy),
}

fn event() -> impl Strategy<Value = Event> {
    let item = 1_i64..=12;
    let kind =
        prop_oneof![Just(OverrideKind::Duplicate), Just(OverrideKind::NotDuplicate), Just(OverrideKind::Canonical)];
    let confidence = prop_oneof![1 => Just(0.86), 4 => Just(0.95)];
    prop_oneof![
        12 => (item.clone(), item.clone(), confidence)
            .prop_map(|(source, target, confidence)| Event::Edge { source, target, confidence }),
        3 => (kind, item.clone(), item.clone()).prop_map(|(kind, item, other)| Event::Override { kind, item, other }),
        1 => item.clone().prop_map(Event::Edited),
        1 => item.clone().prop_map(Event::ClosedByPerson),
        2 => item.clone().prop_map(Event::Reopened),
        1 => item.clone().prop_map(Event::Gone),
        1 => item.clone().prop_map(Event::Undone),
        1 => item.clone().prop_map(Event::ObjectedTo),
        2 => item.prop_map(Event::Commented),
        1 => Just(Event::Unrelated),
        1 => Just(Event::Judged),
        5 => prop_oneof![Just(TargetPolicy::CanonicalOnly), Just(TargetPolicy::DirectFallback)].prop_map(Event::Applied),
    ]
}

/// Items of every kind; most of them may be closed.
fn world() -> impl Strategy<Value = World> {
    let item = (0_u8..16, 0_u32..4, any::<bool>());
    let earlier = vec((1_i64..=12, 1_i64..=12, 0_i64..900, any::<bool>()), 0..5);
    let stored = vec((1_i64..=12, 1_i64..=12), 0..6);
    (vec(item, 12), earlier, stored).prop_map(|(items, earlier, stored)| {
        let mut world = World::new();
        for (index, (kind, comments, closed)) in (1_i64..).zip(items) {
            world.item(index, |item| {
                item.comments = comments;
                match kind {
                    0 => item.author = None,
                    1 => item.author = Some("Boss".parse().expect("a login")),
                    2 => item.assignees = Some(vec!["boss".parse().expect("a login")]),
                    3 => item.labels = vec!["SECURITY".into()],
                    4 => item.gone = Some(GoneReason::Deleted),
                    5 | 6 if closed => item.state = ItemState::Closed,
                    _ => {}
                }
            });
            if kind == 7 {
                world.in_progress.insert(number(index));
            }
        }
        for (closed, target, when, stays_closed) in earlier {
            if stays_closed {
                world.change(closed, |item| item.state = ItemState::Closed);
            }
            let closed_at = crate::close_plans::world::at(when);
            let (closed, target) = (number(closed), number(target));
            world.earlier.push(EarlierClose { number: closed, target, closed_at, reversed_at: None });
        }
        world.stored = stored.into_iter().map(|(item, canonical)| (number(item), number(canonical))).collect();
        world
    })
}

/// Applies an event and checks the properties of that event.
fn happen(world: &mut World, event: &Event) -> Result<(), TestCaseError> {
    match *event {
        Event::Edge { source, target, confidence } => world.edge(source, target, confidence),
        Event::Override { kind, item, other } => world.rule(kind, item, Some(other)),
        Event::Edited(item) => world.change(item, |item| item.content_version = item.content_version.next()),
        Event::ClosedByPerson(item) => world.change(item, |item| item.state = ItemState::Closed),
        Event::Reopened(item) => world.reopen(number(item)),
        Event::Gone(item) => world.change(item, |item| item.gone = Some(GoneReason::Transferred)),
        Event::Undone(item) => take_back(world, item, true),
        Event::ObjectedTo(item) => take_back(world, item, false),
        Event::Commented(item) => unmoved(world, |world| world.change(item, |item| item.comments += 50))?,
        Event::Unrelated => unmoved(world, |world| {
            let free = world.items.keys().next_back().map_or(1, |last| last.get() + 1);
            world.plain_items(free..free + 3);
            world.edge(free + 1, free, 0.95);
            world.edge(free + 2, free, 0.95);
        })?,
        Event::Judged => {
            for (item, canonical) in world.plan(TargetPolicy::CanonicalOnly).missing_pairs() {
                world.edge(item.get(), canonical.get(), 0.95);
            }
            prop_assert_eq!(world.plan(TargetPolicy::CanonicalOnly).missing_pairs(), []);
        }
        Event::Applied(policy) => {
            let plan = world.plan(policy);
            let closed: BTreeSet<ItemNumber> = plan.closes().map(|row| row.number).collect();
            world.apply(&plan);
            let again = world.plan(policy);
            prop_assert_eq!(again.closes().count(), 0, "planned again: {:?}", again);
            prop_assert_eq!(again.canonicals(), plan.canonicals());
            for (item, target) in standing(world) {
                prop_assert!(!closed.contains(&target), "#{} still points at #{}", item, target);
            }
        }
    }
    Ok(())
}

/// An undone close also rules that the pair is not a duplicate; an objection does not.
fn take_back(world: &mut World, item: i64, rule: bool) {
    let Some(last) = world.earlier.iter().rposition(|close| close.number == number(item)) else { return };
    world.reopen(number(item));
    world.earlier[last].reversed_at = Some(world.tick());
    if rule {
        world.rule(OverrideKind::NotDuplicate, item, Some(world.earlier[last].target.get()));
    }
}

/// Checks that an event does not move a canonical.
fn unmoved(world: &mut World, event: impl FnOnce(&mut World)) -> Result<(), TestCaseError> {
    let before = world.plan(TargetPolicy::CanonicalOnly).canonicals();
    world.stored = before.clone();
    event(world);
    let after = world.plan(TargetPolicy::CanonicalOnly).canonicals();
    for (item, canonical) in before {
        prop_assert_eq!(after.get(&item), Some(&canonical), "the canonical of #{} moved", item);
    }
    Ok(())
}

/// The closes that still stand: item → target.
fn standing(world: &World) -> BTreeMap<ItemNumber, ItemNumber> {
    let mut latest: BTreeMap<ItemNumber, &EarlierClose> = BTreeMap::new();
    for close in &world.earlier {
        let known = latest.entry(close.number).or_insert(close);
        if close.closed_at >= known.closed_at {
            *known = close;
        }
    }
    let holds = |close: &&EarlierClose| {
        let item = &world.items[&close.number];
        close.reversed_at.is_none() && item.state == ItemState::Closed && item.gone.is_none()
    };
    latest.into_values().filter(holds).map(|close| (close.number, close.target)).collect()
}

/// Checks the rules of every plan, written independently of the planner.
fn check(world: &World, policy: TargetPolicy) -> Result<(), TestCaseError> {
    let plan = world.plan(policy);
    let is_open = |item: &ItemNumber| {
        world.items.get(item).is_some_and(|item| item.state == ItemState::Open && item.gone.is_none())
    };
    let mut seen = BTreeSet::new();
    for cluster in plan.clusters() {
        let members = cluster.cluster().members();
        prop_assert!(members.len() >= 2 && members.contains(&cluster.canonical()));
        prop_assert!(members.iter().all(|member| seen.insert(*member)), "clusters share an item");
        prop_assert!(members.iter().all(|member| world.items[member].gone.is_none()));
        let rows: BTreeSet<ItemNumber> = cluster.rows().iter().map(|row| row.number).collect();
        prop_assert!(!rows.contains(&cluster.canonical()));
        prop_assert_eq!(rows.len() + 1, members.len());
        let ruled = world
            .overrides
            .iter()
            .any(|ruled| ruled.kind == OverrideKind::Canonical && ruled.item == cluster.canonical());
        prop_assert!(ruled || is_open(&cluster.canonical()) || !members.iter().any(is_open), "{:?}", cluster);
    }
    let all_rows: Vec<ItemNumber> = plan.rows().map(|row| row.number).collect();
    prop_assert_eq!(all_rows.iter().collect::<BTreeSet<_>>().len(), all_rows.len(), "an item has two rows");
    let closed: BTreeSet<ItemNumber> = plan.closes().map(|row| row.number).collect();
    for row in plan.closes() {
        prop_assert!(is_open(&row.number) && is_open(&row.target), "{:?}", row);
        prop_assert!(!closed.contains(&row.target), "both sides, a chain or a cycle: {:?}", row);
        check_item(world, row.number)?;
        check_path(world, &plan, policy, row.number, row.target, row.path)?;
        let cluster = plan.clusters().iter().find(|cluster| cluster.canonical() == row.target).expect("its cluster");
        for other in cluster.cluster().members() {
            prop_assert!(!apart(world, row.number, *other), "#{} and #{} are ruled apart", row.number, other);
        }
    }
    Ok(())
}

/// Checks the conditions on an item alone before it may be closed.
fn check_item(world: &World, closed: ItemNumber) -> Result<(), TestCaseError> {
    let item = &world.items[&closed];
    let boss = |login: &canonry_domain::Login| login.as_str().eq_ignore_ascii_case("boss");
    prop_assert!(item.author.as_ref().is_some_and(|author| !boss(author)));
    prop_assert!(item.assignees.as_ref().is_some_and(|assignees| !assignees.iter().any(boss)));
    prop_assert!(item.labels.is_empty() && !world.in_progress.contains(&closed));
    let touched = world.earlier.iter().filter(|close| close.number == closed);
    let disputed = touched
        .flat_map(|close| [Some(close.closed_at), close.reversed_at])
        .chain([world.reopened.get(&closed).copied()])
        .flatten()
        .max();
    let allowed = world.overrides.iter().any(|ruled| {
        ruled.kind == OverrideKind::Duplicate && ruled.item == closed && Some(ruled.created_at) > disputed
    });
    prop_assert!(disputed.is_none() || allowed, "#{} was reopened and is planned again", closed);
    Ok(())
}

/// Checks that a close is based on one or two edges that are fresh or a person's.
fn check_path(
    world: &World,
    plan: &ClosePlan,
    policy: TargetPolicy,
    source: ItemNumber,
    target: ItemNumber,
    path: Option<ClosePath>,
) -> Result<(), TestCaseError> {
    let version = |item: &ItemNumber| world.items[item].content_version;
    let holds = |source: ItemNumber, target: ItemNumber| {
        let judged = world.edges.iter().any(|edge| {
            (edge.source, edge.target) == (source, target)
                && (edge.source_version, edge.target_version) == (version(&source), version(&target))
                && edge.confidence.get() >= 0.9
        });
        let said = world
            .overrides
            .iter()
            .any(|ruled| ruled.kind == OverrideKind::Duplicate && (ruled.item, ruled.other) == (source, Some(target)));
        (judged || said) && !apart(world, source, target)
    };
    match path {
        Some(ClosePath::Direct) => prop_assert!(holds(source, target)),
        Some(ClosePath::Through(middle)) => {
            prop_assert_eq!(policy, TargetPolicy::DirectFallback);
            prop_assert!(holds(source, middle) && holds(middle, target), "{:?}", plan);
        }
        None => prop_assert!(false, "a close without a path"),
    }
    Ok(())
}

/// Whether the latest ruling about a pair says that they are not duplicates.
fn apart(world: &World, one: ItemNumber, other: ItemNumber) -> bool {
    let of_pair = world.overrides.iter().filter(|ruled| {
        ruled.kind != OverrideKind::Canonical
            && ruled.item != ruled.other.unwrap_or(ruled.item)
            && [(one, Some(other)), (other, Some(one))].contains(&(ruled.item, ruled.other))
    });
    of_pair.max_by_key(|ruled| ruled.created_at).is_some_and(|ruled| ruled.kind == OverrideKind::NotDuplicate)
}

proptest! {
    #[test]
    fn no_past_makes_a_plan_go_wrong(mut world in world(), events in vec(event(), 1..30)) {
        for event in &events {
            happen(&mut world, event)?;
            check(&world, TargetPolicy::CanonicalOnly)?;
            check(&world, TargetPolicy::DirectFallback)?;
        }
    }

    #[test]
    fn near_identical_items_end_on_one_canonical(count in 2_i64..=50, parents in vec(any::<Index>(), 50)) {
        let mut world = World::new();
        world.plain_items(1..=count);
        for (item, parent) in (2..=count).zip(parents) {
            world.edge(item, 1 + parent.index(usize::try_from(item - 1).expect("small")) as i64, 0.95);
        }
        for (item, canonical) in world.plan(TargetPolicy::CanonicalOnly).missing_pairs() {
            world.edge(item.get(), canonical.get(), 0.95);
        }
        let plan = world.plan(TargetPolicy::CanonicalOnly);
        prop_assert_eq!(plan.clusters().len(), 1);
        let closes: Vec<_> = plan.closes().map(|row| (row.number.get(), row.target.get())).collect();
        prop_assert_eq!(closes, (2..=count).map(|item| (item, 1)).collect::<Vec<_>>());
    }

    #[test]
    fn a_new_member_does_not_move_the_canonical(mut world in world(), edges in vec((1_i64..=12, 1_i64..=12), 1..12)) {
        for (source, target) in edges {
            world.edge(source, target, 0.95);
        }
        let before = world.plan(TargetPolicy::CanonicalOnly).canonicals();
        world.stored = before.clone();
        for (item, canonical) in &before {
            let new = 100 + item.get();
            world.item(new, |item| {
                (item.comments, item.author) = (500, Some("boss".parse().expect("a login")));
            });
            world.edge(new, canonical.get(), 0.95);
        }
        let after = world.plan(TargetPolicy::CanonicalOnly).canonicals();
        for (item, canonical) in before {
            if world.items[&canonical].state == ItemState::Open {
                prop_assert_eq!(after.get(&item), Some(&canonical));
            }
        }
    }
}
