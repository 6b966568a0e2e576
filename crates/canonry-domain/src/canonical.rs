//! Which item of a cluster stays open, and why.

use std::collections::BTreeSet;

use crate::earlier_close::EarlierCloses;
use crate::english::likely_english;
use crate::human_override::Rulings;
use crate::item::{Item, ItemNumber};
use crate::plan_input::PlanInput;

/// Chooses the canonical of a cluster: a person's word, then what was chosen before, then the ranking.
///
/// What closed items point at stays canonical while it is open, also where it was chosen for another
/// representation. A canonical that was chosen before gives way when it is closed while another
/// member is open. Where several are left, because clusters grew together, the ranking decides.
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
    // One that was chosen before comes first here too: otherwise a comment could swap two of them.
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

/// One step of the ranking: what it keeps of those left, and how that is said of the winner.
type Step = fn(&PlanInput<'_>, &mut Vec<ItemNumber>) -> &'static str;

/// The ranking, most important first. Each step looks only at what the steps before could not tell
/// apart, so that texts are read for their language only where it matters.
const STEPS: [Step; 6] = [
    |input, left| {
        keep(left, |number| input.is_open(number));
        "the only open one"
    },
    |input, left| {
        keep(left, |number| item(input, number).is_some_and(|item| likely_english(&item.title, &item.body)));
        "the only one in English"
    },
    |input, left| {
        keep(left, |number| {
            let author = item(input, number).and_then(|item| item.author.as_ref());
            author.is_some_and(|author| input.maintainers.contains(author))
        });
        "by a maintainer"
    },
    |input, left| {
        let most = left.iter().map(|number| activity(input, *number)).max();
        keep(left, |number| Some(activity(input, number)) == most);
        "the most active"
    },
    |input, left| {
        let created_at = |number| item(input, number).and_then(|item| item.created_at);
        let oldest = left.iter().filter_map(|number| created_at(*number)).min();
        keep(left, |number| created_at(number) == oldest);
        "the oldest"
    },
    |_, left| {
        let lowest = left.iter().copied().min();
        keep(left, |number| Some(number) == lowest);
        "the lowest number"
    },
];

fn best_ranked(input: &PlanInput<'_>, members: &BTreeSet<ItemNumber>) -> (ItemNumber, String) {
    let mut left: Vec<ItemNumber> = members.iter().copied().collect();
    for step in STEPS {
        let because = step(input, &mut left);
        if let [winner] = left[..] {
            return (winner, because.to_owned());
        }
    }
    (first(members), "the lowest number".to_owned())
}

/// Keeps those that fit; nobody is better than anybody when none does.
fn keep(left: &mut Vec<ItemNumber>, fits: impl Fn(ItemNumber) -> bool) {
    let better: Vec<ItemNumber> = left.iter().copied().filter(|number| fits(*number)).collect();
    if !better.is_empty() {
        *left = better;
    }
}

fn item<'a>(input: &PlanInput<'a>, number: ItemNumber) -> Option<&'a Item> {
    input.items.get(&number).map(|known| known.item)
}

/// Comments, and a pull request's review comments with them; an issue has none of those.
fn activity(input: &PlanInput<'_>, number: ItemNumber) -> u64 {
    item(input, number).map_or(0, |item| u64::from(item.comments) + u64::from(item.review_comments))
}
