//! Adjudication: samples verdicts for people to check, and summarises their answers.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::learning::prediction::points;
use crate::learning::reliability::{level_of, top_of};
use crate::{ItemNumber, ItemType, Share, Similarity, Verdict, text_enum};

/// The width of one level of scores in points, as in the reliability table.
const LEVEL_WIDTH: u8 = 5;

text_enum! {
    /// A person's answer about the two items of a verdict.
    pub enum AdjudicatedAnswer: "an answer to a sampled verdict" {
        Same = "same",
        Different = "different",
        Unsure = "unsure",
    }
}

impl AdjudicatedAnswer {
    /// Whether the answer confirms a verdict; `None` if the person is unsure.
    pub const fn confirms(self, verdict: Verdict) -> Option<bool> {
        let called_same = !matches!(verdict, Verdict::NotDuplicate);
        match self {
            Self::Same => Some(called_same),
            Self::Different => Some(!called_same),
            Self::Unsure => None,
        }
    }
}

/// A verdict about two items that a person can check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdjudicationCase {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub verdict: Verdict,
    /// The other item: the target, or the nearest item if the verdict is "not a duplicate".
    pub target: ItemNumber,
    /// The similarity of the two; `None` if it was not recorded.
    pub score: Option<Similarity>,
}

impl AdjudicationCase {
    /// The lowest points of the level that contains the score.
    fn level(&self) -> Option<u8> {
        self.score.map(|score| level_of(points(score), LEVEL_WIDTH))
    }
}

/// The cases that a person is asked about, as indexes into `cases`, in the order of the questions.
///
/// Each verdict and level contributes one case in turn until there are enough, so that rare ones are checked as often
/// as common ones. The sample and its order depend only on the seed and the cases: a larger sample contains the
/// smaller one, and neither order nor position reveals the verdict.
pub fn adjudication_sample(cases: &[AdjudicationCase], seed: i64, size: usize) -> Vec<usize> {
    let mut strata: BTreeMap<(&str, Option<u8>), Vec<SampledCase>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate() {
        strata.entry((case.verdict.as_str(), case.level())).or_default().push((place(seed, case), index));
    }
    for stratum in strata.values_mut() {
        stratum.sort_unstable();
    }
    let longest = strata.values().map(Vec::len).max().unwrap_or(0);
    let mut taken: Vec<SampledCase> = (0..longest)
        .flat_map(|round| strata.values().filter_map(move |stratum| stratum.get(round).copied()))
        .take(size)
        .collect();
    taken.sort_unstable();
    taken.into_iter().map(|(_, index)| index).collect()
}

/// The order in which waiting cases are most worth reading, as indexes into `waiting`, each with whether people linked
/// the two.
///
/// What was said and nobody linked comes first: only reading tells whether it is right. Then what was not said, then what
/// is linked. Kinds of verdicts alternate by how many wait for each that was read, and within a kind the order is random,
/// so that those that were read stand for the others.
pub fn reading_order(waiting: &[(AdjudicationCase, bool)], answered: &[CountedAnswers], seed: i64) -> Vec<usize> {
    let mut kinds: BTreeMap<(u8, &str), Vec<SampledCase>> = BTreeMap::new();
    for (index, (case, is_linked)) in waiting.iter().enumerate() {
        let class = match (is_linked, case.verdict) {
            (true, _) => 2,
            (false, Verdict::NotDuplicate) => 1,
            (false, Verdict::Duplicate | Verdict::MaybeDuplicate) => 0,
        };
        kinds.entry((class, case.verdict.as_str())).or_default().push((place(seed, case), index));
    }
    let mut order = Vec::with_capacity(waiting.len());
    for class in 0..=2 {
        let mut queues: Vec<(u64, Vec<SampledCase>)> = Vec::new();
        for ((_, verdict), cases) in kinds.iter_mut().filter(|((of, _), _)| *of == class) {
            cases.sort_unstable_by(|one, other| other.cmp(one));
            let read = answered.iter().filter(|one| one.verdict.as_str() == *verdict && one.word.is_some());
            queues.push((read.map(|one| one.times).sum(), std::mem::take(cases)));
        }
        // The queue with the most cases for each that was read; the first of equal ones.
        let fullest = |queues: &[(u64, Vec<SampledCase>)]| {
            let left = |at: &usize| queues[*at].1.len() as u128 * 1_000_000 / u128::from(queues[*at].0 + 1);
            (0..queues.len()).filter(|at| !queues[*at].1.is_empty()).rev().max_by_key(left)
        };
        while let Some(at) = fullest(&queues) {
            let (read, cases) = &mut queues[at];
            *read += 1;
            order.extend(cases.pop().map(|(_, index)| index));
        }
    }
    order
}

/// The hash of a case, and its index among all cases.
type SampledCase = ([u8; 32], usize);

fn place(seed: i64, case: &AdjudicationCase) -> [u8; 32] {
    Sha256::digest(format!("{seed} {} {} {}", case.item_type, case.number, case.target)).into()
}

