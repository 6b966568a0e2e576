//! Tests the rules of clusters and plans, case by case.

use std::collections::BTreeMap;

use canonry_domain::{
    ClosePath, GoneReason, Item, ItemState, OverrideKind, Probability, RowVerdict, SkipReason, StateReason,
    TargetPolicy,
};

use crate::close_plans::world::{World, at, number};

const STRICT: TargetPolicy = TargetPolicy::CanonicalOnly;
const FALLBACK: TargetPolicy = TargetPolicy::DirectFallback;

fn login(name: &str) -> canonry_domain::Login {
    name.parse().expect("a login")
}

/// The canonical of the only cluster, and the reason.
fn canonical(world: &World) -> (i64, String) {
    let clusters = world.clusters();
    let [cluster] = &clusters[..] else { panic!("one cluster, not {clusters:?}") };
    (cluster.canonical().get(), cluster.because().to_owned())
}

#[test]
fn an_open_maintainers_item_beats_activity_and_a_closed_one() {
    let mut world = World::new();
    world.item(1, |item| item.comments = 50);
    world.item(2, |item| (item.comments, item.author) = (1, Some(login("Boss"))));
    world.item(3, |item| (item.comments, item.author, item.state) = (100, Some(login("boss")), ItemState::Closed));
    world.edge(1, 2, 0.95);
    world.edge(3, 1, 0.95);
    assert_eq!(canonical(&world), (2, "by a maintainer".to_owned()));
}

#[test]
fn english_beats_activity() {
    let mut world = World::new();
    world.item(1, |item| {
        item.title = "La aplicación se cierra al abrir la configuración".to_owned();
        item.body = "Cuando abro la configuración, la aplicación deja de responder y se cierra.".to_owned();
        item.comments = 20;
    });
    world.item(2, |item| item.comments = 1);
    world.edge(1, 2, 0.95);
    assert_eq!(canonical(&world), (2, "the only one in English".to_owned()));
}

#[test]
fn among_closed_ones_activity_then_age_then_number() {
    let mut world = World::new();
    for (item, comments, created) in [(300, 10, 33), (200, 10, 31), (100, 9, 0)] {
        world.item(item, |item| {
            (item.comments, item.created_at, item.state) = (comments, Some(at(created * 24)), ItemState::Closed);
        });
    }
    world.edge(300, 200, 0.95);
    world.edge(100, 300, 0.95);
    assert_eq!(canonical(&world), (200, "the oldest".to_owned()));
    world.change(300, |item| item.created_at = Some(at(31 * 24)));
    assert_eq!(canonical(&world), (200, "the lowest number".to_owned()));
    world.change(300, |item| item.review_comments = 1);
    assert_eq!(canonical(&world), (300, "the most active".to_owned()));
    world.change(100, |item| item.state = ItemState::Open);
    assert_eq!(canonical(&world), (100, "the only open one".to_owned()));
    assert_eq!(world.rows(STRICT), [(200, Err(SkipReason::NotOpen)), (300, Err(SkipReason::NotOpen))].into());
}

#[test]
fn a_low_confidence_is_skipped() {
    let mut world = World::new();
    world.plain_items([1, 3]);
    world.item(2, |item| (item.comments, item.author) = (9, Some(login("boss"))));
    world.edge(1, 2, 0.95);
    world.edge(3, 2, 0.88);
    assert_eq!(world.rows(STRICT), [(1, Ok(2)), (3, Err(SkipReason::LowConfidence))].into());
    let plan = world.plan(STRICT);
    let confidences: Vec<_> = plan.rows().map(|row| row.confidence.map(Probability::get)).collect();
    assert_eq!(confidences, [Some(0.95), Some(0.88)]);
}

