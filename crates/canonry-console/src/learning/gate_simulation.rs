//! An audit with stricter gates: the values of the sliders, and the result.

use std::fmt::Write as _;

use canonry_domain::{
    AuditClass, AuditItem, AuditSimulation, AuditTally, ItemNumber, ItemType, RepoName, Similarity, TighterGates,
    changed_by, simulate_audit, sweep_audit,
};
use canonry_store::AuditedItem;
use serde::Deserialize;

use crate::charts::Svg;
use crate::charts::sweep::{GateSweep, precision_of, recall_of, sweep};
use crate::layout::formatting::{item_path, percent, score, share};
use crate::layout::paging::{PAGE, Pager, cut};
use crate::plans::selection::{read_item, write_item};

/// The slider positions that change no gate.
pub(crate) const ANY_SCORE: f64 = 50.0;
const ANY_GAP: f64 = 0.0;
/// The widest gap of the slider: hardly any candidate has a wider one.
pub(crate) const WIDEST_GAP: f64 = 25.0;

/// The fields of the sliders; scores and gaps in percent. Each gate has a number field, a slider, and the value of
/// both when the page was rendered: the one that was moved counts.
#[derive(Deserialize, Default)]
pub(crate) struct GateSliders {
    score: Option<String>,
    score_at: Option<String>,
    score_was: Option<String>,
    rank: Option<String>,
    rank_at: Option<String>,
    rank_was: Option<String>,
    gap: Option<String>,
    gap_at: Option<String>,
    gap_was: Option<String>,
    /// The last item of the page before.
    after: Option<String>,
}

impl GateSliders {
    /// The gates; a slider at its end changes none.
    pub(crate) fn gates(&self, last_rank: u32) -> TighterGates {
        let score = moved(&self.score, &self.score_at, &self.score_was).filter(|score| *score > ANY_SCORE);
        let rank = moved(&self.rank, &self.rank_at, &self.rank_was).filter(|rank| *rank >= 1.0);
        let gap = moved(&self.gap, &self.gap_at, &self.gap_was).filter(|gap| *gap > ANY_GAP);
        TighterGates {
            max_rank: rank.map(|rank| rank as u32).filter(|rank| *rank < last_rank),
            min_score: score.and_then(|score| Similarity::clamped(score / 100.0).ok()),
            min_gap: gap.map(|gap| (gap / 100.0).min(1.0)),
        }
    }
}

/// The number field if it was changed, else the slider; `None` if neither is a number.
fn moved(number: &Option<String>, slider: &Option<String>, was: &Option<String>) -> Option<f64> {
    let read = |text: &Option<String>| {
        text.as_deref().and_then(|text| text.trim().parse::<f64>().ok()).filter(|value| value.is_finite())
    };
    let (number, slider, was) = (read(number), read(slider), read(was));
    if number.is_some() && (number != was || slider.is_none()) { number } else { slider.or(number) }
}

pub(crate) struct GateSimulationView {
    pub(crate) is_tighter: bool,
    pub(crate) score: f64,
    pub(crate) score_words: String,
    pub(crate) rank: u32,
    pub(crate) rank_words: String,
    pub(crate) gap: f64,
    pub(crate) gap_words: String,
    pub(crate) precision: (String, String),
    pub(crate) recall: (String, String),
    pub(crate) classes: Vec<ClassRow>,
    pub(crate) plot: Svg,
    pub(crate) points: Vec<PointRow>,
    pub(crate) changes: Vec<ChangeRow>,
    pub(crate) pager: Pager,
    pub(crate) changed: usize,
    pub(crate) command: String,
}

pub(crate) struct ClassRow {
    pub(crate) words: &'static str,
    pub(crate) stored: u64,
    pub(crate) with: u64,
    pub(crate) change: String,
}

pub(crate) struct PointRow {
    pub(crate) gates: String,
    pub(crate) precision: String,
    pub(crate) recall: String,
}

pub(crate) struct ChangeRow {
    pub(crate) href: String,
    pub(crate) number: i64,
    pub(crate) target: Option<(String, i64)>,
    pub(crate) score: String,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
    pub(crate) is_better: bool,
}

/// The last rank that any candidate has: a gate there changes nothing.
pub(crate) fn last_rank(audited: &[AuditedItem]) -> u32 {
    let ranks = audited.iter().flat_map(|item| &item.item.candidates).map(|candidate| candidate.rank);
    ranks.max().unwrap_or(0).max(2)
}

