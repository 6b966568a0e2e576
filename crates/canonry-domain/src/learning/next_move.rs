//! Computes how many outcomes would move a threshold.

use crate::{
    Component, CountedLessons, CurrentThreshold, LessonKind, ThresholdRule, ThresholdSettings, learn_from_counts,
};

/// A longer series of predictions is not a useful answer.
pub const MOST_IN_A_ROW: u64 = 500;

/// A series of predictions of one kind that would move a threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextMove {
    pub times: u64,
    /// The points of their scores, highest first; usually one level.
    pub levels: Vec<u8>,
    pub to: CurrentThreshold,
}

/// How many wrong predictions in a row, at the current threshold, would raise it; `None` if it is silent, if more than
/// [`MOST_IN_A_ROW`] are needed, or if the rule does not raise after wrong predictions.
pub fn next_raise(
    settings: &ThresholdSettings,
    lessons: &[CountedLessons],
    component: Option<&Component>,
) -> Option<NextMove> {
    let now = current(settings, lessons, component, []);
    let level = now.threshold()?.get();
    first_move(settings, lessons, component, (LessonKind::FalsePositive, &[level]), |then| then > now)
}

/// How many right predictions in a row would lower the threshold: just below the current one, else at it, else at
/// both, because the rule must be sure of the current level before it goes lower. `None` if it is already the lowest,
/// if more than [`MOST_IN_A_ROW`] are needed, or if the rule does not lower after right predictions.
pub fn next_lowering(
    settings: &ThresholdSettings,
    lessons: &[CountedLessons],
    component: Option<&Component>,
) -> Option<NextMove> {
    let now = current(settings, lessons, component, []);
    let here = now.threshold().unwrap_or(settings.configured).get();
    let tries: [&[u8]; 3] = [&[here - 1], &[here], &[here, here - 1]];
    tries
        .into_iter()
        .find_map(|levels| first_move(settings, lessons, component, (LessonKind::Confirmed, levels), |then| then < now))
}

/// The smallest number of lessons of a kind and of these levels that moves the threshold as wanted. By the law of the
/// rule more of them never move it back, so bisection finds it.
fn first_move(
    settings: &ThresholdSettings,
    lessons: &[CountedLessons],
    component: Option<&Component>,
    (kind, levels): (LessonKind, &[u8]),
    is_wanted: impl Fn(CurrentThreshold) -> bool,
) -> Option<NextMove> {
    if settings.rule != ThresholdRule::PrecisionTarget {
        return None;
    }
    let after = |times| {
        let more = |level: &u8| CountedLessons { kind, level: Some(*level), component: component.cloned(), times };
        current(settings, lessons, component, levels.iter().map(more))
    };
    if !is_wanted(after(MOST_IN_A_ROW)) {
        return None;
    }
    let (mut too_few, mut enough) = (0, MOST_IN_A_ROW);
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if is_wanted(after(middle)) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Some(NextMove { times: enough, levels: levels.to_vec(), to: after(enough) })
}

fn current(
    settings: &ThresholdSettings,
    lessons: &[CountedLessons],
    component: Option<&Component>,
    more: impl IntoIterator<Item = CountedLessons>,
) -> CurrentThreshold {
    learn_from_counts(settings, lessons.iter().cloned().chain(more)).governing(component).current
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{next_lowering, next_raise};
    use crate::{
        CountedLessons, CurrentThreshold, LessonKind, Threshold, ThresholdRule, ThresholdSettings, learn_from_counts,
    };

    fn counted(kind: LessonKind, level: u8, times: u64) -> CountedLessons {
        CountedLessons { kind, level: Some(level), component: None, times }
    }

    #[test]
    fn a_few_wrong_ones_raise_and_many_right_ones_lower() {
        let settings = ThresholdSettings::default();
        let raise = next_raise(&settings, &[], None).expect("wrong ones raise");
        assert_eq!((raise.times, raise.levels), (3, vec![85]), "it takes three");
        let lower = next_lowering(&settings, &[], None).expect("right ones lower");
        assert_eq!((lower.times, lower.levels), (10, vec![85, 84]), "twenty, ten of them where it stands");
        let sure = [counted(LessonKind::Confirmed, 90, 30)];
        let lower = next_lowering(&settings, &sure, None).expect("right ones lower");
        assert_eq!((lower.times, lower.levels), (5, vec![84]), "it is sure of where it stands");
        assert!(lower.to < CurrentThreshold::From(settings.configured));
        let bad = [counted(LessonKind::FalsePositive, 95, 90)];
        assert_eq!(next_raise(&settings, &bad, None), None, "it is silent already");
        let back = next_lowering(&settings, &bad, None).expect("right ones make it speak again");
        assert_eq!(back.levels, [85]);
        let mean = ThresholdSettings { rule: ThresholdRule::BetaMean, ..settings };
        assert_eq!((next_raise(&mean, &[], None), next_lowering(&mean, &[], None)), (None, None));
        let lowest = ThresholdSettings { configured: Threshold::LOWEST, ..settings };
        assert_eq!(next_lowering(&lowest, &[], None), None);
    }

    proptest! {
        #[test]
        fn so_many_move_it_and_one_fewer_does_not(right in 0_u64..60, wrong in 0_u64..40, level in 70_u8..=95) {
            let settings = ThresholdSettings::default();
            let log = vec![counted(LessonKind::Confirmed, level, right), counted(LessonKind::FalsePositive, 90, wrong)];
            let with = |kind, levels: &[u8], times| {
                let more = levels.iter().map(|level| counted(kind, *level, times));
                learn_from_counts(&settings, log.iter().cloned().chain(more)).repository.current
            };
            let now = learn_from_counts(&settings, log.clone()).repository.current;
            if let Some(raise) = next_raise(&settings, &log, None) {
                prop_assert_eq!(with(LessonKind::FalsePositive, &raise.levels, raise.times), raise.to);
                prop_assert!(raise.to > now);
                prop_assert!(with(LessonKind::FalsePositive, &raise.levels, raise.times - 1) <= now);
            }
            if let Some(lower) = next_lowering(&settings, &log, None) {
                prop_assert_eq!(with(LessonKind::Confirmed, &lower.levels, lower.times), lower.to);
                prop_assert!(lower.to < now);
                prop_assert!(with(LessonKind::Confirmed, &lower.levels, lower.times - 1) >= now);
            }
        }
    }
}