#[test]
fn every_item_has_one_reason() {
    let mut world = World::new();
    world.item(10, |item| (item.comments, item.author) = (99, Some(login("boss"))));
    world.item(11, |item| item.author = Some(login("BOSS")));
    world.item(12, |item| item.assignees = Some(vec![login("helper"), login("boss")]));
    world.item(13, |item| item.author = None);
    world.item(14, |item| item.state = ItemState::Closed);
    world.item(16, |item| item.assignees = None);
    world.item(17, |item| item.labels = vec!["Security".into()]);
    world.item(18, |item| item.state_reason = Some(StateReason::Reopened));
    world.item(21, |item| item.has_milestone = Some(true));
    world.item(22, |item| item.locked = Some(true));
    world.plain_items([15, 19, 20]);
    world.in_progress.insert(number(19));
    for source in [11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22] {
        world.edge(source, 10, 0.95);
    }
    world.edge(10, 15, 0.95);
    let expected: BTreeMap<i64, Result<i64, SkipReason>> = [
        (11, Err(SkipReason::MaintainerAuthor)),
        (12, Err(SkipReason::MaintainerAssignee)),
        (13, Err(SkipReason::UncertainMaintainerIdentity)),
        (14, Err(SkipReason::NotOpen)),
        (15, Err(SkipReason::MissingAcceptedEdge)),
        (16, Err(SkipReason::UncertainMaintainerIdentity)),
        (17, Err(SkipReason::ProtectedLabel)),
        (18, Err(SkipReason::HumanReopened)),
        (19, Err(SkipReason::InProgress)),
        (20, Ok(10)),
        (21, Err(SkipReason::InProgress)),
        (22, Err(SkipReason::Locked)),
    ]
    .into();
    assert_eq!(world.rows(STRICT), expected);
    assert_eq!(world.rows(FALLBACK), expected);
}

/// An unfilled form is neither closed nor a target, and joins nothing, unless a person rules so, who may know more
/// than the text.
#[test]
fn an_unfilled_template_is_neither_source_nor_target() {
    let unfilled =
        |item: &mut Item| (item.title, item.body) = ("[Bug]: ".to_owned(), "### Steps\n\n_No response_".to_owned());
    let mut world = World::new();
    world.item(1, |item| item.comments = 9);
    world.item(2, unfilled);
    world.plain_items([3]);
    world.edge(2, 1, 0.97);
    world.edge(3, 2, 0.97);
    assert_eq!(world.rows(STRICT), [(2, Err(SkipReason::NoContent)), (3, Err(SkipReason::MissingAcceptedEdge))].into());
    assert_eq!(world.rows(FALLBACK), world.rows(STRICT));
    world.rule(OverrideKind::Duplicate, 2, Some(1));
    assert_eq!(world.rows(STRICT)[&2], Ok(1));
    let mut world = World::new();
    world.item(1, |item| (item.title, item.body, item.comments) = ("Bug report".to_owned(), String::new(), 9));
    world.plain_items([2]);
    world.edge(2, 1, 0.97);
    assert_eq!(world.rows(STRICT), [(2, Err(SkipReason::NoContent))].into());
}

#[test]
fn a_chain_ends_on_the_canonical_or_is_skipped() {
    let mut world = World::new();
    world.plain_items([1, 2]);
    world.item(3, |item| item.comments = 9);
    world.edge(1, 2, 0.93);
    world.edge(2, 3, 0.97);
    let plan = world.plan(STRICT);
    assert_eq!(world.rows(STRICT), [(1, Err(SkipReason::MissingAcceptedEdge)), (2, Ok(3))].into());
    assert_eq!(plan.missing_pairs(), [(number(1), number(3))]);
    assert_eq!(world.rows(FALLBACK), [(1, Ok(3)), (2, Ok(3))].into());
    let plan = world.plan(FALLBACK);
    let RowVerdict::Close { confidence, path, .. } = &plan.clusters()[0].rows()[0].verdict else { panic!("{plan:?}") };
    assert_eq!((confidence.get(), *path), (0.93, ClosePath::Through(number(2))));
    world.edge(1, 3, 0.96);
    assert_eq!(world.rows(STRICT), [(1, Ok(3)), (2, Ok(3))].into());
    assert_eq!(world.plan(STRICT).missing_pairs(), []);
}

#[test]
fn no_path_is_longer_than_two_edges_or_leads_through_a_dispute() {
    let mut world = World::new();
    world.plain_items([1, 2, 3]);
    world.item(4, |item| item.comments = 9);
    for source in [1, 2, 3] {
        world.edge(source, source + 1, 0.95);
    }
    let expected = [(1, Err(SkipReason::MissingAcceptedEdge)), (2, Ok(4)), (3, Ok(4))].into();
    assert_eq!(world.rows(FALLBACK), expected);
    world.reopen(number(3));
    let expected = [
        (1, Err(SkipReason::MissingAcceptedEdge)),
        (2, Err(SkipReason::MissingAcceptedEdge)),
        (3, Err(SkipReason::HumanReopened)),
    ];
    assert_eq!(world.rows(FALLBACK), expected.into());
}

