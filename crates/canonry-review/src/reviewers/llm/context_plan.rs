//! Fits the context of a question into its room, and says what was left out.

use std::collections::BTreeMap;

use canonry_domain::visible_text;

/// The parts of the context, in the order in which they get room: what comes last is cut first.
///
/// What maintainers ask for comes first, because a review that ignores it is wrong. Then come the author's own words and
/// earlier findings, without which a review repeats itself; then the code around the change; then what only explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContextRank {
    PathInstructions,
    Suppressions,
    Guidance,
    Title,
    EarlierFindings,
    Overview,
    Definitions,
    Callers,
    Issues,
    Memories,
    Commits,
    OtherFiles,
}

/// How the entries of a section are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryForm {
    /// One line or a few, after a dash; left out whole.
    Item,
    /// A text; its end is left out if the whole does not fit.
    Block,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContextSection {
    pub(super) heading: &'static str,
    /// What the entries are called in the report.
    pub(super) what: &'static str,
    pub(super) rank: ContextRank,
    pub(super) form: EntryForm,
    pub(super) entries: Vec<String>,
    /// The characters that this section takes at most, even if there is more room.
    pub(super) limit: usize,
}

/// The context that fits: the headings with their texts, in the order of the given sections, and what did not fit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlannedContext {
    pub(super) sections: Vec<(&'static str, String)>,
    pub(super) left_out: LeftOut,
}

/// The entries that did not fit, of how many, and those that lost their end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeftOut(BTreeMap<&'static str, LeftOutEntries>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LeftOutEntries {
    whole: usize,
    ends: usize,
    of: usize,
}

