//! Computes the share of right predictions at each level, and the history of a threshold.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::learning::share::beta_interval;
use crate::{
    Component, CountedLessons, LessonKind, Share, ShareInterval, ThresholdSettings, ThresholdState, learn_from_counts,
};

/// The predictions whose scores are in a range of points, and how many of them were right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelShare {
    pub from: u8,
    pub to: u8,
    pub share: Share,
}

/// The share of right predictions by level, lowest first; levels without predictions are omitted.
///
/// `width` is the number of points of a level. 100 points belong to the highest level below them, so that no level is
/// a single point wide.
pub fn reliability<'a>(lessons: impl IntoIterator<Item = &'a CountedLessons>, width: u8) -> Vec<LevelShare> {
    let width = width.max(1);
    let mut levels: BTreeMap<u8, Share> = BTreeMap::new();
    for lesson in lessons {
        let (Some(level), true) = (lesson.level, lesson.kind != LessonKind::Unknown) else { continue };
        let share = levels.entry(level_of(level, width)).or_default();
        *if lesson.kind == LessonKind::Confirmed { &mut share.right } else { &mut share.wrong } += lesson.times;
    }
    levels.into_iter().map(|(from, share)| LevelShare { from, to: top_of(from, width), share }).collect()
}

/// The lowest points of the level that contains these points.
pub(crate) fn level_of(points: u8, width: u8) -> u8 {
    points.min(99) / width * width
}

/// The highest points of the level that begins at `from`.
pub(crate) fn top_of(from: u8, width: u8) -> u8 {
    let top = from.saturating_add(width - 1);
    if top >= 99 { 100 } else { top }
}

/// The lessons of one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LessonPeriod {
    pub from: Timestamp,
    pub until: Timestamp,
    pub lessons: Vec<CountedLessons>,
}

/// The threshold that follows from all outcomes until a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdPoint {
    pub at: Timestamp,
    pub state: ThresholdState,
}

/// The threshold of a repository, or of one of its components, at the end of each period.
///
/// Outcomes and settings are those of today: the curve shows what today's evidence says about each moment, and its
/// last point is the current state.
pub fn threshold_curve(
    settings: &ThresholdSettings,
    periods: &[LessonPeriod],
    component: Option<&Component>,
) -> Vec<ThresholdPoint> {
    let mut so_far: BTreeMap<(LessonKind, Option<u8>, bool), u64> = BTreeMap::new();
    periods
        .iter()
        .map(|period| {
            for lesson in &period.lessons {
                let inside = component.is_some() && lesson.component.as_ref() == component;
                *so_far.entry((lesson.kind, lesson.level, inside)).or_default() += lesson.times;
            }
            let counted = so_far.iter().map(|(&(kind, level, inside), &times)| CountedLessons {
                kind,
                level,
                component: component.filter(|_| inside).cloned(),
                times,
            });
            ThresholdPoint {
                at: period.until,
                state: learn_from_counts(settings, counted).governing(component).clone(),
            }
        })
        .collect()
}