/// The number of sampled verdicts of one kind and score with the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedAnswers {
    pub verdict: Verdict,
    pub score: Option<Similarity>,
    /// `None` if people have not answered yet.
    pub word: Option<AdjudicatedAnswer>,
    pub times: u64,
}

/// The summary of people's answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AdjudicationSummary {
    pub answered: u64,
    pub waiting: u64,
    pub unsure: u64,
    /// One entry for each kind of verdict that has an answer: duplicate, maybe, not a duplicate.
    pub verdicts: Vec<VerdictShare>,
}

/// How often people agree with one verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictShare {
    pub verdict: Verdict,
    #[serde(flatten)]
    pub share: Share,
    pub unsure: u64,
    /// The same by score level, lowest first; cases without a score are in no level.
    pub levels: Vec<VerdictLevel>,
}

/// How often people agree with a verdict at one score level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VerdictLevel {
    pub from: u8,
    pub to: u8,
    #[serde(flatten)]
    pub share: Share,
}

impl AdjudicationSummary {
    pub fn of(answers: &[CountedAnswers]) -> Self {
        let waiting = answers.iter().filter(|one| one.word.is_none()).map(|one| one.times).sum();
        let mut people = Self { waiting, ..Self::default() };
        for &verdict in Verdict::ALL {
            let (mut share, mut unsure) = (Share::default(), 0);
            let mut levels: BTreeMap<u8, Share> = BTreeMap::new();
            for one in answers.iter().filter(|one| one.verdict == verdict) {
                let Some(word) = one.word else { continue };
                people.answered += one.times;
                let Some(confirms) = word.confirms(verdict) else {
                    unsure += one.times;
                    continue;
                };
                let (right, wrong) = if confirms { (one.times, 0) } else { (0, one.times) };
                share += Share { right, wrong };
                if let Some(score) = one.score {
                    *levels.entry(level_of(points(score), LEVEL_WIDTH)).or_default() += Share { right, wrong };
                }
            }
            people.unsure += unsure;
            if share.all() + unsure > 0 {
                let levels = levels.into_iter();
                let levels =
                    levels.map(|(from, share)| VerdictLevel { from, to: top_of(from, LEVEL_WIDTH), share }).collect();
                people.verdicts.push(VerdictShare { verdict, share, unsure, levels });
            }
        }
        people
    }