/// The audit with these gates, beside the stored result.
pub(crate) fn simulated(
    audited: &[AuditedItem],
    sliders: &GateSliders,
    last_rank: u32,
    path: &str,
    repo: &RepoName,
    id: i64,
) -> GateSimulationView {
    let gates = sliders.gates(last_rank);
    let items: Vec<AuditItem> = audited.iter().map(|audited| audited.item.clone()).collect();
    let stored = simulate_audit(&items, TighterGates::default()).tally;
    let with = simulate_audit(&items, gates).tally;
    let swept = sweep_audit(&items);
    let others: Vec<AuditTally> = swept.iter().map(|one| one.tally).collect();
    let changes = changed_by(&items, gates);
    let after = sliders.after.as_deref().and_then(read_item);
    let place = |audited: &AuditedItem| (audited.number, audited.item_type.as_str());
    let behind = after.map(|(item_type, number)| (number, item_type.as_str()));
    let rest = changes.iter().filter(|change| behind.is_none_or(|behind| place(&audited[change.index]) > behind));
    let mut listed: Vec<_> = rest.take(PAGE as usize + 1).collect();
    let next = cut(&mut listed, PAGE).then(|| listed.last().map(|last| &audited[last.index])).flatten();
    let next = next.map(|last| (last.item_type, last.number));
    GateSimulationView {
        is_tighter: gates != TighterGates::default(),
        score: gates.min_score.map_or(ANY_SCORE, |least| in_percent(least.get())),
        score_words: gates.min_score.map_or_else(|| "none".to_owned(), |least| score(least.get())),
        rank: gates.max_rank.unwrap_or(last_rank),
        rank_words: gates.max_rank.map_or_else(|| "any".to_owned(), |rank| rank.to_string()),
        gap: gates.min_gap.map_or(ANY_GAP, in_percent),
        gap_words: gates.min_gap.map_or_else(|| "none".to_owned(), gap_in_words),
        precision: (share(precision_of(&stored), "right"), share(precision_of(&with), "right")),
        recall: (share(recall_of(&stored), "found"), share(recall_of(&with), "found")),
        classes: class_rows(&stored, &with),
        plot: sweep(&GateSweep { others: &others, stored, chosen: with }),
        points: swept.iter().filter(|one| one.tally.precision.is_some()).map(point_row).collect(),
        changes: listed
            .iter()
            .map(|change| change_row(&audited[change.index], change.before, change.after, path))
            .collect(),
        pager: pager(&format!("{path}/audits/{id}"), &gates, after.is_none(), next),
        changed: changes.len(),
        command: command(repo, id, &gates),
    }
}

/// The pager of the items whose class changes, with the same gates.
fn pager(here: &str, gates: &TighterGates, is_first: bool, next: Option<(ItemType, ItemNumber)>) -> Pager {
    let kept = [
        ("score", gates.min_score.map(|least| in_percent(least.get()).to_string()).unwrap_or_default()),
        ("rank", gates.max_rank.map(|rank| rank.to_string()).unwrap_or_default()),
        ("gap", gates.min_gap.map(|gap| in_percent(gap).to_string()).unwrap_or_default()),
    ];
    let kept = kept.each_ref().map(|(name, value)| (*name, value.as_str()));
    let next = next.map(|(item_type, number)| ("after", write_item(item_type, number)));
    let pager = Pager::new("Pages of changed items", here, &kept, is_first, next);
    pager.in_section("changes")
}

/// With one decimal, as in the sliders.
fn in_percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

fn gap_in_words(gap: f64) -> String {
    format!("{}\u{a0}%", in_percent(gap))
}

fn class_rows(stored: &AuditTally, with: &AuditTally) -> Vec<ClassRow> {
    let row = |words, stored: u64, with: u64| ClassRow {
        words,
        stored,
        with,
        change: match with as i64 - stored as i64 {
            0 => "–".to_owned(),
            change => format!("{change:+}"),
        },
    };
    vec![
        row("duplicate of the same item for both", stored.tp, with.tp),
        row("duplicate for the cheap judge only", stored.fp, with.fp),
        row("duplicate for the strong judge only", stored.missed, with.missed),
        row("not a duplicate for both", stored.tn, with.tn),
        row("duplicates of different items", stored.conflict, with.conflict),
        row("undecided by one of them", stored.incomplete, with.incomplete),
    ]
}

fn point_row(one: &AuditSimulation) -> PointRow {
    let mut gates = Vec::new();
    gates.extend(one.gates.max_rank.map(|rank| format!("rank ≤ {rank}")));
    gates.extend(one.gates.min_score.map(|least| format!("score ≥ {}", score(least.get()))));
    gates.extend(one.gates.min_gap.map(|gap| format!("gap ≥ {}", gap_in_words(gap))));
    PointRow {
        gates: if gates.is_empty() { "as stored".to_owned() } else { gates.join(", ") },
        precision: one.tally.precision.map_or_else(|| "–".to_owned(), percent),
        recall: one.tally.recall.map_or_else(|| "–".to_owned(), percent),
    }
}

