//! Tests of learned thresholds: the law over random histories, and the direction of each rule.

use std::collections::BTreeMap;

use canonry_domain::{
    Component, CountedLessons, CurrentThreshold, ItemNumber, LearningEntry, Lesson, MissingCondition, Prediction,
    PredictionTruth, Probability, RepoName, Similarity, Threshold, ThresholdReason, ThresholdRule, ThresholdSettings,
    ThresholdSource, ThresholdState, Thresholds, learn_from_counts, learn_thresholds, threshold_adjustments,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The number of histories on which the law is checked: 100,000 in a soak, otherwise proptest's own setting.
fn histories() -> ProptestConfig {
    let usual = ProptestConfig::default();
    let soaking = std::env::var_os("CANONRY_SOAK").is_some_and(|value| !value.is_empty());
    if soaking { ProptestConfig { cases: usual.cases.max(100_000), ..usual } } else { usual }
}

fn prediction(score: f64) -> Prediction {
    let target = ItemNumber::new(7).expect("positive");
    Prediction { target, score: Similarity::new(score).expect("in range") }
}

fn entry(prediction: Option<Prediction>, truth: PredictionTruth) -> LearningEntry {
    LearningEntry { lesson: Lesson::new(prediction, truth), component: None }
}

fn right(score: f64) -> LearningEntry {
    entry(Some(prediction(score)), PredictionTruth::Duplicate)
}

fn wrong(score: f64) -> LearningEntry {
    entry(Some(prediction(score)), PredictionTruth::NotDuplicate)
}

fn times(count: usize, entry: &LearningEntry) -> Vec<LearningEntry> {
    vec![entry.clone(); count]
}

fn component(name: &str) -> Component {
    Component::of_labels([format!("area/{name}").as_str()]).expect("a component's label")
}

fn within(name: &str, mut entries: Vec<LearningEntry>) -> Vec<LearningEntry> {
    for entry in &mut entries {
        entry.component = Some(component(name));
    }
    entries
}

fn settings(rule: ThresholdRule) -> ThresholdSettings {
    ThresholdSettings { rule, ..ThresholdSettings::default() }
}

fn learned(log: &[LearningEntry]) -> ThresholdState {
    learn_thresholds(&ThresholdSettings::default(), log).repository
}

fn points(state: &ThresholdState) -> Option<u8> {
    state.current.threshold().map(Threshold::get)
}

/// Histories of various repositories: the share of right predictions rises from one share at 50 points to another at
/// 100, so that many histories meet each condition of the rule.
fn history() -> impl Strategy<Value = Vec<LearningEntry>> {
    let shares = prop_oneof![
        (0.0..1.0_f64, 0.0..1.0_f64),
        (0.85..1.0_f64, 0.9..1.0_f64),
        (0.0..0.3_f64, 0.8..1.0_f64),
        (0.0..0.3_f64, 0.0..0.5_f64),
    ];
    let rows = vec((4_000..=10_000_u16, 0.0..1.0_f64, 0..10_u8, option::weighted(0.5, select(vec!["a", "b"]))), 0..220);
    (shares, rows).prop_map(|((low, high), rows)| {
        let row = |(score, chance, sort, name): (u16, f64, u8, Option<&str>)| {
            let score = f64::from(score) / 10_000.0;
            let share = low + (high - low) * ((score - 0.5) / 0.5).max(0.0);
            let predicted = Some(prediction(score));
            let lesson = match sort {
                0 => Lesson::new(None, PredictionTruth::NotDuplicate),
                1 => Lesson::new(None, PredictionTruth::Duplicate),
                2 => Lesson::new(predicted, PredictionTruth::Unknown),
                _ if chance < share => Lesson::new(predicted, PredictionTruth::Duplicate),
                3 => Lesson::new(predicted, PredictionTruth::DuplicateOfAnother),
                _ => Lesson::new(predicted, PredictionTruth::NotDuplicate),
            };
            LearningEntry { lesson, component: name.map(component) }
        };
        rows.into_iter().map(row).collect()
    })
}

fn any_settings(rule: impl Strategy<Value = ThresholdRule>) -> impl Strategy<Value = ThresholdSettings> {
    let configured = prop_oneof![Just(85_u8), 50..=95_u8];
    let wanted = prop_oneof![Just(0.8), 0.5..0.99_f64];
    (rule, configured, wanted).prop_map(|(rule, configured, wanted)| ThresholdSettings {
        rule,
        configured: Threshold::new(configured).expect("in bounds"),
        wanted: Probability::new(wanted).expect("in range"),
    })
}

fn precision_target() -> impl Strategy<Value = ThresholdSettings> {
    any_settings(Just(ThresholdRule::PrecisionTarget))
}

fn any_rule() -> impl Strategy<Value = ThresholdSettings> {
    any_settings(select(ThresholdRule::ALL))
}

/// The thresholds before and after a log grew, for the repository and for each component that is in both.
fn buckets(before: &Thresholds, after: &Thresholds) -> Vec<(CurrentThreshold, CurrentThreshold)> {
    let shared = before.components.iter().filter_map(|(name, state)| Some((state, after.components.get(name)?)));
    std::iter::once((&before.repository, &after.repository))
        .chain(shared)
        .map(|(before, after)| (before.current, after.current))
        .collect()
}

fn with(log: &[LearningEntry], more: LearningEntry) -> Vec<LearningEntry> {
    log.iter().cloned().chain([more]).collect()
}

proptest! {
    #![proptest_config(histories())]

    #[test]
    fn the_law(
        settings in precision_target(),
        log in history(),
        score in 4_000..=10_000_u16,
        name in option::of(select(vec!["a", "b"])),
    ) {
        let before = learn_thresholds(&settings, &log);
        let after = |prediction, truth| {
            let more = LearningEntry { lesson: Lesson::new(prediction, truth), component: name.map(component) };
            learn_thresholds(&settings, &with(&log, more))
        };
        let predicted = Some(prediction(f64::from(score) / 10_000.0));
        for truth in [PredictionTruth::NotDuplicate, PredictionTruth::DuplicateOfAnother] {
            for (before, after) in buckets(&before, &after(predicted, truth)) {
                prop_assert!(after >= before, "wrong: {before} to {after}");
            }
        }
        for (before, after) in buckets(&before, &after(predicted, PredictionTruth::Duplicate)) {
            prop_assert!(after <= before, "right: {before} to {after}");
        }
        for truth in [PredictionTruth::Duplicate, PredictionTruth::NotDuplicate] {
            for (before, after) in buckets(&before, &after(None, truth)) {
                prop_assert_eq!(after, before, "nothing was predicted");
            }
        }
        prop_assert_eq!(&after(predicted, PredictionTruth::Unknown), &before);
        prop_assert_eq!(&after(None, PredictionTruth::Unknown), &before);
    }
}

proptest! {
    #[test]
    fn a_correction_keeps_the_law(settings in precision_target(), log in history(), at in proptest::arbitrary::any::<Index>()) {
        let right_ones: Vec<usize> =
            (0..log.len()).filter(|at| matches!(log[*at].lesson, Lesson::Confirmed { .. })).collect();
        if !right_ones.is_empty() {
            let at = right_ones[at.index(right_ones.len())];
            let Lesson::Confirmed { prediction } = log[at].lesson else { unreachable!("filtered above") };
            let mut corrected = log.clone();
            corrected[at].lesson = Lesson::FalsePositive { prediction };
            let (before, after) = (learn_thresholds(&settings, &log), learn_thresholds(&settings, &corrected));
            for (before, after) in buckets(&before, &after) {
                prop_assert!(after >= before, "{before} to {after}");
            }
        }
    }

    #[test]
    fn the_order_of_the_log_does_not_matter(
        settings in any_rule(),
        (log, shuffled) in history().prop_flat_map(|log| (Just(log.clone()), Just(log).prop_shuffle())),
    ) {
        prop_assert_eq!(learn_thresholds(&settings, &log), learn_thresholds(&settings, &shuffled));
    }

    /// The counts of the lessons in a log are enough to compute its thresholds.
    #[test]
    fn counts_are_enough(settings in any_rule(), log in history()) {
        let mut counted: Vec<CountedLessons> = Vec::new();
        for one in log.iter().map(CountedLessons::from) {
            let is_same = |other: &&mut CountedLessons| (other.kind, other.level, &other.component) == (one.kind, one.level, &one.component);
            match counted.iter_mut().find(is_same) {
                Some(same) => same.times += 1,
                None => counted.push(one),
            }
        }
        prop_assert_eq!(learn_from_counts(&settings, counted), learn_thresholds(&settings, &log));
    }

    #[test]
    fn a_state_survives_its_json(settings in any_rule(), log in history()) {
        let thresholds = learn_thresholds(&settings, &log);
        let json = serde_json::to_string(&thresholds).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Thresholds>(&json).expect("what was written"), thresholds);
    }

    #[test]
    fn the_rule_is_what_its_description_says(settings in precision_target(), log in history()) {
        let thresholds = learn_thresholds(&settings, &log);
        prop_assert_eq!(thresholds.repository.current, by_the_letter(&settings, log.iter()));
        for (name, state) in &thresholds.components {
            let of_component = log.iter().filter(|entry| entry.component.as_ref() == Some(name));
            prop_assert_eq!(state.current, by_the_letter(&settings, of_component));
        }
    }

    #[test]
    fn counts_add_up(settings in any_rule(), log in history()) {
        let state = learn_thresholds(&settings, &log).repository;
        let counts = state.counts;
        let other_target = log.iter().filter(|entry| matches!(entry.lesson, Lesson::Missed { instead: Some(_) })).count();
        let unknown = log.iter().filter(|entry| entry.lesson == Lesson::Unknown).count();
        let sum = counts.confirmed + counts.false_positives + counts.missed + counts.true_negatives;
        prop_assert_eq!(counts.total as usize, log.len() - unknown);
        prop_assert_eq!(sum, counts.total + other_target as u64);
        if settings.rule != ThresholdRule::PrecisionTarget {
            prop_assert_eq!(state.alpha, 2.0 + counts.confirmed as f64);
            prop_assert_eq!(state.beta, 8.0 + counts.false_positives as f64);
            let waits = counts.total < 20 || state.alpha + state.beta <= 30.0;
            prop_assert_eq!(state.source == ThresholdSource::Configured, waits);
        }
    }

    /// The direction of the seed's formula: past its gates every wrong prediction makes it noisier, every right one
    /// quieter.
    #[test]
    fn beta_mean_goes_the_wrong_way(log in history(), score in 0.0..=1.0_f64) {
        let after = |log: &[LearningEntry]| learn_thresholds(&settings(ThresholdRule::BetaMean), log).repository;
        let before = after(&log);
        if before.source == ThresholdSource::Learned {
            prop_assert!(after(&with(&log, wrong(score))).current <= before.current);
            prop_assert!(after(&with(&log, right(score))).current >= before.current);
        }
    }

    #[test]
    fn beta_complement_goes_the_right_way(log in history(), score in 0.0..=1.0_f64) {
        let after = |log: &[LearningEntry]| learn_thresholds(&settings(ThresholdRule::BetaComplement), log).repository;
        let before = after(&log);
        if before.source == ThresholdSource::Learned {
            prop_assert!(after(&with(&log, wrong(score))).current >= before.current);
            prop_assert!(after(&with(&log, right(score))).current <= before.current);
        }
    }
}

