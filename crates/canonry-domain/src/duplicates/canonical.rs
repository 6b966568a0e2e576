//! Chooses the item of a cluster that stays open, and gives the reason.

use std::collections::BTreeSet;

use crate::close::earlier_close::EarlierCloses;
use crate::{Item, ItemNumber, ItemState, Maintainers, PlanInput, Rulings, likely_english};

/// Chooses the canonical of a cluster: a person's ruling first, then the earlier choice, then the ranking.
///
/// An item that closed items point at stays canonical while it is open, even if it was chosen for another
/// representation. An earlier canonical is replaced if it is closed while another member is open. If several remain,
/// because clusters were joined, the ranking decides.
pub(crate) fn choose_canonical(
    input: &PlanInput<'_>,
    rulings: &Rulings,
    earlier: &EarlierCloses,
    members: &BTreeSet<ItemNumber>,
) -> (ItemNumber, String) {
    if let Some(ruled) = rulings.canonical_among(members) {
        return (ruled, "ruled canonical by an override".to_owned());
    }
    let any_open = members.iter().any(|member| input.is_open(*member));
    let may_stay = |number: ItemNumber| input.is_open(number) || !any_open;
    let stored: BTreeSet<ItemNumber> = members
        .iter()
        .filter_map(|member| input.stored.get(member).copied())
        .filter(|canonical| members.contains(canonical) && may_stay(*canonical))
        .collect();
    let pointed_at: BTreeSet<ItemNumber> =
        members.iter().copied().filter(|member| input.is_open(*member) && earlier.is_target(*member)).collect();
    // An earlier canonical comes first here too: otherwise a comment could swap two of them.
    let both: BTreeSet<ItemNumber> = pointed_at.intersection(&stored).copied().collect();
    for (chosen, why) in [
        (both, "earlier duplicates point at it"),
        (pointed_at, "earlier duplicates point at it"),
        (stored, "canonical since an earlier run"),
    ] {
        match chosen.len() {
            0 => {}
            1 => return (first(&chosen), why.to_owned()),
            _ => {
                let (best, because) = best_ranked(input, &chosen);
                return (best, format!("{why}; of several, {because}"));
            }
        }
    }
    best_ranked(input, members)
}

fn first(numbers: &BTreeSet<ItemNumber>) -> ItemNumber {
    *numbers.first().expect("invariant: a cluster has members")
}

/// An item in the ranking. An item that is missing from the plan's input has no text, no age and no activity.
#[derive(Clone, Copy)]
struct RankedItem<'a> {
    number: ItemNumber,
    is_open: bool,
    item: Option<&'a Item>,
    own_comments: u32,
}

impl RankedItem<'_> {
    /// The number of comments by people and bots, including a pull request's review comments; an issue has none of
    /// those. Canonry's own comments must not change the order in which it closes.
    fn activity(&self) -> u64 {
        let all = self.item.map_or(0, |item| u64::from(item.comments) + u64::from(item.review_comments));
        all.saturating_sub(u64::from(self.own_comments))
    }
}

/// One step of the ranking: it keeps the best of the remaining items and returns the reason for the winner.
type Step = fn(&Maintainers, &mut Vec<RankedItem<'_>>) -> &'static str;

/// The steps of the ranking, most important first. Each step sees only the items that the steps before it ranked
/// equal, so that the language of texts is detected only if it matters.
const STEPS: [Step; 6] = [
    |_, left| {
        keep(left, |one| one.is_open);
        "the only open one"
    },
    |_, left| {
        keep(left, |one| one.item.is_some_and(|item| likely_english(&item.title, &item.body)));
        "the only one in English"
    },
    |maintainers, left| {
        keep(left, |one| {
            let author = one.item.and_then(|item| item.author.as_ref());
            author.is_some_and(|author| maintainers.contains(author))
        });
        "by a maintainer"
    },
    |_, left| {
        let most = left.iter().map(RankedItem::activity).max();
        keep(left, |one| Some(one.activity()) == most);
        "the most active"
    },
    |_, left| {
        let created_at = |one: &RankedItem<'_>| one.item.and_then(|item| item.created_at);
        let oldest = left.iter().filter_map(created_at).min();
        keep(left, |one| created_at(one) == oldest);
        "the oldest"
    },
    |_, left| {
        let lowest = left.iter().map(|one| one.number).min();
        keep(left, |one| Some(one.number) == lowest);
        "the lowest number"
    },
];

fn best_ranked(input: &PlanInput<'_>, members: &BTreeSet<ItemNumber>) -> (ItemNumber, String) {
    let ranked = |number: &ItemNumber| {
        let known = input.items.get(number);
        RankedItem {
            number: *number,
            is_open: input.is_open(*number),
            item: known.map(|known| known.item),
            own_comments: known.map_or(0, |known| known.own_comments),
        }
    };
    let (best, because) = rank(members.iter().map(ranked).collect(), input.maintainers);
    (best.unwrap_or_else(|| first(members)), because.to_owned())
}

fn rank(mut left: Vec<RankedItem<'_>>, maintainers: &Maintainers) -> (Option<ItemNumber>, &'static str) {
    for step in STEPS {
        let because = step(maintainers, &mut left);
        if let [winner] = left[..] {
            return (Some(winner.number), because);
        }
    }
    (None, "the lowest number")
}

/// Keeps the items that fit; if none fits, all stay.
fn keep(left: &mut Vec<RankedItem<'_>>, fits: impl Fn(&RankedItem<'_>) -> bool) {
    if left.iter().any(&fits) {
        left.retain(fits);
    }
}

/// One of two items of which one may be closed as a duplicate of the other.
#[derive(Debug, Clone, Copy)]
pub struct PairItem<'a> {
    pub item: &'a Item,
    pub own_comments: u32,
}

impl<'a> PairItem<'a> {
    fn ranked(self) -> RankedItem<'a> {
        let Self { item, own_comments } = self;
        let is_open = item.state == ItemState::Open && item.gone.is_none();
        RankedItem { number: item.number, is_open, item: Some(item), own_comments }
    }
}

/// Whether Canonry may close `source` as a duplicate of `target` without a person's ruling: only if the target is
/// older and also wins the ranking of canonicals.
///
/// The ranking alone is not enough: anybody can open a copy of an old issue and comment on it, which makes the copy
/// the more active one. If an age is unknown, the answer is no.
pub fn may_close_towards(source: PairItem<'_>, target: PairItem<'_>, maintainers: &Maintainers) -> bool {
    let age = |one: PairItem<'_>| one.item.created_at.map(|created_at| (created_at, one.item.number));
    let (Some(source_age), Some(target_age)) = (age(source), age(target)) else { return false };
    let (winner, _) = rank(vec![source.ranked(), target.ranked()], maintainers);
    target_age < source_age && winner == Some(target.item.number)
}