    /// How often people agree with the verdicts "duplicate" and "maybe".
    pub fn precision(&self) -> Share {
        let mut precision = Share::default();
        for verdict in self.verdicts.iter().filter(|one| one.verdict != Verdict::NotDuplicate) {
            precision += verdict.share;
        }
        precision
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
    use proptest::sample::select;
    use serde_json::json;

    use super::{
        AdjudicatedAnswer, AdjudicationCase, AdjudicationSummary, CountedAnswers, adjudication_sample, reading_order,
    };
    use crate::{ItemNumber, ItemType, Share, Similarity, Verdict};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn score(value: f64) -> Option<Similarity> {
        Some(Similarity::new(value).expect("in range"))
    }

    fn case(of: i64, verdict: Verdict, value: f64) -> AdjudicationCase {
        AdjudicationCase {
            item_type: ItemType::Issue,
            number: number(of),
            verdict,
            target: number(1),
            score: score(value),
        }
    }

    #[test]
    fn rare_verdicts_and_levels_are_asked_about_as_often_as_usual_ones() {
        let mut cases: Vec<AdjudicationCase> = (2..=101).map(|of| case(of, Verdict::NotDuplicate, 0.7)).collect();
        cases.extend((102..=104).map(|of| case(of, Verdict::Duplicate, 0.93)));
        cases.extend((105..=106).map(|of| case(of, Verdict::Duplicate, 0.97)));
        cases.push(case(107, Verdict::MaybeDuplicate, 0.88));
        let taken = |size| -> Vec<AdjudicationCase> {
            adjudication_sample(&cases, 42, size).into_iter().map(|index| cases[index]).collect()
        };
        let four: BTreeSet<_> = taken(4).into_iter().map(|case| (case.verdict.as_str(), case.level())).collect();
        assert_eq!(four.len(), 4, "one of each verdict and level: {four:?}");
        let twenty = taken(20);
        assert_eq!(twenty.iter().filter(|case| case.verdict == Verdict::Duplicate).count(), 5);
        assert_eq!(twenty.iter().filter(|case| case.verdict == Verdict::MaybeDuplicate).count(), 1);
        // The order does not reveal the verdict.
        let verdicts: Vec<_> = twenty.iter().map(|case| case.verdict).collect();
        assert!(!verdicts.is_sorted_by_key(|verdict| verdict.as_str()), "{verdicts:?}");
        assert!(adjudication_sample(&[], 42, 20).is_empty());
        assert_ne!(adjudication_sample(&cases, 43, 20), adjudication_sample(&cases, 42, 20));
    }

    #[test]
    fn what_an_answer_says_about_a_verdict() {
        use AdjudicatedAnswer::{Different, Same, Unsure};
        for (verdict, expected) in [
            (Verdict::Duplicate, [Some(true), Some(false), None]),
            (Verdict::MaybeDuplicate, [Some(true), Some(false), None]),
            (Verdict::NotDuplicate, [Some(false), Some(true), None]),
        ] {
            assert_eq!([Same, Different, Unsure].map(|word| word.confirms(verdict)), expected, "{verdict}");
        }
    }

    #[test]
    fn answers_add_up_by_verdict_and_level() {
        use AdjudicatedAnswer::{Different, Same, Unsure};
        let counted = |verdict, value: f64, word, times| CountedAnswers { verdict, score: score(value), word, times };
        let people = AdjudicationSummary::of(&[
            counted(Verdict::Duplicate, 0.91, Some(Same), 3),
            counted(Verdict::Duplicate, 0.94, Some(Different), 1),
            counted(Verdict::Duplicate, 1.0, Some(Same), 2),
            counted(Verdict::Duplicate, 0.95, Some(Unsure), 1),
            counted(Verdict::NotDuplicate, 0.62, Some(Different), 4),
            counted(Verdict::NotDuplicate, 0.62, Some(Same), 1),
            counted(Verdict::MaybeDuplicate, 0.9, None, 5),
            CountedAnswers { verdict: Verdict::Duplicate, score: None, word: Some(Same), times: 1 },
        ]);
        assert_eq!((people.answered, people.waiting, people.unsure), (13, 5, 1));
        assert_eq!(people.precision(), Share { right: 6, wrong: 1 });
        let json = serde_json::to_value(&people).expect("serialises");
        let duplicate = &json["verdicts"][0];
        assert_eq!(
            (&duplicate["verdict"], &duplicate["confirmed"], &duplicate["refuted"]),
            (&json!("duplicate"), &json!(6), &json!(1))
        );
        assert_eq!(duplicate["precision"], json!(0.8571));
        assert_eq!(duplicate["levels"][0]["from"], json!(90));
        assert_eq!(
            duplicate["levels"][1],
            json!({"from": 95, "to": 100, "confirmed": 2, "refuted": 0, "precision": 1.0, "low": 0.3684, "high": 1.0})
        );
        assert_eq!(json["verdicts"][1]["verdict"], json!("not_duplicate"));
        assert_eq!(json["verdicts"][1]["precision"], json!(0.8));
        assert_eq!(AdjudicationSummary::of(&[]), AdjudicationSummary::default());
    }

    #[test]
    fn what_was_said_and_nobody_linked_is_read_first() {
        let mut waiting: Vec<(AdjudicationCase, bool)> =
            (2..=9).map(|of| (case(of, Verdict::MaybeDuplicate, 0.9), of % 2 == 0)).collect();
        waiting.push((case(10, Verdict::NotDuplicate, 0.7), false));
        waiting.push((case(11, Verdict::Duplicate, 0.97), false));
        let read: Vec<i64> =
            reading_order(&waiting, &[], 1).into_iter().map(|index| waiting[index].0.number.get()).collect();
        assert_eq!(read.len(), waiting.len());
        let class = |of: &i64| match *of {
            10 => 1,
            of if of < 10 && of % 2 == 0 => 2,
            _ => 0,
        };
        assert!(read.is_sorted_by_key(class), "{read:?}");
        assert!(read[..5].contains(&11), "{read:?}");
        // Of a kind that was read often enough, the other kind comes first.
        let often = CountedAnswers {
            verdict: Verdict::MaybeDuplicate,
            score: None,
            word: Some(AdjudicatedAnswer::Same),
            times: 40,
        };
        let first = reading_order(&waiting, &[often], 1)[0];
        assert_eq!(waiting[first].0.verdict, Verdict::Duplicate);
    }

    fn any_cases() -> impl Strategy<Value = Vec<AdjudicationCase>> {
        vec((select(Verdict::ALL), 0.5..=1.0_f64), 0..40)
            .prop_map(|drawn| (2..).zip(drawn).map(|(of, (verdict, value))| case(of, verdict, value)).collect())
    }

    proptest! {
        #[test]
        fn the_seed_and_the_cases_decide_and_a_larger_sample_holds_the_smaller(
            mut cases in any_cases(), seed in any::<i64>(), size in 0_usize..30,
        ) {
            let numbers = |cases: &[AdjudicationCase], size| -> Vec<i64> {
                adjudication_sample(cases, seed, size).into_iter().map(|index| cases[index].number.get()).collect()
            };
            let small = numbers(&cases, size);
            prop_assert_eq!(small.len(), size.min(cases.len()));
            let large = numbers(&cases, size + 5);
            prop_assert!(small.iter().all(|number| large.contains(number)));
            cases.reverse();
            prop_assert_eq!(numbers(&cases, size), small);
        }
    }
}