/// The rule written again as it is described, independent of the code: every level is tried, and tails are sums of
/// coin tosses.
fn by_the_letter<'a>(settings: &ThresholdSettings, log: impl Iterator<Item = &'a LearningEntry>) -> CurrentThreshold {
    let (mut rights, mut wrongs) = (Vec::new(), Vec::new());
    for entry in log {
        match entry.lesson {
            Lesson::Confirmed { prediction } => rights.push(100.0 * prediction.score.get() + 1e-9),
            Lesson::FalsePositive { prediction } | Lesson::Missed { instead: Some(prediction) } => {
                wrongs.push(100.0 * prediction.score.get() + 1e-9);
            }
            Lesson::Missed { instead: None } | Lesson::TrueNegative | Lesson::Unknown => {}
        }
    }
    let count = |scores: &[f64], from: u8, to: u8| {
        scores.iter().filter(|score| **score >= f64::from(from) && **score < f64::from(to)).count()
    };
    let top = 101;
    let sure = |share: f64, from: u8, to: u8| at_least(share, count(&rights, from, to), count(&wrongs, from, to));
    let (configured, wanted) = (settings.configured.get(), settings.wanted.get());
    let lowered = (50..configured).find(|&level| {
        (level..=configured).all(|between| sure(wanted, between, top) >= 0.9)
            && count(&rights, level, top) >= 20
            && count(&rights, level, level + 5) >= 5
            && sure(0.6, level, configured) >= 0.8
    });
    let raises = count(&wrongs, configured, top) >= 3 && 1.0 - sure(wanted, configured, top) >= 0.9;
    let points = match lowered {
        Some(level) => Some(level),
        None if raises => (configured + 1..=95).find(|&level| sure(wanted, level, top) >= 0.5 - 1e-9),
        None => Some(configured),
    };
    CurrentThreshold::from(points.map(|points| Threshold::new(points).expect("in bounds")))
}