fn change_row(audited: &AuditedItem, before: AuditClass, after: AuditClass, path: &str) -> ChangeRow {
    let target = audited.item.cheap.target;
    let chosen = audited.item.candidates.iter().find(|candidate| Some(candidate.number) == target);
    ChangeRow {
        href: item_path(path, audited.item_type, audited.number),
        number: audited.number.get(),
        target: target.map(|target| (item_path(path, audited.item_type, target), target.get())),
        score: chosen
            .map_or_else(|| "–".to_owned(), |chosen| format!("{} at rank {}", score(chosen.score.get()), chosen.rank)),
        before: class_words(before),
        after: class_words(after),
        is_better: before == AuditClass::Fp || before == AuditClass::Conflict,
    }
}

const fn class_words(class: AuditClass) -> &'static str {
    match class {
        AuditClass::Tp => "correctly accepted",
        AuditClass::Fp => "wrongly accepted",
        AuditClass::Fn => "missed",
        AuditClass::Tn => "correctly refused",
        AuditClass::Conflict => "accepted for another item",
        AuditClass::Incomplete => "undecided",
    }
}

fn command(repo: &RepoName, id: i64, gates: &TighterGates) -> String {
    let mut command = format!("canonry report-audit {id} --repo {repo}");
    let mut add = |words: std::fmt::Arguments<'_>| {
        command.write_fmt(words).expect("invariant: a String takes everything");
    };
    if let Some(score) = gates.min_score {
        add(format_args!(" --min-score {score}"));
    }
    if let Some(rank) = gates.max_rank {
        add(format_args!(" --max-rank {rank}"));
    }
    if let Some(gap) = gates.min_gap {
        add(format_args!(" --min-gap {gap}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use canonry_domain::{Similarity, TighterGates};

    use super::{GateSliders, command};

    fn sliders(words: &[(&str, &str)]) -> TighterGates {
        let told = |name: &str| words.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let sliders = GateSliders {
            score: told("score"),
            score_at: told("score_at"),
            score_was: told("score_was"),
            rank: told("rank"),
            rank_at: told("rank_at"),
            rank_was: told("rank_was"),
            gap: told("gap"),
            gap_at: told("gap_at"),
            gap_was: told("gap_was"),
            after: None,
        };
        sliders.gates(20)
    }

    fn score(value: f64) -> Option<Similarity> {
        Similarity::new(value).ok()
    }

    #[test]
    fn whichever_of_number_and_slider_was_moved_counts() {
        let moved = [("score", "50"), ("score_at", "90"), ("score_was", "50")];
        assert_eq!(sliders(&moved).min_score, score(0.9), "the slider, without scripts");
        let typed = [("score", "80"), ("score_at", "50"), ("score_was", "50")];
        assert_eq!(sliders(&typed).min_score, score(0.8), "the number, without scripts");
        let both = [("gap", "3"), ("gap_at", "3"), ("gap_was", "0")];
        assert_eq!(sliders(&both).min_gap, Some(0.03), "scripts keep both alike");
        assert_eq!(sliders(&[("rank", "2")]).max_rank, Some(2), "a link names numbers alone");
    }

    #[test]
    fn the_ends_of_the_sliders_and_nonsense_leave_the_gates_as_they_were() {
        let ends = [("score", "50"), ("rank", "20"), ("gap", "0")];
        assert_eq!(sliders(&ends), TighterGates::default());
        let nonsense = [("score", "NaN"), ("rank", "-3"), ("gap", "<script>"), ("score_at", "inf")];
        assert_eq!(sliders(&nonsense), TighterGates::default());
        let far = sliders(&[("score", "700"), ("gap", "700")]);
        assert_eq!((far.min_score, far.min_gap), (score(1.0), Some(1.0)));
    }

    #[test]
    fn the_command_says_what_the_page_says() {
        let repo = "octo/cat".parse().expect("a name");
        let gates = TighterGates { max_rank: Some(1), min_score: score(0.9), min_gap: Some(0.03) };
        assert_eq!(
            command(&repo, 3, &gates),
            "canonry report-audit 3 --repo octo/cat --min-score 0.9 --max-rank 1 --min-gap 0.03"
        );
        assert_eq!(command(&repo, 3, &TighterGates::default()), "canonry report-audit 3 --repo octo/cat");
    }
}