#[test]
fn of_a_mutual_pair_exactly_one_is_closed() {
    let mut world = World::new();
    world.plain_items([1, 2]);
    world.edge(1, 2, 0.95);
    world.edge(2, 1, 0.95);
    for policy in [STRICT, FALLBACK] {
        assert_eq!(world.rows(policy), [(2, Ok(1))].into());
    }
}

#[test]
fn a_pair_ruled_apart_is_in_no_plan() {
    let mut world = World::new();
    world.plain_items([1, 2]);
    world.edge(2, 1, 0.95);
    world.rule(OverrideKind::NotDuplicate, 1, Some(2));
    assert_eq!(world.rows(STRICT), BTreeMap::new());
    world.rule(OverrideKind::Duplicate, 2, Some(1));
    assert_eq!(world.rows(STRICT), [(2, Ok(1))].into());
}

#[test]
fn items_ruled_apart_but_joined_by_others_are_left_alone() {
    let mut world = World::new();
    world.plain_items([1, 2, 3, 4]);
    for source in [2, 3, 4] {
        world.edge(source, 1, 0.95);
    }
    world.rule(OverrideKind::NotDuplicate, 2, Some(3));
    let apart = Err(SkipReason::ConflictingOverride);
    assert_eq!(world.rows(STRICT), [(2, apart), (3, apart), (4, Ok(1))].into());
    world.change(3, |item| item.state = ItemState::Closed);
    assert_eq!(world.rows(STRICT), [(2, apart), (3, Err(SkipReason::NotOpen)), (4, Ok(1))].into());
    world.rule(OverrideKind::NotDuplicate, 4, Some(1));
    world.edge(4, 2, 0.95);
    assert_eq!(world.rows(FALLBACK), [(2, apart), (3, Err(SkipReason::NotOpen)), (4, apart)].into());
}

#[test]
fn a_canonical_override_decides() {
    let mut world = World::new();
    world.item(1, |item| (item.comments, item.author) = (99, Some(login("boss"))));
    world.plain_items([2, 3]);
    world.edge(3, 2, 0.95);
    world.edge(2, 1, 0.95);
    world.stored = [(number(1), number(1)), (number(2), number(1)), (number(3), number(1))].into();
    world.rule(OverrideKind::Canonical, 2, None);
    assert_eq!(canonical(&world), (2, "ruled canonical by an override".to_owned()));
    assert_eq!(world.rows(STRICT), [(1, Err(SkipReason::MaintainerAuthor)), (3, Ok(2))].into());
    world.change(2, |item| item.state = ItemState::Closed);
    assert_eq!(world.rows(STRICT), [(1, Err(SkipReason::MaintainerAuthor)), (3, Err(SkipReason::UnsafeTarget))].into());
}

#[test]
fn a_stored_canonical_gives_way_only_when_closed_or_gone() {
    let mut world = World::new();
    world.plain_items([1, 2, 3]);
    world.edge(1, 2, 0.95);
    world.edge(3, 2, 0.95);
    world.stored = world.plan(STRICT).canonicals();
    assert_eq!(canonical(&world).0, 1);
    world.change(3, |item| (item.comments, item.author) = (500, Some(login("boss"))));
    assert_eq!(canonical(&world), (1, "canonical since an earlier run".to_owned()));
    world.change(1, |item| item.gone = Some(GoneReason::Transferred));
    assert_eq!(canonical(&world), (3, "by a maintainer".to_owned()));
    world.change(1, |item| (item.gone, item.state) = (None, ItemState::Closed));
    assert_eq!(canonical(&world).0, 3);
    for other in [2, 3] {
        world.change(other, |item| item.state = ItemState::Closed);
    }
    assert_eq!(canonical(&world).0, 1);
}