impl LeftOut {
    /// Adds what another question left out: of each kind, the question that left out the most is reported.
    pub(super) fn merge(&mut self, other: &Self) {
        for (what, more) in &other.0 {
            let known = self.0.entry(what).or_default();
            if (more.whole, more.ends) > (known.whole, known.ends) {
                *known = *more;
            }
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let note = |(what, entries): (&&str, &LeftOutEntries)| {
            let LeftOutEntries { whole, ends, of } = *entries;
            let whole = (whole > 0).then(|| format!("{whole} of {of} {what}"));
            let ends = (ends > 0).then(|| format!("the end of {ends} of {of} {what}"));
            let parts: Vec<String> = whole.into_iter().chain(ends).collect();
            format!("context: {} left out, because a question to the model has no room for more", parts.join(" and "))
        };
        self.0.iter().map(note).collect()
    }
}

/// An entry is cut at its end only if at least so much of it stays.
const LEAST_BLOCK: usize = 400;
const CUT: &str = "… (the rest is not shown)\n";

/// Fills the room, the most important sections first.
pub(super) fn plan_context(sections: &[ContextSection], room: usize) -> PlannedContext {
    let mut order: Vec<usize> = (0..sections.len()).collect();
    order.sort_by_key(|at| sections[*at].rank);
    let mut left = room;
    let mut texts: Vec<String> = vec![String::new(); sections.len()];
    let mut planned = PlannedContext::default();
    for at in order {
        let section = &sections[at];
        let (mut free, mut out) =
            (left.min(section.limit), LeftOutEntries { of: section.entries.len(), ..LeftOutEntries::default() });
        let began = free;
        for entry in &section.entries {
            let text = match section.form {
                EntryForm::Item => format!("- {}\n", visible_text(entry)),
                EntryForm::Block => format!("{}\n", visible_text(entry.trim_end())),
            };
            let characters = text.chars().count();
            if characters <= free {
                free -= characters;
                texts[at].push_str(&text);
            } else if section.form == EntryForm::Block && free >= LEAST_BLOCK {
                texts[at].extend(text.chars().take(free - CUT.chars().count() - 1));
                texts[at].push('\n');
                texts[at].push_str(CUT);
                (free, out.ends) = (0, out.ends + 1);
            } else {
                out.whole += 1;
            }
        }
        left -= began - free;
        if out.whole + out.ends > 0 {
            planned.left_out.merge(&LeftOut(BTreeMap::from([(section.what, out)])));
        }
    }
    let shown = sections.iter().zip(texts).filter(|(_, text)| !text.is_empty());
    planned.sections = shown.map(|(section, text)| (section.heading, text)).collect();
    planned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{ContextRank, ContextSection, EntryForm, plan_context};

    const RANKS: [ContextRank; 4] =
        [ContextRank::PathInstructions, ContextRank::Title, ContextRank::Callers, ContextRank::Commits];

    fn section(rank: ContextRank, form: EntryForm, sizes: &[usize], limit: usize) -> ContextSection {
        let entries = sizes.iter().map(|size| "x".repeat(*size)).collect();
        let (heading, what) = match rank {
            ContextRank::PathInstructions => ("Instructions", "path instructions"),
            ContextRank::Title => ("Title", "descriptions"),
            ContextRank::Callers => ("Callers", "callers"),
            _ => ("Commits", "commit messages"),
        };
        ContextSection { heading, what, rank, form, entries, limit }
    }

    #[test]
    fn what_matters_least_is_cut_first() {
        let sections = [
            section(ContextRank::Commits, EntryForm::Item, &[97, 97], 10_000),
            section(ContextRank::Title, EntryForm::Block, &[999], 10_000),
            section(ContextRank::PathInstructions, EntryForm::Item, &[97, 397], 10_000),
        ];
        let headings = |room: usize| plan_context(&sections, room).sections.iter().map(|one| one.0).collect::<Vec<_>>();
        assert_eq!(headings(2_000), ["Commits", "Title", "Instructions"]);
        let tight = plan_context(&sections, 1_600);
        assert_eq!(
            tight.left_out.notes(),
            ["context: 1 of 2 commit messages left out, because a question to the model has no room for more"]
        );
        let tighter = plan_context(&sections, 1_100);
        assert_eq!(
            tighter.left_out.notes(),
            [
                "context: 2 of 2 commit messages left out, because a question to the model has no room for more",
                "context: the end of 1 of 1 descriptions left out, because a question to the model has no room for more",
            ]
        );
        assert_eq!(headings(500), ["Instructions"]);
        assert!(tighter.sections[0].1.ends_with("x\n… (the rest is not shown)\n"), "{tighter:?}");
    }

    #[test]
    fn a_section_has_a_limit_of_its_own() {
        let planned = plan_context(&[section(ContextRank::Callers, EntryForm::Item, &[97, 97, 97], 250)], 10_000);
        assert_eq!(planned.sections[0].1.len(), 200);
        let mut all = planned.left_out;
        all.merge(
            &plan_context(&[section(ContextRank::Callers, EntryForm::Item, &[97, 97, 97], 150)], 10_000).left_out,
        );
        assert_eq!(
            all.notes(),
            ["context: 2 of 3 callers left out, because a question to the model has no room for more"]
        );
    }

    proptest! {
        /// Nothing is longer than the room, nothing is lost without a note, and what matters less takes nothing from what
        /// matters more.
        #[test]
        fn the_room_is_enough_and_the_order_holds(
            sizes in proptest::collection::vec(proptest::collection::vec(1_usize..900, 0..5), 4),
            blocks in proptest::collection::vec(proptest::bool::ANY, 4),
            limits in proptest::collection::vec(0_usize..3_000, 4),
            room in 0_usize..5_000,
        ) {
            let sections: Vec<ContextSection> = RANKS.iter().enumerate()
                .map(|(at, rank)| {
                    let form = if blocks[at] { EntryForm::Block } else { EntryForm::Item };
                    section(*rank, form, &sizes[at], limits[at])
                })
                .collect();
            let planned = plan_context(&sections, room);
            let taken: usize = planned.sections.iter().map(|one| one.1.chars().count()).sum();
            prop_assert!(taken <= room, "{} > {}", taken, room);
            for (at, section) in sections.iter().enumerate() {
                let text = planned.sections.iter().find(|one| one.0 == section.heading).map_or("", |one| one.1.as_str());
                prop_assert!(text.chars().count() <= section.limit);
                let whole: usize = section.entries.iter().map(|entry| entry.len() + if blocks[at] { 1 } else { 3 }).sum();
                let is_noted = planned.left_out.notes().iter().any(|note| note.contains(section.what));
                prop_assert_eq!(text.chars().count() == whole && !text.contains('…'), !is_noted, "{}", section.what);
            }
            // Without the last sections, the first ones are the same.
            for count in 0..sections.len() {
                let fewer = plan_context(&sections[..count], room);
                prop_assert_eq!(&planned.sections[..fewer.sections.len()], &fewer.sections[..]);
            }
        }
    }
}