/// The 95 % interval of the share behind a threshold.
pub fn posterior_band(state: &ThresholdState) -> ShareInterval {
    beta_interval(state.alpha, state.beta)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::{LessonPeriod, LevelShare, posterior_band, reliability, threshold_curve};
    use crate::{Component, CountedLessons, CurrentThreshold, LessonKind, Share, ThresholdSettings, learn_from_counts};

    fn counted(kind: LessonKind, level: Option<u8>, times: u64) -> CountedLessons {
        CountedLessons { kind, level, component: None, times }
    }

    fn period(hour: i64, lessons: Vec<CountedLessons>) -> LessonPeriod {
        let from = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour);
        LessonPeriod { from, until: from + SignedDuration::from_hours(1), lessons }
    }

    #[test]
    fn levels_hold_what_was_predicted_there() {
        let lessons = [
            counted(LessonKind::Confirmed, Some(85), 3),
            counted(LessonKind::Confirmed, Some(89), 1),
            counted(LessonKind::FalsePositive, Some(88), 2),
            counted(LessonKind::Missed, Some(90), 1),
            counted(LessonKind::Missed, None, 7),
            counted(LessonKind::TrueNegative, None, 9),
            counted(LessonKind::Confirmed, Some(100), 4),
            counted(LessonKind::Unknown, Some(85), 50),
        ];
        let level = |from, to, right, wrong| LevelShare { from, to, share: Share { right, wrong } };
        assert_eq!(reliability(&lessons, 5), [level(85, 89, 4, 2), level(90, 94, 0, 1), level(95, 100, 4, 0)]);
        assert_eq!(reliability(&lessons, 0).len(), 5, "a width of nothing is one point");
        assert_eq!(reliability(&[], 5), []);
    }

    #[test]
    fn wrong_predictions_raise_the_curve_and_more_evidence_narrows_its_band() {
        let settings = ThresholdSettings::default();
        let periods = [
            period(0, vec![counted(LessonKind::Confirmed, Some(90), 2)]),
            period(1, Vec::new()),
            period(2, vec![counted(LessonKind::FalsePositive, Some(86), 30)]),
        ];
        let curve = threshold_curve(&settings, &periods, None);
        assert_eq!(curve.len(), 3);
        assert_eq!(curve[0].state, curve[1].state);
        assert_eq!(curve[1].at, Timestamp::UNIX_EPOCH + SignedDuration::from_hours(2));
        assert_eq!(curve[0].state.current, CurrentThreshold::From(settings.configured));
        assert!(curve[2].state.current > curve[0].state.current, "{:?}", curve[2].state);
        let (first, last) = (posterior_band(&curve[0].state), posterior_band(&curve[2].state));
        assert!(first.low < first.high && last.low < last.high, "{first:?} {last:?}");
        assert_eq!(threshold_curve(&settings, &[], None), []);
    }

    fn any_lesson() -> impl Strategy<Value = CountedLessons> {
        let kind = select(LessonKind::ALL);
        (kind, 60_u8..=100, 1_u64..40, select(vec![None, Some("auth"), Some("ui")])).prop_map(
            |(kind, level, times, component)| {
                let predicts = matches!(kind, LessonKind::Confirmed | LessonKind::FalsePositive);
                let component = component.and_then(|name| Component::of_labels([format!("area/{name}").as_str()]));
                CountedLessons { kind, level: predicts.then_some(level), component, times }
            },
        )
    }

    proptest! {
        #[test]
        fn the_last_point_is_what_the_whole_log_says(lessons in vec(vec(any_lesson(), 0..6), 1..12)) {
            let settings = ThresholdSettings::default();
            let periods: Vec<LessonPeriod> = (0..).zip(&lessons).map(|(hour, lessons)| period(hour, lessons.clone())).collect();
            let whole = learn_from_counts(&settings, lessons.iter().flatten().cloned());
            let auth = Component::of_labels(["area/auth"]);
            for component in [None, auth.as_ref()] {
                let curve = threshold_curve(&settings, &periods, component);
                prop_assert_eq!(&curve.last().expect("not empty").state, whole.governing(component));
            }
            let all: u64 = reliability(lessons.iter().flatten(), 5).iter().map(|level| level.share.all()).sum();
            let counts = whole.repository.counts;
            prop_assert_eq!(all, counts.confirmed + counts.false_positives);
        }

        #[test]
        fn bands_lie_in_order(right in 0_u64..500, wrong in 0_u64..500) {
            let lessons = [counted(LessonKind::Confirmed, Some(90), right), counted(LessonKind::FalsePositive, Some(90), wrong)];
            let state = learn_from_counts(&ThresholdSettings::default(), lessons).repository;
            let band = posterior_band(&state);
            let mean = state.alpha / (state.alpha + state.beta);
            prop_assert!(0.0 <= band.low && band.low <= mean && mean <= band.high && band.high <= 1.0, "{:?} {}", band, mean);
        }
    }
}