#[test]
fn what_duplicates_point_at_stays_and_takes_them_along_when_it_must_close() {
    let mut world = World::new();
    world.plain_items([1, 2]);
    world.edge(1, 2, 0.95);
    world.edge(2, 1, 0.95);
    let plan = world.plan(STRICT);
    world.apply(&plan);
    // Two clusters are joined, and another representation stored other canonicals.
    world.item(3, |item| (item.comments, item.author) = (99, Some(login("boss"))));
    world.edge(1, 3, 0.95);
    world.stored = [(number(1), number(3)), (number(2), number(3)), (number(3), number(3))].into();
    assert_eq!(canonical(&world), (1, "earlier duplicates point at it".to_owned()));
    world.rule(OverrideKind::Canonical, 3, None);
    let plan = world.plan(STRICT);
    let closes: Vec<_> = plan.closes().map(|row| (row.number.get(), row.target.get(), row.repoint.to_vec())).collect();
    assert_eq!(closes, [(1, 3, vec![number(2)])]);
    // A re-pointed item may contradict a person's ruling as well.
    world.rule(OverrideKind::NotDuplicate, 2, Some(3));
    assert_eq!(world.rows(STRICT)[&1], Err(SkipReason::ConflictingOverride));
}

#[test]
fn of_two_that_duplicates_point_at_the_one_chosen_first_stays() {
    let mut world = World::new();
    world.plain_items([1, 2, 3, 4]);
    world.edge(2, 1, 0.95);
    world.edge(4, 3, 0.95);
    let plan = world.plan(STRICT);
    world.apply(&plan);
    world.edge(3, 1, 0.86);
    assert_eq!(canonical(&world), (1, "earlier duplicates point at it; of several, the oldest".to_owned()));
    let plan = world.plan(STRICT);
    world.apply(&plan);
    world.change(3, |item| item.comments = 500);
    assert_eq!(canonical(&world), (1, "earlier duplicates point at it".to_owned()));
    assert_eq!(world.rows(STRICT)[&3], Err(SkipReason::LowConfidence));
}

#[test]
fn what_a_person_took_back_is_closed_again_only_on_a_maintainers_word() {
    let mut world = World::new();
    world.plain_items([1, 2]);
    world.edge(2, 1, 0.95);
    world.rule(OverrideKind::Duplicate, 2, Some(1));
    let plan = world.plan(STRICT);
    world.apply(&plan);
    assert_eq!(world.rows(STRICT), [(2, Err(SkipReason::NotOpen))].into());
    // The item is open again, and no event was recorded.
    world.change(2, |item| (item.state, item.state_reason) = (ItemState::Open, None));
    assert_eq!(world.rows(STRICT), [(2, Err(SkipReason::HumanReopened))].into());
    world.rule(OverrideKind::Duplicate, 2, Some(1));
    assert_eq!(world.rows(STRICT), [(2, Ok(1))].into());
    let undone_at = world.tick();
    world.earlier[0].reversed_at = Some(undone_at);
    assert_eq!(world.rows(STRICT), [(2, Err(SkipReason::HumanReopened))].into());
}

#[test]
fn a_changed_text_makes_its_edges_stale_but_not_a_persons_word() {
    let mut world = World::new();
    world.plain_items([1, 2, 3, 4]);
    for source in [2, 3] {
        world.edge(source, 1, 0.95);
    }
    world.rule(OverrideKind::Duplicate, 4, Some(1));
    world.change(2, |item| item.content_version = item.content_version.next());
    assert_eq!(world.rows(STRICT), [(2, Err(SkipReason::StaleEdge)), (3, Ok(1)), (4, Ok(1))].into());
    assert_eq!(world.plan(STRICT).stale().len(), 1);
    // The item is in a cluster by another edge and lacks only a judgement.
    world.edge(3, 2, 0.95);
    assert_eq!(world.rows(STRICT)[&2], Err(SkipReason::StaleEdge));
    assert_eq!(world.plan(STRICT).missing_pairs(), [(number(2), number(1))]);
    // The canonical's own text changes: only a person's ruling still joins items to it.
    world.change(1, |item| item.content_version = item.content_version.next());
    assert_eq!(world.rows(STRICT), [(3, Ok(2)), (4, Ok(1))].into());
    world.edges.retain(|edge| edge.target == number(1));
    let stale = Err(SkipReason::StaleEdge);
    assert_eq!(world.rows(STRICT), [(2, stale), (3, stale), (4, Ok(1))].into());
    world.change(3, |item| item.state = ItemState::Closed);
    assert_eq!(world.rows(STRICT), [(2, stale), (4, Ok(1))].into());
}
