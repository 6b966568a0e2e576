//! Months of outcomes: how the threshold changes, and what is posted then.

use canonry_domain::{Component, CurrentThreshold, ThresholdSource, TriageReason};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::CloseReason;
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::triage_world::{SUGGEST, TriageWorld};

const CALM: &str = "tide/calm";
const STORM: &str = "tide/storm";
const REEF: &str = "tide/reef";

on_both_engines! {
    async fn a_threshold_goes_where_its_outcomes_lead(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[CALM, STORM, REEF]).await;
        for repo in [CALM, STORM, REEF] {
            setting.emulator.world().get_mut(repo).file(".canonry.yml", SUGGEST);
        }
        setting.settle().await;
        falls_where_it_is_right(&setting).await;
        falls_silent_where_it_is_wrong(&setting).await;
        is_told_apart_by_component(&setting).await;
        setting.stop().await;
    }
}

/// Reports with these scores, all closed in one month.
async fn month(setting: &TriageWorld, repo: &str, scores: &[u64], right: bool) -> Vec<u64> {
    let numbers: Vec<u64> =
        scores.iter().enumerate().map(|(at, score)| setting.report(repo, at as u64 % 6, *score)).collect();
    setting.settle().await;
    for number in &numbers {
        if right {
            setting.confirm(repo, *number);
        } else {
            setting.close(repo, *number, "maint", CloseReason::Completed);
        }
    }
    setting.settle().await;
    setting.later(SignedDuration::from_hours(24 * 30)).await;
    numbers
}

/// Ten right predictions at 95 prove it right; ten between 80 and 84 lower the threshold: the lowest level with five
/// of them within five points above it is 78, and with five more at 80 and 81 it is 76.
async fn falls_where_it_is_right(setting: &TriageWorld) {
    let early = setting.report(CALM, 0, 77);
    setting.settle().await;
    setting.assert_silent(CALM, early);
    month(setting, CALM, &[95; 10], true).await;
    month(setting, CALM, &[80, 81, 82, 83, 84, 80, 81, 82, 83], true).await;
    assert_eq!(setting.current(CALM).await, Some(85), "nineteen are not twenty");
    let id = setting.repo(CALM).await.id;
    assert_eq!(setting.store.learning().threshold_adjustments(id, 10).await.expect("reads").len(), 0);
    month(setting, CALM, &[84], true).await;
    assert_eq!(setting.current(CALM).await, Some(78));
    month(setting, CALM, &[80, 80, 80, 81, 81], true).await;
    assert_eq!(setting.current(CALM).await, Some(76));
    assert_eq!(setting.thresholds(CALM).await.repository.source, ThresholdSource::Learned);
    // The drop by seven points is logged; two more points are not.
    let told = setting.store.learning().threshold_adjustments(id, 10).await.expect("reads");
    let [adjusted] = told.iter().map(|told| &told.adjusted).collect::<Vec<_>>()[..] else { panic!("{told:?}") };
    assert_eq!((adjusted.repo.to_string().as_str(), adjusted.component.as_ref()), (CALM, None));
    let points = |current: CurrentThreshold| current.threshold().map(canonry_domain::Threshold::get);
    assert_eq!((points(adjusted.previous_threshold), points(adjusted.new_threshold)), (Some(85), Some(78)));
    assert_eq!((adjusted.sample_count, setting.counts(CALM).await), (20, [25, 0, 0, 0, 25]));
    let late = setting.report(CALM, 0, 77);
    let below = setting.report(CALM, 0, 75);
    setting.settle().await;
    setting.assert_said(CALM, late, 1);
    setting.assert_silent(CALM, below);
}

/// Wrong predictions never lower the threshold: Canonry falls silent, keeps recording, and comments again where it is
/// right.
async fn falls_silent_where_it_is_wrong(setting: &TriageWorld) {
    let id = setting.repo(STORM).await.id;
    month(setting, STORM, &[88, 89], false).await;
    assert_eq!(setting.current(STORM).await, Some(85), "two are no three");
    month(setting, STORM, &[90, 91, 88, 89, 87, 86], false).await;
    assert_eq!(setting.current(STORM).await, None);
    let told = setting.store.learning().threshold_adjustments(id, 10).await.expect("reads");
    assert_eq!((told.len(), told[0].adjusted.new_threshold), (1, CurrentThreshold::Silent));
    let unheard = setting.report(STORM, 0, 99);
    setting.settle().await;
    setting.assert_silent(STORM, unheard);
    assert_eq!(setting.action(STORM, unheard).await.action.reason, TriageReason::FallenSilent);
    // It is silent and right: from 92 up, sixteen of sixteen.
    month(setting, STORM, &[99, 98, 97, 96, 95, 94, 93, 92], true).await;
    month(setting, STORM, &[99, 98, 97, 96, 95, 94, 93, 92], true).await;
    assert_eq!(setting.current(STORM).await, Some(90), "at 89 four of twenty were wrong");
    let (right, wrong) = (setting.report(STORM, 0, 97), setting.report(STORM, 0, 89));
    setting.settle().await;
    setting.assert_said(STORM, right, 1);
    setting.assert_silent(STORM, wrong);
}

/// With a hundred outcomes in the repository and twenty in a component, the component gets its own threshold.
async fn is_told_apart_by_component(setting: &TriageWorld) {
    let surf = Component::of_labels(["area/surf"]).expect("a component");
    let report = |title: &str, label: &str| setting.report_as(REEF, "ben", title, &[label]);
    for _ in 0..4 {
        month(setting, REEF, &[95; 19], true).await;
    }
    let wrong = |count: u64| {
        (0..count).map(|at| report(&format!("It stops: topic{} alike90", at % 6), "area/surf")).collect::<Vec<u64>>()
    };
    let mut numbers = wrong(19);
    setting.settle().await;
    for number in &numbers {
        setting.close(REEF, *number, "maint", CloseReason::Completed);
    }
    let sand: Vec<u64> = (0..3).map(|at| report(&format!("It stops: topic{at} alike95"), "component/sand")).collect();
    setting.settle().await;
    sand.iter().for_each(|number| setting.confirm(REEF, *number));
    setting.settle().await;
    assert_eq!((setting.counts(REEF).await[4], setting.thresholds(REEF).await.components.len()), (98, 0));
    numbers.extend(wrong(2));
    setting.settle().await;
    for number in &numbers[19..] {
        setting.close(REEF, *number, "maint", CloseReason::Completed);
    }
    setting.settle().await;
    let thresholds = setting.thresholds(REEF).await;
    assert_eq!(thresholds.repository.counts.total, 100);
    assert_eq!(thresholds.components.keys().collect::<Vec<_>>(), [&surf], "sand has too few");
    assert_eq!(thresholds.components[&surf].current, CurrentThreshold::Silent);
    assert_eq!(thresholds.repository.current.threshold().map(canonry_domain::Threshold::get), Some(85));
    let in_surf = report("It stops: topic0 alike96", "area/surf");
    let in_sand = report("It stops: topic1 alike97", "component/sand");
    setting.settle().await;
    setting.assert_silent(REEF, in_surf);
    setting.assert_said(REEF, in_sand, 2);
    let action = setting.action(REEF, in_surf).await.action;
    assert_eq!((action.component, action.threshold), (Some(surf), CurrentThreshold::Silent));
}