/// P(Beta(1 + right, 1 + wrong) ≥ share): at most `right` of `right + wrong + 1` coins fall heads.
fn at_least(share: f64, right: usize, wrong: usize) -> f64 {
    let coins = right + wrong + 1;
    let mut log_chance = coins as f64 * (1.0 - share).ln();
    let mut sum = 0.0;
    for heads in 0..=right {
        sum += log_chance.exp();
        log_chance += ((coins - heads) as f64 / (heads + 1) as f64 * share / (1.0 - share)).ln();
    }
    sum
}

/// The law says little about histories that decide nothing: among the checked histories, each condition decides many.
#[test]
fn random_histories_meet_every_condition() {
    let mut runner = TestRunner::deterministic();
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..1_500 {
        let (settings, log) = (precision_target(), history()).new_tree(&mut runner).expect("a history").current();
        let state = learn_thresholds(&settings, &log).repository;
        let decided = serde_json::to_value(&state.reason).expect("plain data");
        let decided_by = decided["decided_by"].as_str().expect("a word");
        *met.entry(decided_by.to_owned()).or_default() += 1;
        if let ThresholdReason::NoLower { next: Some(next), .. } = state.reason {
            let lacks = match next.lacking {
                MissingCondition::Sureness => "lacks sureness",
                MissingCondition::Right { .. } => "lacks right ones",
                MissingCondition::RightNear { .. } => "lacks right ones near",
                MissingCondition::Added { .. } => "lacks in what is added",
            };
            *met.entry(lacks.to_owned()).or_default() += 1;
        }
    }
    for (condition, least) in [
        ("not_sure", 100),
        ("too_few_wrong", 5),
        ("no_lower", 50),
        ("lowered", 100),
        ("raised", 50),
        ("no_level", 100),
        ("lacks sureness", 10),
        ("lacks right ones", 5),
        ("lacks right ones near", 3),
        ("lacks in what is added", 3),
    ] {
        assert!(met.get(condition).is_some_and(|count| *count >= least), "{condition} of {met:?}");
    }
}

#[test]
fn each_condition_and_its_sentence() {
    let lines = |logs: &[Vec<LearningEntry>]| -> String {
        let line = |log: &Vec<LearningEntry>| {
            let state = learned(log);
            format!("{} {}: {}\n", state.current, state.source, state.reason)
        };
        logs.iter().map(line).collect()
    };
    let good = times(20, &right(0.9));
    let logs = [
        vec![],
        vec![right(0.9), wrong(0.9)],
        vec![wrong(0.9), wrong(0.99)],
        times(3, &wrong(0.9)),
        [times(8, &wrong(0.86)), times(9, &right(0.93)), times(1, &wrong(0.93))].concat(),
        good.clone(),
        times(16, &right(0.9)),
        [good.clone(), times(4, &right(0.8))].concat(),
        [good.clone(), times(5, &right(0.8))].concat(),
        [times(200, &right(0.9)), times(6, &right(0.8)), times(6, &wrong(0.8))].concat(),
        [good, times(5, &right(0.8)), times(5, &wrong(0.84))].concat(),
    ];
    insta::assert_snapshot!(lines(&logs), @"
    85 configured: no prediction at 85 % or above has an outcome yet
    85 configured: 1 of 2 predictions at 85 % or above were right (10 % probability that at least 80 % are): too few outcomes to move the threshold
    85 configured: 0 of 2 predictions at 85 % or above were right (1 % probability that at least 80 % are): raising the threshold needs 3 wrong predictions
    silent learned: 0 of 3 predictions at 85 % or above were right (0 % probability that at least 80 % are), and no higher level is likely to be better
    87 learned: raised from 85 %: 9 of 18 predictions at 85 % or above were right (0 % probability that at least 80 % are); 9 of 10 predictions at 87 % or above were right (68 % probability that at least 80 % are)
    85 configured: 20 of 20 predictions at 85 % or above were right (99 % probability that at least 80 % are); not lowered to 84 %: only 0 right predictions from 84 % to below 89 %; 5 are needed
    85 configured: 16 of 16 predictions at 85 % or above were right (98 % probability that at least 80 % are); not lowered to 84 %: only 16 right predictions at 84 % or above; 20 are needed
    85 configured: 20 of 20 predictions at 85 % or above were right (99 % probability that at least 80 % are); not lowered to 80 %: only 4 right predictions from 80 % to below 85 %; 5 are needed
    76 learned: lowered from 85 %: 25 of 25 predictions at 76 % or above were right (over 99 % probability that at least 80 % are)
    85 configured: 200 of 200 predictions at 85 % or above were right (100 % probability that at least 80 % are); not lowered to 80 %: 6 of 12 predictions from 80 % to below 85 % were right; it must be likely that 60 % are
    85 configured: 20 of 20 predictions at 85 % or above were right (99 % probability that at least 80 % are); not lowered to 84 %: 20 of 25 predictions at 84 % or above were right (42 % probability that at least 80 % are)
    ");
    let lowest = ThresholdSettings { configured: Threshold::LOWEST, ..ThresholdSettings::default() };
    let state = learn_thresholds(&lowest, &times(30, &right(0.6))).repository;
    insta::assert_snapshot!(state.reason, @"30 of 30 predictions at 50 % or above were right (over 99 % probability that at least 80 % are): the threshold is at its lowest level");
}

#[test]
fn where_each_rule_goes() {
    let bad = [times(6, &right(0.9)), times(54, &wrong(0.9))].concat();
    let good = [times(190, &right(0.9)), times(10, &wrong(0.7)), times(60, &right(0.75))].concat();
    let goes = |rule, log: &[LearningEntry]| points(&learn_thresholds(&settings(rule), log).repository);
    // Wrong nine times of ten: silent; the noisiest of all; quiet.
    assert_eq!(goes(ThresholdRule::PrecisionTarget, &bad), None);
    assert_eq!(goes(ThresholdRule::BetaMean, &bad), Some(50));
    assert_eq!(goes(ThresholdRule::BetaComplement, &bad), Some(89));
    // Nearly always right: as low as there is evidence; nearly silent; the noisiest of all.
    assert_eq!(goes(ThresholdRule::PrecisionTarget, &good), Some(71));
    assert_eq!(goes(ThresholdRule::BetaMean, &good), Some(93));
    assert_eq!(goes(ThresholdRule::BetaComplement, &good), Some(50));
}

#[test]
fn the_rules_of_means_wait_for_21_predictions() {
    for rule in [ThresholdRule::BetaMean, ThresholdRule::BetaComplement] {
        let log = [times(20, &right(0.9)), times(50, &entry(None, PredictionTruth::NotDuplicate))].concat();
        let waiting = learn_thresholds(&settings(rule), &log).repository;
        assert_eq!((points(&waiting), waiting.source), (Some(85), ThresholdSource::Configured));
        assert_eq!((waiting.alpha, waiting.beta, waiting.counts.total), (22.0, 8.0, 70));
        assert_eq!(waiting.reason.to_string(), "only 20 predictions have an outcome; 21 are needed");
        let learned = learn_thresholds(&settings(rule), &with(&log, right(0.9))).repository;
        assert_eq!(learned.source, ThresholdSource::Learned);
        assert_eq!(learned.reason.to_string(), "the estimated share of right predictions is 74 %");
    }
}

/// The gate is the only place where `beta-complement` breaks the law: before it the configured value is used, whatever
/// the mean.
#[test]
fn beta_complement_jumps_at_its_gate() {
    let log = times(20, &wrong(0.9));
    let low = ThresholdSettings {
        rule: ThresholdRule::BetaComplement,
        configured: Threshold::new(60).expect("in bounds"),
        ..ThresholdSettings::default()
    };
    assert_eq!(points(&learn_thresholds(&low, &log).repository), Some(60));
    assert_eq!(points(&learn_thresholds(&low, &with(&log, right(0.9))).repository), Some(90));
}

#[test]
fn a_component_has_its_own_threshold_once_both_have_enough_outcomes() {
    let own = |log: &[LearningEntry]| learn_thresholds(&ThresholdSettings::default(), log);
    let unknown = within("auth", times(50, &entry(Some(prediction(0.9)), PredictionTruth::Unknown)));
    let bad = within("auth", times(20, &wrong(0.9)));
    let others = [within("api", times(19, &right(0.9))), times(61, &right(0.9))].concat();
    let enough = [bad.clone(), others.clone(), unknown].concat();
    let thresholds = own(&enough);
    assert_eq!(thresholds.components.keys().map(Component::as_str).collect::<Vec<_>>(), ["auth"]);
    assert_eq!(thresholds.governing(Some(&component("auth"))).current, CurrentThreshold::Silent);
    for fallen_back in [None, Some(component("api")), Some(component("never-seen"))] {
        assert_eq!(thresholds.governing(fallen_back.as_ref()), &thresholds.repository);
    }
    // With one outcome fewer anywhere, all components have the repository's threshold.
    assert_eq!(own(&enough[1..]).components.len(), 0);
    assert_eq!(own(&[bad, others[1..].to_vec()].concat()).components.len(), 0);
}

#[test]
fn moves_of_more_than_five_points_are_told() {
    let thresholds = |log: &[LearningEntry]| learn_thresholds(&ThresholdSettings::default(), log);
    let repo: RepoName = "o/n".parse().expect("a name");
    let moves = |before: &[LearningEntry], after: &[LearningEntry]| {
        serde_json::to_string(&threshold_adjustments(&repo, &thresholds(before), &thresholds(after)))
            .expect("plain data")
    };
    let good = times(30, &right(0.95));
    let lower = |score| [good.clone(), times(5, &right(score))].concat();
    assert_eq!(points(&learned(&lower(0.845))), Some(80));
    assert_eq!(moves(&good, &lower(0.845)), "[]");
    assert_eq!(points(&learned(&lower(0.835))), Some(79));
    assert_eq!(
        moves(&good, &lower(0.835)),
        r#"[{"repo":"o/n","component":null,"previous_threshold":85,"new_threshold":79,"alpha":36.0,"beta":1.0,"sample_count":35}]"#
    );
    let bad = times(9, &wrong(0.99));
    assert_eq!(
        moves(&[], &bad),
        r#"[{"repo":"o/n","component":null,"previous_threshold":85,"new_threshold":null,"alpha":1.0,"beta":10.0,"sample_count":9}]"#
    );
    assert_eq!(moves(&bad, &bad), "[]");
    // A component's first own threshold is compared with the one that applied to its items until then.
    let before = [within("auth", times(19, &wrong(0.9))), times(200, &right(0.9))].concat();
    let after = [before.clone(), within("auth", vec![wrong(0.9)])].concat();
    assert_eq!(
        moves(&before, &after),
        r#"[{"repo":"o/n","component":"auth","previous_threshold":85,"new_threshold":null,"alpha":1.0,"beta":21.0,"sample_count":20}]"#
    );
    assert_eq!(
        moves(&after, &before),
        r#"[{"repo":"o/n","component":"auth","previous_threshold":null,"new_threshold":85,"alpha":201.0,"beta":20.0,"sample_count":219}]"#
    );
}

#[test]
fn what_a_duplicate_of_something_else_teaches() {
    let state = learned(&times(3, &entry(Some(prediction(0.9)), PredictionTruth::DuplicateOfAnother)));
    assert_eq!(state.current, CurrentThreshold::Silent);
    let counts = state.counts;
    assert_eq!((counts.false_positives, counts.missed, counts.total), (3, 3, 3));
    assert!(state.variance() < learned(&[]).variance());
}
